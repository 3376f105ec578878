"""Which form a timeline has, and its reading."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from hpclaunch.errors import BadInputError
from hpclaunch.timeline.flight_recorder import LARGEST, read_dump
from hpclaunch.timeline.horovod_timeline import HorovodReader
from hpclaunch.timeline.kineto_trace import KinetoReader
from hpclaunch.timeline.rank_trace import RankTrace
from hpclaunch.timeline.trace_events import MERGED, TraceReader, inflated

_RANK_IN_NAME = re.compile(r"(?:rank|trace|worker|node)[._-]?(\d+)|[._-](\d+)(?=[._]|$)", re.IGNORECASE)


class NoEventsError(BadInputError):
    """A file without an event: of a rank that ended before it wrote one."""


@dataclass
class TimelineFile:
    """One file that was read."""

    name: str
    form: str
    traces: list[RankTrace]
    events: int = 0
    whole: bool = True
    """Whether it ends as its form requires."""
    repaired: int = 0
    lost: int = 0


def read_timeline(name: str, chunks: Iterable[bytes], rank: int = 0) -> TimelineFile:
    """Read a file of any form, in pieces; ``rank``: where nothing tells it. BadInputError names the file."""
    try:
        return _read(name, inflated(chunks), rank)
    except BadInputError as error:
        raise type(error)(f"{name}: {error.message}", error.hint) from None


def _read(name: str, chunks: Iterator[bytes], rank: int) -> TimelineFile:
    start = b""
    while len(start) < 1 << 16 and (chunk := next(chunks, None)) is not None:
        start += chunk
    if not start.strip():
        raise NoEventsError("no event of a timeline is in it: it is empty", "give the timeline of a training")
    if is_dump(start):
        data = _whole(chain([start], chunks))
        dump = read_dump(data, rank_in(name, rank))
        events = sum(map(len, dump.sequence.values()))
        return TimelineFile(name, dump.form, [dump], events)
    reader = TraceReader(chain([start], chunks))
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        kineto = KinetoReader()
        kineto.read(reader)
        if reader.head.get("otherData") == MERGED:
            raise BadInputError.case("timeline: merged")
        info = reader.head.get("distributedInfo")
        known = info.get("rank") if isinstance(info, dict) else None
        traces = [kineto.finished(known if isinstance(known, int) else rank_in(name, rank), reader.head)]
    else:
        traces = HorovodReader().read(reader)
    if not traces or not reader.events:
        raise NoEventsError("no event of a timeline is in it", "give the timeline of a training")
    return TimelineFile(
        name,
        traces[0].form,
        traces,
        reader.events,
        reader.whole and not reader.lost,
        reader.repaired,
        reader.lost,
    )


def is_dump(start: bytes) -> bool:
    """Whether a file that begins so is a flight recorder's dump: a pickle, or JSON without events."""
    if start[:1] == b"\x80":
        return True
    return start.lstrip()[:1] == b"{" and b'"traceEvents"' not in start and b'"entries"' in start


def _whole(chunks: Iterable[bytes]) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise BadInputError(f"larger than {LARGEST} bytes", "a dump of the flight recorder is smaller")
    return b"".join(parts)


def rank_in(name: str, otherwise: int) -> int:
    """Return the rank that a file's name tells: ``rank3.json``, ``nccl_trace_rank_3``; else ``otherwise``."""
    found = _RANK_IN_NAME.findall(name.rpartition("/")[2])
    numbers = [int(one or two) for one, two in found if len(one or two) < 8]
    return numbers[0] if numbers else otherwise
