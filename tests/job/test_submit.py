"""``hpclaunch submit`` as people call it: what it prints, refuses, runs and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hpclaunch.package_data import resource_dir
from tests.plan.test_golden import ACCOUNTS

pytestmark = pytest.mark.slow

MASKS = "0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000"
SHIPPED = sorted(path.stem for path in resource_dir("site_profiles").glob("*.yaml"))


def submit(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpclaunch", "submit", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize("site", SHIPPED)
def test_a_dry_run_of_every_site_prints_a_script_and_leaves_nothing(site: str, tmp_path: Path) -> None:
    account = ("--account", ACCOUNTS[site]) if site in ACCOUNTS else ()
    answer = submit("--site", site, *account, "--dry-run", "mnist", cwd=tmp_path)
    assert (answer.returncode, answer.stdout.splitlines()[0].split()[0]) == (0, "#!/bin/bash"), answer.stderr
    for line in ("export MASTER_ADDR MASTER_PORT=$((10000 + ", "hpclaunch.train"):
        assert line in answer.stdout
    assert list(tmp_path.iterdir()) == []
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*"))


def test_lumi_g_gets_the_masks_the_site_documents() -> None:
    answer = submit("--site", "lumi-g", "--account", "project_465000001", "--dry-run", "mnist")
    assert f"--cpu-bind=mask_cpu:{MASKS} " in answer.stdout


def test_swapped_gpus_swap_the_masks(tmp_path: Path) -> None:
    """The masks follow the profile's topology: nothing is pasted in."""
    folder = resource_dir("site_profiles")
    kind = (folder / "nodes" / "mi250x8-slingshot.yaml").read_text()
    gpus = [line for line in kind.splitlines() if "bus_id" in line]
    gpus[0], gpus[2] = gpus[2], gpus[0]
    text = (folder / "lumi-g.yaml").read_text()
    text = text.replace("\nnode:\n", "\nnode:\n  gpus:\n" + "\n".join(gpus) + "\n", 1)
    profile = tmp_path / "swapped.yaml"
    profile.write_text(text.replace("name: lumi-g", "name: swapped", 1))
    answer = submit("--site", str(profile), "--account", "project_465000001", "--dry-run", "mnist")
    masks = MASKS.split(",")
    masks[0], masks[2] = masks[2], masks[0]
    assert f"--cpu-bind=mask_cpu:{','.join(masks)} " in answer.stdout, answer.stderr


def test_the_profiles_environment_stands_where_the_job_names_none(tmp_path: Path) -> None:
    text = (resource_dir("site_profiles") / "generic-slurm.yaml").read_text()
    profile = tmp_path / "own.yaml"
    profile.write_text(
        text.replace("name: generic-slurm", "name: own", 1) + "environment: {modules: [git, 'lab/1']}\n"
    )
    job = tmp_path / "job.yaml"
    job.write_text("environment: {modules: [other]}\n")
    words = ("--site", str(profile), "--nodes", "1", "--dry-run")
    plain, with_job = submit(*words, "mnist"), submit(*words, "--file", str(job), "mnist")
    assert "module load git  #" in plain.stdout, plain.stderr
    assert "module load lab/1  #" in plain.stdout
    assert "module load other  #" in with_job.stdout
    assert "lab/1" not in with_job.stdout
    explained = submit(*words, "--explain", "mnist")
    assert "site profile own" in explained.stdout + explained.stderr


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (("--nodes", "1025"), "at most 1024 allowed"),
        (("--nodes", "5", "--partition", "small-g"), "at most 4 allowed"),
        (("--time", "4d"), "no queue of lumi-g takes 1 node for 96:00:00"),
        (("--time", "49h", "--partition", "standard-g"), "at most 2-00:00:00 allowed"),
        (("--tasks-per-node", "8", "--cpus-per-task", "8"), "64 cores per node requested"),
        (("--tasks-per-node", "64"), "64 cores per node requested"),
        (("--no-exclusive", "--partition", "small-g"), "valid on whole nodes only"),
        (("--account", "me"), "is not an account of lumi-g"),
        (("--tasks", "0"), "--tasks 0: it must be at least 1"),
        (("--nodes", "-1"), "--nodes -1: it must be at least 1"),
        (("--time", "30x"), "bad --time '30x'"),
        (("--max-restarts", "1", "--warn-before", "5"), "bad --warn-before '5'"),
        (("--idle-timeout", "5"), "bad --idle-timeout '5'"),
        (("--tasks-per-node", "100"), "at most 56 ranks per node, with one core each"),
        (("--name", "a\nb"), "--name 'a\\nb'"),
        (("--name", " "), "--name ' '"),
        (("--name", "a b", "--site", "polaris"), "--name 'a b'"),
        (("--site", "lumi"), "lumi-g"),
        (("--file", "nosuch.yaml"), "nosuch.yaml"),
    ],
)
def test_what_the_site_would_refuse_is_refused_first(words: tuple[str, ...], finding: str) -> None:
    usual = ("--site", "lumi-g", "--account", "project_465000001")
    answer = submit(*usual, *words, "mnist")
    assert answer.returncode == 3, answer.stderr
    assert answer.stdout == ""
    assert finding in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*"))


def test_a_missing_account_is_refused_with_its_source() -> None:
    answer = submit("--site", "lumi-g", "mnist")
    assert answer.returncode == 3
    assert "requires a project account" in answer.stderr
    assert "https://docs.lumi-supercomputer.eu" in answer.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--nosuch",), 2),
        (("--tasks", "many"), 3),
        (("train",), 2),
        (("--binding", "tight", "mnist"), 3),
    ],
)
def test_wrong_usage_is_2_and_a_wrong_value_3(words: tuple[str, ...], code: int) -> None:
    answer = submit("--site", "local", *words)
    assert (answer.returncode, "Traceback" in answer.stderr) == (code, False)


def test_explain_says_where_each_value_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("site: lumi-g\naccount: project_465000001\nnodes: 2\ncommand: [mnist]\n")
    answer = submit("--file", str(file), "--nodes", "3", "--explain")
    rows = {line.split()[0]: line for line in answer.stdout.splitlines()}
    assert rows["nodes"].split(maxsplit=2) == ["nodes", "3", "command line"]
    assert f"job file {file}" in rows["account"]
    assert "standard-g" in rows["partition"]
    assert "first partition that fits" in rows["partition"]
    assert "default" in rows["time"]
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*"))


def test_dry_run_as_json_is_one_document() -> None:
    answer = submit("--site", "polaris", "--account", "P", "--dry-run", "--json", "mnist")
    document = json.loads(answer.stdout)
    assert document["site"] == "polaris"
    assert document["script"].startswith("#!/bin/bash")
    assert {"name", "value", "origin"} == set(document["settings"][0])


@pytest.mark.mpi
def test_arguments_arrive_exactly_as_given(tmp_path: Path) -> None:
    given = ["a b", "it's", '"', "$HOME", "`id`", "$(id)", "\\n", "é", "", "*", "-x", "--", "a\nb", "!"]
    program = tmp_path / "show me.py"
    program.write_text("import json, os, sys\nprint('GOT', os.environ['RANK'], json.dumps(sys.argv[1:]))\n")
    answer = submit("--site", "local", "--tasks", "2", "--", sys.executable, str(program), *given)
    assert answer.returncode == 0, answer.stderr
    got = sorted(line for line in answer.stdout.splitlines() if line.startswith("GOT"))
    assert [line.split(" ", 2)[1] for line in got] == ["0", "1"]
    assert [json.loads(line.split(" ", 2)[2]) for line in got] == [given, given]


@pytest.mark.mpi
@pytest.mark.parametrize(("status", "code", "state"), [(0, 0, "done"), (7, 1, "failed"), (3, 1, "failed")])
def test_the_end_of_a_job_is_told(status: int, code: int, state: str) -> None:
    answer = submit("--site", "local", "--tasks", "2", "--json", "--", "bash", "-c", f"exit {status}")
    document = json.loads(answer.stdout)
    assert (answer.returncode, document["state"], document["exit_code"]) == (code, state, status)
    assert document["result"] is None


@pytest.mark.mpi
def test_ranks_are_bound_to_cores_of_their_own_and_say_so() -> None:
    if len(os.sched_getaffinity(0)) < 2:  # pragma: no cover
        pytest.fail("this test needs two CPUs")
    submit("--site", "local", "--tasks", "2", "--", "true")
    answer = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "verify", "--json"], capture_output=True, text=True, check=True
    )
    ranks = json.loads(answer.stdout)["ranks"]
    assert [rank["verdict"] for rank in ranks] == ["ok", "ok"]
    assert ranks[0]["cpus"] != ranks[1]["cpus"]


@pytest.mark.mpi
def test_a_job_is_recorded(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(
        ["git", "-C", str(tmp_path), *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True
    )
    answer = submit("--site", "local", "--name", "kept", "--json", "--", "echo", "hello", cwd=tmp_path)
    job = json.loads(answer.stdout)["id"]
    record = json.loads(
        (Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job / "record.json").read_text()
    )
    assert (record["name"], record["state"], record["exit_code"]) == ("kept", "done", 0)
    assert len(record["git_commit"]) == 40
    assert len(record["profile_digest"]) == 64
    assert record["versions"]["hpclaunch"]
    assert record["request"]["command"]["argv"] == ["echo", "hello"]
    assert record["plan"]["binding"]["ranks"][0]["cpus"]
    assert (record["plan"]["walltime_s"], record["plan"]["queue"], record["plan"]["at_start"]) == (None,) * 3
    assert not record["plan"].keys() & {"place", "choice", "share"}
    assert record["started"] <= record["ended"]
    logs = subprocess.run([sys.executable, "-m", "hpclaunch", "logs", job], capture_output=True, text=True)
    assert "hello" in logs.stdout
    jobs = subprocess.run([sys.executable, "-m", "hpclaunch", "jobs"], capture_output=True, text=True)
    assert job in jobs.stdout


@pytest.mark.mpi
def test_ctrl_c_ends_every_rank(tmp_path: Path) -> None:
    mark = f"hpclaunch-test-{os.getpid()}"
    command = [sys.executable, "-m", "hpclaunch", "submit", "--site", "local", "--tasks", "2", "--"]
    program = f"import time, sys; open(r'{tmp_path}/' + str(__import__('os').getpid()), 'w'); time.sleep(600)"
    launcher = subprocess.Popen([*command, sys.executable, "-c", program, mark], stdout=subprocess.DEVNULL)
    while len(list(tmp_path.iterdir())) < 2:
        assert launcher.poll() is None
        time.sleep(0.05)
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait() == 130
    assert [p.pid for p in psutil.process_iter() if mark in " ".join(_cmdline(p))] == []


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
