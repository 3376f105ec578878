"""What a scheduler is: five translations between data and text."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

JobState = Literal["created", "queued", "running", "done", "failed", "cancelled", "lost"]
"""lost: its scheduler does not know it any more and it left no exit status."""

FINAL_STATES: frozenset[JobState] = frozenset({"done", "failed", "cancelled", "lost"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler says of one job; None: it did not say."""

    state: JobState
    exit_code: int | None = None
    reason: str | None = None
    """In a sentence, with the remedy where there is one."""
    started: str | None = None
    ended: str | None = None


class Scheduler(Protocol):
    """One scheduler. A third one is one module that answers these, and one template."""

    kind: str
    sentinel: str
    """Start of a directive line, such as ``#SBATCH``; empty where there are none."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Return the words of the command that submits the script file."""
        ...

    def parse_submit(self, answer: Answer) -> str:
        """Return the job's id; raise RefusedError with the scheduler's own words."""
        ...

    def status_commands(self, scheduler_id: str) -> tuple[tuple[str, ...], ...]:
        """Return the commands that may know the job's state, the best first."""
        ...

    def parse_status(self, command: tuple[str, ...], scheduler_id: str, answer: Answer) -> JobStatus | None:
        """Read one of those answers; None: this one does not know the job, ask the next."""
        ...

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the words of the command that ends the job."""
        ...
