"""Looking into a running PBS job from outside: the nodes of its exec_host, each by ssh."""

import re

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.scheduler.scheduler_interface import Attach, RunningJob


class PbsAttach(Attach, frozen=True, kw_only=True):
    """qstat -f (OpenPBS 23.06; man qstat, man pbs_job_attributes). Only tried on a fake PBS."""

    job_variable: str = "PBS_JOBID"

    def query(self, job: str) -> tuple[str, ...]:
        """Ask for all attributes."""
        return ("qstat", "-f", job)

    def parse(self, job: str, answer: CommandResult) -> RunningJob:
        """Read state and nodes; qstat folds long lines with a tab."""
        if answer.exit_code != 0:
            said = answer.stderr.strip() or f"exit status {answer.exit_code}"
            raise RefusedError(
                f"qstat does not know job {job}: {said}", "it shows jobs until they have ended"
            )
        text = re.sub(r"\n\t", "", answer.stdout)
        state = re.search(r"^\s*job_state = (\w)", text, re.MULTILINE)
        hosts = re.search(r"^\s*exec_host = (\S+)", text, re.MULTILINE)
        if state is None or state[1] != "R" or hosts is None:
            found = f"in state {state[1]}" if state else "without a state"
            raise BadInputError(f"job {job} is {found}, so it has no ranks", "wait until qstat shows it as R")
        number = re.search(r"^Job Id: (\S+)", text, re.MULTILINE)
        names = [part.partition("/")[0] for part in hosts[1].split("+")]
        return RunningJob(id=number[1] if number else job, nodes=tuple(dict.fromkeys(names)))
