"""What the attacks share: a count of trials, hits and failures, real servers, and folders of their own."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.conftest import MPI_VARIABLES
from tests.in_process import hpclaunch_here
from tests.testbed.cluster import Slurm

ON_SLURM = ("--site", "generic-slurm", "--mpi", "none", "--no-test-only", "--time", "5m")
EXIT_CODES = range(5)
# A colour, a carriage return and a tab may reach the terminal.
_HARMLESS = re.compile(r"\x1b\[[0-9;]*m|[\n\r\t]")


class Lab:
    """One attack: its chance, its folders, and the servers that it asks for; ``close`` ends them."""

    def __init__(self, scratch: Path, seed: int) -> None:
        """Start nothing yet."""
        self.scratch, self.chance = scratch, random.Random(seed)
        self.state, self.home = scratch / "state", scratch / "home"
        self.canary = scratch / "canary"
        for folder in (self.state, self.home, scratch / "tmp"):
            folder.mkdir(parents=True)
        self.trials = self.hits = 0
        self.failures: list[str] = []
        self._servers: list[Callable[[], None]] = []

    @cached_property
    def slurm(self) -> Slurm:
        """A cluster of four nodes."""
        cluster = Slurm(MPI="none")
        self._servers.append(cluster.stop)
        return cluster.start()

    def until_closed(self, stop: Callable[[], None]) -> None:
        """Call it when the attack is over."""
        self._servers.insert(0, stop)

    def close(self) -> None:
        """End the servers."""
        for stop in self._servers:
            stop()

    def environment(self) -> dict[str, str]:
        """Of a user of the cluster, who has a home and a state folder for this attack only."""
        own = {"XDG_STATE_HOME": self.state, "HOME": self.home, "TMPDIR": self.scratch / "tmp"}
        programs = f"{self.home}/.local/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        environment = {**self.slurm.environment(), **MPI_VARIABLES, "PATH": programs}
        return {**environment, **{name: str(path) for name, path in own.items()}}

    def trial(self, problems: list[str], *, hit: bool = True) -> None:
        """Count a trial; ``hit``: the attack did happen in it. A problem is printed at once."""
        self.trials += 1
        self.hits += hit
        if self.canary.exists():
            problems = [*problems, "another command ran"]
            self.canary.unlink()
        for problem in problems:
            self.failures.append(problem)
            print(f"  trial {self.trials}: {problem[:2000]}", flush=True)

    def here(self, *words: str | Path, more: Mapping[str, str] | None = None) -> Answer:
        """Run a command in this process."""
        environment = {**self.environment(), **(more or {})}
        try:
            done = hpclaunch_here(*words, folder=self.home, environment=environment)
        except Exception as error:
            return Answer(-1, "", "", f"{words}: {type(error).__name__}: {error}")
        return Answer(done.returncode, done.stdout, done.stderr, "")

    def start(self, *words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a command as a program, which leads a group of processes."""
        return subprocess.Popen(
            [sys.executable, "-m", "hpclaunch", *map(str, words)],
            env=env or self.environment(),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="backslashreplace",
            start_new_session=True,
        )

    def settled(self, *states: Path) -> None:
        """Wait until no process works for these state folders."""
        while any(_state_of(process) in map(str, states) for process in psutil.process_iter()):
            time.sleep(0.05)

    def jobs_of_slurm(self) -> dict[str, list[str]]:
        """Return name -> the cluster's ids of all jobs that it knows."""
        shown = self.slurm.run("squeue", "-h", "-a", "-t", "all", "-o", "%A %j").stdout
        found: dict[str, list[str]] = {}
        for line in shown.splitlines():
            number, _, name = line.partition(" ")
            found.setdefault(name, []).append(number)
        return found

    def twins_and_losses(self, name: str) -> list[str]:
        """Say how the records of a job of that name differ from what the cluster has."""
        listed = self.here("jobs", "--json")
        if listed.code != 0:
            return [f"jobs: {listed.code} {listed.err} {listed.raised}"]
        ids = [row["scheduler_id"] for row in json.loads(listed.out) if row["name"] == name]
        known, there = sorted(filter(None, ids)), self.jobs_of_slurm().get(name, [])
        problems = [f"{name}: submitted twice: {there}"] if len(there) > 1 else []
        return problems + ([f"{name}: records {known}, Slurm {there}"] if known != sorted(there) else [])


class Answer(NamedTuple):
    """Of a command; ``raised``: the error that nobody caught."""

    code: int
    out: str
    err: str
    raised: str

    def problems(self, about: str, codes: range | tuple[int, ...] = EXIT_CODES) -> list[str]:
        """Say what no answer may have: an error that nobody caught, another exit status, a raw escape."""
        text = self.out + self.err
        raw = {char for char in _HARMLESS.sub("", text) if not char.isprintable()}
        return [
            f"{about}: {problem}"
            for problem, there in (
                (self.raised, bool(self.raised)),
                (f"exit {self.code}: {self.err[-500:]}", self.code not in codes and not self.raised),
                ("a traceback", "Traceback (most recent call last)" in text),
                (f"raw {sorted(raw)!r}", bool(raw)),
            )
            if there
        ]


def _state_of(process: psutil.Process) -> str:
    try:
        return "" if process.status() == "zombie" else process.environ().get("XDG_STATE_HOME", "")
    except psutil.Error:
        return ""
