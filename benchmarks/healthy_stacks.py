"""How often ``hpclaunch stacks`` accuses a rank of a training in which nothing is wrong.

    python -m benchmarks.healthy_stacks --jobs 50 [--first 0] [--looks 2] [--seed 1]

Starts trainings of ``healthy_ranks.py`` with 2 to 4 ranks, one after the other, and looks at each some times,
at moments drawn by chance. --first: number of the first, so that a series can be run in parts. Needs
HPCLAUNCH_TEST_FRAMEWORKS (tests/frameworks/build.sh) and HPCLAUNCH_TEST_HOROVOD (tests/horovod/build.sh).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmarks.healthy_ranks import KINDS

PROGRAM = Path(__file__).with_name("healthy_ranks.py")
HPCLAUNCH = [sys.executable, "-m", "hpclaunch"]


def started_by(kind: str) -> list[str]:
    """Return the options of ``submit`` for a training, and the interpreter that has its framework."""
    name = kind.partition("-")[0]
    if name == "mpi4py":
        return ["--framework", name, "--software", "none", "--", sys.executable]
    framework, variable = "torch", "HPCLAUNCH_TEST_FRAMEWORKS"
    if name == "horovod":
        framework, variable = name, "HPCLAUNCH_TEST_HOROVOD"
    return ["--framework", framework, "--venv", os.environ[variable], "--", "python"]


def looked_at(kind: str, ranks: int, looks: int, chance: random.Random) -> list[dict[str, Any]]:
    """Return what ``stacks`` says of one training."""
    with tempfile.TemporaryDirectory() as folder:
        mark, log = Path(folder) / "mark", Path(folder) / "log"
        state = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "OMP_NUM_THREADS": "1"}
        words = ["submit", "--site", "local", "--tasks", str(ranks), "--binding", "off"]
        words += [*started_by(kind), str(PROGRAM), kind, str(mark)]
        with log.open("w") as output:
            job = subprocess.Popen([*HPCLAUNCH, *words], env=state, stdout=output, stderr=output)
        try:
            while not mark.exists():
                if job.poll() is not None:
                    raise SystemExit(f"{kind}: the training ended before it began:\n{log.read_text()}")
                time.sleep(0.2)
            stacks = [*HPCLAUNCH, "stacks", "last", "--json"]
            calls = []
            for _ in range(looks):
                time.sleep(chance.uniform(0.0, 6.0))
                calls.append(json.loads(subprocess.check_output(stacks, env=state)))
            if job.poll() is not None:
                raise SystemExit(f"{kind}: the training ended while it was looked at:\n{log.read_text()}")
            return calls
        finally:
            subprocess.run([*HPCLAUNCH, "cancel", "last"], env=state, capture_output=True, check=False)
            job.wait()


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--jobs", type=int, default=50)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--looks", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kinds", nargs="*", default=KINDS)
    given = options.parse_args()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(given.first, given.first + given.jobs):
        kind = given.kinds[number % len(given.kinds)]
        ranks = 2 + number // len(given.kinds) % 3
        calls = looked_at(kind, ranks, given.looks, random.Random(f"{given.seed} {number}"))
        accused = [call for call in calls if call["suspects"]]
        found[kind]["jobs"] += 1
        found[kind]["accused"] += bool(accused)
        found[kind]["looks"] += len(calls)
        found[kind].update(call["kind"] for call in calls)
        print(f"{number} {kind}, {ranks} ranks, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        for call in accused:
            print(f"{kind}: {call['finding']}\n{json.dumps(call)}", file=sys.stderr)
    print("| training | jobs | looks | a rank accused | what the looks said |\n|---|---:|---:|---:|---|")
    for kind, counts in found.items():
        said = {name: counts[name] for name in sorted(counts) if name not in ("jobs", "accused", "looks")}
        words = ", ".join(f"{name} {count}" for name, count in said.items())
        print(f"| {kind} | {counts['jobs']} | {counts['looks']} | {counts['accused']} | {words} |")
    every = sum(found.values(), Counter[str]())
    print(f"| all | {every['jobs']} | {every['looks']} | {every['accused']} | |")


if __name__ == "__main__":
    main()
