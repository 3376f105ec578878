"""What a node is made of: its description, and one reader for each source that can tell."""
