"""A Slurm that is played: its programs answer from a table of jobs, and no process is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.record import JobRecord

WIDTHS = (60, 24, 16, 24, 24, 24, 12, 64, 240)
"""Columns of squeue, as ``slurm_status.py`` asks for them; the script is the last one."""


@dataclass
class PlayedJob:
    """What Slurm has of a number: its states, one per question, of which the last one stays."""

    script: str
    states: list[str]
    code: str = "0:0"
    reason: str = "None"
    restarts: int = 0


class PlayedHost(LocalHost):
    """A host whose files are real, and of whose programs some are played."""

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Answer as `answer` does; a program that it does not know is run."""
        played = self.answer(argv)
        return super().run(argv, stdin, timeout_s, env, cwd) if played is None else played

    def answer(self, argv: Sequence[str]) -> CommandResult | None:
        """Return what a program says; None: it is run."""
        raise NotImplementedError


class PlayedSlurm(PlayedHost):
    """A host whose Slurm is this table."""

    def __init__(self, cluster: str = "east") -> None:
        super().__init__()
        self.cluster = cluster
        self.jobs: dict[str, PlayedJob] = {}
        self.asked: list[str] = []
        """The programs that were run."""
        self.refuses: dict[str, str] = {}
        """Program -> its words where it does not work."""

    def answer(self, argv: Sequence[str]) -> CommandResult | None:
        """Answer as the program does; programs that are not Slurm's are run."""
        program = argv[0]
        played = {"squeue": self._squeue, "sacct": self._sacct, "scontrol": self._scontrol}
        if program not in {*played, "scancel"}:
            return None
        self.asked.append(program)
        if program in self.refuses:
            return CommandResult(exit_code=1, stdout="", stderr=self.refuses[program])
        if program == "scancel":
            self.jobs[argv[-1]].states = ["CANCELLED"]
            return CommandResult(exit_code=0, stdout="", stderr="")
        return CommandResult(exit_code=0, stdout=played[program](argv), stderr="")

    def _squeue(self, argv: Sequence[str]) -> str:
        lines = []
        for number in argv[-1].split(","):
            if job := self.jobs.get(number):
                state = job.states.pop(0) if len(job.states) > 1 else job.states[0]
                row = (number, state, job.code, *("N/A",) * 3, str(job.restarts), self.cluster, job.reason)
                lines.append(
                    "".join(text.ljust(size) for text, size in zip(row, WIDTHS, strict=True)) + job.script
                )
        return "\n".join(lines)

    def _sacct(self, argv: Sequence[str]) -> str:
        return ""

    def _scontrol(self, argv: Sequence[str]) -> str:
        return f"ClusterName             = {self.cluster}\n" if "config" in argv else ""


@dataclass
class Notes:
    """What the user was told."""

    texts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> None:
        self.texts.append(text)


def script_of(record: JobRecord) -> str:
    """The script of a job, by which Slurm's answer is known to be about it."""
    return f"{record.folder}/job.sh"


class Away(PlayedSlurm):
    """A host that cannot be reached at some looks."""

    def __init__(self, looks: Sequence[bool]) -> None:
        super().__init__()
        self.looks = list(looks)

    def answer(self, argv: Sequence[str]) -> CommandResult | None:
        """Answer as Slurm, or not at all."""
        if argv[0] == "squeue" and self.looks and not self.looks.pop(0):
            raise RefusedError("no route to the login node")
        return super().answer(argv)
