"""Recall of ``hpclaunch lint`` on classical mistakes: ``python -m benchmarks.lint_mistakes [--half kept]``.

``tests/data/lint_mistakes``: scripts with one mistake each, as people who support users of such machines know
them, and for each a twin with the right form, ``NNN-ok``. They were written, with ``HALF.yaml``, before their
authors saw lint. Halves of those of author ``a`` by lot (the last hexadecimal digit of the SHA-256 of the
name); the 80 of author ``b`` are all in ``kept``. Rules are made on ``open`` only: no author of rules reads
``kept``. A mistake counts as found where a finding stands at its line, or at another one that the list has,
and is not in the twin, too. The site is that of the script, mostly none.

``--missed`` prints the mistakes of the open half that no error or warning finds, and the errors and warnings
in its twins.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_rule import Finding
from hpclaunch.lint.lint_script import find_faults, site_of
from hpclaunch.site.load_profile import load_all
from hpclaunch.text_table import text_table

DATA = Path(__file__).parents[1] / "tests" / "data" / "lint_mistakes"
GRADES = ("error", "warning", "note")
GROUPS = {"slurm": "Slurm", "pbs": "PBS", "lsf": "LSF", "sge": "Grid Engine", "any": "any scheduler"}


_profiles = cache(load_all)


def findings(path: Path) -> tuple[Finding, ...]:
    """Return the findings in a script, without those of shellcheck."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    profiles, _ = _profiles()
    site = site_of(read_script(text), profiles)
    return find_faults(text, profiles[site] if site else None)


def grade(mistake: dict[str, Any], found: tuple[Finding, ...], in_twin: tuple[Finding, ...]) -> str:
    """Return the gravest severity of a finding that tells a mistake, ``not found`` where none does."""
    lines = {mistake["line"], *mistake.get("also", ())}
    known = {(one.rule, one.message) for one in in_twin}
    told = [one.severity for one in found if one.line in lines and (one.rule, one.message) not in known]
    return min(told, key=GRADES.index, default="not found")


def rows_of(half: str, author: str, *, missed: bool) -> list[tuple[str, ...]]:
    """Return the counts of a half: by scheduler, and of mistakes with which the job surely fails."""
    counts: dict[str, Counter[str]] = {}
    for mistake in yaml.safe_load((DATA / f"{half}.yaml").read_text()):
        if not mistake.get("author", "a").startswith(author):
            continue
        path = DATA / half / mistake["script"]
        in_twin = findings(path.with_name(f"{path.stem}-ok{path.suffix}"))
        how = grade(mistake, findings(path), in_twin)
        accused = [one for one in in_twin if one.severity != "note"]
        surely = ["surely failing"] if mistake["fails"] == "surely" else []
        for group in (GROUPS[mistake["group"]], "all", *surely):
            counts.setdefault(group, Counter()).update([how, "of", *(["twin"] if accused else [])])
        if missed and how in ("note", "not found"):
            print(f"{path.name}:{mistake['line']}: {how}: {mistake['says']}")
        for one in accused if missed else ():
            print(f"{path.stem}-ok:{one.line}: {one.severity}: {one.message} [{one.rule}]")
    order = [name for name in (*GROUPS.values(), "all", "surely failing") if name in counts]
    shown = ("error", "warning", "note", "not found", "of", "twin")
    return [(half, name, *(str(counts[name][column]) for column in shown)) for name in order]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("--half", choices=("open", "kept"), action="append")
    parser.add_argument("--author", default="", help="only the mistakes of one author, a letter")
    parser.add_argument("--missed", action="store_true", help="print what the open half misses")
    given = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for half in given.half or ["open", "kept"]:
        rows += rows_of(half, given.author, missed=given.missed and half == "open")
    head = ("half", "mistakes", *GRADES, "not found", "of", "twins with an error or warning")
    print(text_table([head, *rows]))


if __name__ == "__main__":
    main()
