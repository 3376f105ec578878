"""Cobalt, the scheduler of ALCF's retired Theta and ThetaGPU: the header of its scripts, aprun and mpirun.

Known from Cobalt's manual of qsub and ALCF's guides to both machines; not tried on a real Cobalt. Nothing is
submitted to it: its machines are switched off.
"""

from collections.abc import Iterable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line, Resources, given, lines, plain_file
from hpclaunch.scheduler.launcher import Launch, Launcher, Mpiexec
from hpclaunch.scheduler.scheduler_interface import Scheduler


class Aprun(Launcher, frozen=True, kw_only=True):
    """Cray ALPS' aprun, as on Theta. It gives a rank its number of the whole job only."""

    name: str = "aprun"
    rank: str = "$ALPS_APP_PE"
    local_rank: str = "$((ALPS_APP_PE % HPCLAUNCH_RANKS_PER_NODE))"

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks, node by node."""
        depth = launch.bound_cpus or launch.cpus_per_task
        return (
            *("aprun", "-n", str(launch.tasks), "-N", str(launch.tasks_per_node)),
            *("-d", str(depth), "-j", str(launch.threads_per_core)),
            *("-cc", "none" if launch.ranks_bind else "depth"),
            *launch.options,
        )

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start one process per node."""
        return ("aprun", "-n", str(nodes), "-N", "1", "-cc", "none")

    def environment(self, cpus_per_task: int | None, header: Iterable[str]) -> tuple[Line, ...]:
        """Give the ranks per node, from which each rank computes its number there."""
        text = "export HPCLAUNCH_RANKS_PER_NODE=$((HPCLAUNCH_TASKS / COBALT_JOBSIZE))"
        return (Line(text=text, reason="ranks per node: aprun tells a rank its number in the job only"),)


_PASSED = ("HPCLAUNCH_JOB_FOLDER", "HPCLAUNCH_FILES", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
"""What ranks on other nodes must know; mpirun starts them without the environment of the script."""


class Mpirun(Mpiexec, frozen=True, kw_only=True):
    """Open MPI's mpirun with the file of the job's nodes, as on ThetaGPU."""

    program: str = "mpirun"

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks; the file names each node once, so the ranks per node are given."""
        sizes = ("-np", str(launch.tasks), "-npernode", str(launch.tasks_per_node))
        passed = (word for name in _PASSED for word in ("-x", name)) if launch.nodes > 1 else ()
        return ("mpirun", *sizes, "--hostfile", '"$COBALT_NODEFILE"', *passed, *launch.options)

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start one process per node."""
        return ("mpirun", "-np", str(nodes), "-npernode", "1", "--hostfile", '"$COBALT_NODEFILE"')


class CobaltScheduler(Scheduler, frozen=True, kw_only=True):
    """Cobalt. Nothing is submitted, so there are no answers to read."""

    def header(self, want: Resources) -> tuple[Line, ...]:
        """Return the #COBALT options (man qsub) for a job."""
        if want.after_any:
            raise BadInputError(
                "--after-any: Cobalt's --dependencies waits for jobs that end with exit status 0 (man qsub)",
                "leave out --after-any",
            )
        hours, seconds = divmod(want.walltime_s, 3600)
        return lines(
            [
                (f"--jobname {want.name}", "the name in qstat"),
                *given("-A {}", want.account, "the project that pays"),
                *given("-q {}", want.queue, want.queue_reason),
                (f"-n {want.nodes}", "nodes"),
                (f"-t {hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}", "walltime limit"),
                *given("-o {}", want.output and _file(want.output), "stdout"),
                *given("-e {}", want.output, "stderr, likewise"),
                *given("--dependencies {}", ":".join(want.after), "jobs that must succeed first"),
            ]
        )


def _file(path: str) -> str:
    """Check a file name for a #COBALT line, where Cobalt also replaces $jobid."""
    return plain_file(path, r"[\w./@%+=:,-]+", "#COBALT line: Cobalt splits it at blanks and quotes")


# On Theta the job's nodes are numbers, 3834-3835,4000; a node's name is nid and five digits.
_BY_NUMBER = (
    'awk -v list="$COBALT_PARTNAME" \'BEGIN { n = split(list, part, ","); for (i = 1; i <= n; i++) {'
    ' m = split(part[i], end, "-"); for (k = end[1]; k <= end[m]; k++) printf "nid%05d\\n", k } }\''
)
_NODE_NAMES = f'if [ -r "${{COBALT_NODEFILE-}}" ]; then cat "$COBALT_NODEFILE"; else {_BY_NUMBER}; fi'

SCHEDULER = CobaltScheduler(
    hands_on_environment=False,
    kind="cobalt",
    reads_directives=True,
    title="Cobalt",
    submit_program="qsub",
    no_submission="is on no machine any more: ALCF's Theta and ThetaGPU, which had it, are switched off",
    template="cobalt.sh.j2",
    launchers=(Aprun(), Mpirun()),
    job_number="$COBALT_JOBID",
    submit_folder="$PWD",  # --cwd is where qsub was called, unless given (man qsub)
    port_number="COBALT_JOBID",
    first_node=f"read -r MASTER_ADDR < <({_NODE_NAMES})",
    node_names=_NODE_NAMES,
    inside_variable="COBALT_JOBID",
    job_name_pattern=r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}",
    job_name_rule="the characters that Cobalt takes are not documented: use letters, digits and ._+-",
    owned_options={
        "-n --nodecount": "--nodes",
        "-t --time": "--time",
        "-A --project": "--account",
        "-q --queue": "--queue",
        "--jobname": "--name",
        "-o --output -e --error -O --outputprefix": "nothing: `hpclaunch logs` shows the output",
        "--dependencies": "--after",
    },
    queue_kinds=("queue",),
    no_restarts="jobs that come back after a checkpoint are not supported on Cobalt",
    no_memory="gives whole nodes with all of their memory (man qsub)",
    no_begin="has no option for the time of a start (man qsub)",
    no_exclusions="has no option that leaves nodes out",
)
