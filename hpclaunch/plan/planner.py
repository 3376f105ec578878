"""From request, profile and topology to the LaunchPlan. Pure: nothing is run, read or written here."""

import re

from msgspec.structs import asdict, replace

from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, idle_note, share_gpus
from hpclaunch.errors import BadInputError
from hpclaunch.json_document import document_of
from hpclaunch.plan import layout, request_rules, script_body
from hpclaunch.plan.command_rules import command_problems, launcher_notes, no_effect
from hpclaunch.plan.frameworks import check_framework, framework_notes, with_launcher
from hpclaunch.plan.layout import Supervision
from hpclaunch.plan.preflight_plan import plan_preflight, plan_staging
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.request_texts import check_names, check_overridden
from hpclaunch.plan.software_choice import offer_of, reason_of
from hpclaunch.plan.startup_plan import LOOK_S, look_words, why_no_startup
from hpclaunch.plan.worker_launchers import Started, per_node_launcher, with_said_sizes
from hpclaunch.scheduler.job_header import Line, Resources
from hpclaunch.scheduler.scheduler_interface import Allocation
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import no_submission, site_launcher, site_scheduler, source_of
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.walltime import format_walltime, parse_time_limit_s, parse_walltime_s

DEFAULT_WALLTIME = "00:30:00"
CHECKPOINTED = 85
"""Exit code that means "checkpointed, call me again"; free in the conventions of shells and of sysexits.h."""
_WHOLE_NODE_BINDINGS = ("mask_cpu", "map_cpu", "list", "taskset")


def make_plan(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology | None,
    place: layout.JobPlace,
    settings: tuple[Setting, ...] = (),
) -> layout.LaunchPlan:
    """Compute everything that a script needs.

    ``topology`` is the node of the site, or the live one for ``local``; None where it is unknown.
    Raises BadInputError, and SiteRuleError for what the site would refuse.
    """
    check_names(request)
    launched = per_node_launcher(request)
    request, said = with_said_sizes(request, launched)
    job = _layout(request, profile, topology, place, (*settings, *said), launched)
    profile = with_launcher(request, profile, job.tasks, job.settings)
    job = replace(job, profile=profile, launcher=site_launcher(profile))
    layout.check_budget(job)
    layout.check_sharing(job)
    header, for_rank, without_effect = _header(job), script_body.rank_setup(job), no_effect(job)
    check_overridden(request, for_rank)
    settled = {
        "place": layout.JobPlace(allocation=place.allocation),  # a plan is the same wherever its files are
        "settings": (*job.settings, *_computed(job)),
    }
    return layout.LaunchPlan(
        **asdict(job) | settled,
        header=header,
        environment=script_body.shell_lines(
            job, job.launcher.environment(job.requested_cpus, (x.text for x in header))
        ),
        rank_setup=for_rank,
        node_setup=script_body.node_setup(job),
        proof=script_body.proof(job),
        launch=script_body.launch_words(job),
        argv=script_body.rank_words(job),
        supervision=_supervision(job),
        preflight=plan_preflight(job),
        staging=plan_staging(request, job.profile, job.nodes),
        warnings=(*without_effect.warnings, *_warnings(job)),
        problems=(*without_effect.problems, *command_problems(job)),
    )


def _layout(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology | None,
    place: layout.JobPlace,
    settings: tuple[Setting, ...],
    launched: Started | None,
) -> layout.JobLayout:
    scheduler = site_scheduler(profile)
    local = scheduler.starts_at_once
    gpus = len(topology.gpus) if topology else None
    slices = profile.node is not None and profile.node.gpu_slices  # NCCL does not work between them
    nodes, tasks_per_node = _counts(request, 1 if slices else gpus, one_node=local)
    walltime_s = parse_time_limit_s(DEFAULT_WALLTIME if request.time is None else request.time)
    request_rules.check_request(scheduler, request, profile.queues)
    check_framework(request)
    choice = _queue(request, profile, place.allocation, (nodes, tasks_per_node), walltime_s)
    binding = None if topology is None else _bound(request, profile, topology, tasks_per_node, choice)
    if topology is None and request.gpus_per_task:
        gpus = tasks_per_node * request.gpus_per_task
    framework = layout.framework_of(request)
    share = layout.node_share(
        request, profile, choice, tasks_per_node, by_local_rank=framework.device_by_local_rank
    )
    cores, cpus = _cores_per_task(request, profile, topology, tasks_per_node, share)
    return layout.JobLayout(
        request=request,
        profile=profile,
        scheduler=scheduler,
        launcher=site_launcher(profile),
        framework=framework,
        place=place,
        settings=settings,
        nodes=nodes,
        tasks_per_node=tasks_per_node,
        walltime_s=walltime_s,
        choice=choice,
        binding=binding,
        gpus_per_node=share.gpus if share else gpus if request.gpus_per_task != 0 else 0,
        bus_ids={gpu.index: gpu.bus_id for gpu in topology.gpus if gpu.bus_id} if topology else {},
        cores_per_task=cores,
        cpus_per_task=cpus,
        gpus_by_number=_gpus_by_number(request, profile, gpus, tasks_per_node),
        share=share,
        launched=launched,
        started=None if request.as_ranks else launched,
        no_startup=why_no_startup(request),
    )


def _bound(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology,
    tasks_per_node: int,
    choice: request_rules.QueueChoice,
) -> NodeBinding | None:
    """Return the binding; None where the launcher makes one. Raises SiteRuleError for cores in reserve."""
    here = site_scheduler(profile).starts_at_once
    if not here:
        request_rules.check_cores(profile, topology, request, tasks_per_node)
    if request.binding == "off" or profile.binding.cpu not in _WHOLE_NODE_BINDINGS:
        return None
    request_rules.check_whole_node(profile, choice, request)
    binding = bind(
        topology,
        BindingRequest(
            tasks_per_node=tasks_per_node,
            cpus_per_task=request.cpus_per_task,
            gpus_per_task=request.gpus_per_task,
            threads_per_core=request.threads_per_core,
            share_cores=here,
        ),
    )
    return layout.with_documented_cores(
        binding, layout.documented_cores(request, profile, tasks_per_node), topology
    )


def _queue(
    request: JobRequest,
    profile: SiteProfile,
    allocation: Allocation | None,
    counts: tuple[int, int],
    walltime_s: int,
) -> request_rules.QueueChoice:
    """Return the queue for these nodes and tasks per node; none inside an allocation that they fit."""
    if allocation:
        layout.check_fit(allocation, request, *counts)
        reason = f"in the allocation {allocation.job_id}"
        return request_rules.QueueChoice(name=None, queue=None, reason=reason)
    request_rules.check_account(profile, request.account)
    return request_rules.choose_queue(profile, request.queue, counts[0], walltime_s)


def _counts(request: JobRequest, gpus: int | None, *, one_node: bool) -> tuple[int, int]:
    """Return (nodes, tasks per node); one task where the framework shares out a node itself."""
    shares = layout.framework_of(request).per_node
    nodes, tasks_per_node = layout.resolve(request, None if shares else gpus, one_node=one_node)
    if shares and tasks_per_node > 1:
        raise BadInputError.case("tasks-per-node: one process", ranks=tasks_per_node, request=request)
    return nodes, tasks_per_node


def _gpus_by_number(
    request: JobRequest, profile: SiteProfile, gpus: int | None, tasks_per_node: int
) -> tuple[tuple[int, ...], ...]:
    """Return the GPUs of each local rank where srun binds it to cores and the node's GPUs are counted."""
    described = profile.node is not None and profile.binding.cpu == "cores" and request.binding != "off"
    if not described or not gpus or not profile.binding.gpu_visible_var:
        return ()
    return tuple(share_gpus(range(gpus), tasks_per_node, request.gpus_per_task))


def _cores_per_task(
    request: JobRequest,
    profile: SiteProfile,
    topology: NodeTopology | None,
    tasks_per_node: int,
    share: layout.NodeShare | None,
) -> tuple[int, int]:
    """Return the cores and threads of each rank without a binding: as requested, its equal share, or one."""
    if share and profile.node:
        return share.cores, share.cores * profile.node.threads_per_core
    if request.cpus_per_task is None and topology is not None and profile.binding.cpu == "cores":
        whole = [core.cpus for core in topology.cores if topology.usable.issuperset(core.cpus)]
        cores = max(1, len(whole) // tasks_per_node)
        return cores, cores * max((len(cpus) for cpus in whole), default=1)
    cores = request.cpus_per_task or 1
    return cores, cores * request.threads_per_core


def _supervision(job: layout.JobLayout) -> Supervision | None:
    request, scheduler = job.request, job.scheduler
    if request.max_restarts < 0:
        raise BadInputError(f"--max-restarts {request.max_restarts}: it must be at least 0")
    idle_s = parse_walltime_s(request.idle_timeout, "--idle-timeout") if request.idle_timeout else None
    if not request.max_restarts and idle_s is None:
        return None
    timer_s = None
    if request.max_restarts:
        warn_s = parse_walltime_s(request.warn_before, "--warn-before")
        if warn_s >= job.walltime_s:
            limit = format_walltime(job.walltime_s)
            raise BadInputError.case("warn-before: too long", warn_before=request.warn_before, limit=limit)
        limited = not scheduler.starts_at_once or request.time is not None
        if limited and not scheduler.signals_before_limit:
            timer_s = job.walltime_s - warn_s
    return Supervision(
        max_restarts=request.max_restarts,
        exit_code=CHECKPOINTED,
        timer_s=timer_s,
        idle_s=idle_s,
        look=look_words(job) if idle_s else (),
        look_s=LOOK_S,
    )


def _header(job: layout.JobLayout) -> tuple[Line, ...]:
    if not job.is_queued:
        return ()
    request, profile, scheduler = job.request, job.profile, job.scheduler
    given = {_directive_key(text) for text in request.directives}
    named = given.union(_directive_key(d.text) for d in profile.directives)
    site = tuple(
        Line(text=d.text, reason=d.reason, source=source_of(profile, d.source))
        for d in profile.directives
        if _directive_key(d.text) not in given
    )
    extra = tuple(_extra(text, job) for text in request.directives)
    usual = (line for line in scheduler.header(_resources(job)) if _directive_key(line.text) not in named)
    return (*usual, *site, *extra)


def _resources(job: layout.JobLayout) -> Resources:
    request, profile, scheduler, queue = job.request, job.profile, job.scheduler, job.choice.queue
    is_qos = queue is not None and queue.kind == "qos"
    # Where the script writes the log, out.log, itself, the scheduler has a file for its own words.
    log = f"{scheduler.kind}.log" if scheduler.log_in_script else "out.log"
    memory = job.share.memory if job.share else None
    return document_of(
        Resources,
        request,
        nodes=job.nodes,
        tasks_per_node=job.launched_per_node,
        starter=job.starter,
        walltime_s=job.walltime_s,
        account=request.account if profile.account.in_script else None,
        account_option=profile.account.option,
        queue=queue.with_partition if queue is not None and is_qos else job.choice.name,
        queue_reason=job.choice.reason,
        queue_kind=queue.kind if queue is not None else "",
        qos=job.choice.name if is_qos else None,
        gpus_per_node=job.gpus_per_node,
        cpus_per_task=job.requested_cpus,
        gpu_type=(profile.node and profile.node.gpu_type) or request.gpu_type,
        gpu_request=profile.scheduler.gpu_request,
        memory=memory or request_rules.memory_request(profile, scheduler, request),
        begin=request_rules.begin_time(scheduler, request),
        select=profile.scheduler.select,
        after=request.after if job.place.after is None else job.place.after,
        launcher=profile.scheduler.launcher,
        output=f"{job.place.folder}/{log}" if job.place.folder else None,
        warn_s=parse_walltime_s(request.warn_before, "--warn-before") if request.max_restarts else None,
    )


def _extra(text: str, job: layout.JobLayout) -> Line:
    offer = offer_of(job.request, job.profile)
    if offer and text in offer.directives:
        return replace(reason_of(job.request, job.profile), text=text)
    return Line(text=text, reason="given with --directive")


def _directive_key(text: str) -> str:
    """Return what two directives must share for the user's to replace the site's: ``-l filesystems``."""
    words = re.split(r"[=\s]", text)
    return " ".join(words[:2]) if words[0] == "-l" else words[0]


def _computed(job: layout.JobLayout) -> tuple[Setting, ...]:
    """Return what the plan itself settled, for --explain."""
    request, rule = job.request, "computed: whole nodes, one rank for each GPU, else for each node"
    sizes = (("nodes", job.nodes), ("tasks-per-node", job.tasks_per_node), ("tasks", job.tasks))
    settled = [
        Setting(name=name, value=str(value), origin=rule)
        for name, value in sizes
        if getattr(request, name.replace("-", "_")) is None
    ]
    if script_body.plugin_is_open(request, job.profile):
        origin = f"computed: {job.place.mpi_reason}"
        settled.append(Setting(name="mpi", value=job.place.mpi_plugin, origin=origin))
    if job.is_queued and request.queue is None:
        origin = f"computed: {job.choice.reason}"
        settled.append(Setting(name="partition", value=job.choice.name, origin=origin))
    if job.is_queued and request.time is None:
        settled.append(Setting(name="time", value=format_walltime(job.walltime_s), origin="default"))
    return tuple(settled)


def _warnings(job: layout.JobLayout) -> tuple[str, ...]:
    notes = job.binding.notes if job.binding else ()
    if job.binding is None and job.gpus:
        notes = idle_note(range(job.gpus_per_node or 0), job.gpus)
    cost = None if job.place.allocation else layout.cost_at_most(job)
    off = no_submission(job.profile)
    return (
        *((f"{off}: this script can be read and ported, not submitted",) if off else ()),
        *launcher_notes(job),
        *framework_notes(job),
        *notes,
        *layout.spread_note(job),
        *layout.array_note(job),
        *((cost.text,) if cost else ()),
    )
