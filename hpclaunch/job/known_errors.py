"""Errors that programs and launchers write into a log, each with its remedy. A further one is a row here.

The patterns are POSIX extended regular expressions that Python reads alike: grep searches the logs where they
are. The texts are those of CPython 3.10 to 3.12, PyTorch 2 (c10, torch.distributed, DataLoader), the CUDA and
HIP runtimes, JAX and TensorFlow (XLA's status codes), NCCL 2 and RCCL, Open MPI 4 and 5 (PRRTE, PMIx),
MPICH, Slurm 22.05, OpenPBS 23.06, LSF 10.1, glibc and bash, as far as known; not each was provoked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class KnownError(NamedTuple):
    """One kind of error. Of several in a log the first row of the table counts, then the first line."""

    cause: str
    """A few words that name it."""
    pattern: str
    remedy: str | None
    """What to do; None: the line itself is all that is known."""


KNOWN_ERRORS = (
    KnownError(
        "time limit",
        r"CANCELLED AT .* DUE TO TIME LIMIT|PBS: job killed: walltime [0-9]+ exceeded|TERM_RUNLIMIT",
        "request more (--time), or let the job save checkpoints and come back (--max-restarts)",
    ),
    KnownError(
        "Python module missing",
        r"ModuleNotFoundError: No module named|ImportError: (No module named|cannot import name)",
        "install it in the Python environment of the job, or give the job the environment that has it"
        " (environment: in the job file)",
    ),
    KnownError(
        "library missing",
        r"error while loading shared libraries:|cannot open shared object file|undefined symbol:"
        r"|version `(GLIBC|GLIBCXX|CXXABI)_[0-9.]+' not found",
        "load in the job the modules with which the program was built (environment: in the job file)",
    ),
    KnownError(
        "command not found",
        r"(: command not found$|execve\(\): .*No such file or directory|can't open file '.*': \[Errno 2\]"
        r"|exec: .*: not found$|unable to find the specified executable|execvp error on file)",
        "check its path on the compute nodes; a module or a virtual environment may have to be"
        " loaded in the job",
    ),
    KnownError(
        "disk or quota full",
        r"Disk quota exceeded|No space left on device|\[Errno (28|122)\]",
        "make room, or write to another file system (scratch); many small files may exhaust a quota, too",
    ),
    KnownError(
        "out of GPU memory",
        r"OutOfMemoryError: (CUDA|HIP)|(CUDA|HIP|CUBLAS|MIOPEN)[^:]*: out of memory|(CUDA|HIP) out of memory"
        r"|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|RESOURCE_EXHAUSTED: .*[Oo]ut of memory"
        r"|OOM when allocating tensor",
        "a smaller batch per rank, activation checkpointing, a sharded model, or more GPUs",
    ),
    KnownError(
        "out of host memory",
        r"oom[-_]kill|Out Of Memory|OOM Killed|std::bad_alloc|MemoryError($|:)|Cannot allocate memory"
        r"|DefaultCPUAllocator: can't allocate memory|DataLoader worker .* is killed by signal: Killed",
        "fewer ranks or data loader workers per node, a smaller batch, or more memory for the job"
        " (whole nodes)",
    ),
    KnownError(
        "shared memory full",
        r"DataLoader worker .* is killed by signal: Bus error|It is possible that dataloader's"
        r" workers are out of"
        r" shared memory|unable to (open|resize|allocate) shared memory|/dev/shm.*(No space|full)",
        "fewer data loader workers, or a larger /dev/shm (in a container: its option for that)",
    ),
    KnownError(
        "no usable GPU",
        r"No CUDA GPUs are available|no CUDA-capable device|No HIP GPUs are available|hipErrorNoDevice"
        r"|invalid device ordinal|Found no NVIDIA driver|CUDA driver version is insufficient"
        r"|no ROCm-capable device",
        "request GPUs (--gpus-per-task), and use the GPU that each rank sees, not one chosen by a"
        " fixed number",
    ),
    KnownError(
        "GPU fault",
        r"CUDA error: (an illegal memory access|uncorrectable ECC|unspecified launch failure"
        r"|device-side assert)"
        r"|Memory access fault by GPU|NVRM: Xid|HSA_STATUS_ERROR",
        "an error of the program, or of one GPU: if it is the same node each time, leave that out"
        " and tell the"
        " site (hpclaunch resubmit --exclude-bad-nodes)",
    ),
    KnownError(
        "folder of a killed mpiexec",
        r"PMIx server.s listener thread failed to start",
        "start the job again: an mpiexec that was killed left its folder ompi.NUMBER in TMPDIR (else /tmp),"
        " and this one had the same process number (tried with Open MPI 5.0.11); remove such folders of"
        " processes that have ended",
    ),
    KnownError(
        "MPI did not start",
        r"PMI2?_Init.*(fail|error)|PMI[xX].*(ERROR|UNREACHABLE|NOT-FOUND)|OPAL ERROR|MPI_Init.*(fail"
        r"|abort|error)"
        r"|[Ii]t looks like (MPI_INIT|orte_init|opal_init|ompi_mpi_init) failed|Invalid MPI type"
        r"|not built with SLURM.s PMI|MPIR_Init|Couldn't load specified plugin name for mpi"
        r"|prior to MPI_INIT|before MPI_INIT|An error occurred in MPI_Init",
        "the launcher's MPI plugin must fit the program's MPI: --mpi pmix for Open MPI, --mpi pmi2 or"
        " cray_shasta for MPICH; hpclaunch check compares them",
    ),
    KnownError(
        "address in use",
        r"Address already in use|EADDRINUSE",
        "another program of the node has that port: use MASTER_PORT of the job, not a fixed number",
    ),
    KnownError(
        "NCCL or RCCL failed",
        r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclRemoteError|ncclInvalidUsage"
        r"|N?R?CCL (WARN|error|failure)|Watchdog caught collective operation timeout|NCCLUtils",
        "often the result of another rank that failed before; else NCCL_DEBUG=INFO shows which"
        " transport failed,"
        " and hpclaunch check --allreduce-test measures it",
    ),
    KnownError(
        "ranks did not find each other",
        r"DistStoreError|DistNetworkError|TCPStore.*(timed out|failed)|client socket has (timed out|failed)"
        r"|Connection (refused|timed out)|RendezvousTimeoutError|RendezvousConnectionError",
        "all ranks must use MASTER_ADDR and MASTER_PORT of the job; a rank that failed before may be"
        " the cause",
    ),
    KnownError(
        "JAX did not find its ranks",
        r"ValueError: (Number of processes must be defined|coordinator_address should be defined)",
        "under another launcher than srun pass num_processes and process_id to"
        " jax.distributed.initialize(): JAX_NUM_PROCESSES and JAX_PROCESS_ID of each rank",
    ),
    KnownError("no permission", r"Permission denied", "check the owner and mode of the file that it names"),
    KnownError("segmentation fault", r"Segmentation fault|SIGSEGV", None),
    KnownError(
        "the program's own error", r"^([0-9]+: )?[A-Za-z_][A-Za-z0-9_.]*(Error|Exception)(: |$)", None
    ),
)

ERROR_LINES = "|".join(f"({error.pattern})" for error in KNOWN_ERRORS)
"""A line with any of them."""

_LINES_SHOWN = 3


def recognise(lines: Iterable[str]) -> tuple[KnownError | None, tuple[str, ...]]:
    """Return the error that counts among a log's lines and the first different lines that show it."""
    lines = [line.strip() for line in lines]
    for error in KNOWN_ERRORS:
        shown = [line for line in lines if re.search(error.pattern, line)]
        if shown:
            return error, tuple(dict.fromkeys(shown))[:_LINES_SHOWN]
    return None, ()
