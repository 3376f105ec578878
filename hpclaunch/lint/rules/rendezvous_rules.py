"""Rules about how processes are started and find each other: torchrun, deepspeed, horovodrun, MASTER_ADDR."""

import re
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import TorchRun, line_of, partly_expanded, program_words, torch_run
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.shell.shell_syntax import Ref

_HERE = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")
_RANK_NAMES = ("RANK", "LOCAL_RANK", "NODE_RANK")
_STEP_VARIABLES = frozenset(
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "PMI_RANK", "PALS_RANKID", "OMPI_COMM_WORLD_RANK"}
)


def _torch_runs(script: Script) -> list[TorchRun]:
    return [found for launch in script.launches if (found := torch_run(script, launch)) is not None]


def _nodes(context: Context, launch: Launch) -> int | None:
    """Return the nodes that a launch may use: its own number, else the job's."""
    option = launch.srun_option("nodes")
    text = context.script.value(option).text or "" if option else ""
    if option is not None:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None
    return context.requested.node_count


@rule("torchrun-one-node")
def torchrun_one_node(context: Context) -> Iterator[Violation]:
    """Find torchrun on several nodes that runs on one node, or as one job per node."""
    script = context.script
    for run in _torch_runs(script):
        nodes = _nodes(context, run.launch)
        if not nodes or nodes < 2 or _in_loop_or_ssh(run.launch, script) or script.has_option("array"):
            continue
        by_launcher = run.launch.launcher not in ("python", "torchrun")
        if not by_launcher:
            idle = "it waits for the other nodes" if "nnodes" in run.options else "the other nodes are idle"
            yield Violation(run.launch.line, f"torchrun starts on one of {nodes} nodes, and {idle}")
        elif "nnodes" not in run.options and not _has_open_options(run, script):
            yield Violation(
                run.launch.line, f"torchrun without --nnodes on {nodes} nodes: each one trains on its own"
            )


def _has_open_options(run: TorchRun, script: Script) -> bool:
    """Tell whether a part of the options is in variables: of unknown value, or torchrun's own."""
    return "PET_NNODES" in script.text or any("$" in name for name in run.options)


def _in_loop_or_ssh(launch: Launch, script: Script) -> bool:
    """Tell whether other nodes may start it, too: by ssh, or by steps in a loop."""
    return launch.command.block > 0 or bool(
        re.search(r"\b(ssh|pdsh|clush|pbsdsh|mpiexec|mpirun)\b", script.text)
    )


@rule("torchrun-nodes-differ")
def torchrun_nodes_differ(context: Context) -> Iterator[Violation]:
    """Compare --nnodes with the number of torchruns that srun starts."""
    for run in _torch_runs(context.script):
        started, wanted = _started(context, run.launch), run.number("nnodes")
        if started and wanted and started != wanted and not _in_loop_or_ssh(run.launch, context.script):
            message = f"torchrun --nnodes={wanted} starts on {started} {'node' if started == 1 else 'nodes'}"
            yield Violation(line_of(context.script, run.launch, f"nnodes={wanted}"), message)


def _started(context: Context, launch: Launch) -> int | None:
    """Return how often srun starts a torchrun; None: not known, or several times on a node."""
    if launch.launcher != "srun" or _tasks_per_node(context, launch) != 1:
        return None
    option = launch.option("ntasks")
    return whole_number(context.script.value(option).text) if option else _nodes(context, launch)


@rule("torchrun-per-task")
def torchrun_per_task(context: Context) -> Iterator[Violation]:
    """Find torchrun that starts in several tasks of a node."""
    for run in _torch_runs(context.script):
        tasks, each = _tasks_per_node(context, run.launch), run.number("nproc-per-node")
        several = each is None or each > 1
        if (
            run.launch.launcher == "srun"
            and tasks
            and tasks > 1
            and several
            and "nproc-per-node" in run.options
        ):
            message = (
                f"{tasks} tasks per node each start torchrun --nproc_per_node={run.options['nproc-per-node']}"
            )
            yield Violation(run.launch.line, message)


def _tasks_per_node(context: Context, launch: Launch) -> int | None:
    """Return the tasks per node of an srun; None: not known."""

    def number(*names: str) -> int | None:
        option = launch.option(*names)
        text = context.script.value(option).text or "" if option else ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None

    if launch.option("ntasks-per-node"):
        return number("ntasks-per-node")
    if launch.option("ntasks", "nodes"):
        tasks, nodes = number("ntasks"), _nodes(context, launch)
        return -(-tasks // nodes) if tasks and nodes else None
    return context.requested.ranks_per_node


@rule("processes-over-gpus")
def processes_over_gpus(context: Context) -> Iterator[Violation]:
    """Compare the processes per node with the GPUs per node."""
    gpus = context.requested.gpus_of_node or context.gpus_of_whole_node
    if not gpus:
        return
    for launch in context.script.launches:
        found = _processes(context.script, launch)
        if found and found[1] > gpus and "cpu" not in " ".join(program_words(context.script, launch)).lower():
            yield Violation(launch.line, f"{found[0]}={found[1]} processes per node, {gpus} GPUs per node")


def _processes(script: Script, launch: Launch) -> tuple[str, int] | None:
    """Return the option of torchrun or deepspeed that gives the processes per node, and its number."""
    run = torch_run(script, launch)
    if run is not None:
        number = run.number("nproc-per-node")
        return ("--nproc_per_node", number) if number else None
    words = program_words(script, launch)
    if words and words[0].rpartition("/")[2] == "deepspeed":
        match = re.search(r"--num_gpus[= ](\d{1,4})\b", " ".join(words))
        return ("--num_gpus", int(match[1])) if match else None
    return None


@rule("rendezvous-localhost")
def rendezvous_localhost(context: Context) -> Iterator[Violation]:
    """Find localhost as MASTER_ADDR, as torchrun's rendezvous and as horovodrun's host."""
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


def _has_no_address(run: TorchRun, script: Script) -> bool:
    """Tell whether srun starts a torchrun for several nodes that is given no address.

    torchrun reads PET_RDZV_ENDPOINT and PET_MASTER_ADDR, but not MASTER_ADDR.
    """
    given = "rdzv-endpoint" in run.options or _address_option(run).lstrip("-") in run.options
    several = run.options.get("nnodes", "1") != "1"
    return run.launch.launcher == "srun" and several and not given and not _has_open_options(run, script)


def _address_option(run: TorchRun) -> str:
    """Return the option that gives the address: --master-addr counts for the static backend only."""
    backend = run.options.get("rdzv-backend", "static")
    return "--master-addr" if backend == "static" or "$" in backend else "--rdzv-endpoint"


def _address(script: Script, launch: Launch) -> str | None:
    """Return the address of the rendezvous, or the only host, if it is this node."""
    run = torch_run(script, launch)
    given = [run.options.get(name, "") for name in ("master-addr", "rdzv-endpoint")] if run else []
    if launch.launcher == "horovodrun":
        option = launch.option("H", "hosts")
        given = [script.value(option).text or ""] if option else []
    return next((text for text in given if _HERE.fullmatch(text)), None)


@rule("rank-variable-too-early")
def rank_variable_too_early(context: Context) -> Iterator[Violation]:
    """Find variables of the rank that the batch shell replaces in a launch or in what a launch uses."""
    script = context.script
    if script.reader is None or not script.active_directives:
        return
    nodes, ranks = context.requested.node_count or 1, context.requested.ranks_per_node or 1
    severity: Severity | None = None if nodes * ranks > 1 else "note"
    for ref in script.shell.refs:
        if ref.name in _STEP_VARIABLES and not ref.guarded and _in_launch(script, ref):
            yield Violation(
                ref.line, f"${ref.name} is replaced before the ranks start: all get one value", None, severity
            )


def _in_launch(script: Script, ref: Ref) -> bool:
    """Tell whether a use is in the program of a launch, or in an assigned value that a launch uses."""
    if any(one.command.start <= ref.offset < one.command.end for one in script.launches):
        return True
    names = {part.text for one in script.launches for word in one.command.words for part in word.parts}
    return any(name in names or name in _RANK_NAMES for name in _assigned_with(script, ref))


def _assigned_with(script: Script, ref: Ref) -> list[str]:
    """Return the names of the assignments whose value has this use of a variable."""
    made = [one for each in script.variables.assignments.values() for one in each]
    return [one.name for one in made if one.value and one.value.start <= ref.offset < one.value.end]


@rule("master-addr-missing")
def master_addr_missing(context: Context) -> Iterator[Violation]:
    """Find an exported port without an address."""
    variables, script = context.script.variables, context.script
    made = variables.assignments.get("MASTER_PORT", [])
    if not made or "MASTER_PORT" not in variables.exported or variables.sources_unknown:
        return
    if "MASTER_ADDR" in script.text or re.search(r"(?i)rdzv|init_method|master_addr|--master", script.text):
        return
    yield Violation(made[-1].line, "MASTER_PORT is exported, and nothing sets MASTER_ADDR")


@rule("hostfile-without-slots")
def hostfile_without_slots(context: Context) -> Iterator[Violation]:
    """Find hostfiles that scontrol writes as they are."""
    script = context.script
    for launch in script.launches:
        words = program_words(script, launch)
        match = re.search(r"--?hostfile[= ]+(\S+)", " ".join(words))
        if not match or not words[0].endswith("deepspeed") or "slots=" in script.text:
            continue
        for command in script.commands:
            targets = [partly_expanded(script, one.target) for one in command.redirects]
            if command.name == "scontrol" and match[1] in targets:
                yield Violation(
                    command.line, f"the lines of {match[1]} have no slots=, which deepspeed needs"
                )
