"""Slurm's srun (man srun, 22.05 to 25.05) and TACC's ibrun (TACC-Docs at 1d94ecf, hpc/vista) as launchers."""

import re
from collections.abc import Iterable

import msgspec

from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch, Launcher, Mpiexec

_EACH_NODE = (
    "srun --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1"
    " --mpi=none --cpu-bind=none --kill-on-bad-exit=0"
)


class Srun(Launcher, frozen=True, kw_only=True):
    """Slurm's own launcher."""

    name: str = "srun"
    rank: str = "$SLURM_PROCID"
    local_rank: str = "$SLURM_LOCALID"
    cpu_bindings: tuple[str, ...] = ("mask_cpu", "map_cpu", "cores")
    unbound: str | None = "--cpu-bind=none"
    takes_plugin: bool = True
    plugin_list: tuple[str, ...] = ("srun", "--mpi=list")
    overlap: tuple[str, ...] = ("--overlap",)  # shares all resources with all steps (man srun, 22.05)
    known_to_jax: bool = True  # jax/_src/clusters/slurm_cluster.py, read in 0.4.31 to 0.12.0
    rank_guard: str | None = "srun_guard.sh"
    rank_end: str | None = "rank_end.sh"
    each_node: str = _EACH_NODE

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

    def words_in_allocation(self, launch: Launch) -> tuple[str, ...]:
        """Share the CPUs with the steps that run already."""
        sizes = _sizes(launch.nodes, launch.tasks_per_node)
        return (*self.words(launch), *sizes, "--overlap", "--overcommit")

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Hand on the CPUs per task."""
        if not cpus_per_task:
            return ()
        return (
            Line(
                text=f"export SRUN_CPUS_PER_TASK={cpus_per_task}",
                reason="srun of Slurm 22.05 and 23.02 does not take --cpus-per-task over from sbatch",
            ),
        )

    def outer_settings(self, header: Iterable[str]) -> tuple[str, ...]:
        """Return those of all options that the header has not.

        The table has what salloc, sbatch and srun set for the commands of an allocation and srun reads as
        options: variables as bash expands SLURM_{NAME,...} (man pages of 22.05 and 25.05, tried with both;
        SLURM_OOM_KILL_STEP and SLURM_TRES_* are newer than 22.05). sbatch hands its environment on, so a job
        that is submitted from inside an allocation finds them. What every job sets itself (SLURM_NTASKS,
        SLURM_JOB_NUM_NODES, ...) is not there.
        """
        given = {re.split(r"[=\s]", text)[0] for text in header}
        outer: dict[str, str] = msgspec.json.decode(text_beside(__file__, "variables.json"))["read by srun"]
        names = (names for names, options in outer.items() if not given.intersection(options.split()))
        return (f"SLURM_{{{','.join(names)}}}",)


class Ibrun(Mpiexec, frozen=True, kw_only=True):
    """It starts the loaded MPI's mpirun with the job's nodes and tasks; ranks read their MPI's variables."""

    name: str = "ibrun"
    each_node: str = _EACH_NODE  # ibrun fills the first node first

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks, whose numbers ibrun reads from the job; -np is for some of them."""
        return (self.name, *(("-np", str(launch.tasks)) if launch.in_allocation else ()), *launch.options)


def _sizes(nodes: int, tasks_per_node: int) -> tuple[str, ...]:
    return (
        f"--nodes={nodes}",
        f"--ntasks={nodes * tasks_per_node}",
        f"--ntasks-per-node={tasks_per_node}",
    )
