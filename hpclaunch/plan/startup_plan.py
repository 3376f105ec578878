"""Python's start-up file in the ranks, and --profile: who gets it, and the lines of the script for it. Pure.

It lets Python tell where a rank stands (unless --no-stacks), and records steps (--profile).
"""

from collections.abc import Iterator

from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.program import option_against_startup, python_target
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.software.containers import RUNTIMES, runtime_of
from hpclaunch.software.script_lines import line

STARTUP = "startup"
"""Folder of the job's files that Python finds its start-up file in."""
STARTUP_FILES = {
    "rank_startup.py": "sitecustomize.py",
    "rank_profile.py": "rank_profile.py",
    "rank_recorder.py": "rank_recorder.py",
}
"""File of ``hpclaunch/remote`` -> its name there."""
STACKS_SIGNAL = 50
"""A real-time signal from the middle of 34 to 64: glibc keeps 32 and 33 for itself (man nptl), musl 34 too
(its pthread_impl.h), Valgrind takes 64 (its --help), HPCToolkit SIGRTMIN+3 and +4, which are 37 and 38; the
Java VM takes USR2, checkpoints of this tool USR1. Open MPI, MPICH and NCCL document none of these."""
LOOK_S = 60
"""A node answers within 30 s; what starts the processes on the nodes may need some seconds."""
JOB_VARIABLE = "HPCLAUNCH_JOB_ID"
"""In the environment of all processes of a job of ours."""
FOLDER_VARIABLE = "HPCLAUNCH_JOB_FOLDER"
"""The same, and of an array each job has its own."""
STACKS = "stacks"
"""Folder of the job's files with the programs of the roll call."""
STARTUP_CALL = "${hpclaunch_startup-:}"
"""Line of the script: a function of ``startup.sh``, where the job's files are there."""


def tells_stands(job: JobLayout) -> bool:
    """Whether the ranks' Python is to tell where it stands."""
    return job.request.stacks and why_no_stands(job) == ""


def needs_startup(job: JobLayout) -> bool:
    """Whether the ranks get the start-up file."""
    return tells_stands(job) or records_steps(job)


def why_no_stands(job: JobLayout) -> str:
    """Return why the ranks' Python cannot tell where it stands; empty where it can."""
    container = job.request.environment.container if job.request.environment else None
    runtime = runtime_of(job.profile, container) if container else None
    if runtime and RUNTIMES[runtime].overrides:
        return f"with {runtime} the job's PYTHONPATH takes the place of the image's"
    return job.no_startup


def why_no_startup(request: JobRequest) -> str:
    """Return why the ranks would not read Python's start-up file; empty where they do."""
    if not starts_python(request):
        return "the command does not start Python"
    option = None if request.command.bundled else option_against_startup(request.command.argv)
    return f"with {option} Python reads no start-up file" if option else ""


def look_words(job: JobLayout) -> tuple[str, ...]:
    """Return the shell words that print, in the job's script, where the processes on each node stand."""
    launch, attach = job.overlapping, job.scheduler.attach
    variable = attach.job_variable if attach else FOLDER_VARIABLE
    asked = (variable, f'"${variable}"', str(STACKS_SIGNAL))
    return (*launch, "python3", "-I", "-c", '"$hpclaunch_stands"', *asked)


def startup_lines(job: JobLayout) -> Iterator[Line]:
    """Yield the lines before the launch, after all other variables."""
    request = job.request
    # A report on its binding tells of the node of each rank, too.
    if has_timeline(job) and not (job.binding or job.at_start):
        yield _NODES_FOLDER
    if records_steps(job):
        steps, after = request.profile or 0, request.profile_after
        first = max(after, 1) + 1
        if request.framework == "horovod":
            yield line("no response cache")
        yield line("profiled steps", after=after, steps=steps, first=first, last=first + steps - 1)
        yield line("profile folder")
    if needs_startup(job):
        stacks = "Python tells hpclaunch stacks where it stands; --no-stacks leaves it out"
        records = "by a start-up file of Python; an existing one still runs"
        yield Line(text=STARTUP_CALL, reason=stacks if request.profile is None else records)


NODES = "places"
"""Folder in the job's folder with a file per node, which lists its ranks."""
_NODES_FOLDER = line("places folder", folder=NODES)


def records_steps(job: JobLayout) -> bool:
    """Whether the start-up file records steps; the bundled training records its own without it."""
    return job.request.profile is not None and not (job.request.command.bundled or job.no_startup)


def starts_python(request: JobRequest) -> bool:
    """Whether the command starts Python, as far as its words tell."""
    return request.command.bundled or python_target(request.command.argv) is not None


def has_timeline(job: JobLayout) -> bool:
    """Whether the job writes a timeline that hpclaunch knows of."""
    command = job.request.command
    named = command.bundled and any(word.partition("=")[0] == "--timeline" for word in command.argv)
    recorded = job.request.profile is not None and not job.no_startup
    return named or recorded or job.request.timeline is not None


def timeline_words(request: JobRequest, folder: str | None) -> dict[str, tuple[str, ...]]:
    """Return the options with which the bundled training records itself, and the value of each."""
    if request.profile is None:
        return {}
    return {
        "--timeline": (f"{folder}/timeline.json" if folder else "timeline.json",),
        "--timeline-ranks": ("all",),
        "--timeline-steps": (str(request.profile),),
        "--timeline-after": (str(request.profile_after),),
    }
