"""The scripts of tests/data/lint: what each is for, and what lint must find in it.

A script's last lines say so: ``# site: NAME`` (or unknown), then ``# expect: LINE RULE`` for every finding,
``-`` if it has no line. A file is named RULE.WHAT.sh; RULE.near-WHAT.sh is a near miss, in which the rule
finds nothing. What many fragments lack (``COMMON``) is expected only in the scripts about it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hpclaunch.lint.lint_rule import Files, Finding
from hpclaunch.lint.lint_script import find_faults
from tests.profiles import shipped

DATA = Path(__file__).parent.parent / "data" / "lint"
SCRIPTS = sorted(DATA.glob("*.sh"))
COMMON = {"no-directives", "time-missing", "one-cpu-per-gpu-rank", "no-cpu-binding"}
COMMON |= {"master-addr-missing", "submit-folder-not-entered"}


class Case(NamedTuple):
    """One script and what is expected."""

    path: Path
    text: str
    site: str
    expected: list[tuple[int | None, str]]


def read_case(path: Path) -> Case:
    """Read a script with its expectations."""
    text = path.read_bytes().decode()
    site = re.findall(r"^# site: (\S+)$", text, re.MULTILINE)
    expected = re.findall(r"^# expect: (\d+|-) (\S+)$", text, re.MULTILINE)
    assert len(site) == 1, path
    return Case(path, text, site[0], [(None if line == "-" else int(line), rule) for line, rule in expected])


def findings(text: str, site: str, folder: Path = DATA) -> tuple[Finding, ...]:
    """Lint with a shipped site, one of the data folder (.yaml), or none for unknown."""
    place = str(DATA / site) if site.endswith(".yaml") else site
    return find_faults(text, None if site == "unknown" else shipped(place), Files((folder,)))


def places(found: tuple[Finding, ...], about: str = "") -> list[tuple[int | None, str]]:
    """Return line and rule of each finding, each once; of ``COMMON`` only what a script is about."""
    kept = [one for one in found if one.rule not in COMMON or one.rule == about]
    return sorted({(one.line, one.rule) for one in kept}, key=lambda place: (place[0] or 0, place[1]))
