"""The report of a port: what happened to each line of the old script."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import case_texts

Fate = Literal["kept", "changed", "left out"]
_GROWING = ("directives", "module", "container_bind", "exports", "fill_in", "loads", "set_up")
"""Lists to which each line may add items; the last four are no keys of the job file."""


class Verdict(NamedTuple):
    """The verdict on one part of a line, and its part of the result."""

    fate: Fate
    to: str = ""
    why: str = ""
    source: str = ""
    to_do: tuple[str, ...] = ()
    sets: Mapping[str, Any] = MappingProxyType({})

    @property
    def is_open(self) -> bool:
        """Whether the user must decide it."""
        return self.why.startswith("undecided: ")

    def doing(self, *to_do: str) -> "Verdict":
        """Return the verdict with more tasks for the user."""
        return self._replace(to_do=(*self.to_do, *to_do))

    def setting(self, **sets: Any) -> "Verdict":
        """Return the verdict with more keys of the job file."""
        return self._replace(sets={**self.sets, **sets})


KEPT = Verdict("kept")


def at_lines(lines: Iterable[int]) -> str:
    """Return the numbers of some lines, ``line 3``, ``lines 3-5,8``."""
    numbers = sorted(set(lines))
    return f"line{'s' * (len(numbers) > 1)} {format_cpu_list(numbers)}"


def task(case: str, **values: object) -> str:
    """Return the task for the user of a case of ``port_verdicts.yaml``, with these values in its text."""
    text: str = case_texts("port/port_verdicts.yaml", case, **values)["to_do"]
    return text


class Judged(NamedTuple):
    """A verdict, and the lines that it is about; none: what it sets stands in no line."""

    lines: Sequence[int]
    verdict: Verdict

    def behind(self, lines: int) -> "Judged":
        """Return it with the numbers of a text that begins behind these lines."""
        return Judged([line + lines for line in self.lines], self.verdict)


class KeptLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line whose settings are carried over unchanged."""

    line: int
    text: str


class ChangedLine(KeptLine, frozen=True, kw_only=True):
    """A line in whose place another text stands."""

    to: str
    why: str
    source: str


class LeftOutLine(KeptLine, frozen=True, kw_only=True):
    """A line that is not carried over, or that the user must decide."""

    why: str


class LineReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every line of the script that is not only a comment, once."""

    kept: tuple[KeptLine, ...]
    changed: tuple[ChangedLine, ...]
    left_out: tuple[LeftOutLine, ...]


def undecided(judged: Iterable[Judged]) -> dict[str, list[int]]:
    """Return what the user must decide -> its lines."""
    found: dict[str, set[int]] = {}
    for lines, verdict in judged:
        if verdict.is_open:
            found.setdefault(verdict.why.removeprefix("undecided: "), set()).update(lines)
    by_line = sorted(((sorted(lines), why) for why, lines in found.items()), key=lambda each: each[0])
    return {why: lines for lines, why in by_line}


def all_set(judged: Iterable[Judged]) -> dict[str, Any]:
    """Return what verdicts set together: some lists and all mappings grow, of another key the last holds."""
    found: dict[str, Any] = {}
    for key, value in (item for one in judged for item in one.verdict.sets.items()):
        if key in _GROWING:
            value = dict.fromkeys(value)
        if isinstance(value, Mapping):
            found.setdefault(key, {}).update(value)
        else:
            found[key] = value
        other = {"env": "exports", "exports": "env"}.get(key, "")
        if other in found:  # the last value of a variable holds, whether a shell reads it or not
            names = {_exported_by(line) for line in value}
            found[other] = {at: text for at, text in found[other].items() if _exported_by(at) not in names}
    return {key: tuple(value) if key in _GROWING else value for key, value in found.items()}


def _exported_by(line: str) -> str:
    return line.removeprefix("export ").partition("=")[0]


def line_report(judged: Iterable[Judged], lines: dict[int, str]) -> LineReport:
    """Return the report on these lines, number -> text."""
    about: dict[int, list[Verdict]] = {number: [] for number in lines}
    for one in judged:
        for number in one.lines:
            about.get(number, []).append(one.verdict)
    found: dict[Fate, list[Any]] = {"kept": [], "changed": [], "left out": []}
    kinds = {"kept": KeptLine, "changed": ChangedLine, "left out": LeftOutLine}
    for number, verdicts in about.items():
        verdict = _merged(verdicts)
        kind = kinds[verdict.fate]
        own = {
            name: getattr(verdict, name) for name in kind.__struct_fields__ if name not in ("line", "text")
        }
        found[verdict.fate].append(kind(line=number, text=lines[number], **own))
    kept, changed, left_out = map(tuple, found.values())
    return LineReport(kept=kept, changed=changed, left_out=left_out)


def _merged(verdicts: list[Verdict]) -> Verdict:
    """Return the one verdict on a line with several parts: a line of which a part changes is changed."""
    if not verdicts:
        return Verdict("left out", why="undecided: hpclaunch does not know what it is for")
    fates = {verdict.fate for verdict in verdicts}
    if len(fates) == 1 and fates != {"changed"}:
        return Verdict(verdicts[0].fate, why=_joined(verdict.why for verdict in verdicts))
    carried = [verdict for verdict in verdicts if verdict.fate != "left out"]
    left = [verdict.why for verdict in verdicts if verdict.fate == "left out"]
    not_carried = (f"left out: {why.removeprefix('undecided: ')}" for why in left)
    return Verdict(
        "changed",
        to=_joined(verdict.to or "unchanged" for verdict in carried),
        why=_joined([*(verdict.why for verdict in carried), *not_carried]),
        source=_joined(verdict.source for verdict in carried) or "the script",
    )


def _joined(texts: Iterable[str]) -> str:
    """Return the texts in one, each once: also where an earlier one of several parts has it."""
    kept = ""
    for text in filter(None, texts):
        if text != kept and text not in kept.split("; "):
            kept += f"; {text}" if kept else text
    return kept
