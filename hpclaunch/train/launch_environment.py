"""Facts about the launch that a process can read before MPI starts: rank and threads."""

import os
from collections.abc import Mapping

# PMIx (Open MPI 5, Slurm); Open MPI; MPICH, Cray, Intel (PMI-1, PMI-2); PALS; Flux; jsrun; aprun; Slurm.
_RANK_VARIABLES = (
    *("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID", "FLUX_TASK_RANK"),
    *("JSM_NAMESPACE_RANK", "ALPS_APP_PE", "SLURM_PROCID"),
)
# Those of Open MPI, MPICH and Intel, PALS, Cray's PMI, Flux, jsrun, Slurm.
_LOCAL_RANK_VARIABLES = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
    *("FLUX_TASK_LOCAL_ID", "JSM_NAMESPACE_LOCAL_RANK", "SLURM_LOCALID"),
)
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def launcher_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that the launcher gave this process; None where none did."""
    return _first_number(_RANK_VARIABLES, environment)


def launcher_local_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """This process's number among those of its node; None where the launcher does not set it."""
    return _first_number(_LOCAL_RANK_VARIABLES, environment)


def threads_per_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The threads that the environment allows numpy's BLAS; None: not specified."""
    return _first_number(_THREAD_VARIABLES, environment)


def _first_number(names: tuple[str, ...], environment: Mapping[str, str]) -> int | None:
    for name in names:
        value = environment.get(name, "").split(",")[0]
        if value.isdigit():
            return int(value)
    return None
