"""The programs of continuous integration change the machine: a wrong argument starts nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"


@pytest.mark.parametrize(
    "words", [["run", "--help"], ["run", "tests"], ["long", "-h"], ["long", "kills", "all"]]
)
def test_a_wrong_argument_starts_nothing(tmp_path: Path, words: list[str]) -> None:
    """In a copy without the project, where a part that is started fails."""
    shutil.copytree(CI, tmp_path / ".ci")
    done = subprocess.run(
        ["bash", f".ci/{words[0]}", *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"usage: .ci/{words[0]}")
