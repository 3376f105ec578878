"""What the options and variables of other people's batch scripts are about, per scheduler.

Options are named as the scheduler's ``DirectiveReader`` names them. Sources: man sbatch, man srun (22.05 to
24.11), man qsub and pbs_resources (OpenPBS 23), IBM's bsub reference (10.1), Cobalt's man qsub, qsub of Grid
Engine 8.1.9, man flux-batch.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

Subject = Literal[
    "account", "after", "array", "begin", "binding", "carried", "constraint", "container", "cpus",
    "exclusive", "export", "fabric", "folder", "gpus", "gpus per node", "gpus per task", "interactive",
    "left out", "mail events", "mail user", "memory", "module", "name", "node list", "nodes", "nothing",
    "output", "qos", "queue", "rendezvous", "requeue", "reservation", "select", "signal", "site", "tasks",
    "tasks per node", "walltime", "wrap",
]  # fmt: skip
"""What an option is about. carried: only this scheduler has it, on any machine; site: it names something of
one machine; nothing: the target's script does without it."""

Fact = Literal[
    "array index", "first node", "folder", "gpus per node", "job", "local rank", "node file", "node list",
    "node rank", "nodes", "rank", "tasks", "tasks per node", "cpus per task",
]  # fmt: skip
"""What a variable of the scheduler holds."""

MailEvent = Literal["begin", "end", "fail"]


class After(NamedTuple):
    """The jobs that a job waits for."""

    ids: tuple[str, ...]
    any_end: bool


class ForeignWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one scheduler."""

    options: Mapping[str, Subject] = {}
    variables: Mapping[str, Fact] = {}
    manual: str = "the scheduler's manual"
    """Where the options are described."""
    read_mail: Callable[[str, str], frozenset[MailEvent]] = lambda name, value: frozenset()
    """Reads a ``mail events`` option, its name and value."""
    mail_by_user: frozenset[MailEvent] = frozenset()
    """The events of which an address alone requests mail."""
    write_mail: Callable[[frozenset[MailEvent], str | None], tuple[str, ...]] | None = None
    """Writes the options that send mail, without the sentinel; None: not known."""
    read_array: Callable[[str], str | None] = lambda text: text or None
    """Reads indices as ``--array`` takes them; None: they cannot be read."""
    write_array: Callable[[str], str] = lambda text: text
    """Writes them as this scheduler's header has them, for reports."""
    read_after: Callable[[str], After | None] = lambda text: None
    """Reads the jobs that must end first; None: another kind of dependency."""
    read_name: Callable[[str], str] = lambda text: text
    """Reads a job's name, which may hold the indices of an array."""


def foreign_words(kind: str | None) -> ForeignWords | None:
    """Return the words of a kind of scheduler; None: they are not known."""
    return _WORDS.get(kind or "")


def words_by_variables(names: Iterable[str]) -> ForeignWords:
    """Return the words of the scheduler whose variables a script uses; of none where it uses none."""
    used = list(names)
    counts = {kind: sum(name in words.variables for name in used) for kind, words in _WORDS.items()}
    best = max(counts, key=lambda kind: counts[kind])
    return _WORDS[best] if counts[best] else ForeignWords()


_OPTIONS: dict[Subject, dict[str, str]] = {
    "account": {"slurm": "account", "pbs": "A P", "lsf": "P G", "cobalt": "project", "sge": "P A",
        "flux": "bank"},
    "after": {"slurm": "dependency", "pbs": "W", "lsf": "w", "cobalt": "dependencies", "sge": "hold_jid",
        "flux": "dependency"},
    "array": {"slurm": "array", "pbs": "J t", "sge": "t"},
    "begin": {"slurm": "begin", "pbs": "a", "lsf": "b", "sge": "a", "flux": "begin-time"},
    "binding": {
        "slurm": "core-spec cores-per-socket cpu-bind cpu-freq distribution extra-node-info gpu-bind"
        " gpu-freq gres-flags hint mem-bind mincpus ntasks-per-core ntasks-per-socket overcommit"
        " sockets-per-node thread-spec threads-per-core tres-bind contiguous gpus-per-socket",
        "lsf": "alloc_flags core_isolation", "sge": "binding", "torchrun": "numa-binding"},
    "carried": {"slurm": "comment deadline nice delay-boot", "pbs": "c h p", "lsf": "t sp", "sge": "R p js",
        "flux": "urgency"},
    "constraint": {"slurm": "constraint prefer", "flux": "requires"},
    "container": {"slurm": "container-image image"},
    "cpus": {"slurm": "cpus-per-task cpus-per-gpu", "flux": "cores-per-slot"},
    "exclusive": {"slurm": "exclusive oversubscribe", "pbs": "l:place", "lsf": "x", "flux": "exclusive"},
    "export": {"slurm": "export export-file get-user-env", "pbs": "v V", "lsf": "env", "cobalt": "env",
        "sge": "v V", "flux": "env env-file env-remove"},
    "fabric": {"slurm": "network mpi"},
    "folder": {"slurm": "chdir", "pbs": "d w", "lsf": "cwd", "cobalt": "cwd", "sge": "cwd wd",
        "flux": "cwd"},
    "gpus": {"slurm": "gpus tres-per-job"},
    "gpus per node": {"slurm": "gpus-per-node gres", "lsf": "gpu"},
    "gpus per task": {"slurm": "gpus-per-task tres-per-task", "flux": "gpus-per-slot"},
    "interactive": {"pbs": "I", "lsf": "I Is Ip"},
    "left out": {"slurm": "exclude"},
    "mail events": {"slurm": "mail-type", "pbs": "m", "lsf": "B N", "sge": "m"},
    "mail user": {"slurm": "mail-user", "pbs": "M", "lsf": "u", "cobalt": "notify", "sge": "M"},
    "memory": {"slurm": "mem mem-per-cpu mem-per-gpu", "pbs": "l:mem l:pmem l:vmem l:pvmem", "lsf": "M",
        "sge": "l:h_vmem l:mem_free l:s_vmem"},
    "module": {"torchrun": "module"},
    "name": {"slurm": "job-name", "pbs": "N", "lsf": "J", "cobalt": "jobname", "sge": "N",
        "flux": "job-name"},
    "node list": {"slurm": "nodelist nodefile", "lsf": "m"},
    "nodes": {"slurm": "nodes", "lsf": "nnodes", "cobalt": "nodecount", "flux": "nodes",
        "torchrun": "nnodes"},
    "nothing": {
        "slurm": "kill-on-invalid-dep open-mode parsable quiet verbose wait no-kill spread-job"
        " use-min-nodes", "pbs": "S C X z f", "lsf": "L H K",
        "cobalt": "debug held interactive umask run_project debuglog user_list run_users",
        "sge": "S b C notify terse verify sync w shell h now tc",
        "flux": "label-io unbuffered verbose quiet dry-run dump flags conf broker-opts setattr setopt",
        "torchrun": "monitor-interval start-method role no-python run-path local-ranks-filter logs-specs"},
    "output": {"slurm": "output error input", "pbs": "o e j k R", "lsf": "o oo e eo i is",
        "cobalt": "outputprefix output error inputfile", "sge": "o e j i",
        "flux": "output error input log log-stderr", "torchrun": "log-dir redirects tee"},
    "qos": {"slurm": "qos"},
    "queue": {"slurm": "partition", "pbs": "q", "lsf": "q", "cobalt": "queue", "sge": "q", "flux": "queue"},
    "rendezvous": {
        "torchrun": "rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone node-rank master-addr"
        " master-port local-addr"},
    "requeue": {"slurm": "requeue no-requeue", "pbs": "r", "lsf": "r", "sge": "r"},
    "reservation": {"slurm": "reservation", "lsf": "U"},
    "select": {"pbs": "l:select l:nodes l:ncpus l:ngpus l:mpiprocs", "lsf": "R",
        "sge": "l:gpu l:ngpus l:num_gpu"},
    "signal": {"slurm": "signal", "flux": "signal"},
    "site": {"slurm": "hold licenses priority switches tmp wckey", "pbs": "l:filesystems", "lsf": "app",
        "cobalt": "attrs geometry kernel kerneloptions mode"},
    "tasks": {"slurm": "ntasks", "lsf": "n", "cobalt": "proccount", "sge": "pe", "flux": "nslots"},
    "tasks per node": {"slurm": "ntasks-per-node ntasks-per-gpu", "torchrun": "nproc-per-node"},
    "walltime": {"slurm": "time time-min", "pbs": "l:walltime", "lsf": "W We", "cobalt": "time",
        "sge": "l:h_rt l:s_rt", "flux": "time-limit"},
    "wrap": {"slurm": "wrap", "flux": "wrap"},
}  # fmt: skip
"""What options are about -> the options of each tool."""

_VARIABLES: dict[Fact, dict[str, str]] = {
    "array index": {"slurm": "SLURM_ARRAY_TASK_ID", "pbs": "PBS_ARRAY_INDEX PBS_ARRAYID",
        "lsf": "LSB_JOBINDEX", "sge": "SGE_TASK_ID"},
    "folder": {"slurm": "SLURM_SUBMIT_DIR", "pbs": "PBS_O_WORKDIR", "lsf": "LS_SUBCWD",
        "sge": "SGE_O_WORKDIR"},
    "gpus per node": {"slurm": "SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE"},
    "job": {"slurm": "SLURM_JOB_ID SLURM_JOBID SLURM_ARRAY_JOB_ID", "pbs": "PBS_JOBID", "lsf": "LSB_JOBID",
        "cobalt": "COBALT_JOBID", "sge": "JOB_ID", "flux": "FLUX_JOB_ID FLUX_ENCLOSING_ID"},
    "local rank": {"slurm": "SLURM_LOCALID", "pbs": "PMI_LOCAL_RANK PALS_LOCAL_RANKID",
        "lsf": "JSM_NAMESPACE_LOCAL_RANK", "flux": "FLUX_TASK_LOCAL_ID"},
    "node file": {"pbs": "PBS_NODEFILE", "lsf": "LSB_DJOB_HOSTFILE", "cobalt": "COBALT_NODEFILE",
        "sge": "PE_HOSTFILE SGE_JOB_HOSTLIST"},
    "node list": {"slurm": "SLURM_JOB_NODELIST SLURM_NODELIST"},
    "node rank": {"slurm": "SLURM_NODEID"},
    "nodes": {"slurm": "SLURM_JOB_NUM_NODES SLURM_NNODES", "pbs": "PBS_NUM_NODES",
        "cobalt": "COBALT_JOBSIZE COBALT_PARTSIZE", "sge": "NHOSTS", "flux": "FLUX_JOB_NNODES"},
    "rank": {"slurm": "SLURM_PROCID", "pbs": "PMI_RANK PALS_RANKID PMIX_RANK",
        "lsf": "JSM_NAMESPACE_RANK PMIX_RANK", "cobalt": "ALPS_APP_PE", "flux": "FLUX_TASK_RANK"},
    "tasks": {"slurm": "SLURM_NTASKS SLURM_NPROCS", "pbs": "PBS_NP",
        "lsf": "LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS", "sge": "NSLOTS", "flux": "FLUX_JOB_SIZE"},
    "tasks per node": {"slurm": "SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE", "pbs": "PBS_NUM_PPN"},
    "cpus per task": {"slurm": "SLURM_CPUS_PER_TASK"},
}  # fmt: skip
"""What variables hold -> the variables of each scheduler."""


def _options(kind: str) -> dict[str, Subject]:
    return {name: subject for subject, by in _OPTIONS.items() for name in by.get(kind, "").split()}


def _variables(kind: str) -> dict[str, Fact]:
    return {name: fact for fact, by in _VARIABLES.items() for name in by.get(kind, "").split()}


# --- Slurm -------------------------------------------------------------------------------------------------

_SLURM_MAIL: dict[str, tuple[MailEvent, ...]] = {
    "BEGIN": ("begin",),
    "END": ("end",),
    "FAIL": ("fail",),
    "ALL": ("begin", "end", "fail"),
}


def _read_slurm_mail(name: str, text: str) -> frozenset[MailEvent]:
    return frozenset(event for word in text.upper().split(",") for event in _SLURM_MAIL.get(word.strip(), ()))


def _write_slurm_mail(events: frozenset[MailEvent], user: str | None) -> tuple[str, ...]:
    kinds = ",".join(event.upper() for event in _ordered(events))
    return (
        *((f"--mail-type={kinds}",) if kinds else ()),
        *((f"--mail-user={user}",) if user else ()),
    )


def _ordered(events: frozenset[MailEvent]) -> list[MailEvent]:
    order: tuple[MailEvent, ...] = ("begin", "end", "fail")
    return [event for event in order if event in events]


def _read_slurm_after(text: str) -> After | None:
    """Read ``afterok:1:2``; several kinds, and singleton, cannot be said in one word of a job file."""
    match = re.fullmatch(r"(after(?:ok|any)):([\w:.\[\]-]+)", text.strip())
    if match is None:
        return None
    return After(tuple(filter(None, match[2].split(":"))), match[1] == "afterany")


_SLURM = ForeignWords(
    manual="man sbatch, man srun",
    options=_options("slurm"),
    variables=_variables("slurm"),
    read_mail=_read_slurm_mail,
    write_mail=_write_slurm_mail,
    write_array=lambda text: f"--array={text}",
    read_after=_read_slurm_after,
)

# --- PBS ---------------------------------------------------------------------------------------------------

_PBS_MAIL: dict[str, MailEvent] = {"b": "begin", "e": "end", "a": "fail"}


def _read_pbs_mail(name: str, text: str) -> frozenset[MailEvent]:
    return frozenset(_PBS_MAIL[letter] for letter in text if letter in _PBS_MAIL)


def _write_pbs_mail(events: frozenset[MailEvent], user: str | None) -> tuple[str, ...]:
    letters = "".join(letter for letter, event in _PBS_MAIL.items() if event in events)
    return ((f"-m {letters}",) if letters else ()) + ((f"-M {user}",) if user else ())


def _read_pbs_after(text: str) -> After | None:
    return _read_slurm_after(text.removeprefix("depend="))


_PBS = ForeignWords(
    manual="man qsub, man pbs_resources",
    options=_options("pbs"),
    variables=_variables("pbs"),
    read_mail=_read_pbs_mail,
    write_mail=_write_pbs_mail,
    write_array=lambda text: f"-J {text}",
    read_after=_read_pbs_after,
)

# --- LSF ---------------------------------------------------------------------------------------------------


def _read_lsf_array(name: str) -> str | None:
    match = re.search(r"\[([\d,:-]+)\](%\d+)?$", name.strip())
    return f"{match[1]}{match[2] or ''}" if match else None


def _read_lsf_after(text: str) -> After | None:
    parts = [part.strip() for part in text.strip("\"' ").split("&&")]
    matches = [re.fullmatch(r"(done|ended)\((\d+)\)|(\d+)", part) for part in parts]
    kinds = {match[1] or "done" for match in matches if match}
    if not parts or None in matches or len(kinds) != 1:
        return None
    return After(tuple(match[2] or match[3] for match in matches if match), kinds == {"ended"})


_LSF_MAIL: dict[str, MailEvent] = {"B": "begin", "N": "end"}


def _write_lsf_mail(events: frozenset[MailEvent], user: str | None) -> tuple[str, ...]:
    words = [f"-{option}" for option, event in _LSF_MAIL.items() if event in events]
    return (*words, *((f"-u {user}",) if user else ()))


_LSF = ForeignWords(
    manual="the bsub reference of LSF 10.1",
    options=_options("lsf"),
    variables=_variables("lsf"),
    read_mail=lambda name, value: frozenset({_LSF_MAIL[name]} if name in _LSF_MAIL else ()),
    write_mail=_write_lsf_mail,
    read_array=_read_lsf_array,
    write_array=lambda text: f"-J NAME[{text}]",
    read_after=_read_lsf_after,
    read_name=lambda text: re.sub(r"\[.*", "", text),
)

# --- Cobalt ------------------------------------------------------------------------------------------------


def _read_cobalt_after(text: str) -> After | None:
    match = re.fullmatch(r"\d+(:\d+)*", text.strip())
    return After(tuple(text.strip().split(":")), False) if match else None


_COBALT = ForeignWords(
    manual="Cobalt's man qsub",
    options=_options("cobalt"),
    variables=_variables("cobalt"),
    mail_by_user=frozenset({"begin", "end"}),
    read_after=_read_cobalt_after,
)

# --- Grid Engine -------------------------------------------------------------------------------------------


def _read_sge_after(text: str) -> After | None:
    """Read ``-hold_jid 12,13``: they must have ended, in any state."""
    ids = tuple(text.strip().split(","))
    return After(ids, True) if all(re.fullmatch(r"\d+", each) for each in ids) else None


_SGE = ForeignWords(
    manual="man qsub of Grid Engine",
    options=_options("sge"),
    variables=_variables("sge"),
    read_mail=_read_pbs_mail,
    write_mail=_write_pbs_mail,
    write_array=lambda text: f"-t {text}",
    read_after=_read_sge_after,
)

# --- Flux --------------------------------------------------------------------------------------------------

_FLUX = ForeignWords(
    manual="man flux-batch",
    options=_options("flux"),
    variables=_variables("flux"),
    read_after=_read_slurm_after,
)

TORCHRUN = ForeignWords(
    manual="torch/distributed/run.py of PyTorch 2.9",
    options=_options("torchrun"),
)
"""PyTorch's launcher: it has no directives, only ``submit`` asks for its options."""

_WORDS: dict[str, ForeignWords] = {
    "slurm": _SLURM,
    "pbs": _PBS,
    "lsf": _LSF,
    "cobalt": _COBALT,
    "sge": _SGE,
    "flux": _FLUX,
}


AT_SITE = {
    ("reservation", "pbs"): "--queue {value}: a reservation of PBS is a queue",
    ("constraint", "pbs"): "scheduler: select: of a site profile says what nodes must have on PBS",
    ("node list", "pbs"): "scheduler: select: of a site profile says which nodes are meant on PBS",
}
"""Notion and kind of the site's scheduler -> the answer there, where no option is about it."""


def shown(kind: str, name: str) -> str:
    """Return an option of a tool as it is typed."""
    if kind == "lsf":
        return f"-{name}"
    if name.startswith("l:"):
        return f"-l {name[2:]}="
    return f"-{name}" if kind in ("pbs", "sge") else f"--{name}"
