"""Restarts from a checkpoint, and the watchdog: the job's script tells them from failures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import cancel_job
from hpclaunch.job.store import Store
from hpclaunch.package_data import resource_dir
from tests.conftest import MPI_VARIABLES
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.testbed.cluster import Slurm

FAKES = Path(__file__).parents[1] / "fakes"

# A program that keeps the agreement: on the signal it leaves with the agreed code, and when called again it
# goes on. It ends well in the run whose number is its first argument.
PROGRAM = """
import os, signal, sys, time
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
run = os.environ["HPCLAUNCH_RESTART"]
print("GOT rank", os.environ["RANK"], "run", run, flush=True)
while run != sys.argv[1] and not told:
    time.sleep(0.05)
sys.exit(int(os.environ["HPCLAUNCH_CHECKPOINT_EXIT_CODE"]) if told else 0)
"""


def submit(*words: str) -> tuple[dict[str, Any], str]:
    command = [sys.executable, "-m", "hpclaunch", "submit", "--wait", "--json", *words]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.stdout, answer.stderr
    return json.loads(answer.stdout), answer.stderr


def runs(log: str) -> list[str]:
    return sorted(line for line in log.splitlines() if line.startswith("GOT"))


# The signal comes after 3 s: on a crowded machine ranks may take more than one until they can take it.
LOCAL = ("--site", "local", "--tasks", "2", "--time", "6s", "--warn-before", "3s")
# Ranks whose framework is not known are started by mpiexec, those of torch by a shell.
BOTH = pytest.mark.parametrize("named", [(), ("--framework", "torch")], ids=["mpiexec", "direct"])


@pytest.mark.mpi
@BOTH
def test_a_job_that_checkpoints_is_called_again(named: tuple[str, ...]) -> None:
    job, log = submit(*LOCAL, *named, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1, 2)]


@pytest.mark.mpi
@BOTH
def test_restarts_are_used_up(named: tuple[str, ...]) -> None:
    job, log = submit(*LOCAL, *named, "--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "never")
    assert (job["state"], job["exit_code"]) == ("failed", 85)
    assert "checkpointed, and no restart is left (--max-restarts 1)" in log
    assert len(runs(log)) == 4


@pytest.mark.mpi
@BOTH
def test_a_failure_is_no_checkpoint(named: tuple[str, ...]) -> None:
    job, _ = submit(*LOCAL, *named, "--max-restarts", "2", "--", sys.executable, "-c", "raise SystemExit(7)")
    assert (job["state"], job["exit_code"]) == ("failed", 7)


@pytest.mark.mpi
@BOTH
def test_a_hang_is_ended_and_named(named: tuple[str, ...]) -> None:
    words = ("--site", "local", "--tasks", "2", *named, "--idle-timeout", "2s", "--", "sleep", "600")
    job, log = submit(*words)
    assert (job["state"], job["exit_code"]) == ("failed", 124)
    assert "hung: no output and no heartbeat for 2 s" in log
    assert job["hang"]["finding"].startswith("2 of 2 asleep; no output since ")


@pytest.mark.mpi
def test_a_heartbeat_keeps_a_silent_job_alive() -> None:
    beat = 'for i in 1 2 3 4 5 6 7 8; do : > "$HPCLAUNCH_HEARTBEAT"; sleep 0.5; done'
    job, _ = submit("--site", "local", "--idle-timeout", "2s", "--", "bash", "-c", beat)
    assert (job["state"], job["exit_code"]) == ("done", 0)


def of_job(store: Store, job: str) -> list[psutil.Process]:
    """Return the processes that still run of a job on this machine."""
    mark = f"HPCLAUNCH_LOCAL_JOB={store.load(job).scheduler_id}".encode()
    found = []
    for process in psutil.process_iter():
        with suppress(OSError, psutil.Error):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            if mark in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def start_supervised(tmp_path: Path, named: tuple[str, ...]) -> tuple[Store, str]:
    """Start a job with a timer and a watchdog; return when its program runs."""
    ready = tmp_path / "ready"
    words = [
        "--site",
        "local",
        "--tasks",
        "2",
        *named,
        "--max-restarts",
        "1",
        "--idle-timeout",
        "1m",
        "--time",
        "1m",
    ]
    words += ["--warn-before", "20s", "--no-wait", "--", "sh", "-c", f": > {ready}; exec sleep 200"]
    done = subprocess.run(
        [sys.executable, "-m", "hpclaunch", "submit", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    while not ready.exists():
        pass
    return Store(), done.stdout.strip()


@pytest.mark.mpi
@BOTH
def test_nothing_goes_on_where_a_signal_ends_the_script(tmp_path: Path, named: tuple[str, ...]) -> None:
    store, job = start_supervised(tmp_path, named)
    os.kill(int((store.load(job).scheduler_id or "").partition(":")[0]), signal.SIGTERM)
    answer = subprocess.run([sys.executable, "-m", "hpclaunch", "wait", job], capture_output=True, text=True)
    assert answer.stdout == "failed\n"
    assert not of_job(store, job)


@pytest.mark.mpi
@BOTH
def test_cancel_ends_what_a_killed_script_has_left(tmp_path: Path, named: tuple[str, ...]) -> None:
    store, job = start_supervised(tmp_path, named)
    os.kill(int((store.load(job).scheduler_id or "").partition(":")[0]), signal.SIGKILL)
    words = [sys.executable, "-m", "hpclaunch"]
    while subprocess.run([*words, "wait", job], capture_output=True, text=True).stdout != "lost\n":
        pass
    assert of_job(store, job)
    done = subprocess.run([*words, "cancel", job], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{job} was lost already\n")
    assert "had left processes, which were ended: " in done.stderr
    assert not of_job(store, job)


# Ends the waiting shells of a job's script as the script does, each time a little later after their start.
ENDED_EARLY = """
set -eo pipefail
trap : EXIT
trap 'exit 143' TERM
trap : USR1
hpclaunch_at_end=() hpclaunch_exit_code=85 hpclaunch_timer_s=600 hpclaunch_idle_s=300 hpclaunch_caught=1
. {file}
for ((i = 0; i < 400; i++)); do
{start}
  started="$hpclaunch_timer $hpclaunch_watchdog"
  for ((spin = 0; spin < i; spin++)); do :; done
{end}
  if kill -KILL $started; then echo "left at $i"; exit 1; fi 2> /dev/null
done
"""


@pytest.mark.slow
def test_timer_and_watchdog_end_at_once_however_short_the_launch(tmp_path: Path) -> None:
    """With a process that sleeps and a trap that ends it, a signal could come before there was one."""
    file = resource_dir("remote") / "supervise.sh"
    text = file.read_text()

    def found(*patterns: str) -> str:
        matches = [re.search(pattern, text, re.MULTILINE) for pattern in patterns]
        assert all(matches), patterns
        return "\n".join(match[0] for match in matches if match)

    program = ENDED_EARLY.format(
        file=file,
        start=found(r"^ *\( hpclaunch_sleep.*\n *hpclaunch_timer=\$!$", r"^ *hpclaunch_start_watchdog$"),
        end=found(r'^.*hpclaunch_stop "\$hpclaunch_timer"$', r'^.*hpclaunch_stop "\$hpclaunch_watchdog"$'),
    )
    environment = {**os.environ, "HPCLAUNCH_JOB_FOLDER": str(tmp_path), "HPCLAUNCH_FILES": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", program], env=environment, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@in_one_test("words", [("--max-restarts", "-1"), ("--warn-before", "10s"), ("--idle-timeout", "5")])
def test_impossible_wishes_are_refused(words: tuple[str, ...]) -> None:
    usual = ("--site", "local", "--time", "5s", "--max-restarts", "1", *words, "--dry-run", "--", "true")
    answer = hpclaunch_here("submit", *usual)
    assert answer.returncode == 3, answer.stderr


class Together:
    """Jobs that are submitted together: they wait for the clocks of their schedulers side by side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs: dict[str, tuple[subprocess.Popen[str], dict[str, str]]] = {}

    def submit(self, name: str, *words: str, **environment: str) -> None:
        """Start a job with records of its own; each of its programs finds these variables."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        own = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
        env = {**os.environ, **MPI_VARIABLES, **own, **environment}
        command = [sys.executable, "-m", "hpclaunch", "submit", "--wait", "--json", "--name", name, *words]
        pipe = subprocess.PIPE
        self._jobs[name] = (
            subprocess.Popen(command, cwd=home, env=env, stdout=pipe, stderr=pipe, text=True),
            env,
        )

    def ended(self, name: str) -> tuple[dict[str, Any], str]:
        """Wait for the end of a job and return its document and its output."""
        stdout, stderr = self._jobs[name][0].communicate()
        assert stdout, stderr
        return json.loads(stdout), stderr

    def hpclaunch(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command about a job."""
        command = [sys.executable, "-m", "hpclaunch", *words]
        return subprocess.run(command, env=self._jobs[name][1], capture_output=True, text=True)

    def end(self) -> None:
        """Cancel what still runs."""
        for process, _ in self._jobs.values():
            process.terminate()
        for process, _ in self._jobs.values():
            process.wait()


# Slurm signals up to 30 s earlier than requested (its PERIODIC_TIMEOUT): the ranks have 30 s to start in.
SLURM = ("--site", "generic-slurm", "--nodes", "2", "--no-exclusive", "--time", "4m", "--warn-before", "180s")
SOON = ("--site", "generic-pbs", "--tasks", "2", "--time", "9s", "--warn-before", "5s")
PBS = ("--site", "generic-pbs", "--tasks", "2", "--time", "40s", "--warn-before", "30s")
ONCE = ("--max-restarts", "1", "--", sys.executable, "-c", PROGRAM, "1")
TWICE = ("--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "2")
ARRAY = ("--array", "0-2", *ONCE)
# A training that dies with its node in the middle of an epoch, so that the site requeues the job.
REQUEUED = """
echo "GOT run ${SLURM_RESTART_COUNT:-0}"
cd "$HPCLAUNCH_JOB_FOLDER"
"$0" -m hpclaunch.train --dataset synthetic --epochs 6 --checkpoint-dir kept --resume &
[ -z "${SLURM_RESTART_COUNT:-}" ] || { wait -n; exit; }
until kill -STOP $! && grep -Eq '"label": "epoch [2-6]/6", "share": 0[.][3-8]' progress.json; do
  kill -CONT $! && sleep 0.05
done
kill -KILL $!
cp progress.json died.json
scontrol requeue "$SLURM_JOB_ID"
sleep 600
"""
FULL = {"restarts": ("restarts.new",), "everything": ("restarts.new", "reason.new", "exit_status.new")}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """What starts jobs together and ends what still runs."""
    jobs = Together(tmp_path_factory.mktemp("together"))
    try:
        yield jobs
    finally:
        jobs.end()


@pytest.fixture(scope="module")
def on_slurm(slurm: Slurm, started: Together, on_pbs: Together) -> Together:
    """All jobs of this file on Slurm, which looks at limits every 30 s; those on PBS wait meanwhile."""
    jobs, may = started, {"SLURM_CONF": str(slurm.conf)}
    may_not = may | {"PATH": f"{forbidding_requeue(jobs.folder)}:{os.environ['PATH']}"}
    jobs.submit("requeued", *SLURM, *ONCE, **may)
    jobs.submit("array", *SLURM, *ARRAY, **may)
    jobs.submit("next", *SLURM, *ONCE, **may_not)
    jobs.submit("array-may-not", *SLURM, *ARRAY, **may_not)
    requeued = ("bash", "-c", REQUEUED, sys.executable)
    words = ("--no-exclusive", "--time", "5m", "--sample", "1", "--mpi", "none", "--", *requeued)
    jobs.submit("site-requeues", *SLURM[:2], *words, **may)
    program = ("--", sys.executable, "-c", FULL_DISK)
    jobs.submit("unseen", *SLURM, "--max-restarts", "1", *program, "1", "next_id.new", **may_not)
    for what, written in FULL.items():
        full = ("--max-restarts", "2", *program, "never", *written)
        jobs.submit(f"full-{what}-slurm", *SLURM, *full, **may)
    return jobs


@pytest.fixture(scope="module")
def on_pbs(started: Together) -> Together:
    """All jobs of this file that end by themselves on a fake PBS, each on its own."""
    jobs = started
    for what, written in FULL.items():
        full = ("--max-restarts", "2", "--", sys.executable, "-c", FULL_DISK, "never", *written)
        jobs.submit(f"full-{what}-pbs", *PBS, *full, **fake_pbs(jobs.folder))
    for who, more in PBS_USERS.items():
        environment = {**fake_pbs(jobs.folder), "FAKE_PBS_OPERATOR": "0" if who == "user" else "1"}
        jobs.submit(who.replace(" ", "-"), *PBS, *more, *TWICE, **environment)
    for name, qsub in BAD_QSUBS.items():
        (jobs.folder / "bin" / name).mkdir(parents=True)
        (jobs.folder / "bin" / name / "qsub").write_text(f"#!/bin/sh\n{qsub}\n")
        (jobs.folder / "bin" / name / "qsub").chmod(0o755)
        jobs.submit(name, *PBS, *TWICE, **fake_pbs(jobs.folder, str(jobs.folder / "bin" / name)))
    reruns = 'echo "GOT run $(wc -l < out)"; echo >> out; [ "$(wc -l < out)" = 2 ] || '
    reruns += '{ qrerun "$PBS_JOBID"; sleep 600; }'
    words = ("--time", "5m", "--tasks", "1", "--", "bash", "-c", f"touch out; {reruns}")
    jobs.submit("pbs-site-reruns", *PBS[:2], *words, **fake_pbs(jobs.folder), FAKE_PBS_OPERATOR="1")
    bare = {**fake_pbs(jobs.folder), "FAKE_PBS_JOB_PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    jobs.submit("without-qsub", *PBS, *ONCE, **bare)
    return jobs


# With several workers one runs all these tests, so that the jobs are submitted once.
one_group = pytest.mark.xdist_group("restarts")


@one_group
@pytest.mark.slurm
def test_slurm_requeues_a_job_that_checkpoints(on_slurm: Together) -> None:
    job, log = on_slurm.ended("requeued")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]


def forbidding_requeue(folder: Path) -> Path:
    """Return the folder of a scontrol that says what that of a site says which forbids requeueing."""
    real = subprocess.run(["which", "scontrol"], capture_output=True, text=True, check=True).stdout.strip()
    fake = folder / "forbids" / "scontrol"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nif [ "$1" = requeue ]; then\n'
        '  echo "Requested operation is presently disabled" >&2; exit 1\nfi\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    return fake.parent


@one_group
@pytest.mark.slurm
def test_where_requeueing_is_not_allowed_the_next_job_takes_over(on_slurm: Together) -> None:
    job, log = on_slurm.ended("next")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]


def logs_of_array(jobs: Together, name: str) -> list[list[str]]:
    """Return what each of three jobs of an array said in its runs."""
    return [runs(jobs.hpclaunch(name, "logs", "last", "--index", str(i)).stdout) for i in range(3)]


@one_group
@pytest.mark.slurm
def test_each_job_of_an_array_comes_back_by_itself(on_slurm: Together) -> None:
    job, log = on_slurm.ended("array")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    expected = [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1)]
    assert logs_of_array(on_slurm, "array") == [expected] * 3


@one_group
@pytest.mark.slurm
def test_a_job_of_an_array_that_may_not_come_back_has_failed(on_slurm: Together) -> None:
    job, log = on_slurm.ended("array-may-not")
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "it may not requeue itself here, and a job of an array has no other way" in log
    assert logs_of_array(on_slurm, "array-may-not") == [[f"GOT rank {rank} run 0" for rank in (0, 1)]] * 3


_HOMES = count(1)


def fake_pbs(folder: Path, first: str = "") -> dict[str, str]:
    """Return the environment of a new fake PBS whose jobs find it and the MPI on their PATH."""
    home = folder / f"pbs{next(_HOMES)}"
    home.mkdir()
    jobs = f"{FAKES / 'fake_pbs'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return {
        "FAKE_PBS_HOME": str(home),
        "FAKE_PBS_JOB_PATH": f"{first}:{jobs}" if first else jobs,
        "PATH": f"{FAKES / 'fake_pbs'}:{os.environ['PATH']}",
    }


@pytest.fixture
def own_pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake PBS; returns its folder."""
    environment = fake_pbs(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Path(environment["FAKE_PBS_HOME"])


PBS_USERS: dict[str, tuple[str, ...]] = {
    "operator": (),
    "user": (),
    "not rerunnable": ("--directive", "-r n"),
}


@one_group
@pytest.mark.mpi
@pytest.mark.parametrize("who", PBS_USERS)
def test_a_job_of_pbs_that_checkpoints_comes_back(on_pbs: Together, who: str) -> None:
    """By qrerun where PBS lets it, else as the next job of a chain; its output is all there."""
    name = who.replace(" ", "-")
    job, log = on_pbs.ended(name)
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == [f"GOT rank {rank} run {run}" for rank in (0, 1) for run in (0, 1, 2)]
    said = {"operator": None, "user": "qrerun: Unauthorized Request", "not rerunnable": "is not rerunnable"}
    refusal = said[who]
    assert refusal in log if refusal else "qrerun: " not in log
    number = json.loads(on_pbs.hpclaunch(name, "status", "--json").stdout)["scheduler_id"]
    assert number == ("1.fakepbs" if who == "operator" else "3.fakepbs")


BAD_QSUBS = {
    "refused-chain": "echo 'qsub: would exceed per-user limit' >&2; exit 38",
    "silent-qsub": "exit 0",
}


@one_group
@pytest.mark.mpi
def test_a_chain_that_pbs_refuses_is_a_failure_with_its_reason(on_pbs: Together) -> None:
    job, log = on_pbs.ended("refused-chain")
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "qsub: would exceed per-user limit" in log
    assert "checkpointed, but neither requeued nor followed" in log


@one_group
@pytest.mark.mpi
def test_a_chain_whose_next_job_has_no_id_is_a_failure(on_pbs: Together) -> None:
    job, log = on_pbs.ended("silent-qsub")
    assert (job["state"], job["exit_code"]) == ("failed", 85), log


@one_group
@pytest.mark.mpi
def test_a_job_of_pbs_finds_qsub_where_its_user_did(on_pbs: Together) -> None:
    job, log = on_pbs.ended("without-qsub")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert len(runs(log)) == 4


@pytest.mark.mpi
def test_cancelling_ends_the_job_of_a_chain_that_took_over(own_pbs: Path) -> None:
    """As Ctrl-C does while one waits, whose record is that of the first job."""
    command = [sys.executable, "-m", "hpclaunch"]
    words = ("submit", *SOON, "--max-restarts", "2", "--", sys.executable, "-c", PROGRAM, "never")
    job = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout.strip()
    store = Store()
    folder, record = store.folder(job), store.load(job)
    while not (folder / "out.log").exists():
        time.sleep(0.05)
    (own_pbs / "stopped").touch()  # so the next one waits in the queue
    while not (folder / "next_id").exists():
        time.sleep(0.05)
    ended = cancel_job(store, LocalHost(), record)
    assert (ended.state, ended.scheduler_id) == ("cancelled", "2.fakepbs")
    assert json.loads((own_pbs / "2.json").read_text())["state"] == "F"


# Before it checkpoints, rank 0 makes further writes to the named files of the job's folder fail: "no space
# left on device", from the kernel, for any user.
FULL_DISK = (
    """
import os, sys
for name in sys.argv[2:] if os.environ["RANK"] == "0" else ():
    path = os.environ["HPCLAUNCH_JOB_FOLDER"] + "/" + name
    if os.path.lexists(path):
        os.remove(path)
    os.symlink("/dev/full", path)
"""
    + PROGRAM
)


@one_group
@pytest.mark.slurm
@pytest.mark.parametrize("what", FULL)
@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_a_full_disk_at_a_restart_is_a_failure(
    request: pytest.FixtureRequest, scheduler: str, what: str
) -> None:
    jobs: Together = request.getfixturevalue(f"on_{scheduler}")
    name = f"full-{what}-{scheduler}"
    job, log = jobs.ended(name)
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "No space left on device" in log
    assert "not restarted" in log
    assert len(runs(log)) == 2
    assert jobs.hpclaunch(name, "wait").returncode == 1


@pytest.mark.mpi
def test_a_full_disk_at_a_restart_on_this_machine_is_not_done() -> None:
    program = (sys.executable, "-c", FULL_DISK, "never", "restarts.new", "reason.new", "exit_status.new")
    job, log = submit(*LOCAL, "--max-restarts", "2", "--", *program)
    assert (job["state"], job["exit_code"]) == ("lost", None), log
    assert "its disk was full" in log


@one_group
@pytest.mark.slurm
def test_a_next_job_that_cannot_be_recorded_does_not_run(on_slurm: Together, slurm: Slurm) -> None:
    job, log = on_slurm.ended("unseen")
    assert (job["state"], job["exit_code"]) == ("failed", 85), log
    assert "neither requeued nor followed" in log
    states = slurm.run("squeue", "-h", "-a", "-t", "all", "-n", "unseen", "-o", "%T").stdout.split()
    assert sorted(states) == ["CANCELLED", "FAILED"]


@pytest.mark.mpi
def test_a_disk_that_becomes_full_meanwhile_does_not_keep_a_job_from_coming_back(tmp_path: Path) -> None:
    """A real small disk: the room for what a restart writes was reserved before."""
    program = """
import os
filler = os.environ["HPCLAUNCH_JOB_FOLDER"] + "/filler"
if os.environ["HPCLAUNCH_RESTART"] == "0":
    try:
        with open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        assert error.strerror == "No space left on device"
    raise SystemExit(int(os.environ["HPCLAUNCH_CHECKPOINT_EXIT_CODE"]))
os.remove(filler)
print("GOT run", os.environ["HPCLAUNCH_RESTART"])
"""
    disk = tmp_path / "small disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=2m small "$0" && exec "$@"'
    words = ("unshare", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", mount, str(disk))
    hpclaunch = ("submit", "--site", "local", "--max-restarts", "1", "--wait", "--json")
    answer = subprocess.run(
        [*words, sys.executable, "-m", "hpclaunch", *hpclaunch, "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_STATE_HOME": str(disk)},
    )
    job = json.loads(answer.stdout)
    assert (job["state"], job["exit_code"]) == ("done", 0), answer.stderr
    assert "GOT run 1" in answer.stderr


@one_group
@pytest.mark.slurm
def test_the_log_of_each_run_stays_where_slurm_requeues_the_job(on_slurm: Together) -> None:
    job, log = on_slurm.ended("site-requeues")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == ["GOT run 0", "GOT run 1"]
    assert runs(on_slurm.hpclaunch("site-requeues", "logs").stdout) == runs(log)
    died = json.loads(Path(job["folder"], "died.json").read_text())
    went_on = re.search(r"^resumed from step (\d+)", log, re.MULTILINE)
    assert went_on is not None, log
    times = json.loads(on_slurm.hpclaunch("site-requeues", "report", "--json").stdout)["times"]
    assert (times["restarts"], times["lost_steps"]) == (1, died["step"] - int(went_on[1])), times
    assert 0 < times["lost_s"] < died["seconds"], times


@one_group
@pytest.mark.mpi
def test_the_log_of_each_run_stays_where_pbs_starts_the_job_again(on_pbs: Together) -> None:
    """PBS itself empties the file of the job's output then."""
    job, log = on_pbs.ended("pbs-site-reruns")
    assert (job["state"], job["exit_code"]) == ("done", 0), log
    assert runs(log) == ["GOT run 0", "GOT run 1"]
    assert runs(on_pbs.hpclaunch("pbs-site-reruns", "logs").stdout) == runs(log)


@pytest.mark.mpi
def test_how_an_earlier_run_ended_does_not_end_this_one(own_pbs: Path) -> None:
    """It hung and the site has put it back into the queue."""
    (own_pbs / "stopped").touch()
    command = [sys.executable, "-m", "hpclaunch"]
    words = ("submit", *SOON[:-2], "--idle-timeout", "60s", "--", "true")  # no restarts, so no warning
    job = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout.strip()
    folder = Store().folder(job)
    (folder / "reason").write_text("hung: no output and no heartbeat for 60 s; ended by --idle-timeout\n")
    (folder / "exit_status").write_text("124\n")
    (own_pbs / "stopped").unlink()
    answer = subprocess.run([*command, "wait", "--json"], capture_output=True, text=True)
    assert (json.loads(answer.stdout)["state"], answer.stderr) == ("done", "")
