"""Notes for the user about the framework of a job, on stderr and in the script. Pure."""

from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import rank_gpus, sharing_note
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.program import MPI
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.scheduler.launcher import Mpiexec
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher

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
