"""Progress within an epoch, for the process that owns the terminal: a bar drawn there, or a file for it.

Behind a launcher a rank's output comes whole lines at a time, so that a bar must not go through it. Where the
launcher's terminal is on this machine, rank 0 draws there directly; in a job of `hpclaunch submit` rank 0
writes a small file in the job's folder, and the command that waits draws.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

PROGRESS_FILE = "progress.json"
"""In the folder of HPCLAUNCH_JOB_FOLDER."""

_REDRAW_S = 0.1
_REWRITE_S = 0.2
# What goes through the launcher arrives a little later than what is drawn directly.
_AFTER_LINE_S = 0.2
_COLUMNS = 80


@dataclass(frozen=True)
class Progress:
    """How far an epoch is."""

    label: str
    """Such as ``epoch 2/3``."""
    share: float
    """0..1 of the epoch."""
    figures: str
    """Speed, loss, accuracy of the last steps; empty before they are known."""


def bar_line(progress: Progress, columns: int) -> str:
    """One line of less than ``columns`` characters; the bar takes what room the figures leave."""
    before, after = f"{progress.label} [", f"] {progress.share:4.0%}  {progress.figures}"
    width = max(4, columns - 1 - len(before) - len(after))
    return f"{before}{'#' * round(progress.share * width):<{width}}{after}"[: columns - 1]


class TerminalBar:
    """A bar on the last line of a terminal, which may also show other output."""

    def __init__(self, terminal: TextIO, columns: int | None = None) -> None:
        """``columns``: its width, read from the terminal if None."""
        self._terminal = terminal
        self._columns = columns
        self._shown = ""
        self._not_before = 0.0

    def show(self, progress: Progress, *, at_once: bool = False) -> None:
        """Draw ``progress``, unless the last drawing was a moment ago. Cheap: call it every step."""
        now = time.monotonic()
        if now < self._not_before - (_REDRAW_S if at_once else 0):
            return
        text = bar_line(progress, self._columns or _columns(self._terminal))
        print(f"\r{text:<{len(self._shown)}}", end="", file=self._terminal, flush=True)
        self._shown, self._not_before = text, now + _REDRAW_S

    def clear(self, *, line_follows_late: bool = False) -> None:
        """Remove the bar, for a line in its place; ``line_follows_late``: which takes another way there."""
        if self._shown:
            print("\r" + " " * len(self._shown), end="\r", file=self._terminal, flush=True)
        self._shown = ""
        if line_follows_late:
            self._not_before = time.monotonic() + _REDRAW_S + _AFTER_LINE_S


class ProgressFile:
    """A small JSON document that is written again and again; a reader ignores one that is cut."""

    def __init__(self, path: Path) -> None:
        self._path: Path | None = path
        self._not_before = 0.0

    def show(self, progress: Progress, *, at_once: bool = False) -> None:
        """Write ``progress``, unless the last one was written a moment ago. Cheap: call it every step."""
        now = time.monotonic()
        if self._path is None or (now < self._not_before and not at_once):
            return
        self._not_before = now + _REWRITE_S
        try:
            # Opened each time: other machines of a network file system see a file that was closed.
            self._path.write_text(json.dumps({**asdict(progress), "time": time.time()}) + "\n")
        except OSError:
            self._path = None  # a full disk must not end the training


def progress_file(environment: Mapping[str, str] = os.environ) -> ProgressFile | None:
    """Where a job of `hpclaunch submit` reports its progress; None in any other environment."""
    folder = environment.get("HPCLAUNCH_JOB_FOLDER")
    return ProgressFile(Path(folder) / PROGRESS_FILE) if folder else None


def _columns(terminal: TextIO) -> int:
    try:
        return os.get_terminal_size(terminal.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS
