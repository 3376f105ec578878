"""What the environment of a launched process tells before MPI starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

# Open MPI 5 and Slurm's PMIx; Open MPI; MPICH, Cray and Intel (PMI-1, PMI-2); PALS; Slurm.
_RANK_VARIABLES = ("PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def launcher_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that the launcher gave this process; None where none did."""
    for name in _RANK_VARIABLES:
        value = environment.get(name, "")
        if value.isdigit():
            return int(value)
    return None


def threads_per_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """How many threads numpy's BLAS was told to use; None: nobody said."""
    for name in _THREAD_VARIABLES:
        value = environment.get(name, "").split(",")[0]
        if value.isdigit():
            return int(value)
    return None
