"""Times of an allreduce by size from the output of nccl-tests, rccl-tests, OSU, or of our programs. Pure.

nccl-tests and rccl-tests: ``all_reduce_perf``, out of place. OSU: ``osu_allreduce``. Ours:
``hpclaunch bench --json``, ``hpclaunch check --allreduce-test --json``. One latency and one bandwidth do
not describe a library over all sizes, so the bandwidth is that at the size of the message: between two
measured sizes along a straight line of logarithms.

Our benchmark measures several algorithms. The one that is asked for counts, else the one that our training
uses by default, in the memory where a training has its gradients.
"""

import json
import math
import re
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from hpclaunch.errors import BadInputError

_NCCL = re.compile(r"^ *(\d+) +\d+ +\w+ +\w+ +(?:-?\d+ +)?(\d+(?:\.\d+)?) +\d+\.\d+ +\d+\.\d+", re.MULTILINE)
_NCCL_RANK = re.compile(r"^# +Rank +\d+ ", re.MULTILINE)
_OSU = re.compile(r"^ *(\d+) +(\d+\.\d+)\b.*$", re.MULTILINE)


class LinkTest(msgspec.Struct, frozen=True, kw_only=True):
    """Measured times of one allreduce."""

    program: str
    ranks: int
    seconds: dict[int, float]
    fresh: bool | None = None

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


def read_link_test(text: str, file: str, ranks: int | None, algorithm: str | None = None) -> LinkTest:
    """Read such an output. Raises BadInputError.

    ``ranks``: where the output does not state them; ``algorithm``: one of those of our benchmark.
    """
    found = _read(text, file, algorithm)
    ranks = found.ranks or ranks
    seconds = {size: time for size, time in found.seconds.items() if size > 0 and time > 0}
    if len(seconds) < 2:
        raise BadInputError.case("network-test: no times", file=file)
    if ranks is None or ranks < 2:
        what = "one rank" if ranks == 1 else "no number of ranks"
        raise BadInputError.case("network-test: no GPUs", file=file, what=what)
    return msgspec.structs.replace(found, ranks=ranks, seconds=seconds)


def _read(text: str, file: str, algorithm: str | None) -> LinkTest:
    """Return what an output states; 0 ranks where it states none."""
    if text.lstrip().startswith("{"):
        found = _check(text)
        if found is None:
            return _bench(text, file, algorithm)
    elif "busbw" in text:
        ranks, seconds = len(_NCCL_RANK.findall(text)), _seconds(_NCCL.findall(text))
        found = LinkTest(program="nccl-tests", ranks=ranks, seconds=seconds)
    else:
        rows = _OSU.findall(text) if "Allreduce" in text else []
        found = LinkTest(program="OSU", ranks=0, seconds=_seconds(rows))
    if algorithm is not None:
        raise BadInputError.case("network-test: no algorithms", file=file, found=found)
    return found


def _seconds(rows: Iterable[tuple[str | int, str | float]]) -> dict[int, float]:
    return {int(size): float(microseconds) * 1e-6 for size, microseconds in rows}


def _check(text: str) -> LinkTest | None:
    """Read the document of ``hpclaunch check --allreduce-test --json``; None: it is another one."""
    try:
        (times,) = (one["times"] for one in json.loads(text)["checks"] if one["name"] == "allreduce")
        seconds = {int(size): float(seconds) for size, seconds in times["seconds"].items()}
        program = "hpclaunch check --allreduce-test"
        return LinkTest(program=program, ranks=int(times["ranks"]), seconds=seconds)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


COPY = "copy"
"""No allreduce: all ranks copy an array of this size at once."""


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm at one size."""

    algorithm: str
    buffer: str = "array"
    bytes: int
    median_us: float
    ranks: int = 0
    algbw_gb_s: float = 0.0
    busbw_gb_s: float | None = None


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """The document of ``hpclaunch bench``, which ``train/measure_allreduces.py`` writes."""

    ranks: int
    rows: list[BenchRow]
    rounds: int = 0
    fresh: bool = False
    date: str = ""
    machine: str = ""
    ranks_by_host: dict[str, int] = {}
    host_by_rank: list[str] = []
    cpus_by_rank: list[list[int]] = []
    cpus_of_host: int | None = None
    threads_per_rank: int | None = None
    versions: dict[str, str] = {}


def _bench(text: str, file: str, algorithm: str | None) -> LinkTest:
    try:
        found = msgspec.json.decode(text, type=Bench)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        what = f"{file}: not the JSON of hpclaunch bench, nor of check --allreduce-test"
        raise BadInputError(f"{what}: {error}") from None
    sums = [row for row in found.rows if row.algorithm != COPY]
    names = list(dict.fromkeys(row.algorithm for row in sums))
    # As hpclaunch.train.allreduce.resolve_allreduce chooses.
    usual = "ring" if len(found.ranks_by_host) < 2 else "hierarchical"
    if algorithm is not None and algorithm not in names:
        raise BadInputError(f"{file}: no times of the allreduce {algorithm}", f"it has {', '.join(names)}")
    name = algorithm or (usual if usual in names else None)
    rows = [row for row in sums if name in (None, row.algorithm)]
    windows = [row for row in rows if row.buffer == "window"]  # where a training has its gradients
    fastest: dict[int, float] = {}
    for row in windows if name and windows else rows:
        fastest[row.bytes] = min(row.median_us, fastest.get(row.bytes, math.inf))
    return LinkTest(
        program=f"hpclaunch bench, {name or 'the fastest of ' + ', '.join(names)}",
        ranks=found.ranks,
        seconds=_seconds(fastest.items()),
        fresh=found.fresh,
    )
