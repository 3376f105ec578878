"""The check on a real Horovod 0.28.1 for torch, built with MPI and Gloo against Open MPI 4.

HPCLAUNCH_TEST_HOROVOD names its virtual environment; its mpiexec must be found outside of hpclaunch's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.check.verdicts import check_json, names_by_status, one
from tests.horovod.builds import in_venv
from tests.train.mpirun import mpiexec

VENV = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"])
OUTSIDE = in_venv(VENV)
pytestmark = pytest.mark.mpi


def test_a_build_with_mpi_and_gloo() -> None:
    status, document = check_json("--require", "mpi,gloo,torch", "--allreduce-test", PATH=OUTSIDE)
    found = names_by_status(document)
    assert {"mpi", "gloo", "pytorch", "versions", "mpi-library", "horovod-launch", "allreduce"} <= found[
        "have"
    ]
    assert {"nccl", "cuda", "rocm", "ddl", "ccl", "tensorflow", "keras", "mxnet"} <= found["missing"]
    assert "through Horovod on cpu" in one(document, "allreduce")["evidence"]
    assert status == 0


def test_its_boxes_agree_with_its_library(tmp_path: Path) -> None:
    text = subprocess.run(
        [str(VENV / "bin" / "horovodrun"), "--check-build"],
        env={**os.environ, "PATH": OUTSIDE},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (tmp_path / "check-build.txt").write_text(text)
    found = names_by_status(check_json("--from", str(tmp_path))[1])
    assert found == {
        "have": {"mpi", "gloo"},
        "missing": {"nccl", "ddl", "ccl", "tensorflow", "mxnet"},
        "unknown": {"pytorch"},
    }


@pytest.mark.parametrize(
    ("library", "words"),
    [(b"", "file too short"), (None, "has no compiled library for it")],
    ids=["cut off", "not compiled"],
)
def test_a_library_that_does_not_load(library: bytes | None, words: str, tmp_path: Path) -> None:
    """What a full disk and what HOROVOD_SKIP_COMPILE=1 leave."""
    (package,) = (VENV / "lib").glob("python3*/site-packages/horovod")
    shutil.copytree(package, tmp_path / "horovod", copy_function=os.symlink)
    (file,) = (tmp_path / "horovod" / "torch").glob("mpi_lib_v2*.so")
    file.unlink()
    if library is not None:
        file.write_bytes(library)
    status, document = check_json("--require", "mpi,torch", PATH=OUTSIDE, PYTHONPATH=str(tmp_path))
    found = one(document, "pytorch")
    assert (status, found["status"]) == (1, "missing")
    assert words in found["evidence"]
    assert "HOROVOD_WITH_PYTORCH=1" in found["remedy"]


def test_open_mpi_5_at_run_time_is_the_wrong_mpi() -> None:
    library = Path(mpiexec()).parents[1] / "lib"
    if not (library / "libmpi.so.40").exists():
        pytest.fail("this test needs the wheel of Open MPI 5 next to hpclaunch")
    _, document = check_json("--require", "mpi,torch", PATH=OUTSIDE, LD_LIBRARY_PATH=str(library))
    found = one(document, "pytorch")
    assert found["status"] == "missing"
    assert "wrong MPI" in found["evidence"]
    assert "undefined symbol: ompi_mpi_errors_throw_exceptions" in found["evidence"]
    assert one(document, "mpi")["status"] == "unknown"


def test_open_mpi_5s_launcher_is_the_wrong_one() -> None:
    """mpiexec of Open MPI 5 leads its own library before the ranks' eyes."""
    path = os.pathsep.join([str(Path(mpiexec()).parent), OUTSIDE])
    python = str(VENV / "bin" / "python")
    status, document = check_json("--python", python, PATH=path)
    found = one(document, "horovod-launch")
    assert found["status"] == "missing"
    assert "ompi_mpi_errors_throw_exceptions" in found["evidence"]
    assert status == 1
