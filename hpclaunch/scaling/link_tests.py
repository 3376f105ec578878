"""Times of an allreduce by size from the output of nccl-tests, rccl-tests, OSU, or of our programs. Pure.

nccl-tests and rccl-tests: ``all_reduce_perf``, out of place. OSU: ``osu_allreduce``. Ours: ``python -m
hpclaunch.train.bench --json``, ``hpclaunch check --allreduce-test --json``. One latency and one bandwidth do
not describe a library over all sizes, so the bandwidth is that at the size of the message: between two
measured sizes along a straight line of logarithms.
"""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise

import msgspec

from hpclaunch.errors import BadInputError

_NCCL = re.compile(r"^ *(\d+) +\d+ +\w+ +\w+ +(?:-?\d+ +)?(\d+(?:\.\d+)?) +\d+\.\d+ +\d+\.\d+", re.MULTILINE)
_NCCL_RANK = re.compile(r"^# +Rank +\d+ ", re.MULTILINE)
_OSU = re.compile(r"^ *(\d+) +(\d+\.\d+)\b.*$", re.MULTILINE)
_KINDS = (
    "nccl-tests or rccl-tests (all_reduce_perf), OSU (osu_allreduce), "
    "python -m hpclaunch.train.bench --json, hpclaunch check --allreduce-test --json"
)


class LinkTest(msgspec.Struct, frozen=True, kw_only=True):
    """Measured times of one allreduce."""

    program: str
    ranks: int
    seconds: dict[int, float]
    """Bytes -> seconds, the smallest first."""

    @property
    def latency_s(self) -> float:
        """Return alpha: the time of the smallest size in the 2 (p - 1) messages of a ring."""
        return min(self.seconds.values()) / (2 * (self.ranks - 1))

    def bandwidth_gb_s(self, size: float) -> float:
        """Return 1 / beta in GB/s for a buffer of that size: 2 (p - 1) / p x bytes / (time - latency)."""
        steps = 2 * (self.ranks - 1)
        sizes = sorted(self.seconds)
        latency = steps * self.latency_s
        inside = min(max(size, sizes[0]), sizes[-1])  # beyond the largest size its bandwidth holds
        seconds = self._time(inside) - latency
        # At the smallest sizes all of the time is latency.
        return steps / self.ranks * inside / max(seconds, 0.01 * latency) / 1e9

    def _time(self, size: float) -> float:
        sizes = sorted(self.seconds)
        for low, high in pairwise(sizes):
            if low <= size <= high:
                share = math.log(size / low) / math.log(high / low)
                low_log, high_log = math.log(self.seconds[low]), math.log(self.seconds[high])
                return math.exp(low_log + share * (high_log - low_log))
        return self.seconds[sizes[0]]


def read_link_test(text: str, file: str, ranks: int | None) -> LinkTest:
    """Read such an output. ``ranks``: where the output does not state them. Raises BadInputError."""
    program, stated, rows = _read(text, file)
    ranks = stated or ranks
    seconds = {int(size): float(time) * 1e-6 for size, time in rows if int(size) > 0 and float(time) > 0}
    if len(seconds) < 2:
        raise BadInputError(f"{file}: no times of an allreduce were found", f"known are {_KINDS}")
    if ranks is None or ranks < 2:
        found = "one rank" if ranks == 1 else "no number of ranks"
        raise BadInputError(
            f"{file}: {found} in the output", "state the GPUs of the test: --network-test-gpus N"
        )
    return LinkTest(program=program, ranks=ranks, seconds=dict(sorted(seconds.items())))


def _read(text: str, file: str) -> tuple[str, int | None, list[tuple[str, str]]]:
    if text.lstrip().startswith("{"):
        return _check(text) or _bench(text, file)
    if "busbw" in text:
        return "nccl-tests", len(_NCCL_RANK.findall(text)) or None, _NCCL.findall(text)
    return "OSU", None, _OSU.findall(text) if "Allreduce" in text else []


def _check(text: str) -> tuple[str, int | None, list[tuple[str, str]]] | None:
    """Read the document of ``hpclaunch check --allreduce-test --json``; None: it is another one."""
    try:
        (times,) = (one["times"] for one in json.loads(text)["checks"] if one["name"] == "allreduce")
        rows = [(str(size), str(1e6 * float(seconds))) for size, seconds in times["seconds"].items()]
        return "hpclaunch check --allreduce-test", int(times["ranks"]), rows
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _bench(text: str, file: str) -> tuple[str, int | None, list[tuple[str, str]]]:
    """Read our benchmark: of each size the fastest algorithm."""
    try:
        found = json.loads(text)
        fastest: dict[int, float] = {}
        for row in found["rows"]:
            size, time = int(row["bytes"]), float(row["median_us"])
            fastest[size] = min(time, fastest.get(size, math.inf))
        rows = [(str(size), str(time)) for size, time in fastest.items()]
        return "hpclaunch.train.bench", int(found["ranks"]), rows
    except (ValueError, TypeError, KeyError) as error:
        problem = f"{type(error).__name__}: {error}"
        what = f"{file}: not the JSON of hpclaunch.train.bench, nor of check --allreduce-test"
        raise BadInputError(f"{what}: {problem}") from None
