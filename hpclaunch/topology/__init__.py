"""The topology of a node: its description, and one reader for each source that describes nodes."""
