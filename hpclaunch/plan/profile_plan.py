"""--profile: the lines of the script that have some steps of the program recorded on all ranks. Pure."""

from __future__ import annotations

from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line


def records_steps(request: JobRequest) -> bool:
    """Whether the start-up file records steps; the bundled training records its own without it."""
    return request.profile is not None and not request.command.bundled and starts_python(request)


def starts_python(request: JobRequest) -> bool:
    """Whether the command starts Python, as far as its words tell."""
    return request.command.bundled or python_target(request.command.argv) is not None


def profile_lines(request: JobRequest) -> tuple[Line, ...]:
    """Return the lines before the launch, after all other variables."""
    if not records_steps(request):
        return ()
    first = max(request.profile_after, 1) + 1
    return (
        Line(
            text=f"export HPCLAUNCH_PROFILE={request.profile_after}:{request.profile}",
            reason=f"--profile: steps {first} to {first + (request.profile or 0) - 1} of each rank are "
            f"recorded, "
            "by the steps of a torch optimizer",
        ),
        Line(
            text='export HPCLAUNCH_PROFILE_FOLDER="$HPCLAUNCH_JOB_FOLDER"/profile',
            reason="in this folder; hpclaunch timeline reads it",
        ),
    )


def timeline_words(request: JobRequest, folder: str | None) -> tuple[str, ...]:
    """Return the options with which the bundled training records itself."""
    given = {word.partition("=")[0] for word in request.command.argv}
    if request.profile is None or "--timeline" in given:
        return ()
    path = f"{folder}/timeline.json" if folder else "timeline.json"
    return ("--timeline", path, *(() if "--timeline-ranks" in given else ("--timeline-ranks", "all")))
