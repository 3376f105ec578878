"""Which GPUs of a node each of its ranks gets. Pure; the one rule, with a computed binding and without."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.plural import counted

T = TypeVar("T")


def idle_note(gpus: Iterable[int], shares: Iterable[Sequence[int]]) -> tuple[str, ...]:
    """Return the note on the GPUs of a node that no rank has; nothing where each has one."""
    idle = sorted({*gpus}.difference(*shares))
    return (f"{counted(len(idle), 'GPU stays', 'GPUs stay')} idle: {format_cpu_list(idle)}",) if idle else ()


def share_gpus(gpus: Sequence[T], tasks: int, each: int | None) -> list[tuple[T, ...]]:
    """Return each rank's GPUs: floor(rG/T) to floor((r+1)G/T)-1, or floor(rG/T) with more ranks than GPUs.

    So every GPU has a rank, and neighbours share one where they must. ``each`` overrides this: rank r gets
    the GPUs rN to rN+N-1. Raises BadInputError where there are too few.
    """
    count = len(gpus)
    if each is None:
        least = 1 if tasks > count else 0
        cuts = [rank * count // tasks for rank in range(tasks + 1)]
        return [tuple(gpus[cuts[rank] : max(cuts[rank + 1], cuts[rank] + least)]) for rank in range(tasks)]
    if tasks * each > count:
        raise BadInputError(
            f"{counted(tasks, 'rank')} of {counted(each, 'GPU')} need {tasks * each}; this node has {count}",
            "omit gpus_per_task to let ranks share GPUs" if count else None,
        )
    return [tuple(gpus[rank * each : (rank + 1) * each]) for rank in range(tasks)]
