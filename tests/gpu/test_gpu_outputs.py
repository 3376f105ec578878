"""What benchmarks/on_gpu.sh has written on machines with GPUs (tests/data/on_gpu) is read as it was there.

A folder whose name begins with fake was recorded without a GPU, with the fake nvidia-smi and torch for CPUs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmarks.gpu_parts.judge import JUDGES, address, verdicts
from benchmarks.keep_gpu_outputs import Replacer, files, replaced
from hpclaunch.topology.sources import read_folder
from hpclaunch.usage.node_samples import read_samples
from tests.own_process import hpclaunch

ROOT = Path(__file__).parents[2]
FOLDERS = sorted((ROOT / "tests" / "data" / "on_gpu").iterdir())
DOCUMENTS = {
    "topology/live.json": "topology",
    "topology/saved.json": "topology",
    "visibility/verify.json": "verify",
    "check/check.json": "check",
    "timeline/timeline.json": "timeline",
    "stacks/stacks.json": "stacks",
    "report/report.json": "report",
    "memory/predict.json": "predict",
}
ADDED_SINCE = ("memory_grows",)
"""Keys of documents that are younger than the outputs."""

every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def summary(folder: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in (folder / "summary.tsv").read_text().splitlines()]


def read(file: Path) -> Any:
    return json.loads(file.read_text())


@every_folder
def test_the_verdicts_are_those_of_the_day(folder: Path) -> None:
    again = [row for name in JUDGES for row in verdicts(name, folder)]
    assert [row[:2] for row in again] == [row[:2] for row in summary(folder)]


@every_folder
def test_only_a_real_gpu_passes(folder: Path) -> None:
    found = {verdict for _, verdict, _ in summary(folder)}
    if folder.name.startswith("fake"):
        assert read(folder / "torch.json")["gpus"] == 0
        assert "passed" not in found
    else:
        assert read(folder / "torch.json")["gpus"] > 0
        assert "rehearsed" not in found


@every_folder
def test_the_saved_node_reads_the_same(folder: Path, tmp_path: Path) -> None:
    # tar, as tarfile has its filters only since Python 3.11.4
    subprocess.run(["tar", "-xzf", folder / "topology" / "node.tar.gz", "-C", tmp_path], check=True)
    gpus = [gpu.bus_id for gpu in read_folder(tmp_path).gpus]
    assert gpus == [gpu["bus_id"] for gpu in read(folder / "topology" / "saved.json")["node"]["gpus"]]
    listed = [line.split(",")[2] for line in (folder / "gpus.csv").read_text().splitlines()]
    assert sorted(filter(None, gpus)) == sorted(map(address, listed))


def test_all_is_local_on_a_machine_with_one_numa_node(tmp_path: Path) -> None:
    """Linux says -1 of the H200, which is in a virtual machine."""
    node = ROOT / "tests/data/on_gpu/h200x1-2026-11-28/topology/node.tar.gz"
    subprocess.run(["tar", "-xzf", node, "-C", tmp_path], check=True)
    assert (tmp_path / "sysfs/sys/bus/pci/devices/0000:00:06.0/numa_node").read_text().strip() == "-1"
    assert [gpu.numa for gpu in read_folder(tmp_path).gpus] == [0]


@cache
def checker(name: str) -> jsonschema.Draft202012Validator:
    schema = read(ROOT / "docs" / "reference" / "json" / f"{name}.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@every_folder
@pytest.mark.parametrize("file", DOCUMENTS)
def test_documents_follow_their_schemas(folder: Path, file: str) -> None:
    if (folder / file).exists() or (folder / file.split("/")[0] / "status").read_text().strip() == "0":
        wrong = checker(DOCUMENTS[file]).iter_errors(read(folder / file))
        since = {f"'{key}' is a required property" for key in ADDED_SINCE}
        assert [error.message for error in wrong if error.message not in since] == []


@every_folder
def test_traces_are_read_as_they_were(folder: Path) -> None:
    before = read(folder / "timeline" / "timeline.json")
    answer = hpclaunch("timeline", str(folder / "timeline" / "traces"), "--json")
    assert answer.returncode == 0, answer.stderr
    now = json.loads(answer.stdout)
    same = ("ranks", "steps", "step_ms", "shares", "collectives")
    assert [now[key] for key in same] == [before[key] for key in same]


@every_folder
def test_samples_have_every_gpu(folder: Path) -> None:
    gpus = {gpu["name"] for gpu in read(folder / "report" / "report.json")["by_node"][0]["gpus"]}
    for file in (folder / "report" / "samples").iterdir():
        runs = read_samples(file.name, file.read_text()).runs
        assert {name for run in runs for name in run.gpus} == gpus


@every_folder
def test_nothing_private_is_kept(folder: Path) -> None:
    texts = {file: file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file()}
    kept = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-(?!0{6})[0-9a-f]{12}")
    assert [str(file) for file, text in texts.items() if kept.search(text)] == []
    assert not (folder / "private.txt").exists()


def test_private_words_become_the_same_made_up_ones_everywhere(tmp_path: Path) -> None:
    uuid, other = "GPU-1b2c3d4e-1111-2222-3333-444455556666", "GPU-aaaaaaaa-1111-2222-3333-444455556666"
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "nid7").write_text("nid7: /home/ada/env/python of ada, not canada\n")
    (tmp_path / "a.txt").write_text(
        f"{uuid} {other}\nSerial Number   : 1650223055112\nEthernet 10:20:30:aa:bb:cc, 00000000:17:00.0\n"
    )
    (tmp_path / "b.txt").write_text(
        f"{uuid}; NCCL INFO Using hsn0:10.20.30.40<0>, 127.0.0.1, driver 570.124.06\n"
    )
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "job").write_text("left out")
    replacer = Replacer(
        ["nid7", "nid7.lab.example.org", "ada", "/scratch/ada/out", "/home/ada/parts", "/home/ada"]
    )
    texts = replaced(tmp_path, replacer)
    made_up = "GPU-00000000-0000-0000-0000-00000000000"
    assert texts == {
        "samples/node1": "node1: /home/user/env/python of user, not canada\n",
        "a.txt": f"{made_up}1 {made_up}2\nSerial Number   : 0000000000001\n"
        "Ethernet 02:00:00:00:00:01, 00000000:17:00.0\n",
        "b.txt": f"{made_up}1; NCCL INFO Using hsn0:192.0.2.1<0>, 127.0.0.1, driver 570.124.06\n",
    }
    assert [word for text in texts.values() for word in replacer.left_in(text)] == []
    assert list(replacer.left_in(f"again {uuid[4:]} at nid7")) == ["nid7", uuid[4:]]


def test_traces_and_the_copy_of_sys_are_packed() -> None:
    kept = files({"timeline/traces/rank0.json": "{}", "topology/node/sysfs/a": "1", "gpus.csv": ""})
    assert set(kept) == {"timeline/traces/rank0.json.gz", "topology/node.tar.gz", "gpus.csv"}


FAKE = next(folder for folder in FOLDERS if folder.name.startswith("fake"))


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FAKE, tmp_path / "outputs"))


def test_with_one_gpu_what_needs_two_is_not_run(outputs: Path) -> None:
    torch = read(outputs / "torch.json")
    (outputs / "torch.json").write_text(json.dumps(torch | {"gpus": 1}))
    found = {name: rest for part in JUDGES for name, *rest in verdicts(part, outputs)}
    apart = {name: rest for name, rest in found.items() if rest[0] != "passed"}
    needs_two = ("ddp", "distinct-gpus", "stacks-others")
    assert apart == {name: ["not-run", "needs 2 GPUs: 1 here"] for name in needs_two}


def test_without_torch_nothing_is_said(outputs: Path) -> None:
    (outputs / "torch.json").write_text(json.dumps({"version": None, "gpus": 0}))
    found = {part: verdicts(part, outputs)[0][1] for part in JUDGES}
    assert found == {part: "rehearsed" if part == "topology" else "not-run" for part in JUDGES}


@pytest.mark.parametrize("part", JUDGES)
def test_a_command_that_failed_fails_its_part(outputs: Path, part: str) -> None:
    (outputs / part / "status").write_text("3\n")
    (outputs / part / "words.txt").write_text("first\nthe reason\n\n")
    assert verdicts(part, outputs) == [(part, "failed", "a command failed: the reason")]


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("part", "file", "old", "new"),
    [
        ("topology", "topology/saved.json", "0000:37:00.0", "0000:38:00.0"),
        ("topology", "gpus.csv", "00000000:37:00.0", "00000000:47:00.0"),
        ("visibility", "visibility/verify.json", '"verdict": "ok"', '"verdict": "other-gpus"'),
        ("visibility", "visibility/log.txt", '"variable": "0,1"', '"variable": null'),
        ("visibility", "visibility/log.txt", '"rank": 1', '"rank": 0'),
        ("ddp", "ddp/log.txt", "same 2", "same 1"),
        ("ddp", "ddp/log.txt", "exact True", "exact False"),
        ("check", "check/check.json", '"ok": true', '"ok": false'),
        ("timeline", "timeline/timeline.json", '"steps": 5', '"steps": 4'),
        ("timeline", "timeline/timeline.json", '"kineto"', '"horovod"'),
        ("stacks", "stacks/stacks.json", "wait_for_the_kernel", "main"),
        ("stacks-others", "stacks/stacks.json", '"suspects": [1]', '"suspects": []'),
        ("report", "report/report.json", '"busy": 90.0', '"busy": 3.0'),
        ("memory", "memory/predict.json", '"memory_gib": 1.4', '"memory_gib": -1.4'),
    ],
)
def test_what_is_wrong_is_said(outputs: Path, part: str, file: str, old: str, new: str) -> None:
    changed(outputs / file, old, new)
    found = {name: verdict for each in JUDGES for name, verdict, _ in verdicts(each, outputs)}
    assert found[part] == "failed", found


@pytest.mark.parametrize(("allocated", "verdict"), [(1.6, "passed"), (0.5, "failed"), (3.0, "failed")])
def test_measured_memory_is_near_the_prediction(outputs: Path, allocated: float, verdict: str) -> None:
    changed(outputs / "torch.json", '"gpus": 0', '"gpus": 2')
    changed(outputs / "memory" / "steps.json", '"allocated_gib": null', f'"allocated_gib": {allocated}')
    assert verdicts("memory", outputs)[0][1] == verdict


def test_a_rank_that_takes_another_gpu_than_planned_is_named(outputs: Path) -> None:
    changed(outputs / "torch.json", '"gpus": 0', '"gpus": 2')
    log = outputs / "visibility" / "log.txt"
    changed(
        log,
        '"buses": [], "takes": null',
        '"buses": ["0000:17:00.0", "0000:37:00.0"], "takes": "0000:17:00.0"',
    )
    by_name = {name: rest for name, *rest in verdicts("visibility", outputs)}
    assert by_name["visibility"] == ["failed", "rank 1: planned 0000:37:00.0, got 0000:17:00.0"]
    assert by_name["distinct-gpus"] == ["failed", "1 GPUs are taken by 2 ranks"]
