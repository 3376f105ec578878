"""What the shell of the person who submits has loaded: environments of Python, and modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from hpclaunch.plan.software_choice import ActiveShell


def active_shell(variables: Mapping[str, str], module: str | None) -> ActiveShell:
    """Return the Python environment that is active here, and the modules that are loaded.

    An environment counts if it has ``module``, or packages of another Python, among which it may be. The one
    that hpclaunch itself is installed in counts only if it has the module: many make one for hpclaunch alone.
    """
    venv, conda = variables.get("VIRTUAL_ENV"), variables.get("CONDA_PREFIX")
    if variables.get("CONDA_DEFAULT_ENV") == "base":
        conda = None
    loaded = tuple(filter(None, variables.get("LOADEDMODULES", "").split(":")))
    found = venv or conda
    if found is None:
        return ActiveShell(modules=loaded)
    holds = module is not None and _has(Path(found), module)
    if not holds and (Path(found) == Path(sys.prefix) or _is_closed(Path(found))):
        own = Path(found) == Path(sys.prefix)
        return ActiveShell(modules=loaded, without=None if own or module is None else found)
    return ActiveShell(venv=venv, conda=None if venv else conda, modules=loaded)


def _has(folder: Path, module: str) -> bool:
    """Whether a package is installed in an environment, by its folder or its file."""
    places = [place for name in ("lib", "lib64") for place in folder.glob(f"{name}/python3*/site-packages")]
    names = (module, f"{module}.py", f"{module}.so")
    return any((place / name).exists() for place in places for name in names)


def _is_closed(folder: Path) -> bool:
    """Whether an environment has its own packages only (pyvenv.cfg of PEP 405; conda's always)."""
    try:
        text = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    values = dict(line.replace(" ", "").lower().split("=", 1) for line in text.splitlines() if "=" in line)
    return values.get("include-system-site-packages") != "true"
