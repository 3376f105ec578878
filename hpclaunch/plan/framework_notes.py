"""Notes for the user about the framework of a job, on stderr and in the script. Pure."""

from __future__ import annotations

from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.gpu_visibility import rank_gpus, sharing_note
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import JobRequest, Setting

FOUND = "found: "
"""How the origin of a framework begins that the program itself shows."""


def framework_notes(request: JobRequest, layout: JobLayout, settings: tuple[Setting, ...]) -> tuple[str, ...]:
    """Return by what the framework was found, or what it means for the GPUs that none was."""
    if request.command.bundled:
        return ()
    if reason := found_framework(settings):
        return (f"framework {request.framework} ({reason}); --framework names another",)
    gpus = rank_gpus(layout)
    if request.framework is not None or not gpus:
        return ()
    if note := sharing_note(framework_of(request).device_by_local_rank, gpus):
        return (note,)
    return (
        "the program shows no framework that is known: each rank sees all GPUs of its node, its own as number"
        " LOCAL_RANK; --framework names one",
    )


def found_framework(settings: tuple[Setting, ...]) -> str | None:
    """Return by what the framework is known; None: it was named, or none was found."""
    origins = (setting.origin for setting in settings if setting.name == "framework")
    return next((text.removeprefix(FOUND) for text in origins if text.startswith(FOUND)), None)


def about_framework(plan: LaunchPlan) -> list[str]:
    """Return the line about the framework in the comment at the head of a script."""
    if plan.request.command.bundled:
        return []
    if plan.request.framework is None:
        return ["Framework: not known; --framework names it."]
    reason = found_framework(plan.settings) or "named in the request"
    return [f"Framework: {plan.request.framework}; {reason}."]
