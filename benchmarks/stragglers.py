"""How often the late rank is named in real Horovod timelines: ``python benchmarks/stragglers.py FOLDER``.

Records trainings of three ranks into FOLDER, those that are not there yet, and judges them. A virtual
environment with Horovod is needed in HPCLAUNCH_TEST_HOROVOD (tests/horovod/build.sh torch). Odd seeds are
the half with which rules are made, even ones the half that is kept apart. A run counts where its delay is
at least the noise that the verdict prints.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hpclaunch.file_chunks import file_chunks
from hpclaunch.timeline.job_timeline import combined
from hpclaunch.timeline.read_timeline import read_timeline
from hpclaunch.timeline.timeline_verdicts import verdicts

PROGRAM = Path(__file__).parents[1] / "tests" / "timeline" / "ranks" / "horovod_kinds.py"
RANKS, STEPS = 3, 50
LATE = {
    "always": "late in every step, 30 to 150 ms",
    "most": "late in three quarters of the steps",
    "jitter-late": "late by a varying time",
    "drift": "late by 4 ms more in each step",
}
PAUSES = {
    "pause-periodic": "a pause of 200 to 500 ms in each 8th, 10th or 12th step",
    "checkpoint": "the same, of rank 0",
    "pause-random": "such a pause in a tenth of the steps, by chance",
}
HEALTHY = ("balanced", "jitter", "evaluation", "wander", "input", "one-checkpoint", "warm-up", "died")


class Run(NamedTuple):
    """A recorded training and its judgement."""

    kind: str
    seed: int
    cache: bool
    load: float
    result: str
    """right, wrong, nothing, without rank, below (the noise), or named and ok of healthy runs."""


def record(folder: Path, kind: str, seed: int, cache: bool) -> None:
    """Record a training, unless it is there."""
    file = folder / f"{kind}-{seed}-{int(cache)}.json"
    if file.exists():
        return
    venv = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
    more = {"HOROVOD_TIMELINE": str(file), "HOROVOD_TIMELINE_MARK_CYCLES": "1"}
    more |= {"PATH": f"{venv / 'bin'}:{os.environ['PATH']}"} | (
        {} if cache else {"HOROVOD_CACHE_CAPACITY": "0"}
    )
    words = ["horovodrun", "--gloo", "-np", str(RANKS), "python", str(PROGRAM), kind, str(seed), str(STEPS)]
    done = subprocess.run(words, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    said = next((line for line in done.stdout.splitlines() if "put in: " in line), "")
    put_in = said.partition("put in: ")[2]
    file.with_suffix(".put-in").write_text(f"{put_in} load={os.getloadavg()[0]:.1f}\n")


def judged(file: Path) -> Run:
    """Judge a recorded training."""
    kind, seed, cache = file.stem.rsplit("-", 2)
    words = (word.partition("=") for word in file.with_suffix(".put-in").read_text().split())
    put_in = {name: float(value) for name, _, value in words}
    found = verdicts(combined([read_timeline(file.name, file_chunks(file))]), {})
    late = [verdict for verdict in found if verdict.kind == "straggler"]
    named = [verdict.rank for verdict in late if verdict.rank is not None]
    noise = max((verdict.noise_ms or 0.0 for verdict in found), default=0.0)
    if kind in HEALTHY:
        result = "named" if named else "ok"
    elif named:
        bad = 0 if kind == "checkpoint" else int(put_in["bad"])
        result = "right" if named == [bad] else "wrong"
    elif 1e3 * put_in["pause_s" if kind in PAUSES else "late_s"] < noise:
        result = "below"
    else:
        result = "without rank" if late else "nothing"
    return Run(kind, int(seed), cache == "1", put_in["load"], result)


def show(title: str, runs: list[Run]) -> None:
    """Print the table of one half."""
    loads = [run.load for run in runs]
    print(f"\n{title}: {len(runs)} runs, load {min(loads):.0f} to {max(loads):.0f}\n")
    print("| put in | cache | right | rank not in the file | nothing | wrong | below the noise |")
    print("|---|---|---|---|---|---|---|")
    for kind, words in (LATE | PAUSES).items():
        for cache in (False, True):
            results = Counter(run.result for run in runs if (run.kind, run.cache) == (kind, cache))
            if results:
                cells = (results[name] for name in ("right", "without rank", "nothing", "wrong", "below"))
                print(f"| {words} | {'on' if cache else 'off'} | {' | '.join(map(str, cells))} |")
    healthy = [run for run in runs if run.kind in HEALTHY]
    print(
        f"\nA rank named without a fault: {sum(run.result == 'named' for run in healthy)} of {len(healthy)}"
    )


def main() -> None:
    """Record and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=4, help="trainings of each kind (default: 4)")
    parser.add_argument("--cache", action="store_true", help="with Horovod's response cache")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(1, given.seeds + 1):
        for kind in (*LATE, *PAUSES, *HEALTHY):
            record(given.folder, kind, seed, given.cache)
    runs = [
        judged(file) for file in sorted(given.folder.glob("*.json")) if file.with_suffix(".put-in").exists()
    ]
    show("with which rules were made", [run for run in runs if run.seed % 2])
    show("kept apart", [run for run in runs if not run.seed % 2])


if __name__ == "__main__":
    main()
