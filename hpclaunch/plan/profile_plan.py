"""--profile: the lines of the script that have some steps of the program recorded on all ranks. Pure."""

from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line

NODES = "places"
"""Folder in the job's folder with a file per node, which lists its ranks."""
_NODES_FOLDER = Line(
    text=f'{{ rm -rf "$HPCLAUNCH_JOB_FOLDER/{NODES}" && mkdir "$HPCLAUNCH_JOB_FOLDER/{NODES}"; }} || :',
    reason="each rank leaves the name of its node here, for hpclaunch timeline",
)


def records_steps(request: JobRequest) -> bool:
    """Whether the start-up file records steps; the bundled training records its own without it."""
    return request.profile is not None and not request.command.bundled and starts_python(request)


def starts_python(request: JobRequest) -> bool:
    """Whether the command starts Python, as far as its words tell."""
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
    return (*lines, *_step_lines(request))


def _step_lines(request: JobRequest) -> tuple[Line, ...]:
    if not records_steps(request):
        return ()
    first = max(request.profile_after, 1) + 1
    cache = Line(
        text='export HOROVOD_CACHE_CAPACITY="${HOROVOD_CACHE_CAPACITY:-0}"',
        reason="--profile: with Horovod's response cache its timeline does not say when each rank asks"
        " (controller.cc of 0.28.1); steps are a little slower without it",
    )
    return (
        *([cache] if request.framework == "horovod" else []),
        Line(
            text=f"export HPCLAUNCH_PROFILE={request.profile_after}:{request.profile}",
            reason=f"--profile: steps {first} to {first + (request.profile or 0) - 1} of each rank are "
            "recorded, by the steps of a torch optimizer",
        ),
        Line(
            text='export HPCLAUNCH_PROFILE_FOLDER="$HPCLAUNCH_JOB_FOLDER"/profile',
            reason="in this folder; hpclaunch timeline reads it",
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
