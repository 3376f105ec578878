"""Asking the scheduler what its nodes have, where no profile says it. The commands only read."""

from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.plan.launch_plan import KnownJob
from hpclaunch.plan.layout import framework_of
from hpclaunch.plan.request import JobRequest, Problem, Setting, problem
from hpclaunch.scheduler.cluster_facts import ClusterFacts
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.asked_cluster import Wanted, cluster_profile
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

_LIMIT_S = 20.0


def is_open(profile: SiteProfile) -> bool:
    """Whether the profile leaves its nodes to be asked for."""
    return (
        profile.status == "generic" and profile.node is None and bool(site_scheduler(profile).facts_commands)
    )


def words_of_asking(host: Host, scheduler: Scheduler) -> str:
    """Return what is asked where, as ``scontrol on this machine``."""
    programs = dict.fromkeys(argv[0] for argv in scheduler.facts_commands.values())
    return f"{' and '.join(programs)} on {host.name}"


def cluster_facts(host: Host, scheduler: Scheduler) -> ClusterFacts:
    """Return what the scheduler on ``host`` tells of its nodes and queues. Raises RefusedError."""
    return scheduler.parse_facts(
        {
            name: host.run(argv, timeout_s=_LIMIT_S, env=scheduler.query_env)
            for name, argv in scheduler.facts_commands.items()
        }
    )


def ask_cluster(host: Host, job: KnownJob) -> KnownJob:
    """Ask the scheduler on ``host`` for its nodes, and plan the job for those that fit.

    Such clusters share nodes among jobs unless a queue says otherwise, so a job with GPUs requests whole
    nodes only where the user does. Where nothing can be learned, a program that uses GPUs is submitted if
    the request gives their number. Raises BadInputError where no node has what the job wants.
    """
    request, profile, scheduler = job.request, job.profile, site_scheduler(job.profile)
    want = Wanted(
        nodes=request.nodes or 1, queue=request.queue, gpu_type=request.gpu_type, gpus=_wants_gpus(request)
    )
    asked = words_of_asking(host, scheduler)
    try:
        facts = cluster_facts(host, scheduler)
        found = cluster_profile(profile, facts, want, asked)
        queues = ", ".join(queue.name for queue in facts.queues) or "no queue that takes jobs"
        why = f"{asked} shows {queues}" + (f", not {want.queue}" if want.queue else "")
    except RefusedError as error:
        found, why = None, error.message
    if found is None:
        return replace(job, problems=(*job.problems, *_nothing_known(request, profile, want, why)))
    job = replace(job, profile=found.profile, notes=(*job.notes, *found.notes))
    named = next((each.origin for each in job.settings if each.name == "exclusive"), "default") != "default"
    if named or found.profile.node is None or not found.profile.node.gpus:
        return job
    settings = tuple(each for each in job.settings if each.name != "exclusive")
    shared = Setting(name="exclusive", value="false", origin="computed: nodes are shared here")
    return replace(job, request=replace(request, exclusive=False), settings=(*settings, shared))


def _wants_gpus(request: JobRequest) -> bool | None:
    """Whether the job uses GPUs; None: the program does not show it."""
    if request.gpus_per_task == 0:
        return False
    if request.gpus_per_task or request.gpu_type:
        return True
    row = framework_of(request)
    return True if row.nccl else None


def _nothing_known(request: JobRequest, profile: SiteProfile, want: Wanted, why: str) -> tuple[Problem, ...]:
    if not want.gpus or request.gpus_per_task:
        return ()
    return (problem("GPUs: not known", site=profile.name, framework=request.framework, why=why),)
