"""Where the package's folders are: in a wheel inside the package, in a checkout next to it."""

from pathlib import Path


def resource_dir(name: str) -> Path:
    """Return the folder ``templates``, ``site_profiles`` or one of code, wherever it is installed."""
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def text_beside(module: str, name: str) -> str:
    """Return the text of a file next to the module with this ``__file__``, such as a program for bash."""
    return (Path(module).parent / name).read_text(encoding="utf-8")
