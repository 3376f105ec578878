"""``hpclaunch topology`` as users call it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from hpclaunch.binding.dialects import FORMATS
from hpclaunch.cli import topology as cli_topology
from hpclaunch.cli.main import program
from hpclaunch.topology.sources import KINDS
from tests.binding.test_compute import LUMI_MASKS
from tests.in_one_test import in_one_test

# A node like LUMI-G's as the two tools print it: NUMA lines of four nodes, two GPUs each, crosswise.
LSCPU = "NUMA:\n  NUMA node(s):        4\n" + "".join(
    f"  NUMA node{node} CPU(s):   {16 * node}-{16 * node + 15},{64 + 16 * node}-{64 + 16 * node + 15}\n"
    for node in range(4)
)
ROCM_SMI = "".join(
    f"GPU[{gpu}]\t\t: (Topology) Numa Node: {node}\nGPU[{gpu}]\t\t: (Topology) Numa Affinity: {node}\n"
    for gpu, node in enumerate((3, 3, 1, 1, 0, 0, 2, 2))
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "lscpu.txt").write_text(LSCPU)
    (tmp_path / "rocm.txt").write_text(ROCM_SMI)
    return ["--lscpu", str(tmp_path / "lscpu.txt"), "--rocm-smi", str(tmp_path / "rocm.txt")]


def run(*words: str) -> Result:
    return CliRunner().invoke(program, ["topology", *words])


@pytest.mark.parametrize("reservation", [["--site", "lumi-g"], ["--reserve", "first-core-per-l3"]])
def test_captured_files_give_the_documented_answer(files: list[str], reservation: list[str]) -> None:
    words = [*files, *reservation, "--tasks-per-node", "8", "--format"]
    assert run(*words, "map_cpu").stdout == "49,57,17,25,1,9,33,41\n"
    assert run(*words, "mask_cpu").stdout == LUMI_MASKS + "\n"
    notes = run(*words, "mask_cpu").stderr
    assert "note: " in notes
    assert "L3" in notes


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_format_but_the_table_prints_its_notes_on_stderr(files: list[str], form: str) -> None:
    result = run(*files, "--reserve", "0,8", "--format", form)
    assert result.exit_code == 0
    assert result.stdout.strip()
    assert ("note: " in result.stdout) == (form == "table")


def test_json_is_one_document_and_nothing_else(files: list[str]) -> None:
    result = run(*files, "--json")
    document: dict[str, Any] = json.loads(result.stdout)
    assert result.stderr == ""
    assert document["tasks_per_node"] == 8
    assert document["ranks"][0]["cpu_list"] == "48-55"
    assert document["node"]["gpus"][0]["numa"] == 3
    assert document["notes"]


def test_the_node_of_a_profile() -> None:
    assert run("--site", "lumi-g", "--format", "srun").stdout == f"--cpu-bind=mask_cpu:{LUMI_MASKS}\n"
    polaris = run("--site", "polaris", "--format", "pals").stdout
    assert polaris == "--cpu-bind list:24-31:16-23:8-15:0-7\n"
    generic = run("--site", "generic-slurm")
    assert generic.exit_code == 3
    assert "profile generic-slurm describes no node" in generic.stderr


def test_the_live_node_is_read_below_the_sysroot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-2\n")
    for cpu in range(3):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu}\n")
    monkeypatch.setenv("HPCLAUNCH_SYSROOT", str(tmp_path))
    assert run("--tasks-per-node", "3", "--format", "map_cpu").stdout == "0,1,2\n"
    local = run("--site", "local", "--tasks-per-node", "3", "--format", "map_cpu")
    assert local.stdout == "0,1,2\n"


def test_checking_a_list_ends_with_0_or_1() -> None:
    right = run("--site", "lumi-g", "--check-map", "49,57,17,25,1,9,33,41")
    assert right.exit_code == 0
    assert "right: 8 ranks" in right.stdout
    wrong = run("--site", "lumi-g", "--check-mask", LUMI_MASKS.replace("0xfe,", "0xff,"))
    assert wrong.exit_code == 1
    assert "rank 4: CPU 0: reserved" in wrong.stdout
    document = json.loads(run("--site", "lumi-g", "--check-map", "49,49", "--json").stdout)
    assert document["right"] is False
    assert document["findings"][0]["rank"] == 1


def test_a_picture_is_written_completely(tmp_path: Path) -> None:
    picture = tmp_path / "node.svg"
    result = run("--site", "lumi-g", "--picture", str(picture), "--format", "map_cpu")
    assert result.stdout == "49,57,17,25,1,9,33,41\n"
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")
    assert [path.name for path in tmp_path.iterdir()] == ["node.svg"]
    wrong = tmp_path / "wrong.svg"
    assert run("--site", "lumi-g", "--check-map", "1,9", "--picture", str(wrong)).exit_code == 1
    assert "FAR" in wrong.read_text()
    nowhere = run("--site", "lumi-g", "--picture", str(tmp_path / "none" / "node.svg"))
    assert nowhere.exit_code == 3
    assert "cannot be written" in nowhere.stderr


@pytest.mark.parametrize("name", ["node.png", "node"])
def test_a_picture_is_an_svg(tmp_path: Path, name: str) -> None:
    answer = run("--site", "lumi-g", "--picture", str(tmp_path / name))
    assert (answer.exit_code, answer.stdout) == (3, "")
    assert "name a file that ends in .svg" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@in_one_test(
    "words",
    [
        ["--cpus-per-task", "100"],
        ["--gpus-per-task", "8"],
        ["--threads-per-core", "99"],
        ["--reserve", "0-63"],
        ["--reserve", "0-100"],
    ],
)
def test_a_request_that_no_binding_fulfils_is_refused(words: list[str]) -> None:
    assert run("--site", "lumi-g", *words).exit_code == 3


BAD_INPUT = [
    (["--tasks-per-node", "0"], "'--tasks-per-node': 0 is not in the range"),
    (["--picture", ""], "'--picture': it is empty"),
    (["--format", "nonsense"], "'nonsense' is not one of"),
    (["--tasks-per-node", "57"], "57 ranks need 57 cores"),
    (["--cpus-per-task", "9", "--tasks-per-node", "8"], "8 ranks of 9 cores need 72 cores"),
    (["--reserve", "200"], "cannot reserve CPUs 200"),
    (["--reserve", "a"], "--reserve a: bad CPU list"),
]


@in_one_test("words, message", BAD_INPUT)
def test_bad_input_ends_with_3_and_the_numbers(words: list[str], message: str) -> None:
    result = run("--site", "lumi-g", *words)
    assert result.exit_code == 3
    assert message in result.stderr
    assert result.stdout == ""


USAGE = [
    ["--from", "d", "--lscpu", "f"],
    ["--save", "d", "--site", "lumi-g"],
    ["--check-mask", "1", "--check-map", "1"],
    ["--json", "--format", "srun"],
    ["--check-map", "1", "--format", "srun"],
]


@in_one_test("words", USAGE)
def test_contradicting_options_are_wrong_usage(words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_saving_and_reading_again(tmp_path: Path) -> None:
    saved = run("--save", str(tmp_path / "node"), "--format", "cpu_list")
    assert saved.exit_code == 0
    again = run("--from", str(tmp_path / "node"), "--format", "cpu_list")
    assert again.stdout == saved.stdout
    assert run("--from", str(tmp_path)).exit_code == 3


def test_gpus_without_cpus_are_shown(tmp_path: Path) -> None:
    (tmp_path / "rocm.txt").write_text(ROCM_SMI)
    words = ["--rocm-smi", str(tmp_path / "rocm.txt"), "--tasks-per-node", "4"]
    shown = run(*words)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[1].split() == ["0", "-", "3", "-", "0,1", "-"]
    assert run(*words, "--format", "srun").exit_code == 3


def test_more_gpus_than_granted_cores_still_shows_the_node(tmp_path: Path) -> None:
    (tmp_path / "lscpu.txt").write_text("NUMA node0 CPU(s): 0-1\n")
    (tmp_path / "rocm.txt").write_text(ROCM_SMI.replace(": 3", ": 0"))
    words = ["--lscpu", str(tmp_path / "lscpu.txt"), "--rocm-smi", str(tmp_path / "rocm.txt")]
    shown = run(*words)
    assert shown.exit_code == 0
    assert "no binding: 8 ranks need 8 cores" in shown.stdout
    assert run(*words, "--tasks-per-node", "8").exit_code == 3
    assert run(*words, "--tasks-per-node", "8", "--share-cores").exit_code == 0


def test_the_help_names_the_real_formats_and_sources() -> None:
    (form,) = (option.type for option in cli_topology.command.params if option.name == "form")
    assert set(getattr(form, "choices", ())) == set(FORMATS)
    assert set(cli_topology.SOURCES) == {*KINDS, "sysfs"}
    assert "Examples:" in run("--help").stdout


def test_a_terminal_shows_the_drawing_above_the_table() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hpclaunch", "topology", "--site", "lumi-g"]
    with subprocess.Popen(command, stdout=theirs) as process:
        os.close(theirs)
        chunks = []
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(ours)
    assert process.returncode == 0
    lines = b"".join(chunks).decode().splitlines()
    words = [line.split() for line in lines]
    assert ["L3", "6", "cores", "48-55", "#", *"0000000"] in words
    assert ["0", "49-55", "3", "6", "0", "hsn0"] in words
