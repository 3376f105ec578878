"""Precision of ``hpclaunch lint`` by rule, and recall by class of defect, on other people's batch scripts.

    python benchmarks/lint.py FOLDER [--unjudged] [--missed]
    python benchmarks/lint.py --unseen FOLDER [--half open] [--unjudged] [--missed]
    python benchmarks/lint.py --third FOLDER [--half open] [--unjudged] [--missed]
    python benchmarks/lint.py --look fourth|fifth|...|ninth_kept|...|twelfth|...|sixteenth_kept
    python benchmarks/lint.py --cpu FOLDER

``FOLDER`` holds ``truth/`` with ``truth.json`` (scripts whose defects were written down before any program
read them: file name -> ``defects``, each with ``line`` and ``class``; line 0: the whole script) and
``scripts/`` (scripts without such a list). The scripts belong to others and are not part of the project.
``benchmarks/data/lint_judged.tsv`` holds our verdict on every finding: file, line (0: the whole script),
rule, and ``right`` or ``false``. A finding without a verdict is counted as such.

The site is the one that lint takes from the script itself, as on a machine without a profile; for recall also
the one that ``benchmarks/data/lint_sites.json`` names for a script of truth.json, as with ``--site``. A class
in ``lint_classes.json`` without rules was found to be no defect, and does not count.

``--unseen``: FOLDER holds the scripts of ``lint_unseen.json``, each with the file of its source. Two authors
wrote their defects down without the linter, a third person judged the findings in the half ``kept``, by
severity (``lint_unseen_judged.tsv``). Two earlier runs are kept (``lint_unseen_runs.tsv``: with or without
--site, file, line, rule, severity, and which defects the judge saw told): the rules of 24 November, and the
first look of those that followed. In today's run a class without a rule is a defect that lint does not know,
and counts. ``--half open``: the half on which rules are made; who made them judged the findings
(``lint_open_judged.tsv``), so its figures tell what was repaired, not how good lint is.

``--third``: FOLDER holds the scripts of ``tests/data/lint_third/verdicts_HALF.yaml``; one judge wrote their
defects down before any linter read them. A finding is right where a defect stands at its line, or where
``lint_third_judged.tsv`` says so: script, line, rule, then ``right``, ``false`` or ``note`` (no more than
that), and the lines of defects that it tells although they stand elsewhere. Rules were made on ``open``. Of
``kept`` the judge's reading of earlier rules is printed, too, as recorded (``lint_third_looks.tsv``).

``--look`` needs no scripts: it prints how a judge read one run over 60 scripts (2026-11-28, ``eighth`` on
the 29th) that no author of rules had seen. ``lint_LOOK_judged.tsv``: each defect that makes a job fail, as
another person wrote it down before the run, whether a finding names it so that its reader would mend it,
and ``from`` where the script is; ``lint_LOOK_looks.tsv``: the errors and warnings, of ``eighth`` the notes,
too. Of ``fourth`` 30 scripts were found by the words of a search and 30 in issues that report a failure;
there a finding of any severity tells, and --site, for 11 scripts of 7 machines, added three notes only. Of
``fifth`` 37 were drawn by chance and 23 posted, one of these in a documentation; a note alone is ``note``,
and --site, for 7 scripts of 5 machines, told nothing more. Of ``sixth`` 30 were drawn by chance and 30
posted in threads; again a note alone is ``note``, and --site, for 2 scripts of 2 machines, told nothing
more. Two rows of its author are left out: conda takes an empty answer for yes (e18), and one mistake stood
on two lines (e41). Of ``seventh`` 30 were drawn by chance, and 30 are scripts that fail; 25 of these were
found in an index of stored files, of which it does not say whose they are, by searching for mistakes that
their finder had in mind, so recall on them flatters. In the half that was drawn are 12 defects in 9
scripts: 3 are found, 6 told by a note. Of ``eighth`` all 60 were drawn by chance;
``lint_eighth_lesser.tsv`` has, in its author's words, what possibly makes a job fail, or is slow or
fragile. Of ``ninth`` 23 were posted in threads, mostly because the job failed, and 24 are examples of
documentations, drawn by chance; ``ninth_kept`` is, by lot, the other half. Seven posted scripts are there
only in part. ``false`` has there also what is true, but needless: seven errors that follow from one other,
and what comes of a missing end. --site was not tried. One label was taken out after the look: sbatch
22.05.8 reads only the first letter of --open-mode. ``tenth``: 150 scripts, all drawn by chance, with the
rules of commit 311204ae. Their defects were not written down, so it tells of precision only: all errors and
warnings, and 60 of the notes by lot; ``false`` as in ``ninth``. ``eleventh`` and ``eleventh_kept``: the
halves, by lot, of 150 more of 85 repositories (111 for Slurm, 24 PBS, 8 Grid Engine, 7 LSF), with the rules
of commit 873bcd8e: all errors and warnings, and 40 of the notes of both by lot, without shellcheck's. Rules
were made from the first half only. ``twelfth``: 120 more of 63 repositories (98 for Slurm, 13 PBS, 5 Grid
Engine, 4 LSF), with the rules of commit e4730062, judged likewise by another judge, with 25 of the notes.
No rule was made from it. ``thirteenth`` and ``thirteenth_kept``: the halves, by lot, of 90 scripts that
people posted in threads of GitHub because a job failed (62 for Slurm, 16 PBS, 7 LSF, 5 Grid Engine), 23 of
them in part; those from 201 on are retold with the same directives and mistakes. The three authors of
labels saw the first 1,500 characters of a thread, so its cause is mostly not known. Rules were made from
the first half after the look, with commit 71f1a87a; --site was not tried. ``needs`` may be ``program``
there: the manual of the program that is run. ``fourteenth`` and ``fourteenth_kept``: the halves, by
repository, of 656 more scripts of 268 repositories (475 for Slurm, 107 PBS, 43 Grid Engine, 31 LSF), drawn
by their files' names, with the rules of commit 700d9efc: all errors and warnings, by two judges. A reason
that begins with ``needless`` says that the finding is true, but that no user of the script would change
anything; one with ``severity``, that it should have another one. ``fifteenth`` and ``fifteenth_kept``:
likewise 535 scripts of 251 other repositories (340 for Slurm, 102 PBS, 69 Grid Engine, 25 LSF; two have
directives of two), with the rules of commit c9dfb541. Of 80 of each half, by lot, two more authors wrote
down what surely makes the job fail or do something else than it says, a notice without an address included,
before they knew of a finding; the judges of recall were a third author and, of the first half, who made the
rules. ``sixteenth`` and ``sixteenth_kept``: the halves, by lot, of 49 posted scripts (17 of issues of
GitHub, 32 of notebooks, blogs, reports and mailing lists), judged likewise, ``artefact`` where a post was
cut off.

All also count the failing defects by what a tool must know to see them: ``script``, its text and the
documented behaviour of scheduler, shell and launcher; ``site``, a documented fact of the machine; ``files``,
another file, module or package that is there or not; ``world``, anything else (``needs`` of a class,
``lint_third_needs.tsv``).

``--cpu``: the CPU seconds of the command for all files below FOLDER, in a Python without shellcheck, and the
same for 500 files. Five runs, one process each.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_rule import Finding
from hpclaunch.lint.lint_script import find_faults, site_of
from hpclaunch.site.load_profile import load_all
from hpclaunch.text_table import text_table

DATA = Path(__file__).parent / "data"
JUDGED = DATA / "lint_judged.tsv"
CLASSES = DATA / "lint_classes.json"
SITES = DATA / "lint_sites.json"
UNSEEN = DATA / "lint_unseen.json"
UNSEEN_JUDGED = DATA / "lint_unseen_judged.tsv"
OPEN_JUDGED = DATA / "lint_open_judged.tsv"
UNSEEN_RUNS = DATA / "lint_unseen_runs.tsv"
THIRD_JUDGED = DATA / "lint_third_judged.tsv"
THIRD_LOOKS = DATA / "lint_third_looks.tsv"
THIRD_NEEDS = DATA / "lint_third_needs.tsv"
THIRD = Path(__file__).parents[1] / "tests" / "data" / "lint_third"
NO_SCRIPTS = (".json", ".md", ".tsv")
GRADES = ("error", "warning", "note")


class Linted(NamedTuple):
    """One script and what lint found in it."""

    folder: str
    name: str
    text: str
    findings: tuple[Finding, ...]


def lint_all(folder: Path, sites: dict[str, str] | None = None) -> tuple[list[Linted], float]:
    """Return every script with its findings, and the mean time for one in milliseconds."""
    profiles, _ = load_all()
    linted, seconds = [], 0.0
    for path in sorted([*(folder / "truth").iterdir(), *(folder / "scripts").iterdir()]):
        text = path.read_bytes().decode("utf-8", errors="replace")
        start = time.perf_counter()
        site = (sites or {}).get(path.name) or site_of(read_script(text), profiles)
        findings = find_faults(text, profiles[site] if site else None)
        seconds += time.perf_counter() - start
        linted.append(Linted(path.parent.name, path.name, text, findings))
    return linted, 1e3 * seconds / len(linted)


def read_verdicts() -> dict[tuple[str, str, str], str]:
    """Return (file, line, rule) -> right or false."""
    with JUDGED.open() as file:
        return {(name, line, rule): verdict for name, line, rule, verdict in csv.reader(file, delimiter="\t")}


def place(one: Finding) -> str:
    """Return the line of a finding as the judged list writes it."""
    return str(one.line or 0)


def print_precision(linted: Iterable[Linted], *, unjudged: bool) -> None:
    """Print right, false and unjudged findings by rule and by severity."""
    verdicts = read_verdicts()
    counts: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for script in linted:
        for one in script.findings:
            verdict = verdicts.get((script.name, place(one), one.rule), "unjudged")
            keys: list[tuple[str, str]] = [(one.severity, one.rule), ("all", one.severity)]
            for key in keys:
                counts[key][verdict] += 1
            if unjudged and verdict == "unjudged":
                print("\t".join((script.name, place(one), one.rule, one.severity, one.message)))
    rows = [("severity", "rule", "right", "false", "unjudged", "precision")]
    ranks = [*GRADES, "all"]
    order: list[tuple[str, str]] = sorted(counts, key=lambda pair: (ranks.index(pair[0]), pair[1]))
    for counted in order:
        found = counts[counted]
        known = found["right"] + found["false"]
        share = f"{100 * found['right'] / known:.1f} %" if known else "-"
        rows.append((*counted, str(found["right"]), str(found["false"]), str(found["unjudged"]), share))
    print(text_table(rows))


def statements(text: str) -> list[range]:
    """Return the lines of each statement: lines that end in a backslash go on."""
    found, begin = [], 1
    for number, line in enumerate(text.split("\n"), 1):
        if not line.rstrip().endswith("\\"):
            found.append(range(begin, number + 1))
            begin = number + 1
    return found


def is_found(script: Linted, line: int, rules: set[str] | None) -> bool:
    """Tell whether a finding of one of the rules, or of any, is in the statement of a line; line 0: anywhere.

    The lines of truth.json were counted by hand, so a neighbouring line counts, too. A finding also stands at
    the lines that it names (the status of the launch on line 9 is lost by the command on line 12), and one
    without a line at each: something is missing.
    """
    span = next((lines for lines in statements(script.text) if line in lines), range(line, line + 1))
    near = {*span, span[0] - 1, span[-1] + 1}
    named = {one: {one.line, *map(int, re.findall(r"\bline (\d+)", one.message))} for one in script.findings}
    return any(
        (rules is None or one.rule in rules) and (not line or None in lines or near & lines)
        for one, lines in named.items()
    )


def print_recall(folder: Path, linted: Iterable[Linted], *, missed: bool) -> None:
    """Print which of the defects of truth.json are found, by class."""
    truth = json.loads((folder / "truth.json").read_text())
    classes = json.loads(CLASSES.read_text())
    scripts = {script.name: script for script in linted if script.folder == "truth"}
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, entry in truth.items():
        for defect in entry["defects"]:
            kind = classes[defect["class"]]
            if not kind["rules"]:
                continue
            found = is_found(scripts[name], defect["line"], set(kind["rules"]))
            keys = [defect["class"], "all", *(["all that fail or run wrongly"] if kind["fails"] else [])]
            for key in keys:
                counts[key][0] += found
                counts[key][1] += 1
            if missed and not found:
                print(f"missed: {name}:{defect['line']}: {defect['class']}: {defect['defect']}")
    rows = [("class", "found", "of", "recall")]
    rows += [(key, str(a), str(b), f"{100 * a / b:.0f} %") for key, (a, b) in sorted(counts.items())]
    print(text_table(rows))


def print_unseen_run(
    title: str, counts: Counter[tuple[str, str]], found: Counter[bool], how: str = "surely"
) -> None:
    """Print right, false and unjudged findings by severity, and the defects found that make a job fail."""
    print(f"\n{title}\n")
    rows: list[tuple[str, ...]] = [("severity", "right", "false", "unjudged")]
    rows += [(grade, *(str(counts[grade, v]) for v in rows[0][1:])) for grade in GRADES]
    print(text_table(rows))
    print(f"defects found that {how} make a job fail: {found[True]} of {found.total()}")


def print_needs(counts: Counter[tuple[str, bool]]) -> None:
    """Print the failing defects by what a tool must know to see them."""
    kinds = ("script", "site", "files", "world")
    rows = [(one, str(counts[one, True]), str(counts[one, True] + counts[one, False])) for one in kinds]
    print(f"\nwhat a tool must know\n\n{text_table(rows, ('needs', 'found', 'of'))}")


def print_recorded_runs(judged: dict[tuple[str, ...], str]) -> None:
    """Print the earlier runs on the half kept apart; there the judge said which defects are told."""
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    with UNSEEN_RUNS.open() as file:
        for run, site, name, line, rule, severity in csv.reader(file, delimiter="\t"):
            title = f"{run}, {site} --site"
            if rule.startswith("defect:"):
                found[title][severity == "found"] += 1
            else:
                counts[title][severity, judged.get((name, line, rule, severity), "unjudged")] += 1
    for title in counts:
        print_unseen_run(title, counts[title], found[title])


def read_judged(half: str) -> dict[tuple[str, ...], str]:
    """Return (file, line, rule, severity) -> right or false."""
    with (UNSEEN_JUDGED if half == "kept" else OPEN_JUDGED).open() as file:
        return {(row[0], row[1], row[2], row[4]): row[3] for row in csv.reader(file, delimiter="\t")}


def print_unseen(folder: Path, half: str, *, unjudged: bool, missed: bool) -> None:
    """Print the precision, and the recall of defects that surely make a job fail, of one half."""
    judged = read_judged(half)
    if half == "kept":
        print_recorded_runs(judged)
    classes = json.loads(CLASSES.read_text())
    profiles, _ = load_all()
    truth = {n: e for n, e in json.loads(UNSEEN.read_text()).items() if e["half"] == half}
    for with_site in (False, True):
        counts: Counter[tuple[str, str]] = Counter()
        found, needs = Counter[bool](), Counter[tuple[str, bool]]()
        for name, entry in truth.items():
            text = (folder / name).read_bytes().decode("utf-8", errors="replace")
            given = entry["site"] if with_site and entry["site"] in profiles else None
            site = site_of(read_script(text), profiles) or given
            script = Linted(half, name, text, find_faults(text, profiles[site] if site else None))
            unique = {(name, place(one), one.rule, one.severity) for one in script.findings}
            counts.update((key[3], judged.get(key, "unjudged")) for key in unique)
            if unjudged:
                print(*("\t".join(key) for key in sorted(unique) if key not in judged), sep="\n")
            for defect in entry["defects"]:
                if defect["fails"] and defect["sure"]:
                    known = is_found(script, defect["line"], set(classes[defect["class"]]["rules"]))
                    found[known] += 1
                    needs[classes[defect["class"]].get("needs", "script"), known] += 1
                    if missed and not known:
                        print(f"missed: {name}:{defect['line']}: {defect['class']}")
        title = f"now, {len(truth)} scripts, {'with' if with_site else 'without'} --site"
        print_unseen_run(title, counts, found)
        print_needs(needs)


Judged = dict[tuple[str, str, str], list[str]]
"""Script, line, rule -> verdict, and the lines of defects that the finding tells."""


def third_verdict(one: Finding, script: Linted, defects: list[dict[str, Any]], judged: Judged) -> str:
    """Return the verdict on a finding: the judged one, else right at the line of a defect."""
    verdict = judged.get((script.name, place(one), one.rule), [""])[0]
    if verdict == "note":  # no more than a note
        return "right" if one.severity == "note" else "false"
    alone = script._replace(findings=(one,))
    at_a_defect = one.line and any(is_found(alone, defect["line"], None) for defect in defects)
    return verdict or ("right" if at_a_defect else "unjudged")


def lines_told(script: Linted, verdicts: dict[Finding, str], judged: Judged) -> set[int]:
    """Return the lines of defects that right findings tell although they stand elsewhere."""
    right = [one for one in script.findings if verdicts[one] == "right"]
    return {int(line) for one in right for line in judged.get((script.name, place(one), one.rule), [])[1:]}


def print_third(folder: Path, half: str, *, unjudged: bool, missed: bool) -> None:
    """Print the same of one half of the third set."""
    with THIRD_JUDGED.open() as file:
        judged = {(row[0], row[1], row[2]): row[3:] for row in csv.reader(file, delimiter="\t")}
    with THIRD_NEEDS.open() as file:
        kinds = {(name, int(line)): kind for name, line, kind in csv.reader(file, delimiter="\t")}
    profiles, _ = load_all()
    truth = yaml.safe_load((THIRD / f"verdicts_{half}.yaml").read_text())
    for with_site in (False, True):
        counts: Counter[tuple[str, str]] = Counter()
        found: dict[bool, Counter[bool]] = {True: Counter(), False: Counter()}
        needs = Counter[tuple[str, bool]]()
        for entry in truth:
            text = (folder / entry["file"]).read_bytes().decode("utf-8", errors="replace")
            given = entry["site"].replace(" ", "-") if with_site else ""
            site = site_of(read_script(text), profiles) or (given if given in profiles else None)
            script = Linted(half, entry["file"], text, find_faults(text, profiles[site] if site else None))
            verdicts = {f: third_verdict(f, script, entry["defects"], judged) for f in script.findings}
            counts.update((one.severity, verdict) for one, verdict in verdicts.items())
            open_ones = [
                f for f, verdict in verdicts.items() if verdict == "unjudged" and f.severity != "note"
            ]
            for one in open_ones if unjudged else ():
                print("\t".join((script.name, place(one), one.rule, one.severity, one.message)))
            right = script._replace(findings=tuple(f for f in verdicts if verdicts[f] == "right" and f.line))
            for defect in (each for each in entry["defects"] if each["fails"]):
                told = defect["line"] in lines_told(script, verdicts, judged)
                known = told or is_found(right, defect["line"], None)
                found[defect["certainty"] != "possible"][known] += 1
                needs[kinds[script.name, defect["line"]], known] += 1
                if missed and not known:
                    print(f"missed: {script.name}:{defect['line']}: {defect['certainty']}: {defect['class']}")
        title = f"{half}, {len(truth)} scripts, {'with' if with_site else 'without'} --site"
        print_unseen_run(title, counts, found[True], "surely or likely")
        print(f"and of those that possibly do: {found[False][True]} of {found[False].total()}")
        print_needs(needs)
    if half == "kept":
        with THIRD_LOOKS.open() as file:
            header, *looks = csv.reader(file, delimiter="\t")
        print(f"\nas the judge read them:\n{text_table(looks, header)}")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table whose first line names the columns."""
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


_EARLY_LOOKS = ("fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "ninth_kept")
_IN_HALVES = ("thirteenth", "fourteenth", "fifteenth", "sixteenth")
_LATE_LOOKS = tuple(f"{look}{half}" for look in _IN_HALVES for half in ("", "_kept"))
LOOKS = (*_EARLY_LOOKS, "tenth", "eleventh", "eleventh_kept", "twelfth", *_LATE_LOOKS)
"""The sets that were judged once, before rules were made from them."""


def print_told(judged: Path) -> None:
    """Print which of the defects of one set a finding tells."""
    kinds: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in read_rows(judged):
        for kind in ("all", row["from"], f"needs {row['needs']}"):
            kinds[kind].append(row)
    rows: list[tuple[str, ...]] = [
        ("defects that make a job fail", "told", "in a note only", "told with site", "of")
    ]
    for kind, some in sorted(kinds.items()):
        told = Counter(row["told"] for row in some)
        with_site = sum(row["told with site"] == "yes" for row in some)
        rows.append((kind, *map(str, (told["yes"], told["note"], with_site, len(some)))))
    print(f"\n{text_table(rows)}")


def print_look(look: str) -> None:
    """Print how the judge read the run over one set."""
    counts = Counter((row["severity"], row["verdict"]) for row in read_rows(DATA / f"lint_{look}_looks.tsv"))
    graded = [grade for grade in GRADES if grade != "note" or counts["note", "right"]]
    rows: list[tuple[str, ...]] = [("severity", "right", "false")]
    print(text_table(rows + [(grade, *(str(counts[grade, v]) for v in rows[0][1:])) for grade in graded]))
    if (judged := DATA / f"lint_{look}_judged.tsv").exists():
        print_told(judged)
    if (lesser := DATA / f"lint_{look}_lesser.tsv").exists():
        by_kind = Counter((row["kind"], row["told"]) for row in read_rows(lesser))
        rows = [("other defects", "told", "in a note only", "of")]
        for kind in ("possibly", "slow", "fragile"):
            found = [by_kind[kind, each] for each in ("yes", "note", "no")]
            rows.append((kind, *map(str, (*found[:2], sum(found)))))
        print(f"\n{text_table(rows)}")


def print_cpu(folder: Path) -> None:
    """Print the CPU time of the whole command, its start included."""
    scripts = [
        str(path) for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in NO_SCRIPTS
    ]
    environment = {**os.environ, "PATH": os.defpath, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    python = str(Path(sys.executable).resolve())  # beside it no shellcheck is installed
    found: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [python, "-m", "hpclaunch", "lint", "--exit-zero", *scripts]
        answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert "shellcheck is not installed" in answer.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    shown = ", ".join(f"{seconds:.2f}" for seconds in sorted(found))
    median = statistics.median(found)
    print(f"{len(scripts)} files, CPU seconds of {len(found)} runs: {shown}")
    print(f"of 500 files: {500 * median / len(scripts):.2f} s (median)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--unseen", action="store_true", help="the scripts of lint_unseen.json")
    parser.add_argument("--third", action="store_true", help="the scripts of tests/data/lint_third")
    parser.add_argument("--look", choices=LOOKS, help="how it was judged")
    parser.add_argument("--cpu", action="store_true", help="the CPU time of the command")
    parser.add_argument("--unjudged", action="store_true", help="list the findings without a verdict")
    parser.add_argument("--missed", action="store_true", help="list the defects that are not found")
    parser.add_argument("--half", choices=("kept", "open"), default="kept", help="of --unseen and --third")
    options = parser.parse_args()
    if options.look:
        print_look(options.look)
        return
    if options.folder is None:
        parser.error("FOLDER is missing")
    if options.unseen or options.third:
        run = print_third if options.third else print_unseen
        run(options.folder, options.half, unjudged=options.unjudged, missed=options.missed)
        return
    if options.cpu:
        print_cpu(options.folder)
        return
    linted, milliseconds = lint_all(options.folder)
    print(f"{len(linted)} scripts, {milliseconds:.1f} ms each\n")
    print_precision(linted, unjudged=options.unjudged)
    print()
    print("recall, the site taken from the script:")
    print_recall(options.folder, linted, missed=False)
    with_sites, _ = lint_all(options.folder, json.loads(SITES.read_text()))
    print("\nrecall, with --site where the script is for a known machine:")
    print_recall(options.folder, with_sites, missed=options.missed)


if __name__ == "__main__":
    main()
