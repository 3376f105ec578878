"""What ``hpclaunch software plan`` can plan: the goals of ``frameworks.json``."""

from hpclaunch.framework_table import FRAMEWORKS, Goal

GOALS: dict[str, Goal] = {name: goal for row in FRAMEWORKS.values() for name, goal in row.goals.items()}
"""Name, as ``--for`` takes it -> what it is."""
ROUTES = ("site", "easybuild", "eessi", "container", "wrapper", "pip", "eessi-container")
