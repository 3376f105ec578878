"""From request, profile and topology to the LaunchPlan. Pure: nothing is run, read or written here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

import msgspec

from hpclaunch import __version__
from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.model import BindingRequest, NodeBinding, RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.job import rules
from hpclaunch.job.allocation import Allocation, check_fit
from hpclaunch.job.frameworks import check_framework, framework_lines, rank_lines, shows_all_gpus
from hpclaunch.job.geometry import resolve
from hpclaunch.job.model import JobRequest, LaunchPlan, Preflight, Setting, Supervision
from hpclaunch.job.mpi import plugin_is_open
from hpclaunch.job.preflight import plan_preflight
from hpclaunch.scheduler import launchers
from hpclaunch.scheduler.directives import Line, Resources, pbs_header, slurm_header
from hpclaunch.site.limits import reason_with_source
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.lines import environment_lines, launch_options, site_variables, wrap_command
from hpclaunch.topology.model import NodeTopology
from hpclaunch.units import format_walltime, parse_walltime_s

DEFAULT_WALLTIME = "00:30:00"
CHECKPOINTED = 85
"""Exit code that means "checkpointed, call me again"; free in the conventions of shells and of sysexits.h."""
_WHOLE_NODE_BINDINGS = ("mask_cpu", "map_cpu", "list", "taskset")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan must know of the place where the job will be kept; all None for a dry run."""

    folder: str | None = None
    """Absolute path of the job folder."""
    job_id: str | None = None
    python: str | None = None
    """Interpreter for jobs on this machine (its folder goes first on PATH, for the MPI beside it)."""
    after: tuple[str, ...] | None = None
    """The scheduler's ids of the jobs to wait for; None: as in the request."""
    allocation: Allocation | None = None
    """The allocation to start in; None: a job of its own in the queue."""
    mpi_plugin: str | None = None
    """The plugin that the target offers, asked only where the profile leaves it open."""
    mpi_reason: str = "asked when the job is submitted: what srun offers and the program's MPI needs"


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a job, settled."""

    nodes: int
    tasks_per_node: int
    walltime_s: int
    choice: rules.QueueChoice
    binding: NodeBinding | None
    gpus_per_node: int | None
    bus_ids: dict[int, str]
    """GPU -> PCI address, where the topology knows it."""


def make_plan(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology | None,
    target: Target,
    settings: tuple[Setting, ...] = (),
) -> LaunchPlan:
    """Compute everything that a script needs.

    ``topology`` is the node of the site, or the live one for ``local``; None where it is unknown.
    Raises BadInputError, and SiteRuleError for what the site would refuse.
    """
    shape = _shape(request, profile, topology, target.allocation)
    batch = profile.scheduler.kind
    cpus_per_task = _scheduler_cpus(request, profile, shape)
    header = _header(request, profile, shape, target, cpus_per_task)
    environment = _environment(
        request, profile, shape, target, _launcher_lines(profile, cpus_per_task, header)
    )
    return LaunchPlan(
        request=request,
        profile=profile,
        nodes=shape.nodes,
        tasks_per_node=shape.tasks_per_node,
        walltime_s=None if batch == "local" or target.allocation else shape.walltime_s,
        queue=shape.choice.name,
        binding=shape.binding,
        header=header,
        environment=environment,
        rank_setup=_rank_setup(request, profile, shape),
        launch=_launch(request, profile, shape, target),
        argv=_argv(request, profile, target),
        supervision=_supervision(request, profile, shape),
        preflight=_preflight(request, profile, shape),
        settings=(*settings, *_computed(request, profile, shape, target)),
        warnings=_warnings(request, shape),
    )


def _shape(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology | None,
    allocation: Allocation | None,
) -> _Shape:
    local = profile.scheduler.kind == "local"
    gpus = len(topology.gpus) if topology else None
    nodes, tasks_per_node = resolve(request, gpus, one_node=local)
    walltime_s = parse_walltime_s(request.time or DEFAULT_WALLTIME)
    _check_name(request.name, profile.scheduler.kind)
    rules.check_directives(profile.scheduler.kind, request.directives)
    rules.check_wishes(profile.scheduler.kind, request)
    check_framework(request)
    if allocation:
        check_fit(allocation, request, nodes, tasks_per_node)
        choice = rules.QueueChoice(name=None, queue=None, reason=f"in the allocation {allocation.job_id}")
    else:
        rules.check_account(profile, request.account)
        choice = rules.choose_queue(profile, request.queue, nodes, walltime_s)
    binding = None
    if topology is not None:
        if not local:
            rules.check_cores(profile, topology, request, tasks_per_node)
        if request.binding != "off" and profile.binding.cpu in _WHOLE_NODE_BINDINGS:
            rules.check_whole_node(profile, choice, request)
            binding = bind(topology, _binding_request(request, tasks_per_node, share_cores=local))
    elif request.gpus_per_task:
        gpus = tasks_per_node * request.gpus_per_task
    return _Shape(
        nodes=nodes,
        tasks_per_node=tasks_per_node,
        walltime_s=walltime_s,
        choice=choice,
        binding=binding,
        gpus_per_node=gpus,
        bus_ids={gpu.index: gpu.bus_id for gpu in topology.gpus if gpu.bus_id} if topology else {},
    )


def _binding_request(request: JobRequest, tasks_per_node: int, *, share_cores: bool) -> BindingRequest:
    return BindingRequest(
        tasks_per_node=tasks_per_node,
        cpus_per_task=request.cpus_per_task,
        gpus_per_task=request.gpus_per_task,
        threads_per_core=request.threads_per_core,
        share_cores=share_cores,
    )


def _check_name(name: str, scheduler: str) -> None:
    """Refuse names that a directive line cannot carry, or that qsub does not take (recorded: evil-name-*)."""
    if scheduler == "pbs":
        fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", name)
        hint = "PBS takes letters, digits, dots, dashes, plus signs and underscores, a letter or digit first"
    else:
        fits = re.fullmatch(r"[^\x00-\x1f\x7f\\]{1,200}", name)
        hint = "use up to 200 characters without line breaks and backslashes"
    if not fits or not name.strip():
        raise BadInputError(f"--name {name!r} cannot stand in a batch script", hint)


def _scheduler_cpus(request: JobRequest, profile: SiteProfile, shape: _Shape) -> int | None:
    """Return --cpus-per-task for the scheduler; with a computed binding None, since both would bind.

    Slurm takes -c and a mask for two definitions of one binding and refuses them together.
    """
    if shape.binding is not None:
        return None
    return (request.cpus_per_task or 1) * request.threads_per_core


def _supervision(request: JobRequest, profile: SiteProfile, shape: _Shape) -> Supervision | None:
    if request.max_restarts < 0:
        raise BadInputError(f"--max-restarts {request.max_restarts}: it must be at least 0")
    idle_s = parse_walltime_s(request.idle_timeout) if request.idle_timeout else None
    if not request.max_restarts and idle_s is None:
        return None
    timer_s = None
    if request.max_restarts:
        warn_s = parse_walltime_s(request.warn_before)
        if warn_s >= shape.walltime_s:
            raise BadInputError(
                f"--warn-before {request.warn_before} is not shorter than the walltime"
                f" {format_walltime(shape.walltime_s)}",
                "give the job more time, or warn it later",
            )
        if profile.scheduler.kind == "pbs" or (profile.scheduler.kind == "local" and request.time):
            timer_s = shape.walltime_s - warn_s
    return Supervision(
        max_restarts=request.max_restarts, exit_code=CHECKPOINTED, timer_s=timer_s, idle_s=idle_s
    )


def _preflight(request: JobRequest, profile: SiteProfile, shape: _Shape) -> Preflight | None:
    cpus = {cpu for rank in shape.binding.ranks for cpu in rank.cpus} if shape.binding else set()
    return plan_preflight(request, profile, shape.nodes, shape.gpus_per_node, cpus)


def _header(
    request: JobRequest, profile: SiteProfile, shape: _Shape, target: Target, cpus_per_task: int | None
) -> tuple[Line, ...]:
    if profile.scheduler.kind == "local" or target.allocation:
        return ()
    queue = shape.choice.queue
    is_qos = queue is not None and queue.kind == "qos"
    memory = profile.node.memory_request if profile.node and request.exclusive else None
    want = Resources(
        name=request.name,
        nodes=shape.nodes,
        tasks_per_node=shape.tasks_per_node,
        walltime_s=shape.walltime_s,
        account=request.account,
        queue=queue.with_partition if queue is not None and is_qos else shape.choice.name,
        queue_reason=shape.choice.reason,
        qos=shape.choice.name if is_qos else None,
        gpus_per_node=shape.gpus_per_node,
        cpus_per_task=cpus_per_task,
        memory=memory,
        exclusive=request.exclusive,
        select=profile.scheduler.select,
        after=request.after if target.after is None else target.after,
        after_any=request.after_any,
        array=request.array,
        exclude=request.exclude,
        output=f"{target.folder}/{_log_name(request, profile)}" if target.folder else None,
    )
    header = slurm_header(want) if profile.scheduler.kind == "slurm" else pbs_header(want)
    given = {_directive_key(text) for text in request.directives}
    site = tuple(
        Line(text=d.text, reason=reason_with_source(profile, d.reason, d.source))
        for d in profile.directives
        if _directive_key(d.text) not in given
    )
    if request.max_restarts:
        header += _restart_header(request, profile.scheduler.kind)
    extra = tuple(Line(text=text, reason="given with --directive") for text in request.directives)
    return (*header, *site, *extra)


def _log_name(request: JobRequest, profile: SiteProfile) -> str:
    """Return the file that the scheduler opens; of PBS' jobs that come back the script writes the log."""
    return "pbs.log" if profile.scheduler.kind == "pbs" and request.max_restarts else "out.log"


def _restart_header(request: JobRequest, scheduler: str) -> tuple[Line, ...]:
    comes_back = "the job may come back after a checkpoint"
    if scheduler == "pbs":
        return (Line(text="-r y", reason=comes_back),)
    warn_s = parse_walltime_s(request.warn_before)
    lines = (
        Line(text=f"--signal=B:USR1@{warn_s}", reason="told so many seconds before the limit (man sbatch)"),
        Line(text="--requeue", reason=comes_back),
    )
    if request.array:  # its header says it
        return lines
    return (*lines, Line(text="--open-mode=append", reason="a restart writes on in the same log"))


def _directive_key(text: str) -> str:
    """Return what two directives must share for the user's to replace the site's: ``-l filesystems``."""
    words = re.split(r"[=\s]", text)
    return " ".join(words[:2]) if words[0] == "-l" else words[0]


def _launcher_lines(
    profile: SiteProfile, cpus_per_task: int | None, header: Iterable[Line]
) -> tuple[Line, ...]:
    options = (line.text for line in header)
    kind = profile.scheduler
    return launchers.launcher_environment(kind.launcher, kind.kind, cpus_per_task, options)


def _environment(
    request: JobRequest,
    profile: SiteProfile,
    shape: _Shape,
    target: Target,
    for_launcher: tuple[Line, ...],
) -> tuple[Line, ...]:
    batch = profile.scheduler.kind
    lines: list[Line] = []
    if batch == "pbs":
        lines.append(Line(text='cd "$PBS_O_WORKDIR"', reason="PBS starts a job in the home folder"))
    if batch == "local" and target.python:
        folder = shlex.quote(target.python.rpartition("/")[0])
        lines.append(
            Line(text=f'export PATH={folder}:"$PATH"', reason="the Python and MPI of this hpclaunch, first")
        )
    lines.append(
        Line(text=f"export HPCLAUNCH_TASKS={_tasks(shape)}", reason="ranks that must find each other")
    )
    if request.command.bundled and batch != "local":
        folder = "${HPCLAUNCH_JOB_FOLDER%/*}" if request.array else "$HPCLAUNCH_JOB_FOLDER"
        lines.append(
            Line(
                text=f'export PYTHONPATH="{folder}/runner${{PYTHONPATH:+:$PYTHONPATH}}"',
                reason="the training runner, which submit copies beside the script",
            )
        )
    lines += environment_lines(request.environment, profile)
    lines += for_launcher
    if _shares_cores(shape.binding):
        lines.append(
            Line(
                text="export OMPI_MCA_mpi_yield_when_idle=1",
                reason="ranks share cores: one that waits must leave its core to the others (Open MPI)",
            )
        )
    lines += site_variables(profile, shape.nodes, frozenset(request.env))
    lines += framework_lines(request, profile, shape.nodes, shape.tasks_per_node)
    lines.append(_threads(request, shape))
    lines += [
        Line(text=f"export {_variable(name)}={shlex.quote(value)}", reason="given in the request")
        for name, value in request.env.items()
    ]
    return tuple(lines)


def _shares_cores(binding: NodeBinding | None) -> bool:
    cpus = [cpu for rank in binding.ranks for cpu in rank.cpus] if binding else []
    return len(cpus) > len(set(cpus))


def _tasks(shape: _Shape) -> int:
    return shape.nodes * shape.tasks_per_node


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise BadInputError(f"{name!r} is no name of an environment variable", "use letters, digits and _")
    return name


def _threads(request: JobRequest, shape: _Shape) -> Line:
    """OMP_NUM_THREADS, which OpenMP, OpenBLAS and MKL read: one thread for each core of the smallest rank."""
    if shape.binding is not None:
        cores = min(len(rank.cpus) for rank in shape.binding.ranks) // request.threads_per_core
        reason = "threads for each rank: the cores it is bound to"
    else:
        cores, reason = request.cpus_per_task or 1, "threads for each rank: --cpus-per-task"
    return Line(text=f"export OMP_NUM_THREADS={max(1, cores)}", reason=reason)


def _rank_setup(request: JobRequest, profile: SiteProfile, shape: _Shape) -> tuple[Line, ...]:
    read = {"RANK": bool(request.max_restarts or request.idle_timeout), "LOCAL_RANK": False}
    needed = read if shape.binding is None else dict.fromkeys(read, True)
    names = frozenset(name for name, wanted in needed.items() if wanted)
    lines = list(rank_lines(request, profile, shape.nodes, shape.tasks_per_node, names))
    if profile.scheduler.launcher == "srun" and _tasks(shape) > 1 and request.mpi != "none":
        lines.append(launchers.MPI_GUARD)
    if shape.binding is None:
        return tuple(lines)
    ranks = shape.binding.ranks
    lists = " ".join(format_cpu_list(rank.cpus) for rank in ranks)
    lines.append(Line(text=f"cpus=({lists})", reason="CPUs planned for each local rank"))
    variable = profile.binding.gpu_visible_var
    if variable and any(rank.gpus for rank in ranks):
        gpus = tuple(rank.gpus for rank in ranks)
        everyone = shows_all_gpus(request, gpus)
        if not everyone:
            lines.append(_array("gpus", gpus, "GPUs of each local rank, nearest to its cores"))
        lines += [
            _array("numa", (rank.numa for rank in ranks), "NUMA nodes of each local rank's cores"),
            _array("bus", (_known_bus(rank, shape.bus_ids) for rank in ranks), "PCI addresses of those GPUs"),
            _visible(variable, gpus if everyone else None),
        ]
        if variable == "CUDA_VISIBLE_DEVICES":
            lines.append(
                Line(
                    text="export CUDA_DEVICE_ORDER=PCI_BUS_ID",
                    reason="CUDA numbers the GPUs as nvidia-smi and the plan do (CUDA C++ programming guide)",
                )
            )
    if profile.binding.cpu == "taskset":
        lines.append(
            Line(
                text='taskset -cp "${cpus[LOCAL_RANK]}" $$ > /dev/null',
                reason="bind this shell, and so the program that it becomes (man taskset)",
            )
        )
    return tuple(lines)


def _visible(variable: str, gpus: tuple[tuple[int, ...], ...] | None) -> Line:
    """Show each rank its own GPUs; ``gpus``: all of them, in the order of the ranks."""
    if gpus is None:
        return Line(text=f'export {variable}="${{gpus[LOCAL_RANK]}}"', reason="this rank sees only its own")
    listed = ",".join(str(gpu) for each in gpus for gpu in each)
    reason = "all GPUs in the order of the ranks: the program takes that of its local rank's number"
    return Line(text=f"export {variable}={listed}", reason=reason)


def _known_bus(rank: RankBinding, bus_ids: dict[int, str]) -> tuple[str, ...]:
    """Return the addresses of a rank's GPUs; nothing where one is unknown: they cannot be compared then."""
    known = tuple(bus_ids[gpu] for gpu in rank.gpus if gpu in bus_ids)
    return known if len(known) == len(rank.gpus) else ()


def _array(name: str, rows: Iterable[tuple[int | str, ...]], reason: str) -> Line:
    """Return a bash array with one comma-separated word for each local rank."""
    words = " ".join(",".join(map(str, row)) or "''" for row in rows)
    return Line(text=f"{name}=({words})", reason=reason)


def _launch(request: JobRequest, profile: SiteProfile, shape: _Shape, target: Target) -> tuple[str, ...]:
    return launchers.launch_words(
        profile.scheduler.launcher,
        launchers.Launch(
            nodes=shape.nodes,
            tasks_per_node=shape.tasks_per_node,
            cpu_bind=_cpu_bind(request, profile, shape),
            mpi_plugin=request.mpi or profile.mpi.plugin or target.mpi_plugin,
            options=(
                *(profile.fabric.launch_options if shape.nodes > 1 else ()),
                *launch_options(request.environment, profile),
            ),
            batch=profile.scheduler.kind,
            in_allocation=target.allocation is not None,
        ),
    )


def _cpu_bind(request: JobRequest, profile: SiteProfile, shape: _Shape) -> str | None:
    if shape.binding is None:
        bound = profile.binding.cpu == "cores" and request.binding != "off"
        return "--cpu-bind=cores" if bound else None
    if profile.binding.cpu == "mask_cpu":
        return f"--cpu-bind=mask_cpu:{dialects.mask_cpu(shape.binding)}"
    if profile.binding.cpu == "map_cpu":
        return f"--cpu-bind=map_cpu:{dialects.map_cpu(shape.binding)}"
    if profile.binding.cpu == "list":
        return dialects.pals(shape.binding)
    return None


def _argv(request: JobRequest, profile: SiteProfile, target: Target) -> tuple[str, ...]:
    argv = request.command.argv
    if request.command.bundled:
        here = target.python if profile.scheduler.kind == "local" else None
        python = request.python or here or profile.software.python
        argv = (python, "-m", "hpclaunch.train", *argv, *_checkpoints(request, target))
    return wrap_command(request.environment, profile, argv)


def _checkpoints(request: JobRequest, target: Target) -> tuple[str, ...]:
    """Return the runner's options without which a restart would begin at the beginning."""
    if not request.max_restarts:
        return ()
    given = {word.partition("=")[0] for word in request.command.argv}
    folder = f"{target.folder}/checkpoints" if target.folder else "checkpoints"
    wanted = () if "--checkpoint-dir" in given else ("--checkpoint-dir", folder)
    return (*wanted, *(() if "--resume" in given else ("--resume",)))


def _computed(
    request: JobRequest, profile: SiteProfile, shape: _Shape, target: Target
) -> tuple[Setting, ...]:
    """Return what the plan itself settled, for --explain."""
    rows = [
        ("nodes", str(shape.nodes), request.nodes),
        ("tasks-per-node", str(shape.tasks_per_node), request.tasks_per_node),
        ("tasks", str(_tasks(shape)), request.tasks),
    ]
    settled = [
        Setting(
            name=name, value=value, origin="computed: whole nodes, one rank for each GPU, else for each node"
        )
        for name, value, asked in rows
        if asked is None
    ]
    if plugin_is_open(request, profile):
        settled.append(Setting(name="mpi", value=target.mpi_plugin, origin=f"computed: {target.mpi_reason}"))
    if profile.scheduler.kind == "local" or target.allocation:
        return tuple(settled)
    if request.queue is None:
        settled.append(
            Setting(name="partition", value=shape.choice.name, origin=f"computed: {shape.choice.reason}")
        )
    if request.time is None:
        settled.append(Setting(name="time", value=format_walltime(shape.walltime_s), origin="default"))
    return tuple(settled)


def _warnings(request: JobRequest, shape: _Shape) -> tuple[str, ...]:
    notes = shape.binding.notes if shape.binding else ()
    queue = (shape.choice.warning,) if shape.choice.warning else ()
    unseen = request.space and not (request.check or request.preflight)
    space = ("--space is looked at with --check or --preflight only",) if unseen else ()
    return (*queue, *space, *notes)


def about(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the comment at the head of a script: what it is, and which rank gets what."""
    profile = plan.profile
    dates = sorted({source.checked for source in profile.sources.values()})
    checked = f", facts read {dates[0]} to {dates[-1]}" if dates else ""
    lines = [
        f"Written by hpclaunch {__version__} for {profile.name}: {profile.description}{checked}.",
        f"{plan.nodes} nodes x {plan.tasks_per_node} ranks = {plan.tasks} ranks.",
    ]
    if plan.binding is None:
        return (*lines, "The binding is left to the launcher: the node is not described, or --binding off.")
    return (*lines, "Each local rank's share of a node:", *map(_share, plan.binding.ranks))


def _share(rank: RankBinding) -> str:
    gpus = f"  GPU {','.join(map(str, rank.gpus))}" if rank.gpus else ""
    numa = f"  NUMA node {','.join(map(str, rank.numa))}" if rank.numa else ""
    return f"  rank {rank.local_rank}: CPUs {format_cpu_list(rank.cpus)}{gpus}{numa}"
