"""The report of a port: what happened to each line of the old script."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

Fate = Literal["kept", "changed", "left out"]


class Verdict(NamedTuple):
    """The verdict on one part of a line."""

    fate: Fate
    to: str = ""
    """Of a change: what takes its place."""
    why: str = ""
    source: str = ""
    """Of a change: the page, manual or key that it rests on."""


KEPT = Verdict("kept")


def left_out(why: str) -> Verdict:
    """Return the verdict on what is not carried over."""
    return Verdict("left out", why=why)


class KeptLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line whose settings are carried over unchanged."""

    line: int
    """From 1."""
    text: str
    """The line."""


class ChangedLine(KeptLine, frozen=True, kw_only=True):
    """A line in whose place another text stands."""

    to: str
    """The replacement."""
    why: str
    source: str
    """The page, manual or key that the change rests on."""


class LeftOutLine(KeptLine, frozen=True, kw_only=True):
    """A line that is not carried over, or that the user must decide."""

    why: str
    """Begins with "undecided" where the user must decide."""


class LineReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every line of the script that is not only a comment, once."""

    kept: tuple[KeptLine, ...]
    changed: tuple[ChangedLine, ...]
    left_out: tuple[LeftOutLine, ...]


class Verdicts:
    """Collects the verdicts about lines."""

    def __init__(self, inside: "Verdicts | None" = None, first: int = 1) -> None:
        """Collect verdicts; with ``inside`` those about a part of a text, from its line ``first`` on."""
        self._found: dict[int, list[Verdict]] = {} if inside is None else inside._found
        self._before = first - 1

    def note(self, lines: Iterable[int], verdict: Verdict) -> None:
        """Add a verdict about each of these lines; the same one counts once."""
        for line in lines:
            about = self._found.setdefault(line + self._before, [])
            if verdict not in about:
                about.append(verdict)

    def undecided(self) -> dict[str, list[int]]:
        """Return what the user must decide -> its lines."""
        found: dict[str, list[int]] = {}
        for line, verdicts in sorted(self._found.items()):
            for verdict in verdicts:
                if verdict.why.startswith("undecided: "):
                    found.setdefault(verdict.why.removeprefix("undecided: "), []).append(line)
        return found

    def known(self, line: int) -> bool:
        """Tell whether there is a verdict about a line."""
        return line in self._found

    def report(self, lines: dict[int, str]) -> LineReport:
        """Return the report on these lines, number -> text."""
        merged = {number: _merged(self._found.get(number, [])) for number in lines}
        by_fate: dict[Fate, list[tuple[int, Verdict]]] = {"kept": [], "changed": [], "left out": []}
        for number, one in merged.items():
            by_fate[one.fate].append((number, one))
        return LineReport(
            kept=tuple(KeptLine(line=n, text=lines[n]) for n, _ in by_fate["kept"]),
            changed=tuple(
                ChangedLine(line=n, text=lines[n], to=one.to, why=one.why, source=one.source)
                for n, one in by_fate["changed"]
            ),
            left_out=tuple(LeftOutLine(line=n, text=lines[n], why=one.why) for n, one in by_fate["left out"]),
        )


_UNKNOWN = left_out("undecided: hpclaunch does not know what it is for")


def _merged(verdicts: list[Verdict]) -> Verdict:
    """Return the one verdict on a line with several parts: a line of which a part changes is changed."""
    if not verdicts:
        return _UNKNOWN
    fates = {verdict.fate for verdict in verdicts}
    if len(fates) == 1 and fates != {"changed"}:
        return Verdict(verdicts[0].fate, why=_joined(verdict.why for verdict in verdicts))
    carried = [verdict for verdict in verdicts if verdict.fate != "left out"]
    left = [verdict.why for verdict in verdicts if verdict.fate == "left out"]
    return _changed(carried, left)


def _changed(carried: list[Verdict], left: list[str]) -> Verdict:
    """Return the verdict on a line of which some parts are carried over; ``left``: why the rest is not."""
    not_carried = (f"left out: {why.removeprefix('undecided: ')}" for why in left)
    return Verdict(
        "changed",
        to=_joined(verdict.to or "unchanged" for verdict in carried),
        why=_joined([*(verdict.why for verdict in carried), *not_carried]),
        source=_joined(verdict.source for verdict in carried) or "the script",
    )


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, texts)))
