"""Dependencies, repeated jobs, allocations and interactive jobs on a real Slurm of four nodes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm
from tests.testbed.kit import record_of

pytestmark = pytest.mark.slurm
HPCLAUNCH = (sys.executable, "-m", "hpclaunch")
USUAL = ("--site", "generic-slurm", "--time", "5m", "--mpi", "none", "--no-test-only")


def submit(*words: str) -> str:
    """Submit without waiting and return the job's id."""
    answer = hpclaunch("submit", *USUAL, *words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def wait(job: str) -> str:
    return str(json.loads(hpclaunch("wait", job, "--json").stdout)["state"])


@pytest.fixture(autouse=True)
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


def until(file: Path) -> str:
    """Return the shell command that waits for a file."""
    return f"until [ -e {shlex.quote(str(file))} ]; do sleep 0.05; done"


def test_a_job_starts_after_another_has_ended_well(tmp_path: Path) -> None:
    go, log = tmp_path / "go", tmp_path / "log"
    first = submit("--", "bash", "-c", f"{until(go)}; echo first >> {log}")
    second = submit("--after", first, "--", "bash", "-c", f"echo second >> {log}")
    assert "afterok" in (Path(record_of(second)["folder"]) / "job.sh").read_text()
    assert "Dependency: it waits for another job to end" in hpclaunch("status", second).stdout
    go.touch()
    assert wait(second) == "done"
    assert log.read_text() == "first\nsecond\n"
    third = submit("--after", first, "--", "true")
    assert "--dependency" not in (Path(record_of(third)["folder"]) / "job.sh").read_text()


def test_a_job_whose_dependency_failed_does_not_pend_for_ever(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = submit("--", "bash", "-c", f"{until(go)}; exit 3")
    numbered = record_of(first)["scheduler_id"]
    strict, any_end = (
        submit("--after", numbered, "--", "true"),
        submit("--after", first, "--after-any", "--", "true"),
    )
    go.touch()
    assert wait(any_end) == "done"
    assert wait(strict) == "cancelled"
    answer = hpclaunch("submit", *USUAL, "--after", first, "--", "true")
    assert answer.returncode == 3
    assert f"job {first} is failed, so this one would never start" in answer.stderr


def test_a_job_that_is_cancelled_before_it_started_has_no_start() -> None:
    job = submit("--directive", "--hold", "--", "true")
    assert hpclaunch("cancel", job).returncode == 0
    assert wait(job) == "cancelled"
    record = record_of(job)
    assert (record["started"], record["ended"] is None) == (None, False)


def interactive_after(first: str) -> subprocess.Popen[str]:
    words = ("submit", *USUAL, "--interactive", "--after", first, "--json", "--", "echo", "SECOND")
    return subprocess.Popen((*HPCLAUNCH, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_interactive_job_waits_for_another_one(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = submit("--", "bash", "-c", f"{until(go)}; echo first")
    with interactive_after(first) as second:
        go.touch()
        out, err = second.communicate()
    assert second.returncode == 0, err
    assert json.loads(out)["state"] == "done"
    assert "SECOND" in err


def test_an_interactive_job_does_not_wait_for_ever_for_one_that_failed(tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = submit("--", "bash", "-c", f"{until(go)}; exit 3")
    with interactive_after(first) as second:
        newest: dict[str, Any] = {"id": first}
        while newest["id"] == first or newest["state"] != "queued":
            assert second.poll() is None
            newest = json.loads(hpclaunch("status", "last", "--json").stdout)
        go.touch()
        out, err = second.communicate()
    assert second.returncode == 1, err
    assert "SECOND" not in err
    assert json.loads(out)["state"] in ("cancelled", "failed")


def test_a_request_is_submitted_again_without_the_node_that_failed(on_slurm: Slurm, tmp_path: Path) -> None:
    """A node that dies under a job is named in Slurm's own words in the log."""
    pids = tmp_path / "node"
    words = ("--nodes", "2", "--sbatch-arg=--no-requeue", "--")
    job = submit(*words, "bash", "-c", f'[ "$RANK" = 0 ] || echo "$SLURMD_NODENAME" > {pids}; sleep 600')
    while not (pids.exists() and pids.read_text().strip()):
        assert hpclaunch("status", job, "--json").returncode == 0
    node = pids.read_text().strip()
    on_slurm.run("scontrol", "update", f"nodename={node}", "state=down", "reason=trial")
    try:
        answer = hpclaunch("wait", job)
        assert "NODE_FAIL" in answer.stderr
        answer = hpclaunch("resubmit", job, "--exclude-bad-nodes", "--dry-run")
        assert answer.returncode == 0, answer.stderr
        assert f"#SBATCH --exclude={node}  #" in answer.stdout
        assert f"left out: {node}: " in answer.stderr
    finally:
        on_slurm.run("scontrol", "update", f"nodename={node}", "state=resume")


def test_a_request_is_submitted_again(tmp_path: Path) -> None:
    first = submit("--nodes", "2", "--name", "again", "--", "bash", "-c", "pwd; echo $RANK")
    assert wait(first) == "done"
    answer = subprocess.run(
        [*HPCLAUNCH, "resubmit", first, "--wait", "--no-test-only"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count(str(Path.cwd())) == 2
    assert f"job {first}" in answer.stderr
    second = answer.stderr.split("hpclaunch: job ")[1].split()[0]
    record = record_of(second)
    assert (record["name"], record["nodes"], record["resubmit_of"]) == ("again", 2, first)
    assert second != first


ALLOCATED = 'echo "GOT $RANK of $WORLD_SIZE on $SLURMD_NODENAME in $SLURM_JOB_ID"'


def in_allocation(on: Slurm, *words: str, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["salloc", "-t", "5", *options, *HPCLAUNCH, "submit", *USUAL, *words], capture_output=True, text=True
    )


def test_in_an_allocation_a_job_is_a_step_of_it(on_slurm: Slurm) -> None:
    answer = in_allocation(on_slurm, "--", "bash", "-c", ALLOCATED, options=("-N2", "--ntasks-per-node=2"))
    assert answer.returncode == 0, answer.stderr
    number = answer.stderr.split("Granted job allocation ")[1].split()[0]
    lines = sorted(line for line in answer.stdout.splitlines() if line.startswith("GOT"))
    assert [line.split(" on ")[0] for line in lines] == ["GOT 0 of 2", "GOT 1 of 2"]
    assert len({line.split()[5] for line in lines}) == 2
    assert {line.split()[-1] for line in lines} == {number}


def test_what_an_allocation_has_no_room_for_is_refused(on_slurm: Slurm) -> None:
    answer = in_allocation(on_slurm, "--nodes", "2", "--", "true", options=("-N1",))
    assert answer.returncode == 3
    assert "2 nodes requested; the allocation" in answer.stderr
    answer = in_allocation(on_slurm, "--tasks-per-node", "8", "--", "true", options=("-N1", "-n1"))
    assert answer.returncode == 3
    assert "8 CPUs per node requested" in answer.stderr


def test_no_here_queues_a_job_of_its_own(on_slurm: Slurm) -> None:
    words = ("--no-here", "--nodes", "1", "--wait", "--", "bash", "-c", ALLOCATED)
    answer = in_allocation(on_slurm, *words, options=("-N1",))
    assert answer.returncode == 0, answer.stderr
    number = answer.stderr.split("Granted job allocation ")[1].split()[0]
    assert "GOT 0 of 1" in answer.stdout
    assert f"in {number}" not in answer.stdout


@pytest.mark.parametrize("cleared", [True, False])
def test_what_an_outer_allocation_wished_does_not_reach_a_queued_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cleared: bool
) -> None:
    """The same script without the line that clears it shows that it would."""
    outer = ("-N1", "-n6", "--distribution=cyclic", "--gpus-per-task=1", "--mem-per-cpu=100")
    monkeypatch.setenv("SLURM_OVERCOMMIT", "1")  # 25.05 refuses --overcommit with GPUs for each task
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")
    got = 'echo "GOT $RANK $SLURMD_NODENAME ${HPCLAUNCH_JOB_ID:-lost}"'
    words = ("--nodes", "2", "--tasks-per-node", "2", "--no-here", "--", "bash", "-c", got)
    saved, log = tmp_path / "saved", tmp_path / "log"
    hpclaunch("submit", *USUAL, "--dry-run", "--save", str(saved), *words)
    script, plan = saved / "job.sh", saved / "files" / "plan.sh"
    lines = plan.read_text().splitlines(keepends=True)
    assert sum(line.startswith("unset SLURM_") for line in lines) == 1
    plan.write_text("".join(line for line in lines if cleared or not line.startswith("unset SLURM_")))
    inner = ("sbatch", "--wait", f"--output={log}", str(script))
    done = subprocess.run(["salloc", "-t", "5", *outer, *inner], capture_output=True, text=True, cwd=tmp_path)
    ranks = [line.split()[1:] for line in log.read_text().splitlines() if line.startswith("GOT")]
    nodes = [node for _, node, _ in sorted(ranks)]
    right = done.returncode == 0 and len(ranks) == 4 and nodes[0] == nodes[1] != nodes[2] == nodes[3]
    right = right and all(job != "lost" for _, _, job in ranks)
    assert right == cleared, log.read_text() + done.stderr


def test_what_a_users_environment_asks_of_sbatch_is_not_above_the_script(
    on_slurm: Slurm, tmp_path: Path
) -> None:
    """But it is kept where the script says nothing: no partition here."""
    wishes = {"JOB_NAME": "other", "OUTPUT": f"{tmp_path}/out", "TIMELIMIT": "1", "WAIT": "1"}
    environment = {f"SBATCH_{name}": value for name, value in {**wishes, "PARTITION": "dev"}.items()}
    go = tmp_path / "go"
    words = ("--name", "mine", "--", "bash", "-c", f"echo $SLURM_JOB_NAME; {until(go)}")
    answer = hpclaunch("submit", *USUAL, *words, env={**os.environ, **environment})
    record = record_of(job := answer.stdout.strip())
    assert record["state"] == "queued"  # sbatch did not wait
    shown = on_slurm.run("scontrol", "-o", "show", "job", record["scheduler_id"]).stdout
    assert " TimeLimit=00:05:00 " in shown
    assert " Partition=dev " in shown
    go.touch()
    assert wait(job) == "done"
    assert hpclaunch("logs", job).stdout == "mine\n"
    assert not (tmp_path / "out").exists()


def test_here_outside_an_allocation_is_refused() -> None:
    answer = hpclaunch("submit", *USUAL, "--here", "--", "true")
    assert answer.returncode == 3
    assert "not in a Slurm allocation" in answer.stderr


def test_an_interactive_job_shows_its_output_and_hands_its_end_on() -> None:
    words = ("--interactive", "--nodes", "2", "--json", "--", "bash", "-c")
    answer = hpclaunch("submit", *USUAL, *words, ALLOCATED)
    assert answer.returncode == 0, answer.stderr
    assert sorted(line.split(" on ")[0] for line in answer.stderr.splitlines() if "GOT" in line) == [
        "GOT 0 of 2",
        "GOT 1 of 2",
    ]
    answer = hpclaunch("submit", *USUAL, *words, "exit 5")
    document = json.loads(answer.stdout)
    assert (answer.returncode, document["state"], document["exit_code"]) == (1, "failed", 5)
    answer = hpclaunch("submit", *USUAL, "--interactive", "--nodes", "9", "--", "true")
    assert answer.returncode == 4
    assert "Slurm refused the job" in answer.stderr


def test_ctrl_c_ends_an_interactive_jobs_allocation(on_slurm: Slurm) -> None:
    words = [*HPCLAUNCH, "submit", *USUAL, "--interactive", "--", "bash", "-c", "echo started; sleep 600"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and line != b"started\n":
        line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert wait("last") == "cancelled"
    number = json.loads(hpclaunch("status", "--json").stdout)["scheduler_id"]
    while on_slurm.run("squeue", "-h", "-j", number, "-o", "%t").stdout.strip():
        pass


def test_one_killed_rank_ends_the_job() -> None:
    program = '[ "$RANK" = 0 ] || kill -KILL $$; sleep 600'
    answer = hpclaunch("submit", *USUAL, "--nodes", "2", "--wait", "--json", "--", "bash", "-c", program)
    document = json.loads(answer.stdout)
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert "first failure reported: rank 1 on " in (reason := record_of(document["id"])["reason"])
    assert ": Killed" in reason  # Slurm may add a line on its exit code


def test_ctrl_c_while_an_interactive_job_waits_for_nodes_takes_its_request_back(on_slurm: Slurm) -> None:
    blocker = submit("--nodes", "4", "--", "sleep", "600")
    while on_slurm.run("squeue", "-h", "-j", record_of(blocker)["scheduler_id"], "-o", "%t").stdout != "R\n":
        pass
    words = [*HPCLAUNCH, "submit", *USUAL, "--interactive", "--", "true"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and b"queued and waiting for resources" not in line:
        line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert wait(said.decode().split("hpclaunch: job ")[1].split()[0]) == "cancelled"
    assert hpclaunch("cancel", blocker).returncode == 0


def test_the_lines_of_one_rank_of_a_labelled_log(tmp_path: Path) -> None:
    # Rank 1 fails once rank 0 has written: srun then ends rank 0.
    program = 'echo "from $RANK"; touch "$0/$RANK"; until [ -e "$0/0" ]; do sleep 0.1; done; exit $RANK'
    words = ("--env", "SLURM_LABELIO=1", "--", "bash", "-c", program, str(tmp_path))
    job = submit("--nodes", "2", *words)
    wait(job)
    assert hpclaunch("logs", job, "--rank", "1").stdout.splitlines()[-1] == "from 1"
    followed = hpclaunch("logs", job, "--rank", "0", "-f").stdout
    assert "from 0\n" in followed
    assert "from 1" not in followed
    refused = hpclaunch("logs", job, "--rank", "2")
    assert (refused.returncode, "has 2 ranks, from 0 on" in refused.stderr) == (3, True)
    plain = submit("--", "true")
    wait(plain)
    refused = hpclaunch("logs", plain, "--rank", "0")
    assert (refused.returncode, "do not name their ranks" in refused.stderr) == (3, True)
    assert json.loads(hpclaunch("status", job, "--json").stdout)["failure"]["rank"] == "1"
