"""Where the folders of the package are, in a wheel or a checkout, and its tables in YAML and JSON."""

import json
import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def resource_dir(name: str) -> Path:
    """Return the folder ``templates``, ``site_profiles`` or one of code, wherever it is installed."""
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def commit() -> str | None:
    """Return the commit that this hpclaunch was built from; None: it is a checkout, or built without git."""
    try:
        return text_beside(__file__, "commit.txt").strip()
    except FileNotFoundError:
        return None


def text_beside(module: str, name: str) -> str:
    """Return the text of a file next to the module with this ``__file__``, such as a program for bash."""
    return (Path(module).parent / name).read_text(encoding="utf-8")


def shell_words(module: str, name: str, function: str, shell: str = "sh") -> tuple[str, ...]:
    """Return the words that call a function of the shell's file next to a module; its arguments follow.

    The last line of such a file is ``"$@"``.
    """
    return (shell, "-c", text_beside(module, name), f"hpclaunch-{function}", function)


def package_constants(file: str, part: str) -> SimpleNamespace:
    """Return a part of a file of the package with constants; its keys are attributes."""
    return SimpleNamespace(**package_table(file)[part])


def package_patterns(file: str, part: str) -> SimpleNamespace:
    """Return the regular expressions of a part, under ``forms``; their names are attributes."""
    forms = package_table(file)[part]["forms"]
    return SimpleNamespace(**{name: re.compile(form) for name, form in forms.items()})


@cache
def package_table(file: str) -> Any:
    """Return the data of a file of the package, read once; JSON is for what commands load at once."""
    text = (Path(__file__).parent / file).read_text("utf-8")
    if file.endswith(".json"):
        return json.loads(text)
    import yaml  # only where such a table is asked for

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
