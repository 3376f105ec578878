"""The JSON document of ``hpclaunch stacks``, as ``remote/roll_call.py`` makes it."""

from typing import Any, Literal

import msgspec

from hpclaunch.json_document import Document


class StackFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a Python stack."""

    file: str
    line: int
    function: str
    text: str = ""
    """The line, where its file can be read on the node."""


class BlockedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Another process of a rank, such as one that loads data: it is blocked or stopped, or the rank waits for
    it."""

    pid: int
    what: str
    """As that of the rank, or the command that it runs."""
    path: str
    at: str
    stack: list[StackFrame] = []


class RankStand(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rank stands."""

    rank: int
    node: str
    gpu: str | None
    """The one GPU that it sees, by its variable; null: several, or none."""
    pid: int
    program: list[str]
    """The first words of its command line."""
    processes: int
    """Processes of the rank, itself counted."""
    state: str
    """Letter of /proc/PID/stat: R runs, S sleeps, D waits in the kernel and cannot be ended, T is stopped."""
    waits: str
    """The kernel's function that it waits in, if any."""
    call: str
    """The system call of its main thread; empty: none, or the kernel does not show it to us."""
    path: str
    """The file that the system call is about."""
    what: str
    """The collective, system call or function that it is in."""
    number: int | None
    """That of the collective, by the flight recorder or the bundled training."""
    at: str
    """FILE:LINE of the program itself; empty: no stack is known."""
    collective: bool
    """Whether it waits for other ranks."""
    moved: bool | None
    """Whether it stood elsewhere some seconds later, or was woken in between; null: not known."""
    progress: Literal["stuck", "slow", "waits", "unknown", "fine"] | None = None
    """Of --watch. stuck: at one place and in no collective; slow: moves, while most other ranks wait;
    waits: in one collective all the time; unknown: no stack is known; fine: moves."""
    suspect: bool
    """Whether other ranks wait for it."""
    by: Literal["faulthandler", "py-spy"] | None
    """Where the stack comes from."""
    stack: list[StackFrame]
    """Of the main thread, the innermost call first."""
    threads: list[list[StackFrame]]
    """Of other threads, the newest thread last, some of their innermost calls."""
    workers: list[BlockedProcess]
    files: list[str]
    """Some of the files that it has open."""
    collectives: dict[str, list[tuple[int, str, str]]]
    """Process group -> the newest collectives in torch's flight recorder: number, name, state."""


class OtherProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the job whose rank is not known, as of a program that cleared its environment."""

    node: str
    pid: int
    program: list[str]
    state: str


StacksKind = Literal[
    "stopped",
    "disk",
    "blocked",
    "mismatch",
    "behind",
    "slow",
    "moving",
    "alike",
    "missing",
    "unclear",
    "none",
]


class StacksDocument(Document, frozen=True, kw_only=True):
    """The roll call of a running job."""

    id: str
    finding: str
    kind: StacksKind
    """stopped: by a signal; disk: a rank waits in the kernel; blocked: in a call about a file; mismatch: in
    another collective; behind: not yet in the collective of the other ranks; slow: so, and it moves; moving:
    most ranks move; alike: all ranks wait in the same collective; missing: a rank has no process; unclear;
    none: no rank was seen."""
    remedy: str | None
    suspects: list[int]
    """Ranks that others wait for."""
    missing: list[int]
    """Ranks of which no process was seen."""
    ranks: int
    nodes: int
    nodes_answered: int
    idle_s: int | None
    """Seconds since the job's last output or heartbeat."""
    by_rank: list[RankStand]
    other_processes: list[OtherProcess]


DOCUMENTS = {"stacks": StacksDocument}
"""Name of the schema -> its type."""


def stacks_document(job: str, call: dict[str, Any]) -> StacksDocument:
    """Return the roll call of a job as its document."""
    return msgspec.convert({"schema": 1, "id": job, **call}, StacksDocument)
