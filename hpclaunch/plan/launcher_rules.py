"""Launchers in a command that cannot work as they are, found before anything is submitted. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from hpclaunch.plan.launch_plan import LaunchPlan, Problem
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.script_commands import ScriptCommand
from hpclaunch.plan.worker_launchers import (
    ACCELERATE,
    FABRIC,
    IN_SCRIPT,
    TORCHRUN,
    Started,
    find_launcher,
    launcher_in_script,
    one_process,
    per_node_launcher,
)


def launcher_problems(request: JobRequest, layout: JobLayout) -> Iterator[Problem]:
    """Yield what is wrong with the launcher that a command begins with, and with its program's sizes."""
    yield from _trainer(request, layout)
    found = None if request.command.bundled else find_launcher(request.command.argv)
    if found is None and request.as_ranks:
        where = request.command.config.get(f"{IN_SCRIPT}.where")
        hint = f"leave it out there: {where}" if where else "leave it out"
        yield Problem(message="--as-ranks: the command has no launcher to leave out", hint=hint)
    found = found or launcher_in_script(request)
    if found is None:
        return
    yield from _without_program(request.command.argv, found)
    if layout.started is not None:
        yield from _contradictions(request, found)
        yield from _distributed_type(request, layout, found)
        yield from _rendezvous(layout, found)
    elif per_node_launcher(request) is None and _starts_again(request, layout, found):
        yield _in_each_rank(request, layout, found)


def _without_program(argv: tuple[str, ...], found: Started) -> Iterator[Problem]:
    """Yield a problem where no word can be a program, not even one behind an option that is not known."""
    if found.launcher.per_node and not found.tail and not any(set("./").intersection(each) for each in argv):
        command = shlex.join(argv)
        yield Problem(message=f"{command}: no program is named", hint=f"-- {command} train.py")


def script_problems(
    request: JobRequest, plan: LaunchPlan, commands: Iterable[ScriptCommand]
) -> tuple[Problem, ...]:
    """Return which commands of the job's script start processes again in each of its ranks."""
    found = []
    for where, words in () if plan.started else commands:
        started = find_launcher(words)
        if started and (problem := _in_script(request, plan, started)):
            found.append(msgspec.structs.replace(problem, message=f"{where}: {problem.message}"))
    return tuple(found)


def _in_script(request: JobRequest, plan: LaunchPlan, found: Started) -> Problem | None:
    """Return why a launcher inside a script is wrong; one that starts a node's workers may run once on it."""
    row = found.launcher
    if not row.per_node or plan.tasks_per_node > 1:
        return _in_each_rank(request, plan, found) if _starts_again(request, plan, found) else None
    if plan.nodes == 1 or found.options.keys() & {*row.meets} - {"--standalone"}:
        return None
    return Problem(
        message=f"{row.name} on {plan.nodes} nodes does not say where they meet: each would train alone",
        hint=f"name {row.name} itself as the command, and hpclaunch fills that in",
    )


def launcher_notes(request: JobRequest, layout: JobLayout) -> Iterator[str]:
    """Yield what a job without its command's launcher loses, and what the job itself replaces."""
    found, config = per_node_launcher(request), request.command.config
    if found is None:
        return
    row = found.launcher
    if request.as_ranks:
        if lost := _lost(found, config):
            yield f"--as-ranks: {row.name} does not run, so nothing reads {', '.join(lost)}"
        return
    yield from _unbound(request, layout, found)
    own = {"main_process_ip", "main_process_port", "machine_rank"}.intersection(config)
    if own and request.nodes not in (None, 1):
        yield f"{config['file']}: {', '.join(sorted(own))} are those of this job's nodes"


def _unbound(request: JobRequest, layout: JobLayout, found: Started) -> Iterator[str]:
    """Yield why the workers of a launcher are not bound."""
    row = found.launcher
    for option in ("--no_python", "--run_path"):
        if option in found.options and option not in row.contradicts:
            yield f"{row.name} {option} starts no Python itself: its workers are neither bound nor proved"
    if not (layout.binding or layout.at_start) and request.binding != "off":
        yield f"the ranks that {row.name} starts on a node share its cores: {request.site} has no binding"


def _lost(found: Started, config: Mapping[str, str]) -> list[str]:
    """Return the options and keys that only the launcher reads, without those of sizes and rendezvous."""
    row = found.launcher
    ours = {row.nodes, *row.workers, row.processes, row.node_rank, *row.meets, *row.fills, "--config_file"}
    options = [each for each in found.options if each not in ours | {"-m", "--module"}]
    return [*options, *(each for each, value in config.items() if _is_setting(each, value))]


_OF_THE_JOB = ("num_machines", "num_processes", "machine_rank", "main_process_ip", "main_process_port")


def _is_setting(key: str, value: str) -> bool:
    """Whether a key of a configuration file changes the training."""
    about = ("file", "compute_environment", "same_network", "rdzv_backend", "main_training_function", "debug")
    given = key not in (*about, *_OF_THE_JOB) and not key.startswith(("trainer.", "tpu_"))
    return given and value.lower() not in ("no", "false", "none", "all", "")


def _trainer(request: JobRequest, layout: JobLayout) -> Iterator[Problem]:
    """Yield the sizes that Lightning's Trainer is given and that the job has not."""
    config = request.command.config
    for key, option, number in (
        ("devices", "--tasks-per-node", layout.tasks_per_node),
        ("num_nodes", "--nodes", layout.nodes),
    ):
        said = config.get(f"trainer.{key}")
        if said is not None and int(said) != number:
            yield Problem(
                message=f"{config['trainer.where']}: {key}={said}, but the job has {number}",
                hint=f"{option} {said}, or {key}={number} in the program",
            )


def _contradictions(request: JobRequest, found: Started) -> Iterator[Problem]:
    for option, why in found.launcher.contradicts.items():
        if option in found.options and not ("--binding" in why and request.binding == "off"):
            yield Problem(message=f"{found.launcher.name} {option}", hint=why)


def _starts_again(request: JobRequest, layout: JobLayout | LaunchPlan, found: Started) -> bool:
    """Whether the launcher would start more than the ranks that the site's launcher starts."""
    each = layout.tasks_per_node if one_process(request, found) else layout.tasks
    return each > 1


def _in_each_rank(request: JobRequest, layout: JobLayout | LaunchPlan, found: Started) -> Problem:
    """The site's launcher starts every rank, and in each of them this one starts all workers again."""
    name, ranks = found.launcher.name, f"{layout.nodes} x {layout.tasks_per_node}"
    message = (
        f"{name} would start its processes {layout.tasks} times, once in each of the ranks that this job has"
        f" ({ranks})"
    )
    if one_process(request, found):
        message = f"accelerate starts one process per node on CPUs alone ({_kind(request)}), no workers"
    known = request.framework is not None and found.launcher.framework in ("torch", request.framework)
    framework = "" if known or not found.launcher.framework else f"--framework {found.launcher.framework} "
    if not found.program:
        right = "leave the launcher and its options out: hpclaunch starts one process per rank"
    else:
        right = (
            "hpclaunch starts the ranks itself, bound to their CPUs and GPUs:"
            f" {framework}-- {shlex.join(found.program)}"
        )
    return Problem(message=message, hint=right)


def _kind(request: JobRequest) -> str:
    config = request.command.config
    return f"{config['file']}: distributed_type MULTI_CPU" if "distributed_type" in config else "--cpu"


def _distributed_type(request: JobRequest, layout: JobLayout, found: Started) -> Iterator[Problem]:
    """Yield why accelerate would not start the job's workers by what its file says."""
    config, kind = request.command.config, request.command.config.get("distributed_type")
    if found.launcher is ACCELERATE and kind == "NO" and layout.tasks > 1 and "num_processes" in config:
        yield Problem(
            message=f"{config['file']}: distributed_type NO starts one process,"
            f" the job has {layout.tasks} ranks",
            hint="distributed_type: MULTI_GPU, or FSDP or DEEPSPEED with their settings",
        )
    pdsh = config.get("deepspeed_config.deepspeed_multinode_launcher") or found.options.get(
        "--deepspeed_multinode_launcher"
    )
    if found.launcher is ACCELERATE and layout.nodes > 1 and pdsh not in (None, "standard"):
        yield Problem(
            message=f"deepspeed_multinode_launcher {pdsh} starts the workers of other nodes itself",
            hint="deepspeed_multinode_launcher: standard; the site's launcher starts accelerate on each node",
        )


def _rendezvous(layout: JobLayout, found: Started) -> Iterator[Problem]:
    """Nodes that would not find each other."""
    if layout.nodes == 1:
        return
    options = found.options
    if found.launcher is TORCHRUN and "--standalone" in options:
        yield Problem(
            message=f"torchrun --standalone is for one node, the job has {layout.nodes}:"
            " each would train alone",
            hint="leave it out: hpclaunch fills in where the nodes meet",
        )
    if found.launcher.node_rank in options:
        yield Problem(
            message=f"{found.launcher.name} {found.launcher.node_rank} {options[found.launcher.node_rank]}:"
            f" all {layout.nodes} nodes would have this number",
            hint="leave it out: each node is given its own",
        )
    for each in ("--master_addr", "--main_address", "--main_process_ip", "--rdzv_endpoint"):
        if options.get(each, "").partition(":")[0] in ("localhost", "127.0.0.1"):
            yield Problem(
                message=f"{found.launcher.name} {each} {options[each]} is another machine on each node",
                hint="leave it out: hpclaunch fills in the job's first node",
            )
    if found.launcher is FABRIC and options.get("--devices", "1") == "auto":
        yield Problem(
            message="fabric run --devices auto: the number of workers is known on the node only",
            hint=f"leave it out ({layout.tasks_per_node} per node), or write the number",
        )
