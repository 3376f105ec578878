"""The schedulers by name. Each is imported when it is asked for: a job needs one of them only."""

from __future__ import annotations

from collections.abc import Callable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.scheduler_interface import Scheduler


def _slurm() -> Scheduler:
    from hpclaunch.scheduler.slurm import SlurmScheduler

    return SlurmScheduler()


def _pbs() -> Scheduler:
    from hpclaunch.scheduler.pbs import PbsScheduler

    return PbsScheduler()


def _local() -> Scheduler:
    from hpclaunch.scheduler.local import LocalScheduler

    return LocalScheduler()


_SCHEDULERS: dict[str, Callable[[], Scheduler]] = {"slurm": _slurm, "pbs": _pbs, "local": _local}


def get_scheduler(kind: str) -> Scheduler:
    """Return the scheduler called ``kind``; raises BadInputError where there is none."""
    if kind not in _SCHEDULERS:
        raise BadInputError(f"unknown scheduler {kind!r}", f"known are {', '.join(_SCHEDULERS)}")
    return _SCHEDULERS[kind]()
