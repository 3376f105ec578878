"""``hpclaunch check --from``: outputs of real builds, and what else a text may be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.check.captured_folder import judge_folder
from hpclaunch.check.judge_build import Boxes, Remedies, parse_boxes
from hpclaunch.check.requirements import parse_require
from hpclaunch.site.load_profile import load_site, site_names
from tests.check.verdicts import DATA, check_json, names_by_status, one, run_check_command
from tests.profiles import shipped

pytestmark = pytest.mark.slow

EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())
GPU_SITES = [name for name in sorted(site_names()) if (node := shipped(name).node) and node.gpus]
REAL = (DATA / "check-build" / "torch-mpi-gloo.stdout").read_text()


def boxes_of(name: str) -> Boxes:
    return parse_boxes((DATA / "check-build" / name).read_text())


@pytest.mark.parametrize("file", EXPECTED)
def test_a_real_build_gets_its_verdict(file: str, tmp_path: Path) -> None:
    shutil.copy(DATA / file, tmp_path / "check-build.txt")
    _, document = check_json("--from", str(tmp_path))
    got, want = names_by_status(document), EXPECTED[file]
    assert got == {status: set(want[status]) for status in ("have", "missing", "unknown")}
    assert all(want["version"] in each["evidence"] for each in document["checks"])
    assert all(each["remedy"] for each in document["checks"] if each["status"] != "have")


def test_nothing_compiled_fails_although_the_command_exited_0(tmp_path: Path) -> None:
    shutil.copy(DATA / "check-build" / "skip-compile-none.stdout", tmp_path / "check-build.txt")
    done = run_check_command("--from", str(tmp_path))
    assert done.returncode == 1
    assert "requirement not met: mpi|gloo" in done.stdout


SPOKEN = """\
--Horovod is compiled with ROCm support.
--Horovod is NOT compiled with CUDA support.
--MPI support is enabled.
--MPI is compiled with horovod support.
--Horovod is compiled with NCCL support.
--MPI multi-threading is supported.
You may mix and match Horovod usage with other MPI libraries, such as mpi4py.
"""


def test_sentences_of_a_check_script_are_read(tmp_path: Path) -> None:
    """A guide's own script prints what hvd.mpi_built() and its kin say."""
    (tmp_path / "check-build.txt").write_text(SPOKEN)
    status, document = check_json("--from", str(tmp_path), "--require", "mpi,nccl,rocm")
    assert status == 0
    assert {"mpi", "nccl", "rocm"} <= names_by_status(document)["have"]
    assert "cuda" in names_by_status(document)["missing"]
    (tmp_path / "check-build.txt").write_text(
        SPOKEN.replace("is compiled with NCCL", "is NOT compiled with NCCL")
    )
    assert check_json("--from", str(tmp_path), "--require", "mpi,nccl")[0] == 1


def test_required_names_decide(tmp_path: Path) -> None:
    (tmp_path / "check-build.txt").write_text(REAL)
    assert check_json("--from", str(tmp_path), "--require", "mpi,gloo")[0] == 0
    assert check_json("--from", str(tmp_path), "--require", "mpi,nccl")[0] == 1
    assert check_json("--from", str(tmp_path), "--require", "nccl|mpi")[0] == 0
    assert check_json("--from", str(tmp_path), "--require", "torch")[0] == 1


def test_a_site_says_what_is_required_and_how_to_build_it(tmp_path: Path) -> None:
    (tmp_path / "check-build.txt").write_text(REAL)
    status, document = check_json("--from", str(tmp_path), "--site", "lumi-g")
    assert status == 1
    remedy = one(document, "nccl")["remedy"]
    assert "HOROVOD_GPU=ROCM" in remedy
    assert "HOROVOD_GPU_OPERATIONS=NCCL" in remedy
    grace = one(check_json("--from", str(tmp_path), "--site", "daint")[1], "nccl")["remedy"]
    assert "HOROVOD_BUILD_CUDA_CC_LIST=90" in grace


PERFECT = REAL.replace("[ ] NCCL", "[X] NCCL").replace("[ ] CCL", "[X] CCL")


@pytest.mark.parametrize("site", GPU_SITES)
def test_a_perfect_text_passes_on_every_site_with_gpus(site: str, tmp_path: Path) -> None:
    """No release has a box for CUDA, ROCm or the GPU's architecture: from text these are unknown."""
    (tmp_path / "check-build.txt").write_text(PERFECT)
    remedies = Remedies(profile=load_site(site))
    found, needs = judge_folder(tmp_path, remedies)
    assert found.ok, [check for check in found.checks if check.status != "have"]
    vendor = getattr(load_site(site).node, "gpu_vendor", None)
    named = {check.name: check.status for check in found.checks}
    hidden = {"nvidia": {"cuda", "gpu-arch"}, "amd": {"rocm", "gpu-arch"}}.get(str(vendor), set())
    assert {name for name in named if name in ("cuda", "rocm", "gpu-arch")} == hidden
    assert {named[name] for name in hidden} <= {"unknown"}
    assert ("mpi",) in [need.names for need in needs]


def test_what_the_text_shows_is_still_required_and_so_is_text_that_was_lost(tmp_path: Path) -> None:
    remedies = Remedies(profile=load_site("daint"))
    (tmp_path / "check-build.txt").write_text(REAL)
    assert not judge_folder(tmp_path, remedies)[0].ok  # [ ] NCCL
    (tmp_path / "check-build.txt").write_text(PERFECT.partition("Available Tensor")[0])
    assert not judge_folder(tmp_path, remedies)[0].ok
    (tmp_path / "check-build.txt").write_text(PERFECT)
    assert not judge_folder(tmp_path, remedies, parse_require(("cuda",)))[0].ok


def test_plugins_are_held_against_the_sites(tmp_path: Path) -> None:
    shutil.copy(DATA / "mpi-list" / "slurm-22.05-debian.txt", tmp_path / "mpi-list.txt")
    status, document = check_json("--from", str(tmp_path), "--site", "olivia")
    assert (status, one(document, "mpi-plugin")["status"]) == (0, "have")
    shutil.copy(DATA / "mpi-list" / "slurm-20.11-old-form.txt", tmp_path / "mpi-list.txt")
    status, document = check_json("--from", str(tmp_path), "--site", "olivia")
    assert (status, one(document, "mpi-plugin")["status"]) == (1, "missing")
    assert "--mpi=pmix, which is not among them" in one(document, "mpi-plugin")["evidence"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--from", "nowhere"), 3, "nowhere: no such folder"),
        (("--from", "."), 3, "neither check-build.txt nor mpi-list.txt"),
        (("--from", ".", "--nodes", "2"), 2, "captured outputs are judged"),
        (("--require", "ncll"), 3, "did you mean nccl?"),
        (("--site", "nosuch"), 3, "nosuch"),
        (("--file", "job.yaml"), 2, "--file without --site"),
    ],
)
def test_wrong_words_are_refused(
    words: tuple[str, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_check_command(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# --- the boxes ---------------------------------------------------------------------------------------------


def test_boxes_of_a_real_build_with_trailing_blanks() -> None:
    boxes = boxes_of("torch-mpi-only.stdout")
    assert REAL.endswith("Gloo    \n")
    assert boxes.version == "0.28.1"
    assert boxes.frameworks == {"tensorflow": False, "pytorch": True, "mxnet": False}
    assert boxes.controllers == {"mpi": True, "gloo": False}
    assert boxes.operations == {"nccl": False, "ddl": False, "ccl": False, "mpi": True, "gloo": False}


def test_verbose_output_has_the_same_boxes() -> None:
    boxes = boxes_of("tf-verbose.stdout-stderr")
    assert boxes.frameworks == {"tensorflow": True, "pytorch": True, "mxnet": False}
    assert (boxes.controllers, boxes.operations) == ({"mpi": True, "gloo": True}, {})  # the record ends there


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("[X]", "[x]"),
        lambda text: "a warning\n" + text + "\nanother [X] NCCL in a sentence\n",
        lambda text: text.replace("Horovod v", "\x1b[1mHorovod v").replace("[X]", "[\x1b[32mX\x1b[0m]"),
        lambda text: text.replace("    [", "\t["),
    ],
    ids=["crlf", "small-x", "noise", "colours", "tabs"],
)
def test_the_form_of_the_text_does_not_matter(change: Any) -> None:
    assert parse_boxes(change(REAL)) == parse_boxes(REAL)


def test_mlsl_is_the_old_name_of_ccl() -> None:
    assert parse_boxes(REAL.replace("[ ] CCL", "[X] MLSL")).operations["ccl"]


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\nqueue.Empty\n", "[X] MPI\n"])
def test_a_text_without_sections_has_no_boxes(text: str, tmp_path: Path) -> None:
    assert not parse_boxes(text)
    (tmp_path / "check-build.txt").write_text(text)
    status, document = check_json("--from", str(tmp_path))
    assert (status, names_by_status(document)["have"]) == (1, set())
    assert {each["status"] for each in document["checks"]} == {"unknown"}


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_boxes(text + REAL)
    parse_boxes(REAL + text)
    assert parse_boxes(REAL + "\n" + text).version == "0.28.1"
