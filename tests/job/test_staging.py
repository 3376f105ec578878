"""``hpclaunch submit --stage``: on this machine, and on two nodes of a real Slurm with their own storage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pytest

from tests.in_process import hpclaunch_here
from tests.remote.staging import content, make_data_set
from tests.testbed.cluster import Slurm
from tests.testbed.second_user import SecondUser
from tests.train.mpirun import write_digits

SHOW = 'cd "$HPCLAUNCH_STAGED" && find . -type f -exec sha256sum {} + | sort && echo "on $(hostname)"'


def hpclaunch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hpclaunch", *words], capture_output=True, text=True, timeout=300
    )


def sums(folder: Path) -> str:
    """What SHOW prints of a copy."""
    command = "find . -type f -exec sha256sum {} + | sort"
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_data_set(tmp_path / "it's all")


@pytest.mark.mpi
def test_a_job_on_this_machine_finds_its_data_and_leaves_nothing(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "local").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "local"))
    done = hpclaunch("submit", "--site", "local", "--stage", str(source), "--", "sh", "-c", SHOW)
    assert done.returncode == 0, done.stderr + done.stdout
    assert sums(source) in done.stdout
    assert "verified on 1 node, in" in done.stdout
    assert list((tmp_path / "local").glob("hpclaunch-*")) == []


@pytest.mark.mpi
def test_the_bundled_training_reads_what_was_staged(tmp_path: Path) -> None:
    digits = write_digits(tmp_path / "digits", 301, 50)
    done = hpclaunch(
        *("submit", "--site", "local", "--tasks", "2", "--stage", str(digits), "--json", "mnist", "--"),
        *("--data", "$HPCLAUNCH_STAGED", "--epochs", "1"),
    )
    assert done.returncode == 0, done.stderr
    source = json.loads(done.stdout)["result"]["dataset_source"]
    assert source.split(" (")[0].endswith("/digits")
    assert not source.startswith(str(digits))


@pytest.mark.mpi
def test_two_items_are_named_in_their_order_and_may_stay(tmp_path: Path, source: Path) -> None:
    (tmp_path / "second").write_text("2")
    items = ("--stage", f"{source}:{tmp_path}/a/data", "--stage", f"{tmp_path / 'second'}:{tmp_path}/b/two")
    words = (
        "submit",
        "--site",
        "local",
        *items,
        "--keep-staged",
        "--",
        "sh",
        "-c",
        'echo "$HPCLAUNCH_STAGED"',
    )
    done = hpclaunch(*words)
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{tmp_path}/a/data:{tmp_path}/b/two\n" in done.stdout
    assert content(tmp_path / "a" / "data") == content(source)
    assert (tmp_path / "b" / "two").read_text() == "2"
    assert "1 had it already" in hpclaunch(*words).stdout


@pytest.mark.mpi
def test_a_job_whose_data_cannot_be_staged_fails_before_its_ranks_start(tmp_path: Path, source: Path) -> None:
    (tmp_path / "there").mkdir()
    item = f"{source}:{tmp_path}/there"
    done = hpclaunch("submit", "--site", "local", "--stage", item, "--", "echo", "started")
    assert done.returncode == 1
    assert "started" not in done.stdout.splitlines()
    assert "it exists, and was not made by --stage" in done.stderr


def test_a_source_that_is_not_there_is_refused_before_anything_is_submitted(tmp_path: Path) -> None:
    done = hpclaunch_here("submit", "--site", "local", "--stage", f"{tmp_path}/none", "--", "true")
    assert done.returncode == 3
    assert f"--stage {tmp_path}/none: {tmp_path}/none does not exist" in done.stderr
    assert json.loads(hpclaunch_here("jobs", "--json").stdout or "[]") == []


# --- two nodes, each with its own /dev/shm ------------------------------------------------------------

ON_TWO = ("submit", "--site", "generic-slurm", "--nodes", "2", "--tasks-per-node", "1", "--time", "5m")


def on_the_nodes(cluster: Slurm) -> list[str]:
    """What all nodes have in the folder of the tests."""
    command = "find /dev/shm/stage -mindepth 1 2> /dev/null || :"
    done = cluster.run("srun", "--nodes=4", "--ntasks=4", "--mpi=none", "sh", "-c", command)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slurm
@pytest.mark.parametrize("form", ["folder", "tar", "file", "image"])
def test_two_nodes_get_the_data(on_slurm: Slurm, tmp_path: Path, source: Path, form: str) -> None:
    wanted, show = source, SHOW
    if form == "tar":
        wanted = tmp_path / "all.tar"
        with tarfile.open(wanted, "w") as tar:
            tar.add(source, ".")
    elif form != "folder":
        wanted = tmp_path / "all.sqsh"
        subprocess.run(["mksquashfs", source, wanted, "-quiet", "-no-progress"], check=True)
    if form == "file":
        show = 'sha256sum < "$HPCLAUNCH_STAGED" && echo "on $(hostname)"'
    item = f"{wanted}:/dev/shm/stage/data{'.sqsh' if form == 'file' else ''}"
    links = ("--stage-links", "keep")
    done = hpclaunch(*ON_TWO, "--wait", "--stage", item, *links, "--", "sh", "-c", show)
    assert done.returncode == 0, done.stderr + done.stdout
    assert {line for line in done.stdout.splitlines() if line.startswith("on ")} == {"on n1", "on n2"}
    expected = sums(source) if form != "file" else content(wanted)[""]
    for line in expected.splitlines():
        assert done.stdout.count(line) == 2, done.stdout
    how = "(read once, copied from node to node)" if form == "folder" else "(sbcast)"
    made = ", mounted" if form == "image" and os.access("/dev/fuse", os.W_OK) else ""
    assert f"verified on 2 nodes{made}, in " in done.stdout
    assert how in done.stdout
    assert on_the_nodes(on_slurm) == []


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("phase", "delay_s"), [("staging", 0.0), ("staging", 0.2), ("sbcast", 0.0), ("running", 0.0)]
)
def test_a_cancelled_job_leaves_nothing_on_its_nodes(
    on_slurm: Slurm, tmp_path: Path, phase: str, delay_s: float, source: Path
) -> None:
    if phase != "running":
        source = make_data_set(tmp_path / "large", [300_000_000])
    if phase == "sbcast":
        source = next((source / "train").glob("0 *"))
    started = hpclaunch(
        *(*ON_TWO, "--no-wait", "--stage", f"{source}:/dev/shm/stage/data", "--"),
        *("sh", "-c", "echo running; sleep 1000"),
    )
    assert started.returncode == 0, started.stderr
    job = started.stdout.strip()
    folder = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job

    def reached() -> bool:
        if phase == "sbcast":
            return len(list(folder.glob("staging.*/0.node.*"))) == 2
        if phase == "staging":
            return any(path.name == "0.plan" for path in folder.glob("staging.*/*"))
        return "running" in ((folder / "out.log").read_text() if (folder / "out.log").exists() else "")

    until = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(delay_s)
    assert hpclaunch("cancel", job).returncode == 0
    assert hpclaunch("wait", job).stdout.strip() == "cancelled"
    while on_slurm.run("squeue", "-h", "-t", "completing").stdout.strip():  # its processes are ending
        assert time.monotonic() < until + 120
        time.sleep(0.2)
    assert on_the_nodes(on_slurm) == []


ATTACK = """
cd "$TMP"
for name in hpclaunch-$JOB hpclaunch-$JOB-0 hpclaunch-$NUMBER $(ls -A); do
  mkdir -m 777 "$name" || :
  for folder in "$name" "$name"/*; do
    mv "$folder/data" "$folder/old" || :
    mkdir -p -m 777 "$folder/data" || :
    printf '#!/bin/sh\\necho "EVIL as $(id -un)"\\n' > "$folder/data/run.sh" || :
    chmod 755 "$folder/data/run.sh" || :
    echo '{"files": {}, "bytes": 0}' > "$folder/.data.staged.json" || :
  done
done
"""
"""What another user of the node does before the job starts, and while it runs, with each name that can be
known: the job's id, its number in the queue, and what stands in TMPDIR."""


@pytest.mark.slurm
def test_another_user_of_the_node_does_not_decide_what_runs(
    on_slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_user: SecondUser
) -> None:
    with tempfile.TemporaryDirectory(prefix="shared", dir="/tmp") as tmp:
        Path(tmp).chmod(0o1777)
        monkeypatch.setenv("TMPDIR", tmp)
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "run.sh").write_text('#!/bin/sh\necho "GOOD as $(id -un)"\n')
        (tmp_path / "data" / "run.sh").chmod(0o755)
        go = tmp_path / "go"
        program = (
            f'until [ -e "{go}" ]; do sleep 0.1; done; "$HPCLAUNCH_STAGED/run.sh"; ls -A "$HPCLAUNCH_STAGED"'
        )
        job = hpclaunch(
            *("submit", "--site", "generic-slurm", "--nodes", "1", "--tasks-per-node", "1", "--time", "5m"),
            *("--sbatch-arg=--hold", "--no-wait", "--stage", str(tmp_path / "data")),
            *("--", "sh", "-c", program),
        ).stdout.strip()
        record = json.loads(hpclaunch("status", job, "--json").stdout)
        number = record["scheduler_id"]
        names = {"TMP": tmp, "JOB": job, "NUMBER": number}
        second_user.run("bash", "-c", ATTACK, **names)
        on_slurm.run("scontrol", "release", number)
        log = Path(record["folder"]) / "out.log"
        while not log.exists() or "verified on 1 node" not in log.read_text():
            assert json.loads(hpclaunch("status", job, "--json").stdout)["state"] in ("queued", "running")
            time.sleep(0.1)
        second_user.run("bash", "-c", ATTACK, **names)
        go.touch()
        done = hpclaunch("wait", job)
        assert (done.returncode, done.stdout) == (0, "done\n"), log.read_text()
        lines = log.read_text().splitlines()
        assert "GOOD as root" in lines
        assert "run.sh" in lines
        assert not [line for line in lines if "EVIL" in line]
