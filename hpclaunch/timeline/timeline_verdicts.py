"""Causes of a slow job, with evidence and remedy, from its timelines. The page docs/explanation/timelines.md
states the rules; the numbers are those of limits.yaml."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from hpclaunch.amounts import counted, rounded
from hpclaunch.errors import case_texts, note_text
from hpclaunch.package_data import package_constants
from hpclaunch.site.schema import AllreduceFigure
from hpclaunch.timeline.job_timeline import JobTimeline, Place, allreduce_gb_s, shares
from hpclaunch.timeline.late_ranks import (
    LEAST_STEPS,
    Lateness,
    common_noise,
    deviation,
    hidden_lateness,
    late_ranks,
    lateness_by_rank,
)
from hpclaunch.timeline.rank_trace import RankTrace
from hpclaunch.timeline.timeline_documents import Verdict

_TEXTS = "timeline/timeline_verdicts.yaml"
LIMIT = package_constants("timeline/limits.yaml", "verdicts")


def verdicts(
    job: JobTimeline, places: Mapping[int, Place], figures: Sequence[AllreduceFigure] = ()
) -> tuple[Verdict, ...]:
    """Return what slows the job down, what costs most per step first; one ``none`` if nothing was found.

    ``places``: where ranks ran, as far as it is known; ``figures``: bandwidths that the site gives.
    """
    # A job that hung or failed, whatever its steps cost before:
    ends = _mismatch(job) or _ended(job, places)
    if len(job.steady) < LEAST_STEPS:
        return ends or (_too_short(job),)
    found: list[tuple[float, Verdict]] = []
    late = late_ranks(job.waits, floor_ms(job))
    small = _small_tensors(job, late)
    for each in late:
        if not (small and _negotiates(job, each)):
            found.append((each.lost_ms, _straggler(job, each, places)))
    found += small
    for rule in (_hidden, _input, _negotiation):
        found += rule(job)
    found += _idle(job, found)
    found += _bandwidth(job, figures)
    ordered = [verdict for _, verdict in sorted(found, key=lambda pair: -pair[0])]
    ordered += _start(job)  # last: it is paid once, and everything else in each step
    return (*ends, *ordered) or (_nothing(job),)


def floor_ms(job: JobTimeline, of_cycles: int = LIMIT.floor_cycles) -> float:
    """Return by how much a rank must be late; ``of_cycles``: of Horovod, at least."""
    floor: float = max(LIMIT.floor_ms, LIMIT.floor_share * job.step_ms)
    usual: float = LIMIT.default_cycle_ms
    cycles = [trace.cycle_ms or usual for trace in job.traces.values() if trace.form == "horovod"]
    return max(floor, of_cycles * min(max(cycles), 5 * usual)) if cycles else floor


def shown_ms(milliseconds: float | None) -> str:
    """Return a time as people read it; ``-`` for None."""
    if milliseconds is None:
        return "-"
    if milliseconds >= 10_000:
        return f"{milliseconds / 1e3:.1f} s"
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"


def _verdict(case: str, **values: Any) -> Verdict:
    evidence, remedy = case_texts(_TEXTS, case, **values)
    return Verdict(kind=case.partition(":")[0], evidence=evidence, remedy=remedy)


def _straggler(job: JobTimeline, late: Lateness, places: Mapping[int, Place]) -> Verdict:
    assert late.rank is not None  # noqa: S101
    place = places.get(late.rank, Place())
    cause, remedy = _cause(job, late, late.rank)
    return _late("straggler: named", late, place, who=place.named(late.rank), cause=cause, remedy=remedy)


def _late(case: str, late: Lateness, place: Place, **values: Any) -> Verdict:
    counts = {"late_steps": late.late_steps, "steps": late.steps}
    text = shown_ms(late.late_ms)
    if late.interval_ms:
        text += f" (95 % of the bootstrap: {' to '.join(map(shown_ms, late.interval_ms))})"
    if late.grows_ms:
        text += f", growing from {' to '.join(map(shown_ms, late.grows_ms))},"
    if late.every:
        text += f", in each {late.every}th step (a checkpoint or an evaluation of this rank?),"
    found = _costs(case, late.late_ms, late.share, late.noise_ms, how_late=text, **counts, **values)
    return replace(found, rank=late.rank, node=place.node, gpu=place.gpu)


def _costs(case: str, ms: float, share: float, noise: float | None, **values: Any) -> Verdict:
    """Return the verdict on a cause that costs these milliseconds in this share of the steps."""
    return replace(
        _verdict(case, ms=shown_ms(ms), noise=shown_ms(noise), **values),
        share_of_steps=round(share, 4),
        late_ms=round(ms, 3),
        noise_ms=rounded(noise),
    )


def _cause(job: JobTimeline, late: Lateness, rank: int) -> tuple[str, str]:
    """Return in which phase the late rank spends its time, where the traces tell, and a remedy."""
    more: dict[str, float] = {}
    mine = job.columns.get(rank)
    others = [columns for other, columns in job.columns.items() if other != rank]
    if mine is not None and others and job.sees_computing:
        for phase in ("input", "computing", "rest"):
            more[phase] = median(mine[phase]) - median(median(columns[phase]) for columns in others)
    phase = max(more, key=lambda name: more[name], default="")
    if not phase or more[phase] < late.late_ms / 2:
        return "", case_texts(_TEXTS, "phases: unknown")
    doing, remedy = case_texts(_TEXTS, f"phases: {phase}")
    return f"; {shown_ms(more[phase])} of it {doing}", remedy


def _hidden(job: JobTimeline) -> list[tuple[float, Verdict]]:
    """Find a rank that is late while the response cache keeps its name out of the timeline."""
    if job.waits or list(job.traces) != [0] or not job.traces[0].sees_waiting or job.ranks < 2:
        return []
    waits = job.columns[0]["negotiating"]
    late = hidden_lateness(waits, floor_ms(job, LIMIT.hidden_cycles), job.ranks, job.step_ms)
    if late is None:
        return []
    return [(late.lost_ms, _late("straggler: not named", late, Place()))]


def _input(job: JobTimeline) -> list[tuple[float, Verdict]]:
    if not all(trace.sees_input for trace in job.traces.values()) or not job.columns:
        return []
    least = [min(values) for values in zip(*(each["input"] for each in job.columns.values()), strict=True)]
    slow = [value for value, time in zip(least, job.steady, strict=True) if value > LIMIT.input_share * time]
    if len(slow) < max(LEAST_STEPS, len(least) / 4):
        return []
    typical, share = median(slow), len(slow) / len(least)
    who = "every rank waits" if len(job.columns) > 1 else "the rank waits"
    values = {"who": who, "slow": len(slow), "steps": len(least), "step": shown_ms(job.step_ms)}
    return [(typical * share, _costs("input", typical, share, deviation(least), **values))]


def _negotiates(job: JobTimeline, late: Lateness) -> bool:
    """Whether the late rank is Horovod's coordinator, whose work grows with the number of tensors."""
    return late.rank == 0 and job.traces[next(iter(job.columns))].form == "horovod"


def _small_tensors(job: JobTimeline, late: Sequence[Lateness]) -> list[tuple[float, Verdict]]:
    """Find messages whose time is latency; with what they cost Horovod's rank 0, which negotiates for all."""
    rank = next(iter(job.columns))
    columns, trace = job.columns[rank], job.traces[rank]
    tensors, size = median(columns["tensors"]), sum(columns["bytes"])
    known = not any(sums.unknown for kind, sums in trace.collectives.kinds.items() if kind == "allreduce")
    each = size / max(sum(columns["tensors"]), 1)
    part = shares(job)
    spent = sum(part[name] or 0.0 for name in ("negotiating", "queueing", "copying", "moving"))
    if (
        tensors < LIMIT.small_tensors
        or not (known and 0 < each <= LIMIT.small_bytes)
        or spent < LIMIT.communication_share
    ):
        return []
    messages = max(median(columns["messages"]), 1.0)
    slow = [
        f"; rank 0, which negotiates for all ranks, comes {shown_ms(each.late_ms)} after the other ranks in "
        f"{each.late_steps} of {each.steps} steps"
        for each in late
        if _negotiates(job, each)
    ]
    case, ms = f"small-tensors: {'Horovod' if trace.form == 'horovod' else 'DDP'}", spent * job.step_ms
    values = {"tensors": tensors, "each": each, "messages": messages, "percent": 100 * spent}
    values["kilobytes"] = size / max(len(job.steady), 1) / 1e3
    noise = deviation(columns["communication"])
    return [(ms, _costs(case, ms, 1.0, noise, slow="".join(slow), **values))]


def _negotiation(job: JobTimeline) -> list[tuple[float, Verdict]]:
    if list(job.traces) != [0] or job.traces[0].form != "horovod":
        return []
    columns = job.columns[0]
    tensors, alone = median(columns["tensors"]), median(columns["requests"])
    part = shares(job)["negotiating"] or 0.0
    if (
        tensors < LIMIT.serial_tensors
        or alone < LIMIT.serial_share * tensors
        or part < LIMIT.communication_share
    ):
        return []
    ms, noise = part * job.step_ms, deviation(columns["negotiating"])
    values = {"alone": alone, "tensors": tensors, "percent": 100 * part}
    return [(ms, _costs("negotiation", ms, 1.0, noise, **values))]


def _idle(job: JobTimeline, found: Sequence[tuple[float, Verdict]]) -> list[tuple[float, Verdict]]:
    """Find time in which no rank does anything, in each step, or in pauses that no late rank explains."""
    typical = job.step_ms
    rest = [median(values) for values in zip(*(each["rest"] for each in job.columns.values()), strict=True)]
    if job.sees_computing:
        least = [min(values) for values in zip(*(each["rest"] for each in job.columns.values()), strict=True)]
        idle = [
            value for value, time in zip(least, job.steady, strict=True) if value > LIMIT.idle_share * time
        ]
        if len(idle) >= max(LEAST_STEPS, len(least) / 2):
            return [_idle_verdict(job, idle, least, "in a step, on every rank")]
    usual = median(rest)
    pauses = [
        value - usual
        for value, time in zip(rest, job.steady, strict=True)
        if time > LIMIT.pause_times * typical and value - usual > time / 2
    ]
    late = [each.share_of_steps or 0.0 for _, each in found if each.kind == "straggler"]
    explained = max(late, default=0.0) * len(rest)
    if len(pauses) >= LEAST_STEPS + explained and sum(pauses) > LIMIT.pause_share * sum(job.steady):
        return [_idle_verdict(job, pauses, rest, "more than usual between two steps")]
    return []


def _idle_verdict(
    job: JobTimeline, times: Sequence[float], every: Sequence[float], where: str
) -> tuple[float, Verdict]:
    nothing = "nothing is executed" if job.sees_computing else "nothing is communicated"
    values = {"times": len(times), "steps": len(every), "nothing": nothing, "where": where}
    found = _costs("idle", median(times), len(times) / len(every), deviation(every), **values)
    return sum(times) / len(every), found


def _bandwidth(job: JobTimeline, figures: Sequence[AllreduceFigure]) -> list[tuple[float, Verdict]]:
    measured = allreduce_gb_s(job)
    if measured is None or not figures:
        return []
    rate, message = measured
    figure = nearest_figure(figures, message)
    if message * LIMIT.comparable < figure.message_bytes or rate > LIMIT.slow_fabric * figure.bus_gb_s:
        return []
    without = figure.bus_gb_s_without_plugin
    hint = without is not None and rate < 2 * without
    values = {"megabytes": message / 1e6, "rate": rate, "site": figure.bus_gb_s}
    values |= {"gpus": figure.gpus, "nodes": figure.nodes}
    missing = f", and {without:g} GB/s where the fabric's plugin is missing" if hint else ""
    ms = (shares(job)["moving"] or 0.0) * job.step_ms * (1 - rate / figure.bus_gb_s)
    return [(ms, _costs("bandwidth", ms, 1.0, None, without=missing, **values))]


def nearest_figure(figures: Sequence[AllreduceFigure], message: float) -> AllreduceFigure:
    """Return the site's figure whose message has the most similar size."""
    return min(
        figures, key=lambda each: max(each.message_bytes, message) / max(min(each.message_bytes, message), 1)
    )


def _start(job: JobTimeline) -> list[Verdict]:
    rank, trace = next(iter(job.traces.items()))
    columns = trace.steps.columns
    if rank not in job.columns or not len(columns["start"]):
        return []
    # hvd.start_timeline() counts from hvd.init(), too: where nothing is recorded at first, that may be why.
    from_zero = trace.form == "runner" or (trace.steps.first or 0.0) < LIMIT.start_s * 1e6
    whole = trace.form in ("horovod", "runner") and not job.begins_within and from_zero
    zero = 0.0 if whole else columns["start"][0]
    before = (columns["start"][0] - zero) / 1e3 + sum(job.times[: job.first]) - job.first * job.step_ms
    recorded = (trace.steps.last - zero) / 1e3
    if before < max(LIMIT.start_s * 1e3, LIMIT.start_share * recorded, LIMIT.start_steps * job.step_ms):
        return []
    values = {"percent": 100 * before / recorded, "recorded": shown_ms(recorded)}
    return [_costs("start", before, job.first / max(len(job.times), 1), None, **values)]


def _nothing(job: JobTimeline) -> Verdict:
    part = _communication(job)
    spent = f"{100 * part:.0f} % of a step is communication; " if part > LIMIT.communication_share else ""
    case, noise = "nothing", None
    values: dict[str, Any] = {"compared": _not_compared(job), "remedy": _what_shows_more(job)}
    forms = {each.form for each in job.traces.values()}
    if not job.waits and job.ranks > 1 and forms == {"horovod"}:  # its cache hides when each rank asks
        case, noise = "hidden", deviation(job.columns[0]["negotiating"])
    elif len(job.waits) > 1:
        late, floor = lateness_by_rank(job.waits), floor_ms(job)
        noise, rank = common_noise(late), max(late, key=lambda each: median(late[each]))
        case = "chance" if median(late[rank]) > floor else "compared"
        values |= {"ranks": len(late), "rank": rank, "late": shown_ms(median(late[rank]))}
        values["floor"] = shown_ms(floor)
    found = _verdict(f"none: {case}", steps=len(job.steady), spent=spent, noise=shown_ms(noise), **values)
    return replace(found, noise_ms=rounded(noise))


def _what_shows_more(job: JobTimeline) -> str:
    if not job.waits and _communication(job) > LIMIT.communication_share and len(job.traces) < job.ranks:
        return "give the timelines of all ranks: they tell a late rank from a slow network"
    return "none needed"


def _communication(job: JobTimeline) -> float:
    part = shares(job)
    return sum(part[name] or 0.0 for name in ("negotiating", "queueing", "copying", "moving", "waiting"))


def _mismatch(job: JobTimeline) -> tuple[Verdict, ...]:
    """Return what flight recorders tell of a hang, which has nothing to do with speed."""
    return tuple(_verdict("mismatch", note=note) for note in sequence_notes(job.traces)[:1])


def _waited_for(job: JobTimeline, waiting: Sequence[RankTrace]) -> Sequence[int] | None:
    """Return the ranks that others wait for where their traces end, () if they have no names; None: none."""
    if not waiting:
        return None
    trace = waiting[0]
    if trace.form == "kineto":
        ranks = sorted({*range(job.ranks)} - {each.rank for each in waiting})
        return ranks if 0 < len(ranks) <= len(waiting) else None
    cut = trace.names_ranks and not trace.not_asked  # all had asked
    stopped = job.begins_within or not trace.unfinished[0].startswith("NEGOTIATE")
    return None if cut or stopped else trace.not_asked


def _ended(job: JobTimeline, places: Mapping[int, Place]) -> tuple[Verdict, ...]:
    waiting = [trace for trace in job.traces.values() if trace.unfinished]
    ranks = _waited_for(job, waiting)
    if not ranks and job.failed is not None:
        ranks, found = [job.failed], _verdict("ended: by its output", rank=job.failed)
    elif ranks is None:
        return ()
    else:
        names = f"rank {', '.join(map(str, ranks[:8]))}" if ranks else "a rank that is not in the file"
        found = _verdict("ended: waited for", names=names, collective=waiting[0].unfinished[0])
    rank = ranks[0] if len(ranks) == 1 else None
    place = places.get(-1 if rank is None else rank, Place())
    return (replace(found, rank=rank, node=place.node, gpu=place.gpu),)


def _not_compared(job: JobTimeline) -> str:
    if len(job.traces) < job.ranks:
        return "the ranks' waiting cannot be compared, because the traces of all ranks are needed"
    if job.ranks == 1:
        return "there is one rank only"
    return "the traces do not tell how long each rank waits for other ranks"


def _too_short(job: JobTimeline) -> Verdict:
    unfinished = next((trace.unfinished[0] for trace in job.traces.values() if trace.unfinished), None)
    ends = f"; the trace ends within {unfinished}" if unfinished else ""
    steps, least = counted(len(job.steady), "step"), LEAST_STEPS + 1
    return _verdict("none: too short", steps=steps, unfinished=ends, least=least)


def sequence_notes(traces: Mapping[int, RankTrace]) -> list[str]:
    """Return a sentence for each collective that differs between ranks, and for ranks that are behind."""
    groups: dict[str, dict[int, dict[int, str]]] = {}
    for rank, trace in traces.items():
        for group, sequence in trace.sequence.items():
            groups.setdefault(group, {})[rank] = sequence
    notes: list[str] = []
    for group, by_rank in sorted(groups.items()):
        if len(by_rank) > 1:
            notes += _differences(group, by_rank) or _behind(group, by_rank)
    return notes[: LIMIT.most_notes]


def _differences(group: str, by_rank: Mapping[int, Mapping[int, str]]) -> list[str]:
    for number in sorted({number for sequence in by_rank.values() for number in sequence}):
        called = {rank: sequence[number] for rank, sequence in by_rank.items() if number in sequence}
        if len(set(called.values())) > 1:
            usual, _ = Counter(called.values()).most_common(1)[0]
            wrong = [
                f"rank {rank} in {what} #{number}" for rank, what in sorted(called.items()) if what != usual
            ]
            values = {"wrong": ", ".join(wrong[:4]), "usual": usual, "number": number}
            return [note_text("timeline: mismatch", group=group, **values)]
    return []


def _behind(group: str, by_rank: Mapping[int, Mapping[int, str]]) -> list[str]:
    last = {rank: max(sequence) for rank, sequence in by_rank.items() if sequence}
    newest = max(last.values())
    behind = sorted(rank for rank, number in last.items() if number < newest)
    if not behind:
        return []
    ahead = next(rank for rank, number in last.items() if number == newest)
    names = ", ".join(f"{rank} (#{last[rank]})" for rank in behind[:8])
    called = f"{by_rank[ahead][newest]} #{newest}"
    return [f"process group {group}: rank {names} ended before {called}, which other ranks called"]
