"""The lines by which a launcher of the program's own starts bound workers on each node. Pure.

Each worker becomes the program by a file in the job's folder, which binds it and proves that, as the shell of
a rank does elsewhere. torchrun, and what is built on it, start that file in place of Python (PYTHON_EXEC:
torch/distributed/run.py, 1.9 to 2.13); deepspeed starts it as its program (--no_python, 0.3.14 to 0.19.8).
"""

from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.worker_launchers import ACCELERATE, DEEPSPEED, TORCHRUN, Started
from hpclaunch.scheduler.job_header import Line
from hpclaunch.software.script_lines import line
from hpclaunch.software.shell_quoting import continued

RAY_NODE = "ray_node.sh"
"""File of the job for the nodes of a Ray cluster."""
WORKER = '"$HPCLAUNCH_JOB_FOLDER/worker"'
"""The file, as a word of shell text."""
_MEET = '"$MASTER_ADDR:$MASTER_PORT"'


def worker_head(started: Started) -> tuple[Line, ...]:
    """Return the first lines of the file of the workers: the program is Python, with the launcher's words."""
    numbers = line("worker numbers")
    if started.launcher is not DEEPSPEED:
        return numbers, line("worker python", options=""), line("no torchrun variables")
    module = " -m" if "--module" in started.options else ""
    return numbers, line("deepspeed words"), line("worker python", options=f" -u{module}")


def job_lines(started: Started, job: JobLayout) -> tuple[Line, ...]:
    """Return the lines of the job's shell: torchrun's sizes and rendezvous, where the command has none."""
    lines = []
    if started.launcher is not DEEPSPEED:
        lines.append(line("python exec", worker=WORKER))
    if started.launcher is TORCHRUN:
        left_open = {"nnodes": job.nodes, "nproc_per_node": job.tasks_per_node}
        sizes = [f"PET_{k.upper()}={v}" for k, v in left_open.items() if f"--{k}" not in started.options]
        if sizes:
            reason = "torchrun's --nnodes and --nproc-per-node, where the command has none"
            lines.append(Line(text=f"export {' '.join(sizes)}", reason=reason))
        if not started.meets_itself and "--node_rank" not in started.options:
            meets = f'PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT={_MEET} PET_RDZV_ID="$HPCLAUNCH_JOB_ID"'
            lines.append(Line(text=f"export {meets}", reason="and its rendezvous: on the job's first node"))
    return tuple(lines)


def node_lines(job: JobLayout, started: Started, rank: str, before: int) -> tuple[Line, ...]:
    """Return the lines of the shell that starts the launcher on each node.

    ``rank``: the number of the node, as shell text; ``before``: words of a container around the command.
    """
    lines = []
    if job.request.max_restarts:
        lines.append(line("workers' signal"))
    if started.launcher is TORCHRUN:
        if started.is_static and job.nodes > 1 and "--node_rank" not in started.options:
            lines.append(line("node rank", rank=rank))
        return tuple(lines)
    words, at = _filled(job, started, rank), before + started.words
    own = before + len(job.request.command.argv) - started.tail
    left, given, program = f'"${{@:1:{at}}}"', f'"${{@:{at + 1}}}"', ""
    reason = f"{started.launcher.name}, with what the command leaves open"
    if started.launcher is DEEPSPEED:
        given = f'"${{@:{at + 1}:{own - at}}}"' if own > at else ""
        program = f'{WORKER} "${{@:{own + 1}}}"'
        reason += ", and the workers' file as its program"
    if words:
        pieces = filter(None, ("set --", left, *words, given, program))
        lines.append(Line(text=continued(*pieces), reason=reason))
    return tuple(lines)


def _filled(job: JobLayout, started: Started, rank: str) -> list[str]:
    """Return the options that the command leaves open, as shell words."""
    row = started.launcher
    values = {"nodes": job.nodes, "workers": job.tasks_per_node, "tasks": job.tasks, "rank": rank}
    wanted = {name: text.format_map(values) for name, text in row.fills.items()}
    if row is ACCELERATE:
        wanted |= _accelerate(job, started)
    missing = {name: value for name, value in wanted.items() if name not in started.options}
    return [f"{name}={value}" if value else name for name, value in missing.items()]


def _accelerate(job: JobLayout, started: Started) -> dict[str, str]:
    """How accelerate starts workers at all, where neither the command nor its configuration file says so."""
    options, config = started.options, job.request.command.config
    wanted = {}
    kinds = ("--multi_gpu", "--tpu", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm")
    if job.tasks > 1 and not options.keys() & kinds and config.get("distributed_type", "NO") == "NO":
        wanted["--multi_gpu"] = ""
    by_deepspeed = "--use_deepspeed" in options or config.get("distributed_type") == "DEEPSPEED"
    if by_deepspeed and job.nodes > 1 and "deepspeed_config.deepspeed_multinode_launcher" not in config:
        wanted["--deepspeed_multinode_launcher"] = "standard"
    return wanted


def ray_lines(job: JobLayout, before: int) -> tuple[Line, ...]:
    """Return the lines of a node's shell that put the program into a Ray cluster of all nodes.

    ``before``: words of a container around the program.
    """
    bound = job.binding.ranks[0].cpus if job.binding else ()
    cpus = str(len(bound)) if bound else '"$(nproc)"'
    cluster = f'bash "$HPCLAUNCH_FILES/{RAY_NODE}" {job.nodes} {cpus} {job.gpus_per_node or 0}'
    around, program = (f' "${{@:1:{before}}}"', f'"${{@:{before + 1}}}"') if before else ("", '"$@"')
    return (
        line("ray node"),
        Line(text=f"set --{around} {cluster} {program}", reason="nodes, CPUs and GPUs of each"),
    )
