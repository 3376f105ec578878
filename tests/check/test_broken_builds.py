"""Builds that do not work, asked by real interpreters in separate processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.check.horovods import SUFFIX, WORKING, make_horovod, make_library
from tests.check.verdicts import check_json, names_by_status, one, run_check_command

pytestmark = pytest.mark.mpi
ASK = ("--python", sys.executable)


def test_not_installed() -> None:
    status, document = check_json(*ASK)
    assert status == 1
    assert {"mpi", "gloo", "nccl", "pytorch", "tensorflow"} <= names_by_status(document)["missing"]
    assert "Horovod is not installed in" in one(document, "pytorch")["evidence"]
    assert "pip install" in one(document, "pytorch")["remedy"]


def test_no_interpreter_is_unknown_not_missing(tmp_path: Path) -> None:
    status, document = check_json("--python", str(tmp_path / "python3"))
    assert status == 1
    assert one(document, "pytorch")["status"] == "unknown"


def test_a_build_that_works(tmp_path: Path) -> None:
    make_horovod(tmp_path, WORKING)
    status, document = check_json(*ASK, "--require", "mpi,gloo,torch", PYTHONPATH=str(tmp_path))
    assert status == 0
    assert {"mpi", "gloo", "pytorch", "versions", "mpi-threads"} <= names_by_status(document)["have"]
    assert {"nccl", "cuda", "rocm", "tensorflow"} <= names_by_status(document)["missing"]
    assert "nccl_built() is 0" in one(document, "nccl")["evidence"]


def test_nothing_native_although_the_import_succeeds(tmp_path: Path) -> None:
    """What HOROVOD_SKIP_COMPILE=1 leaves: horovod.torch swallows its own ImportError."""
    make_horovod(tmp_path, "print('Warning! MPI libs are missing')\n", library=False)
    _, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    assert one(document, "pytorch")["status"] == "missing"
    assert "no compiled library" in one(document, "pytorch")["evidence"]
    assert one(document, "mpi")["status"] == "missing"


def test_a_library_that_is_there_but_was_not_loaded(tmp_path: Path) -> None:
    make_horovod(tmp_path, "print('Warning! MPI libs are missing')\n")
    _, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    assert one(document, "pytorch")["status"] == "missing"
    assert "has no init" in one(document, "pytorch")["evidence"]
    assert one(document, "mpi")["status"] == "unknown"


def test_an_import_that_raises(tmp_path: Path) -> None:
    make_horovod(tmp_path, "raise RuntimeError('no CUDA driver')\n")
    status, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    assert status == 1
    assert one(document, "pytorch")["status"] == "missing"
    assert "RuntimeError: no CUDA driver" in one(document, "pytorch")["evidence"]
    assert one(document, "mpi")["status"] == "unknown"


def test_an_import_that_crashes(tmp_path: Path) -> None:
    make_horovod(tmp_path, "import ctypes\nctypes.string_at(0)\n")
    _, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    assert one(document, "pytorch")["status"] == "missing"
    assert "SIGSEGV" in one(document, "pytorch")["evidence"]


def test_an_import_that_hangs_with_children_of_its_own(tmp_path: Path) -> None:
    make_horovod(
        tmp_path,
        "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\nwhile True: time.sleep(1)\n",
    )
    _, document = check_json(*ASK, "--limit", "2", PYTHONPATH=str(tmp_path))
    assert one(document, "pytorch")["status"] == "unknown"
    assert "gave no answer within 2 s" in one(document, "pytorch")["evidence"]
    assert "--limit" in one(document, "pytorch")["remedy"]


def test_wrong_mpi_is_named(tmp_path: Path) -> None:
    """A library that lacks a symbol of another MPI, refused by the real dynamic loader."""
    make_horovod(
        tmp_path,
        "import ctypes, glob, os\nfile = glob.glob(os.path.dirname(__file__) + '/mpi_lib_v2*')[0]\n"
        "try:\n    ctypes.CDLL(file)\n"
        "except OSError as error:\n    raise ImportError(str(error))\n",
        library=False,
    )
    make_library(
        tmp_path / "horovod" / "torch" / f"mpi_lib_v2{SUFFIX}",
        "void ompi_mpi_errors_throw_exceptions(void); void f(void) { ompi_mpi_errors_throw_exceptions(); }",
        "-Wl,-z,now",
    )
    _, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    found = one(document, "pytorch")
    assert found["status"] == "missing"
    assert "wrong MPI" in found["evidence"]
    assert "ompi_mpi_errors_throw_exceptions" in found["evidence"]
    assert "load the MPI that Horovod was built with" in found["remedy"]


def test_a_library_of_an_mpi_that_is_not_there(tmp_path: Path) -> None:
    """Linked with a libmpi that is not loaded: ldd reports it."""
    make_horovod(tmp_path, WORKING, library=False)
    made = tmp_path / "made"
    made.mkdir()
    make_library(made / "libmpi.so.99", "int mpi(void) { return 1; }", "-Wl,-soname,libmpi.so.99")
    make_library(
        tmp_path / "horovod" / "torch" / f"mpi_lib_v2{SUFFIX}",
        "int mpi(void); int f(void) { return mpi(); }",
        str(made / "libmpi.so.99"),
    )
    (made / "libmpi.so.99").unlink()
    _, document = check_json(*ASK, PYTHONPATH=str(tmp_path), LD_LIBRARY_PATH=str(made))
    found = one(document, "mpi-library")
    assert found["status"] == "missing"
    assert "linked with libmpi.so.99, which is not found" in found["evidence"]


def test_a_framework_that_changed_after_the_build(tmp_path: Path) -> None:
    make_horovod(tmp_path, WORKING, built_with="1.13.1")
    status, document = check_json(*ASK, PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "built with pytorch 1.13.1, and 2.0.1 is installed now" in one(document, "versions")["evidence"]


def test_remedies_are_printed_where_they_are_needed(tmp_path: Path) -> None:
    make_horovod(tmp_path, WORKING)
    done = run_check_command(*ASK, "--require", "gloo,nccl", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    # One for nccl, and one for ranks that this made-up Horovod leaves alone; none for cuda, rocm, mxnet, ...
    assert (done.stdout.count("->"), done.stdout.count("rebuild: ")) == (2, 1)
    assert "HOROVOD_GPU_OPERATIONS=NCCL" in done.stdout
    assert "requirement not met: nccl (--require)" in done.stdout
