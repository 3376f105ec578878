"""What a scheduler is: a few translations between data and text. Nothing here runs a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from hpclaunch.command_result import CommandResult

JobState = Literal["created", "queued", "running", "done", "failed", "cancelled", "lost"]
"""done: ended with exit code 0; failed: ended otherwise; lost: its scheduler does not know it any more and
it left no exit status."""

FINAL_STATES: frozenset[JobState] = frozenset({"done", "failed", "cancelled", "lost"})


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler says of one job; None: it did not say."""

    state: JobState
    exit_code: int | None = None
    """128+N where signal N ended the job."""
    reason: str | None = None
    """In a sentence, with the remedy where there is one."""
    started: str | None = None
    """ISO 8601 with time zone, as ``ended``."""
    ended: str | None = None
    jobs: dict[int, JobStatus] = {}
    """Of an array: index -> what is known of that job of it."""


def array_state(states: Iterable[JobState]) -> JobState:
    """Return the state of an array from those of its jobs: done only where all are."""
    found = set(states)
    for state in ("running", "queued", "created"):
        if state in found:
            return "running" if found & FINAL_STATES and state != "created" else state
    return next((state for state in ("failed", "lost", "cancelled") if state in found), "done")


def array_status(jobs: Mapping[int, JobStatus]) -> JobStatus:
    """Return the status of an array of which the scheduler knows these jobs."""
    return JobStatus(state=array_state(job.state for job in jobs.values()), jobs=dict(jobs))


class Scheduler(Protocol):
    """One scheduler. A third one is one module that answers these, and one template."""

    kind: str
    sentinel: str
    """Start of a directive line, such as ``#SBATCH``; empty where there are none."""
    starts_at_once: bool
    """True: there is no queue, and its jobs and their files are on the same machine."""
    poll_s: tuple[float, float]
    """Seconds between two questions while waiting: at first, and at most after backing off."""
    requeue: str
    """Shell text by which a running job asks to be put back into the queue; empty: it starts itself again."""
    query_env: Mapping[str, str]
    """Environment for the status commands, which makes times unambiguous."""
    status_sources: tuple[str, ...]
    """What may know of jobs, the best first; each is asked for the jobs that the ones before did not know."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Return the words of the command that submits the script file, an absolute path.

        The job's output goes to ``out.log`` beside the script.
        """
        ...

    def overriding(self, script: str) -> tuple[str, ...]:
        """Return the environment variables that submission would obey rather than the script's options."""
        ...

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the job's id; raise RefusedError with the scheduler's own words."""
        ...

    def test_command(self) -> tuple[str, ...]:
        """Return the command that asks whether the script on its stdin would be taken; nothing: none does."""
        ...

    def parse_test(self, answer: CommandResult) -> str | None:
        """Return when the job is expected to start, in a sentence; raise RefusedError where never."""
        ...

    def doubt_command(self, refusal: str, queue: str | None) -> tuple[str, ...]:
        """Return the command that may show such a refusal to be temporary; nothing: it is final."""
        ...

    def parse_doubt(self, answer: CommandResult, queue: str | None, nodes: int) -> str | None:
        """Return why a job of so many nodes was refused only for now, in a sentence; None: it was not."""
        ...

    def find_command(self) -> tuple[str, ...]:
        """Return the command that lists the user's jobs with their scripts; nothing where there is none.

        It is for the one case that a submission was cut off in the middle, so it may be slow.
        """
        ...

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job that this script, an absolute path, was submitted as; None: there is none.

        Raises RefusedError where the scheduler gave no answer.
        """
        ...

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the commands (nearly always one) that ask ``source`` for all these jobs."""
        ...

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Read one such answer; jobs that it does not know are left out.

        Raises RefusedError where the source could not be reached, so that nothing is known of its jobs.
        """
        ...

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the words of the command that ends the job."""
        ...

    def parse_cancel(self, answer: CommandResult) -> None:
        """Return where the job is ended or ending or was at its end already; raise RefusedError otherwise."""
        ...
