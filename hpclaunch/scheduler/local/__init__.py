"""No scheduler: the script runs on the machine itself, detached; its state is read from /proc.

A job is ``PID:STARTTIME`` of its script's shell (starttime: field 22 of /proc/PID/stat, man 5 proc), so that
a PID which is used again is not mistaken for it.
"""

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.launcher import LINES, Mpiexec
from hpclaunch.scheduler.scheduler_interface import Scheduler, scheduler_data

CANCEL_GRACE_S = 10


class LocalScheduler(Scheduler, frozen=True, kw_only=True):
    """Jobs of the machine itself."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Start ``bash SCRIPT`` in its own session, so that it outlives the terminal."""
        return ("setsid", "--fork", *_bash("hpclaunch-submit", "submit_job"), script)

    def parse_submit(self, answer: CommandResult) -> str:
        """Return ``PID:STARTTIME`` of the script's shell."""
        pid, colon, start = answer.stdout.strip().partition(":")
        if answer.exit_code == 0 and colon and pid.isdigit() and start.isdigit():
            return f"{pid}:{start}"
        raise RefusedError(f"the job could not be started: {answer.stderr.strip() or 'no reason given'}")

    def cancel_command(self, scheduler_id: str) -> tuple[str, ...]:
        """Return the command that sends SIGTERM to all the job's processes, waits, and kills what is left."""
        return (*_bash("hpclaunch-cancel", "cancel_job"), scheduler_id, str(CANCEL_GRACE_S))

    def parse_cancel(self, answer: CommandResult) -> None:
        """Raise RefusedError where processes are left."""
        if answer.exit_code != 0:
            raise RefusedError(f"the job could not be cancelled: {answer.stderr.strip()}")


def process_file(scheduler_id: str) -> str:
    """Return the file that shows whether a job runs."""
    return f"/proc/{scheduler_id.partition(':')[0]}/stat"


def is_running(scheduler_id: str, stat: bytes) -> bool:
    """Return whether that file is of the job's shell, not of a later process, and the shell has not ended."""
    fields = stat.rpartition(b") ")[2].split()  # the program's name, before them, may hold anything
    start = scheduler_id.partition(":")[2].encode()
    return len(fields) > 19 and fields[19] == start and fields[0] not in (b"Z", b"X", b"x")


def _bash(name: str, function: str) -> tuple[str, ...]:
    """Return the words that start a function of ``jobs.sh``, up to its arguments."""
    return ("bash", "-c", text_beside(__file__, "jobs.sh"), name, function)


_HERE = (*LINES["unbound"], *LINES["this machine"])
SCHEDULER = LocalScheduler(
    **scheduler_data("local", Mpiexec(shell_lines=_HERE, session_file="mpi_session.sh", without_mpi="direct"))
)
