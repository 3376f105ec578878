"""The body of a script: the shell lines before the launch, those of each rank, and the launch. Pure.

Where the program's own launcher starts the workers of a node, each becomes the program by a file in the job's
folder, which binds it and proves that, as the shell of a rank does elsewhere. torchrun, and what is built on
it, start that file in place of Python (PYTHON_EXEC: torch/distributed/run.py, 1.9 to 2.13); deepspeed starts
it as its program (--no_python, 0.3.14 to 0.19.8).
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hpclaunch.binding import dialects
from hpclaunch.binding.node_binding import RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.plan import worker_launchers
from hpclaunch.plan.frameworks import deepspeed_config, framework_lines, numbered, rank_lines
from hpclaunch.plan.layout import AtStart, JobLayout, positions, threads_line, visible_gpus
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.software_choice import offer_of, reason_of
from hpclaunch.plan.startup_plan import NODES, has_timeline, startup_lines, timeline_words
from hpclaunch.plan.worker_launchers import ACCELERATE, DEEPSPEED, TORCHRUN, Started, rank_command
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.software.containers import launch_options
from hpclaunch.software.script_lines import continued, line, literal, word
from hpclaunch.software.software_lines import environment_lines, site_variables, wrap_command


def shell_lines(job: JobLayout, for_launcher: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines before the launch: folders, software, variables; ``for_launcher``: its own."""
    request, profile = job.request, job.profile
    lines = list(job.scheduler.start_lines)
    if job.place.python:
        lines.append(line("own python", folder=literal(job.place.python.rpartition("/")[0])))
    if request.command.bundled and not job.scheduler.starts_at_once:
        lines.append(line("runner"))
    lines += environment_lines(request.environment, profile, reason_of(request, profile))
    lines += for_launcher
    if job.at_start and job.launcher.unbound and not job.started:
        lines.append(line("srun binding"))
    if _shares_cores(job):
        lines.append(line("yield cores"))
    lines += site_variables(profile, job.nodes, request.environment, frozenset(request.env))
    lines += framework_lines(job)
    if not job.framework.per_node:  # Ray gives each task its own number
        lines.append(_threads(job))
    lines += _given_variables(request, profile)
    lines += job_lines(job.started, job) if job.started else ()
    return (*lines, *startup_lines(job))


def _given_variables(request: JobRequest, profile: SiteProfile) -> Iterator[Line]:
    """Yield the variables that the request sets, and those of the site's software that the job uses."""
    offer = offer_of(request, profile)
    for name, value in request.env.items():
        if offer and offer.env.get(name) == value:
            yield replace(reason_of(request, profile), text=f"export {name}={word(value)}")
        else:
            yield Line(text=f"export {name}={literal(value)}", reason="given in the request")


def _shares_cores(job: JobLayout) -> bool:
    cpus = [cpu for rank in job.binding.ranks for cpu in rank.cpus] if job.binding else []
    return len(cpus) > len(set(cpus))


def _threads(job: JobLayout) -> Line:
    """One thread for each core of the smallest rank, unless the site documents fewer for the framework."""
    request = job.request
    if job.binding is not None:
        cores = min(len(rank.cpus) for rank in job.binding.ranks) // request.threads_per_core
        reason = "threads for each rank: the cores it is bound to"
    else:
        cores, reason = job.cores_per_task, "threads for each rank: --cpus-per-task"
        if cores != (request.cpus_per_task or 1):
            reason = "threads for each rank: its share of the node's cores"
    return threads_line(request, job.profile, cores, reason)


def rank_setup(job: JobLayout) -> tuple[Line, ...]:
    """Return the lines of each rank's own shell: who it is, its share of the node, its binding."""
    request = job.request
    variable = job.profile.binding.gpu_visible_var if job.gpus else None
    used = (not request.no_sample, variable, job.binding, job.at_start)
    names = {"RANK", "LOCAL_RANK"} if any(used) else {"RANK"}
    lines = list(worker_head(job.started) if job.started else rank_lines(job, frozenset(names)))
    if request.zero_stage is not None and (config := deepspeed_config(request.command.argv)):
        lines.append(line("own deepspeed config", config=literal(config)))
    if variable:
        lines += _gpu_lines(job, variable)
    if job.framework.per_node:
        lines += ray_lines(job, _words_around(job))
    return (*lines, *_place(job))


def _place(job: JobLayout) -> Iterator[Line]:
    """Yield the lines that bind a rank, or tell its place where the launcher does."""
    if job.binding is None:
        if has_timeline(job):
            yield line("place", folder=NODES)
    elif job.profile.binding.cpu == "taskset" or job.started:
        lists = ((format_cpu_list(rank.cpus),) for rank in job.binding.ranks)
        yield _array("cpus", lists, "CPUs planned for each local rank")
        yield line("taskset")


def _words_around(job: JobLayout) -> int:
    argv = rank_command(job.request)
    return len(wrap_command(job.request.environment, job.profile, argv)) - len(argv)


def proof(job: JobLayout) -> dict[str, tuple[str, ...]]:
    """Return what each rank compares its binding with; nothing where no binding is planned."""
    if job.at_start:
        return _at_start_gpus(job, job.at_start)
    if job.binding is None:
        return {}
    ranks, gpus = job.binding.ranks, job.gpus
    columns: dict[str, Iterable[Iterable[int | str]]] = {
        "cpus": ((format_cpu_list(rank.cpus),) for rank in ranks),
        "numa": (rank.numa for rank in ranks),
        "bus": (_known_bus(rank, job.bus_ids) if gpus else () for rank in ranks),
        "own": positions(gpus, job.visible) if job.visible else (),
    }
    return {name: tuple(",".join(map(str, row)) for row in rows) for name, rows in columns.items()}


def _at_start_gpus(job: JobLayout, how: AtStart) -> dict[str, tuple[str, ...]]:
    """Return places in lists of GPUs, for each local rank.

    ``job_gpus``: its own among the job's; ``sees``: those of the job's that it sees; ``seen``: its own among
    those that it sees, empty where it sees no others.
    """
    visible = () if how.slices else visible_gpus(job.framework.device_by_local_rank, how.gpus)
    rows = {
        "job_gpus": how.gpus,
        "sees": (visible,) * len(how.gpus) if visible else how.gpus,
        "seen": positions(how.gpus, visible) if visible else (),
    }
    return {name: tuple(",".join(map(str, row)) for row in each) for name, each in rows.items()}


def _gpu_lines(job: JobLayout, variable: str) -> Iterator[Line]:
    """Yield the lines that show each rank its GPUs."""
    visible, numbers = job.visible, job.framework.coordinator
    if visible and not job.at_start:
        yield line("all gpus", variable=variable, numbers=",".join(map(str, visible)))
    if visible and numbers:
        yield _own_numbers(job)
    if not (visible or job.at_start):  # else bind_here.sh chooses among those that the scheduler gave the job
        order = "nearest to its cores" if job.binding else "by their numbers"
        yield _array("gpus", job.gpus, f"GPUs of each local rank, {order}")
        yield line("own gpus", variable=variable)
    if numbers:
        yield line("jax devices")
    if variable == "CUDA_VISIBLE_DEVICES":
        yield line("nvidia order")


def _own_numbers(job: JobLayout) -> Line:
    where = "" if job.at_start else " in that list"
    return _array("own", positions(job.gpus, job.visible), f"the numbers of each local rank's GPUs{where}")


def _known_bus(rank: RankBinding, bus_ids: dict[int, str]) -> tuple[str, ...]:
    """Return the addresses of a rank's GPUs; empty where one is unknown: they cannot be compared then."""
    known = tuple(bus_ids[gpu] for gpu in rank.gpus if gpu in bus_ids)
    return known if len(known) == len(rank.gpus) else ()


def _array(name: str, rows: Iterable[tuple[int | str, ...]], reason: str) -> Line:
    """Return a bash array with one comma-separated word for each local rank."""
    texts = [",".join(map(str, row)) for row in rows]
    words = " ".join(f"'{text}'" if "," in text or not text else text for text in texts)
    return Line(text=f"{name}=({words})", reason=reason)


def launch_words(job: JobLayout) -> tuple[str, ...]:
    """Return the launcher with its options."""
    request, profile = job.request, job.profile
    options = map(literal, profile.fabric.launch_options) if job.nodes > 1 else ()
    launch = Launch(
        nodes=job.nodes,
        tasks_per_node=job.launched_per_node,
        cpus_per_task=job.launched_cpus,
        threads_per_core=request.threads_per_core,
        options=(*options, *launch_options(request.environment, profile)),
        in_allocation=job.place.allocation is not None,
    )
    if job.started is None:
        return job.launcher.words(_rank_launch(launch, job))
    gpus, unbound = job.gpus_per_node or 0, job.launcher.unbound
    each = replace(launch, gpus_per_task=gpus, cpu_bind=unbound, ranks_bind=True)
    return () if job.scheduler.starts_at_once else job.launcher.words(each)


def _rank_launch(launch: Launch, job: JobLayout) -> Launch:
    request, profile, per_node = job.request, job.profile, job.gpus_per_node or 0
    bound = job.binding.ranks if job.binding and profile.binding.cpu == "taskset" else ()
    most = max((len(rank.cpus) for rank in bound), default=0)
    return replace(
        launch,
        bound_cpus=job.cpus_per_task if job.at_start else most,
        gpus_per_task=request.gpus_per_task or per_node // job.tasks_per_node,
        cpu_bind=_cpu_bind(job),
        ranks_bind=bool(bound or job.at_start),
        mpi_plugin=request.mpi or profile.mpi.plugin or job.place.mpi_plugin,
    )


def node_setup(job: JobLayout) -> tuple[Line, ...]:
    """Return the lines of the shell that starts the program's own launcher on each node."""
    if job.started is None:
        return ()
    rank = "0" if job.scheduler.starts_at_once else numbered(job.launcher.name, job.launcher.rank)
    return node_lines(job, job.started, rank, _words_around(job))


def plugin_is_open(request: JobRequest, profile: SiteProfile) -> bool:
    """Whether neither the request nor the profile names the plugin to use."""
    by_workers = not request.as_ranks and worker_launchers.per_node_launcher(request)
    if not site_launcher(profile).plugin_list or request.mpi or profile.mpi.plugin or by_workers:
        return False
    return profile.mpi.plugin_open


def _cpu_bind(job: JobLayout) -> str | None:
    way = job.profile.binding.cpu
    if job.at_start:
        return '--cpu-bind="$cpu_bind"' if job.launcher.unbound else None
    if job.binding is None:
        bound = way in ("cores", "at_start") and job.request.binding != "off"
        return job.launcher.cores_option if bound else None
    if way == "mask_cpu":
        return f"--cpu-bind=mask_cpu:{dialects.mask_cpu(job.binding)}"
    if way == "map_cpu":
        return f"--cpu-bind=map_cpu:{dialects.map_cpu(job.binding)}"
    return dialects.pals(job.binding) if way == "list" else None


def rank_words(job: JobLayout) -> tuple[str, ...]:
    """Return what each rank runs, its container around it."""
    request, folder = job.request, job.place.folder
    argv = rank_command(request)
    if request.command.bundled:
        python = request.python or job.place.python or job.profile.software.python
        given = {word.partition("=")[0] for word in argv}
        # Without these a restart would begin at the beginning.
        checkpoints = f"{folder}/checkpoints" if folder else "checkpoints"
        restart: dict[str, tuple[str, ...]] = {"--checkpoint-dir": (checkpoints,), "--resume": ()}
        wanted = (restart if request.max_restarts else {}) | timeline_words(request, folder)
        more = (each for name, value in wanted.items() if name not in given for each in (name, *value))
        argv = (python, "-m", "hpclaunch.train", *argv, *more)
    return wrap_command(request.environment, job.profile, argv)


RAY_NODE = "ray_node.sh"
"""File of the job for the nodes of a Ray cluster."""
WORKER = '"$HPCLAUNCH_JOB_FOLDER/worker"'
"""The file, as a word of shell text."""


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
            lines.append(line("torchrun sizes", sizes=" ".join(sizes)))
        if not started.meets_itself and "--node_rank" not in started.options:
            lines.append(line("torchrun rendezvous"))
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
    around, program = (f' "${{@:1:{before}}}"', f'"${{@:{before + 1}}}"') if before else ("", '"$@"')
    facts = {"nodes": job.nodes, "cpus": cpus, "gpus": job.gpus_per_node or 0}
    return line("ray node"), line("ray cluster", around=around, program=program, **facts)
