"""Trainings with a fault put in, as jobs on two nodes of a Slurm, and what ``hpclaunch timeline`` must say.

The programs know nothing of their recording: ``submit --profile`` does it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.horovod.builds import job_file

RANKS = Path(__file__).parent / "ranks"
BEFORE = 4
"""Steps before the first that is recorded."""
LATE_S = "0.15"


class Fault(NamedTuple):
    """A training with a fault, or without one."""

    program: str
    """runner, ddp or horovod."""
    what: str
    words: tuple[str, ...]
    """For the program."""
    kind: str | None = None
    """Of the first verdict; None: no rank may be named."""
    rank: int | None = None
    """The rank that the verdict names."""
    cause: str = ""
    """Words of the evidence."""
    steps: int = 25
    """That are recorded."""
    submit: tuple[str, ...] = ()
    """More words of ``submit``."""

    @property
    def name(self) -> str:
        return f"{self.program}: {self.what}"


_NO_CACHE = ("--env", "HOROVOD_CACHE_CAPACITY=0")
_CACHE = ("--env", "HOROVOD_CACHE_CAPACITY=1024")
"""Horovod's own default, which --profile changes."""
_UNFUSED = (*_NO_CACHE, "--env", "HOROVOD_FUSION_THRESHOLD=0")
"""Each tensor is a message: communication, which the verdict wants to be a fifth of a step, is over 0.6 of it
even if eight processes want two cores. Fused it was 0.25 with six, and too little at a load of 10."""
_NORMAL, _SMALL = ("4", "128"), ("1000", "8")
"""Layers of Horovod's program, and their width."""
COMPUTING, INPUT = "it computing", "it waiting for its input"
FAULTS = (
    Fault("runner", "balanced", ("computing", "none"), steps=50),
    Fault("runner", "rank 2 sleeps", ("computing", "2"), "straggler", 2, COMPUTING),
    Fault("runner", "slow input on rank 1", ("input", "1"), "straggler", 1, INPUT),
    Fault("runner", "slow input on all", ("input", "all"), "input"),
    Fault("ddp", "balanced", ("computing", "none"), steps=50),
    Fault("ddp", "rank 1 sleeps", ("computing", "1"), "straggler", 1, COMPUTING),
    Fault("ddp", "slow input on rank 0", ("input", "0"), "straggler", 0, INPUT),
    Fault("ddp", "slow input on all", ("input", "all"), "input"),
    Fault("horovod", "balanced", (*_NORMAL, "none"), steps=50, submit=_NO_CACHE),
    Fault("horovod", "rank 1 sleeps", (*_NORMAL, "1"), "straggler", 1, submit=_NO_CACHE),
    Fault("horovod", "2000 small tensors", (*_SMALL, "none"), "small-tensors", steps=8, submit=_UNFUSED),
    Fault("horovod", "rank 1 sleeps, as --profile records it", (*_NORMAL, "1"), "straggler", 1),
    Fault("horovod", "balanced, response cache", (*_NORMAL, "none"), steps=50, submit=_CACHE),
    Fault("horovod", "rank 1 sleeps, response cache", (*_NORMAL, "1"), "straggler", submit=_CACHE),
)


def hpclaunch(command: str, *words: str, cwd: Path, environment: Mapping[str, str]) -> Any:
    """Run a command and return its document."""
    line = [sys.executable, "-m", "hpclaunch", command, "--json", *words]
    done = subprocess.run(line, cwd=cwd, env=dict(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def submit_words(fault: Fault, folder: Path) -> list[str]:
    """Return what follows ``submit``."""
    words = ["--site", "generic-slurm", "--nodes", "2", "--time", "10m", "--wait", *fault.submit]
    words += ["--profile", str(fault.steps), "--profile-after", str(BEFORE)]
    if fault.program == "runner":
        python = folder / "python"
        late = f"{RANKS / 'late.py'} {' '.join(fault.words)} {LATE_S}"
        python.write_text(_SLOW_RUNNER.format(python=shlex.quote(sys.executable), late=late))
        python.chmod(0o755)
        epochs = -(-(fault.steps + BEFORE) // 30)  # of 30 steps with this batch size on four ranks
        training = ("mnist", "--", "--dataset", "synthetic", "--epochs", str(epochs), "--batch-size", "100")
        return [*words, "--tasks-per-node", "2", "--python", str(python), *training]
    venv = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
    words += ["--tasks-per-node", "1", "--file", str(job_file(folder, venv))]
    words += (
        ["--framework", "torch", "--mpi", "none"] if fault.program == "ddp" else ["--framework", "horovod"]
    )
    program = (str(RANKS / f"{fault.program}_fault.py"), *fault.words, LATE_S)
    return [*words, "--", "python", *program, str(fault.steps + BEFORE + 2)]


# The interpreter of the bundled training: it runs the module with the fault put in.
_SLOW_RUNNER = """#!/bin/bash
[[ "$1 $2" == '-m hpclaunch.train' ]] || exec {python} "$@"
exec {python} {late} "${{@:3}}"
"""


def diagnosis(fault: Fault, folder: Path, environment: Mapping[str, str]) -> Any:
    """Run the job to its end, and return what ``hpclaunch timeline`` says of it."""
    job = hpclaunch("submit", *submit_words(fault, folder), cwd=folder, environment=environment)["id"]
    return hpclaunch("timeline", job, cwd=folder, environment=environment)


def mistake(fault: Fault, found: Any) -> str:
    """Return what is wrong with the answer; nothing if it is right."""
    first = found["verdicts"][0]
    if fault.kind is None:
        named = [verdict for verdict in found["verdicts"] if verdict["kind"] == "straggler"]
        return f"named: {named[0]['evidence']}" if named else ""
    said = f"{first['kind']}, rank {first['rank']} on {first['node']}: {first['evidence']}"
    if (first["kind"], first["rank"]) != (fault.kind, fault.rank) or fault.cause not in first["evidence"]:
        return said
    node = None if fault.rank is None else f"n{fault.rank // (found['ranks'] // 2) + 1}"
    return "" if first["node"] == node else said
