"""What the options and variables of other people's batch scripts are about, per scheduler.

Options are named as the scheduler's ``DirectiveReader`` names them. Sources: man sbatch, man srun (22.05 to
24.11), man qsub and pbs_resources (OpenPBS 23), IBM's bsub reference (10.1), Cobalt's man qsub, qsub of Grid
Engine 8.1.9, man flux-batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

Subject = Literal[
    "account",
    "after",
    "array",
    "begin",
    "binding",
    "carried",
    "constraint",
    "container",
    "cpus",
    "exclusive",
    "export",
    "fabric",
    "folder",
    "gpus",
    "gpus per node",
    "gpus per task",
    "interactive",
    "left out",
    "mail events",
    "mail user",
    "memory",
    "module",
    "name",
    "node list",
    "nodes",
    "nothing",
    "output",
    "qos",
    "queue",
    "rendezvous",
    "requeue",
    "reservation",
    "select",
    "signal",
    "site",
    "tasks",
    "tasks per node",
    "walltime",
    "wrap",
]
"""What an option is about. carried: only this scheduler has it, on any machine; site: it names something of
one machine; nothing: the target's script does without it."""

Fact = Literal[
    "array index",
    "first node",
    "folder",
    "gpus per node",
    "job",
    "local rank",
    "node file",
    "node list",
    "node rank",
    "nodes",
    "rank",
    "tasks",
    "tasks per node",
    "cpus per task",
]
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


# --- Slurm -------------------------------------------------------------------------------------------------

_SLURM_MAIL: dict[str, tuple[MailEvent, ...]] = {
    "BEGIN": ("begin",),
    "END": ("end",),
    "FAIL": ("fail",),
    "ALL": ("begin", "end", "fail"),
}


def _subjects(table: dict[Subject, str]) -> dict[str, Subject]:
    return {name: subject for subject, names in table.items() for name in names.split()}


def _facts(table: dict[Fact, str]) -> dict[str, Fact]:
    return {name: fact for fact, names in table.items() for name in names.split()}


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
    options=_subjects(
        {
            "account": "account",
            "after": "dependency",
            "array": "array",
            "binding": "core-spec cores-per-socket cpu-bind cpu-freq distribution extra-node-info gpu-bind"
            " gpu-freq gres-flags hint mem-bind mincpus ntasks-per-core ntasks-per-socket overcommit"
            " sockets-per-node thread-spec threads-per-core tres-bind contiguous gpus-per-socket",
            "begin": "begin",
            "carried": "comment deadline nice delay-boot",
            "constraint": "constraint prefer",
            "container": "container-image image",
            "cpus": "cpus-per-task cpus-per-gpu",
            "exclusive": "exclusive oversubscribe",
            "export": "export export-file get-user-env",
            "fabric": "network mpi",
            "folder": "chdir",
            "gpus": "gpus tres-per-job",
            "gpus per node": "gpus-per-node gres",
            "gpus per task": "gpus-per-task tres-per-task",
            "left out": "exclude",
            "mail events": "mail-type",
            "mail user": "mail-user",
            "memory": "mem mem-per-cpu mem-per-gpu",
            "name": "job-name",
            "node list": "nodelist nodefile",
            "nodes": "nodes",
            "nothing": "kill-on-invalid-dep open-mode parsable quiet verbose wait no-kill spread-job"
            " use-min-nodes",
            "output": "output error input",
            "qos": "qos",
            "queue": "partition",
            "requeue": "requeue no-requeue",
            "reservation": "reservation",
            "signal": "signal",
            "site": "hold licenses priority switches tmp wckey",
            "tasks": "ntasks",
            "tasks per node": "ntasks-per-node ntasks-per-gpu",
            "walltime": "time time-min",
            "wrap": "wrap",
        }
    ),
    variables=_facts(
        {
            "nodes": "SLURM_JOB_NUM_NODES SLURM_NNODES",
            "tasks": "SLURM_NTASKS SLURM_NPROCS",
            "tasks per node": "SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE",
            "cpus per task": "SLURM_CPUS_PER_TASK",
            "gpus per node": "SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE",
            "rank": "SLURM_PROCID",
            "local rank": "SLURM_LOCALID",
            "node rank": "SLURM_NODEID",
            "job": "SLURM_JOB_ID SLURM_JOBID SLURM_ARRAY_JOB_ID",
            "array index": "SLURM_ARRAY_TASK_ID",
            "folder": "SLURM_SUBMIT_DIR",
            "node list": "SLURM_JOB_NODELIST SLURM_NODELIST",
        }
    ),
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
    options=_subjects(
        {
            "account": "A P",
            "after": "W",
            "array": "J t",
            "begin": "a",
            "carried": "c h p",
            "exclusive": "l:place",
            "export": "v V",
            "folder": "d w",
            "mail events": "m",
            "mail user": "M",
            "memory": "l:mem l:pmem l:vmem l:pvmem",
            "interactive": "I",
            "name": "N",
            "nothing": "S C X z f",
            "output": "o e j k R",
            "queue": "q",
            "requeue": "r",
            "select": "l:select l:nodes l:ncpus l:ngpus l:mpiprocs",
            "site": "l:filesystems",
            "walltime": "l:walltime",
        }
    ),
    variables=_facts(
        {
            "node file": "PBS_NODEFILE",
            "nodes": "PBS_NUM_NODES",
            "tasks": "PBS_NP",
            "tasks per node": "PBS_NUM_PPN",
            "job": "PBS_JOBID",
            "array index": "PBS_ARRAY_INDEX PBS_ARRAYID",
            "folder": "PBS_O_WORKDIR",
            "rank": "PMI_RANK PALS_RANKID PMIX_RANK",
            "local rank": "PMI_LOCAL_RANK PALS_LOCAL_RANKID",
        }
    ),
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
    options=_subjects(
        {
            "account": "P G",
            "after": "w",
            "binding": "alloc_flags core_isolation",
            "begin": "b",
            "carried": "t sp",
            "exclusive": "x",
            "export": "env",
            "folder": "cwd",
            "gpus per node": "gpu",
            "mail events": "B N",
            "mail user": "u",
            "memory": "M",
            "name": "J",
            "nodes": "nnodes",
            "interactive": "I Is Ip",
            "node list": "m",
            "nothing": "L H K",
            "output": "o oo e eo i is",
            "queue": "q",
            "requeue": "r",
            "reservation": "U",
            "select": "R",
            "site": "app",
            "tasks": "n",
            "walltime": "W We",
        }
    ),
    variables=_facts(
        {
            "node file": "LSB_DJOB_HOSTFILE",
            "tasks": "LSB_DJOB_NUMPROC LSB_MAX_NUM_PROCESSORS",
            "job": "LSB_JOBID",
            "array index": "LSB_JOBINDEX",
            "folder": "LS_SUBCWD",
            "rank": "JSM_NAMESPACE_RANK PMIX_RANK",
            "local rank": "JSM_NAMESPACE_LOCAL_RANK",
        }
    ),
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
    options=_subjects(
        {
            "account": "project",
            "after": "dependencies",
            "export": "env",
            "folder": "cwd",
            "mail user": "notify",
            "name": "jobname",
            "nodes": "nodecount",
            "nothing": "debug held interactive umask run_project debuglog user_list run_users",
            "output": "outputprefix output error inputfile",
            "queue": "queue",
            "site": "attrs geometry kernel kerneloptions mode",
            "tasks": "proccount",
            "walltime": "time",
        }
    ),
    variables=_facts(
        {
            "node file": "COBALT_NODEFILE",
            "nodes": "COBALT_JOBSIZE COBALT_PARTSIZE",
            "job": "COBALT_JOBID",
            "rank": "ALPS_APP_PE",
        }
    ),
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
    options=_subjects(
        {
            "account": "P A",
            "after": "hold_jid",
            "array": "t",
            "binding": "binding",
            "begin": "a",
            "carried": "R p js",
            "export": "v V",
            "folder": "cwd wd",
            "mail events": "m",
            "mail user": "M",
            "memory": "l:h_vmem l:mem_free l:s_vmem",
            "name": "N",
            "nothing": "S b C notify terse verify sync w shell h now tc",
            "output": "o e j i",
            "queue": "q",
            "requeue": "r",
            "select": "l:gpu l:ngpus l:num_gpu",
            "tasks": "pe",
            "walltime": "l:h_rt l:s_rt",
        }
    ),
    variables=_facts(
        {
            "tasks": "NSLOTS",
            "nodes": "NHOSTS",
            "job": "JOB_ID",
            "array index": "SGE_TASK_ID",
            "folder": "SGE_O_WORKDIR",
            "node file": "PE_HOSTFILE SGE_JOB_HOSTLIST",
        }
    ),
    read_mail=_read_pbs_mail,
    write_mail=_write_pbs_mail,
    write_array=lambda text: f"-t {text}",
    read_after=_read_sge_after,
)

# --- Flux --------------------------------------------------------------------------------------------------

_FLUX = ForeignWords(
    manual="man flux-batch",
    options=_subjects(
        {
            "account": "bank",
            "after": "dependency",
            "begin": "begin-time",
            "carried": "urgency",
            "constraint": "requires",
            "cpus": "cores-per-slot",
            "exclusive": "exclusive",
            "export": "env env-file env-remove",
            "folder": "cwd",
            "gpus per task": "gpus-per-slot",
            "name": "job-name",
            "nodes": "nodes",
            "nothing": "label-io unbuffered verbose quiet dry-run dump flags conf broker-opts setattr setopt",
            "output": "output error input log log-stderr",
            "queue": "queue",
            "signal": "signal",
            "tasks": "nslots",
            "walltime": "time-limit",
            "wrap": "wrap",
        }
    ),
    variables=_facts(
        {
            "nodes": "FLUX_JOB_NNODES",
            "tasks": "FLUX_JOB_SIZE",
            "rank": "FLUX_TASK_RANK",
            "local rank": "FLUX_TASK_LOCAL_ID",
            "job": "FLUX_JOB_ID FLUX_ENCLOSING_ID",
        }
    ),
    read_after=_read_slurm_after,
)

TORCHRUN = ForeignWords(
    manual="torch/distributed/run.py of PyTorch 2.9",
    options=_subjects(
        {
            "binding": "numa-binding",
            "module": "module",
            "nodes": "nnodes",
            "nothing": "monitor-interval start-method role no-python run-path local-ranks-filter logs-specs",
            "output": "log-dir redirects tee",
            "rendezvous": "rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone node-rank master-addr"
            " master-port local-addr",
            "tasks per node": "nproc-per-node",
        }
    ),
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
