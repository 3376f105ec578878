"""Which error of which rank ended a job: the words of ranks, launcher and scheduler, taken together."""

import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import chain, filterfalse, groupby, starmap, takewhile
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hpclaunch.amounts import grouped
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.failures import known_errors as known
from hpclaunch.failures.failed_ranks import (
    FAULTS,
    OUTSIDE,
    FailedRank,
    failed_ranks,
    first_failed_rank,
    own_ends,
    ranks_named,
)
from hpclaunch.failures.known_errors import KnownError, error_named, error_of, launchers_own, log_words
from hpclaunch.failures.log_events import Event, Line, events, harmless, matches, odd_ones, rank_told, refined
from hpclaunch.failures.rank_labels import by_rank, with_labels


class FailureLog(NamedTuple):
    """Texts that a job's last run has left about a failure: in its log, and in the output of its ranks."""

    ranks: str = ""
    """The launcher's lines about failed ranks, the first ones."""
    lines: tuple[str, ...] = ()
    """The log: the lines that may tell of an error, with those before them, and its end."""
    stderr: Mapping[str, tuple[str, ...]] = {}
    """Rank -> the end of what it has written to stderr itself."""
    stdout: Mapping[str, tuple[str, ...]] = {}
    """Rank -> the end of what it has written to stdout."""
    ends: str = ""
    """The ends of ranks in the order of their times, as their shells noted them, also with exit code 0."""
    files: tuple[Event, ...] = ()
    """The errors with which log files of the program itself end; ``process`` is the file."""


class Verdict(NamedTuple):
    """Why a job failed."""

    rank: str | None = None
    """The rank that failed first, before the end also several, ``0-3,7``; None: the log does not tell it."""
    failed: FailedRank | None = None
    """The launcher's report about it."""
    error: KnownError | None = None
    lines: tuple[str, ...] = ()
    where: str | None = None
    """File and line of the person's own program."""
    ranks_alike: int = 0
    """How many ranks wrote the same error."""
    stderr_rank: str | None = None
    """The rank in whose stderr the lines stand; None: in the log."""
    candidates: str | None = None
    """The ranks of which any may have failed first, where that is all that the log tells."""
    file: str | None = None
    """The program's own file in which the first lines stand, below its working folder."""
    file_lines: int = 0


_LINES_SHOWN = 3
_SIGKILL = 128 + signal.SIGKILL
_CHOSEN = range(1, 126)
"""Exit codes with which a program ends itself, and not a signal or a shell that did not find it."""
_OF_ANOTHER = (known.RANK_ENDED, *known.WAITED)


def verdict(log: FailureLog, *, failed: bool = False, ranks: int = 0, nodes: int = 1) -> Verdict:
    """Return why a job failed, as far as its log and the stderr of its ranks tell.

    ``failed``: that it failed is known; else an error after which the program went on says nothing.
    ``ranks``, ``nodes``: how many it had; 0 ranks where that is not known.
    """
    if nodes > 1:  # torchrun's numbers within one of them tell no rank
        log = log._replace(
            lines=tuple(log_words("label_within_a_node").sub(r"\1local", x) for x in log.lines)
        )
    log = _without_times(log)
    log = log._replace(lines=with_labels(log.lines, ranks))
    last = _last_attempt(log)
    found = _of_log(last, failed=failed, ranks=ranks, nodes=nodes)
    told = found.error and (found.rank or not found.error.follows)
    return found if told or last is log else _of_log(log, failed=failed, ranks=ranks, nodes=nodes)


def _of_log(log: FailureLog, *, failed: bool, ranks: int, nodes: int) -> Verdict:
    """Return why a job failed, of a log whose labels are known; see `verdict`."""
    reports = _reports(log, failed, nodes)
    said = _said(log, reports, failed)
    after = _followers(said)
    first = _first(reports, after)
    said = _without_later_kills(said, first, log.lines)
    said = _with_caught(said, first, reports, log.lines, ranks)
    said = _without_limit_of_waiting(said, log.lines)
    found = [*said, *_silent(reports, first)]
    best = _decisive(found, first, failed, several=ranks > 1)
    if silent := _silent_rank(reports, found, best, log):
        return _of_silent(silent, log, best)
    if best is None:
        return _of_unknown(log) if failed else Verdict()
    if best.rank is None:  # not of those that wrote something else
        own = ((each.rank, None if each.error.accuses else each.accused) for each in said)
        first = _first(reports, after.union(*own))
    of_rank = [event for event in found if _of_its_process(event, best)]
    best = _with_words_before(refined(best, of_rank), log.lines)
    early = _left_before(best, log.ends)
    best = _left_early(best, early, log) if early else _with_absent(best, found, reports, ranks, log)
    return _as_far_as_told(_of_event(best, of_rank, found, first, reports), best, found, reports)


def _of_its_process(event: Event, best: Event) -> bool:
    """Whether an event may be of the rank that counts, or tells what explains its end without words."""
    reports = event.error.shared and event.error.cause not in known.WAITED and not best.lines
    return reports or len({None, event.rank, best.rank}) < 3


def _as_far_as_told(verdict: Verdict, best: Event, found: Sequence[Event], reports: str) -> Verdict:
    """Return the verdict without a rank where another is as likely, or where it merely reports."""
    named = ranks_named(verdict.rank)
    if best.error.accuses and best.accused:
        return _only(_accused(best, named, found), verdict)
    # Where other ranks may have ended before the one of which they write, who ended first tells nothing.
    early = best.rank is None and any(map(log_words("told_before_its_end").search, map(_words, found)))
    if not best.accused and (best.error.shared or early):
        return verdict._replace(rank=None, failed=None)
    return _only(_likely(best, named, found, reports), verdict) if named else verdict


def _accused(best: Event, named: frozenset[str], found: Iterable[Event]) -> Set[str]:
    """Return the ranks that errors of one kind name; of pairs those in all, which are the named ones."""
    accused = {*(each.accused or best.accused or "" for each in _same(best, found))}
    return named if "," in "".join(accused) else named | accused


def _only(likely: Set[str], verdict: Verdict) -> Verdict:
    """Return the verdict with the one likely rank; of several all are candidates, and none is named."""
    if len(likely) == 1:
        return verdict._replace(rank=next(iter(likely)))
    reported = ranks_named(verdict.failed.rank if verdict.failed else None)
    failed = verdict.failed if likely <= reported and bool(likely) == bool(reported) else None
    return verdict._replace(rank=None, candidates=format_cpu_list(map(int, likely)) or None, failed=failed)


def _likely(best: Event, named: frozenset[str], found: Sequence[Event], reports: str) -> Set[str]:
    """Return the ranks of which any may have failed first: the named ones, and those that ended alike."""
    alike = _same(best, found)
    nameless = [each for each in alike if not (each.rank or each.accused)]
    if not best.lines or len({each.process or each.at for each in nameless}) > 1:
        return _reported_alike(named, reports, exceptions=any(each.traced for each in nameless))
    alike += _rivals(best, found, reports)
    return named.union(*map(ranks_named, map(attrgetter("accused" if best.accused else "rank"), alike)))


def _rivals(best: Event, found: Iterable[Event], reports: str) -> Iterator[Event]:
    """Yield other ranks' exceptions, where the one that counts is of a rank that ended as they did."""
    ended = [ranks_named(each.rank) for each in failed_ranks(reports) if each.exit_code in _CHOSEN]
    itself = frozenset[str]().union(*ended)
    for event in found if best.rank in itself else ():
        equal = _weight(event) == _weight(best) and event.inner == best.inner and event.traced
        if equal and event.rank in itself and not log_words("may_follow").search(_words(event)):
            yield event


def _reported_alike(named: frozenset[str], reports: str, *, exceptions: bool) -> Set[str]:
    """Return the ranks that a launcher reports with the end of the named ones: not whose error is whose.

    ``exceptions``: several processes have one each, so that one report alone names only the first to end.
    """
    failed = failed_ranks(reports)
    code = next((each.exit_code for each in failed if named & ranks_named(each.rank)), None)
    likely = named.union(*(ranks_named(each.rank) for each in failed if each.exit_code == code))
    return likely if len(likely) > 1 or not exceptions else set()


def _without_times(log: FailureLog) -> FailureLog:
    """Return the log without the times that something has put before nearly all of its lines."""
    full = [line for line in log.lines if line.strip()]
    if sum(map(bool, map(log_words("times").match, full))) <= 0.9 * len(full):
        return log
    lines = tuple(log_words("times").sub("", line, count=1) for line in log.lines)
    noted = filter(log.ends.splitlines().__contains__, log.ranks.splitlines())
    ranks = (*noted, *filter(log_words("rank_lines").search, lines))
    return log._replace(lines=lines, ranks="\n".join(ranks))


def _last_attempt(log: FailureLog) -> FailureLog:
    """Return the log since torchrun last started its workers again, where it tells their end.

    The processes in its table at the end are those of the last attempt alone.
    """
    text = "\n".join(log.lines)
    last = log_words("process_in_the_table").findall(text)
    ends = [(end.end(), end[1] in last) for end in log_words("end_of_an_attempt").finditer(text)]
    first = next((at for at, of_last in ends if of_last), 0)
    start = max((at for at, _ in ends if at < first), default=0)
    ranks = "\n".join(filterfalse({*text[:start].splitlines()}.__contains__, log.ranks.splitlines()))
    return log._replace(lines=tuple(text[start:].splitlines()), ranks=ranks) if start else log


def _reports(log: FailureLog, failed: bool, nodes: int) -> str:
    """Return the reports of failed ranks that do not follow a limit by which Slurm ends all of them.

    Of a job that may be done those that nothing usual follows; of one on several nodes no local ranks.
    """
    limits = (place for place, line in enumerate(log.lines) if log_words("limits").search(line))
    usual = (place for place, (_, text) in enumerate(by_rank(log.lines)) if not failed and _went_on(text))
    others = {*log.lines[: max(usual, default=0)], *log.lines[next(limits, len(log.lines)) :]}
    others.update(_ended_by_srun(log.lines))
    ranks = log_words("ranks_of_a_node").sub("", log.ranks) if nodes > 1 else log.ranks
    return "\n".join(line for line in ranks.splitlines() if line not in others)


def _ended_by_srun(lines: Sequence[str]) -> Iterator[str]:
    """Return the reports of ranks that signals ended when srun had reported one and then ended all."""
    report, end = log_words("srun_reports_a_signal"), log_words("srun_ends_all")
    before = [*takewhile(lambda line: not end.search(line), lines)]
    first = len(before) < len(lines) and failed_ranks("\n".join(before))
    return filter(report.search, lines[len(before) :] if first else ())


def _with_words_before(event: Event, lines: Sequence[str]) -> Event:
    """Return a program's own end with what it wrote in the five lines before, above all what sounds wrong."""
    if not (event.error.cause in known.ABORTED_ITSELF or _only_a_number(event.lines)):
        return event
    said = _error_words(event.rank, lines[max(0, event.start - 5) : event.start])
    words = tuple(text for _, text in said)
    rank = event.rank or next((rank for rank, _ in said if rank), None)
    if words:
        return event._replace(error=error_named(known.OWN_ERROR), lines=words, rank=rank)
    return event if event.traced else event._replace(lines=event.lines + _said_before(event, lines))


def _said_before(event: Event, lines: Sequence[str]) -> tuple[str, ...]:
    """Return what names the rank that the end itself names, or the last words of its label."""
    before, rank = lines[max(0, event.start - 5) : event.start], rank_told("".join(event.lines[:1]))
    told = tuple(text for text in before if rank and rank_told(text) == rank)
    last = _said_once(lines[: event.start])
    return told or tuple(text for label, text in last if label in (None, event.rank))


def _of_event(
    event: Event, of_rank: Sequence[Event], found: Sequence[Event], first: FailedRank | None, ranks: str
) -> Verdict:
    rank = _rank_of(event._replace(accused=_accused_by_all(event, found)), first)
    reported = first if first and rank == first.rank else _reported(ranks, rank)
    launchers = (reported.line,) if reported else ()
    places = (other.where for other in (event, *of_rank) if other.error is event.error)
    return Verdict(
        rank=rank,
        failed=reported,
        error=event.error,
        lines=_shown(event, of_rank, launchers),
        where=next(filter(None, places), None),
        ranks_alike=len({other.rank or other.process for other in _same(event, found)} - {None}),
        stderr_rank=event.rank if event.said_by_rank else None,
    )


def _accused_by_all(event: Event, found: Iterable[Event]) -> str | None:
    """Return the ranks that an error names, or that all lines of its kind do: of pairs the one in all."""
    alike = (other.accused for other in found if other.error.cause == event.error.cause)
    pairs = [ranks_named(accused) for accused in alike if accused]
    unknown = event.accused or not (event.rank or event.process)
    in_all = frozenset.intersection(*pairs) if unknown and pairs else frozenset()
    return ",".join(sorted(in_all)) or event.accused


def _with_absent(best: Event, found: Sequence[Event], launchers: str, ranks: int, log: FailureLog) -> Event:
    """Return the event with the rank that all others write of, where its error accuses none."""
    itself = (failed for failed in failed_ranks(launchers) if failed.exit_code not in OUTSIDE)
    reported = frozenset[str]().union(*(ranks_named(failed.rank) for failed in itself))
    absent = None if best.accused else _absent(best, found, reported, ranks)
    if absent and best.error.follows == known.CERTAINLY:
        return _left_early(best, absent, log)
    if best.error.exit_codes and not any((absent, reported, best.rank, best.process)):
        absent = _fell_silent(log.lines, ranks)
    return best._replace(accused=best.accused or absent)


def _left_early(event: Event, rank: str, log: FailureLog) -> Event:
    """Return the event with the rank's own words, if only a warning, or the code that a launcher tells."""
    kept = [*log.stderr.get(rank, ()), *log.stdout.get(rank, ())]
    own = kept or [text for label, text in by_rank(log.lines) if label == rank]
    said = map(itemgetter(1), () if kept else _error_words(rank, log.lines))
    code = filter(log_words("code_of_no_exception").search, log.lines)
    last = [*said] or [*filter(warns, own)][-1:] or [*code][:1] or kept[-1:]
    error = error_named(known.OWN_ERROR if last else known.RANKS_DIFFER)
    return event._replace(accused=rank, error=error, lines=(*map(str.strip, last),) or event.lines)


def warns(text: str) -> bool:
    """Return whether a line has words that errors have."""
    return bool(log_words("any_error").search(text)) and not log_words("no_error").search(text)


def _absent(best: Event, found: Sequence[Event], reported: Set[str], ranks: int) -> str | None:
    """Return the one rank that all others write of: they lost it, or waited for it; None: that is not known.

    It wrote no error itself, or one without a label. One whose connection all lost must have left too early
    with exit code 0, so that no launcher reports it; one for which they waited is ended with them, and of two
    both may have waited.
    """
    left = set[str]()
    if best.error.cause == known.RANK_ENDED:
        left = _without_words(found, ranks) - reported
    elif best.error.cause in known.WAITED and ranks > 2:
        left = _without_words(found, ranks) or _elsewhere(found)
    elif not (best.rank or best.process or reported):
        left = _without_words(filter(lambda event: event.error.cause in _OF_ANOTHER, found), ranks)
    return left.pop() if len(left) == 1 else None


def _fell_silent(lines: Sequence[str], ranks: int) -> str | None:
    """Return the rank that lacks the last words of all others, and whose own last words all have."""
    words: dict[str, list[str]] = {str(rank): [""] for rank in range(ranks)}
    for label, text in by_rank(lines):
        if label in words and text.strip():
            words[label].append(_alike(text))
    last = {label: said[-1] for label, said in words.items()}
    odd, *others = *odd_ones(last), ""
    missed = {*last.values()} - {*words.get(odd, ())}
    alone = len(others) == len(missed) == 1 and all(last[odd] in said for said in words.values())
    return odd if alone else None


def _elsewhere(found: Iterable[Event]) -> set[str]:
    """Return the ranks that wait in a collective in which no other rank is, as NCCL's watchdogs tell it."""
    told = {
        event.rank: match[0]
        for event in found
        if event.rank and (match := log_words("work_of_a_watchdog").search(" ".join(event.lines)))
    }
    return odd_ones(told)


def _without_words(found: Iterable[Event], ranks: int) -> set[str]:
    """Return the ranks that wrote no error; none where it is not known who wrote one, or where none did."""
    said = (event for event in found if event.lines and not launchers_own(event.lines[0]))
    told = {event.rank for event in said if event.rank or event.error.cause not in _OF_ANOTHER}
    return set() if None in told or not told else {str(rank) for rank in range(ranks)} - told


def _first(ranks: str, after: Set[str | None]) -> FailedRank | None:
    """Return the rank that the launcher names as the first to fail; None where all of them were ended."""
    first = first_failed_rank(ranks, after)
    if first is None or first.exit_code in OUTSIDE:
        return None
    own = ranks_named(first.rank) - after
    return first._replace(rank=format_cpu_list(map(int, own))) if own else first


def _of_silent(rank: FailedRank, log: FailureLog, best: Event | None) -> Verdict:
    """Return the verdict of a rank that wrote no known error: its last words, if there are any.

    An exit code that it chose is its own error also without words. Where ``best`` is of other ranks, which
    write of its end, or was caught, the launcher's line says more.
    """
    said = log.stderr.get(str(rank.rank), ())
    own = tuple(line.strip() for line in said if _ordinary(line))[-_LINES_SHOWN:]
    last = own or _last_words(rank, _after_what_was_caught(best, log.lines))
    last = last or (rank.line,) * bool(best or rank.exit_code is None)
    error = error_named(known.OWN_ERROR) if last or rank.exit_code in _CHOSEN else None
    told = Verdict(rank.rank, rank, error, last, stderr_rank=rank.rank if own else None)
    return _only(missed(last) or ranks_named(rank.rank), told)


def missed(lines: Iterable[str]) -> Set[str]:
    """Return the ranks that another one misses, by its lines."""
    return {match[1] for line in lines for match in matches("told_missing", line)}


def _after_what_was_caught(event: Event | None, lines: Sequence[str]) -> Sequence[str]:
    return lines[event.at + 1 :] if event and event.caught else lines


def _last_words(rank: FailedRank, lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last words like an error's; of a rank that chose its exit code, its last ones."""
    if said := _error_words(rank.rank, lines):
        return tuple(text for _, text in said)
    if rank.exit_code not in _CHOSEN:
        return ()
    named = ranks_named(rank.rank)
    own = [text.strip() for label, text in by_rank(lines) if label in named and _ordinary(text)]
    return tuple(own[-_LINES_SHOWN:] or (text for label, text in _said_once(lines) if label is None))


def _said_once(lines: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return the last words before a launcher's first report, of a process whose words no other one wrote.

    Words of a good end are none, and where all lines differ nothing tells processes apart.
    """
    reports, aborted = log_words("rank_lines").search, log_words("step_ended_first").search
    before = [*takewhile(lambda line: aborted(line) or not reports(line), lines)]
    said = [(label, text.strip()) for label, text in by_rank(before) if _ordinary(text)]
    counts = Counter(_alike(text) for _, text in said)
    once = [*takewhile(lambda each: counts[_alike(each[1])] == 1, reversed(said))]
    if len(once) == len(said) or log_words("ends_well").search("\n".join(text for _, text in once)):
        return []
    return [each for each in once[_LINES_SHOWN - 1 :: -1] if each[0] == once[0][0]]


def _of_unknown(log: FailureLog) -> Verdict:
    """Return the verdict of a job that failed, where neither a launcher nor a known error tells more.

    Without words that errors have, a rank left after words that it alone wrote; rank 0 writes for all.
    """
    said = _error_words(None, log.lines)
    last = said or _said_once(log.lines)
    error = error_named(known.OWN_ERROR) if last else None
    ranks = {rank for rank, _ in last if rank and (said or re.fullmatch("[1-9][0-9]*", rank))}
    return _only(ranks, Verdict(error=error, lines=tuple(text for _, text in last)))


def _error_words(rank: str | None, lines: Sequence[str]) -> list[tuple[str | None, str]]:
    """Return the last lines with words that errors have, each with its rank, of no other rank."""
    named = {None, *ranks_named(rank)}
    said = [(label, text.strip()) for label, text in by_rank(lines) if rank is None or label in named]
    last = [each for each in said if _sounds_like_an_error(each[1])][-_LINES_SHOWN:]
    return [(label if (label or "").isdigit() else rank_told(text), text) for label, text in last]


def _sounds_like_an_error(line: str) -> bool:
    error = error_of(line)
    told = error and (error.follows == known.CERTAINLY or error.cause in known.ABORTED_ITSELF)
    return warns(line) and not (told or harmless(line) or launchers_own(line))


def _silent_rank(
    reports: str, found: Sequence[Event], best: Event | None, log: FailureLog
) -> FailedRank | None:
    """Return the first rank that a launcher reports as failed and that writes not of another's end.

    None where an error tells more. Of ranks whose ends are known it is the first, if that wrote no error.
    """
    if silent := _ended_first(log, found):
        return silent
    if best and not best.caught and (best.error.follows != known.CERTAINLY or best.accused):
        return None
    after = _followers(found)
    failed = (rank for rank in own_ends(reports) if rank.exit_code not in OUTSIDE)
    return next((rank for rank in failed if not ranks_named(rank.rank) & after), None)


def _ended_first(log: FailureLog, found: Iterable[Event]) -> FailedRank | None:
    """Return the first rank that failed, by the times of all ends, where it wrote nothing of an error."""
    first = next((end for end in failed_ranks(log.ends) if end.exit_code not in (0, *OUTSIDE)), None)
    rank = first.rank or "" if first else ""
    own = (*log.stderr.get(rank, ()), *log.stdout.get(rank, ()))
    events = (event.lines for event in found if event.rank in (None, rank))
    return None if any(events) or any(map(_sounds_like_an_error, own)) else first


def _left_before(best: Event, ends: str) -> str | None:
    """Return the one rank that was done when the first one failed, where its error is of another's end."""
    until = takewhile(lambda end: end.exit_code in (0, *OUTSIDE), failed_ranks(ends))
    done = [end.rank for end in until if end.exit_code == 0]
    return done[0] if len(done) == 1 and best.error.cause in _OF_ANOTHER else None


def _followers(found: Iterable[Event]) -> set[str | None]:
    """Return the ranks that write of another one's end, and no other error."""
    follows = {(event.rank, event.error.follows) for event in found if event.lines and not event.caught}
    return {rank for rank, how in follows if how == known.CERTAINLY and (rank, 0) not in follows}


def _said(log: FailureLog, reports: str, failed: bool) -> list[Event]:
    """Return the events of the log and of the ranks' words, without what a launcher reports of a rank."""
    told = [(each.line, known.error_of_code(each.exit_code or 0)) for each in failed_ranks(reports)]
    said = _written(log, failed or bool(told))
    return [event for event in said if (event.lines[0], event.error) not in told]


def _written(log: FailureLog, failed: bool) -> list[Event]:
    """Return the events of the log and of the ranks' output; one that stands in both counts once."""
    of_stderr = chain.from_iterable(starmap(_marked, log.stderr.items()))
    own = [event._replace(said_by_rank=True) for event in of_stderr]
    own += chain.from_iterable(starmap(_marked, log.stdout.items()))
    # Of each rank, or label of a process; of neither: None.
    streams = grouped((rank, (place, text)) for place, (rank, text) in enumerate(by_rank(log.lines)))
    told = _ranks_of_processes(streams)
    found = [event for process, lines in streams.items() for event in _of_process(process, lines, told)]
    found = _without_gone_on(found, streams, failed)
    found = [event for event in found if not any(map(partial(_repeats, event), own))]
    placed = _placed(own, streams.values(), len(log.lines))
    return found + (placed if failed else [*chain.from_iterable(map(partial(_left, streams), placed))])


def _repeats(event: Event, own: Event) -> bool:
    """Whether an event of the log is that of a rank's words, alone or mixed with words of other ranks."""
    if own.said_by_rank:
        return not event.process and own.lines[0] == event.lines[0]
    return event.process in (None, own.rank) and own.lines[0][:200] in event.lines[0]  # long ones are cut


def _left(streams: Mapping[str | None, Sequence[Line]], event: Event) -> list[Event]:
    """Return an event of a rank's stderr, unless usual lines of the rank, or without a label, follow it."""
    return _uncaught([event], [*streams.get(None, ()), *streams.get(event.rank or "", ())])


def _without_gone_on(
    found: list[Event], streams: Mapping[str | None, Sequence[Line]], failed: bool
) -> list[Event]:
    """Return the events after which neither their label nor, of those without one, all labels go on."""
    if failed:
        return found
    labels = (lines for process, lines in streams.items() if process)
    went_on = min((_last_usual(lines, set()) for lines in labels), default=-1)
    of_labels = groupby(found, key=lambda event: event.process)
    left = [event for process, own in of_labels for event in _uncaught([*own], streams[process])]
    return [event for event in _unmet(found, left) if event.process or event.at > went_on]


def _unmet(found: Iterable[Event], left: Sequence[Event]) -> list[Event]:
    """Return the events that are left, without exceptions that a label met and went on, or met twice."""
    traced = [event for event in found if event.process and event.traced and _counts_alone(event)]
    kinds, last = Counter(map(_kind, traced)), {*map(_kind, left)}
    met = {kind[1] for kind, times in kinds.items() if times > 1 or kind not in last}
    return [event for event in left if _words(event) not in met]


def _kind(event: Event) -> tuple[str | None, str]:
    return event.process, _words(event)


def _of_process(process: str | None, lines: Sequence[Line], told: Mapping[str, str]) -> list[Event]:
    said, heads = [event._replace(process=process) for event in events(lines)], dict(lines)
    texts = (process or "\n".join((heads[event.start], *event.lines)) for event in said)
    return [event._replace(rank=_rank(text, told)) for event, text in zip(said, texts, strict=True)]


def _rank(label: str, told: Mapping[str, str]) -> str | None:
    """Return the rank that a label is, or that of the process that it, or a line of NCCL's, names."""
    own = next((match[1] for match in matches("writers", label)), None)
    return label if label.isdigit() else next((told[name] for name in _names(label) if name in told), own)


def _names(label: str) -> list[str]:
    """Return a label, and the numbers of processes in it."""
    return [label, *(pid for match in log_words("pid").finditer(label) for pid in match.groups() if pid)]


def _ranks_of_processes(streams: Mapping[str | None, Sequence[Line]]) -> dict[str, str]:
    """Return label or number of a process -> rank, where it or its framework tells one, and no other."""
    told: dict[str, set[str]] = {}
    for process, lines in streams.items():
        for match in (match for _, text in lines for match in matches("ranks_of_processes", text)):
            told.setdefault(match.groupdict()["pid"] or process or "", set()).add(match["rank"])
    sure = {name: ranks.pop() for name, ranks in told.items() if name and len(ranks) == 1}
    return {**_ranks_in_words(streams), **sure}


def _ranks_in_words(streams: Mapping[str | None, Sequence[Line]]) -> dict[str, str]:
    """Return number of each process -> the one rank in its words, where each has another one."""
    found = dict[str, set[str]]()
    for process, text in ((process or "", text) for process, lines in streams.items() for _, text in lines):
        for name in _names(process)[1:] or _names(text)[1:]:
            found.setdefault(name, set()).update(log_words("ranks_in_words").findall(text))
    told = {name: next(iter(ranks)) for name, ranks in found.items() if len(ranks) == 1}
    return told if 1 < len(set().union(*found.values())) == len(told) else {}


def _uncaught(found: Iterable[Event], lines: Sequence[Line]) -> list[Event]:
    """Return the events after which nothing usual follows, of a log that does not tell that its job failed.

    Of a message of several lines all but the first may be the program's next words.
    """
    last = _last_usual(lines, {event.named_at for event in found})
    # A label's own usual line may stand in its traceback, too; in other lines that may be another rank's.
    begun = ((event, event.start if event.process else event.named_at) for event in found)
    return [event for event, at in begun if _counts_alone(event) and last < at]


def _counts_alone(event: Event) -> bool:
    """Whether an event tells of a failure where nothing else does.

    That another rank ended says nothing, where none did, and a line alone does not, since shell scripts go on
    after most errors.
    """
    told = (_certain(event) and not event.inner) or _of_limit(event)
    return told and not event.caught and event.error.follows != known.CERTAINLY


def _last_usual(lines: Sequence[Line], told: Set[int]) -> int:
    """Return the place of the last line that shows that the program went on, of those that tell no error."""
    return max((place for place, text in lines if place not in told and _went_on(text)), default=-1)


def _went_on(line: str) -> bool:
    return _ordinary(line) or bool(log_words("goes_on").search(line))


def _placed(own: Sequence[Event], streams: Iterable[Sequence[Line]], last: int) -> list[Event]:
    """Return the events of the ranks' words with their place in the log, where they stand in it, too."""
    places = {text.strip(): place for lines in streams for place, text in reversed(lines)}
    found = [(event, places.get(event.lines[0], last + event.at)) for event in own]
    return [event._replace(at=place, named_at=place) for event, place in found]


def _marked(rank: str, texts: Sequence[str]) -> list[Event]:
    """Return the events of a rank's words, and mark the tracebacks after which usual lines follow."""
    lines = [(place, text) for place, (_, text) in enumerate(by_rank(texts))]
    found = events(lines)
    last = _last_usual(lines, {event.at for event in found})
    caught = [event.caught or (event.traced and last > event.at) for event in found]
    return [each._replace(rank=rank, caught=own) for each, own in zip(found, caught, strict=True)]


def _ordinary(line: str) -> bool:
    """Whether a line shows that the program went on: one that is not of an error's report."""
    return not (log_words("of_a_report").search(line) or harmless(line) or launchers_own(line))


def _silent(ranks: str, first: FailedRank | None) -> list[Event]:
    """Return an event for each rank whose exit code or signal alone tells how it ended.

    After the first that failed, its launcher ends the other ranks, by SIGKILL where SIGTERM does not; and
    Slurm ends all where one calls MPI_Abort.
    """
    found = list[Event]()
    for place, failed in enumerate(failed_ranks(ranks)):
        code = failed.exit_code or 0
        error = known.error_of_code(code)
        if error and not (error.cause == known.KILLED and _ended_by_another(first, ranks)):
            by_signal = code > 128 and not error.follows
            named: list[str | None] = [*sorted(ranks_named(failed.rank))]
            found += [Event(place, (), error, by_signal, rank=rank) for rank in named or [None]]
    return found


def _ended_by_another(first: FailedRank | None, ranks: str) -> bool:
    """Whether a rank that a kill ended was ended because of another one."""
    return first is not None and (first.exit_code != _SIGKILL or not own_ends(ranks))


def _without_later_kills(said: list[Event], first: FailedRank | None, lines: Sequence[str]) -> list[Event]:
    """Return the events without kills that stand after the report of a rank that ended otherwise."""
    if first is None or first.exit_code == _SIGKILL:
        return said
    told = next((place for place, line in enumerate(lines) if line.strip() == first.line), len(lines))
    return [event for event in said if event.error.cause != known.KILLED or event.at < told]


def _with_caught(
    said: list[Event], first: FailedRank | None, reports: str, lines: Sequence[str], ranks: int
) -> list[Event]:
    """Return the events, with exceptions as caught that are not of the rank that a launcher reports first.

    Python ends with exit code 1 by an exception that nothing caught, never by SIGKILL; after one it may meet
    a fault, but not where another rank ended with 1. Nor is it one where all ranks wrote before and after it.
    """
    code = first.exit_code if first else None
    ones = any(each.exit_code == 1 for each in failed_ranks(reports))
    others = code == _SIGKILL or (ones and code in FAULTS)
    together = _together(lines, ranks)
    since = min(map(itemgetter(1), together), default=len(lines))
    until = max(map(itemgetter(0), together), default=0)
    caught = [_unlabelled_exception(event) and (others or since < event.start < until) for event in said]
    return [event._replace(caught=event.caught or own) for event, own in zip(said, caught, strict=True)]


def _together(lines: Sequence[str], ranks: int) -> list[tuple[int, int]]:
    """Return the places where each rank wrote the same words with a number, with few others among them.

    Output that a rank buffered until it ended comes in one piece, and tells no time.
    """
    progress = log_words("progress").search
    steps = [(at, line) for at, line in enumerate(lines) if progress(line) and _went_on(line)]
    near = (
        [at for at, other in steps[number : number + 2 * ranks] if other == line][:ranks]
        for number, (_, line) in enumerate(steps)
    )
    return [(same[0], same[-1]) for same in near if 1 < ranks == len(same)]


def _unlabelled_exception(event: Event) -> bool:
    """Tell whether an event is an exception of Python whose rank nothing tells, and no result of a kill."""
    told = event.rank or event.process or event.error.follows or known.KILLED in event.error.explains
    return event.traced and event.start < event.named_at and not told


def _without_limit_of_waiting(said: list[Event], lines: Sequence[str]) -> list[Event]:
    """Return the events without the limit that ended a job which only waited since a rank's exception.

    That is so where nothing caught the exception, and no rank wrote a usual line between it and the limit.
    """
    limit = min((event.at for event in said if _of_limit(event)), default=0)
    last = max((event.at for event in said if event.at < limit and _ended_its_rank(event)), default=limit)
    usual = filter(_went_on, (text for _, text in by_rank(lines[last + 1 : limit])))
    return said if last == limit or any(usual) else [*filterfalse(_of_limit, said)]


def _ended_its_rank(event: Event) -> bool:
    """Tell whether an event is an exception of the program itself that nothing caught."""
    return event.traced and not (event.caught or event.inner or event.error.follows)


def _decisive(found: Sequence[Event], first: FailedRank | None, failed: bool, several: bool) -> Event | None:
    """Return the event that counts: of each rank its last one, of all ranks the first.

    Errors that follow from another rank's end come after all others, and lines after tracebacks. A limit that
    ends the job counts only where no rank had failed before. Of ``several`` ranks without labels each has one
    exception that nothing caught.
    """
    ended = {str(rank) for rank in ranks_named(first.rank)} if first else set()
    of_ranks: dict[str | int | None, list[Event]] = {}
    for event in found:
        if not (_of_limit(event) if first else event.caught and not failed):
            of_ranks.setdefault(_process(event, several), []).append(event)

    def late(event: Event) -> tuple[object, ...]:
        return *_weight(event), event.inner, not event.lines, -event.at

    def early(event: Event) -> tuple[object, ...]:
        stranger = event.rank not in ended and (bool(ended) or first is None)
        return *_weight(event), stranger and event.rank is not None, not event.lines, stranger, event.at

    return min((min(group, key=late) for group in of_ranks.values()), key=early, default=None)


def _process(event: Event, several: bool) -> str | int | None:
    """Return what tells the process of an event: its label, or that nothing caught it."""
    alone = several and event.traced and not event.inner
    return event.rank or event.process or (event.at if alone else None)


def _weight(event: Event) -> tuple[int, int, int, int]:
    unnamed = not event.traced and event.error.cause == known.OWN_ERROR
    return (event.caught, event.error.follows, not _certain(event), unnamed)


def _certain(event: Event) -> bool:
    """Whether more than a line of the log says it, or the scheduler."""
    return event.traced or any(re.search(known.SLURM_SAYS, line) for line in event.lines[:1])


def _of_limit(event: Event) -> bool:
    return event.error.cause in ("time limit", "preempted", "terminated")


def _rank_of(event: Event, first: FailedRank | None) -> str | None:
    """Return the rank that failed: the one that wrote the error, or all that the launcher names with it."""
    if event.accused or event.error.follows == known.CERTAINLY:
        return event.accused  # who writes of another's end is not at fault
    if event.rank is None:
        return first.rank if first and not _of_limit(event) else None
    if first and not event.lines and event.rank in ranks_named(first.rank):
        return first.rank
    return event.rank


def _reported(ranks: str, rank: str | None) -> FailedRank | None:
    return next((failed for failed in failed_ranks(ranks) if rank and rank in ranks_named(failed.rank)), None)


def _same(event: Event, found: Iterable[Event]) -> list[Event]:
    """Return the events with the same error; numbers in it may differ."""
    words = _words(event)
    return [other for other in found if other.lines and _words(other) == words]


def _words(event: Event) -> str:
    return _alike(event.lines[0]) if event.lines else ""


def _alike(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _only_a_number(lines: Sequence[str]) -> bool:
    return all(map(log_words("only_a_number").search, lines))


def _shown(event: Event, found: Iterable[Event], launchers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines that show an error; of several of one kind in a rank the first different ones.

    Those of the launcher where they hold no more than a number.
    """
    if event.lines and (event.traced or event.error.cause in (known.OWN_ERROR, known.ABORTED_ITSELF[0])):
        return event.lines[:_LINES_SHOWN]
    same = sorted((other.at, other.lines) for other in found if other.error is event.error)
    shown = tuple(dict.fromkeys(line for _, lines in same for line in lines))[:_LINES_SHOWN]
    return (launchers or shown) if _only_a_number(shown) else shown
