"""The schedulers by name."""

from __future__ import annotations

from collections.abc import Callable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.base import Scheduler
from hpclaunch.scheduler.local import LocalScheduler
from hpclaunch.scheduler.pbs import PbsScheduler
from hpclaunch.scheduler.slurm import SlurmScheduler

_SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "slurm": SlurmScheduler,
    "pbs": PbsScheduler,
    "local": LocalScheduler,
}


def get_scheduler(kind: str) -> Scheduler:
    """Return the scheduler called ``kind``; raises BadInputError where there is none."""
    if kind not in _SCHEDULERS:
        raise BadInputError(f"unknown scheduler {kind!r}", f"known are {', '.join(_SCHEDULERS)}")
    return _SCHEDULERS[kind]()
