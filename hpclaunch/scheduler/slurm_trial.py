"""``sbatch --test-only`` and what its answers mean: whether a script would be taken, and when it would start.

The forms are those of 22.05.8 and 25.05.9, tried with both; 25.05 may name the cluster behind the time, and
has a stray "a" there (src/api/allocate.c).
"""

import re

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.plural import listed
from hpclaunch.scheduler.scheduler_interface import Trial, own_words

# sbatch prints this also where nodes are only temporarily away; the same job, submitted, waits for them.
_MAY_BE_TEMPORARY = "Requested node configuration is not available"
# States that end sometime, in sinfo's compact form (man sinfo); an asterisk: the node does not respond.
_AWAY = re.compile(r"(drain|drng|down|fail|failg|maint|boot|resv|unk)\W?|\w+\*")
_EXPECTED = re.compile(
    r"to start at (\S+)(?: on cluster \S+)?(?: a)? using \d+ processors on nodes (\S+)"
    r"(?: in partition (\S+))?"
)


class SbatchTrial(Trial, frozen=True, kw_only=True):
    """``sbatch --test-only``."""

    command: tuple[str, ...] = ("sbatch", "--test-only")

    def parse(self, answer: CommandResult) -> str | None:
        """Return when and where Slurm expects to start the job, None where it does not say.

        Raises RefusedError with Slurm's words.
        """
        if answer.exit_code != 0:
            raise RefusedError(f"Slurm would refuse the job: {own_words(answer)}")
        match = _EXPECTED.search(answer.stderr)
        if not match:
            return None
        time, nodes, partition = match.groups()
        if time.isdigit():
            import datetime as dt  # seldom needed

            local = dt.datetime.fromtimestamp(int(time), dt.timezone.utc).astimezone()
            time = local.strftime("%Y-%m-%d %H:%M:%S")
        return f"expected to start at {time} on {nodes}" + (f" (partition {partition})" if partition else "")

    def doubt_command(self, refusal: str, queue: str | None) -> tuple[str, ...]:
        """List the partition's nodes where the refusal may come from drained or down ones."""
        if _MAY_BE_TEMPORARY not in refusal:
            return ()
        return ("sinfo", "-h", "-N", "-o", "%N|%t|%P", *(("-p", queue) if queue else ()))

    def parse_doubt(self, answer: CommandResult, queue: str | None, nodes: int) -> str | None:
        """Return which nodes are away where the partition would have enough with them.

        Without ``queue`` the default partition counts, which sinfo marks with an asterisk.
        """
        rows = [line.split("|") for line in answer.stdout.splitlines() if line.count("|") == 2]
        states = {node: state for node, state, partition in rows if queue or partition.endswith("*")}
        away = sorted(node for node, state in states.items() if _AWAY.fullmatch(state))
        if answer.exit_code != 0 or len(states) < nodes or len(states) - len(away) >= nodes:
            return None
        shown = listed([f"{node} {states[node]}" for node in away])
        return (
            f"of {len(states)} nodes {len(away)} are away ({shown}): the job waits; sinfo -R gives the reason"
        )
