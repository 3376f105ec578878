"""Rules about how processes are started and find each other: torchrun, deepspeed, horovodrun, MASTER_ADDR."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from itertools import pairwise, takewhile
from math import inf

from hpclaunch.amounts import counted
from hpclaunch.framework_table import WorkerLauncher
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.bind_lists import launch_ranks_per_node
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import SRUN_OPTIONS, Launch, Option
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import (
    WORKER_LAUNCHERS,
    WorkerRun,
    line_of,
    program_words,
    starts_here,
    torch_run,
    worker_run,
)
from hpclaunch.lint.rules.module_rules import ever_loaded
from hpclaunch.plan.worker_launchers import ACCELERATE, DEEPSPEED, TORCHRUN
from hpclaunch.scheduler.directive_reader import name_set, whole_number
from hpclaunch.shell.shell_syntax import Ref

_HERE = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")
_STEP_VARIABLES = name_set(TABLE["of_ranks_only"])
_OWN = [re.compile(TABLE[name]) for name in ("own_host", "own_port")]
"""An address or port that each reader replaces by its own host, or draws by lot."""


def _runs(script: Script, *rows: WorkerLauncher) -> list[WorkerRun]:
    return [found for launch in script.launches if (found := worker_run(script, launch, rows)) is not None]


def _nodes(context: Context, launch: Launch) -> int | None:
    """Return the nodes that a launch may use: its own number, else the job's."""
    option = launch.srun_option("nodes")
    return whole_number(context.script.value(option).text) if option else context.requested.node_count


@rule("torchrun-one-node")
def torchrun_one_node(context: Context) -> Iterator[Violation]:
    script = context.script
    for run in _runs(script, TORCHRUN, ACCELERATE):
        nodes = _nodes(context, run.launch) or 1
        if nodes < 2 or _in_loop_or_ssh(run.launch, script) or script.has_option("array"):
            continue
        if starts_here(run.launch):
            waits = run.given(run.row.nodes) is not None
            idle = "it waits for the other nodes" if waits else "the other nodes are idle"
            yield Violation(run.launch.line, f"{run.row.name} starts on one of {nodes} nodes, and {idle}")
        elif "nnodes" not in run.options and not _has_open_options(run, script):
            message = f"torchrun without --nnodes on {nodes} nodes: each one trains on its own"
            yield Violation(run.launch.line, message)


def _has_open_options(run: WorkerRun, script: Script) -> bool:
    """Tell whether options may stand elsewhere: in variables, or in a file that accelerate reads."""
    return "PET_NNODES" in script.text or run.is_open or run.row is ACCELERATE


def _in_loop_or_ssh(launch: Launch, script: Script) -> bool:
    """Tell whether other nodes may start it, too: by ssh, or by steps in a loop."""
    others = re.search(r"\b(ssh|pdsh|clush|pbsdsh|mpiexec|mpirun)\b", script.text)
    return launch.command.block > 0 or others is not None


@rule("torchrun-nodes-differ")
def torchrun_nodes_differ(context: Context) -> Iterator[Violation]:
    for run in _runs(context.script, TORCHRUN):
        started, wanted = _started(context, run.launch), context.number(run.options.get("nnodes"))
        if started and wanted and started != wanted and not _in_loop_or_ssh(run.launch, context.script):
            message = f"torchrun --nnodes={wanted} starts on {started} {'node' if started == 1 else 'nodes'}"
            yield Violation(line_of(context.script, run.launch, f"nnodes={wanted}"), message)


def _started(context: Context, launch: Launch) -> int | None:
    """Return how often srun starts a torchrun; None: not known, or several times on a node."""
    if launch.launcher != "srun" or launch_ranks_per_node(context, launch) != 1:
        return None
    option = launch.option("ntasks")
    return whole_number(context.script.value(option).text) if option else _nodes(context, launch)


@rule("launcher-option-unknown")
def launcher_option_unknown(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.launches:
        run = worker_run(script, launch)
        for name in _unknown_options(run) if run else ():
            written = name if f"--{name}" in script.text else name.replace("-", "_")
            line = line_of(script, launch, f"--{written}")
            message = f"{run.row.name if run else ''} has no option --{name}"
            yield Violation(line, f"{message}: those of the program stand behind its name")
        for option in launch.options if launch.launcher == "srun" else ():
            yield from _unknown_of_srun(option)
    yield from _of_another_mpi(script)


def _of_another_mpi(script: Script) -> Iterator[Violation]:
    """Report an option that only another MPI's mpirun has, also in a text that echo writes to a file."""
    modules = " ".join(ever_loaded(script))
    rows = [row for row in TABLE["of_other_mpi"] if re.search(row["modules"], modules, re.IGNORECASE)]
    for command in script.commands if len(rows) == 1 else ():
        written = command.name in ("echo", "printf") and command.redirects
        text = " ".join(word.visible for word in command.words[bool(written) :])
        if found := re.match(rf"mpi(?:run|exec) (?:-\S+ (?:[\w.:]+ )?)*?({rows[0]['option']}) ", text):
            says = f"{found[1]} is an option of {rows[0]['of']}, and {rows[0]['name']} is loaded"
            yield Violation(command.line, says, rows[0]["write"])


def _unknown_options(run: WorkerRun) -> list[str]:
    """Return the first option that a launcher of workers does not know; none behind a variable."""
    known = name_set(TABLE["worker_options"][run.row.name])
    sure = takewhile(lambda name: not re.search(r"[$?]", name), run.options)
    unknown = (name for name in sure if not any(one.startswith(name) for one in known))
    return list(unknown)[:1]


def _unknown_of_srun(option: Option) -> Iterator[Violation]:
    """Report a misspelt option of srun; where no other one is near, a plugin of the site may have it."""
    known = len(option.name) < 2 or any(one.startswith(option.name) for one in SRUN_OPTIONS)
    for near in () if known else get_close_matches(option.name, SRUN_OPTIONS, n=1, cutoff=0.8):
        yield Violation(option.line, f"srun has no option --{option.name}", f"did you mean --{near}?")


@rule("torchrun-per-task")
def torchrun_per_task(context: Context) -> Iterator[Violation]:
    for launch in context.script.launches:
        run = worker_run(context.script, launch)
        tasks = launch_ranks_per_node(context, launch) if launch.launcher in ("srun", "mpiexec") else None
        if run and tasks and tasks > 1 and _starts_several(context, run):
            given = run.given(*run.row.workers, run.row.processes)
            workers = f"{given} workers" if given else "its workers"
            yield Violation(launch.line, f"{tasks} tasks per node each start {run.row.name} with {workers}")
        elif run and _by_ssh(context, run):
            message = "each node starts deepspeed, which starts the workers of all its hosts itself"
            yield Violation(launch.line, message)
    yield from _mpirun_per_task(context)


def _mpirun_per_task(context: Context) -> Iterator[Violation]:
    """Report an mpirun that srun starts several times."""
    for launch in context.script.launches:
        tasks = context.script.number(launch, "ntasks", "n") or context.requested.all_tasks
        name = "".join(program_words(context.script, launch)[:1]).rpartition("/")[2]
        if launch.launcher == "srun" and tasks > 1 and name in ("mpirun", "mpiexec"):
            message = "each task starts mpirun, which itself starts the ranks of all nodes"
            yield Violation(launch.line, message)


def _starts_several(context: Context, run: WorkerRun) -> bool:
    """Tell whether each start surely has several workers."""
    if run.given(*run.row.workers) is None and run.row is not ACCELERATE:
        return run.row is DEEPSPEED and not run.options.keys() & {"include", "hostfile", "H"}
    # accelerate refuses --multi_gpu with fewer than two processes (commands/launch.py of 0.20 to 1.12)
    all_gpus = "multi-gpu" in run.options and not run.options.keys() & {"config-file", "num-processes"}
    return all_gpus or run.given(*run.row.workers) in ("gpu", "auto") or (_workers(context, run) or 1) > 1


def _workers(context: Context, run: WorkerRun) -> int | None:
    """Return the workers of a node; None: not known."""
    if run.row is not ACCELERATE:
        return context.number(run.given(*run.row.workers))
    whole = context.number(run.given(run.row.processes))
    nodes = context.number(run.given(run.row.nodes) or "1")
    return -(-whole // nodes) if whole and nodes else None


def _by_ssh(context: Context, run: WorkerRun) -> bool:
    """Tell whether srun starts deepspeed on several nodes, with a file of hosts that it reaches by ssh."""
    alone = run.options.keys() & {"no-ssh", "launcher", "node-rank", "include"}
    hosts = run.options.keys() & {"hostfile", "H"} and (_nodes(context, run.launch) or 1) > 1
    return run.row is DEEPSPEED and run.launch.launcher == "srun" and bool(hosts) and not alone


@rule("node-rank-constant")
def node_rank_constant(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.launches:
        nodes = _nodes(context, launch) or 1
        run = worker_run(script, launch)
        if nodes < 2 or run is None or starts_here(launch) or _in_loop_or_ssh(launch, script):
            continue
        # Otherwise a rendezvous may give out the numbers.
        is_static = not run.is_open and run.options.get("rdzv-backend", "static") == "static"
        rank = str(run.given(run.row.node_rank))
        if is_static and rank.isdigit():
            line = line_of(script, launch, run.row.node_rank.lstrip("-"))
            yield Violation(line, f"{run.row.node_rank} is {rank} on each of {nodes} nodes")
    yield from _in_turn(context)
    yield from _same_machine(context)


def _in_turn(context: Context) -> Iterator[Violation]:
    """Report the start of a node's workers behind that of another node, which waits for it."""
    runs = _runs(context.script, *WORKER_LAUNCHERS)
    for before, run in pairwise(one for one in runs if str(one.given(one.row.node_rank)).isdigit()):
        first, then = before.launch.command, run.launch.command
        differ = before.given(run.row.node_rank) != run.given(run.row.node_rank)
        several = (context.number(before.given(run.row.nodes)) or 1) > 1
        if differ and several and first.after in ("\n", ";") and first.path == then.path:
            message = f"starts when the command of line {first.line} has ended, which waits for this one"
            yield Violation(then.line, message, "write & behind the first one, and wait behind the last")


def _same_machine(context: Context) -> Iterator[Violation]:
    """Report detectron2's program on several nodes that all take the number 0."""
    steps = (one for one in context.script.launches if one.launcher == "srun")
    several = (one for one in steps if (_nodes(context, one) or 1) > 1)
    says = "without --machine-rank it is 0 on each of {} nodes"
    yield from _detectron(context, several, "(?!.*--machine-rank)(?:.* )?", "--num-machines", 1, says)


def _detectron(
    context: Context, launches: Iterable[Launch], before: str, option: str, most: float, says: str
) -> Iterator[Violation]:
    """Report starts of detectron2's program in which the number of an option is too high."""
    for launch in launches:
        words = " ".join(program_words(context.script, launch))
        found = re.search(rf"{TABLE['detectron']}{before}{option}[= ](\d{{1,3}})(?= |$)", words)
        if found and int(found[1]) > most:
            yield Violation(line_of(context.script, launch, option), says.format(found[1]))


@rule("processes-over-gpus")
def processes_over_gpus(context: Context) -> Iterator[Violation]:
    gpus = context.requested.gpus_of_node or context.gpus_of_whole_node or 0
    for run in _runs(context.script, *WORKER_LAUNCHERS) if gpus else ():
        number = _workers(context, run)
        words = " ".join(program_words(context.script, run.launch)).lower()
        if number and number > gpus and not re.search(TABLE["on_cpus"], words):
            option = (*run.row.workers, run.row.processes)[0]
            message = f"{option}={number} processes per node, {counted(gpus, 'GPU')} per node"
            yield Violation(run.launch.line, message)
    says = f"--num-gpus={{}} processes per node, {counted(gpus, 'GPU')} per node"
    yield from _detectron(context, context.script.launches, "(?:.* )?", "--num-gpus", gpus or inf, says)


@rule("world-size-differs")
def world_size_differs(context: Context) -> Iterator[Violation]:
    for launch in context.script.launches:
        each, nodes = launch_ranks_per_node(context, launch), _nodes(context, launch)
        alone = launch.launcher not in ("srun", "mpiexec") or worker_run(context.script, launch) is not None
        if alone or not each or each < 2 or not nodes:  # one task of a node may start its other ranks
            continue
        ranks = context.script.number(launch, "ntasks", "n", "np") or each * nodes
        found = re.search(TABLE["world_size"], " ".join(program_words(context.script, launch)))
        if found and int(found[2]) != ranks:
            line = line_of(context.script, launch, found[1])
            yield Violation(line, f"{found[1]} is {found[2]}, {launch.name} starts {ranks} ranks")


@rule("rendezvous-localhost")
def rendezvous_localhost(context: Context) -> Iterator[Violation]:
    script, nodes = context.script, context.requested.node_count
    if not nodes or nodes < 2:
        return
    for one in script.variables.all_assignments("MASTER_ADDR"):
        texts = [each.text or "" for each in script.variables.values(one.value)] if one.value else [""]
        if all(map(_HERE.fullmatch, texts)):
            yield Violation(one.line, f"MASTER_ADDR is {texts[0]}, the job has {nodes} nodes")
    for launch in script.launches:
        if _nodes(context, launch) != 1:
            yield from _looks_here(script, launch, nodes)


def _looks_here(script: Script, launch: Launch, nodes: int) -> Iterator[Violation]:
    """Report a launch whose rendezvous is on its own node, because it says so or by default."""
    if address := _address(script, launch):
        line = line_of(script, launch, address)
        yield Violation(line, f"{address} is this node, the job has {nodes} nodes")
    run = torch_run(script, launch)
    if run is not None and _has_no_address(run, script) and "PET_" not in script.text:
        yield Violation(launch.line, f"torchrun has no {_address_option(run)}: it looks on its own node")


def _has_no_address(run: WorkerRun, script: Script) -> bool:
    """Tell whether srun starts a torchrun of several nodes without address; MASTER_ADDR is not read by it."""
    given = "rdzv-endpoint" in run.options or _address_option(run).lstrip("-") in run.options
    several = run.options.get("nnodes", "1") != "1"
    return run.launch.launcher == "srun" and several and not given and not _has_open_options(run, script)


def _address_option(run: WorkerRun) -> str:
    """Return the option that gives the address: --master-addr counts for the static backend only."""
    backend = run.options.get("rdzv-backend", "static")
    return "--master-addr" if backend == "static" or "$" in backend else "--rdzv-endpoint"


def _address(script: Script, launch: Launch) -> str | None:
    """Return the address of the rendezvous, or the only host, if it is this node."""
    run = worker_run(script, launch)
    given = [run.given(name) or "" for name in (*run.row.meets, "--rdzv_endpoint")] if run else []
    if launch.launcher == "horovodrun":
        option = launch.option("H", "hosts")
        given = [script.value(option).text or ""] if option else []
    return next((text for text in given if _HERE.fullmatch(text)), None)


@rule("rendezvous-own-host")
def rendezvous_own_host(context: Context) -> Iterator[Violation]:
    for launch in context.script.launches:
        nodes = _nodes(context, launch) or _named_nodes(context, launch)
        for text, line in launch.texts_for_ranks() if launch.by_launcher and nodes != 1 else ():
            for found in _own(text):
                message = f"{found[0].strip()}...: each of {nodes or 'several'} nodes takes its own"
                line += text.count("\n", 0, found.start())
                yield Violation(line, message, severity=None if nodes else "warning")


def _own(text: str) -> list[re.Match[str]]:
    """Return the first address or port that the shell of each node replaces by its own one."""
    found = [match for match in (one.search(text) for one in _OWN) if match]
    return [] if re.search(r"\bif\b", text) else found[:1]


def _named_nodes(context: Context, launch: Launch) -> int | None:
    """Return the nodes of a launch by its own --nnodes; None: a variable says how many."""
    run = torch_run(context.script, launch)
    given = run.options.get("nnodes", "1") if run else "1"
    return None if given.startswith("$") and not given.startswith("$SLURM") else context.number(given) or 1


@rule("rank-variable-too-early")
def rank_variable_too_early(context: Context) -> Iterator[Violation]:
    script = context.script
    if not script.active_directives or re.search(TABLE["starts_itself"], script.text):
        return
    alone: Severity | None = None if any(one.by_launcher for one in script.launches) else "warning"
    severity: Severity | None = alone if context.requested.all_tasks > 1 else "note"
    for ref in filter(partial(_is_early, script), script.shell.refs):
        message = f"${ref.name} is replaced before the ranks start: all get one value"
        if _is_unread_node_rank(script, ref):
            message += ", which this rendezvous does not read"
            yield Violation(ref.line, message, "leave --node_rank out", "note")
        else:
            yield Violation(ref.line, message, None, severity)


def _is_early(script: Script, ref: Ref) -> bool:
    """Tell whether the batch shell replaces a variable of the rank that a launch reads."""
    return ref.name in _STEP_VARIABLES and not ref.guarded and _in_launch(script, ref)


def _is_unread_node_rank(script: Script, ref: Ref) -> bool:
    """Tell whether a use is torchrun's --node_rank, which only the static rendezvous reads."""
    backends = [run.given("--rdzv-backend") for run in _runs(script, TORCHRUN)]
    names = "|".join([ref.name, *_assigned_with(script, ref)])
    dynamic = bool(backends) and not {None, "static"}.intersection(backends)
    return dynamic and re.search(rf"--node[-_]rank[=\s]+[\"']?\$\{{?({names})\b", script.text) is not None


def _in_launch(script: Script, ref: Ref) -> bool:
    """Tell whether a use is in the program of a launch, or in an assigned value that a launch uses."""
    several = _of_ranks(script)
    if any(one.command.start <= ref.offset < one.command.end for one in several):
        return True
    names = {part.text for one in several for word in one.command.words for part in word.parts}
    if any(one.by_launcher and worker_run(script, one) is None for one in several):
        names.update(("RANK", "LOCAL_RANK", "NODE_RANK"))  # torchrun and its kin set others
    return bool(names.intersection(_assigned_with(script, ref)))


def _of_ranks(script: Script) -> list[Launch]:
    """Return the launches but for those of one task, whose rank is 0 for the batch shell, too."""
    return [one for one in script.launches if script.number(one, "ntasks", "n", "np") != 1]


def _assigned_with(script: Script, ref: Ref) -> list[str]:
    """Return the names of the assignments whose value has this use of a variable."""
    made = [one for each in script.variables.assignments.values() for one in each]
    return [one.name for one in made if one.value and one.value.start <= ref.offset < one.value.end]


@rule("master-addr-missing")
def master_addr_missing(context: Context) -> Iterator[Violation]:
    variables, script = context.script.variables, context.script
    made = variables.assignments.get("MASTER_PORT", [])
    if not made or "MASTER_PORT" not in variables.exported or variables.sources_unknown:
        return
    if "MASTER_ADDR" in script.text or re.search(r"(?i)rdzv|init_method|master_addr|--master", script.text):
        return
    yield Violation(made[-1].line, "MASTER_PORT is exported, and nothing sets MASTER_ADDR")
