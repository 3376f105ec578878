"""What was gathered: what each process printed and how it ended. The judges see nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from hpclaunch.remote.probe import MARK

_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 4: "SIGILL", 15: "SIGTERM"}
NOT_FOUND = 127
SETUP_MARK = "HPCLAUNCH-SETUP "


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one process ended and what it printed."""

    exit_code: int
    """128+N where signal N ended it; 127 where there is no such program."""
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    limit_s: float = 0.0
    """The time limit it ran under, seconds."""

    def answers(self) -> dict[str, Any]:
        """Return what the probe in it said, its lines merged; empty where it said nothing."""
        merged: dict[str, Any] = {}
        for each in self.all_answers():
            merged.update(each)
        return merged

    def all_answers(self) -> list[dict[str, Any]]:
        """Return each line of the probes in it: several ranks print into one output."""
        found = []
        for line in self.stdout.splitlines():
            _, mark, text = line.partition(MARK)
            if mark:
                try:
                    found.append(json.loads(text))
                except ValueError:
                    continue
        return [each for each in found if isinstance(each, dict)]

    def ending(self) -> str:
        """Say in a few words how it ended."""
        if self.timed_out:
            return f"gave no answer within {self.limit_s:g} s"
        if self.exit_code == NOT_FOUND:
            return "there is no such program"
        if self.exit_code > 128:
            number = self.exit_code - 128
            return f"was ended by signal {number} ({_SIGNALS.get(number, 'a signal')})"
        return f"ended with exit status {self.exit_code}"

    def last_error_line(self) -> str:
        """Return the last line on stderr that says something, cut to 300 characters."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip().strip("-=*")]
        return lines[-1][:300] if lines else ""

    def failed_setup(self) -> str | None:
        """Return the line of the job's environment that failed before the process could start."""
        for line in self.stderr.splitlines():
            if line.startswith(SETUP_MARK):
                return line.removeprefix(SETUP_MARK)
        return None


class BuildFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a Horovod build; None: not asked."""

    check_build: Outcome | None = None
    """``horovodrun --check-build``."""
    installed: Outcome | None = None
    """The probe ``installed``; None: only text is judged."""
    frameworks: dict[str, Outcome] = {}
    """The probe ``framework`` by name."""
    linked: dict[str, Outcome] = {}
    """``ldd`` of the library file, by framework."""


class LaunchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the way ranks are started; None: not asked."""

    setup: Outcome | None = None
    """The environment's lines, run by themselves."""
    mpi_list: Outcome | None = None
    """``srun --mpi=list``."""
    pmix: Outcome | None = None
    """``pmix_info``."""
    ranks: dict[str, Outcome] = {}
    """The probe ``ranks`` under the launcher, by what it asked: mpi4py, or a framework."""
    ranks_started: int = 0
    not_started: str | None = None
    """Why no ranks were started."""
    allreduce: Outcome | None = None


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the node itself; None: not asked."""

    node: Outcome | None = None
    """The probe ``node``."""
    gpu_tool: Outcome | None = None
    """``nvidia-smi -L``, ``rocm-smi --showid`` or ``xpu-smi discovery``."""
    gpu_tool_name: str = ""
    plugin: Outcome | None = None
    """The probe ``plugin``."""
    stripes: Outcome | None = None
    """``lfs getstripe -d`` of the working folder."""
    quotas: dict[str, Outcome] = {}
    """``lfs quota`` by folder."""
