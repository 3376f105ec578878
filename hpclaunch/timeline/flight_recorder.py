"""Dumps of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE): the newest collectives of one rank.

Read as JSON (``_dump_fr_trace_json``, schema 2.10 of torch 2.13), and as the pickle that torch writes when a
job hangs. A pickle can name any function to be called when it is loaded; the reader here refuses every name,
so that only plain data comes out: numbers, texts, lists, tuples, dictionaries.
"""

import json
import pickle
from typing import Any

from hpclaunch.errors import BadInputError
from hpclaunch.timeline.rank_steps import RankSteps
from hpclaunch.timeline.rank_trace import RankTrace, kind_of, size_of

LARGEST = 256 << 20
"""Bytes of a dump; 2,000 collectives, which is torch's default, take less than 2 MB."""
_LONGEST_PERIOD = 1000
"""Collectives of a step, at most."""
_FIT = 0.95
"""Share of collectives that must be those of one period before."""


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
    for period in range(1, min(_LONGEST_PERIOD, len(names) // 4) + 1):
        recent = names[-max(4 * period, len(names) // 2) :]
        same = sum(a == b for a, b in zip(recent, recent[period:], strict=False))
        if same >= _FIT * (len(recent) - period):
            return period
    return None
