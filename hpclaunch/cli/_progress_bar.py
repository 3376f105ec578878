"""The output of a followed job on a terminal, with a bar below it where the job reports its progress.

The bundled training writes ``progress.json`` in the job's folder, a few times per second; any other program
may do the same: ``{"label": "epoch 1/3", "share": 0.4, "figures": "12,345 images/s  ..."}``.
"""

import json
import os
import time
from collections.abc import Callable
from typing import BinaryIO

from hpclaunch.cli._terminal import for_reader

_REDRAW_S = 0.1
_COLUMNS = 80


class JobOutput:
    """Forwards a job's output; `poll` draws the bar. Without a terminal there is only the output."""

    def __init__(self, output: BinaryIO, read: Callable[[], bytes | None]) -> None:
        """``read`` returns the job's progress file, None where there is none."""
        self._output = output
        self._read = read
        self._draws = output.isatty()
        self._shown_text = for_reader(output)
        self._shown = ""
        self._at_line_start = True
        self._not_before = 0.0

    def forward(self, chunk: bytes) -> None:
        """Write a piece of the job's output."""
        self.clear()
        self._output.write(self._shown_text(chunk))
        self._output.flush()
        self._at_line_start = chunk.endswith(b"\n")

    def poll(self) -> None:
        """Draw how far the job is, unless the last drawing was a moment ago."""
        if not self._draws or not self._at_line_start or time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _REDRAW_S
        line = bar_line(self._read() or b"", self._columns())
        if line is not None and line != self._shown:
            self._output.write(f"\r{line:<{len(self._shown)}}".encode())
            self._output.flush()
            self._shown = line

    def clear(self) -> None:
        """Remove the bar."""
        if self._shown:
            self._output.write(b"\r" + b" " * len(self._shown) + b"\r")
            self._output.flush()
            self._shown = ""

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._output.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS


def bar_line(progress: bytes, columns: int) -> str | None:
    """One line of less than ``columns`` characters; None for text that is not a whole progress file."""
    try:
        facts = json.loads(progress)
        label, share, figures = str(facts["label"]), float(facts["share"]), str(facts["figures"])
    except (ValueError, TypeError, KeyError):
        return None
    if not 0 <= share <= 1 or not (label + figures).isprintable():
        return None
    before, after = f"{label} [", f"] {share:4.0%}  {figures}"
    width = max(4, columns - 1 - len(before) - len(after))
    return f"{before}{'#' * round(share * width):<{width}}{after}"[: columns - 1]
