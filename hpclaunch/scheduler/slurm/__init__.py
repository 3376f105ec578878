"""Slurm: sbatch, scancel, and the header of its scripts; its answers are read in ``slurm_status``.

Tested on 22.05.8, 25.05.8 and 25.05.9; those between are known from their man pages and sources. Launchers
are Slurm's srun (man srun, 22.05 to 25.05) and TACC's ibrun (TACC-Docs at 1d94ecf, hpc/vista).
"""

import datetime as dt
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from hpclaunch.amounts import listed
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import package_constants, text_beside
from hpclaunch.scheduler import scheduler_interface
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.launcher import LINES, Launch, Launcher, Mpiexec
from hpclaunch.scheduler.slurm.slurm_accounting import LOOK, QUERIES, accounting_query, parse_accounting


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
    each_node: str = QUERIES["each node"]

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
        return tuple(Line(text=row.text.format(cpus_per_task), reason=row.reason) for row in LINES["srun"])

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
    each_node: str = QUERIES["each node"]  # ibrun fills the first node first

    def words(self, launch: Launch) -> tuple[str, ...]:
        """Start all ranks, whose numbers ibrun reads from the job; -np is for some of them."""
        return (self.name, *(("-np", str(launch.tasks)) if launch.in_allocation else ()), *launch.options)


def _sizes(nodes: int, tasks_per_node: int) -> tuple[str, ...]:
    return (f"--nodes={nodes}", f"--ntasks={nodes * tasks_per_node}", f"--ntasks-per-node={tasks_per_node}")


class SlurmScheduler(scheduler_interface.Scheduler, frozen=True, kw_only=True):
    """Slurm. An id is ``JOBID``, or ``JOBID;CLUSTER`` where sbatch names a cluster."""

    def shortened(self, name: str, text: str) -> str:
        """Return nodes that are alike as one line, with their number."""
        from hpclaunch.scheduler.slurm.slurm_nodes import reduced

        return reduced(text) if name == "nodes" else text

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return what sbatch, which splits its lines as a shell does, has in its own way (man sbatch)."""
        option = "--gres=gpu:" if want.gpu_request == "gres" else "--gpus-per-node="
        count = ":".join(filter(None, (want.gpu_type, str(want.gpus_per_node or ""))))
        log = shlex.quote(want.output).replace("%", "%%") if want.output else self.usual_log
        return {
            "gpus": option + count if want.gpus_per_node and want.gpu_request != "none" else "",
            "output": log,
            "dependency": want.dependency,
            "exclude": ",".join(want.exclude),
        }

    def allocation(self, environ: Mapping[str, str]) -> scheduler_interface.Allocation | None:
        """Return what salloc gave, as its variables say (man salloc, OUTPUT ENVIRONMENT VARIABLES)."""
        job_id = environ.get("SLURM_JOB_ID", "")
        if not job_id or environ.get("ENVIRONMENT") == "BATCH":
            return None
        nodes = environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES") or "1"
        cpus = [
            int(text)
            for text in re.findall(r"(\d+)(?:\(x\d+\))?", environ.get("SLURM_JOB_CPUS_PER_NODE", ""))
        ]
        return scheduler_interface.Allocation(
            job_id=job_id, nodes=int(nodes) if nodes.isdigit() else 1, cpus_per_node=min(cpus, default=None)
        )

    def interactive(self, options: Sequence[str]) -> "SlurmScheduler":
        """Return Slurm by salloc."""
        wanted = tuple(word for word in options if word.partition("=")[0] not in QUERIES["batch only"])
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return SallocScheduler(**{**fields, "submit_program": "salloc"}, options=wanted)

    def overriding(self, script: str) -> tuple[str, ...]:
        """Return those that sbatch would put above the script's options, and the one that makes it wait."""
        from hpclaunch.scheduler.slurm.slurm_directives import overriding_variables

        return overriding_variables(script)

    def is_id(self, text: str) -> bool:
        """Return whether it is a number as Slurm has them (32 bits), perhaps with its cluster."""
        match = re.fullmatch(r"(\d{1,10})(_\d+)?(;[\w.-]+)?", text, re.ASCII)
        return match is not None and int(match[1]) < 1 << 32

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of the job whose command is the script."""
        if answer.exit_code != 0:
            raise RefusedError(f"squeue gives no answer: {scheduler_interface.own_words(answer)}")
        rows = (line.partition("|") for line in answer.stdout.splitlines())
        return next((number.strip() for number, _, command in rows if command.strip() == script), None)

    def failed_nodes_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Show the job, which has FailedNode since 23.02; srun of 25.05 no longer writes it into the log."""
        return self.status_commands("scontrol", [scheduler_id])[0]

    def parse_failed_nodes(self, answer: CommandResult) -> tuple[str, ...]:
        """Return the values of FailedNode."""
        return tuple(re.findall(r"(?:^|\s)FailedNode=([\w.-]+)(?=\s)", answer.stdout))

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Cancel the job with all its steps."""
        from hpclaunch.scheduler.slurm.slurm_status import cluster_of, number_of

        return ("scancel", *cluster_of(scheduler_id), number_of(scheduler_id))


class SallocScheduler(SlurmScheduler, frozen=True, kw_only=True):
    """Slurm by salloc: the script runs where it was submitted, and the job is one of Slurm's as any other."""

    options: tuple[str, ...]
    """The words that a batch script would have as directives, without those that only batch scripts
    have (man sbatch, man salloc)."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Allocate and run the script, detached; its output goes to ``out.log`` in its folder."""
        text = text_beside(__file__, "salloc_submit.sh")
        return ("setsid", "bash", "-c", text, "hpclaunch-salloc", script, *self.options)


# sbatch prints this also where nodes are only temporarily away; the same job, submitted, waits for them.
_MAY_BE_TEMPORARY = "Requested node configuration is not available"
# States that end sometime, in sinfo's compact form (man sinfo); an asterisk: the node does not respond.
_AWAY = r"(drain|drng|down|fail|failg|maint|boot|resv|unk)\W?|\w+\*"
# Slurm's words where slurmctld is not reached (src/common/slurm_errno.c of 22.05 and 25.05).
_SILENT = "Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted"


def _parse_trial(answer: CommandResult) -> str | None:
    """Return when and where Slurm expects to start the job, None where it does not say.

    The forms are those of 22.05.8 and 25.05.9, tried with both; 25.05 may name the cluster behind the time,
    and has a stray "a" there (src/api/allocate.c). Raises RefusedError with Slurm's words.
    """
    if answer.exit_code != 0:
        said = "sbatch gives no answer" if re.search(_SILENT, answer.stderr) else "Slurm would refuse the job"
        raise RefusedError(f"{said}: {scheduler_interface.own_words(answer)}")
    match = re.search(QUERIES["expected"], answer.stderr)
    if not match:
        return None
    time, nodes, partition = match.groups()
    if time.isdigit():
        local = dt.datetime.fromtimestamp(int(time), dt.timezone.utc).astimezone()
        time = local.strftime("%Y-%m-%d %H:%M:%S")
    return f"expected to start at {time} on {nodes}" + (f" (partition {partition})" if partition else "")


def _doubt_command(refusal: str, queue: str | None) -> tuple[str, ...]:
    """List the partition's nodes where the refusal may come from drained or down ones."""
    if _MAY_BE_TEMPORARY not in refusal:
        return ()
    return ("sinfo", "-h", "-N", "-o", "%N|%t|%P", *(("-p", queue) if queue else ()))


def _parse_doubt(answer: CommandResult, queue: str | None, nodes: int) -> str | None:
    """Return which nodes are away where the partition would have enough with them.

    Without ``queue`` the default partition counts, which sinfo marks with an asterisk.
    """
    rows = [line.split("|") for line in answer.stdout.splitlines() if line.count("|") == 2]
    states = {node: state for node, state, partition in rows if queue or partition.endswith("*")}
    away = sorted(node for node, state in states.items() if re.fullmatch(_AWAY, state))
    if answer.exit_code != 0 or len(states) < nodes or len(states) - len(away) >= nodes:
        return None
    shown = listed([f"{node} {states[node]}" for node in away])
    return f"of {len(states)} nodes {len(away)} are away ({shown}): the job waits; sinfo -R gives the reason"


# squeue and srun as in the man pages of 22.05 to 24.11; tried with 22.05.8.
def _attach_step_of(job: str) -> tuple[str, str | None]:
    """Split JOB.STEP; of a component (JOB+1) the whole job is meant, whose ranks count through."""
    named, _, step = job.partition(".")
    return named.partition("+")[0], step or None


def _attach_parse(job: str, answer: CommandResult) -> scheduler_interface.RunningJob:
    """Read the one row; of an array each running job is one."""
    if answer.exit_code != 0:
        raise scheduler_interface.unknown_job("squeue", job, answer, "it shows jobs until they have ended")
    rows = [line.strip().split("|") for line in answer.stdout.splitlines() if line.count("|") == 5]
    running = [row for row in rows if row[1] == "RUNNING"]
    if not rows:
        raise BadInputError(f"job {job} is not in the queue: it has ended", "name one that runs: squeue --me")
    if not running:
        raise BadInputError(f"job {job} is {rows[0][1]} ({rows[0][3]}), so no rank runs", "wait for it")
    components = [row for row in rows if "+" in row[4]]
    if len(running) > 1 and not components:
        raise BadInputError(f"job {job} is an array, of which several run", "name one of them: ID_INDEX")
    if components and len({row[4].partition("+")[0] for row in components} | {job}) > 1:
        raise BadInputError.case("attach: component", job=job, whole=components[0][4])
    counts = tuple(int(row[2]) for row in running)
    return scheduler_interface.RunningJob(
        id=running[0][0],
        nodes=tuple(f"node {n}" for n in range(sum(counts))),
        parts=counts if components else (),
        node_list=",".join(row[5] for row in running),
    )


def _attach_step(job: scheduler_interface.RunningJob, group: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Start a step that takes nothing from the job's own steps, is not bound, and not an MPI program."""
    sizes = (f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", f"--job-name={LOOK}")
    sharing = ("--overlap", "--cpu-bind=none", "--mem-bind=none", "--mpi=none", "--kill-on-bad-exit=0")
    inputs = package_constants("scheduler/forms.json", "slurm")
    own = [f"--unset={name}" for name in inputs.srun_inputs.split()]
    others = ("--export=ALL", "--input=none", "--quiet")
    return ("env", *own, "srun", f"--jobid={job.id}", *group, *sizes, *sharing, *others)


SCHEDULER = SlurmScheduler(
    **scheduler_interface.scheduler_data("slurm", Srun(), Ibrun(), Mpiexec()),
    attach=scheduler_interface.Attach(
        job_variable="SLURM_JOB_ID",
        id_pattern=r"\d+(_\d+)?(\+\d+)?(\.\d+)?",
        # squeue prints a job of an array with its own id.
        query=lambda job: ("squeue", "--noheader", "--jobs", job, "--format=%A|%T|%D|%r|%i|%N"),
        parse=_attach_parse,
        step_of=_attach_step_of,
        names_query=lambda job: ("scontrol", "show", "hostnames", job.node_list),
        words=lambda job: _attach_step(job, (), len(job.nodes)),
        # Of a heterogeneous job: srun refuses a component's id (22.05.8).
        by_component=lambda job: tuple(
            _attach_step(job, (f"--het-group={n}",), count) for n, count in enumerate(job.parts)
        ),
    ),
    accounting=scheduler_interface.Accounting(query=accounting_query, parse=parse_accounting),
    trial=scheduler_interface.Trial(
        command=("sbatch", "--test-only"),
        parse=_parse_trial,
        doubt_command=_doubt_command,
        parse_doubt=_parse_doubt,
    ),
)
