"""The number of the collective that a rank is in, as ``hpclaunch stacks`` reads it from another process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hpclaunch.remote.rank_stands import own_collective

RANK = """
from hpclaunch.train.allreduce.algorithm import COLLECTIVES
for _ in range(3):
    with COLLECTIVES.within("allreduce"):
        with COLLECTIVES.within("allreduce"):  # of some ranks only
            pass
print("outside", flush=True)
input()
with COLLECTIVES.within("allreduce"):
    print("within", flush=True)
    input()
"""


@pytest.mark.slow
def test_the_newest_collective_of_a_rank_is_read() -> None:
    environment = {**os.environ, "HPCLAUNCH_STACKS": "50"}
    line = [sys.executable, "-c", RANK]
    with subprocess.Popen(
        line, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as rank:
        assert rank.stdin
        assert rank.stdout
        assert rank.stdout.readline() == "outside\n"
        assert own_collective(str(rank.pid)) == [3, "allreduce", False]
        print(file=rank.stdin, flush=True)
        assert rank.stdout.readline() == "within\n"
        assert own_collective(str(rank.pid)) == [4, "allreduce", True]
        print(file=rank.stdin, flush=True)


@pytest.mark.slow
def test_without_a_request_nothing_is_counted() -> None:
    code = "from hpclaunch.train.allreduce.algorithm import COLLECTIVES; print(COLLECTIVES)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "None\n"
