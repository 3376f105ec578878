"""The plan of a job as shell text, ``plan.sh``, which the files of ``hpclaunch/remote`` read. Pure."""

import shlex
from collections.abc import Iterable, Iterator

from hpclaunch import __version__
from hpclaunch.plan.launch_plan import AtStart, LaunchPlan, Preflight, Staging, Supervision
from hpclaunch.plan.program import interpreter_of
from hpclaunch.plan.startup_plan import STACKS_SIGNAL, needs_startup, tells_stands
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.software_lines import PRIVATE_FOLDERS, private_folders

FOLDER = "files"
"""Folder in the job's folder that has this file and those that it names."""
JOB_START, PLAN, SAMPLER, RANK_STDERR = "job_start.sh", "plan.sh", "sampler.sh", "rank_stderr.sh"
"""Their names there; but for the plan also in ``hpclaunch/remote``."""
SUPERVISE, STAGING, PREFLIGHT = "supervise.sh", "staging.sh", "preflight.sh"
EESSI_IMAGE, WORKER_END, STARTUP_SHELL = "eessi_image.sh", "worker_end.sh", "startup.sh"
_NONE_KEPT = ("exit_status",)


def job_shell_files(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the files of ``hpclaunch/remote`` that the job's shell reads, in their order."""
    wanted = {
        site_launcher(plan.profile).session_file: True,
        EESSI_IMAGE: pulls_eessi_image(plan),
        STARTUP_SHELL: needs_startup(plan.request, plan.profile),
        STAGING: plan.staging is not None,
        PREFLIGHT: plan.preflight is not None,
        SUPERVISE: plan.supervision is not None,
    }
    return tuple(name for name, needed in wanted.items() if name and needed)


def pulls_eessi_image(plan: LaunchPlan) -> bool:
    """Whether the ranks run in EESSI's container."""
    eessi = plan.request.environment.eessi if plan.request.environment else None
    return eessi is not None and eessi.init == "container"


def rank_shell_files(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the files of ``hpclaunch/remote`` whose text each rank's shell runs, in their order."""
    report = ("binding_watch.sh", "binding_report.sh") if plan.binding or plan.at_start else ()
    report = (*report, "bind_here.sh") if plan.at_start else report
    private = (PRIVATE_FOLDERS,) if _private(plan) else ()
    own = filter(None, (_guard(plan), _rank_over(plan)))
    return (*private, *own, RANK_STDERR, *report, "rank.sh")


def plan_text(plan: LaunchPlan) -> str:
    """Return the text of ``plan.sh``."""
    first = f"# The plan of this job, for the files in this folder, which are of hpclaunch {__version__}."
    return "\n".join([first, *_lines(plan), ""])


def _private(plan: LaunchPlan) -> tuple[str, ...]:
    request = plan.request
    return private_folders(plan.profile, plan.nodes, request.environment, frozenset(request.env))


def _guard(plan: LaunchPlan) -> str | None:
    """Return the file that ends a job whose ranks would not find each other."""
    alone = plan.tasks == 1 or plan.request.mpi == "none" or plan.started
    return None if alone else site_launcher(plan.profile).rank_guard


def _rank_over(plan: LaunchPlan) -> str | None:
    return WORKER_END if plan.started else site_launcher(plan.profile).rank_end


def _lines(plan: LaunchPlan) -> Iterator[str]:
    scheduler, launcher = site_scheduler(plan.profile), site_launcher(plan.profile)
    yield f"export HPCLAUNCH_TASKS={plan.tasks}"
    if outer := launcher.outer_settings(line.text for line in plan.header):
        yield f"unset {' '.join(outer)}"
    yield _array("job_files", job_shell_files(plan))
    yield _array("rank_files", rank_shell_files(plan))
    yield _array("private", _private(plan))
    yield _array("kept", _kept(plan, scheduler))
    values: dict[str, str | int] = {
        "own_log": _flag(scheduler.log_in_script or plan.request.array),
        "sample_s": 0 if plan.request.no_sample else plan.request.sample,
        "nodes": plan.nodes,
        "max_restarts": plan.request.max_restarts,
        "guard": _function(_guard(plan)),
        "rank_over": _function(_rank_over(plan)),
        "supervised": _flag(plan.supervision),
    }
    yield from (_value(name, value) for name, value in values.items())
    yield from _binding(plan)
    if needs_startup(plan.request, plan.profile):
        yield _value("python", interpreter_of(plan.argv))
        yield _value("stacks", STACKS_SIGNAL if tells_stands(plan.request, plan.profile) else "")
    if plan.supervision or plan.preflight or plan.staging:
        yield _call("node_names", scheduler.node_names)
    if plan.supervision is not None:
        yield from _supervision(plan, plan.supervision, scheduler)
    if plan.preflight is not None:
        yield from _preflight(plan.preflight)
    if plan.staging is not None:
        yield from _staging(plan.staging)


def _binding(plan: LaunchPlan) -> Iterator[str]:
    yield _value("at_start", _flag(plan.at_start))
    if plan.at_start:
        yield from _at_start(plan, plan.at_start)
        return
    ranks = plan.binding.ranks if plan.binding else ()
    yield _value("binding", plan.request.binding if ranks else "")
    if ranks:
        variable = plan.profile.binding.gpu_visible_var if any(rank.gpus for rank in ranks) else None
        yield _value("gpu_variable", variable or "")
        yield from (_array(name, words) for name, words in plan.proof.items())


def _at_start(plan: LaunchPlan, how: AtStart) -> Iterator[str]:
    """Yield what bind_here.sh needs, and the proof, which it fills in."""
    variable = plan.profile.binding.gpu_visible_var if how.gpus else None
    values = {"binding": plan.request.binding, "gpu_variable": variable or "", "cpu_bind": "none"}
    numbers = {"ranks": how.ranks, "cores": how.cores, "threads": how.threads}
    yield from (_value(name, value) for name, value in (values | numbers).items())
    yield _value("some_gpus", _flag(how.some_gpus))
    yield from (_array(name, ()) for name in ("cpus", "numa", "bus", "own"))
    yield from (_array(name, words) for name, words in plan.proof.items())


def _supervision(plan: LaunchPlan, supervision: Supervision, scheduler: Scheduler) -> Iterator[str]:
    yield _value("exit_code", supervision.exit_code)
    yield _value("timer_s", supervision.timer_s or 0)
    yield _value("idle_s", supervision.idle_s or 0)
    yield _value("comes_back", _flag(scheduler.requeue))
    if scheduler.requeue:
        yield _call("requeue", scheduler.find_commands + scheduler.requeue)
    if _has_chain(plan, scheduler):
        again = scheduler.next_command('"${HPCLAUNCH_FILES%/*}/job.sh"')
        yield _call("submit_again", scheduler.find_commands + " ".join(again))
        yield _call("cancel", scheduler.find_commands + " ".join(scheduler.cancel_command('"$1"')))
    if supervision.look:
        yield _call("look", f"timeout -k 5 {supervision.look_s} {' '.join(supervision.look)}")


def _has_chain(plan: LaunchPlan, scheduler: Scheduler) -> bool:
    return bool(plan.supervision and scheduler.requeue) and not plan.request.array


def _kept(plan: LaunchPlan, scheduler: Scheduler) -> tuple[str, ...]:
    """Return the files for which room is reserved: what tells how the job ended, and how it goes on."""
    if plan.supervision is None:
        return _NONE_KEPT
    return (*_NONE_KEPT, "reason", "restarts", *(("next_id",) if _has_chain(plan, scheduler) else ()))


def _preflight(preflight: Preflight) -> Iterator[str]:
    yield _call("probe", f"timeout {preflight.limit_s} {' '.join(preflight.probe)}")
    yield _call("verdict", f'{" ".join(preflight.judge)} "$@"')
    yield _value("leaves_out", _flag(preflight.again))
    if preflight.again:
        yield _call("submit_without", preflight.again)


def _staging(staging: Staging) -> Iterator[str]:
    yield _value("stage_links", staging.links)
    yield _value("stage_after", staging.afterwards)
    yield _call("per_node", f'$hpclaunch_timeout {" ".join(staging.launch)} "$@"')


def _function(file: str | None) -> str:
    return f"hpclaunch_{file.removesuffix('.sh')}" if file else ""


def _flag(value: object) -> str:
    return "1" if value else ""


def _value(name: str, value: str | int) -> str:
    return f"hpclaunch_{name}={shlex.quote(str(value)) if value != '' else ''}"


def _array(name: str, words: Iterable[str]) -> str:
    quoted = (f"'{word}'" if "," in word and "'" not in word else shlex.quote(word) for word in words)
    return f"hpclaunch_{name}=({' '.join(quoted)})"


def _call(name: str, text: str) -> str:
    return f"hpclaunch_{name}() {{ {text}; }}"
