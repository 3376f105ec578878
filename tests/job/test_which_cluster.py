"""Jobs of one home on two real Slurms that give the same numbers, and on one that has lost its state."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.dependencies import settle_after
from hpclaunch.job.follow_job import cancel_job, wait_job
from hpclaunch.job.record import ArrayJob, JobRecord
from hpclaunch.job.refresh import refresh, refresh_all
from hpclaunch.job.store import Store
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.scheduler.registry import get_scheduler
from tests.own_process import hpclaunch as call
from tests.testbed.cluster import Slurm
from tests.testbed.kit import contract_script, new_record, output_directives, submit

pytestmark = [pytest.mark.slurm, pytest.mark.slow]
HOST, SLURM = LocalHost(), get_scheduler("slurm")
FAST = (0.1, 0.5)
HELD = "#SBATCH --hold"
Clusters = tuple[Slurm, Slurm]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clusters(east_and_west: Clusters, monkeypatch: pytest.MonkeyPatch) -> Clusters:
    """Make east the cluster that this process talks to; none of the two has a job that waits or runs."""
    for cluster in east_and_west:
        cluster.run("scancel", "--me")
        while cluster.run("squeue", "-h").stdout:
            pass
    be_on(east_and_west[0], monkeypatch)
    return east_and_west


def be_on(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))


def stranger(cluster: Slurm, tmp_path: Path) -> str:
    """Submit a job without hpclaunch, held; return its number."""
    script = tmp_path / "stranger.sh"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    done = cluster.run("sbatch", "--parsable", "--hold", "--job-name=try", str(script))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state_of(cluster: Slurm, number: str | None) -> str:
    return cluster.run("squeue", "-h", "-t", "all", "-j", str(number), "-o", "%T").stdout.strip()


def array_of(store: Store, tmp_path: Path, *directives: str) -> JobRecord:
    """Submit an array of two jobs."""
    from hpclaunch.job.start_job import submit_job

    record = store.save(replace(new_record(store, "slurm", tmp_path), array={1: ArrayJob(), 2: ArrayJob()}))
    lines = [*output_directives(record), "#SBATCH --array=1,2", *directives]
    return submit_job(store, HOST, SLURM, record, contract_script(record, "sleep 1000", lines))


def as_of_an_older_version(store: Store, record: JobRecord, **changes: object) -> JobRecord:
    return store.save(replace(record, identity=None, **changes), reopen=True)


def test_a_look_from_another_cluster_ends_no_job(
    clusters: Clusters, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    east, west = clusters
    jobs = [
        submit(store, "slurm", "sleep 1000", tmp_path),
        submit(store, "slurm", "true", tmp_path, HELD),
        array_of(store, tmp_path, HELD),
    ]
    assert [job.identity.cluster for job in jobs if job.identity] == ["east"] * 3
    while refresh(store, HOST, jobs[0]).state != "running":
        pass
    jobs = refresh_all(store, HOST, jobs)
    be_on(west, monkeypatch)
    for seen, job in zip(refresh_all(store, HOST, jobs), jobs, strict=True):
        assert seen.state == job.state
        assert (seen.reason or "").startswith("as last known on east; ")
        assert "slurm here is west" in (seen.reason or "").lower()
        assert store.load(job.id) == job
    shown = call("jobs").stdout
    assert "running, as last known on east" in shown
    assert shown.count("queued, as last known on east") == 2
    assert json.loads(call("status", jobs[0].id, "--json").stdout)["state"] == "running"
    for job in jobs:
        refused = call("cancel", job.id)
        assert (refused.returncode, refused.stdout) == (4, "")
        assert f"on east: hpclaunch cancel {job.id}" in refused.stderr
    after = JobRequest(site="generic-slurm", command=Command(argv=("true",)), after=(jobs[1].id,))
    with pytest.raises(BadInputError, match="as last known on east"):
        settle_after(after, SLURM, store, lambda record: refresh(store, HOST, record))
    be_on(east, monkeypatch)
    assert [job.state for job in refresh_all(store, HOST, jobs)] == ["running", "queued", "queued"]
    assert call("cancel", *(job.id for job in jobs)).returncode == 0
    assert wait_job(store, HOST, jobs[0], poll_s=FAST).state == "cancelled"
    assert not east.run("squeue", "-h").stdout


def test_a_job_of_another_cluster_with_the_same_number_is_not_shown_and_not_cancelled(
    clusters: Clusters, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    east, west = clusters
    for cluster in clusters:
        cluster.lose_state()
    ours = submit(store, "slurm", "echo the output", tmp_path, HELD)
    assert stranger(west, tmp_path) == ours.scheduler_id
    be_on(west, monkeypatch)
    seen = refresh(store, HOST, ours)
    assert (seen.state, (seen.reason or "").partition(";")[0]) == ("queued", "as last known on east")
    assert call("cancel", ours.id).returncode == 4
    assert state_of(west, ours.scheduler_id) == "PENDING"
    for record in (as_of_an_older_version(store, ours), as_of_an_older_version(store, ours, state="lost")):
        assert "which one took it is not recorded" in (refresh(store, HOST, record).reason or "")
        refused = call("cancel", ours.id)
        assert refused.returncode == 4
        assert "the record does not tell which cluster took it" in refused.stderr
        assert state_of(west, ours.scheduler_id) == "PENDING"
    # Both have the number and a record: each cluster tells of its own.
    theirs = submit(store, "slurm", "true", tmp_path, HELD)
    be_on(east, monkeypatch)
    assert refresh(store, HOST, ours).state == "queued"
    also_ours = submit(store, "slurm", "true", tmp_path, HELD)
    assert also_ours.scheduler_id == theirs.scheduler_id
    states = {r.id: (r.state, r.reason or "") for r in refresh_all(store, HOST, store.list()[0])}
    assert "JobHeldUser" in states[also_ours.id][1]
    assert states[theirs.id][1].startswith("as last known on west")
    assert call("cancel", also_ours.id).returncode == 0
    assert (state_of(east, also_ours.scheduler_id), state_of(west, theirs.scheduler_id)) == (
        "CANCELLED",
        "PENDING",
    )


def test_waiting_elsewhere_ends_with_the_exit_status_that_the_job_leaves(
    clusters: Clusters, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    east, west = clusters
    job = submit(store, "slurm", "echo the output; exit 3", tmp_path, HELD)
    be_on(west, monkeypatch)
    notes: list[str] = []
    release = threading.Timer(0.5, east.run, ["scontrol", "release", job.scheduler_id or ""])
    release.start()
    ended = wait_job(store, HOST, job, poll_s=FAST, note=notes.append)
    release.join()
    assert (ended.state, ended.exit_code) == ("failed", 3)
    assert notes[0].startswith(f"job {job.id} is queued, as last known on east; ")
    # Slurm 25.05's slurmstepd may write there that it lost its controller.
    assert call("logs", job.id).stdout.splitlines()[0] == "the output"
    again = call("resubmit", job.id)
    assert again.returncode == 3, again.stdout  # the record of this test has no request to repeat


def test_a_lost_job_is_asked_for_again_and_its_cluster_is_learned(
    clusters: Clusters, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As older versions left it, which made a job lost by a look from another cluster."""
    east, west = clusters
    job = submit(store, "slurm", "sleep 1000", tmp_path)
    while refresh(store, HOST, job).state != "running":
        pass
    as_of_an_older_version(store, job, state="lost", ended="2026-11-23T00:00:00+00:00")
    assert "running" in call("jobs").stdout
    found = store.load(job.id)
    assert (found.state, found.ended, found.identity) == ("running", None, job.identity)
    be_on(west, monkeypatch)
    assert refresh(store, HOST, found).state == "running"
    be_on(east, monkeypatch)
    for state in ("lost", "failed"):
        as_of_an_older_version(store, job, state=state)
    done = call("cancel", job.id)
    assert done.returncode == 0
    assert "was failed as recorded, but Slurm still has it" in done.stderr
    assert wait_job(store, HOST, store.load(job.id), poll_s=FAST).state == "cancelled"
    assert call("cancel", job.id).stdout == f"{job.id} was cancelled already\n"


def test_a_controller_that_lost_its_state_gives_the_number_to_a_stranger(
    clusters: Clusters, store: Store, tmp_path: Path
) -> None:
    east, _ = clusters
    east.lose_state()
    job, array = submit(store, "slurm", "true", tmp_path, HELD), array_of(store, tmp_path, HELD)
    ended = submit(store, "slurm", "echo the output", tmp_path)
    while not (Path(ended.folder) / "exit_status").exists():
        pass
    east.lose_state()
    strangers = [stranger(east, tmp_path) for _ in range(3)]
    assert strangers[0] == job.scheduler_id
    shown = call("jobs").stdout
    assert (shown.count(" lost "), shown.count(" done ")) == (2, 1)
    reason = store.load(job.id).reason or ""
    assert "slurm of east no longer knows the job" in reason
    assert f"{job.scheduler_id} is another job by now" in reason
    assert refresh(store, HOST, array).state == "lost"
    for lost in (job, array):
        done = call("cancel", lost.id)
        assert (done.returncode, done.stdout) == (0, f"{lost.id} was lost already\n")
    assert call("wait", job.id).returncode == 1
    assert call("logs", ended.id).stdout.splitlines()[0] == "the output"
    assert state_of(east, job.scheduler_id) == "PENDING"
    assert east.run("squeue", "-h").stdout.count("\n") == 3


def test_rubbish_is_no_answer(
    clusters: Clusters, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A squeue that prints what is no answer and exits 0, as a site's wrapper may."""
    job = refresh(store, HOST, submit(store, "slurm", "true", tmp_path, HELD))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("squeue", "sacct", "scontrol"):
        (programs / name).write_text("#!/bin/sh\necho 'Scheduled maintenance: please come back at noon.'\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{Path(shutil.which('scancel') or '').parent}:/bin"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", path)
        with pytest.raises(RefusedError, match="squeue gives an answer that cannot be read: 'Scheduled"):
            refresh(store, HOST, job)
        with pytest.raises(RefusedError, match="it cannot be asked whether") as caught:
            cancel_job(store, HOST, job)
        assert caught.value.exit_code == 4
    assert store.load(job.id) == job
    assert cancel_job(store, HOST, job).state in ("queued", "cancelled")


def let_run(cluster: Slurm, job: JobRecord) -> None:
    """Start a requeued job: Slurm lets it wait for two minutes, and holds it where its first start failed."""
    words = f"jobid={job.scheduler_id}", "starttime=now"
    while state_of(cluster, job.scheduler_id) != "RUNNING":
        cluster.run("scontrol", "update", "nodename=n1", "state=resume")  # drained by such a start
        cluster.run("scontrol", "release", job.scheduler_id or "")
        cluster.run("scontrol", "update", *words)


def restarts_of(cluster: Slurm, job: JobRecord) -> int:
    """Return how often Slurm says that it has requeued the job."""
    shown = cluster.run("scontrol", "show", "job", job.scheduler_id or "").stdout
    return int(shown.partition("Restarts=")[2].split()[0])


def test_what_slurm_requeued_is_counted_and_stays_the_same_job(
    clusters: Clusters, store: Store, tmp_path: Path
) -> None:
    east, _ = clusters
    job = submit(store, "slurm", "sleep 1000", tmp_path, "#SBATCH --requeue")
    for count in (1, 2):
        let_run(east, job)
        assert east.run("scontrol", "requeue", job.scheduler_id or "").returncode == 0
        while refresh(store, HOST, job).restarts < count:
            pass
    assert store.load(job.id).identity == job.identity
    cancel_job(store, HOST, store.load(job.id))
    ended = wait_job(store, HOST, store.load(job.id), poll_s=FAST)
    assert (ended.state, ended.restarts) == ("cancelled", restarts_of(east, job))


def test_a_folder_that_the_nodes_do_not_see_is_named(
    clusters: Clusters, store: Store, tmp_path: Path
) -> None:
    job = submit(store, "slurm", "true", tmp_path, "#SBATCH --output=/no/such/folder/out.log")
    ended = wait_job(store, HOST, job, poll_s=FAST)
    assert (ended.state, ended.exit_code) == ("failed", None)
    assert (ended.reason or "").startswith(f"Slurm could not open {job.folder}/out.log on the node")
