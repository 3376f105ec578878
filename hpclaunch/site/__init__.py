"""Site profiles: what hpclaunch knows about a machine, as data."""
