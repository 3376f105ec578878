"""The configuration of lint: the nearest ``.hpclaunch-lint.yaml``, or table in a ``pyproject.toml``."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.lint.chosen_findings import unknown_rule
from hpclaunch.lint.lint_rule import Finding, Severity
from hpclaunch.site.load_profile import is_path
from hpclaunch.site.validate import to_struct
from hpclaunch.site.yaml_tree import Tree, parse_data, read_data, show_path

OWN_FILE = ".hpclaunch-lint.yaml"
TOML_FILE = "pyproject.toml"
_OWN_TABLE = re.compile(r"""\btool\s*\.\s*["']?hpclaunch\b|\bhpclaunch["']?\s*\.\s*["']?lint\b""")


class LintSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a configuration."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: dict[str, Severity] = {}
    site: str | None = None
    exclude: tuple[str, ...] = ()

    def under(self, select: tuple[str, ...], ignore: tuple[str, ...], site: str | None) -> "LintSettings":
        """Return the settings under options of the command line, which win.

        ``--select`` takes the place of ``select`` and ``ignore``; ``--ignore`` is added to ``ignore``.
        """
        return msgspec.structs.replace(
            self,
            select=select or self.select,
            ignore=(*(() if select else self.ignore), *ignore),
            site=site or self.site,
        )

    def graded(self, finding: Finding) -> Finding:
        """Return a finding with the severity that it has here."""
        fitting = [one for pattern, one in self.severity.items() if fnmatchcase(finding.rule, pattern)]
        return msgspec.structs.replace(finding, severity=fitting[-1]) if fitting else finding


class _Tool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tool.hpclaunch]``."""

    lint: LintSettings | None = None


class Configuration(msgspec.Struct, frozen=True):
    """Settings, and the file that they are from; no file: nothing is set."""

    settings: LintSettings = LintSettings()
    file: Path | None = None


class Configurations:
    """The configurations of scripts, each file read once."""

    def __init__(self) -> None:
        self._known: dict[Path, Configuration] = {}

    def of(self, path: Path) -> Configuration:
        """Return that of a script or folder. Raises BadInputError with file, line and key."""
        return self._in(Path(os.path.abspath(path)).parent)

    def excludes(self, path: Path) -> bool:
        """Tell whether a script or folder is left out."""
        found = self.of(path)
        if found.file is None or not found.settings.exclude:
            return False
        parts = Path(os.path.abspath(path)).relative_to(found.file.parent).parts
        names = {*parts, *("/".join(parts[:end]) for end in range(2, len(parts) + 1))}
        patterns = [pattern.rstrip("/") for pattern in found.settings.exclude]
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    def _in(self, folder: Path) -> Configuration:
        if folder not in self._known:
            found = _read(folder)
            above = self._in(folder.parent) if found is None and folder != folder.parent else None
            self._known[folder] = found or above or Configuration()
        return self._known[folder]


def _read(folder: Path) -> Configuration | None:
    """Read the configuration in a folder; None: there is none."""
    file = folder / OWN_FILE
    if os.path.isfile(file):
        tree = parse_data(read_data(file), file)
        settings = to_struct(tree, LintSettings)
    else:
        file = folder / TOML_FILE
        whole = _own_table(file) if os.path.isfile(file) else None
        tool = to_struct(whole, _Tool) if whole else _Tool()
        if whole is None or tool.lint is None:
            return None
        tree, settings = whole.at(("lint",)), tool.lint
    for problem in _unknown_rules(tree, settings):
        raise BadInputError(problem, "hpclaunch lint --rules lists them")
    if settings.site and is_path(settings.site):  # from the file's folder, not from where lint runs
        site = str(folder / Path(settings.site).expanduser())
        settings = msgspec.structs.replace(settings, site=site)
    return Configuration(settings, file)


def _unknown_rules(tree: Tree, settings: LintSettings) -> Iterator[str]:
    for key in ("select", "ignore", "severity"):
        for at, pattern in enumerate(getattr(settings, key)):
            if unknown := unknown_rule(pattern):
                where = tree.at((key, pattern if key == "severity" else at)).where
                yield f"{where}: {key}: {unknown}"


def _own_table(file: Path) -> Tree | None:
    """Return ``[tool.hpclaunch]`` of a pyproject.toml, on the line that first names it; None: it has none."""
    text = read_data(file).decode("utf-8", errors="replace")
    shown = show_path(file)
    table = _OWN_TABLE.search(text)
    if table is None:
        return None
    try:
        data = msgspec.toml.decode(text).get("tool", {}).get("hpclaunch")
    except ImportError:
        raise BadInputError.case("lint: Python 3.10", file=shown, other=OWN_FILE) from None
    except msgspec.DecodeError as error:
        raise BadInputError(f"{shown}: not TOML: {error}") from None
    return None if data is None else _tree(data, shown, text.count("\n", 0, table.start()) + 1)


def _tree(value: Any, file: str, line: int) -> Tree:
    if isinstance(value, dict):
        value = {key: _tree(one, file, line) for key, one in value.items()}
    elif isinstance(value, list):
        value = [_tree(one, file, line) for one in value]
    return Tree(value, file, line)
