"""Errors that a program wrote only into its own log files, and whose files these are."""

import re
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.failures import known_errors as known
from hpclaunch.failures.failed_ranks import FAULTS, failed_ranks, ranks_named
from hpclaunch.failures.known_errors import error_of, log_words
from hpclaunch.failures.log_events import Event, Line, events, refined
from hpclaunch.failures.rank_labels import by_rank
from hpclaunch.failures.read_failure import FailureLog, Verdict, missed, verdict, warns

_MOST_FILES = 400  # as many as looks.sh names; where there may be more, no name tells a rank
_NOT_WHY = (*known.WAITED, *known.ABORTED_ITSELF, known.RANK_ENDED, known.RANKS_DIFFER)


def verdict_of_all(log: FailureLog, *, failed: bool, ranks: int = 0, nodes: int = 1) -> Verdict:
    """Return why a job failed, by the program's own files where nothing else tells it; see `verdict`."""
    found = verdict(log, failed=failed, ranks=ranks, nodes=nodes)
    return _with_files(found, log) if failed and not tells_why(found) else found


def tells_why(found: Verdict) -> bool:
    """Return whether a verdict has a rank's own error, not its end alone, or an error that follows."""
    error, code = found.error, found.failed.exit_code if found.failed else None
    if code in (*FAULTS, 128 + signal.SIGKILL):
        return True  # it did not end by an exception
    if error is None or error.follows or error.cause in _NOT_WHY or missed(found.lines):
        return False
    return bool(found.where) or _says_an_error(found)


def _says_an_error(found: Verdict) -> bool:
    own = {*found.lines} - {found.failed.line if found.failed else ""}
    return any(error_of(line) or warns(line) for line in own)


def _with_files(found: Verdict, log: FailureLog) -> Verdict:
    """Return the verdict with the error with which files end: of a rank that it names, else of any."""
    named, more = ranks_named(found.rank or found.candidates), found.lines * bool(missed(found.lines))
    chosen = _chosen(log.files, named)
    whose = {event.rank or "" for event in chosen} - {""}
    if not chosen or (more and not whose & named):
        return found
    # A launcher's report alone, of another rank, does not tell which of the two failed first.
    whose |= set() if whose & named or _says_an_error(found) else named
    return _of_files(chosen, whose, more, log)


def _of_files(found: Sequence[Event], ranks: Set[str], more: tuple[str, ...], log: FailureLog) -> Verdict:
    reports = failed_ranks(log.ranks)
    rank = next(iter(ranks)) if len(ranks) == 1 else ""
    first, lines = found[0], found[0].lines[:3]
    return Verdict(
        rank=rank or None,
        failed=next((each for each in reports if rank in ranks_named(each.rank)), None),
        error=first.error,
        lines=lines + more,
        where=first.where,
        ranks_alike=len({event.rank for event in found if event.lines[0] == lines[0]} - {None}),
        candidates=format_cpu_list(map(int, ranks)) * (not rank) or None,
        file=first.process,
        file_lines=len(lines),
    )


def _chosen(files: Iterable[Event], named: Set[str]) -> list[Event]:
    """Return the errors of named ranks, else of known ones, else all, if of one cause.

    A line alone, of a rank that is not named, has to say that its process ends.
    """
    fatal = log_words("fatal").search
    found = [event for event in files if event.traced or event.rank in named or fatal(event.lines[0])]
    orders = [(event.rank not in named, event.rank is None) for event in found]
    chosen = [event for event, order in zip(found, orders, strict=True) if order == min(orders)]
    return chosen * (len({event.error.cause for event in chosen if not event.rank}) < 2)


def errors_of_files(texts: Mapping[str, Sequence[str]], *, ranks: int, nodes: int) -> tuple[Event, ...]:
    """Return the errors with which files end, each with its file, and its rank where that leaves no doubt.

    ``texts``: the ends of files, by their paths in the working folder; of those without an error no lines.
    """
    told = ranks_of_names(texts, ranks, nodes) if len(texts) < _MOST_FILES else {}
    found = {name: event for name, lines in texts.items() if (event := last_error(lines))}
    whose = {name: _rank(event, told.get(name), texts[name], ranks) for name, event in found.items()}
    return tuple(event._replace(process=name, rank=whose[name]) for name, event in found.items())


def _rank(event: Event, of_name: str | None, lines: Sequence[str], ranks: int) -> str | None:
    """Return the rank that an error's words accuse, or that of its file's name, unless others disagree.

    Of an exception that may only have lost another rank, or waited for it, the name tells nothing.
    """
    accused = {event.accused} & {*map(str, range(ranks))}
    own = accused or {None if log_words("may_follow").search(event.lines[0]) else of_name}
    labels = {label for label, _ in by_rank(lines) if label and label.isdigit()} - {of_name}
    others = {*labels, None if missed(event.lines) else of_name} - {None, *own}
    return None if others else own.pop()


def ranks_of_names(names: Collection[str], ranks: int, nodes: int) -> dict[str, str]:
    """Return file -> the rank whose file it is, where its name and those of like names leave no doubt."""
    families: dict[tuple[str, str], dict[str, int]] = {}
    for name in names:
        for before, after, number in _numbers(name):
            families.setdefault((before, after), {})[name] = number
    told: dict[str, set[int]] = {}
    for (before, _), numbers in families.items():
        of_ranks = _counts_ranks(before, {*numbers.values()}, ranks, nodes)
        for name in numbers if of_ranks else ():
            told.setdefault(name, set()).add(numbers[name])
    return {name: str(*own) for name, own in told.items() if len(own) == 1}


def _numbers(name: str) -> list[tuple[str, str, int]]:
    """Return a name's numbers that follow the word rank, or all, with the texts before and after each."""
    numbers = re.finditer(r"(?<!\d)\d{1,7}(?!\d)", name)
    found = [(name[: each.start()], name[each.end() :], int(each[0])) for each in numbers]
    of_ranks = (each for each in found if log_words("before_a_rank").search(each[0]))
    return [(re.sub(r"\d", "", a), re.sub(r"\d", "", b), number) for a, b, number in of_ranks] or found


def _counts_ranks(before: str, numbers: Set[int], ranks: int, nodes: int) -> bool:
    """Whether numbers in names that are alike but for them are those of ranks: none is too large.

    They follow the word rank, or are those of all ranks from 0 on; or some of those on one node, where they
    follow no word that may count anything else.
    """
    if max(numbers) >= ranks or log_words("before_a_rank").search(before):
        return max(numbers) < ranks
    some = nodes == 1 and 0 in numbers and not log_words("before_one_of_some").search(before)
    counts = len(numbers) > 1 and (some or len(numbers) == ranks)
    return counts and not log_words("before_another_number").search(before)


def last_error(texts: Sequence[str]) -> Event | None:
    """Return the error with which a file ends; None: it has none, or its program went on, or only waited."""
    lines = [(place, text) for place, (_, text) in enumerate(by_rank(texts))]
    found = events(lines)
    last = _last_usual(lines, found)
    ends = [event for event in found if event.named_at > last and not _is_caught(event, lines)]
    first = min(ends, key=lambda event: (event.error.follows, not event.traced, event.at), default=None)
    return refined(first, found) if first and not ends[0].error.follows else None


def _last_usual(lines: Sequence[Line], found: Iterable[Event]) -> int:
    """Return the place of the last line with which a program went on: one that is of no error.

    In an exception's message those that begin as lines elsewhere are a logger's.
    """
    told = {place for event in found for place in range(event.start, event.at + 1)}
    free = [(place, text.strip()) for place, text in lines if place not in told]
    begun = {_begin(text) for _, text in free}
    loggers = (line for line in lines if _begin(line[1]) in begun)
    return max((place for place, text in (*free, *loggers) if _usual(text)), default=-1)


def _begin(text: str) -> str:
    return re.sub(r"\d", "", text.partition(" ")[0])


def _is_caught(event: Event, lines: Sequence[Line]) -> bool:
    """Whether an exception is announced by a warning, or words that it is of no account, or of a signal."""
    before = "".join(text for _, text in lines[max(0, event.start - 1) : event.start])
    warned = event.traced and log_words("harmless").search(before)
    ended = any(map(log_words("ended_by_a_signal").search, event.lines))
    return event.caught or bool(warned) or ended or event.error.cause in known.ABORTED_ITSELF


def _usual(text: str) -> bool:
    if log_words("of_a_report").search(text) or log_words("leaves").search(text):
        return False
    return bool(log_words("goes_on").search(text)) or not (warns(text) or error_of(text))
