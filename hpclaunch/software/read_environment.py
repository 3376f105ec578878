"""Read ``environment:`` from a job file."""

from pathlib import Path

from hpclaunch.errors import BadInputError
from hpclaunch.site.job_environment import Environment
from hpclaunch.site.validate import to_struct
from hpclaunch.site.yaml_tree import read_tree


def read_environment(path: Path) -> Environment | None:
    """Return the ``environment`` of a YAML job file; None: it has none.

    Raises BadInputError with file and line of every problem in it; other keys are ignored.
    """
    tree = read_tree(path)
    if not isinstance(tree.value, dict):
        raise BadInputError(f"{tree.where}: not a mapping", "write it as environment: {modules: [...]}")
    below = tree.value.get("environment")
    if below is None or below.value is None:
        return None
    return to_struct(below, Environment)
