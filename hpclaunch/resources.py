"""Where the package's data folders are: inside the package in a wheel, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path


def resource_dir(name: str) -> Path:
    """Return the folder ``templates`` or ``site_profiles``, wherever this installation keeps it."""
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name
