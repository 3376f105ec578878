"""Many runs that are killed at random moments: ``python -m tests.long_kills [KILLS [SEED]]``, 50 by default.

Every fifth kill the run is brought to its end, which must be that of the uninterrupted run.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.train.interrupted import killed
from tests.train.mpirun import train, write_digits
from tests.train.test_stop import COMMON, outcome

_KILLS_PER_RUN = 5


def main(kills: int, seed: int) -> None:
    """AssertionError where a resumed run ends otherwise."""
    moments = random.Random(seed)
    print(f"{kills} kills, seed {seed}")
    with tempfile.TemporaryDirectory() as scratch:
        digits = write_digits(Path(scratch) / "digits", 301, 50)
        expected = outcome(train(2, "--data", digits, *COMMON))
        while kills > 0:
            folder = tempfile.mkdtemp(dir=scratch)
            options = (
                "--data",
                digits,
                *COMMON,
                "--checkpoint-dir",
                folder,
                "--resume",
                "--checkpoint-every",
            )
            for _ in range(min(_KILLS_PER_RUN, kills)):
                every = str(moments.randint(1, 7))
                kills -= killed(2, moments.uniform(0, 0.2), *options, every) != 0
            assert outcome(train(2, *options, "3")) == expected, folder
            print(f"{kills} kills to go", flush=True)


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*words, *(50, random.randrange(1 << 32))[len(words) :])
