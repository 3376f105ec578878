"""The plan of a job as shell text, ``plan.sh``, which the files of ``hpclaunch/remote`` read. Pure."""

import shlex

from hpclaunch import __version__
from hpclaunch.plan.layout import LaunchPlan
from hpclaunch.plan.program import interpreter_of
from hpclaunch.plan.startup_plan import STACKS_SIGNAL, needs_startup, tells_stands
from hpclaunch.software.software_lines import PRIVATE_FOLDERS, private_folders

FOLDER = "files"
"""Folder in the job's folder that has this file and those that it names."""
JOB_START, PLAN, SAMPLER, LAST_WORDS = "job_start.sh", "plan.sh", "sampler.sh", "last_words.sh"
"""Their names there; but for the plan also in ``hpclaunch/remote``."""
SUPERVISE, STAGING, PREFLIGHT = "supervise.sh", "staging.sh", "preflight.sh"
EESSI_IMAGE, WORKER_END, STARTUP_SHELL = "eessi_image.sh", "worker_end.sh", "startup.sh"
_NONE_KEPT = ("exit_status",)


def job_shell_files(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the files of ``hpclaunch/remote`` that the job's shell reads, in their order."""
    wanted = {
        plan.launcher.session_file: True,
        EESSI_IMAGE: pulls_eessi_image(plan),
        STARTUP_SHELL: needs_startup(plan),
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
    return (*private, *own, LAST_WORDS, *report, "rank.sh")


def plan_text(plan: LaunchPlan) -> str:
    """Return the text of ``plan.sh``."""
    outer = plan.launcher.outer_settings(line.text for line in plan.header)
    lines = [
        f"# The plan of this job, for the files in this folder, which are of hpclaunch {__version__}.",
        f"export HPCLAUNCH_TASKS={plan.tasks}",
        *([f"unset {' '.join(outer)}"] if outer else []),
        *(f"hpclaunch_{name}={_shown(value)}" for name, value in _values(plan).items()),
        *(f"hpclaunch_{name}() {{ {text}; }}" for name, text in _calls(plan).items()),
    ]
    return "\n".join([*lines, ""])


def _private(plan: LaunchPlan) -> tuple[str, ...]:
    request = plan.request
    return private_folders(plan.profile, plan.nodes, request.environment, frozenset(request.env))


def _guard(plan: LaunchPlan) -> str | None:
    """Return the file that ends a job whose ranks would not find each other."""
    alone = plan.tasks == 1 or plan.request.mpi == "none" or plan.started
    return None if alone else plan.launcher.rank_guard


def _rank_over(plan: LaunchPlan) -> str | None:
    return WORKER_END if plan.started else plan.launcher.rank_end


_Value = str | int | None | tuple[str, ...]


def _values(plan: LaunchPlan) -> dict[str, _Value]:
    """Return the variables, without ``hpclaunch_``; a flag is 1 or empty."""
    request, scheduler = plan.request, plan.scheduler
    values: dict[str, _Value] = {
        "job_files": job_shell_files(plan),
        "rank_files": rank_shell_files(plan),
        "private": _private(plan),
        "kept": _kept(plan),
        "own_log": bool(scheduler.log_in_script or request.array),
        "sample_s": 0 if request.no_sample else request.sample,
        "nodes": plan.nodes,
        "tasks": plan.tasks,
        "max_restarts": request.max_restarts,
        "guard": _function(_guard(plan)),
        "rank_over": _function(_rank_over(plan)),
        "supervised": plan.supervision is not None,
        "at_start": plan.at_start is not None,
        **_binding(plan),
    }
    if needs_startup(plan):
        stacks = STACKS_SIGNAL if tells_stands(plan) else None
        values |= {"python": interpreter_of(plan.argv), "stacks": stacks}
    if how := plan.supervision:
        values |= {"exit_code": how.exit_code, "timer_s": how.timer_s or 0, "idle_s": how.idle_s or 0}
        values["comes_back"] = bool(scheduler.requeue)
    if plan.preflight:
        values["leaves_out"] = plan.preflight.again is not None
    if plan.staging:
        values |= {"stage_links": plan.staging.links, "stage_after": plan.staging.afterwards}
    return values


def _binding(plan: LaunchPlan) -> dict[str, _Value]:
    """Return the plan of the binding and its proof; bind_here.sh fills in what is known at the start only."""
    how, ranks = plan.at_start, plan.binding.ranks if plan.binding else ()
    if not (how or ranks):
        return {"binding": None}
    has_gpus = bool(how.gpus) if how else any(rank.gpus for rank in ranks)
    variable = plan.profile.binding.gpu_visible_var if has_gpus else None
    found: dict[str, _Value] = {"binding": plan.request.binding, "gpu_variable": variable}
    if how:
        found |= {"cpu_bind": "none", "ranks": how.ranks, "cores": how.cores, "threads": how.threads}
        found |= {"some_gpus": how.some_gpus, "cpus": (), "numa": (), "bus": (), "own": ()}
    return {**found, **plan.proof}


def _calls(plan: LaunchPlan) -> dict[str, str]:
    """Return the functions: name -> shell text."""
    scheduler, how = plan.scheduler, plan.supervision
    calls = {"node_names": scheduler.node_names} if how or plan.preflight or plan.staging else {}
    if how and scheduler.requeue:
        calls["requeue"] = scheduler.find_commands + scheduler.requeue
    if _has_chain(plan):
        again = scheduler.next_command('"${HPCLAUNCH_FILES%/*}/job.sh"')
        calls["submit_again"] = scheduler.find_commands + " ".join(again)
        calls["cancel"] = scheduler.find_commands + " ".join(scheduler.cancel_command('"$1"'))
    if how and how.look:
        calls["look"] = f"timeout -k 5 {how.look_s} {' '.join(how.look)}"
    if preflight := plan.preflight:
        calls["probe"] = f"timeout {preflight.limit_s} {' '.join(preflight.probe)}"
        calls["verdict"] = f'{" ".join(preflight.judge)} "$@"'
        calls |= {"submit_without": preflight.again} if preflight.again else {}
    if plan.staging:
        calls["per_node"] = f'$hpclaunch_timeout {" ".join(plan.staging.launch)} "$@"'
    return calls


def _has_chain(plan: LaunchPlan) -> bool:
    return bool(plan.supervision and plan.scheduler.requeue) and not plan.request.array


def _kept(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the files for which room is reserved: what tells how the job ended, and how it goes on."""
    if plan.supervision is None:
        return _NONE_KEPT
    return (*_NONE_KEPT, "reason", "restarts", *(("next_id",) if _has_chain(plan) else ()))


def _function(file: str | None) -> str | None:
    return f"hpclaunch_{file.removesuffix('.sh')}" if file else None


def _shown(value: _Value) -> str:
    if isinstance(value, tuple):
        quoted = (f"'{word}'" if "," in word and "'" not in word else shlex.quote(word) for word in value)
        return f"({' '.join(quoted)})"
    value = int(value) or None if isinstance(value, bool) else value
    return "" if value in (None, "") else shlex.quote(str(value))
