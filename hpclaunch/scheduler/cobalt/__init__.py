"""Cobalt, the scheduler of ALCF's retired Theta and ThetaGPU: the header of its scripts, aprun and mpirun.

Known from Cobalt's manual of qsub and ALCF's guides to both machines; not tried on a real Cobalt. Nothing is
submitted to it: its machines are switched off.
"""

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.launcher import LINES, Launch, Launcher, Mpirun
from hpclaunch.scheduler.scheduler_interface import Scheduler, scheduler_data


class Aprun(Launcher, frozen=True, kw_only=True):
    """Cray ALPS' aprun, as on Theta. It gives a rank its number of the whole job only."""

    name: str = "aprun"
    rank: str = "$ALPS_APP_PE"
    local_rank: str = "$((ALPS_APP_PE % HPCLAUNCH_RANKS_PER_NODE))"
    each_node: str = "aprun -n {nodes} -N 1 -cc none"
    shell_lines: tuple[Line, ...] = LINES["aprun"]

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks, node by node."""
        depth = launch.bound_cpus or launch.cpus_per_task
        return (
            *("aprun", "-n", str(launch.tasks), "-N", str(launch.tasks_per_node)),
            *("-d", str(depth), "-j", str(launch.threads_per_core)),
            *("-cc", "none" if launch.ranks_bind else "depth"),
            *launch.options,
        )


_PASSED = ("HPCLAUNCH_JOB_FOLDER", "HPCLAUNCH_FILES", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
"""Variables that ranks on other nodes need; mpirun starts them without the environment of the script."""


class CobaltMpirun(Mpirun, frozen=True, kw_only=True):
    """Open MPI's mpirun with the file of the job's nodes, as on ThetaGPU."""

    each_node: str = 'mpirun -np {nodes} -npernode 1 --hostfile "$COBALT_NODEFILE"'

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks; the file names each node once, so the ranks per node are given."""
        sizes = ("-np", str(launch.tasks), "-npernode", str(launch.tasks_per_node))
        passed = (word for name in _PASSED for word in ("-x", name)) if launch.nodes > 1 else ()
        return ("mpirun", *sizes, "--hostfile", '"$COBALT_NODEFILE"', *passed, *launch.options)


class CobaltScheduler(Scheduler, frozen=True, kw_only=True):
    """Cobalt. Nothing is submitted, so there are no answers to read."""

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return the jobs to wait for, as qsub has them (man qsub)."""
        if want.after_any:
            raise BadInputError.case("after: Cobalt")
        return {"ids": ":".join(want.after)}


SCHEDULER = CobaltScheduler(**scheduler_data("cobalt", Aprun(), CobaltMpirun()))
