"""The body of a script: the shell lines before the launch, those of each rank, and the launch. Pure."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hpclaunch.binding import dialects
from hpclaunch.binding.node_binding import NodeBinding, RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.plan.frameworks import (
    deepspeed_config,
    framework_lines,
    framework_of,
    numbered,
    own_config,
    rank_lines,
)
from hpclaunch.plan.launch_plan import AtStart
from hpclaunch.plan.layout import Gpus, JobLayout, JobPlace, positions, rank_gpus, visible_gpus
from hpclaunch.plan.node_share import threads_line
from hpclaunch.plan.request import JobRequest
from hpclaunch.plan.software_choice import offer_of, reason_of
from hpclaunch.plan.startup_plan import place_lines, startup_lines, timeline_words
from hpclaunch.plan.worker_launchers import rank_command, worker_launch
from hpclaunch.plan.worker_start import job_lines, node_lines, ray_lines, worker_head
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.script_lines import line
from hpclaunch.software.shell_quoting import literal, word
from hpclaunch.software.software_lines import (
    environment_lines,
    launch_options,
    site_variables,
    wrap_command,
)


def shell_lines(
    request: JobRequest,
    profile: SiteProfile,
    layout: JobLayout,
    place: JobPlace,
    for_launcher: tuple[Line, ...],
) -> tuple[Line, ...]:
    """Return the lines before the launch: folders, software, variables.

    ``for_launcher``: the launcher's own.
    """
    scheduler = site_scheduler(profile)
    lines = list(scheduler.start_lines)
    if place.python:
        folder = literal(place.python.rpartition("/")[0])
        lines.append(
            Line(text=f'export PATH={folder}:"$PATH"', reason="the Python and MPI of this hpclaunch, first")
        )
    if request.command.bundled and not scheduler.starts_at_once:
        lines.append(line("runner"))
    lines += environment_lines(request.environment, profile, reason_of(request, profile))
    lines += for_launcher
    lines += _srun_binding(profile, layout)
    if _shares_cores(layout.binding):
        lines.append(line("yield cores"))
    lines += site_variables(profile, layout.nodes, request.environment, frozenset(request.env))
    lines += framework_lines(request, profile, layout.nodes, layout.tasks_per_node)
    if not framework_of(request).per_node:  # Ray gives each task its own number
        lines.append(_threads(request, profile, layout))
    lines += _given_variables(request, profile)
    lines += job_lines(layout.started, layout) if layout.started else ()
    return (*lines, *startup_lines(request, profile, reported=bool(layout.binding or layout.at_start)))


def _srun_binding(profile: SiteProfile, layout: JobLayout) -> Iterator[Line]:
    if layout.at_start and site_launcher(profile).unbound and not layout.started:
        reason = "srun's binding of the ranks; none where each binds itself (bind_here.sh)"
        yield Line(text="cpu_bind=${hpclaunch_cpu_bind:-cores}", reason=reason)


def _given_variables(request: JobRequest, profile: SiteProfile) -> Iterator[Line]:
    """Yield the variables that the request sets, and those of the site's software that the job uses."""
    offer = offer_of(request, profile)
    for name, value in request.env.items():
        if offer and offer.env.get(name) == value:
            yield replace(reason_of(request, profile), text=f"export {name}={word(value)}")
        else:
            yield Line(text=f"export {name}={literal(value)}", reason="given in the request")


def _shares_cores(binding: NodeBinding | None) -> bool:
    cpus = [cpu for rank in binding.ranks for cpu in rank.cpus] if binding else []
    return len(cpus) > len(set(cpus))


def _threads(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> Line:
    """One thread for each core of the smallest rank, unless the site documents fewer for the framework."""
    if layout.binding is not None:
        cores = min(len(rank.cpus) for rank in layout.binding.ranks) // request.threads_per_core
        reason = "threads for each rank: the cores it is bound to"
    else:
        cores, reason = layout.cores_per_task, "threads for each rank: --cpus-per-task"
        if cores != (request.cpus_per_task or 1):
            reason = "threads for each rank: its share of the node's cores"
    return threads_line(request, profile, cores, reason)


def rank_setup(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> tuple[Line, ...]:
    """Return the lines of each rank's own shell: who it is, its share of the node, its binding."""
    variable = profile.binding.gpu_visible_var if rank_gpus(layout) else None
    used = (not request.no_sample, variable, layout.binding, layout.at_start)
    names = {"RANK", "LOCAL_RANK"} if any(used) else {"RANK"}
    lines = list(_who_it_is(request, profile, layout, frozenset(names)))
    if variable:
        lines += _gpu_lines(request, layout, variable)
    if framework_of(request).per_node:
        lines += ray_lines(layout, _words_around(request, profile))
    return (*lines, *_place(request, profile, layout))


def _place(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> Iterator[Line]:
    """Yield the lines that bind a rank, or tell its place where the launcher does."""
    if layout.binding is None:
        yield from place_lines(request)
    elif profile.binding.cpu == "taskset" or layout.started:
        lists = ((format_cpu_list(rank.cpus),) for rank in layout.binding.ranks)
        yield _array("cpus", lists, "CPUs planned for each local rank")
        yield line("taskset")


def _words_around(request: JobRequest, profile: SiteProfile) -> int:
    argv = rank_command(request)
    return len(wrap_command(request.environment, profile, argv)) - len(argv)


def _who_it_is(
    request: JobRequest, profile: SiteProfile, layout: JobLayout, needed: frozenset[str]
) -> Iterator[Line]:
    if layout.started:
        yield from worker_head(layout.started)
    else:
        yield from rank_lines(request, profile, layout, needed)
    if request.zero_stage is not None and (config := deepspeed_config(request.command.argv)):
        yield own_config(config)


def proof(request: JobRequest, layout: JobLayout) -> dict[str, tuple[str, ...]]:
    """Return what each rank compares its binding with; nothing where no binding is planned."""
    if layout.at_start:
        return _at_start_gpus(request, layout.at_start)
    if layout.binding is None:
        return {}
    ranks, gpus = layout.binding.ranks, rank_gpus(layout)
    visible = visible_gpus(framework_of(request).device_by_local_rank, gpus)
    columns: dict[str, Iterable[Iterable[int | str]]] = {
        "cpus": ((format_cpu_list(rank.cpus),) for rank in ranks),
        "numa": (rank.numa for rank in ranks),
        "bus": (_known_bus(rank, layout.bus_ids) if gpus else () for rank in ranks),
        "own": positions(gpus, visible) if visible else (),
    }
    return {name: tuple(",".join(map(str, row)) for row in rows) for name, rows in columns.items()}


def _at_start_gpus(request: JobRequest, how: AtStart) -> dict[str, tuple[str, ...]]:
    """Return places in lists of GPUs, for each local rank.

    ``job_gpus``: its own among the job's; ``sees``: those of the job's that it sees; ``seen``: its own among
    those that it sees, empty where it sees no others.
    """
    visible = () if how.slices else visible_gpus(framework_of(request).device_by_local_rank, how.gpus)
    rows = {
        "job_gpus": how.gpus,
        "sees": (visible,) * len(how.gpus) if visible else how.gpus,
        "seen": positions(how.gpus, visible) if visible else (),
    }
    return {name: tuple(",".join(map(str, row)) for row in each) for name, each in rows.items()}


def _gpu_lines(request: JobRequest, layout: JobLayout, variable: str) -> Iterator[Line]:
    """Yield the lines that show each rank its GPUs."""
    gpus, framework = rank_gpus(layout), framework_of(request)
    visible = visible_gpus(framework.device_by_local_rank, gpus)
    if layout.at_start:  # bind_here.sh chooses among those that the scheduler gave the job
        if visible and framework.coordinator:
            yield _array("own", positions(gpus, visible), "the numbers of each local rank's GPUs")
    elif visible:
        yield from _all_visible(gpus, visible, variable, numbers=framework.coordinator)
    else:
        order = "nearest to its cores" if layout.binding else "by their numbers"
        yield _array("gpus", gpus, f"GPUs of each local rank, {order}")
        yield Line(text=f'export {variable}="${{gpus[LOCAL_RANK]}}"', reason="this rank sees only its own")
    if framework.coordinator:
        yield line("jax devices")
    if variable == "CUDA_VISIBLE_DEVICES":
        yield line("nvidia order")


def _all_visible(gpus: Gpus, visible: tuple[int, ...], variable: str, *, numbers: bool) -> Iterator[Line]:
    yield line("all gpus", variable=variable, numbers=",".join(map(str, visible)))
    if numbers:
        yield _array("own", positions(gpus, visible), "the numbers of each local rank's GPUs in that list")


def _known_bus(rank: RankBinding, bus_ids: dict[int, str]) -> tuple[str, ...]:
    """Return the addresses of a rank's GPUs; empty where one is unknown: they cannot be compared then."""
    known = tuple(bus_ids[gpu] for gpu in rank.gpus if gpu in bus_ids)
    return known if len(known) == len(rank.gpus) else ()


def _array(name: str, rows: Iterable[tuple[int | str, ...]], reason: str) -> Line:
    """Return a bash array with one comma-separated word for each local rank."""
    texts = [",".join(map(str, row)) for row in rows]
    words = " ".join(f"'{text}'" if "," in text or not text else text for text in texts)
    return Line(text=f"{name}=({words})", reason=reason)


def launch_words(
    request: JobRequest, profile: SiteProfile, layout: JobLayout, place: JobPlace
) -> tuple[str, ...]:
    """Return the launcher with its options."""
    launcher = site_launcher(profile)
    options = (
        *(map(literal, profile.fabric.launch_options) if layout.nodes > 1 else ()),
        *launch_options(request.environment, profile),
    )
    launch = Launch(
        nodes=layout.nodes,
        tasks_per_node=layout.launched_per_node,
        cpus_per_task=layout.launched_cpus,
        threads_per_core=request.threads_per_core,
        options=options,
        in_allocation=place.allocation is not None,
    )
    if layout.started:
        alone = site_scheduler(profile).starts_at_once
        gpus = layout.gpus_per_node or 0
        each = replace(launch, gpus_per_task=gpus, cpu_bind=launcher.unbound, ranks_bind=True)
        return () if alone else launcher.words(each)
    return launcher.words(_rank_launch(launch, request, profile, layout, place))


def _rank_launch(
    launch: Launch, request: JobRequest, profile: SiteProfile, layout: JobLayout, place: JobPlace
) -> Launch:
    bound = layout.binding.ranks if layout.binding is not None and profile.binding.cpu == "taskset" else ()
    per_node = layout.gpus_per_node or 0
    return replace(
        launch,
        bound_cpus=layout.cpus_per_task
        if layout.at_start
        else max((len(rank.cpus) for rank in bound), default=0),
        gpus_per_task=request.gpus_per_task or per_node // layout.tasks_per_node,
        cpu_bind=_cpu_bind(request, profile, layout),
        ranks_bind=bool(bound or layout.at_start),
        mpi_plugin=request.mpi or profile.mpi.plugin or place.mpi_plugin,
    )


def node_setup(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> tuple[Line, ...]:
    """Return the lines of the shell that starts the program's own launcher on each node."""
    if layout.started is None:
        return ()
    launcher = site_launcher(profile)
    rank = "0" if site_scheduler(profile).starts_at_once else numbered(launcher.name, launcher.rank)
    return node_lines(request, layout, layout.started, rank, _words_around(request, profile))


def plugin_is_open(request: JobRequest, profile: SiteProfile) -> bool:
    """Whether neither the request nor the profile names the plugin to use."""
    if not site_launcher(profile).plugin_list or request.mpi or profile.mpi.plugin or worker_launch(request):
        return False
    return profile.mpi.plugin_open


def _cpu_bind(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> str | None:
    if layout.at_start:
        return '--cpu-bind="$cpu_bind"' if site_launcher(profile).unbound else None
    if layout.binding is None:
        bound = profile.binding.cpu in ("cores", "at_start") and request.binding != "off"
        return site_launcher(profile).cores_option if bound else None
    if profile.binding.cpu == "mask_cpu":
        return f"--cpu-bind=mask_cpu:{dialects.mask_cpu(layout.binding)}"
    if profile.binding.cpu == "map_cpu":
        return f"--cpu-bind=map_cpu:{dialects.map_cpu(layout.binding)}"
    if profile.binding.cpu == "list":
        return dialects.pals(layout.binding)
    return None


def rank_words(request: JobRequest, profile: SiteProfile, place: JobPlace) -> tuple[str, ...]:
    """Return what each rank runs, its container around it."""
    argv = rank_command(request)
    if request.command.bundled:
        python = request.python or place.python or profile.software.python
        recorded = timeline_words(request, place.folder)
        argv = (python, "-m", "hpclaunch.train", *argv, *_checkpoints(request, place), *recorded)
    return wrap_command(request.environment, profile, argv)


def _checkpoints(request: JobRequest, place: JobPlace) -> tuple[str, ...]:
    """Return the runner's options without which a restart would begin at the beginning."""
    if not request.max_restarts:
        return ()
    given = {word.partition("=")[0] for word in request.command.argv}
    folder = f"{place.folder}/checkpoints" if place.folder else "checkpoints"
    wanted = () if "--checkpoint-dir" in given else ("--checkpoint-dir", folder)
    return (*wanted, *(() if "--resume" in given else ("--resume",)))
