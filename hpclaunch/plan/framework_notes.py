"""Notes for the user about the framework of a job and its network, on stderr and in the script. Pure."""

from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobLayout, rank_gpus, sharing_note
from hpclaunch.plan.program import MPI
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.scheduler.launcher import Mpiexec
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import FabricPlugin, SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.software.container_runtimes import facts_of, is_guessed

FOUND = "found: "
"""How the origin of a framework begins that the program itself shows."""


def framework_notes(
    request: JobRequest, profile: SiteProfile, layout: JobLayout, settings: tuple[Setting, ...]
) -> tuple[str, ...]:
    """Return by what the framework was found and what it needs, or what it means that none was found."""
    if request.command.bundled:
        return ()
    return (*_found(request, layout, settings), *_ranks_of_jax(request, profile), *_no_ray(request, settings))


def _no_ray(request: JobRequest, settings: tuple[Setting, ...]) -> tuple[str, ...]:
    """Return the note about Ray where nothing names the Python that has it: profiles know of none."""
    named = any(each.name.startswith("environment.") for each in settings)
    if request.framework != "ray" or named:
        return ()
    return ("ray must be in the job's Python: --venv, --conda or --container; --check-imports tries it",)


def _ranks_of_jax(request: JobRequest, profile: SiteProfile) -> tuple[str, ...]:
    """Return the note about Open MPI 5, of which JAX asks mpi4py; sources: `frameworks.py`."""
    if not framework_of(request).coordinator or not isinstance(site_launcher(profile), Mpiexec):
        return ()
    return (
        "where mpiexec is Open MPI 5's, jax.distributed.initialize() of JAX 0.12 needs mpi4py; else pass it"
        " JAX_NUM_PROCESSES and JAX_PROCESS_ID, as how-to/frameworks.md shows",
    )


def _found(request: JobRequest, layout: JobLayout, settings: tuple[Setting, ...]) -> tuple[str, ...]:
    if reason := found_in_program("framework", settings):
        return (f"framework {request.framework} ({reason}); --framework names another", *_mpi(settings))
    if notes := _mpi(settings):
        return notes
    gpus = rank_gpus(layout)
    if request.framework is not None or not gpus:
        return ()
    if note := sharing_note(framework_of(request).device_by_local_rank, gpus):
        return (note,)
    return (
        "the program shows no framework that is known: each rank sees all GPUs of its node, its own as number"
        " LOCAL_RANK; --framework names one",
    )


def _mpi(settings: tuple[Setting, ...]) -> tuple[str, ...]:
    reason = found_in_program(MPI, settings)
    return (f"the program uses MPI, too ({reason}): the launcher must fit its MPI",) if reason else ()


def uses_mpi(request: JobRequest, settings: tuple[Setting, ...]) -> bool:
    """Whether the ranks of a program use the MPI of their Python, so that the launcher must fit it."""
    by_mpi = request.command.bundled or framework_of(request).by_mpi
    return by_mpi or found_in_program(MPI, settings) is not None


def with_launcher(
    request: JobRequest, profile: SiteProfile, tasks: int, settings: tuple[Setting, ...]
) -> SiteProfile:
    """Return the profile with the launcher of this job: another one where its ranks do without MPI.

    They do where their framework is known to, and a rank that is alone does. Raises BadInputError where
    ranks find each other by MPI and the site's launcher is for others.
    """
    launcher, by_mpi = site_launcher(profile), uses_mpi(request, settings)
    if by_mpi and tasks > 1 and not launcher.starts_mpi:
        raise BadInputError(
            f"the ranks of this job find each other by MPI, and the launcher of {profile.name} is"
            f" {launcher.name}, which starts them without one",
            "write launcher: mpiexec into its profile, or use --site local",
        )
    known = request.framework is not None and framework_of(request).rendezvous
    if launcher.without_mpi is None or by_mpi or not (known or tasks == 1):
        return profile
    return replace(profile, scheduler=replace(profile.scheduler, launcher=launcher.without_mpi))


def found_in_program(name: str, settings: tuple[Setting, ...]) -> str | None:
    """Return by what a setting is known: ``framework``, or ``mpi4py`` with another one; None: by nothing."""
    origins = (setting.origin for setting in settings if setting.name == name)
    return next((text.removeprefix(FOUND) for text in origins if text.startswith(FOUND)), None)


def about_framework(plan: LaunchPlan) -> list[str]:
    """Return the line about the framework in the comment at the head of a script."""
    if plan.request.command.bundled:
        return []
    if plan.request.framework is None:
        return ["Framework: not known; --framework names it."]
    reason = found_in_program("framework", plan.settings) or "named in the request"
    mpi = found_in_program(MPI, plan.settings)
    also = [f"It uses MPI, too: {mpi}."] if mpi else []
    return [f"Framework: {plan.request.framework}; {reason}.", *also]


def container_notes(request: JobRequest, profile: SiteProfile) -> tuple[str, ...]:
    """Return the note that the program which starts a container is not documented."""
    container = request.environment.container if request.environment else None
    note = is_guessed(profile, container) if container else None
    return (note,) if note else ()


def fabric_notes(request: JobRequest, profile: SiteProfile, layout: JobLayout) -> tuple[str, ...]:
    """Return the note that nothing loads the plugin by which NCCL or RCCL uses the site's network.

    Without it the libraries send by TCP between nodes and say so only in their own debug output. Where the
    site's variables demand the plugin, the job ends as it starts.
    """
    plugin, environment = profile.fabric.plugin, request.environment or Environment()
    if plugin is None or layout.nodes < 2 or not framework_of(request).nccl or not rank_gpus(layout):
        return ()
    there, page = _is_there(plugin, request, environment, profile), cite(profile, plugin.source)
    source = profile.sources.get(plugin.source or "")
    doubted = source is not None and source.evidence == "conflicting" and not environment.container
    if there and not doubted:
        return ()
    where = "the image must hold it" if environment.container else f"{plugin.install} brings it, {page}"
    demanded = profile.fabric.multi_node.get("NCCL_NET")
    without = "messages between nodes go by TCP"
    if demanded and demanded.value and not (environment.container and demanded.outside_containers):
        without = f"NCCL_NET={demanded.value} ends the job"
    checked = "" if request.preflight else "; --preflight looks for it before the ranks start"
    if there:
        return (
            f"whether {plugin.name} brings NCCL's plugin is not sure, sources disagree ({page}); without it"
            f" {without}{checked}",
        )
    return (
        f"NCCL's and RCCL's plugin {plugin.name} is not loaded, without which {without} ({where}){checked}",
    )


def _in_image(container: JobContainer, profile: SiteProfile) -> bool:
    """Whether an image is one of the site's, which hold the plugin."""
    site = facts_of(profile, container)
    return bool(site and site.fabric_in_images and container.image.startswith(site.images))


def _is_there(
    plugin: FabricPlugin, request: JobRequest, environment: Environment, profile: SiteProfile
) -> bool:
    """Whether a module, an option of the job or the container engine brings the plugin."""
    from hpclaunch.software.contradictions import loaded  # most jobs need none of it

    if environment.container and (plugin.in_containers or _in_image(environment.container, profile)):
        return True
    if plugin.directive and any(text.startswith(plugin.directive) for text in request.directives):
        return True
    return any(f"/{plugin.name}" in f"/{name}" for name in loaded(environment, profile))
