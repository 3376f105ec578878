"""The schedulers by kind. Each is imported when it is asked for: a job needs one of them only.

A further one is a folder of that name with its ``SCHEDULER``, a template, and its name in ``KINDS``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from hpclaunch.scheduler.scheduler_interface import Scheduler

KINDS = ("slurm", "pbs", "lsf", "flux", "cobalt", "sge", "local")
"""Values of ``scheduler.kind`` in a profile. The order is that in which commands are looked for."""
LAUNCHERS = ("srun", "ibrun", "pals", "jsrun", "flux", "aprun", "mpiexec", "direct")
"""Names of all launchers; each scheduler's module has those that fit it."""
QUEUE_KINDS = ("partition", "qos", "queue", "resource")
"""Kinds of all queues, likewise."""
THIS_MACHINE = "local"
"""The kind that has no queue."""


@cache
def get_scheduler(kind: str) -> Scheduler:
    """Return the scheduler called ``kind``; raises BadInputError where there is none."""
    if kind not in KINDS:
        raise BadInputError(f"unknown scheduler {kind!r}", f"known are {', '.join(KINDS)}")
    scheduler: Scheduler = import_module(f"hpclaunch.scheduler.{kind}").SCHEDULER
    return scheduler


def schedulers() -> tuple[Scheduler, ...]:
    """Return all of them, which imports each."""
    return tuple(map(get_scheduler, KINDS))
