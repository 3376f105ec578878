"""Run a command of hpclaunch in a process of its own, as its users do; ``tests/in_process.py`` is faster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def hpclaunch(
    *words: str | Path,
    before: Sequence[str] = (),
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command; ``before``: the program that starts it, ``env``: its whole environment."""
    command = [*before, sys.executable, "-m", "hpclaunch", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env)
