"""Builds that do not work, asked by real interpreters in separate processes."""

from __future__ import annotations

import os
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
    assert names_by_status(document)["missing"] == {"horovod"}
    assert "Horovod is not installed in" in one(document, "horovod")["evidence"]
    assert "hpclaunch software plan --site local --for horovod-torch" in one(document, "horovod")["remedy"]
    assert run_check_command(*ASK).stdout.splitlines()[-1] == "not all requirements are met"


def test_not_installed_is_one_answer_whatever_is_required(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("")
    done = run_check_command(*ASK, "--require", "mpi,nccl,torch", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.count("horovod") == 3  # the verdict, its remedy, the requirement
    assert "torch is installed" in done.stdout
    last = "without Horovod: hpclaunch check --framework torch judges what is here"
    assert done.stdout.splitlines()[-1] == last
    assert one(check_json(*ASK, PYTHONPATH=str(tmp_path))[1], "horovod")["instead"] == ["torch"]
    named = run_check_command(*ASK, "--framework", "horovod", PYTHONPATH=str(tmp_path))
    assert named.stdout.splitlines()[-1] == "not all requirements are met"
    assert done.stdout.count("requirement not met:") == 1
    assert "rebuild" not in done.stdout


@pytest.mark.parametrize(
    ("python", "why"), [("/nosuch/python3", "no such program"), ("/bin/true", "status 0")]
)
def test_an_interpreter_that_is_none_is_bad_input(python: str, why: str) -> None:
    done = run_check_command("--python", python)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"hpclaunch: --python {python}: ")
    assert why in done.stderr


# --- frameworks without Horovod ----------------------------------------------------------------------------

TORCH = """\
import types
__version__ = "2.7.1+rocm6.2.4"
version = types.SimpleNamespace(cuda=None, hip="6.2.41134")
cuda = types.SimpleNamespace(device_count=lambda: 0, get_arch_list=lambda: ["gfx90a", "gfx942"])
"""
SITE = """\
schema: 1
name: here
description: a machine for tests
scheduler: {kind: local, launcher: mpiexec}
binding: {cpu: none, needs_whole_node: false}
node:
  cpu_model: test
  cores: 2
  numa: [{id: 0, cores: 0-1}]
  gpus: [{numa: 0}]
"""


def site_with(tmp_path: Path, gpu: str) -> str:
    path = tmp_path / "here.yaml"
    path.write_text(f"{SITE}  {gpu}\n")
    return str(path)


def test_a_framework_is_checked_without_horovod(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TORCH)
    amd = site_with(tmp_path, "gpu_vendor: amd\n  gpu_arch: gfx90a")
    words = (*ASK, "--framework", "torch", "--require", "imports,rocm,gpu-arch")
    status, document = check_json(*words, "--site", amd, PYTHONPATH=str(tmp_path))
    assert status == 0, document
    assert "imports torch 2.7.1+rocm6.2.4" in one(document, "imports")["evidence"]
    assert not {"horovod", "mpi", "pytorch", "mpi-launch"} & {each["name"] for each in document["checks"]}


def test_a_framework_for_other_gpus_fails(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(TORCH)
    nvidia = site_with(tmp_path, "gpu_vendor: nvidia\n  gpu_arch: sm_90")
    words = (*ASK, "--framework", "torch", "--site", nvidia)
    status, document = check_json(*words, PYTHONPATH=str(tmp_path))
    assert status == 1
    assert (
        one(document, "cuda")["evidence"]
        == "torch 2.7.1+rocm6.2.4 is built for rocm 6.2.41134; here needs cuda"
    )
    assert "software plan --site here --for torch" in one(document, "cuda")["remedy"]
    assert "has code for gfx90a, gfx942; the site's GPUs are sm_90" in one(document, "gpu-arch")["evidence"]


def test_jax_is_judged_by_its_plugin(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("__version__ = '0.6.0'\n")
    nvidia = site_with(tmp_path, "gpu_vendor: nvidia\n  gpu_arch: sm_90")
    words = (*ASK, "--framework", "jax", "--site", nvidia)
    status, document = check_json(*words, PYTHONPATH=str(tmp_path))
    assert (status, one(document, "cuda")["evidence"]) == (
        1,
        "jax 0.6.0 is built for CPUs only; here needs cuda",
    )
    for name, version in (("jax-cuda12-plugin", "0.6.0"), ("nvidia-nccl-cu12", "2.26.2")):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    status, document = check_json(*words, "--require", "imports,cuda,versions", PYTHONPATH=str(tmp_path))
    assert (status, "nccl 2.26.2" in one(document, "versions")["evidence"]) == (0, True)


def test_a_framework_that_is_not_there_is_one_answer(tmp_path: Path) -> None:
    done = run_check_command(
        *ASK, "--framework", "deepspeed", "--site", site_with(tmp_path, "gpu_vendor: amd")
    )
    assert done.returncode == 1
    assert f"imports      missing  {sys.executable} has no deepspeed" in done.stdout
    assert done.stdout.count("requirement not met:") == 1


# --- builds that are there ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("code", [WORKING, "raise RuntimeError('no CUDA driver')\n"], ids=["loads", "raises"])
def test_the_boxes_are_asked_for_only_where_a_library_answers(code: str, tmp_path: Path) -> None:
    """Horovod imports the framework for each of its boxes, which takes longer than all else of a check."""
    make_horovod(tmp_path, code)
    fake = tmp_path / "bin" / "horovodrun"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    fake.chmod(0o755)
    check_json(*ASK, PYTHONPATH=str(tmp_path), PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert (tmp_path / "asked").exists() == (code == WORKING)


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
