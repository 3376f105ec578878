"""Looking into a running Flux job from outside: its shells start one process on each of its nodes."""

import json
import re

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.scheduler.flux_submission import one_of
from hpclaunch.scheduler.scheduler_interface import Attach, RunningJob


class FluxAttach(Attach, frozen=True, kw_only=True):
    """flux jobs and flux exec (their man pages; tried with 0.88.0).

    An instance of many users takes ``flux exec --jobid`` from 0.84 on (its release notes; not tried).
    """

    job_variable: str = "FLUX_ENCLOSING_ID"

    def query(self, job: str) -> tuple[str, ...]:
        """Ask for state and nodes."""
        return ("flux", "jobs", "--json", one_of(job))

    def parse(self, job: str, answer: CommandResult) -> RunningJob:
        """Read the one object."""
        try:
            found = json.loads(answer.stdout) if answer.stdout.strip() else None
            state, count = (found["status"], int(found["nnodes"])) if found else ("", 0)
        except (ValueError, TypeError, KeyError) as error:
            raise RefusedError(f"flux jobs gives an answer that cannot be read: {error!r}") from None
        if found is None:
            said = answer.stderr.strip() or f"exit status {answer.exit_code}"
            raise RefusedError(f"flux jobs does not know job {job}: {said}", "name one that runs: flux jobs")
        if state != "RUN":
            raise BadInputError(f"job {job} is {state}, so it has no ranks", "name one that runs: flux jobs")
        return RunningJob(id=re.sub("^ƒ", "f", one_of(job)), nodes=tuple(f"node {n}" for n in range(count)))

    def words(self, job: RunningJob) -> tuple[str, ...]:
        """Start one process per node under the job's shells, outside of what its ranks have."""
        return ("flux", "exec", "--noinput", f"--jobid={job.id}")
