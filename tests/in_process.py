"""Run a command of hpclaunch in the process of the tests, which takes a tenth of a program's start."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from click.testing import CliRunner

from hpclaunch.cli.main import program


def hpclaunch_here(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder; the exit status and both outputs are those of the program.

    tests/cli/test_main.py and the tests of jobs start the program itself.
    """
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        answer = CliRunner().invoke(program, words, prog_name="hpclaunch", catch_exceptions=False)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(words, answer.exit_code, answer.stdout, answer.stderr)
