"""The look at each node before the ranks start: its verdicts, and jobs that it ends and that go elsewhere."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.job.log_extract import PREFLIGHT_PREFIX as PREFIX
from hpclaunch.job.log_extract import failed_nodes, read_preflight
from hpclaunch.job.record import NodeVerdict
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from tests.in_one_test import in_one_test
from tests.own_process import hpclaunch
from tests.testbed import kit
from tests.testbed.cluster import Slurm

PROBE_FILE = resource_dir("remote") / "probe.py"

FAKES = Path(__file__).parents[1] / "fakes" / "fake_gpu_tools"


def record_of(answer: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return kit.record_of(json.loads(answer.stdout)["id"])


def look(tmp_path: Path, wanted: dict[str, Any], **environment: str) -> dict[str, NodeVerdict]:
    """Run the probe as a job does, by its file."""
    probe = tmp_path / "probe.py"
    probe.write_bytes(PROBE_FILE.read_bytes())
    answer = subprocess.run(
        [sys.executable, str(probe), "preflight", json.dumps(wanted)],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return {said.check: said for said in read_preflight(answer.stdout)}


def package(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(text)


def test_the_probe_is_read_by_the_pythons_of_old_systems() -> None:
    ast.parse(PROBE_FILE.read_bytes(), feature_version=(3, 7))


def test_cpus_of_the_plan_that_the_job_has_not(tmp_path: Path) -> None:
    status = tmp_path / "proc" / "self" / "status"
    status.parent.mkdir(parents=True)
    status.write_text("Name:\tpython\nCpus_allowed_list:\t0-3,8\n")
    here = {"HPCLAUNCH_SYSROOT": str(tmp_path)}
    assert look(tmp_path, {"cpus": "1-3,8"}, **here)["cpus"].status == "have"
    said = look(tmp_path, {"cpus": "1-8"}, **here)["cpus"]
    assert said.status == "missing"
    assert said.evidence == "CPUs 4,5,6,7 of the plan are not the job's here: it has 0-3,8"


@pytest.mark.parametrize(
    ("listed", "status", "words"),
    [("8", "have", "lists 8 GPUs, the job needs 8"), ("7", "missing", "lists 7 GPUs, the job needs 8")],
)
def test_gpus_with_a_fake_tool(tmp_path: Path, listed: str, status: str, words: str) -> None:
    path = f"{FAKES}{os.pathsep}{os.environ['PATH']}"
    said = look(tmp_path, {"gpus": 8, "vendor": "amd"}, PATH=path, FAKE_GPUS=listed)["gpus"]
    assert (said.status, words in said.evidence) == (status, True), said


def test_a_node_without_the_tool_is_not_blamed(tmp_path: Path) -> None:
    said = look(tmp_path, {"gpus": 8, "vendor": "nvidia"}, PATH=str(tmp_path))["gpus"]
    assert (said.status, said.evidence) == ("unknown", "there is no nvidia-smi here")


@pytest.mark.parametrize(
    ("module", "text", "status", "words"),
    [
        ("deepspeed", "x = 1\n", "have", "imports deepspeed"),
        ("deepspeed", "raise OSError('libcuda.so.1 is missing')\n", "missing", "libcuda.so.1 is missing"),
        ("deepspeed", "import os\nos.kill(os.getpid(), 11)\n", "missing", "exit status -11"),
        ("no_module_of_this_name", "", "unknown", "has no module"),
    ],
)
def test_the_framework_is_imported(tmp_path: Path, module: str, text: str, status: str, words: str) -> None:
    package(tmp_path, "deepspeed", text)
    said = look(tmp_path, {"module": module})[module]
    assert (said.status, words in said.evidence) == (status, True), said


def test_horovod_without_its_library(tmp_path: Path) -> None:
    package(tmp_path, "torch", "")
    package(tmp_path, "horovod", "")
    package(tmp_path / "horovod", "torch", "")
    said = look(tmp_path, {"module": "horovod"})["horovod"]
    assert (said.status, said.evidence) == ("missing", "horovod.torch: has no compiled library")
    (tmp_path / "horovod" / "torch" / "__init__.py").write_text("def init(): raise SystemExit(9)\n")
    assert look(tmp_path, {"module": "horovod"})["horovod"].status == "have"  # and nothing was started


def test_room_the_plugin_and_the_clock(tmp_path: Path) -> None:
    said = look(tmp_path, {"space": [str(tmp_path), "/proc/nosuch"], "fabric": True}, NCCL_NET_PLUGIN="/x.so")
    assert said["clock"].status == "have"
    assert said["space"].status == "missing"
    assert said["space"].evidence.startswith("/proc/nosuch: FileNotFoundError")
    assert (said["fabric-plugin"].status, "by TCP" in said["fabric-plugin"].evidence) == ("missing", True)


def test_a_node_that_gives_no_answer_is_named(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_bytes(PROBE_FILE.read_bytes())
    lines = [
        PREFIX + json.dumps({"host": "n1", "check": "gpus", "status": "missing", "evidence": "lists 7"}),
        PREFIX + json.dumps({"host": "n2", "check": "gpus", "status": "have", "evidence": "lists 8"}),
        "hpclaunch-preflight of something else",
    ]
    words = [sys.executable, str(tmp_path / "probe.py"), "verdict", "3", "n1", "n2.site.org", "n3"]
    answer = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True)
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1] == (
        "preflight failed: n1: gpus: lists 7; n3: no answer (2 of 3 nodes answered)"
    )
    assert failed_nodes(read_preflight("\n".join(lines) + "\n" + answer.stdout)) == {
        "n1": "gpus: lists 7",
        "n3": "answer: no answer (2 of 3 nodes answered)",
    }
    alike = [line.replace("n2", "n1").replace("n1", f"n{n}", 1) for n in (1, 2) for line in lines[:1]]
    for host in ("n1", "n2"):
        alike.append(PREFIX + json.dumps({"host": host, "check": "clock", "status": "have", "evidence": "x"}))
    alone = PREFIX + json.dumps({"host": "n1", "check": "space", "status": "missing", "evidence": "/nosuch"})
    for text, count, sentence in (
        ("\n".join(alike), "2", "preflight failed: all 2 nodes: gpus: lists 7"),
        (alone, "1", "preflight failed: n1: space: /nosuch"),
    ):
        answer = subprocess.run([*words[:3], count], input=text, capture_output=True, text=True)
        assert (answer.returncode, answer.stdout) == (1, f"{sentence}\n")
        assert failed_nodes(read_preflight(text)) == {}
    fewer = subprocess.run(
        [*words[:3], "1", "n1", "n2"], input=lines[1], capture_output=True, text=True, check=True
    )
    assert fewer.stdout == ""


def test_what_is_looked_at_follows_from_the_site_and_the_framework() -> None:
    def wanted(site: str, **asked: Any) -> dict[str, Any]:
        profile = load_site(site)
        request = JobRequest(site=site, command=Command(argv=("python",)), preflight=True, **asked)
        plan = make_plan(request, profile, site_topology(profile), JobPlace())
        assert plan.preflight is not None
        (text,) = (word.strip("'") for word in plan.preflight.probe if word.startswith("'{"))
        document: dict[str, Any] = json.loads(text)
        return document

    lumi = {"site": "lumi-g", "account": "project_465000001"}
    assert wanted(**lumi, nodes=2, framework="horovod") == {
        "cpus": "1-7,9-15,17-23,25-31,33-39,41-47,49-55,57-63",
        "gpus": 8,
        "vendor": "amd",
        "fabric": True,
        "module": "horovod",
    }
    assert "fabric" not in wanted(**lumi, nodes=1, framework="torch")
    assert "fabric" not in wanted(**lumi, nodes=2, framework="mpi4py")
    assert wanted("generic-slurm", nodes=2, space=("/a b",)) == {"space": ["/a b"]}


@pytest.mark.mpi
def test_the_ranks_do_not_start_on_this_machine_where_it_fails(tmp_path: Path) -> None:
    started = tmp_path / "started"
    words = ("submit", "--site", "local", "--tasks", "2", "--preflight", "--json", "--space")
    answer = hpclaunch(*words, "/nosuch folder", "--", "touch", str(started))
    assert answer.returncode == 1
    assert not started.exists()
    assert "preflight failed: " in answer.stderr
    assert "space: /nosuch folder: FileNotFoundError" in answer.stderr
    record = record_of(answer)
    assert (record["state"], record["exit_code"]) == ("failed", 1)
    assert {each["check"]: each["status"] for each in record["preflight"]}["space"] == "missing"
    good = hpclaunch(*words, str(tmp_path), "--", "touch", str(started))
    assert good.returncode == 0, good.stderr
    assert started.exists()
    assert {each["status"] for each in record_of(good)["preflight"]} == {"have"}
    binding = record_of(good)["binding"]
    assert binding["ok"], binding


@pytest.fixture
def a_bad_node(lumig: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fake rocm-smi of the first attempt's second node lists a GPU less, then and ever after.

    Returns the file that names that node.
    """
    tool, bad = tmp_path / "rocm-smi", tmp_path / "bad"
    tool.write_text(
        f"""#!/bin/bash
[ -e {bad} ] || [ "$SLURM_NODEID" != 1 ] || echo "$SLURMD_NODENAME" > {bad}
FAKE_GPUS=8
if [ "$(cat {bad} 2> /dev/null)" = "$SLURMD_NODENAME" ]; then FAKE_GPUS=7; fi
export FAKE_GPUS
exec {FAKES}/rocm-smi "$@"
"""
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CONF", str(lumig.conf))
    monkeypatch.setenv("BASH_ENV", "/usr/share/modules/init/bash")
    monkeypatch.setenv("MODULEPATH", str(Path(__file__).parents[1] / "data" / "modulefiles"))
    monkeypatch.setenv("HPCLAUNCH_TEST_PYTHON_FOLDER", str(Path(sys.executable).parent))
    return bad


LUMI = ("submit", "--site", "lumi-g", "--account", "project_465000001", "--nodes", "2", "--wait", "--json")
UNBOUND = ("--mpi", "none", "--binding", "off", "--preflight")
RUN = ("--", "bash", "-c", "echo RAN $SLURMD_NODENAME")


def ran_on(answer: subprocess.CompletedProcess[str]) -> set[str]:
    return {line.split()[1] for line in answer.stderr.splitlines() if line.startswith("RAN")}


@pytest.mark.slurm
def test_a_bad_node_is_named_and_left_out_of_the_next_attempt(a_bad_node: Path) -> None:
    first = hpclaunch(*LUMI, *UNBOUND, *RUN)
    assert first.returncode == 1, first.stderr
    assert ran_on(first) == set()
    node = a_bad_node.read_text().strip()
    assert f"preflight failed: {node}: gpus: rocm-smi lists 7 GPUs, the job needs 8" in first.stderr
    record = record_of(first)
    gpus = {each["host"]: each["status"] for each in record["preflight"] if each["check"] == "gpus"}
    assert len(gpus) == 2
    assert [host for host, status in gpus.items() if status == "missing"] == [node]
    second = hpclaunch("resubmit", record["id"], "--exclude-bad-nodes", "--wait", "--json")
    assert second.returncode == 0, second.stderr
    assert f"left out: {node}: gpus: rocm-smi lists 7 GPUs" in second.stderr
    assert len(ran_on(second)) == 2
    assert node not in ran_on(second)


@pytest.mark.slurm
def test_a_job_goes_on_without_the_bad_node_by_itself(a_bad_node: Path) -> None:
    answer = hpclaunch(*LUMI, *UNBOUND, "--max-restarts", "1", "--exclude-bad-nodes", *RUN)
    assert answer.returncode == 0, answer.stderr
    node = a_bad_node.read_text().strip()
    assert f"hpclaunch: once more without {node}: restart 1 of 1" in answer.stderr
    assert len(ran_on(answer)) == 2
    assert node not in ran_on(answer)
    record = record_of(answer)
    assert (record["state"], record["exit_code"]) == ("done", 0)
    assert node in {each["host"] for each in record["preflight"] if each["status"] == "missing"}


@in_one_test(
    "site, asked, words",
    [
        ("generic-slurm", {"max_restarts": 1}, "without --preflight"),
        ("generic-slurm", {"preflight": True}, "without --max-restarts"),
        ("generic-pbs", {"preflight": True, "max_restarts": 1}, "PBS has no option that leaves nodes out"),
        ("generic-slurm", {"preflight": True, "array": "0-1"}, "the jobs of an array"),
    ],
)
def test_going_on_without_bad_nodes_takes_a_look_and_restarts(
    site: str, asked: dict[str, Any], words: str
) -> None:
    request = JobRequest(site=site, command=Command(argv=("x",)), exclude_bad_nodes=True, **asked)
    with pytest.raises(BadInputError, match=words):
        make_plan(request, load_site(site), None, JobPlace())


@pytest.mark.slurm
def test_every_job_of_an_array_looks_at_its_nodes(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    words = ("submit", "--site", "generic-slurm", "--array", "0-1", "--wait", "--json", "--preflight")
    answer = hpclaunch(*words, "--space", "/nosuch", "--", "echo", "RAN")
    assert answer.returncode == 1, answer.stderr
    assert "RAN" not in answer.stderr
    record = record_of(answer)
    assert {each["check"] for each in record["preflight"] if each["status"] == "missing"} == {"space"}
    assert {job["state"] for job in record["array"].values()} == {"failed"}
    again = hpclaunch("resubmit", record["id"], "--exclude-bad-nodes", "--dry-run")
    assert "no node failed" in again.stderr


@pytest.mark.slurm
def test_no_node_is_bad_where_all_fail_the_same_check(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    words = ("submit", "--site", "generic-slurm", "--nodes", "2", "--wait", "--json", "--preflight")
    again = ("--max-restarts", "1", "--exclude-bad-nodes")
    answer = hpclaunch(*words, *again, "--space", "/nosuch", "--", "echo", "RAN")
    assert answer.returncode == 1, answer.stderr
    assert "preflight failed: all 2 nodes: space: /nosuch: FileNotFoundError" in answer.stderr
    assert "once more without" not in answer.stderr
    repeated = hpclaunch("resubmit", record_of(answer)["id"], "--exclude-bad-nodes", "--dry-run")
    assert "no node failed" in repeated.stderr
    assert "#SBATCH --exclude=" not in repeated.stdout
