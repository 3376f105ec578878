"""Notes for the user about the framework of a job, on stderr and in the script. Pure."""

from __future__ import annotations

from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import rank_gpus, sharing_note
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.program import MPI
from hpclaunch.plan.request import JobRequest, Setting
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
    return (*_found(request, layout, settings), *_ranks_of_jax(request, profile))


def _ranks_of_jax(request: JobRequest, profile: SiteProfile) -> tuple[str, ...]:
    """Return the note about ranks that JAX does not detect; sources: `frameworks.py`."""
    launcher = site_launcher(profile)
    if not framework_of(request).coordinator or launcher.known_to_jax:
        return ()
    return (
        f"under {launcher.name} jax.distributed.initialize() finds its ranks with Open MPI 4 only: pass it"
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
