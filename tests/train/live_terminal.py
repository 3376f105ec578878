"""A training in a real pseudo-terminal, and when its bar was drawn there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

REDRAWS = 5
TRAINING = ("-m", "hpclaunch.train", "--dataset", "synthetic", "--epochs", "2", "--batch-size", "4")


class Shown(NamedTuple):
    """What a program wrote to its terminal."""

    status: int
    pieces: list[tuple[float, str]]
    """Seconds since its start, and text."""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(text for _, text in self.pieces)


def run_on_terminal(command: Sequence[str], environment: Mapping[str, str], columns: int = 80) -> Shown:
    """Run ``command`` with a terminal of its own, which controls it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    start, pieces = time.monotonic(), []
    take_terminal = [sys.executable, "-c", TAKE_TERMINAL, *command]
    with subprocess.Popen(
        take_terminal,
        env=dict(environment),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as job:
        os.close(theirs)
        with contextlib.suppress(OSError):  # what Linux raises once no process has the terminal open
            while piece := os.read(ours, 1 << 16):
                pieces.append((time.monotonic() - start, piece.decode(errors="replace")))
    os.close(ours)
    return Shown(job.returncode, pieces)


TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def check_live(shown: Shown) -> None:
    """The bar was drawn again and again, each time at once, before the first of two epochs ended."""
    assert shown.status == 0, shown.text
    before, done, _ = shown.text.partition("epoch 1/2 done")
    assert done, shown.text
    assert before.count("\repoch 1/2 [") >= REDRAWS, shown.text
    drawn_at = [at for at, text in shown.pieces if "\repoch 1/2 [" in text]
    assert len(drawn_at) >= REDRAWS, "all drawings arrived together"
    assert "\repoch 2/2 [#" in shown.text
    assert shown.text.count("epoch 2/2 done") == 1
