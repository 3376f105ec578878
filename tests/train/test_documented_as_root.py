"""The commands of the documentation as root, as in a container: with the variables that its page names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.mpirun import ROOT, environment, mpiexec, write_digits

PAGE = (ROOT / "docs" / "reference" / "training.md").read_text()


@pytest.mark.mpi
def test_the_variables_of_the_page_let_more_ranks_than_cores_start_as_root(tmp_path: Path) -> None:
    variables = next(
        block for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) if "AS_ROOT" in block
    )
    digits = write_digits(tmp_path, 301, 50)
    bare = {
        name: value for name, value in environment().items() if "OMPI_" not in name and "PRTE_" not in name
    }
    ranks = len(os.sched_getaffinity(0)) + 1
    command = f'{variables}\nexec "$@"'
    training = [sys.executable, "-m", "hpclaunch.train", "--data", str(digits), "--epochs", "1"]
    done = subprocess.run(
        ["bash", "-c", command, "bash", mpiexec(), "-n", str(ranks), *training],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{ranks} rank(s) on 1 host(s)" in done.stdout
