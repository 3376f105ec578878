"""``hpclaunch stacks``: where each rank of a running job stands, from its nodes, once or several times."""

import re
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.ask_scheduler import is_last_known
from hpclaunch.job.job_end import job_of_array
from hpclaunch.job.job_script import STANDS, one_text
from hpclaunch.job.log_extract import rank_stderr
from hpclaunch.job.record import JobRecord
from hpclaunch.json_document import Document
from hpclaunch.observe.attached_nodes import PYTHON, by_ssh, no_answer
from hpclaunch.package_data import shell_words
from hpclaunch.plan.startup_plan import JOB_VARIABLE, LOOK_S, STACKS_SIGNAL
from hpclaunch.remote import roll_call
from hpclaunch.remote.look import MARK
from hpclaunch.remote.words import WORDS
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.scheduler.scheduler_interface import Attach, JobState, Scheduler
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.site_scheduler import site_scheduler


class StackFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a Python stack."""

    file: str
    line: int
    function: str
    text: str = ""


class BlockedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Another process of a rank, such as one that loads data: it is blocked or stopped, or the rank waits for
    it."""

    pid: int
    what: str
    path: str
    at: str
    stack: list[StackFrame] = []


Progress = Literal["stuck", "slow", "waits", "unknown", "fine"]
"""The worst first."""


class RankStand(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rank stands."""

    rank: int
    node: str
    gpu: str | None
    pid: int
    program: list[str]
    processes: int
    state: str
    waits: str
    call: str
    path: str
    what: str
    number: int | None
    at: str
    collective: bool
    moved: bool | None
    progress: Progress | None = None
    suspect: bool
    by: Literal["faulthandler", "py-spy"] | None
    stack: list[StackFrame]
    threads: list[list[StackFrame]]
    workers: list[BlockedProcess]
    files: list[str]
    collectives: dict[str, list[tuple[int, str, str]]]


class OtherProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the job whose rank is not known, as of a program that cleared its environment."""

    node: str
    pid: int
    program: list[str]
    state: str


_WithRemedy = Literal["stopped", "disk", "blocked", "mismatch", "behind", "over", "slow", "missing"]
StacksKind = Literal[_WithRemedy, "moving", "alike", "unclear", "none"]


class StacksDocument(Document, frozen=True, kw_only=True):
    """The roll call of a running job."""

    id: str
    finding: str
    kind: StacksKind
    remedy: str | None
    suspects: list[int]
    missing: list[int]
    ranks: int
    nodes: int
    nodes_answered: int
    idle_s: int | None
    by_rank: list[RankStand]
    other_processes: list[OtherProcess]


def stacks_document(job: str, call: dict[str, Any]) -> StacksDocument:
    """Return the roll call of a job as its document."""
    return msgspec.convert({"schema": 1, "id": job, **call}, StacksDocument)


_LIMIT = ("timeout", "-k", "5", str(LOOK_S))


def state_of(record: JobRecord, index: int | None) -> JobState:
    """Return the state of a job, or of the job of an array with that index.

    Raises BadInputError for an array without an index, which names those that run or hung, and for an index
    that the job does not have.
    """
    if index is not None:
        return job_of_array(record, index).state
    if not record.array:
        return record.state
    jobs = sorted(record.array.items())
    told = {
        "run": [str(i) for i, job in jobs if job.state == "running"],
        "hung": [str(i) for i, job in jobs if job.hang],
    }
    found = "; ".join(f"{what}: {', '.join(indices[:20])}" for what, indices in told.items() if indices)
    which = found or "none of them runs, and none was ended by --idle-timeout"
    raise BadInputError(f"job {record.id} is an array", f"name one of its jobs: --index N ({which})")


def stacks_of(host: Host, record: JobRecord, index: int | None = None) -> dict[str, Any]:
    """Return the roll call of a running job, as ``remote/roll_call.py`` makes it.

    Raises BadInputError for a job that does not run, RefusedError where no node gives an answer.
    """
    scheduler = get_scheduler(record.scheduler)
    if scheduler.starts_at_once and record.nodes == 1:
        text = _run(host, (), JOB_VARIABLE, record.id)
    elif scheduler.starts_at_once:
        text = _in_allocation(host, record)
    else:
        text = _from_outside(host, scheduler, record, index)
    if MARK not in text:
        raise RefusedError.case("stacks: no answer", record=record, limit_s=LOOK_S)

    def stderr(rank: int) -> str:
        return rank_stderr(host, folder, rank).decode(errors="replace")

    folder = record.folder if index is None else f"{record.folder}/{index}"
    files = (f"{folder}/out.log", f"{folder}/heartbeat")
    answer = host.run((*shell_words(__file__, "idle.sh", "idle_s"), *files), timeout_s=LOOK_S)
    idle = answer.stdout.strip()
    idle_s = max(0, int(idle)) if re.fullmatch(r"-?\d+", idle) else None
    return roll_call.roll_call(roll_call.nodes_in(text), record.tasks, record.nodes, idle_s, stderr)


def stacks_over(host: Host, record: JobRecord, index: int | None, seconds: int) -> dict[str, Any]:
    """Return the last of two roll calls or more, with the progress of each rank; errors of the first as
    `stacks_of`. Where a later one has no answer, as the job has ended meanwhile, those before count."""
    ends, end = time.monotonic() + seconds, ""
    calls = [stacks_of(host, record, index)]
    while not end and (len(calls) < 2 or time.monotonic() < ends):
        try:
            calls.append(stacks_of(host, record, index))
        except (BadInputError, RefusedError):
            end = "; then no answer: hpclaunch status tells whether the job has ended"
    return watched(calls, end)


def stacks_left(host: Host, record: JobRecord, index: int | None = None) -> dict[str, Any]:
    """Return the roll call that --idle-timeout made before it ended the job; BadInputError without one."""
    folder = record.folder if index is None else f"{record.folder}/{index}"
    try:
        call: dict[str, Any] = msgspec.json.decode(host.read_file(f"{folder}/{roll_call.FILE}") or b"")
        stacks_document(record.id, call)
    except msgspec.DecodeError:
        raise BadInputError.case("stacks: no ranks", record=record, state=state_of(record, index)) from None
    return call


def _from_outside(host: Host, scheduler: Scheduler, record: JobRecord, index: int | None) -> str:
    attach = scheduler.attach
    if attach is None:
        raise BadInputError.case("stacks: cannot", scheduler=scheduler)
    if is_last_known(record):
        raise RefusedError.case("stacks: elsewhere", record=record)
    number = record.scheduler_id or ""
    if index is not None:
        number = f"{number}_{index}"
    return _ask(host, scheduler, attach, number)


def _in_allocation(host: Host, record: JobRecord) -> str:
    """Return the answers of the nodes of an allocation, which its shell knows by the scheduler's variable."""
    scheduler = site_scheduler(load_site(record.request.get("site", record.site)))
    shell = (record.scheduler_id or "").partition(":")[0]
    environ = (host.read_file(f"/proc/{shell}/environ") or b"").decode(errors="replace").split("\0")
    values = dict(pair.partition("=")[::2] for pair in environ)
    attach = scheduler.attach
    number = values.get(attach.job_variable) if attach else None
    if attach is None or number is None:
        raise BadInputError.case("stacks: other machine", record=record)
    return _ask(host, scheduler, attach, number, (JOB_VARIABLE, record.id))


def _ask(
    host: Host, scheduler: Scheduler, attach: Attach, number: str, shows: tuple[str, str] | None = None
) -> str:
    """Return the nodes' answers; ``shows``: variable and value of the job's processes, if not the usual."""
    answer = host.run(attach.query(number), env=dict(scheduler.query_env), timeout_s=LOOK_S)
    job = attach.parse(number, answer)
    shows = shows or (attach.job_variable, job.id)
    if words := attach.words(job):
        return _run(host, words, *shows)
    program = one_text(STANDS).encode()
    commands = (by_ssh(name, *shows, str(STACKS_SIGNAL)) for name in job.nodes)
    answers = [host.run((*_LIMIT, *each), stdin=program, timeout_s=LOOK_S + 30) for each in commands]
    return "\n".join(answer.stdout for answer in answers)


def _run(host: Host, words: tuple[str, ...], variable: str, job: str) -> str:
    """Run the program by these words, in bounded time; what some nodes have answered is kept."""
    argv = (*PYTHON, "-c", one_text(STANDS), variable, job, str(STACKS_SIGNAL))
    answer = host.run((*_LIMIT, *words, *argv), timeout_s=LOOK_S + 30)
    if MARK not in answer.stdout and answer.exit_code not in (0, 124, 137):
        raise no_answer(answer, "the job")
    return answer.stdout


def watched(calls: Sequence[dict[str, Any]], end: str = "") -> dict[str, Any]:
    """Return the last roll call with the ``progress`` of each rank; suspects are those that are stuck, and
    where none is and none moves, those of the last roll call. The finding ends with ``end``."""
    last, reports = dict(calls[-1]), []
    printed = _has_printed(calls)
    for one in last["by_rank"]:
        seen = [other for call in calls for other in call["by_rank"] if other["rank"] == one["rank"]]
        slow = 2 * sum(_waited_for(one["rank"], call) for call in calls) > len(calls)
        reports.append({**one, "progress": _progress(seen, slow=slow, printed=printed)})
    stuck = [one for one in reports if one["progress"] == "stuck"]
    moving = any(one["progress"] in ("slow", "fine") for one in reports)
    if stuck or moving:
        reports = [{**one, "suspect": one["progress"] == "stuck"} for one in reports]
    last["kind"] = _kind(last["kind"], reports, stuck, moving=moving)
    suspects = [one["rank"] for one in reports if one["suspect"]]
    finding = _finding(reports, len(calls), last["missing"]) + "; output came meanwhile" * printed + end
    more = {"remedy": WORDS["remedies"].get(last["kind"]), "suspects": suspects, "finding": finding}
    return {**last, "by_rank": reports, **more}


def _kind(of_last: str, reports: list[dict[str, Any]], stuck: list[dict[str, Any]], *, moving: bool) -> str:
    """Return the kind of wait of the ranks that are stuck; without one that of the last roll call."""
    if not stuck or of_last == "missing":
        slow = any(one["progress"] == "slow" for one in reports)
        return ("moving", "slow")[slow] if moving and not stuck else of_last
    return "stopped" if any(one["state"] in ("T", "t") for one in stuck) else roll_call.kind_of_wait(stuck)


def _progress(seen: Sequence[Mapping[str, Any]], *, slow: bool, printed: bool) -> str:
    if _moves(seen, printed=printed and slow):
        return "slow" if slow else "fine"
    if all(one["collective"] for one in seen):
        return "waits"
    return "stuck" if any(_is_still(one, printed=printed) for one in seen) else "unknown"


def _moves(seen: Sequence[Mapping[str, Any]], *, printed: bool) -> bool:
    """Tell whether a rank moves; in steps of minutes all looks find it at one place, and output comes."""
    places = {(one["what"], one["number"], one["path"], one["at"]) for one in seen}
    moved = len(places) > 1 or any(one["moved"] for one in seen)
    return moved or (printed and not roll_call.is_over({**seen[-1]}))


def _has_printed(calls: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether output came between two looks: the time without any has not grown.

    A thread may print while its rank hangs: where collectives have numbers, these tell more.
    """
    numbers = {tuple(one["number"] for one in call["by_rank"]) for call in calls}
    if len(numbers) == 1 and any(number is not None for number in min(numbers)):
        return False
    known = [call["idle_s"] for call in calls if call["idle_s"] is not None]
    return any(after <= before for before, after in pairwise(known))


def _is_still(one: Mapping[str, Any], *, printed: bool) -> bool:
    return bool(roll_call.is_over({**one}) or (one["at"] and one["moved"] is False and not printed))


def _waited_for(rank: int, call: Mapping[str, Any]) -> bool:
    """Tell whether a rank was in no collective while most other ranks were in one."""
    others = [one["collective"] for one in call["by_rank"] if one["rank"] != rank]
    outside = any(one["rank"] == rank and not one["collective"] for one in call["by_rank"])
    return outside and 2 * sum(others) > len(others)


def _finding(reports: Sequence[dict[str, Any]], looks: int, missing: list[int]) -> str:
    parts: list[str] = []
    for progress in get_args(Progress):
        groups = roll_call.grouped([one for one in reports if one["progress"] == progress])
        places = [f"{roll_call.names_of(each)}, now {roll_call.words_of(each[0])}" for each in groups[:3]]
        places += [f"{len(groups) - 3} more places"] * (len(groups) > 3)
        parts += [f"{progress}: {', and '.join(places)}"] * bool(groups)
    if not parts:
        return "no rank of the job can be seen on its nodes"
    notes = [*roll_call.absent(missing), *roll_call.without_stacks([*reports])]
    return "; ".join([counted(looks, "look"), *parts, *notes])
