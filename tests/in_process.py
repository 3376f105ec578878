"""Run a command of hpclaunch in the process of the tests, which takes a tenth of a program's start."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner

from hpclaunch.cli.main import program


def hpclaunch_here(
    *words: str | Path,
    folder: Path | None = None,
    input: str | bytes | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder; ``environment`` is added. The exit status and outputs are the program's.

    Those of tests/cli/test_main.py that are slow, and the tests of jobs, start the program itself.
    """
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        answer = CliRunner(env=environment).invoke(
            program, list(map(str, words)), input=input, prog_name="hpclaunch", catch_exceptions=False
        )
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(words, answer.exit_code, answer.stdout, answer.stderr)
