"""Errors in a rank's output: whole tracebacks, fatal errors of Python and C++, and lines of the known kinds.

Read are Python's tracebacks with chained causes and exception groups (CPython 3.10 to 3.14), the reports of
faulthandler, ``terminate called`` of libstdc++ and, in any other line, the table of known errors.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hpclaunch.failures.known_errors import OWN_ERROR, KnownError, each_of, error_named, error_of, log_words

Line = tuple[int, str]
"""Its place among all lines, and its text without labels."""


class Event(NamedTuple):
    """Something in a rank's output that may have ended it."""

    at: int
    """The place of its last line."""
    lines: tuple[str, ...]
    """The lines that show it: the exception with which it ended, then those from which it came."""
    error: KnownError
    traced: bool
    """Whether a traceback or a fatal error says it, and not only a line."""
    where: str | None = None
    """File and line of the person's own program."""
    caught: bool = False
    """Whether the program went on after it."""
    inner: bool = False
    """Whether it begins below the program's start, in a thread, a child or what was caught, or after it."""
    start: int = 0
    """The place of its first line."""
    named_at: int = 0
    """The place of its exception's first line; of a line or a fatal error, of its last line."""
    rank: str | None = None
    process: str | None = None
    """The label of its lines, where that tells no rank."""
    said_by_rank: bool = False
    """Whether it stands in the rank's own stderr."""
    accused: str | None = None
    """The ranks that the error itself names: ``2`` or ``1,2``."""


_FRAME = re.compile(r'^\s*(?:> )?File "([^"]+)", line (\d+)(?:,? in (.+))?$')
_NOT, _FROM, _MEMBER = 0, 1, 2
"""How an exception is linked to the one before it: not on purpose, raised from it, or made of it."""
_CHAIN = {
    "The above exception was the direct cause of the following exception:": _FROM,
    "During handling of the above exception, another exception occurred:": _NOT,
}
_MOST_LINES_OF_A_MESSAGE = 15
_PLACE_BEFORE, _PLACE_AFTER = 2, 25
_MOST_STRANGERS = 5
"""Lines of other origin between the frames of a traceback."""


def harmless(line: str) -> bool:
    """Whether a line is a warning or a note, or says that the program goes on."""
    return bool(log_words("harmless").search(line)) and not log_words("still_an_error").search(line)


def events(lines: Sequence[Line]) -> list[Event]:
    """Return what may have ended a rank, in the order of lines that are of one rank or of unknown ones."""
    found: list[Event] = []
    at = 0
    plain = list(_without_loggers((place, _undrawn(text)) for place, text in lines))
    while at < len(plain):
        text = plain[at][1]
        if log_words("traceback_heads").match(text):
            at = _traceback(plain, at, found)
        elif log_words("ends_of_a_process").match(text):
            at = _fatal(plain, at, found)
        else:
            found += _line_event(plain, at)
            at += 1
    return [event._replace(accused=_accused(event, lines)) for event in found]


def _without_loggers(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines without what a logger put before a traceback's head, and before the lines after it."""
    before = None
    for place, text in lines:
        head = log_words("before_a_traceback").match(text)
        if head and not log_words("traceback_heads").match(text):
            before = re.compile(re.sub(r"\d+", r"\\d+", re.escape(head[0])))
        own = before.match(text) if before else None
        yield place, text[own.end() :] if own else text


def _undrawn(line: str) -> str:
    """Return a line without what CPython draws around exceptions of a group, and rich around tracebacks."""
    text = log_words("frames_in_a_box").sub(
        r'  File "\1", line \2, in \3', log_words("of_a_group").sub("", line)
    )
    return (text.replace("│", " ") if text.startswith("│") else text).rstrip()


def _accused(event: Event, lines: Sequence[Line]) -> str | None:
    """Return the ranks that an error's own lines call late or missing, or the one of which they tell."""
    accuses = event.error.accuses
    if accuses is None:
        return _spawned(event, lines)
    after = [text for place, text in lines if event.named_at < place <= event.at + 6]
    found = (match for text in (*event.lines, *after) if (match := accuses.search(text)))
    ranks = (re.findall(r"\d+", ",".join(filter(None, match.groups()))) for match in found)
    parts = filter(None, map(log_words("parts_of_ranks").match, after))
    return next(map(",".join, ranks), None) or next(iter(odd_ones({m[1]: m[2] for m in parts})), None)


def odd_ones(parts: Mapping[str, str]) -> set[str]:
    """Return the ranks whose part no other rank has, where others share theirs."""
    counts = Counter(parts.values())
    return {rank for rank, part in parts.items() if counts[part] == 1 < max(counts.values())}


def _spawned(event: Event, lines: Sequence[Line]) -> str | None:
    """Return the process that failed by the words before its error, or by the error's own."""
    before = (
        match
        for place, text in lines
        if 0 <= event.start - place <= 2
        for match in matches("told_before", f"{text}\n{event.lines[0]}")
    )
    if event.error.shared:
        return next((match[1] for line in event.lines[:1] for match in matches("told_missing", line)), None)
    named = rank_told(event.lines[0]) if event.lines and not event.error.follows else None
    return next((match[1] for match in before), named)


def rank_told(line: str) -> str | None:
    """Return the rank that an error's own words name: one that is missing, or the one that wrote it."""
    return next((match[1] for name in ("told_missing", "told_itself") for match in matches(name, line)), None)


def matches(name: str, text: str) -> list[re.Match[str]]:
    """Return what the alternatives of ``log_words.yaml`` under a name find in a text."""
    return [match for pattern in each_of(name) if (match := pattern.search(text))]


def _line_event(lines: Sequence[Line], at: int) -> Iterator[Event]:
    place, text = lines[at]
    text = text.strip()
    error = error_of(text)
    if error is None or harmless(text):
        return
    syntax = text.startswith(("SyntaxError", "IndentationError"))
    frame = _FRAME.match(lines[at - 3][1]) if syntax and at >= 3 else None
    where = _where([frame]) if frame else _compiled(lines, at)
    more = lines[at + 1][1].strip() if text.endswith(":") and at + 1 < len(lines) else ""
    last = bool(frame or log_words("once_in_a_process").search(text))
    yield Event(place, (f"{text} {more}".strip(),), error, last, where, start=place, named_at=place)


def _compiled(lines: Sequence[Line], at: int) -> str | None:
    """Return FILE:LINE of a program in another language, as its error or the lines around it give it."""
    around = lines[max(0, at - _PLACE_BEFORE) : at + _PLACE_AFTER]
    found = next((match for _, text in around for match in matches("places", text)), None)
    return f"{found['file']}:{found['line']}" if found else None


class _Trace(NamedTuple):
    """One traceback."""

    end: int
    """Index of the first line after its exception."""
    exception: str
    message: tuple[str, ...]
    """The exception's line and those after it that belong to its message."""
    where: str | None
    frames: str = ""
    """The files of its frames."""
    raised: bool = False
    """Whether the person's own program raised it, so that the words of its message are the program's."""
    inner: bool = False
    """Whether it begins below the program's start."""
    cleans: bool = False
    """Whether it ended a call that cleans up."""


def _one_traceback(lines: Sequence[Line], at: int) -> _Trace | None:
    """Read the traceback whose head is at ``at``; None: there is none, or it is cut."""
    if at >= len(lines) or not log_words("traceback_heads").match(lines[at][1]):
        return None
    frames: list[int] = []
    strangers = 0
    for index in range(at + 1, len(lines)):
        text = lines[index][1]
        if _FRAME.match(text):
            frames.append(index)
        elif log_words("traceback_heads").match(text):
            return None  # of another rank, or this one was cut
        elif log_words("exceptions").match(text):
            return _with_exception(lines, frames, index)
        elif text.strip() and not text[0].isspace():
            strangers += 1
        if strangers > _MOST_STRANGERS:
            return None
    return _cut(lines, at, frames)


def _cut(lines: Sequence[Line], at: int, frames: Sequence[int]) -> _Trace | None:
    """Return the traceback with which the lines end, before its exception: the log was cut off there."""
    cut = _with_exception(lines, frames, at) if frames else None
    return cut and cut._replace(end=len(lines), message=lines[at][1:])


def _with_exception(lines: Sequence[Line], at: Sequence[int], end: int) -> _Trace:
    """Return the traceback with frames at these indexes and its exception at ``end``."""
    message = _message(lines, end)
    frames = [match for index in at if (match := _FRAME.match(lines[index][1]))]
    source = [text.lstrip() for index in at for _, text in lines[index + 1 : index + 2]]
    raised = "".join(source[-1:]).startswith(("raise ", "assert ")) and bool(_where(frames[-1:]))
    files = "\n".join(frame[1] for frame in frames)
    start = frames[0][3] if frames else None
    inner = not log_words("starts_of_a_program").fullmatch(start or "<module>") or bool(
        log_words("files_of_a_child").search(files)
    )
    cleans = bool(log_words("cleans_up").search("\n".join(source)))
    return _Trace(end + len(message), message[0], message, _where(frames), files, raised, inner, cleans)


def _message(lines: Sequence[Line], at: int) -> tuple[str, ...]:
    message = [lines[at][1]]
    others = tuple(map(log_words, ("traceback_heads", "ends_of_a_process", "ends_a_message")))
    for _, text in lines[at + 1 : at + _MOST_LINES_OF_A_MESSAGE]:
        ends = (not text.strip() and len(message) > 2) or text in _CHAIN
        if ends or any(each.match(text) for each in others):
            break
        message.append(text)
    while len(message) > 1 and not message[-1].strip():
        message.pop()
    return tuple(message)


def _traceback(lines: Sequence[Line], at: int, found: list[Event]) -> int:
    """Add the event of a traceback with all that are chained to it, and return the index after them."""
    chain: list[tuple[_Trace, int]] = []
    first, end, direct = at, at + 1, _NOT
    while trace := _one_traceback(lines, at):
        members = _members(lines, trace)
        chain += [*((member, _NOT) for member in reversed(members)), (trace, _MEMBER if members else direct)]
        end = max(end, *(each.end for each, _ in chain))
        after = _next(lines, end)
        link = lines[after][1] if after < len(lines) else ""
        if link not in _CHAIN:
            break
        direct, at = _CHAIN[link], _next(lines, after + 1)
    if chain:
        event = _chained([trace for trace, _ in chain], [direct for _, direct in chain], lines[end - 1][0])
        last = max(chain, key=lambda each: each[0].end)[0]
        named_at = lines[last.end - len(last.message)][0]
        before = "".join(map(itemgetter(1), lines[first - 1 : first]))
        caught = bool(log_words("exception_ignored").search(before))
        found.append(event._replace(start=lines[first][0], named_at=named_at, caught=caught))
    return end


def _members(lines: Sequence[Line], group: _Trace) -> list[_Trace]:
    """Return the exceptions of a group, each with a traceback or without one; none: it is not a group.

    What a process of torch's DataLoader raises stands after the exception of the rank in the same way, and
    what other ranks met in writing a checkpoint.
    """
    found: list[_Trace] = []
    after = lines[group.end][1] if group.end < len(lines) else ""
    if "ExceptionGroup: " not in group.exception and not log_words("tracebacks_of_another").match(after):
        return found
    at = _next(lines, group.end)
    while at < len(lines):
        text = lines[at][1]
        if log_words("traceback_heads").match(text):
            trace = _one_traceback(lines, at)
        else:
            trace = _Trace(at + 1, text, (text,), None) if log_words("named_exception").match(text) else None
        if trace is None:
            break
        found.append(trace)
        at = _next(lines, trace.end)
    return found


def _next(lines: Sequence[Line], at: int) -> int:
    while at < len(lines) and not lines[at][1].strip():
        at += 1
    return at


def _chained(traces: Sequence[_Trace], direct: Sequence[int], at: int) -> Event:
    """Return the event of chained tracebacks, the first one first; ``direct``: raised from the one before it.

    What ended the program is the last exception, unless it was raised from another one on purpose, or is of
    what was cleaned up after another one.
    """
    while len(traces) > 1 and traces[-1].cleans and direct[-1] == _NOT:
        traces, direct = traces[:-1], direct[:-1]
    root = len(traces) - 1
    while root > 0 and direct[root]:
        root -= 1
    # The one that tells most, the last one, and those before it from back to front.
    order = list(dict.fromkeys((traces[root], *reversed(traces))))
    known = next(filter(None, map(_known, order)), None)
    error, line = known or (error_named(OWN_ERROR), "")
    shown = (_words(traces[-1]), line.strip(), *map(_words, order), *_more(traces[-1]))
    # Raised from another one on purpose, it says more, unless a child of multiprocessing passed it on.
    if direct[-1] == _FROM and not known and traces[-1].message[0] != traces[root].message[0]:
        order.insert(0, traces[-1])
    where = next(filter(None, map(attrgetter("where"), order)), None)
    lines = tuple(filter(None, dict.fromkeys(shown)))
    return Event(at, lines, error, True, where, inner=traces[-1].inner)


def _words(trace: _Trace) -> str:
    """Return an exception's line; where it ends with its name, the first line of its message, too."""
    more = next((line.strip() for line in trace.message[1:] if line.strip()), "")
    return f"{trace.exception.strip()} {more}" if trace.exception.endswith(":") else trace.exception.strip()


def _more(trace: _Trace) -> Iterator[str]:
    """Return the lines after the first one of a message that begins after its exception's name alone."""
    return map(str.strip, trace.message[2:] if trace.exception.endswith(":") else ())


def _known(trace: _Trace) -> tuple[KnownError, str] | None:
    """Return the error of an exception's message and its line; its own name says only that it is one.

    Where the program itself raised it, it is known by its name alone.
    """
    name = f"{trace.exception.partition(':')[0]}: "
    message = (name,) if trace.raised else trace.message
    pairs = [
        (error, "" if trace.raised else line)
        for line in message
        if (error := error_of(line, trace.frames)) and error.cause != OWN_ERROR
    ]
    best = pairs[0] if pairs else None
    for error, line in pairs:
        if best and best[0].cause in error.explains:
            best = error, line
    return best


def _fatal(lines: Sequence[Line], at: int, found: list[Event]) -> int:
    """Add what faulthandler or libstdc++ says at the end of a process, and return the index after it."""
    end, where = at + 1, None
    said = [lines[at][1].strip()]
    for index in range(at + 1, min(at + 60, len(lines))):
        text = lines[index][1]
        if match := _FRAME.match(text):
            where = where or _where([match])
        elif re.match(r"^\s+what\(\): ", text):
            said.append(text.strip())
        elif text.strip() and not log_words("of_a_fatal_error").match(text):
            break
        end = index + 1
    known = filter(None, map(error_of, said))
    # The words of the exception say more than that it was one; unknown ones are the program's.
    error = min(
        (*known, error_named(OWN_ERROR if said[1:] else "aborted")),
        key=lambda each: (each.cause == "aborted", each.cause == OWN_ERROR),
    )
    last = lines[end - 1][0]
    # It came when the interpreter had ended, or in a thread that is not Python's.
    inner = any("<no Python frame>" in text for _, text in lines[at:end])
    found.append(Event(last, tuple(said), error, True, where, inner=inner, start=lines[at][0], named_at=last))
    return end


def _where(frames: Sequence[re.Match[str] | None]) -> str | None:
    """Return FILE:LINE of the last frame that is the person's own code and not a library's."""
    own = [match for match in frames if match and not log_words("library_files").search(match[1])]
    return f"{own[-1][1]}:{own[-1][2]}" if own else None


def refined(event: Event, among: Iterable[Event]) -> Event:
    """Return the event with the more exact error that others of its rank tell, and with their lines."""
    for other in among:
        if event.error.cause in other.error.explains and not other.caught and _explains(event, other):
            lines = tuple(dict.fromkeys((*event.lines[:1], *other.lines, *event.lines[1:])))
            accused = other.accused or (None if other.error.shared else event.accused)
            return event._replace(
                error=other.error, lines=lines, where=event.where or other.where, accused=accused
            )
    return event


def _explains(event: Event, other: Event) -> bool:
    """Whether an event is of the same process as another, or as sure, and near enough to explain it.

    Without labels each exception that nothing caught is of another process. A line explains an exception of
    the program only shortly before its end; what a child writes after it follows from it.
    """
    same = other.rank == event.rank and (event.rank is not None or other.inner or not other.traced)
    traced = other.traced and not (other.inner and other.at > event.at)
    near = event.error.cause != OWN_ERROR or traced or 0 <= event.at - other.at <= 12
    return near and (same or other.error.follows <= event.error.follows)
