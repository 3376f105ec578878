"""Which GPUs a rank sees, and in which order, so that they agree with its LOCAL_RANK. Pure.

The rule: **where a program takes the GPU whose number is its local rank, each rank sees all planned GPUs of
its node, and the GPU with the number of its local rank is its own.** Programs do so as their tutorials say
(``cuda:LOCAL_RANK`` in torch's and DeepSpeed's; "Pin each GPU to a single process" in Horovod's README; JAX
on Slurm and Open MPI, jax/_src/clusters). A program of which nothing is known is taken for one of these: it
sees no fewer GPUs than its LOCAL_RANK counts. Ranks that take the first GPU that they see, such as those of
mpi4py programs, see only their own.
"""

from hpclaunch.errors import BadInputError
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plural import counted

Gpus = tuple[tuple[int, ...], ...]
"""Indices of the GPUs of each local rank."""


def rank_gpus(layout: JobLayout) -> Gpus:
    """Return the planned GPUs of each local rank; empty where no GPU is planned."""
    if layout.at_start:
        return layout.at_start.gpus
    gpus = tuple(rank.gpus for rank in layout.binding.ranks) if layout.binding else layout.gpus_by_number
    return gpus if any(gpus) else ()


def are_shared(gpus: Gpus) -> bool:
    """Whether two ranks of a node have the same GPU, or one has none."""
    every = [gpu for each in gpus for gpu in each]
    return len(set(every)) < len(every) or not all(gpus)


def local_rank_fits(by_local_rank: bool, gpus: Gpus) -> bool:
    """Whether LOCAL_RANK is the number of a GPU that the rank sees, or no GPU is planned."""
    return not (by_local_rank and are_shared(gpus))


def visible_gpus(by_local_rank: bool, gpus: Gpus) -> tuple[int, ...]:
    """Return what all ranks of a node see, in this order; empty: each sees only its own.

    First the first GPU of each local rank, then the second ones: the GPU numbered LOCAL_RANK is a rank's own.
    """
    if not by_local_rank or not gpus or are_shared(gpus):
        return ()
    most = max(map(len, gpus))
    return tuple(each[at] for at in range(most) for each in gpus if at < len(each))


def positions(gpus: Gpus, visible: tuple[int, ...]) -> Gpus:
    """Return the places of each local rank's GPUs in the list of visible ones."""
    return tuple(tuple(visible.index(gpu) for gpu in each) for each in gpus)


def check_sharing(framework: str | None, by_local_rank: bool, gpus: Gpus) -> None:
    """Refuse ranks that share GPUs where the named framework numbers its GPU by the local rank."""
    if framework is None or local_rank_fits(by_local_rank, gpus):
        return
    count = len({gpu for each in gpus for gpu in each})
    raise BadInputError(
        f"{len(gpus)} ranks per node share {counted(count, 'GPU')}, but a program of {framework} takes the"
        f" GPU whose number is its local rank: from local rank {count} on there is none",
        f"--tasks-per-node {count} gives each rank its own; --gpus-per-task 0 is for programs without GPUs;"
        " --framework none shows each rank one GPU, as number 0",
    )


def sharing_note(by_local_rank: bool, gpus: Gpus) -> str | None:
    """Return the note for an unknown program whose ranks share GPUs; None: they do not."""
    if local_rank_fits(by_local_rank, gpus):
        return None
    count = len({gpu for each in gpus for gpu in each})
    return (
        f"{len(gpus)} ranks per node share {counted(count, 'GPU')}: each rank sees only its own, as number 0,"
        " and LOCAL_RANK is not set, since a program could take it for the number of a GPU"
    )
