"""Submitting exactly once, also where the answer is lost: the network breaks, a login node goes down.

The submission command runs there inside a few lines of shell that first make the folder ``submission`` in the
job's folder. Making a folder either succeeds or fails, for one caller only, also on the file systems of
clusters: so it is the token of the submission. The caller that makes it submits and leaves the answer in it;
a caller that finds it waits for that answer. So the same command may be repeated after any break.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.scheduler_interface import Scheduler

SCRIPT = "job.sh"
"""The script that is submitted, in the job's folder."""
TOKEN = "submission"  # noqa: S105  # a folder's name

# sbatch and qsub retry for a while when their server is slow; after this the outcome is unknown.
TIMEOUT_S = 300.0
# How long to wait for the answer that another call, cut off from us, is about to get.
WAIT_S = 60

_NO_ANSWER = CommandResult(exit_code=75, stdout="hpclaunch: begun, no answer\n", stderr="")
_NO_ROOM = CommandResult(exit_code=74, stdout="hpclaunch: no room\n", stderr="")
_NO_PROGRAM = CommandResult(exit_code=127, stdout="hpclaunch: no program\n", stderr="")


@contextmanager
def handling(number: int, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle a signal in this block, where it is the main thread's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off to the end of the block: half a submission or half a cancel is worse than waiting."""
    caught: list[int] = []
    with handling(signal.SIGINT, lambda number, _: caught.append(number)):
        yield
    if caught:
        raise KeyboardInterrupt


def submit_once(
    host: Host,
    scheduler: Scheduler,
    script: str,
    folder: str,
    workdir: str,
    env: Mapping[str, str | None] | None = None,
) -> str:
    """Submit the script unless that was done before; return the scheduler's id of the job.

    ``env``: changes to the environment of the submission, as ``Host.run`` takes them.
    Raises RefusedError with the scheduler's own words, and NoAnswerError where it is not known whether the
    job was submitted: ``recover`` may tell later.
    """
    program = scheduler.submit_program
    settings = (f"{folder}/{TOKEN}", str(WAIT_S), program)
    text = text_beside(__file__, "submit_once.sh")
    begin = ("/bin/bash", "-c", text, "hpclaunch-submit", "submit_once")
    command = (*begin, *settings, *scheduler.submit_command(script))
    submit = partial(host.run, command, timeout_s=TIMEOUT_S, env=env, cwd=workdir)
    try:
        answer = submit()
    except NoAnswerError as lost:
        answer = _again(submit, lost)
    if answer == _NO_ANSWER:
        return _found(host, scheduler, script)
    if (answer.exit_code, answer.stdout) == (_NO_ROOM.exit_code, _NO_ROOM.stdout):
        said = f": {answer.stderr.strip()}" if answer.stderr.strip() else ""
        raise RefusedError.case("submit: no room", folder=folder, host=host, said=said)
    if answer == _NO_PROGRAM:
        raise RefusedError.case("submit: no program", program=program, host=host)
    return scheduler.parse_submit(answer)


def _again(submit: Callable[[], CommandResult], lost: NoAnswerError) -> CommandResult:
    """Ask a second time. From here on a host that cannot be reached leaves the outcome open."""
    try:
        return submit()
    except RefusedError as error:
        words = lost.message if error.message == lost.message else f"{lost.message}; then: {error.message}"
        raise NoAnswerError(words, error.hint) from None


def prevent_submission(host: Host, folder: str) -> bool:
    """Make sure that a job is never submitted; False: that has begun. Raises RefusedError."""
    words = ("/bin/bash", "-c", text_beside(__file__, "submit_once.sh"), "hpclaunch-prevent", "prevent")
    answer = host.run((*words, f"{folder}/{TOKEN}"), timeout_s=TIMEOUT_S)
    if answer.exit_code not in (0, 3):
        raise RefusedError(f"{folder}: cannot be written on {host.name}: {answer.stderr.strip()}")
    return answer.exit_code == 0


def recover(host: Host, scheduler: Scheduler, script: str, folder: str) -> str | None:
    """Return the id of a job whose submission was cut off; None: it was never begun.

    Raises RefusedError with the scheduler's words where it refused the job, and NoAnswerError where the
    outcome is unknown.
    """
    token = f"{folder}/{TOKEN}"
    paths = [f"{token}/{name}" for name in ("exit_code", "stdout", "stderr")]
    try:
        begun, files = host.exists(token), host.read_files(paths)
    except RefusedError as error:
        raise NoAnswerError(error.message, error.hint) from None
    if not begun:
        return None
    code, stdout, stderr = (files.get(path, b"").decode(errors="replace") for path in paths)
    if code.strip().isdigit():
        return scheduler.parse_submit(CommandResult(exit_code=int(code), stdout=stdout, stderr=stderr))
    return _found(host, scheduler, script)


def _found(host: Host, scheduler: Scheduler, script: str) -> str:
    """Ask the scheduler for the job of that script, whose path no other job has.

    Raises NoAnswerError where it knows none, which it may still take, or cannot be asked.
    """
    words, found = f"{scheduler.submit_program} was cut off on {host.name} before it had answered", None
    if command := scheduler.finish_command(script):
        answer = host.run(command, timeout_s=TIMEOUT_S)
        if answer.exit_code != _NO_ANSWER.exit_code:
            return scheduler.parse_submit(answer)
        words = f"{words}; then: {answer.stderr.strip()}"
    if command := scheduler.find:
        try:
            found = scheduler.parse_found(script, host.run(command, timeout_s=TIMEOUT_S))
        except RefusedError as error:
            words = f"{words}; then: {error.message}"
    if found is None:
        raise NoAnswerError(words)
    return found
