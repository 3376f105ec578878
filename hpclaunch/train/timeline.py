"""A timeline of a rank as Horovod writes it: a Chrome trace in JSON, which https://ui.perfetto.dev opens.

One lane a tensor, named by its ``process_name``; times in microseconds since the start. The file is a whole
JSON document at all times: what comes new overwrites the closing bracket, and brings another, in one call.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .files import write_whole

_CLOSING = "\n]\n"


class Timeline:
    """Events are kept in memory until `flush`, which no other thread may meet with an event.

    Several threads may add events, each to lanes that the others leave alone for the time.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.perf_counter) -> None:
        """Replace ``path`` by a timeline without events; ``clock`` tells seconds. OSError if that fails."""
        self._clock = clock
        self._start = clock()
        self._lanes: dict[str, int] = {}
        head = _metadata(0, "process_name", start_time_since_epoch_in_micros=int(time.time() * 1e6))
        text = "[\n" + ",\n".join([head, _metadata(0, "process_sort_index", sort_index=0)])
        write_whole(path, lambda file: file.write((text + _CLOSING).encode()))
        self._file = os.open(path, os.O_WRONLY)
        self._end = len(text.encode())
        self._pending: list[str] = []

    def lane(self, name: str) -> int:
        """The number of the lane called ``name``, a new one where there is none."""
        if name not in self._lanes:
            number = self._lanes[name] = len(self._lanes) + 1
            self._pending.append("\n" + _metadata(number, "process_name", name=name))
            self._pending.append("\n" + _metadata(number, "process_sort_index", sort_index=number))
        return self._lanes[name]

    def begin(self, lane: int, name: str, at: float) -> None:
        """A phase, whose ``name`` needs no escape, begins on ``lane``; ``at`` by the clock."""
        self._pending.append(
            f'{{"ph": "B", "name": "{name}", "ts": {(at - self._start) * 1e6:.0f}, "pid": {lane}}}'
        )

    def end(self, lane: int, at: float, facts: str = "") -> None:
        """The phase on ``lane`` that began last ends; ``facts``: a JSON object."""
        more = f', "args": {facts}' if facts else ""
        self._pending.append(f'{{"ph": "E", "ts": {(at - self._start) * 1e6:.0f}, "pid": {lane}{more}}}')

    @contextmanager
    def phase(self, lane: str, name: str) -> Iterator[None]:
        """What is done within, on the lane called so."""
        number = self.lane(lane)
        self.begin(number, name, self._clock())
        yield
        self.end(number, self._clock())

    def flush(self) -> None:
        """Write what came since the last flush."""
        pending, self._pending = self._pending, []
        if pending:
            data = (",\n" + ",".join(pending) + _CLOSING).encode()
            os.pwrite(self._file, data, self._end)
            self._end += len(data) - len(_CLOSING)

    def close(self) -> None:
        """Write all and close the file."""
        self.flush()
        os.close(self._file)


def _metadata(lane: int, kind: str, **arguments: object) -> str:
    return json.dumps({"name": kind, "ph": "M", "pid": lane, "args": arguments})
