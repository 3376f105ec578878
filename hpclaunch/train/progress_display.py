"""Progress within an epoch, for the process that owns the terminal: a bar drawn there, or a file for it.

Behind a launcher a rank's output comes whole lines at a time, so that a bar must not go through it: in a job
of `hpclaunch submit` rank 0 writes a small file in the job's folder, and the command that waits draws.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

PROGRESS_FILE, LOST_FILE = "progress.json", "lost_work"
"""In the folder of HPCLAUNCH_JOB_FOLDER; the second has a line per run that went on after another one."""

_REDRAW_S = 0.1
_REWRITE_S = 0.2
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
    step: int = 0
    """Of the whole training."""
    seconds: float = 0.0
    """Of the whole training, as a checkpoint counts them."""


@dataclass(frozen=True)
class LostWork:
    """The work that an earlier run of this job has done after the checkpoint from which this run goes on."""

    from_step: int
    """Of the checkpoint; 0: there was none."""
    steps: int
    seconds: float


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

    def clear(self) -> None:
        """Remove the bar, for a line in its place."""
        if self._shown:
            print("\r" + " " * len(self._shown), end="\r", file=self._terminal, flush=True)
        self._shown = ""


class ProgressFile:
    """A small JSON document that is written again and again; a reader ignores one that is cut.

    It is removed at the end of a run. So where there is one at the beginning, an earlier run of this job was
    ended before its end, and the file tells how far it had come.
    """

    def __init__(self, path: Path) -> None:
        self._path: Path | None = path
        self._not_before = 0.0
        self._before: tuple[int, float] | None = None
        """Step and seconds that an earlier run has left."""
        with suppress(OSError, ValueError, TypeError, KeyError):  # there was none, or its file is damaged
            found = json.loads(path.read_text())
            self._before = int(found["step"]), float(found["seconds"])

    def lost_after(self, step: int, seconds: float) -> LostWork | None:
        """Note and return what an earlier run had done after this point; None: there was no earlier run."""
        if self._path is None or self._before is None:
            return None
        steps, more = self._before[0] - step, self._before[1] - seconds
        lost = LostWork(step, steps, round(max(0.0, more), 3)) if steps > 0 else LostWork(step, 0, 0.0)
        with suppress(OSError), self._path.with_name(LOST_FILE).open("a") as file:
            file.write(json.dumps(asdict(lost)) + "\n")
        self.remove()  # it is counted: a run that is killed before its first step has lost nothing more
        return lost

    def remove(self) -> None:
        """Remove it: what it tells is over."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

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
