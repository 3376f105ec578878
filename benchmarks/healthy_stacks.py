"""How often ``hpclaunch stacks`` accuses a rank of a training in which nothing is wrong.

    python -m benchmarks.healthy_stacks --jobs 60 [--looks 2]

Starts trainings of ``healthy_ranks.py`` with 2 to 4 ranks, one after the other, and looks at each some times.
Needs HPCLAUNCH_TEST_FRAMEWORKS (tests/frameworks/build.sh) for torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("healthy_ranks.py")
KINDS = [
    f"{framework}-{phase}"
    for framework in ("ddp", "fsdp", "mpi4py")
    for phase in ("plain", "input", "evaluation", "checkpoint")
]


def python_of(kind: str) -> str:
    """Return the interpreter that has what a training needs."""
    if kind.startswith("mpi4py"):
        return sys.executable
    return f"{os.environ['HPCLAUNCH_TEST_FRAMEWORKS']}/bin/python"


HPCLAUNCH = [sys.executable, "-m", "hpclaunch"]


def looked_at(kind: str, ranks: int, looks: int) -> list[dict[str, Any]]:
    """Return what ``stacks`` says of one training."""
    with tempfile.TemporaryDirectory() as folder:
        mark, log = Path(folder) / "mark", Path(folder) / "log"
        state = {**os.environ, "XDG_STATE_HOME": f"{folder}/state"}
        words = ["submit", "--site", "local", "--tasks", str(ranks), "--stacks", "--binding", "off"]
        words += [
            "--framework",
            "mpi4py" if kind.startswith("mpi4py") else "torch",
            "--software",
            "none",
            "--",
        ]
        words += [python_of(kind), str(PROGRAM), kind, str(mark)]
        with log.open("w") as output:
            job = subprocess.Popen([*HPCLAUNCH, *words], env=state, stdout=output, stderr=output)
        try:
            while not mark.exists():
                if job.poll() is not None:
                    raise SystemExit(f"{kind}: the training ended before its first step:\n{log.read_text()}")
                time.sleep(0.5)
            stacks = [*HPCLAUNCH, "stacks", "last", "--json"]
            texts = [subprocess.check_output(stacks, env=state) for _ in range(looks)]
            return [json.loads(text) for text in texts]
        finally:
            subprocess.run([*HPCLAUNCH, "cancel", "last"], env=state, capture_output=True, check=False)
            job.wait()


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--jobs", type=int, default=60)
    options.add_argument("--looks", type=int, default=2)
    options.add_argument("--kinds", nargs="*", default=KINDS)
    given = options.parse_args()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(given.jobs):
        kind = given.kinds[number % len(given.kinds)]
        calls = looked_at(kind, 2 + number // len(given.kinds) % 3, given.looks)
        accused = [call["finding"] for call in calls if call["suspects"]]
        found[kind]["jobs"] += 1
        found[kind]["accused"] += bool(accused)
        found[kind]["looks"] += len(calls)
        found[kind].update(call["kind"] for call in calls)
        for finding in accused:
            print(f"{kind}: {finding}", file=sys.stderr)
    print("| training | jobs | looks | a rank accused | what the looks said |\n|---|---:|---:|---:|---|")
    for kind, counts in found.items():
        said = {name: counts[name] for name in sorted(counts) if name not in ("jobs", "accused", "looks")}
        words = ", ".join(f"{name} {count}" for name, count in said.items())
        print(f"| {kind} | {counts['jobs']} | {counts['looks']} | {counts['accused']} | {words} |")
    every = sum(found.values(), Counter[str]())
    print(f"| all | {every['jobs']} | {every['looks']} | {every['accused']} | |")


if __name__ == "__main__":
    main()
