"""Gives what is unreleased in CHANGELOG.md a version and its day: ``cut_changelog.py FILE VERSION DAY``.

The entries under [Unreleased], and those under ``[VERSION] - unreleased`` where that heading stands, become
``[VERSION] - DAY``, each under its own kind (Added, Changed, ...). [Unreleased] stays, empty.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

UNRELEASED = "## [Unreleased]"


def cut(text: str, version: str, day: str) -> str:
    """Return the text with the release. Raises ValueError where there is nothing to release, or it was."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", day):
        raise ValueError(f"{day!r} is no day such as 2026-11-25")
    head, *parts = re.split(r"(?m)^(?=## )", text)
    sections = {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}
    begun = f"## [{version}] - unreleased"
    if released := [title for title in sections if title.startswith(f"## [{version}]") and title != begun]:
        raise ValueError(f"{released[0]!r} stands there already: {version} was released")
    if UNRELEASED not in sections:
        raise ValueError(f"there is no heading {UNRELEASED!r}")
    kinds: dict[str, str] = {}
    for title in (begun, UNRELEASED):
        for kind, entries in _kinds(sections.pop(title, "")):
            kinds[kind] = "\n".join(filter(None, (kinds.get(kind), entries)))
    if not any(kinds.values()):
        raise ValueError(f"nothing is listed under {UNRELEASED!r} or {begun!r}")
    new = "".join(f"### {kind}\n\n{entries}\n\n" for kind, entries in kinds.items() if entries)
    older = "".join(f"{title}\n{body}" for title, body in sections.items())
    return f"{head}{UNRELEASED}\n\n## [{version}] - {day}\n\n{new}{older}".rstrip("\n") + "\n"


def _kinds(section: str) -> Iterator[tuple[str, str]]:
    before, *parts = re.split(r"(?m)^### ", section)
    if before.strip():
        raise ValueError(f"an entry stands above the first heading of its kind: {before.strip()[:60]!r}")
    for part in parts:
        kind, _, entries = part.partition("\n")
        yield kind.strip(), entries.strip("\n")


if __name__ == "__main__":
    file, new_version, today = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    try:
        file.write_text(cut(file.read_text("utf-8"), new_version, today), "utf-8")
    except ValueError as error:
        sys.exit(f"{file}: {error}")
