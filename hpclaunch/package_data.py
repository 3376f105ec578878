"""Where the package's folders are: in a wheel inside the package, in a checkout next to it."""

from pathlib import Path


def resource_dir(name: str) -> Path:
    """Return the folder ``templates``, ``site_profiles`` or one of code, wherever it is installed."""
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name
