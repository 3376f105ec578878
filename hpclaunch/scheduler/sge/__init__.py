"""Grid Engine (Sun's, Univa's, Altair's): the header of its scripts. Nothing is submitted to it.

Known from the manual of qsub and AIST's guide to ABCI; its directives are tried on the real qsub of 8.1.9.
"""

from collections.abc import Iterable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line, Resources, given, lines, plain_file
from hpclaunch.scheduler.launcher import Mpiexec
from hpclaunch.scheduler.scheduler_interface import Scheduler, scheduler_data
from hpclaunch.walltime import format_walltime

_DATA = scheduler_data("sge")
_RESOURCE = "resource"
"""The kind of a "queue" that is a resource of ``-l``, which counts nodes, as ABCI's rt_F."""


class Mpirun(Mpiexec, frozen=True, kw_only=True):
    """An MPI's mpirun with a file that names each node once per rank."""

    program: str = "mpirun"
    hosts: tuple[str, ...] = ("-machinefile", '"$HPCLAUNCH_JOB_FOLDER/machines"')

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Keep Open MPI from binding, and write that file: Grid Engine's own counts slots."""
        text = (
            f'{_DATA["node_names"]} | awk -v ranks="$HPCLAUNCH_TASKS" \'{{ node[NR] = $0 }} END {{'
            " for (i = 1; i <= NR; i++) for (k = 0; k < ranks / NR; k++) print node[i] }'"
            ' > "$HPCLAUNCH_JOB_FOLDER/machines"'
        )
        line = Line(text=text, reason="the file of the job's nodes, a line per rank")
        return (*Mpiexec.environment(self, cpus_per_task, header), line)


# What precedes a colon is a host, and a dollar begins a variable.
_FILE, _SPLITS = r"[\w./@%+=,-]+", "#$ line: Grid Engine splits it at blanks and colons"


class SgeScheduler(Scheduler, frozen=True, kw_only=True):
    """Grid Engine. Nothing is submitted, so there are no answers to read."""

    def header(self, want: Resources) -> tuple[Line, ...]:
        """Return the #$ options (man qsub) for a job."""
        if want.after and not want.after_any:
            raise BadInputError(
                "--after: Grid Engine's -hold_jid waits for the end of jobs, however they end (man qsub)",
                "add --after-any if that is what is wanted",
            )
        indices, _, at_once = (want.array or "").partition("%")
        return lines(
            [
                (f"-N {want.name}", "the name in qstat"),
                ("-S /bin/bash", "the shell; the queue's own may be another one"),
                ("-cwd", "the job starts where it was submitted"),
                *given("-P {}", want.account, "the project that pays"),
                *given("-q {}", want.queue_kind != _RESOURCE and want.queue, want.queue_reason),
                _sizes(want),
                (f"-l h_rt={format_walltime(want.walltime_s)}", "walltime limit"),
                ("-j y", "stderr goes where stdout goes"),
                *given("-o {}", plain_file(want.output, _FILE, _SPLITS), "stdout and stderr of the job"),
                *want.begins("-a {:%Y%m%d%H%M}"),
                *given("-hold_jid {}", ",".join(want.after), "jobs that must end first"),
                *given("-t {}", indices, "a job for each index"),
                *given("-tc {}", at_once, "how many of them run at a time"),
            ]
        )


def _sizes(want: Resources) -> tuple[str, str]:
    """Request nodes by the resource that counts them, where the site has such; else slots."""
    if want.queue_kind == _RESOURCE:
        return f"-l {want.queue}={want.nodes}", f"nodes of this kind: {want.queue_reason}"
    slots = want.nodes * want.tasks_per_node * (want.cpus_per_task or 1)
    return (
        f"-pe mpi {slots}",
        "slots of a parallel environment; its name is the site's, qconf -spl lists them",
    )


SCHEDULER = SgeScheduler(
    **_DATA,
    launchers=(Mpirun(),),
)
