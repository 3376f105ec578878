"""What the fake schedulers share: they run the scripts of jobs in the background, and end them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO


def run_later(program: str, verb: str, job: str, log: Path) -> None:
    """Start the fake again, as what runs the job in the background."""
    subprocess.Popen(
        [sys.executable, program, verb, job],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log.open("a"),
        start_new_session=True,
    )


def run_script(
    script: str | Path, output: IO[bytes], cwd: str, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a job's script as a session."""
    return subprocess.Popen(
        ["bash", str(script)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


def end(session: int, number: int) -> None:
    """Signal every process of a session: an MPI's ranks are in their own process groups."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                os.kill(int(stat.parent.name), number)
        except (OSError, IndexError):
            continue
