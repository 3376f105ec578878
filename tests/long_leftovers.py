"""Launches after killed ones: ``python -m tests.long_leftovers [LAUNCHES [SEED]]``, 300 by default.

Each time an mpiexec is killed at a random moment, what it left is given to the next 300 process numbers, and
then a job starts two ranks. Open MPI 5 and Linux; the folders stand in a TMPDIR of this program's own.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

from tests.in_process import hpclaunch_here
from tests.job.leftovers import killed_launch, plant


def main(launches: int, seed: int) -> None:
    """Exit status 1 where a job fails or leaves a folder."""
    moments, left, failed = random.Random(seed), 0, 0
    print(f"{launches} launches, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="left", dir="/tmp") as scratch:
        tmpdir, state = Path(scratch) / "t", Path(scratch) / "state"
        tmpdir.mkdir()
        os.environ |= {"XDG_STATE_HOME": str(state), "TMPDIR": str(tmpdir)}
        for number in range(1, launches + 1):
            leftover = killed_launch(tmpdir, moments.uniform(0, 0.3))
            if leftover is not None:
                left += 1
                plant(leftover, 300)
            job = hpclaunch_here(
                "submit", "--site", "local", "--tasks", "2", "--no-sample", "--wait", "--", "true"
            )
            stayed = list(tmpdir.glob("hpclaunch-mpi.*"))
            if job.returncode != 0 or stayed:
                failed += 1
                print(job.stdout, job.stderr, stayed)
            if number % 50 == 0:
                print(f"{number} launches after {left} leftovers: {failed} failed", flush=True)
    sys.exit(1 if failed or not left else 0)


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*words, *(300, random.randrange(1 << 32))[len(words) :])
