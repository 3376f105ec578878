"""The words of a scheduler for states of jobs, with sentences for people: ``slurm_states.json``."""

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.scheduler_interface import JobState


class StateWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one scheduler."""

    states: dict[str, JobState]
    running: dict[str, str] = {}
    """State -> sentence, for jobs that wait or run."""
    pending: dict[str, str] = {}
    """Reason -> sentence, for jobs that wait."""
    pending_parts: tuple[tuple[str, str], ...] = ()
    """Part of a reason, or a regular expression for it -> sentence; the first that fits."""
    ended: dict[str, str] = {}
    """State, reason or exit status -> sentence, for jobs that failed."""


def state_words(kind: str) -> StateWords:
    """Read the words of a scheduler."""
    return msgspec.json.decode(text_beside(__file__, f"{kind}_states.json"), type=StateWords)
