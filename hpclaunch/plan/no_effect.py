"""Options that cannot have an effect on this job: a submission is refused for them, a dry run warns of them.

What the user's configuration holds for all sites is a default, so it may have no effect at one of them. For a
job file, which may be tried elsewhere, it is only said.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpclaunch.plan.layout import JobLayout
from hpclaunch.plan.request import NOT_GIVEN, JobRequest, Problem
from hpclaunch.plan.script_body import plugin_is_open
from hpclaunch.plan.startup_plan import why_no_stands, why_no_startup
from hpclaunch.plan.wrappers import program_at
from hpclaunch.site.schema import SiteProfile
from hpclaunch.walltime import format_walltime

_OF_THE_QUEUE = {
    "account": "--account",
    "queue": "--partition",
    "memory": "--mem",
    "exclude": "--exclude",
    "directive": "--directive",
    "exclusive": "--exclusive/--no-exclusive",
}
_DEFAULTS = ("user config", "job 2", *NOT_GIVEN)
"""How an origin begins whose settings are meant where they fit; ``job 2...``: the job that is repeated."""


class Found(NamedTuple):
    """An option without effect."""

    problems: tuple[Problem, ...]
    """Options of this command; nothing is submitted with them."""
    warnings: tuple[str, ...]


def no_effect(job: JobLayout) -> Found:
    """Return which of the given settings have no effect on the job."""
    origins = {setting.name.replace("-", "_"): setting.origin for setting in job.settings}
    problems = [job.choice.problem] if job.choice.problem else []
    warnings = [*_times(job, origins), *_undocumented_plugin(job.request, job.profile)]
    for name, sentence in _without_effect(job):
        origin = origins.get(name)
        if origin is None or origin.startswith(_DEFAULTS):
            continue
        if origin.startswith("job file"):
            warnings.append(f"{sentence} ({origin})")
        else:
            problems.append(Problem(message=sentence, hint="leave it out"))
    return Found(tuple(problems), tuple(warnings))


def _without_effect(job: JobLayout) -> Iterator[tuple[str, str]]:
    """Yield (setting, why it has no effect)."""
    request, profile, launcher, place = job.request, job.profile, job.launcher, job.place
    for name, option in _OF_THE_QUEUE.items():
        if place.allocation:
            number = place.allocation.job_id
            yield name, f"{option} has no effect in the allocation {number}; --no-here queues the job instead"
        elif job.scheduler.starts_at_once:
            yield name, f"{option} has no effect: jobs on this machine start at once, without a scheduler"
    if not request.after:
        yield "after_any", "--after-any has no effect without --after, which names the jobs to wait for"
    if not request.max_restarts:
        yield "warn_before", "--warn-before has no effect without --max-restarts: no rank is signalled"
    if not launcher.takes_plugin and request.mpi != "none":  # none: ranks that are alone are no failure
        yield "mpi", f"--mpi has no effect: the launcher of {profile.name}, {launcher.name}, takes no plugin"
    if request.no_sample:
        yield "sample", "--sample has no effect with --no-sample"
    if request.profile is None:
        yield "profile_after", "--profile-after has no effect without --profile"
    elif why := why_no_startup(request):
        yield "profile", f"--profile has no effect: {why}, so no step can be recorded"
    if request.stacks and (why := why_no_stands(request, profile)):
        yield "stacks", f"--stacks has no effect: {why}; hpclaunch stacks does without it"
    if not (request.check or request.preflight):
        yield "space", "--space has an effect only with --check or --preflight"
    if not _reads_python(request, profile):
        yield (
            "python",
            "--python is for the bundled training, a command that begins with a file such as train.py,"
            " --check, --preflight and --zero-stage only",
        )
    if profile.node is not None and profile.status != "generic":
        yield "gpu_type", f"--gpu-type has no effect: {profile.name} describes nodes with one type of GPUs"
    if request.binding == "strict" and not (job.binding or job.at_start):
        why = f"hpclaunch plans no binding for {profile.name}, whose node is not described"
        yield "binding", f"--binding strict has no effect: {why}"


def _reads_python(request: JobRequest, profile: SiteProfile) -> bool:
    used = request.command.bundled or request.check or request.preflight or request.check_imports
    argv = request.command.argv
    used = used or request.zero_stage is not None or request.python == argv[program_at(argv)]
    return used or plugin_is_open(request, profile)


def _times(job: JobLayout, origins: dict[str, str]) -> Iterator[str]:
    """Yield how a walltime is read, and what it means where no scheduler enforces it."""
    request = job.request
    if request.time is not None and re.fullmatch(r"[\d:]+", request.time) and request.time.count(":") < 2:
        read = format_walltime(job.walltime_s)
        yield f"--time {request.time} is {read}: minutes, or minutes and seconds, as sbatch reads it"
    if request.time is None or request.max_restarts or origins.get("time", "").startswith(_DEFAULTS):
        return
    if allocation := job.place.allocation:
        yield f"--time {request.time}: the limit of the allocation {allocation.job_id} holds instead"
    elif job.scheduler.starts_at_once:
        yield (
            f"--time {request.time}: nothing on this machine ends a job after that time; with --max-restarts"
            " it sets when the ranks are signalled to write a checkpoint"
        )


def _undocumented_plugin(request: JobRequest, profile: SiteProfile) -> Iterator[str]:
    documented = [name for name in (profile.mpi.plugin, *profile.mpi.alternatives) if name]
    if request.mpi and request.mpi != "none" and documented and request.mpi not in documented:
        names = " and ".join(documented)
        yield f"--mpi {request.mpi}: {profile.name} documents {names}; a submission asks srun what it offers"
