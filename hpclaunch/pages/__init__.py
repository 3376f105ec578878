"""Pages and pictures: one style and one set of macros that draw, for all rooms that show something."""
