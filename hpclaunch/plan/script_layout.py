"""How lines with reasons are laid out in a script: narrow, one reason per line, sources by number."""

import textwrap
from collections.abc import Iterable
from itertools import groupby

import msgspec

from hpclaunch.scheduler.job_header import Line

WIDTH = 110
"""Columns that no line of a script passes, but a command and its words."""


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a script; its reason follows it where there is room, else it stands above."""

    above: tuple[str, ...]
    text: str
    comment: str


class ScriptLayout:
    """Places the lines of one script and numbers their sources in the order of their use."""

    def __init__(self) -> None:
        """Begin with no source."""
        self._numbers: dict[str, int] = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources used so far, each as ``[NUMBER] TEXT``."""
        return tuple(f"[{number}] {text}" for text, number in self._numbers.items())

    def place(
        self, lines: Iterable[Line], *, sentinel: str = "", trailing: bool = True
    ) -> tuple[Placed, ...]:
        """Return the lines as they stand in the script.

        ``sentinel``: what the template writes before each text. ``trailing``: comments may follow a text.
        """
        placed: list[Placed] = []
        for _, group in groupby(lines, key=lambda line: (line.reason, line.source)):
            each = [self._placed(line, len(sentinel), trailing) for line in group]
            if len(each) > 1 and (above := next((line.above for line in each if line.above), ())):
                # A reason that several lines share stands above the first of them.
                each = [Placed(above=(), text=line.text, comment="") for line in each]
                each[0] = Placed(above=above, text=each[0].text, comment="")
            placed += each
        return tuple(placed)

    def _placed(self, line: Line, before: int, trailing: bool) -> Placed:
        reason = line.reason
        if line.source:
            reason += f" [{self._numbers.setdefault(line.source, len(self._numbers) + 1)}]"
        fits = before + len(line.text) + len(reason) + 4 <= WIDTH and "\n" not in line.text
        if trailing and fits:
            return Placed(above=(), text=line.text, comment=f"  # {reason}" if reason else "")
        return Placed(above=wrapped(reason), text=line.text, comment="")


def wrapped(text: str) -> tuple[str, ...]:
    """Return a comment as lines of a script, without their ``#``."""
    return tuple(textwrap.wrap(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False))
