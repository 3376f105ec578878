"""Looking into a running Slurm job from outside: a step of one process per node that shares its resources."""

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.scheduler.scheduler_interface import Attach, RunningJob


class SlurmAttach(Attach, frozen=True, kw_only=True):
    """squeue and srun (man pages of 22.05 to 24.11; tried with 22.05.8)."""

    job_variable: str = "SLURM_JOB_ID"

    def query(self, job: str) -> tuple[str, ...]:
        """Ask squeue, which prints a job of an array with its own id."""
        return ("squeue", "--noheader", "--jobs", job, "--format=%A|%T|%D|%r")

    def parse(self, job: str, answer: CommandResult) -> RunningJob:
        """Read the one row; of an array each running job is one."""
        if answer.exit_code != 0:
            said = answer.stderr.strip() or f"exit status {answer.exit_code}"
            raise RefusedError(
                f"squeue does not know job {job}: {said}", "it shows jobs until they have ended"
            )
        rows = [line.strip().split("|") for line in answer.stdout.splitlines() if line.count("|") == 3]
        running = [row for row in rows if row[1] in ("RUNNING", "SUSPENDED")]
        if not rows:
            raise BadInputError(
                f"job {job} is not in the queue: it has ended", "name one that runs: squeue --me"
            )
        if not running:
            raise BadInputError(
                f"job {job} is {rows[0][1]} ({rows[0][3]}), so it has no ranks", "wait for it"
            )
        if len(running) > 1:
            raise BadInputError(f"job {job} is an array, of which several run", "name one of them: ID_INDEX")
        number, _, count, _ = running[0]
        return RunningJob(id=number, nodes=tuple(f"node {n}" for n in range(int(count))))

    def words(self, job: RunningJob) -> tuple[str, ...]:
        """Start a step that takes nothing from the job's own steps, is not bound, and not an MPI program."""
        count = len(job.nodes)
        sizes = (f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1")
        sharing = ("--overlap", "--cpu-bind=none", "--mem-bind=none", "--mpi=none", "--kill-on-bad-exit=0")
        return ("srun", f"--jobid={job.id}", *sizes, *sharing, "--input=none", "--quiet")
