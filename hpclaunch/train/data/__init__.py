"""Where the images come from, and which rank sees which of them."""
