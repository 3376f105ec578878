"""All allreduce algorithms under a real MPI."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from hpclaunch.train.allreduce import chunk_bounds
from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.run_options import check_compression
from tests.in_one_test import in_one_test
from tests.testbed.cluster import Slurm
from tests.train.mpirun import environment, mpiexec, run_program


@pytest.mark.mpi
@pytest.mark.parametrize(
    "ranks", [1, 3, 4, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (2, 5))]
)
def test_each_is_a_plain_sum_with_the_same_bits_on_all_ranks(ranks: int) -> None:
    """Lengths 0, 1, shorter than p, not divisible; many types; one message or many a chunk; fake nodes."""
    run_program(ranks, "allreduces", "8")


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_compressed_sums_are_near_lose_nothing_and_send_less(ranks: int) -> None:
    run_program(ranks, "compressed")


@in_one_test("ranks", [1, 2, 3, 7])
@in_one_test("items", [0, 1, 2, 6, 7, 8, 1000])
def test_chunks_cover_the_buffer_evenly(items: int, ranks: int) -> None:
    bounds = chunk_bounds(items, ranks)
    sizes = np.diff(bounds)
    assert bounds[0] == 0
    assert bounds[-1] == items
    assert len(sizes) == ranks
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.mpi
def test_arrays_that_cannot_be_summed_in_place_are_refused() -> None:
    run_program(1, "refused_arrays")


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_thread_sums_slices_of_a_buffer_beside_other_communication(ranks: int) -> None:
    run_program(ranks, "in_a_thread")


@pytest.mark.mpi
@pytest.mark.parametrize("algorithm", ["ring", "shared", "fake nodes"])
def test_a_rank_killed_within_a_sum_ends_all_with_one_message(algorithm: str) -> None:
    command = [mpiexec(), "-n", "4", sys.executable, "-m", "tests.train.ranks.summing", algorithm]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        ranks = [psutil.Process(int(word)) for word in job.stdout.readline().split()]
        assert len(ranks) == 4
        ranks[2].kill()
        said = "".join(job.communicate())
    assert job.returncode != 0
    # Under MPICH a neighbour may see the end of the connection and abort before mpiexec sees the dead rank.
    aborts = len(re.findall(r"^Abort\(1\) on node [13] ", said, re.MULTILINE))
    assert said.count("signal 9") == 1 or ("signal 9" not in said and aborts in (1, 2)), said
    assert "Traceback" not in said
    psutil.wait_procs(ranks)
    assert not [process for process in ranks if process.is_running()]


@pytest.mark.mpi
@pytest.mark.slurm
def test_on_two_nodes_the_default_is_hierarchical_and_all_sums_are_right(
    slurm: Slurm, tmp_path: Path
) -> None:
    assert "all right" in on_two_nodes(slurm, tmp_path, "tests.train.ranks.on_two_nodes")
    training = ("hpclaunch.train", "--dataset", "synthetic", "--epochs", "1", "--json")
    result = json.loads(on_two_nodes(slurm, tmp_path, *training))
    assert result["allreduce"] == "hierarchical"
    assert len(result["hosts"]) == 2
    assert result["test_accuracy"] > 0.9


def on_two_nodes(slurm: Slurm, folder: Path, module: str, *argv: str) -> str:
    """What a module prints on two ranks each of two nodes."""
    two_each = ("--nodes=2", "--ntasks-per-node=2", "--mpi=pmix", f"--chdir={folder}")
    transport = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm,tcp", "OMPI_MCA_osc": "^ucx"}
    done = subprocess.run(
        ["srun", *two_each, sys.executable, "-m", module, *argv],
        env={**environment(**transport), "SLURM_CONF": str(slurm.conf)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@in_one_test("text", ["", "fp8", "fp16:2", "topk"])
def test_an_unknown_compression_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadRequestError, match=f"--compression {text}: not a compression"):
        check_compression(text, None)


@pytest.mark.parametrize(("text", "name"), [("fp16", "mpi"), ("bf16", "shared")])
def test_what_does_not_compress_is_refused(text: str, name: str) -> None:
    with pytest.raises(BadRequestError, match=f"--compression {text} with --allreduce {name}"):
        check_compression(text, name)
    check_compression(text, None)
    check_compression(text, "ring")
