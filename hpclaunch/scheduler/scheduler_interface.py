"""A scheduler: data, and a few translations between data and text. Nothing here runs a command."""

import datetime as dt
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.cluster_facts import ClusterFacts, merged_kinds
from hpclaunch.scheduler.job_header import HeaderRow, Line, Resources
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.walltime import format_walltime

if TYPE_CHECKING:
    from hpclaunch.scheduler.directive_reader import DirectiveReader

JobState = Literal["created", "queued", "running", "done", "failed", "cancelled", "lost"]
"""done: ended with exit code 0; failed: ended otherwise; lost: its scheduler no longer knows it and
it left no exit status."""

FINAL_STATES: frozenset[JobState] = frozenset({"done", "failed", "cancelled", "lost"})


class JobIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that tell a job from another with its number, in the scheduler's words; None: it does not say."""

    cluster: str | None = None
    script: str | None = None
    submitted: str | None = None


class JobFate(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a job, and how it came to it; None: the scheduler does not say."""

    state: JobState
    exit_code: int | None = None
    reason: str | None = None
    started: str | None = None
    ended: str | None = None


class JobStatus(JobFate, frozen=True, kw_only=True):
    """A scheduler's report about one job."""

    jobs: "dict[int, JobStatus]" = {}
    restarts: int = 0
    identity: JobIdentity = JobIdentity()
    others: "tuple[JobStatus, ...]" = ()


class StateWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a scheduler for states of jobs, with sentences for people: ``slurm/states.json``."""

    title: str
    states: dict[str, JobState]
    running: dict[str, str] = {}
    pending: dict[str, str] = {}
    pending_parts: tuple[tuple[str, str], ...] = ()
    ended: dict[str, str] = {}

    def waiting(self, reason: str) -> str | None:
        """Return ``Reason: sentence`` for a job that waits, by ``pending_parts``; None without a reason."""
        parts = self.pending_parts if reason else ()
        words = next((words for part, words in parts if re.search(part, reason, re.IGNORECASE)), None)
        return f"{reason}: {words}" if words else reason or None

    def status(
        self,
        word: str,
        *,
        waits: str | None = None,
        fails: str | None = None,
        code: int | None = None,
        started: str | None = None,
        ended: str | None = None,
    ) -> JobStatus:
        """Return the status of a job in this state, of which these facts count that a job there has.

        ``waits``: why it waits; ``fails``: why it failed or was cancelled, with ``code``.
        """
        state = self.states.get(word)
        if state is None:
            return JobStatus(state="running", reason=f"{self.title} calls its state {word!r}")
        if state == "queued":
            return JobStatus(state=state, reason=self.running.get(word) or waits)
        if state == "running":
            return JobStatus(state=state, reason=self.running.get(word), started=started)
        code, fails = (0, None) if state == "done" else (code or None, fails)
        return JobStatus(state=state, exit_code=code, reason=fails, started=started, ended=ended)


def state_words(kind: str) -> StateWords:
    """Read the words of a scheduler."""
    return msgspec.json.decode(text_beside(__file__, f"{kind}/states.json"), type=StateWords)


def iso_time(seconds: object) -> str | None:
    """Turn seconds since 1970 into ISO 8601; None for 0 and for other texts (Unknown, N/A)."""
    text = str(seconds).strip()
    if not re.fullmatch(r"\d{1,11}(\.\d+)?", text, re.ASCII) or not float(text):
        return None
    time = dt.datetime.fromtimestamp(int(float(text)), dt.timezone.utc)
    return time.astimezone().isoformat()


def array_state(states: Iterable[JobState]) -> JobState:
    """Return the state of an array from those of its jobs: done only where all are."""
    found = set(states)
    for state in ("running", "queued", "created"):
        if state in found:
            return "running" if found & FINAL_STATES and state != "created" else state
    return next((state for state in ("failed", "lost", "cancelled") if state in found), "done")


def array_status(jobs: Mapping[int, JobStatus]) -> JobStatus:
    """Return the status of an array of which the scheduler knows these jobs."""
    state = array_state(job.state for job in jobs.values())
    identity = next((job.identity for job in jobs.values()), JobIdentity())
    restarts = sum(job.restarts for job in jobs.values())
    return JobStatus(state=state, jobs=dict(jobs), identity=identity, restarts=restarts)


def with_arrays(jobs: Iterable[tuple[str, str, int | None, JobStatus]]) -> dict[str, JobStatus]:
    """Return id -> status of jobs, and of arrays by their jobs.

    ``jobs``: id, and of a job of an array (index not None) the array's id, index; status.
    """
    known: dict[str, JobStatus] = {}
    arrays: dict[str, dict[int, JobStatus]] = {}
    for job, array, index, status in jobs:
        known[job] = status
        if index is not None:
            arrays.setdefault(array, {})[index] = status
    return known | {array: array_status(found) for array, found in arrays.items()}


_PROGRAM = r"^(?:\w+: (?:error|fatal)|allocation failure|q(?:sub|stat|del)|flux-\w+(?:: ERROR)?): "


def own_words(answer: CommandResult) -> str:
    """Return what a scheduler's command printed, on one line, without its programs' names."""
    text = answer.stderr.strip() or answer.stdout.strip()
    text = text or f"exit status {answer.exit_code}, no reason given"
    found = (re.sub(_PROGRAM, "", line.strip()) for line in text.splitlines())
    return "; ".join(line for line in found if line)


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that a shell already has, in which a job can start instead of queueing."""

    job_id: str
    nodes: int
    cpus_per_node: int | None


class ArrayRules(msgspec.Struct, frozen=True, kw_only=True):
    """The job arrays of a scheduler."""

    index_variable: str
    job_number: str
    port_number: str
    lists: bool = True
    limits: bool = True
    fewest_jobs: int = 1
    first_index: int = 0
    no_restarts: str = ""


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that runs, submitted by any program."""

    id: str
    nodes: tuple[str, ...]
    parts: tuple[int, ...] = ()
    node_list: str = ""


class Attach(msgspec.Struct, frozen=True, kw_only=True):
    """How a running job is looked into that hpclaunch did not submit."""

    job_variable: str
    id_pattern: str = ""

    query: Callable[[str], tuple[str, ...]]
    parse: Callable[[str, CommandResult], RunningJob]
    step_of: Callable[[str], tuple[str, str | None]] = lambda job: (job, None)
    names_query: Callable[[RunningJob], tuple[str, ...]] = lambda job: ()
    words: Callable[[RunningJob], tuple[str, ...]] = lambda job: ()
    by_component: Callable[[RunningJob], tuple[tuple[str, ...], ...]] = lambda job: ()

    def commands(self, job: RunningJob) -> tuple[tuple[str, ...], ...]:
        """Return the commands that together start one process on each node; none: by ssh."""
        return self.by_component(job) or tuple(filter(None, (self.words(job),)))


def unknown_job(program: str, job: str, answer: CommandResult, hint: str) -> RefusedError:
    """Return the error of a program that does not know a job."""
    said = answer.stderr.strip() or f"exit status {answer.exit_code}"
    return RefusedError(f"{program} does not know job {job}: {said}", hint)


class AccountedJob(JobFate, frozen=True, kw_only=True):
    """A job in a scheduler's accounting; None: it does not say, or the site does not gather it."""

    id: str
    name: str
    submitted: str | None = None
    queued_s: int | None = None
    elapsed_s: int | None = None
    limit_s: int | None = None
    nodes: int
    memory: int | None = None
    cpu_s: float | None = None
    peak_memory: int | None = None
    job_memory: int | None = None
    energy_j: float | None = None
    runs: int


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """How the accounting of a scheduler is asked about a job, submitted by any program."""

    query: Callable[[str], tuple[str, ...]]
    parse: Callable[[str, CommandResult], tuple[AccountedJob, ...]]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How a scheduler is asked whether it would take a script, before the script is submitted."""

    command: tuple[str, ...]
    parse: Callable[[CommandResult], str | None]
    doubt_command: Callable[[str, str | None], tuple[str, ...]]
    parse_doubt: Callable[[CommandResult, str | None, int], str | None]


class SchedulerData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The data about a scheduler: ``KIND/scheduler.json``."""

    kind: str
    title: str
    submit_program: str
    version_command: tuple[str, ...] = ()
    template: str

    # --- the script ---
    header_rows: tuple[HeaderRow, ...] = ()
    quotes: bool = False
    file_pattern: str = ".*"
    file_rule: str = ""
    usual_log: str = ""
    job_number: str
    submit_folder: str
    port_number: str
    first_node: str
    node_names: str
    start_lines: tuple[Line, ...] = ()
    inside_variable: str | None = None
    hands_on_environment: bool = True
    log_in_script: bool = False
    signals_before_limit: bool = False
    job_name_pattern: str = r"[^\x00-\x1f\x7f\\]{1,200}"
    job_name_rule: str = "use up to 200 characters without line breaks and backslashes"

    # --- what it can do ---
    launchers: tuple[Launcher, ...] = ()
    directives: Mapping[str, Any] = {}
    no_submission: str = ""
    told_by: str = ""
    queue_kinds: tuple[str, ...] = ()
    measured_binding: str = "taskset"
    binding_needs_whole_node: bool = False
    has_select: bool = False
    arrays: ArrayRules | None = None
    no_restarts: str = ""
    requeue: str = ""
    find_commands: str = ""
    resubmit_without: str = ""
    no_exclusions: str = "has no option that leaves nodes out"
    memory_suffix: str | None = None
    no_memory: str = "has no request for the memory of a node"
    all_memory: str = ""
    no_begin: str = ""
    keeps_begin: bool = False
    has_interactive: bool = False
    environment_hint: str = "export {name} in the shell that submits: its environment goes to the job"
    allocation_hint: str = ""

    facts_commands: Mapping[str, tuple[str, ...]] = {}

    probe_commands: Mapping[str, tuple[str, ...]] = {}

    # --- its commands and answers ---
    submit: tuple[str, ...] = ()
    submit_again: tuple[str, ...] = ()
    submitted_pattern: str = "(?!)"
    find: tuple[str, ...] = ()
    cancel: tuple[str, ...] = ()
    cluster_sign: str = ""
    id_pattern: str = ""
    starts_at_once: bool = False
    poll_s: tuple[float, float] = (1.0, 30.0)
    query_env: Mapping[str, str] = {}
    cluster_command: tuple[str, ...] = ()
    cluster_pattern: str = ""
    status_sources: tuple[str, ...] = ()
    over_words: str = ""
    over_codes: tuple[int, ...] = ()
    notes: Mapping[str, str] = {}


def scheduler_data(kind: str, *launchers: Launcher) -> dict[str, Any]:
    """Return the fields of ``KIND/scheduler.json``; ``launchers``: those that are more than a row there."""
    data = msgspec.json.decode(text_beside(__file__, f"{kind}/scheduler.json"), type=SchedulerData)
    return {**msgspec.structs.asdict(data), "launchers": (*launchers, *data.launchers)}


class Scheduler(SchedulerData, frozen=True, kw_only=True):
    """One scheduler: everything that depends on its kind. Each folder of a kind has one, ``SCHEDULER``."""

    trial: Trial | None = None
    """None: it submits or refuses, there is no trial."""
    attach: Attach | None = None
    """None: how to look into its jobs from outside is not known."""
    accounting: Accounting | None = None
    """None: what it keeps of ended jobs is not read."""

    def launcher(self, name: str) -> Launcher | None:
        """Return the launcher of that name; None where it does not start ranks here."""
        return next((launcher for launcher in self.launchers if launcher.name == name), None)

    def parse_facts(self, answers: Mapping[str, CommandResult]) -> ClusterFacts:
        """Return what the answers to these of ``facts_commands`` say, by name. Raises RefusedError."""
        facts: ClusterFacts = self._module("nodes").parse_facts(answers)
        return msgspec.structs.replace(facts, nodes=merged_kinds(facts.nodes))

    def shortened(self, name: str, text: str) -> str:
        """Return what ``facts_commands[name]`` printed, nodes that are alike as one line of the same form."""
        return text

    def header(self, want: Resources) -> tuple[Line, ...]:
        """Return the header's options without sentinels. Raises BadInputError for what none can carry."""
        if want.output and not re.fullmatch(self.file_pattern, want.output):
            raise BadInputError.case("header: output", want=want, rule=self.file_rule)
        quoted = shlex.quote if self.quotes else str
        values: dict[str, object] = {
            **msgspec.structs.asdict(want),
            "name": quoted(want.name),
            "output": quoted(want.output) if want.output else self.usual_log,
            "walltime": format_walltime(want.walltime_s),
            "shared": not want.exclusive,
            **self.spelled(want),
        }
        return tuple(
            Line(text=row.text.format_map(values), reason=row.reason.format_map(values))
            for row in self.header_rows
            if all(values[name] for name in ([row.when] if row.when else re.findall(r"\{(\w+)", row.text)))
        )

    def spelled(self, want: Resources) -> dict[str, object]:
        """Return the values in ``header_rows`` that only this scheduler has, or spells in its own way.

        Raises BadInputError for what it cannot be asked for.
        """
        return {}

    def directive_reader(self) -> "DirectiveReader | None":
        """Return what reads the directives of other people's scripts; None: they are not read."""
        if not self.directives:
            return None
        reader: DirectiveReader = self._module("directives").DIRECTIVES
        return reader

    def _module(self, part: str) -> Any:
        """Return ``KIND/KIND_PART.py``, which is loaded where it is needed: a submission reads no answers."""
        return import_module(f"hpclaunch.scheduler.{self.kind}.{self.kind}_{part}")

    def allocation(self, environ: Mapping[str, str]) -> Allocation | None:
        """Return this shell's allocation; None outside, and in a batch job: ``submit`` means a queue."""
        return None

    def interactive(self, options: Sequence[str]) -> "Scheduler":
        """Return the scheduler that allocates with these words of a header and runs the script from here."""
        raise NotImplementedError

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Return the command that submits the script, an absolute path, with ``out.log`` in its folder."""
        return (*self.submit, script)

    def next_command(self, script: str) -> tuple[str, ...]:
        """Return the words with which a running job submits its script again."""
        return (*self.submit_again, script) if self.submit_again else self.submit_command(script)

    def finish_command(self, script: str) -> tuple[str, ...]:
        """Return the command that ends a submission which was cut off; nothing where there is none.

        Its answer is one for ``parse_submit``; exit code 75 means that the outcome is not known yet.
        """
        return ()

    def overriding(self, script: str) -> tuple[str, ...]:
        """Return the environment variables that submission would obey rather than the script's options."""
        return ()

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the job's id, if among other lines. Raises RefusedError with the scheduler's words."""
        found = re.findall(self.submitted_pattern, answer.stdout, re.MULTILINE | re.ASCII)
        if answer.exit_code != 0 or not found:
            raise RefusedError(f"{self.title} refused the job: {own_words(answer)}")
        return str(found[-1])

    def is_id(self, text: str) -> bool:
        """Return whether a record's or a job's file may hold this as an id; no other text is asked about."""
        return not self.id_pattern or re.fullmatch(self.id_pattern, text, re.ASCII) is not None

    def cluster_in(self, scheduler_id: str) -> str | None:
        """Return the cluster that the id itself names, which is asked wherever the question comes from."""
        return scheduler_id.partition(self.cluster_sign)[2] or None if self.cluster_sign else None

    def parse_cluster(self, answer: CommandResult) -> str:
        """Return the name of the cluster; raise RefusedError where the answer has none."""
        match = re.search(self.cluster_pattern, answer.stdout, re.MULTILINE)
        if answer.exit_code != 0 or not match:
            program = self.cluster_command[0]
            raise RefusedError(f"{program} does not name its cluster: {own_words(answer)[:200]}")
        return match[1]

    def failed_nodes_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the command that names the nodes whose failure ended a job; nothing where there is none."""
        return ()

    def parse_failed_nodes(self, answer: CommandResult) -> tuple[str, ...]:
        """Return these nodes; none also where the scheduler does not know."""
        return ()

    def parse_found(self, script: str, answer: CommandResult) -> str | None:
        """Return the id of a script's job, by its absolute path; None: no job. Raises RefusedError."""
        return None

    def status_commands(self, source: str, ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the commands (nearly always one) that ask ``source`` for all these jobs."""
        commands: tuple[tuple[str, ...], ...] = self._module("status").status_commands(source, ids)
        return commands

    def parse_status(self, source: str, ids: Sequence[str], answer: CommandResult) -> dict[str, JobStatus]:
        """Read one such answer; jobs that it does not know are not in the result.

        Raises RefusedError where the source could not be reached or its answer cannot be read, whatever its
        exit status: then the states are not known.
        """
        statuses: dict[str, JobStatus] = self._module("status").parse_status(source, ids, answer)
        return statuses

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the words of the command that cancels the job."""
        return (*self.cancel, scheduler_id)

    def parse_cancel(self, answer: CommandResult) -> None:
        """Return where the job is ended or ending or had ended before; raise RefusedError otherwise."""
        words = answer.stdout + answer.stderr
        over = self.over_words and re.search(self.over_words, words, re.IGNORECASE)
        if answer.exit_code not in (0, *self.over_codes) and not over:
            raise RefusedError(f"{self.title} did not cancel the job: {own_words(answer)}")
