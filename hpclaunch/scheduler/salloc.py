"""Slurm's ``salloc``: the script runs where it was submitted, in its own allocation."""

import re
from collections.abc import Sequence

from hpclaunch.command_result import CommandResult
from hpclaunch.package_data import text_beside
from hpclaunch.scheduler.slurm import SCHEDULER, SlurmScheduler

# What only batch scripts have (man sbatch, man salloc).
_BATCH_ONLY = (
    *("--output", "--error", "--open-mode", "--requeue", "--no-requeue", "--array", "--signal"),
    "--kill-on-invalid-dep",
)


class SallocScheduler(SlurmScheduler, frozen=True, kw_only=True):
    """Slurm with interactive submission; the job is then one of Slurm's as any other."""

    options: tuple[str, ...]
    """The words that a batch script would have as directives, without those that only batch scripts have."""

    def submit_command(self, script: str) -> tuple[str, ...]:
        """Allocate and run the script, detached; its output goes to ``out.log`` in its folder."""
        text = text_beside(__file__, "salloc_submit.sh")
        return ("setsid", "bash", "-c", text, "hpclaunch-salloc", script, *self.options)

    def parse_submit(self, answer: CommandResult) -> str:
        """Return the id of the allocation; raise RefusedError with Slurm's words."""
        if answer.exit_code == 0 and re.fullmatch(r"\d+", answer.stdout.strip()):
            return answer.stdout.strip()
        return SlurmScheduler.parse_submit(self, answer)


def salloc_scheduler(options: Sequence[str]) -> SallocScheduler:
    """Return Slurm by salloc, with the words that a batch script would have as directives."""
    wanted = tuple(word for word in options if word.partition("=")[0] not in _BATCH_ONLY)
    fields = {name: getattr(SCHEDULER, name) for name in SCHEDULER.__struct_fields__}
    return SallocScheduler(**{**fields, "submit_program": "salloc"}, options=wanted)
