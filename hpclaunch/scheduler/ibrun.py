"""TACC's ibrun under Slurm (TACC-Docs at 1d94ecf, docs/hpc/vista/launching.md and mps.md)."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.

from hpclaunch.scheduler.launcher import Launch, Mpiexec
from hpclaunch.scheduler.srun import Srun


class Ibrun(Mpiexec, frozen=True, kw_only=True):
    """It starts the loaded MPI's mpirun with the job's nodes and tasks; ranks read their MPI's variables."""

    name: str = "ibrun"
    program: str = "ibrun"

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks, whose numbers ibrun reads from the job; -np is for some of them."""
        some = ("-np", str(launch.tasks)) if launch.in_allocation else ()
        return (self.program, *some, *launch.options)

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start one process per node by srun: ibrun fills the first node first."""
        return Srun().one_per_node(nodes)
