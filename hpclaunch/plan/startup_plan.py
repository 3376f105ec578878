"""Python's start-up file in the ranks: who gets it, and the lines of the script that put it in. Pure.

It lets Python tell where a rank stands (unless --no-stacks), and records steps (--profile).
"""

from hpclaunch.plan.profile_plan import profile_lines, records_steps, starts_python
from hpclaunch.plan.program import option_against_startup
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.container_runtimes import RUNTIMES, runtime_of

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


def tells_stands(request: JobRequest, profile: SiteProfile) -> bool:
    """Whether the ranks' Python is to tell where it stands."""
    return request.stacks and why_no_stands(request, profile) == ""


def needs_startup(request: JobRequest, profile: SiteProfile) -> bool:
    """Whether the ranks get the start-up file."""
    return tells_stands(request, profile) or records_steps(request)


def why_no_stands(request: JobRequest, profile: SiteProfile) -> str:
    """Return why the ranks' Python cannot tell where it stands; empty where it can."""
    container = request.environment.container if request.environment else None
    runtime = runtime_of(profile, container) if container else None
    if runtime and RUNTIMES[runtime].overrides:
        return f"with {runtime} the job's PYTHONPATH takes the place of the image's"
    return why_no_startup(request)


def why_no_startup(request: JobRequest) -> str:
    """Return why the ranks would not read Python's start-up file; empty where they do."""
    if not starts_python(request):
        return "the command does not start Python"
    option = None if request.command.bundled else option_against_startup(request.command.argv)
    return f"with {option} Python reads no start-up file" if option else ""


def look_words(profile: SiteProfile, nodes: int) -> tuple[str, ...]:
    """Return the shell words that print, in the job's script, where the processes on each node stand."""
    scheduler, launcher = site_scheduler(profile), site_launcher(profile)
    launch = () if scheduler.starts_at_once else (*launcher.one_per_node(nodes), *launcher.overlap)
    variable = scheduler.attach.job_variable if scheduler.attach else FOLDER_VARIABLE
    asked = (variable, f'"${variable}"', str(STACKS_SIGNAL))
    return (*launch, "python3", "-I", "-c", '"$hpclaunch_stands"', *asked)


def startup_lines(request: JobRequest, profile: SiteProfile, *, reported: bool) -> tuple[Line, ...]:
    """Return the lines before the launch, after all other variables; ``reported``: ranks report their
    binding, and with it their node."""
    profiled = profile_lines(request, reported=reported)
    if not needs_startup(request, profile):
        return profiled
    stacks = "Python tells hpclaunch stacks where it stands; --no-stacks leaves it out"
    reason = stacks if request.profile is None else "by a start-up file of Python; an existing one still runs"
    return (*profiled, Line(text=STARTUP_CALL, reason=reason))
