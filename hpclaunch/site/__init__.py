"""Site profiles: the facts about each machine, as data."""
