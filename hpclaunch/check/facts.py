"""Collected facts: what each process printed and how it ended. The verdicts come from these only."""

import json
from typing import Any

import msgspec

from hpclaunch.remote.probe import MARK

_SIGNALS = {6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 4: "SIGILL", 15: "SIGTERM"}
NOT_FOUND = 127
SETUP_MARK = "HPCLAUNCH-SETUP "
MODULES = {"tensorflow": "tensorflow", "keras": "tensorflow", "pytorch": "torch", "mxnet": "mxnet"}
"""Framework -> the module that Horovod for it imports."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one process ended and what it printed."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    limit_s: float = 0.0

    def answers(self) -> dict[str, Any]:
        """Return the answers of the probe, its lines merged; empty: it gave none."""
        merged: dict[str, Any] = {}
        for each in self.all_answers():
            merged.update(each)
        return merged

    def all_answers(self, mark: str = MARK) -> list[dict[str, Any]]:
        """Return the answers of each probe, on lines with this mark: several ranks print into one output."""
        found = []
        for line in self.stdout.splitlines():
            _, marked, text = line.partition(mark)
            if marked:
                try:
                    found.append(json.loads(text))
                except ValueError:
                    continue
        return [each for each in found if isinstance(each, dict)]

    def ending(self) -> str:
        """Return how it ended, as the end of a sentence."""
        if self.timed_out:
            return f"gave no answer within {self.limit_s:g} s"
        if self.exit_code == NOT_FOUND:
            return "there is no such program"
        if self.exit_code > 128:
            number = self.exit_code - 128
            return f"was ended by signal {number} ({_SIGNALS.get(number, 'a signal')})"
        return f"ended with exit status {self.exit_code}"

    def last_error_line(self) -> str:
        """Return the last line on stderr with text in it, up to 300 characters."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip().strip("-=*")]
        return lines[-1][:300] if lines else ""


class BuildFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a Horovod build; None: not collected."""

    check_build: Outcome | None = None
    installed: Outcome | None = None
    frameworks: dict[str, Outcome] = {}
    linked: dict[str, Outcome] = {}


class LaunchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the start of ranks; None: not collected."""

    setup: Outcome | None = None
    mpi_list: Outcome | None = None
    pmix: Outcome | None = None
    ranks: dict[str, Outcome] = {}
    ranks_started: int = 0
    not_started: str | None = None
    allreduce: Outcome | None = None


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the node itself; None: not collected."""

    node: Outcome | None = None
    gpu_tool: Outcome | None = None
    gpu_tool_name: str = ""
    plugin: Outcome | None = None
    stripes: Outcome | None = None
    quotas: dict[str, Outcome] = {}
