"""The lines of one rank in a log whose lines name their ranks."""

from __future__ import annotations

import re
from collections.abc import Callable

# Tried: srun --label of Slurm 22.05.8, Open MPI 5.0.11 (--output tag) and 4.1.4 (tag_output). From their
# documentation: MPICH's -prepend-rank, and PyTorch from 2.2 on, which puts [rank0]: before tracebacks.
_LABELS = tuple(
    re.compile(pattern)
    for pattern in (rb" *(\d+): ", rb"\[\d+,(\d+)\]<\w+>: ?", rb"\[(\d+)\] ", rb"\[rank(\d+)\]: ?")
)


class RankLines:
    """Passes the lines of one rank on, without their labels; output may come in pieces."""

    def __init__(self, rank: int, on_output: Callable[[bytes], None]) -> None:
        self._rank, self._on_output, self._rest = rank, on_output, b""
        self.ranks = set[int]()
        """The ranks that lines have named."""

    def __call__(self, data: bytes) -> None:
        """Take a piece of the log."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Take what is left, a line without an end."""
        rest, self._rest = self._rest, b""
        if rest:
            self._take(rest)

    def _take(self, line: bytes) -> None:
        for label in _LABELS:
            if match := label.match(line):
                self.ranks.add(int(match[1]))
                if int(match[1]) == self._rank:
                    self._on_output(line[match.end() :] + b"\n")
                return
