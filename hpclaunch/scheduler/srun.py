"""Slurm's srun as a launcher (man srun, 22.05 to 25.05)."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import re
import textwrap
from collections.abc import Iterable

from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch, Launcher

# Slurm's plugins give a rank its number by PMIX_RANK (pmix), PMI_RANK (pmi2) and PALS_RANKID (cray_shasta):
# all seen in 22.05. libopen-pal.so.80 is Open MPI 5, which speaks PMIx only (docs.open-mpi.org, "Launching
# with Slurm"). A program that loads its MPI later, as Python does, cannot be recognised so early.
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
_GUARD = Line(
    text=_MPI_GUARD, reason="an MPI that is started by a plugin which it does not speak gives no error"
)

# What salloc, sbatch and srun set for the commands of an allocation and srun reads as options (man pages of
# 22.05 and 25.05, tried with both; SLURM_OOM_KILL_STEP and SLURM_TRES_* are newer than 22.05): variables ->
# the options that they stand for. sbatch hands its environment on, so a job that is submitted from inside
# an allocation finds them, unless its own options set them again. What every job sets itself (SLURM_NTASKS,
# SLURM_JOB_NUM_NODES, ...) is not here.
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
    "SLURM_OOM_KILL_STEP": "--oom-kill-step",
    "SLURM_OVERCOMMIT": "--overcommit -O",
    "SLURM_PROFILE": "--profile",
    "SLURM_THREADS_PER_CORE": "--threads-per-core",
    "SLURM_TRES_BIND": "--tres-bind --gpu-bind --gpus-per-task --tres-per-task",  # set by each of them
    "SLURM_TRES_PER_TASK": "--tres-per-task",
}


def _forget_outer(header: Iterable[str]) -> Line:
    given = {re.split(r"[=\s]", text)[0] for text in header}
    names = [names for names, options in _OUTER.items() if not given.intersection(options.split())]
    words = textwrap.wrap(f"unset {' '.join(names)}", 100, break_long_words=False)
    return Line(
        text=" \\\n  ".join(words),
        reason="settings of an outer allocation, which srun would read as options",
    )


class Srun(Launcher, frozen=True, kw_only=True):
    """Slurm's own launcher."""

    name: str = "srun"
    rank: str = "$SLURM_PROCID"
    local_rank: str = "$SLURM_LOCALID"
    cpu_bindings: tuple[str, ...] = ("mask_cpu", "map_cpu", "cores")
    takes_plugin: bool = True
    plugin_list: tuple[str, ...] = ("srun", "--mpi=list")
    overlap: tuple[str, ...] = ("--overlap",)  # shares all resources with all steps (man srun, 22.05)
    known_to_jax: bool = True  # jax/_src/clusters/slurm_cluster.py, read in 0.4.31 to 0.12.0
    rank_guard: tuple[Line, ...] = (_GUARD,)

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks. --kill-on-bad-exit: a dead rank must not leave the other ranks waiting for it."""
        words = ["srun", "--kill-on-bad-exit=1"]
        if launch.in_allocation:
            words += _sizes(launch.nodes, launch.tasks_per_node)
        if launch.mpi_plugin:
            words.append(f"--mpi={launch.mpi_plugin}")
        if launch.cpu_bind:
            words.append(launch.cpu_bind)
        return (*words, *launch.options)

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start one process per node, without MPI."""
        return ("srun", *_sizes(nodes, 1), "--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=0")

    def words_in_allocation(self, launch: Launch) -> tuple[str, ...]:
        """Share the CPUs with the steps that run already."""
        sizes = _sizes(launch.nodes, launch.tasks_per_node)
        return (*self.words(launch), *sizes, "--overlap", "--overcommit")

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Forget the options of an outer allocation, and hand on the CPUs per task."""
        if not cpus_per_task:
            return (_forget_outer(header),)
        handed_on = Line(
            text=f"export SRUN_CPUS_PER_TASK={cpus_per_task}",
            reason="srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch",
        )
        return (_forget_outer(header), handed_on)


def _sizes(nodes: int, tasks_per_node: int) -> tuple[str, ...]:
    return (
        f"--nodes={nodes}",
        f"--ntasks={nodes * tasks_per_node}",
        f"--ntasks-per-node={tasks_per_node}",
    )
