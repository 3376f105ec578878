"""Which form a timeline has, and its reading.

Dumps of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE), the newest collectives of one rank, are
read as JSON (``_dump_fr_trace_json``, schema 2.10 of torch 2.13), and as the pickle that torch writes when a
job hangs. A pickle can name any function to be called when it is loaded; the reader here refuses every name,
so that only plain data comes out: numbers, texts, lists, tuples, dictionaries.
"""

import json
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants
from hpclaunch.timeline.horovod_timeline import HorovodReader
from hpclaunch.timeline.kineto_trace import KinetoReader
from hpclaunch.timeline.rank_trace import RankSteps, RankTrace, kind_of, size_of
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
        if size > LIMIT.largest:
            raise BadInputError.case("recorder: large", largest=LIMIT.largest)
    return b"".join(parts)


def rank_in(name: str, otherwise: int) -> int:
    """Return the rank that a file's name tells: ``rank3.json``, ``nccl_trace_rank_3``; else ``otherwise``."""
    found = _RANK_IN_NAME.findall(name.rpartition("/")[2])
    numbers = [int(one or two) for one, two in found if len(one or two) < 8]
    return numbers[0] if numbers else otherwise


LIMIT = package_constants("timeline/limits.yaml", "dumps")


class _Bytes:
    """Bytes as the file that `pickle` wants."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size < 0 else self._at + size
        taken = self._data[self._at : end]
        self._at += len(taken)
        return taken

    def readline(self) -> bytes:
        end = self._data.find(b"\n", self._at) + 1
        return self.read((end or len(self._data)) - self._at)


class _PlainData(pickle.Unpickler):
    """Loads plain data only; nothing that a pickle names is imported or called."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse: plain data names nothing."""
        raise pickle.UnpicklingError(f"it names {module}.{name}, and a dump holds plain data only")

    def persistent_load(self, _: object) -> Any:
        """Refuse, as above."""
        raise pickle.UnpicklingError("it refers to data outside of it")


def read_dump(data: bytes, rank: int) -> RankTrace:
    """Return what a dump, JSON or pickle, tells about its rank; BadInputError where it is not a dump."""
    try:
        dump = _PlainData(_Bytes(data)).load() if data[:1] == b"\x80" else json.loads(data)
    except Exception as error:  # a damaged pickle raises anything
        raise BadInputError(f"not a dump of the flight recorder: {error}", "give a dump of torch") from None
    if not isinstance(dump, dict):
        raise BadInputError("not a dump of the flight recorder: no dictionary", "give a dump of torch")
    entries = dump.get("entries")
    if not isinstance(entries, list):
        raise BadInputError("not a dump of the flight recorder: it has no entries", "give a dump of torch")
    entries = sorted(filter(_is_entry, entries), key=lambda each: int(each["time_created_ns"]))
    trace = RankTrace(rank, "flight-recorder", RankSteps(), sees_computing=False, sees_input=False)
    config = dump.get("pg_config")
    trace.ranks = _world(config) if isinstance(config, dict) else None
    for entry in entries:
        _take(trace, entry)
    _find_steps(trace, entries)
    return trace


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("time_created_ns"), int)
        and isinstance(entry.get("profiling_name"), str)
    )


def _world(config: dict[str, Any]) -> int | None:
    sizes = []
    for group in config.values():
        ranks = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(ranks, str):
            sizes.append(len([word for word in ranks.strip("[]").split(",") if word.strip()]))
        elif isinstance(ranks, list):
            sizes.append(len(ranks))
    return max(sizes, default=0) or None


def _size(entry: dict[str, Any]) -> int:
    dtypes, shapes = entry.get("input_dtypes"), entry.get("input_sizes")
    if not isinstance(dtypes, list) or not isinstance(shapes, list):
        return 0
    return sum(size_of(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=False))


def _take(trace: RankTrace, entry: dict[str, Any]) -> None:
    """Count a collective; its time where the recorder has it, which gloo's does not (torch 2.13)."""
    name = entry["profiling_name"]
    kind, size = kind_of(name.partition(":")[2] or name), _size(entry)
    trace.collectives.kinds[kind].tensor(size)
    created, ended = entry["time_created_ns"] / 1e3, entry.get("time_discovered_completed_ns")
    if isinstance(ended, int) and ended / 1e3 >= created:
        trace.steps.add("moving", created, ended / 1e3)
        trace.collectives.kinds[kind].message(created, ended / 1e3)
    number = entry.get("collective_seq_id")
    if isinstance(number, int) and not entry.get("is_p2p"):
        group = ":".join(map(str, entry.get("process_group") or ["?"]))
        shapes = entry.get("input_sizes")
        trace.sequence.setdefault(group, {})[number] = f"{name.partition(':')[2] or name} {shapes}"


def _find_steps(trace: RankTrace, entries: list[dict[str, Any]]) -> None:
    """A step is the period with which the same collectives come again, counted back from the newest."""
    names = [(each["profiling_name"], str(each.get("input_sizes"))) for each in entries]
    period = _period(names)
    if period is None:
        trace.steps.finish(None)
        return
    first = len(entries) - period
    while first >= period and names[first - period : first] == names[first : first + period]:
        first -= period
    for number in range(first, len(entries), period):
        trace.steps.begins(entries[number]["time_created_ns"] / 1e3)
        for entry in entries[number : number + period]:
            ended = entry.get("time_discovered_completed_ns") or entry["time_created_ns"]
            trace.steps.collective(_size(entry), ended / 1e3)
    trace.steps.finish(None)


def _period(names: list[tuple[str, str]]) -> int | None:
    """Return the smallest period that the newest collectives repeat at least three times; None: none."""
    for period in range(1, min(LIMIT.longest_period, len(names) // 4) + 1):
        recent = names[-max(4 * period, len(names) // 2) :]
        same = sum(a == b for a, b in zip(recent, recent[period:], strict=False))
        if same >= LIMIT.fit * (len(recent) - period):
            return period
    return None
