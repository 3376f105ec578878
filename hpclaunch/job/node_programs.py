"""Programs of several files of ``hpclaunch/remote``, as one text for an interpreter without hpclaunch."""

from __future__ import annotations

from hpclaunch.package_data import resource_dir

STANDS = ("look", "rank_stands")
"""Where the processes of a job stand on a node."""
STAGING = ("safe_unpack", "archive_reader", "stage_sources", "stage_images", "stage_copy", "stage")
"""Copies data to the nodes."""
ROLL_CALL_FILES = {"stands.py": STANDS, "roll_call.py": ("look", "roll_call")}
"""File in the job's folder -> its modules: what is asked on each node, and the roll call of all."""


def one_text(modules: tuple[str, ...]) -> str:
    """Return the text of the last module, with those before it, which it imports, put in."""
    folder = resource_dir("remote")
    *imported, program = ((name, (folder / f"{name}.py").read_text()) for name in modules)
    lines = ["import sys, types"]
    for name, text in imported:
        whole = f"hpclaunch.remote.{name}"
        lines.append(f"sys.modules[{whole!r}] = types.ModuleType({whole!r})")
        lines.append(f"exec({text!r}, sys.modules[{whole!r}].__dict__)")
    return "\n".join([*lines, f"exec({program[1]!r})", ""])
