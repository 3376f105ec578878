"""Python's start-up file in the ranks: who gets it, and the lines of the script that put it in. Pure.

It records steps (--profile), and lets Python tell where a rank stands (--stacks, --idle-timeout, --profile).
"""

from hpclaunch.plan.profile_plan import profile_lines, records_steps, starts_python
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler

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
RECORDED_COLLECTIVES = 2000
"""What torch keeps for NCCL where nothing else was set; for gloo it keeps none (torch 2.13)."""


def tells_stands(request: JobRequest) -> bool:
    """Whether the ranks' Python is to tell where it stands."""
    wanted = request.stacks or request.idle_timeout is not None or request.profile is not None
    return wanted and starts_python(request)


def needs_startup(request: JobRequest) -> bool:
    """Whether the ranks get the start-up file."""
    return tells_stands(request) or records_steps(request)


def look_words(profile: SiteProfile, nodes: int) -> tuple[str, ...]:
    """Return the shell words that print, in the job's script, where the processes on each node stand."""
    scheduler, launcher = site_scheduler(profile), site_launcher(profile)
    launch = () if scheduler.starts_at_once else (*launcher.one_per_node(nodes), *launcher.overlap)
    variable = scheduler.attach.job_variable if scheduler.attach else FOLDER_VARIABLE
    asked = (variable, f'"${variable}"', str(STACKS_SIGNAL))
    return (*launch, "python3", "-I", "-c", '"$hpclaunch_stands"', *asked)


def startup_lines(request: JobRequest, *, reported: bool) -> tuple[Line, ...]:
    """Return the lines before the launch, after all other variables; ``reported``: ranks report their
    binding, and with it their node."""
    profiled = profile_lines(request, reported=reported)
    if not needs_startup(request):
        return profiled
    found = Line(
        text=f'export PYTHONPATH="$HPCLAUNCH_FILES/{STARTUP}${{PYTHONPATH:+:$PYTHONPATH}}"',
        reason="by this start-up file of Python (sitecustomize); an existing one still runs",
    )
    return (*profiled, *_stacks_lines(request), found)


def _stacks_lines(request: JobRequest) -> tuple[Line, ...]:
    if not tells_stands(request):
        return ()
    option = "--stacks" if request.stacks else "--idle-timeout" if request.idle_timeout else "--profile"
    stacks = Line(
        text=f"export HPCLAUNCH_STACKS={STACKS_SIGNAL}",
        reason=f"{option}: at this signal Python notes where its threads stand, for hpclaunch stacks",
    )
    if request.framework not in ("torch", "deepspeed"):
        return (stacks,)
    kept = f'export TORCH_FR_BUFFER_SIZE="${{TORCH_FR_BUFFER_SIZE:-{RECORDED_COLLECTIVES}}}"'
    return (
        stacks,
        Line(text=kept, reason=f"{option}: torch keeps the numbers of its newest collectives"),
    )
