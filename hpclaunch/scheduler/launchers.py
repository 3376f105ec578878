"""What starts the ranks inside a job: srun, PALS' mpiexec, or any MPI's mpiexec.

A launcher is the words before the program and the shell lines by which a rank learns who it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

import msgspec

from hpclaunch.scheduler.job_header import Line


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher must know; ``cpu_bind`` is the launcher's own spelling, None: it binds nothing."""

    nodes: int
    tasks_per_node: int
    cpu_bind: str | None = None
    mpi_plugin: str | None = None
    options: tuple[str, ...] = ()
    """Further options from the site profile, such as --network=disable_rdzv_get."""
    in_allocation: bool = False
    """True: the allocation around it was made for something else, so the sizes must be said."""
    batch: str = "local"
    """Kind of the scheduler around it: slurm, pbs or local."""


def launch_words(launcher: str, launch: Launch) -> tuple[str, ...]:
    """Return the launcher's words as shell text (``"$PBS_NODEFILE"`` is expanded by the script's shell)."""
    return {"srun": _srun, "pals": _pals, "mpiexec": _mpiexec}[launcher](launch)


def _srun(launch: Launch) -> tuple[str, ...]:
    """Man srun. --kill-on-bad-exit: one dead rank must not leave the others waiting for it."""
    words = ["srun", "--kill-on-bad-exit=1"]
    if launch.in_allocation:
        tasks = launch.nodes * launch.tasks_per_node
        words += [
            f"--nodes={launch.nodes}",
            f"--ntasks={tasks}",
            f"--ntasks-per-node={launch.tasks_per_node}",
        ]
    if launch.mpi_plugin:
        words.append(f"--mpi={launch.mpi_plugin}")
    if launch.cpu_bind:
        words.append(launch.cpu_bind)
    return (*words, *launch.options)


def _pals(launch: Launch) -> tuple[str, ...]:
    """HPE Cray PALS mpiexec, as documented by ALCF for Polaris and Aurora."""
    words = ["mpiexec", "-n", str(launch.nodes * launch.tasks_per_node), "--ppn", str(launch.tasks_per_node)]
    if launch.cpu_bind:
        words += launch.cpu_bind.split()
    return (*words, *launch.options)


def _mpiexec(launch: Launch) -> tuple[str, ...]:
    """Only options that Open MPI 4 and 5 and MPICH's hydra share; -machinefile gives them the PBS nodes."""
    hosts = ("-machinefile", '"$PBS_NODEFILE"') if launch.batch == "pbs" else ()
    return ("mpiexec", "-n", str(launch.nodes * launch.tasks_per_node), *hosts, *launch.options)


def one_each_words(launcher: str, nodes: int) -> tuple[str, ...]:
    """Return the words, as shell text, that start one unbound process on each node of the job.

    It is no MPI program; that one of them fails must not end the others. The nodes, each once, stand in the
    file ``nodes`` of the job's folder: PBS' own file may name a node for each rank.
    """
    if launcher == "srun":
        sizes = (f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1")
        return ("srun", *sizes, "--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=0")
    if launcher == "pals":
        return ("mpiexec", "-n", str(nodes), "--ppn", "1", "--cpu-bind", "none")
    return ("mpiexec", "-n", str(nodes), "-machinefile", '"$HPCLAUNCH_JOB_FOLDER/nodes"')


# launcher -> (rank, local rank) as shell expressions; for mpiexec Open MPI's names, then MPICH hydra's.
_WHO = {
    "srun": ("$SLURM_PROCID", "$SLURM_LOCALID"),
    "pals": ("$PMI_RANK", "$PMI_LOCAL_RANK"),
    "mpiexec": (
        "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}",
        "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}",
    ),
}


def rank_identity(launcher: str) -> dict[str, str]:
    """Return RANK and LOCAL_RANK, each as a shell expression that a rank's shell expands."""
    rank, local_rank = _WHO[launcher]
    return {"RANK": rank, "LOCAL_RANK": local_rank}


# Open MPI binds and refuses by itself; MPICH's hydra does neither and ignores these.
_MPIEXEC_ENVIRONMENT = (
    Line(
        text="export PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_hwloc_base_binding_policy=none",
        reason="Open MPI (5, and 4) must not bind: each rank binds itself as planned",
    ),
    Line(
        text="export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"
        " OMPI_MCA_rmaps_base_oversubscribe=1",
        reason="Open MPI (5, and 4) must not count cores: the plan did",
    ),
    Line(
        text='[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1',
        reason="Open MPI refuses root, who is the only user in many containers",
    ),
)

# Slurm's plugins tell a rank who it is by PMIX_RANK (pmix), PMI_RANK (pmi2) and PALS_RANKID (cray_shasta):
# all seen in 22.05. libopen-pal.so.80 is Open MPI 5, which speaks PMIx only (docs.open-mpi.org, "Launching
# with Slurm"). A program that loads its MPI later, as Python does, cannot be told so early.
_MPI_GUARD = """\
if [ "$SLURM_PROCID" = 0 ] && [ -z "${PMIX_RANK-}" ]; then
  case ${PMI_RANK-}${PALS_RANKID-},$(ldd "$(command -v -- "$1")" 2> /dev/null) in
    ,*libmpi* | *libopen-pal.so.80*)
      echo "each rank would run alone, as 'rank 0 of 1': the MPI of $1 does not speak srun's plugin;" \\
        "--mpi pmix is for Open MPI, pmi2 for MPICH (srun --mpi=list), none starts it so on purpose" |
        tee "$HPCLAUNCH_JOB_FOLDER/reason" >&2
      exit 1 ;;
  esac
fi"""
MPI_GUARD = Line(text=_MPI_GUARD, reason="an MPI that was started by a plugin it does not speak says nothing")
"""Lines of srun's ranks that end a job whose ranks would not find each other, where that is certain."""

# What salloc, sbatch and srun set for the commands of an allocation and srun reads as options (man pages of
# 22.05, tried with it; SLURM_TRES_PER_TASK is newer): variables -> the options that they stand for. sbatch
# hands its environment on, so a job that is submitted from inside an allocation finds them, unless its own
# options set them anew. What every job sets anew (SLURM_NTASKS, SLURM_JOB_NUM_NODES, ...) is not here.
_OUTER = {
    "SLURM_ACCTG_FREQ": "--acctg-freq",
    "SLURM_CPU_BIND SLURM_CPU_BIND_LIST SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE": "--cpu-bind",
    "SLURM_CPU_FREQ_REQ": "--cpu-freq",
    "SLURM_CPUS_PER_GPU": "--cpus-per-gpu",
    "SLURM_CPUS_PER_TASK": "--cpus-per-task -c",
    "SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE": "--distribution -m",
    "SLURM_EXPORT_ENV": "--export",
    "SLURM_GPU_BIND": "--gpu-bind",
    "SLURM_GPU_FREQ": "--gpu-freq",
    "SLURM_GPUS": "--gpus -G",
    "SLURM_GPUS_PER_NODE": "--gpus-per-node",
    "SLURM_GPUS_PER_SOCKET": "--gpus-per-socket",
    "SLURM_GPUS_PER_TASK": "--gpus-per-task",
    "SLURM_HINT": "--hint",
    "SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT"
    " SLURM_MEM_BIND_TYPE SLURM_MEM_BIND_VERBOSE": "--mem-bind",
    "SLURM_MEM_PER_CPU": "--mem-per-cpu",
    "SLURM_MEM_PER_GPU": "--mem-per-gpu",
    "SLURM_MEM_PER_NODE": "--mem",
    "SLURM_NETWORK": "--network",
    "SLURM_NTASKS_PER_CORE": "--ntasks-per-core",
    "SLURM_NTASKS_PER_GPU": "--ntasks-per-gpu",
    "SLURM_NTASKS_PER_SOCKET": "--ntasks-per-socket",
    "SLURM_OVERCOMMIT": "--overcommit -O",
    "SLURM_PROFILE": "--profile",
    "SLURM_THREADS_PER_CORE": "--threads-per-core",
    "SLURM_TRES_PER_TASK": "--tres-per-task",
}


def _forget_outer(header: Iterable[str]) -> Line:
    given = {re.split(r"[=\s]", text)[0] for text in header}
    names = [names for names, options in _OUTER.items() if not given.intersection(options.split())]
    words = textwrap.wrap(f"unset {' '.join(names)}", 100, break_long_words=False)
    return Line(
        text=" \\\n  ".join(words),
        reason="wishes of an allocation that this was submitted from, which srun would take for options",
    )


def launcher_environment(
    launcher: str, batch: str, cpus_per_task: int | None, header: Iterable[str] = ()
) -> tuple[Line, ...]:
    """Return the shell lines that the launcher itself needs before it is called.

    ``header``: the options that the job itself was submitted with.
    """
    if launcher == "mpiexec":
        return _MPIEXEC_ENVIRONMENT if batch == "local" else _MPIEXEC_ENVIRONMENT[:1]
    if launcher != "srun":
        return ()
    if not cpus_per_task:
        return (_forget_outer(header),)
    handed_on = Line(
        text=f"export SRUN_CPUS_PER_TASK={cpus_per_task}",
        reason="since Slurm 22.05 srun does not take --cpus-per-task over from sbatch (man srun)",
    )
    return (_forget_outer(header), handed_on)


# scheduler -> (shell line that sets MASTER_ADDR to the first node, number of the job as a shell expression).
# No pipe into head: with pipefail a long list would end the job when head has read enough.
_RENDEZVOUS = {
    "slurm": ('read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")', "SLURM_JOB_ID"),
    "pbs": ('read -r MASTER_ADDR < "$PBS_NODEFILE"', "${PBS_JOBID%%[!0-9]*}"),
    "local": ("MASTER_ADDR=127.0.0.1", "$$"),
}

# scheduler -> shell command that prints the job's nodes, one a line; PBS' file may name a node for each rank.
_NODE_NAMES = {
    "slurm": 'scontrol show hostnames "$SLURM_JOB_NODELIST"',
    "pbs": "awk '!seen[$0]++' \"$PBS_NODEFILE\"",
    "local": "echo localhost",
}


def node_names(batch: str) -> str:
    """Return a shell command that prints the job's nodes, one a line."""
    return _NODE_NAMES[batch]


def rendezvous(batch: str, array: bool = False) -> tuple[Line, ...]:
    """Return MASTER_ADDR and MASTER_PORT; in an ``array`` each job has its own.

    The port lies in 10000-19999, below Linux's ephemeral range (from 32768, ip_local_port_range in man 7 ip),
    and differs from job to job: 10000 + job number modulo 10000.
    """
    first_node, number = _RENDEZVOUS[batch]
    if array and batch == "pbs":  # whose arrays have one number for all; Slurm's jobs have one each
        number = f"({number} + PBS_ARRAY_INDEX)"
    return (
        Line(text=f"{first_node}\nexport MASTER_ADDR", reason="rendezvous: the job's first node"),
        Line(
            text=f"export MASTER_PORT=$((10000 + {number} % 10000))",
            reason="rendezvous: a port of this job's own, below the ephemeral range",
        ),
    )
