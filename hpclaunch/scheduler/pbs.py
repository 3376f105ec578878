"""PBS Professional and OpenPBS: qsub, qdel, qrerun; qstat's answers are read in ``pbs_status``.

Tested on outputs recorded from OpenPBS 23.06 (tests/data/pbs).
"""

import re
from collections.abc import Mapping, Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.cluster_facts import ClusterFacts
from hpclaunch.scheduler.job_header import Line, Resources, given, lines, plain_file
from hpclaunch.scheduler.launcher import Launch, Launcher, Mpiexec
from hpclaunch.scheduler.pbs_accounting import PbsAccounting
from hpclaunch.scheduler.pbs_attach import PbsAttach
from hpclaunch.scheduler.scheduler_interface import ArrayRules, JobStatus, Scheduler, own_words
from hpclaunch.walltime import format_walltime

_UNKNOWN_JOB, _FINISHED, _BAD_STATE = 153, 35, 168


class Pals(Launcher, frozen=True, kw_only=True):
    """HPE Cray PALS mpiexec, as documented by ALCF for Polaris and Aurora; on Aurora it sets no PMI_RANK."""

    name: str = "pals"
    rank: str = "${PALS_RANKID:-$PMI_RANK}"
    local_rank: str = "${PALS_LOCAL_RANKID:-$PMI_LOCAL_RANK}"
    cpu_bindings: tuple[str, ...] = ("list",)
    unbound: str | None = "--cpu-bind none"

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks."""
        words = ["mpiexec", "-n", str(launch.tasks), "--ppn", str(launch.tasks_per_node)]
        if launch.cpu_bind:
            words += launch.cpu_bind.split()
        return (*words, *launch.options)

    def one_per_node(self, nodes: int) -> tuple[str, ...]:
        """Start one process per node; PBS' own file may name a node for each rank, PALS knows the nodes."""
        return ("mpiexec", "-n", str(nodes), "--ppn", "1", "--cpu-bind", "none")


class PbsScheduler(Scheduler, frozen=True, kw_only=True):
    """PBS. An id is what qsub prints, ``NUMBER.SERVER``."""

    def parse_facts(self, answers: Mapping[str, CommandResult]) -> ClusterFacts:
        """Return queues and nodes as qstat and pbsnodes print them."""
        from hpclaunch.scheduler.pbs_nodes import parse_pbs_facts

        return parse_pbs_facts(answers)

    def header(self, want: Resources) -> tuple[Line, ...]:
        """Return the #PBS options (man qsub; PBS Professional user's guide) for a job.

        A reason takes a whole line: directives that everybody knows have none.
        """
        return lines(
            [
                (f"-N {want.name}", ""),
                *given(f"{want.account_option} {{}}", want.account, ""),
                *given("-q {}", want.queue, want.queue_reason),
                (f"-l select={_select(want)}", "nodes, and what each of them must be"),
                (f"-l place=scatter{':excl' if want.exclusive else ''}", _place(want)),
                (f"-l walltime={format_walltime(want.walltime_s)}", ""),
                ("-j oe", "stderr goes where stdout goes"),
                *given("-o {}", want.output and _file(want.output), "stdout and stderr of the job"),
                *given("-k doe", want.output, "written there while the job runs, not copied at its end"),
                *want.begins("-a {:%Y%m%d%H%M}"),
                *given(
                    "-W depend={}",
                    want.after and want.dependency,
                    "jobs that must end first; if one fails PBS ends this one",
                ),
                *given("-J {}", want.array, "a job for each index"),
                *given("-r y", want.warn_s is not None, "the job may come back after a checkpoint"),
            ]
        )

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Submit by qsub; the script's own directives say all else."""
        return ("qsub", script)

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the id, which a site's hook may print among other lines.

        With ``-W block=true`` qsub prints it, waits for the job and exits with the job's status (man qsub):
        an id with its server is that of a job, whatever the exit status.
        """
        server = "?" if answer.exit_code == 0 else ""
        for line in reversed(answer.stdout.splitlines()):
            if re.fullmatch(rf"\d+(\[\])?(\.[\w.-]+){server}", line.strip()):
                return line.strip()
        raise RefusedError(f"PBS refused the job: {own_words(answer)}")

    def cluster_in(self, scheduler_id: str) -> str | None:
        """Return the server of ``NUMBER.SERVER``, which PBS' commands ask (man qstat, OPERANDS)."""
        return scheduler_id.partition(".")[2] or None

    def find_command(self) -> tuple[str, ...]:
        """List the jobs of all users, also those that have ended meanwhile: qstat -f takes no user."""
        return ("qstat", "-x", "-f")

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job whose qsub was given the script."""
        if answer.exit_code != 0:
            raise RefusedError(f"qstat gives no answer: {own_words(answer)}")
        from hpclaunch.scheduler.pbs_status import text_jobs

        jobs = text_jobs(answer.stdout).items()
        return next((job for job, a in jobs if script in str(a.get("Submit_arguments", ""))), None)

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return one qstat for all: JSON, and text for jobs whose JSON cannot be read."""
        from hpclaunch.scheduler.pbs_status import status_commands

        return status_commands(source, ids)

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Read qstat's answer; an unknown job fails the command, but the answer has the other jobs."""
        from hpclaunch.scheduler.pbs_status import parse_status

        return parse_status(source, ids, answer)

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """End the job."""
        return ("qdel", scheduler_id)

    def parse_cancel(self, answer: CommandResult) -> None:
        """Raise RefusedError unless the job is ended, ending, or unknown by now."""
        if answer.exit_code not in (0, _UNKNOWN_JOB, _FINISHED, _BAD_STATE):
            raise RefusedError(f"PBS did not cancel the job: {own_words(answer)}")


def _place(want: Resources) -> str:
    return "each chunk on another node" + (", shared with no other job" if want.exclusive else "")


def _file(path: str) -> str:
    return plain_file(path, r"[\w./@%+=:,-]+", "#PBS line: PBS splits it at blanks and quotes")


def _select(want: Resources) -> str:
    memory = f":mem={want.memory}" if want.memory else ""
    if want.select is not None:
        select = want.select.replace("TASKS", str(want.tasks_per_node))
        return f"{want.nodes}:{select}{memory}" if select else f"{want.nodes}{memory}"
    cpus = want.tasks_per_node * (want.cpus_per_task or 1)
    gpus = f":ngpus={want.gpus_per_node}" if want.gpus_per_node else ""
    return f"{want.nodes}:ncpus={cpus}:mpiprocs={want.tasks_per_node}{gpus}{memory}"


SCHEDULER = PbsScheduler(
    hands_on_environment=False,
    kind="pbs",
    reads_directives=True,
    title="PBS",
    submit_program="qsub",
    template="pbs.sh.j2",
    launchers=(Pals(), Mpiexec(hosts=("-machinefile", '"$PBS_NODEFILE"'))),
    job_number="${PBS_JOBID%%[!0-9]*}",
    submit_folder="$PBS_O_WORKDIR",
    port_number="${PBS_JOBID%%[!0-9]*}",
    first_node='read -r MASTER_ADDR < "$PBS_NODEFILE"',
    node_names="awk '!seen[$0]++' \"$PBS_NODEFILE\"",  # which may name a node for each rank
    start_lines=(Line(text='cd "$PBS_O_WORKDIR"', reason="PBS starts a job in the home folder"),),
    inside_variable="PBS_NODEFILE",
    log_in_script=True,  # PBS empties the file of -o when it starts a job again, as after the loss of a node
    job_name_pattern=r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}",  # recorded: evil-name-*
    job_name_rule=(
        "PBS takes letters, digits, dots, dashes, plus signs and underscores, a letter or digit first"
    ),
    owned_options={
        "-l select -l nodes": "--nodes",
        "-l walltime": "--time",
        "-A": "--account",
        "-q": "--queue",
        "-N": "--name",
        "-o": "nothing: `hpclaunch logs` shows the output",
        "-l mem": "--mem",
        "-J": "--array",
        "-W depend": "--after",
        "-W block": "hpclaunch submit --wait",
    },
    environment_hint="export {name} in the shell that submits and add --directive '-v {name}' (man qsub)",
    queue_kinds=("queue",),
    facts_commands={
        "queues": ("qstat", "-Q", "-f", "-F", "json"),
        "nodes": ("pbsnodes", "-a", "-F", "json"),
        "server": ("qstat", "-B", "-f", "-F", "json"),
    },
    measured_binding="none",
    has_select=True,
    memory_suffix="b",
    keeps_begin=True,
    attach=PbsAttach(),
    accounting=PbsAccounting(),
    arrays=ArrayRules(
        index_variable="PBS_ARRAY_INDEX",
        job_number="${PBS_JOBID%%[!0-9]*}",
        port_number="(${PBS_JOBID%%[!0-9]*} + PBS_ARRAY_INDEX)",  # an array has one number for all its jobs
        lists=False,
        fewest_jobs=2,
        no_restarts="a job of an array comes back by qrerun, which only operators may use",
    ),
    # Recorded: operators may, ordinary users not (qrerun-root, qrerun-user), nor anybody after qsub -r n.
    requeue='qrerun "$PBS_JOBID"',
    # A job's PATH is the server's default; that of qsub is in PBS_O_PATH (man qsub, ENVIRONMENT VARIABLES).
    find_commands="PATH=$PATH:$PBS_O_PATH ",
    id_pattern=r"\d+(\[\d*\])?(\.[\w.-]+)?",
    # qstat itself turns the server's seconds into local times, without their zone. A site's own qstat that
    # shows what another user has requested would be off by that user's zone: its answer does not tell.
    query_env={"TZ": "UTC0"},
    status_sources=("json", "text", "each"),
)
