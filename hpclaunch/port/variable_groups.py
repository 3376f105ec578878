"""Which environment variables belong to the machine, the launcher or the job, and not to the program."""

from __future__ import annotations

import re
from typing import NamedTuple


class Group(NamedTuple):
    """Variables that a port does not carry over unchanged."""

    name: str
    pattern: str
    """Regular expression for the whole name."""
    why: str


GROUPS = (
    Group(
        "debug",
        r"NCCL_DEBUG\w*|RCCL_DEBUG\w*|NCCL_ASYNC_ERROR_HANDLING|NCCL_BLOCKING_WAIT|NCCL_TIMEOUT|FI_LOG_\w+|UCX_LOG\w*",
        "",
    ),
    Group(
        "fabric",
        r"(NCCL|RCCL|FI|CXI|UCX|MPICH|OMPI|PRTE|PMIX|PMI|PALS|CCL|MV2|HCOLL|SHARP|PSM2?|IBV|I_MPI|GASNET|NVSHMEM|HSA|CRAY_|MPIR_CVAR|ROMIO|PAMI|DVS|RDMAV)_\w+|(GLOO|TP)_SOCKET_IFNAME|CRAY_\w+",
        "a variable of the network or the MPI of the other machine",
    ),
    Group(
        "rendezvous",
        r"MASTER_(ADDR|PORT|HOST|ADDRESS|NODE|IP)|(RDZV|RENDEZVOUS)_\w+|HEAD_NODE(_IP)?|head_node(_ip)?|DIST_URL"
        r"|JAX_COORDINATOR\w*",
        "where the ranks find each other",
    ),
    Group(
        "ranks",
        r"(LOCAL_|GROUP_|NODE_|GLOBAL_)?RANK|(LOCAL_)?WORLD_SIZE|LOCAL_SIZE|HOROVOD_(CONTROLLER|CPU_OPERATIONS)",
        "the launcher or hpclaunch sets it for each rank",
    ),
    Group(
        "scheduler",
        r"(SLURM|SBATCH|SRUN|PBS|COBALT|LSB|SGE|JSM)_\w+",
        "the commands of the other machine's scheduler read it; here they get options",
    ),
    Group(
        "binding",
        r"(CUDA|ROCR|HIP|NVIDIA)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|GPU_DEVICE_ORDINAL|ZE_(AFFINITY_MASK|FLAT\w*)"
        r"|KMP_AFFINITY|KMP_HW_SUBSET|GOMP_CPU_AFFINITY|OMP_PLACES|OMP_PROC_BIND|OMP_DISPLAY_AFFINITY",
        "the cores and GPUs of each rank",
    ),
    Group("threads", r"OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS", "threads of each rank"),
    Group("proxy", r"(https?|ftp|all|no)_proxy", "how the other machine's nodes reach the internet"),
    Group(
        "software",
        r"(LD_LIBRARY_|LIBRARY_|C_INCLUDE_|CPLUS_INCLUDE_|MAN|MODULE|PKG_CONFIG_|INFO|ACLOCAL_)?PATH|C?PATH|LD_PRELOAD"
        r"|LMOD_\w+|MODULES_\w+|EB(U|ROOT)\w*|EASYBUILD_\w+|(CUDA|ROCM|HIP|MPI|CONDA|NCCL|CUDNN)_(HOME|PATH|ROOT|DIR|PREFIX)"
        r"|CONDA_\w+|VIRTUAL_ENV|C[CX]X?|FC|MPICC|PS1|HCC_AMDGPU_TARGET|TORCH_CUDA_ARCH_LIST|CMAKE_\w+",
        "the software of the other machine",
    ),
    Group("binds", r"(SINGULARITY|APPTAINER)_BIND(PATH)?", "what the containers of the other machine see"),
)

_KEPT = frozenset({"debug"})


def group_of(name: str) -> Group | None:
    """Return the group of a variable; None: it is the program's."""
    found = next((group for group in GROUPS if re.fullmatch(group.pattern, name, re.IGNORECASE)), None)
    return None if found is None or found.name in _KEPT else found
