"""Real builds of Horovod: the PATH on which one is active, and trainings with it as a user starts them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

OWN_BIN = str(Path(sys.executable).parent)
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class Trained(NamedTuple):
    """What is left of a training's job."""

    losses: list[float]
    """One an epoch, as the example prints them."""
    folder: Path
    output: str


def in_venv(venv: Path) -> str:
    """Return a PATH on which this virtual environment is active and hpclaunch's own is not."""
    others = [folder for folder in os.environ["PATH"].split(os.pathsep) if folder != OWN_BIN]
    return os.pathsep.join([str(venv / "bin"), *others])


def job_file(folder: Path, venv: Path) -> Path:
    """Write a job file whose job runs in this virtual environment."""
    file = folder / "job.yaml"
    file.write_text(json.dumps({"environment": {"venv": str(venv)}}))
    return file


def train(folder: Path, example: str, submit: tuple[str, ...], *options: str) -> Trained:
    """Submit an example with ``--framework horovod`` from this folder and wait for its end."""
    words = [*hpclaunch("submit", *submit, "--framework", "horovod", "--wait", "--json", "--", "python")]
    words += [str(EXAMPLES / example), *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads(done.stdout)["id"]
    losses = [float(loss) for loss in re.findall(r"(?<!_)loss:? ([0-9.e-]+)", done.stderr)]
    return Trained(losses, Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job, done.stderr)


def ranks_in(timeline: Path) -> set[str]:
    """Return the ranks whose readiness for a tensor's allreduce Horovod's timeline tells."""
    events = json.loads(timeline.read_text())
    assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE"} <= {event.get("name") for event in events}
    return {event["name"] for event in events if event.get("ph") == "X" and event["name"].isdigit()}


def lint(script: Path) -> list[dict[str, Any]]:
    """Return what lint finds in a script and in the Python files that it launches.

    The folders of these tests' jobs are below /tmp, which the nodes share here: that finding is left out.
    """
    done = subprocess.run(hpclaunch("lint", "--json", str(script)), capture_output=True, text=True)
    document: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return [finding for finding in document["findings"] if finding["rule"] != "node-local-once"]


def hpclaunch(*words: str) -> list[str]:
    """Return the command's words."""
    return [sys.executable, "-m", "hpclaunch", *words]
