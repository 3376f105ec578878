"""How often ``hpclaunch stacks`` names the rank that hangs, and the place, by kinds of ``hung_ranks.py``.

    python -m benchmarks.hung_stacks [--kinds KIND ...] [--options=--no-stacks]

Each is a job of three ranks on this machine, of which rank 1 hangs. --options: more words of ``submit``.
Needs HPCLAUNCH_TEST_FRAMEWORKS (tests/frameworks/build.sh), HPCLAUNCH_TEST_HOROVOD (tests/horovod/build.sh).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.healthy_stacks import HPCLAUNCH, started_by

PROGRAM = Path(__file__).with_name("hung_ranks.py")
RANKS = 3


class Said(NamedTuple):
    """What ``stacks`` is to say."""

    text: str
    """Words of the text."""
    kinds: tuple[str, ...] = ("behind",)
    suspects: tuple[int, ...] = (1,)


MISMATCH = ("mismatch",)
KINDS = {
    "ddp-sleep": Said("in sleep() (hung_ranks.py"),
    "ddp-fifo": Said(".fifo (hung_ranks.py", ("blocked",)),
    "ddp-stop": Said("stopped by a signal", ("stopped",)),
    "ddp-spin": Said("in spin() (hung_ranks.py", ("slow",), ()),
    "ddp-socket": Said("recv"),
    "ddp-flock": Said("flock", ("blocked", "behind")),
    "ddp-command": Said("runs sleep 600"),
    "ddp-deadlock": Said("another thread of it"),
    "ddp-worker": Said("in __getitem__"),
    "ddp-gather": Said("in allgather", MISMATCH),
    "ddp-barrier": Said("in barrier", MISMATCH),
    "ddp-monitored": Said("in barrier"),
    "ddp-backward": Said("in sleep() (hung_ranks.py"),
    "fsdp-sleep": Said("in sleep() (hung_ranks.py"),
    "mpi4py-sleep": Said("in sleep() (hung_ranks.py"),
    "mpi4py-fifo": Said(".fifo (hung_ranks.py", ("blocked",)),
    "mpi4py-deadlock": Said("another thread of it"),
    "mpi4py-receive": Said("in recv in mpi_training()"),
    "mpi4py-skip": Said("in allgather", MISMATCH),
    "mpi4py-ring": Said("in recv in exchange() (hung_ranks.py", ("unclear",), ()),
    "horovod-sleep": Said("in sleep() (hung_ranks.py"),
    "horovod-skip": Said("in allgather", MISMATCH),
}
"""Kind of hang -> what is to be said. A rank that computes without an end moves: it is shown, not accused. Of
a ring of ranks that all wait for their neighbour none is the one."""


def wrong(kind: str, options: list[str]) -> str:
    """Return what was wrong in the answer about a hang; empty: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        state = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "OMP_NUM_THREADS": "1"}
        if kind == "ddp-backward":
            state["TORCH_FR_BUFFER_SIZE"] = "0"
        words = [
            "submit",
            "--site",
            "local",
            "--tasks",
            str(RANKS),
            "--binding",
            "off",
            "--no-wait",
            *options,
        ]
        line = [*HPCLAUNCH, *words, *started_by(kind), str(PROGRAM), kind, f"{folder}/mark"]
        subprocess.run(line, env=state, check=True, capture_output=True)
        try:
            ends = time.monotonic() + 120
            while len(list(Path(folder).glob("mark.[0-9]"))) < RANKS:
                if time.monotonic() > ends:
                    return "it did not begin"
                time.sleep(0.2)
            time.sleep(6.0)  # from the mark to the place it hangs in
            call = json.loads(subprocess.check_output([*HPCLAUNCH, "stacks", "last", "--json"], env=state))
            text = subprocess.check_output([*HPCLAUNCH, "stacks", "last"], env=state, text=True)
        finally:
            subprocess.run([*HPCLAUNCH, "cancel", "last"], env=state, capture_output=True, check=False)
    said = KINDS[kind]
    right = call["kind"] in said.kinds and tuple(call["suspects"]) == said.suspects and said.text in text
    return "" if right else f"{call['kind']}, {call['suspects']}:\n{text}"


def main() -> None:
    """Print how many were named."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--kinds", nargs="*", default=list(KINDS))
    options.add_argument("--options", action="append", default=[])
    given = options.parse_args()
    mistakes = 0
    for kind in given.kinds:
        found = wrong(kind, given.options)
        mistakes += bool(found)
        print(f"{kind}: {found or 'named'}", flush=True)
    print(f"{len(given.kinds) - mistakes} of {len(given.kinds)} kinds of hang named")
    sys.exit(mistakes > 0)


if __name__ == "__main__":
    main()
