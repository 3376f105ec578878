"""The JSON documents about jobs that commands print with ``--json``; schemas: docs/reference/json."""

from typing import Any, Literal, TypeVar

import msgspec

from hpclaunch.job.record import ArrayJob, JobRecord, RankReport, RecordedJob
from hpclaunch.json_document import Document, document_of
from hpclaunch.plan.request import Problem, Setting
from hpclaunch.scheduler.scheduler_interface import JobState


class BindingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on the binding of all ranks."""

    ok: bool
    finding: str


class JobDocument(RecordedJob, frozen=True, kw_only=True):
    """A job, as ``status`` and ``jobs`` print it; a key that does not apply is null."""

    cluster: str | None
    queue: str | None
    limit_s: int | None
    elapsed_s: int | None
    node_names: list[str]
    binding: BindingDocument | None
    log: str
    array: dict[int, ArrayJob] | None


class SubmittedJobDocument(JobDocument, frozen=True, kw_only=True):
    """A job, as ``submit``, ``resubmit`` and ``wait`` print it."""

    result: dict[str, Any] | None


class DryRunDocument(Document, frozen=True, kw_only=True):
    """The output of ``submit --dry-run --json``."""

    site: str
    nodes: int
    tasks_per_node: int
    tasks: int
    limit_s: int | None
    queue: str | None
    request: dict[str, Any]
    settings: tuple[Setting, ...]
    warnings: tuple[str, ...]
    problems: tuple[Problem, ...]
    script: str


class CommandError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command failed."""

    kind: Literal["usage", "bad input", "refused", "failed"]
    message: str
    hint: str | None
    exit_code: int


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a command that fails before it has its document."""

    error: CommandError


class FetchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that ``fetch`` has brought; its name is its path below the folder."""

    name: str
    bytes: int


class FetchDocument(Document, frozen=True, kw_only=True):
    """The files that ``fetch`` has copied, and the paths there that it has left out."""

    id: str
    host: str | None
    folder: str
    files: list[FetchedFile]
    left_out: list[str]


class ActionDocument(Document, frozen=True, kw_only=True):
    """A job that ``cancel`` or ``forget`` was to act on."""

    id: str
    state: JobState
    done: bool
    message: str


class LogDocument(Document, frozen=True, kw_only=True):
    """The output of a job so far."""

    id: str
    state: JobState
    index: int | None
    rank: int | None
    text: str


class InitDocument(Document, frozen=True, kw_only=True):
    """The files that ``init`` has written; nothing is submitted."""

    site: str
    config: str | None
    job_file: str
    submit: str


class VerifyDocument(Document, frozen=True, kw_only=True):
    """The verdict on the binding of a job, rank by rank."""

    id: str
    ok: bool
    finding: str
    ranks: tuple[RankReport, ...]
    note: str | None


_Wanted = TypeVar("_Wanted", bound=JobDocument)


def job_document(wanted: type[_Wanted], record: JobRecord, **more: Any) -> _Wanted:
    """Return the facts of a job; of the record's binding and array it has less."""
    binding = msgspec.convert(record.binding, BindingDocument | None, from_attributes=True)
    return document_of(wanted, record, binding=binding, array=record.array or None, **more)
