"""--profile: the lines of the script that have some steps of the program recorded on all ranks. Pure."""

from __future__ import annotations

from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line

STARTUP = "startup"
"""Folder in the job's folder that Python finds its start-up file in."""
NODES = "nodes"
"""Folder in the job's folder with a file per node, which lists its ranks."""
_NODES_FOLDER = Line(
    text=f'{{ rm -rf "$HPCLAUNCH_JOB_FOLDER/{NODES}" && mkdir "$HPCLAUNCH_JOB_FOLDER/{NODES}"; }} || :',
    reason="each rank leaves the name of its node here, for hpclaunch timeline",
)
STARTUP_FILES = {"rank_startup.py": "sitecustomize.py", "rank_profile.py": "rank_profile.py"}
"""File of ``hpclaunch/remote`` -> its name there."""


def needs_startup(request: JobRequest) -> bool:
    """Whether the ranks get the start-up file; the bundled training records its steps without it."""
    return request.profile is not None and not request.command.bundled and takes_profile(request)


def takes_profile(request: JobRequest) -> bool:
    """Whether --profile has an effect: on the bundled training, and on a command that starts Python."""
    return request.command.bundled or python_target(request.command.argv) is not None


def has_timeline(request: JobRequest) -> bool:
    """Whether the job writes a timeline that hpclaunch knows of."""
    named = request.command.bundled and any(
        word.partition("=")[0] == "--timeline" for word in request.command.argv
    )
    return named or request.profile is not None or request.timeline is not None


def place_lines(request: JobRequest) -> tuple[Line, ...]:
    """Return the lines by which each rank of a job with a timeline, and without a report on its binding,
    leaves its place."""
    if not has_timeline(request):
        return ()
    return (
        Line(
            text='{ echo "$RANK" >> '
            f'"$HPCLAUNCH_JOB_FOLDER/{NODES}/$(< /proc/sys/kernel/hostname)"; }} 2> /dev/null || :',
            reason="the node of this rank, for hpclaunch timeline",
        ),
    )


def profile_lines(request: JobRequest, *, reported: bool) -> tuple[Line, ...]:
    """Return the lines before the launch, after all other variables; ``reported``: ranks report their
    binding, and with it their node."""
    lines = [] if reported or not has_timeline(request) else [_NODES_FOLDER]
    return (*lines, *_startup_lines(request))


def _startup_lines(request: JobRequest) -> tuple[Line, ...]:
    if not needs_startup(request):
        return ()
    folder = "${HPCLAUNCH_JOB_FOLDER%/*}" if request.array else "$HPCLAUNCH_JOB_FOLDER"
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
        Line(
            text=f'export PYTHONPATH="{folder}/{STARTUP}${{PYTHONPATH:+:$PYTHONPATH}}"',
            reason="by this start-up file of Python (sitecustomize); an existing one still runs",
        ),
    )


def timeline_words(request: JobRequest, folder: str | None) -> tuple[str, ...]:
    """Return the options with which the bundled training records itself, without those that were given."""
    if request.profile is None:
        return ()
    given = {word.partition("=")[0] for word in request.command.argv}
    options = {
        "--timeline": f"{folder}/timeline.json" if folder else "timeline.json",
        "--timeline-ranks": "all",
        "--timeline-steps": str(request.profile),
        "--timeline-after": str(request.profile_after),
    }
    return tuple(word for pair in options.items() if pair[0] not in given for word in pair)
