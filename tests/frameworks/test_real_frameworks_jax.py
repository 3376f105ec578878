"""``jax.distributed.initialize()`` without arguments, with the real JAX on CPUs.

HPCLAUNCH_TEST_FRAMEWORKS names the virtual environment that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launcher_environments import environments, name_of, variables
from tests.plan.test_launcher_environments import lines
from tests.testbed.cluster import Slurm, free_ports

PYTHON = str(Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"]) / "bin" / "python")
MEAN = """
import jax
jax.distributed.initialize()
from jax.experimental.multihost_utils import process_allgather
rank, ranks = jax.process_index(), jax.process_count()
mean = process_allgather(jax.numpy.array([float(rank)])).mean()
print(f"\\nRANK {rank} of {ranks} mean {mean:g}", flush=True)
"""
WITH_MPI = "\ntry:\n    import mpi4py\nexcept ImportError:\n    pass\n"


def said(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith("RANK"))


def expected(ranks: int) -> list[str]:
    return [f"RANK {rank} of {ranks} mean {(ranks - 1) / 2:g}" for rank in range(ranks)]


def assert_ranks_meet(ranks: int, folder: Path, *words: str, program: str = MEAN) -> str:
    """Submit the program, with no option about JAX; return the text on stderr."""
    (folder / "mean.py").write_text(program)
    command = [sys.executable, "-m", "hpclaunch", "submit", *words, "--wait", "--", PYTHON, "mean.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert said(answer.stdout) == expected(ranks)
    return answer.stderr


def test_ranks_of_this_machine_need_no_mpi(tmp_path: Path) -> None:
    stderr = assert_ranks_meet(3, tmp_path, "--site", "local", "--tasks", "3")
    assert "framework jax (mean.py, line 2: imports jax)" in stderr


@pytest.mark.mpi
def test_ranks_of_mpiexec(tmp_path: Path) -> None:
    stderr = assert_ranks_meet(2, tmp_path, "--site", "local", "--tasks", "2", program=MEAN + WITH_MPI)
    assert "the program uses MPI, too" in stderr


@pytest.mark.slurm
def test_ranks_of_srun_on_two_nodes(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    size = ("--nodes", "2", "--tasks-per-node", "2", "--no-exclusive")
    assert_ranks_meet(4, tmp_path, "--site", "generic-slurm", *size)


@pytest.mark.parametrize("environment", environments("pals"), ids=name_of)
def test_ranks_with_the_variables_of_pals(environment: dict[str, Any]) -> None:
    """The lines of each rank in the script for a site with PALS, under the variables that PALS gives it."""
    text, ranks = lines(environment["site"], "jax"), 4
    shell = f"taskset() {{ :; }}\n{text}\nexec {PYTHON} -c '{MEAN}'"
    common = {"PATH": os.environ["PATH"], "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_ports(1)}"}
    started = [
        subprocess.Popen(
            ["bash", "-c", shell, "rank"],
            env={**common, **variables(environment, rank, nodes=2, each=2)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    output = "".join(process.communicate()[0] for process in started)
    assert said(output) == expected(ranks)
