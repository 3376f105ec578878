"""Looking into a running Slurm job from outside: a step of one process per node that shares its resources."""

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.scheduler_interface import Attach, RunningJob, unknown_job


class SlurmAttach(Attach, frozen=True, kw_only=True):
    """squeue and srun (man pages of 22.05 to 24.11; tried with 22.05.8)."""

    job_variable: str = "SLURM_JOB_ID"
    id_pattern: str = r"\d+(_\d+)?(\+\d+)?(\.\d+)?"

    def step_of(self, job: str) -> tuple[str, str | None]:
        """Split JOB.STEP; of a component (JOB+1) the whole job is meant, whose ranks count through."""
        named, _, step = job.partition(".")
        return named.partition("+")[0], step or None

    def names_query(self, job: RunningJob) -> tuple[str, ...]:
        """Let Slurm expand its abbreviation."""
        return ("scontrol", "show", "hostnames", job.node_list)

    def query(self, job: str) -> tuple[str, ...]:
        """Ask squeue, which prints a job of an array with its own id."""
        return ("squeue", "--noheader", "--jobs", job, "--format=%A|%T|%D|%r|%i|%N")

    def parse(self, job: str, answer: CommandResult) -> RunningJob:
        """Read the one row; of an array each running job is one."""
        if answer.exit_code != 0:
            raise unknown_job("squeue", job, answer, "it shows jobs until they have ended")
        rows = [line.strip().split("|") for line in answer.stdout.splitlines() if line.count("|") == 5]
        running = [row for row in rows if row[1] in ("RUNNING", "SUSPENDED")]
        if not rows:
            raise BadInputError(
                f"job {job} is not in the queue: it has ended", "name one that runs: squeue --me"
            )
        if not running:
            raise BadInputError(
                f"job {job} is {rows[0][1]} ({rows[0][3]}), so it has no ranks", "wait for it"
            )
        components = [row for row in rows if "+" in row[4]]
        if len(running) > 1 and not components:
            raise BadInputError(f"job {job} is an array, of which several run", "name one of them: ID_INDEX")
        if components and len({row[4].partition("+")[0] for row in components} | {job}) > 1:
            raise BadInputError(
                f"job {job} is a component of a heterogeneous job", f"name that one: {components[0][4]}"
            )
        counts = tuple(int(row[2]) for row in running)
        return RunningJob(
            id=running[0][0],
            nodes=tuple(f"node {n}" for n in range(sum(counts))),
            parts=counts if components else (),
            node_list=",".join(row[5] for row in running),
        )

    def words(self, job: RunningJob) -> tuple[str, ...]:
        """Start a step that takes nothing from the job's own steps, is not bound, and not an MPI program."""
        return self._step(job, (), len(job.nodes))

    def commands(self, job: RunningJob) -> tuple[tuple[str, ...], ...]:
        """Start a step in each component of a heterogeneous job: srun refuses a component's id (22.05.8)."""
        groups = [self._step(job, (f"--het-group={n}",), count) for n, count in enumerate(job.parts)]
        return tuple(groups) or (self.words(job),)

    def _step(self, job: RunningJob, group: tuple[str, ...], count: int) -> tuple[str, ...]:
        sizes = (f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1")
        sharing = ("--overlap", "--cpu-bind=none", "--mem-bind=none", "--mpi=none", "--kill-on-bad-exit=0")
        return ("srun", f"--jobid={job.id}", *group, *sizes, *sharing, "--input=none", "--quiet")
