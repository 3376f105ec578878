"""What a process can read about its launch before MPI starts: rank, threads, terminal."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

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
# As /proc/PID/comm shows them, 15 characters: Open MPI's, also as wheels and Debian have it, and MPICH's.
_LAUNCHERS = {
    *("prterun", "prted", "mpiexec", "mpirun", "orterun", "orted", "mpiexec.openmpi", "mpirun.openmpi"),
    *("hydra_pmi_proxy", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"),
}
_TERMINALS = {4, *range(136, 144)}  # major numbers of consoles and of pseudo-terminals (Linux devices.txt)
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


def open_terminal(stream: TextIO) -> TextIO | None:
    """The terminal that shows what this process writes to ``stream`` (stdout or stderr); None: no terminal.

    A launcher stands between: Open MPI's gives its ranks pipes or other terminals, MPICH's pipes. So where
    there is one, the terminal of the launcher's stream is opened, as far as this machine's /proc shows it:
    that of a launcher on another machine is not found.
    """
    if launcher_rank() is None:
        return stream if stream.isatty() else None
    launcher = _outermost_launcher()
    if launcher is None:
        return None
    try:
        path = f"/proc/{launcher}/fd/{stream.fileno()}"
        theirs = os.stat(path)
        if not (stat.S_ISCHR(theirs.st_mode) and os.major(theirs.st_rdev) in _TERMINALS):
            return None
        terminal = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        return os.fdopen(terminal, "w", encoding=stream.encoding, errors="replace")
    except (OSError, ValueError):
        return None


def _outermost_launcher() -> int | None:
    """The process id of the program that the user called; shells may stand between it and this process."""
    found = None
    for process in _parents():
        if _name(process) in _LAUNCHERS:
            found = process
        elif found is not None:
            break
    return found


def _parents() -> Iterator[int]:
    """Ids of this process's parent, its parent, and so on, as far as they can be seen."""
    process = os.getppid()
    while process > 1:
        yield process
        try:
            # After the name in brackets, which may hold anything: the state, then the parent (proc(5)).
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""
