"""Which mutants of risky modules the inner loop of tests kills.

    python -m benchmarks.mutants [--seed 1] [--each 3] [--room port]

A mutant is a module with one changed place: a comparison, ``and`` for ``or``, a condition that is turned
around, a whole number that is one more. Of each module in ``ROOMS``, places are drawn by chance (``--each``);
in a copy of the project the tests of the room that are not slow, as the inner loop runs them, run on each
mutant, until one fails. A mutant is killed if one does, or if they do not end in time (``TIMES`` as long
as without it). One that changes nothing that a user could see counts as one that survives.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hpclaunch.text_table import text_table

ROOT = Path(__file__).parents[1]
ROOMS = {
    "binding": ("compute", "core_shares", "judge_masks"),
    "job": ("follow_job", "job_end", "refresh", "start_job", "store"),
    "plan": ("layout", "planner"),
    "port": ("job_sizes", "port_launch"),
    "remote": ("stage", "stage_copy", "safe_unpack", "roll_call"),
    "scheduler": ("pbs/pbs_status", "slurm/slurm_status", "slurm/slurm_nodes"),
    "timeline": ("late_ranks", "trace_repair", "timeline_verdicts"),
    "topology": ("derive", "merge_sources", "sysfs"),
    "usage": ("job_report", "next_request", "node_samples"),
}
"""The folder of modules and of their tests -> the modules: those in which an error costs a user most."""
TIMES = 5
_LOOP = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not slow")
_OPPOSITE = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "in": "not in"}
_OPPOSITE |= {"not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and"}


class Mutant(NamedTuple):
    """A changed place of a module."""

    line: int
    was: str
    becomes: str
    text: str
    """The whole module."""


def mutants(text: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of their places."""
    starts = [0]
    for one in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(one) + 1)
    data = text.encode()

    def span(node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            starts[node.lineno - 1] + node.col_offset,
            starts[node.end_lineno - 1] + node.end_col_offset,
        )

    found = []
    for start, end, becomes in sorted(_places(ast.parse(text), span, data)):
        new = data[:start] + becomes.encode() + data[end:]
        try:
            ast.parse(new)
        except SyntaxError:  # an operator that stands in a comment between its sides
            continue
        line = data[:start].count(b"\n") + 1
        found.append(Mutant(line, data[start:end].decode(), becomes, new.decode()))
    return found


def _places(
    tree: ast.Module, span: Callable[[ast.expr], tuple[int, int]], data: bytes
) -> Iterator[tuple[int, int, str]]:
    """Yield start and end of each place, and what it becomes."""
    for node in _outside_of_strings(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                for left, right in itertools.pairwise(sides):
                    yield from _between(data, span(left)[1], span(right)[0])
            case ast.BoolOp():
                for left, right in itertools.pairwise(node.values):
                    yield from _between(data, span(left)[1], span(right)[0])
            case ast.If() | ast.IfExp():
                start, end = span(node.test)
                yield start, end, f"(not ({data[start:end].decode()}))"
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                yield *span(node), str(value + 1)


def _outside_of_strings(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those in f-strings, whose places Python 3.11 does not know."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _outside_of_strings(child)


def _between(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the operator between two sides, which brackets and line breaks may stand around."""
    text = data[start:end].decode()
    words = text.strip(" \n()")
    if words in _OPPOSITE:
        at = start + len(text[: text.index(words)].encode())
        yield at, at + len(words), _OPPOSITE[words]


def drawn(seed: int, each: int) -> Iterator[tuple[str, str, Mutant]]:
    """Yield room, module and mutant: of each module so many, by chance."""
    draw = random.Random(seed)  # the same draw for the same seed
    for room, modules in ROOMS.items():
        for module in modules:
            found = mutants((ROOT / "hpclaunch" / room / f"{module}.py").read_text())
            for mutant in sorted(draw.sample(found, min(each, len(found)))):
                yield room, module, mutant


def _run(copy: Path, room: str, limit_s: float | None) -> bool | None:
    """Tell whether the room's tests pass in a copy; None: they did not end in time."""
    env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "pytest", *_LOOP, f"tests/{room}"]
    process = subprocess.Popen(
        words, cwd=copy, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(limit_s) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return None


def main() -> None:
    """Print the killed mutants by room, and the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=3, help="mutants per module")
    parser.add_argument("--room", choices=sorted(ROOMS), help="only this room")
    asked = parser.parse_args()
    rows, survivors = [("room", "mutants", "killed")], []
    killed_of_all = of_all = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        ignored = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
        for room in [asked.room] if asked.room else ROOMS:
            begin = time.monotonic()
            if not _run(copy, room, None):
                raise SystemExit(f"tests/{room} fails without a mutant")
            limit_s = TIMES * (time.monotonic() - begin)
            killed = count = 0
            for of_room, module, mutant in drawn(asked.seed, asked.each):
                if of_room != room:
                    continue
                file = copy / "hpclaunch" / room / f"{module}.py"
                file.write_text(mutant.text)
                passed = _run(copy, room, limit_s)
                shutil.copy(ROOT / "hpclaunch" / room / f"{module}.py", file)
                count, killed = count + 1, killed + (not passed)
                if passed:
                    was, becomes = (" ".join(text.split()) for text in (mutant.was, mutant.becomes))
                    survivors.append(f"{room}/{module}.py:{mutant.line}: {was} -> {becomes}")
                    print(survivors[-1], file=sys.stderr, flush=True)
            rows.append((room, str(count), str(killed)))
            of_all, killed_of_all = of_all + count, killed_of_all + killed
    rows.append(("all", str(of_all), f"{killed_of_all} ({100 * killed_of_all / of_all:.0f} %)"))
    print(
        f"seed {asked.seed}, {asked.each} of each module",
        text_table(rows),
        "survivors:",
        *survivors,
        sep="\n",
    )


if __name__ == "__main__":
    main()
