"""Grid Engine (Sun's, Univa's, Altair's): the header of its scripts. Nothing is submitted to it.

Known from the manual of qsub and AIST's guide to ABCI; its directives are tried on the real qsub of 8.1.9.
"""

from collections.abc import Iterable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.launcher import Mpirun
from hpclaunch.scheduler.scheduler_interface import Scheduler, scheduler_data

_RESOURCE = "resource"
"""The kind of a "queue" that is a resource of ``-l``, which counts nodes, as ABCI's rt_F."""


class SgeMpirun(Mpirun, frozen=True, kw_only=True):
    """An MPI's mpirun with a file that names each node once per rank."""

    start: str = 'mpirun -n {tasks} -machinefile "$HPCLAUNCH_JOB_FOLDER/machines"'

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Keep Open MPI from binding, and write that file: Grid Engine's own counts slots."""
        text = (
            f'{_DATA["node_names"]} | awk -v ranks="$HPCLAUNCH_TASKS" \'{{ node[NR] = $0 }} END {{'
            " for (i = 1; i <= NR; i++) for (k = 0; k < ranks / NR; k++) print node[i] }'"
            ' > "$HPCLAUNCH_JOB_FOLDER/machines"'
        )
        line = Line(text=text, reason="the file of the job's nodes, a line per rank")
        return (*self.shell_lines, line)


class SgeScheduler(Scheduler, frozen=True, kw_only=True):
    """Grid Engine. Nothing is submitted, so there are no answers to read."""

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return what qsub has in its own way (man qsub): nodes where a resource counts them, else slots."""
        if want.after and not want.after_any:
            raise BadInputError.case("after: Grid Engine")
        by_nodes = want.queue_kind == _RESOURCE
        indices, _, at_once = (want.array or "").partition("%")
        return {
            "queue": "" if by_nodes else want.queue,
            "resource": want.queue if by_nodes else "",
            "slots": 0 if by_nodes else want.nodes * want.tasks_per_node * (want.cpus_per_task or 1),
            "ids": ",".join(want.after),
            "indices": indices,
            "at_once": at_once,
        }


_DATA = scheduler_data("sge", SgeMpirun())
SCHEDULER = SgeScheduler(**_DATA)
