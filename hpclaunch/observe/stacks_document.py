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


class BlockedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Another process of a rank, such as one that loads data: it is blocked or stopped, or the rank waits for
    it."""

    pid: int
    what: str
    path: str
    at: str
    stack: list[StackFrame] = []


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
    progress: Literal["stuck", "slow", "waits", "unknown", "fine"] | None = None
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
    remedy: str | None
    suspects: list[int]
    missing: list[int]
    ranks: int
    nodes: int
    nodes_answered: int
    idle_s: int | None
    by_rank: list[RankStand]
    other_processes: list[OtherProcess]


DOCUMENTS = {"stacks": StacksDocument}
"""Name of the schema -> its type."""


def stacks_document(job: str, call: dict[str, Any]) -> StacksDocument:
    """Return the roll call of a job as its document."""
    return msgspec.convert({"schema": 1, "id": job, **call}, StacksDocument)
