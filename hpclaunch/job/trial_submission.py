"""Asking the scheduler whether it would take a job, before anything is written or submitted."""

from collections.abc import Callable

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError
from hpclaunch.plan.launch_plan import LaunchPlan
from hpclaunch.scheduler.scheduler_interface import Scheduler, Trial

_TIMEOUT_S = 120.0


def try_submission(
    host: Host, scheduler: Scheduler, plan: LaunchPlan, script: str, note: Callable[[str], None]
) -> None:
    """Note the scheduler's estimate of the start; a refusal that is temporary is noted as a warning.

    Raises RefusedError with the scheduler's words where the job would be refused for good.
    """
    trial = scheduler.trial
    if trial is None:
        return
    try:
        env = {**scheduler.query_env, **dict.fromkeys(scheduler.overriding(script))}
        answer = host.run(trial.command, stdin=script.encode(), timeout_s=_TIMEOUT_S, env=env)
    except NoAnswerError as error:
        raise RefusedError(
            error.message, "nothing was submitted; --no-test-only goes without asking"
        ) from None
    try:
        if estimate := trial.parse(answer):
            note(estimate)
    except RefusedError as error:
        if excuse := _excuse(host, trial, plan, error.message):
            note(f"{error.message}, but only for now: {excuse}")
            return
        raise RefusedError(
            error.message, "nothing was submitted; --no-test-only submits without asking"
        ) from None


def _excuse(host: Host, trial: Trial, plan: LaunchPlan, refusal: str) -> str | None:
    partitions = (line.text.partition("=")[2] for line in plan.header if line.text.startswith("--partition="))
    queue = next(partitions, None)
    if command := trial.doubt_command(refusal, queue):
        answer = host.run(command, timeout_s=_TIMEOUT_S)
        return trial.parse_doubt(answer, queue, plan.nodes)
    return None
