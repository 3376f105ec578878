"""How often the late rank is named in real timelines: ``python benchmarks/stragglers.py`` prints the table.

``--record FOLDER --half kept`` records the trainings of benchmarks/data/straggler_kinds.tsv that are not in
FOLDER yet, one after the other, ``--busy 4`` beside four busy processes. HPCLAUNCH_TEST_HOROVOD names the
virtual environment for it (tests/horovod/build.sh torch). ``--judge FOLDER`` judges what is recorded there
and adds it to benchmarks/data/straggler_results.tsv, of which the table is made.

A run counts where its delay is at least the noise that the verdict prints. Where a file cannot name the rank
(the response cache), what counts is that a rank is said to be late. In the later half the ranks also write
when they were ready in each step, by the clock that they share: a rank that came last in at least half of the
steps was late, whether a delay was put into it or the machine gave it less of its cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hpclaunch.observe.job_timelines import file_chunks
from hpclaunch.timeline.job_timeline import combined
from hpclaunch.timeline.read_timeline import read_timeline
from hpclaunch.timeline.timeline_verdicts import verdicts

DATA = Path(__file__).parent / "data"
PROGRAM = Path(__file__).parents[1] / "tests" / "timeline" / "ranks" / "straggler_runs.py"
RECORDERS = {
    "horovod": "Horovod without the cache",
    "horovod-cache": "Horovod with it",
    "kineto": "torch.profiler",
}
KINDS = {
    "most": "late in most steps",
    "pauses": "pauses in a tenth of the steps",
    "death": "death while the other ranks wait",
    "death-early": "death while all compute",
    "healthy": "healthy",
}
BUSY = {0: "none", -1: "other work"}
OPEN = {"most": 10, "pauses": 10, "death": 10, "healthy": 18}
"""The last number of each kind with which rules are made."""
KEPT = {"most": 20, "pauses": 20, "death": 20, "healthy": 36}
"""The last number of each kind that was judged on 2026-11-24; later ones have the ranks' clocks."""
HALVES = {
    "open": "With which rules were made",
    "kept": "Kept apart",
    "later": "Drawn on 2026-11-28, with the ranks' clocks",
}
RESULTS = ("recorder", "busy", "kind", "number", "load", "noise_ms", "named", "unnamed", "last")


class Plan(NamedTuple):
    """A row of straggler_kinds.tsv."""

    kind: str
    number: int
    form: str
    bad: int
    delay_ms: float
    line: str

    @property
    def half(self) -> str:
        """open, kept or later."""
        if self.number > KEPT[self.kind]:
            return "later"
        return "kept" if self.number > OPEN[self.kind] else "open"


class Run(NamedTuple):
    """A recorded training and what is said of it."""

    recorder: str
    busy: int
    """Busy processes started with it; -1: none, but the machine had other work."""
    kind: str
    number: int
    load: float
    noise_ms: float
    named: str
    """Ranks, separated by commas."""
    unnamed: int
    """Whether a rank without a name is said to be late."""
    last: str
    """Ranks that came last in at least half of the steps by the ranks' clock; -: none, ?: not recorded."""


def plans() -> dict[tuple[str, int], Plan]:
    """Return the trainings by kind and number."""
    found = {}
    for line in (DATA / "straggler_kinds.tsv").read_text().splitlines():
        if line.startswith(("#", "kind")):
            continue
        kind, number, form, _, steps, _, bad, late, _ = line.split("\t")
        delay = float(late) * (int(steps) / 2 if form == "growing" else 1)
        found[kind, int(number)] = Plan(kind, int(number), form, int(bad), delay, line)
    return found


def record(folder: Path, recorder: str, chosen: Iterable[Plan], busy: int) -> None:
    """Record trainings."""
    python = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"]) / "bin" / "python"
    folder.mkdir(parents=True, exist_ok=True)
    loads = folder / f"{recorder}.loads"
    done = loads.read_text().split("\n") if loads.exists() else []
    known = {tuple(line.split()[:2]) for line in done if line}
    rows = [plan.line for plan in chosen if (plan.kind, str(plan.number)) not in known]
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        with loads.open("a") as output:
            subprocess.run(
                [python, PROGRAM, recorder, folder],
                input="\n".join(rows),
                stdout=output,
                text=True,
                check=True,
            )
    finally:
        for process in others:
            process.kill()


def often_last(files: list[Path]) -> str:
    """Return the ranks that were ready last in at least half of the steps."""
    ready = {file.suffixes[-2].removeprefix(".rank"): file.read_text().split() for file in files}
    if not ready:
        return "?"
    steps = list(zip(*([float(word) for word in words] for words in ready.values()), strict=True))
    last = Counter(list(ready)[step.index(max(step))] for step in steps)
    return ",".join(rank for rank in ready if 2 * last[rank] >= len(steps)) or "-"


def judged(folder: Path, busy: int) -> list[Run]:
    """Judge what is recorded in a folder."""
    runs = []
    for recorder in RECORDERS:
        loads = folder / f"{recorder}.loads"
        for line in loads.read_text().splitlines() if loads.exists() else []:
            kind, number, load = line.split()
            files = sorted(folder.glob(f"{recorder}-{kind}-{number}.*json"))
            read = [read_timeline(file.name, file_chunks(file)) for file in files]
            found = verdicts(combined(read), {}) if read else ()  # all were killed before they wrote one
            accused = [verdict for verdict in found if verdict.kind in ("straggler", "ended")]
            ranks = {verdict.rank: None for verdict in accused if verdict.rank is not None}
            named = ",".join(map(str, ranks))  # one that was late before it ended has two verdicts
            noise = max((verdict.noise_ms or 0.0 for verdict in accused or found), default=0.0)
            unnamed = int(any(verdict.rank is None for verdict in accused))
            last = often_last(sorted(folder.glob(f"{recorder}-{kind}-{number}.*ready")))
            said = (round(noise, 2), named or "-", unnamed, last)
            runs.append(Run(recorder, busy, kind, int(number), float(load), *said))
    return runs


def result(run: Run, plan: Plan) -> str:
    """Return right, unnamed, nothing, wrong or below; of healthy runs right by the clock, or not."""
    if run.named != "-":
        bad, late = {str(plan.bad)} - {"-1"}, set(run.last.split(","))
        return "right" if bad <= set(run.named.split(",")) <= bad | late else "wrong"
    if plan.kind in ("most", "pauses") and plan.delay_ms < run.noise_ms:
        return "below"
    return "unnamed" if run.unnamed and plan.kind != "healthy" else "nothing"


def show(title: str, runs: list[Run], known: dict[tuple[str, int], Plan]) -> None:
    """Print the table of one half."""
    print(f"\n{title}: {len(runs)} runs\n")
    print("| recorder | kind | busy processes (load) | runs | right | no name | nothing | wrong | below |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    cells: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        plan = known[run.kind, run.number]
        kind = "death-early" if run.kind == "death" and not plan.delay_ms else run.kind
        cells.setdefault((run.recorder, kind, run.busy), []).append(run)
    for recorder, kind, busy in ((a, b, c) for a in RECORDERS for b in KINDS for c in (0, -1, 4)):
        of_cell = cells.get((recorder, kind, busy))
        if of_cell:
            counts = Counter(result(run, known[run.kind, run.number]) for run in of_cell)
            loads = [run.load for run in of_cell]
            words = [
                RECORDERS[recorder],
                KINDS[kind],
                f"{BUSY.get(busy, busy)} ({min(loads):.0f}-{max(loads):.0f})",
            ]
            numbers = (counts[name] for name in ("right", "unnamed", "nothing", "wrong", "below"))
            print("|", " | ".join([*words, str(len(of_cell)), *map(str, numbers)]), "|")


def _read(file: Path) -> list[Run]:
    lines = file.read_text().splitlines()[1:] if file.exists() else []
    types: tuple[Any, ...] = (str, int, str, int, float, float, str, int, str)
    return [Run(*(of(word) for of, word in zip(types, line.split("\t"), strict=True))) for line in lines]


def main() -> None:
    """Record, judge or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, metavar="FOLDER")
    parser.add_argument("--judge", type=Path, metavar="FOLDER")
    parser.add_argument("--recorder", choices=RECORDERS, action="append")
    parser.add_argument("--half", choices=HALVES, default="open")
    parser.add_argument("--busy", type=int, default=0, help="busy processes beside the training")
    parser.add_argument("--most", type=int, default=99, help="trainings of each kind, at most")
    parser.add_argument("--results", type=Path, default=DATA / "straggler_results.tsv")
    given = parser.parse_args()
    known, runs = plans(), _read(given.results)
    if given.record:
        half = [plan for plan in known.values() if plan.half == given.half]
        first = {"open": dict.fromkeys(OPEN, 0), "kept": OPEN, "later": KEPT}[given.half]
        chosen = [plan for plan in half if plan.number - first[plan.kind] <= given.most]
        for recorder in given.recorder or RECORDERS:
            record(given.record, recorder, chosen, given.busy)
        return
    if given.judge:
        new = judged(given.judge, given.busy)
        same = {each[:4] for each in new}
        runs = [run for run in runs if run[:4] not in same] + new
        text = "\n".join("\t".join(map(str, each)) for each in (RESULTS, *runs))
        given.results.write_text(text + "\n")
    for half_name, title in HALVES.items():
        half_runs = [run for run in runs if known[run.kind, run.number].half == half_name]
        if half_runs:
            show(title, half_runs, known)


if __name__ == "__main__":
    main()
