"""Jobs on a real Slurm of four nodes."""

from __future__ import annotations

import datetime as dt
import sys
import threading
from pathlib import Path

import pytest

from hpclaunch.errors import RefusedError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.follow_job import cancel_job, result_of, wait_job
from hpclaunch.job.record import JobRecord
from hpclaunch.job.refresh import refresh, refresh_all
from hpclaunch.job.start_job import submit_job
from hpclaunch.job.store import Store
from hpclaunch.scheduler.registry import get_scheduler
from tests.testbed.cluster import Slurm
from tests.testbed.kit import contract_script, new_record, output_directives, submit

pytestmark = pytest.mark.slurm
HOST, SLURM = LocalHost(), get_scheduler("slurm")
FAST = (0.1, 0.5)


@pytest.fixture
def on(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Make the session's cluster the one that this process talks to."""
    return use(slurm, monkeypatch)


def use(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    return cluster


def wait(store: Store, record: JobRecord) -> tuple[JobRecord, str]:
    pieces: list[bytes] = []
    record = wait_job(store, HOST, record, pieces.append, poll_s=FAST)
    return record, b"".join(pieces).decode()


def until(store: Store, record: JobRecord, state: str, reason: str = "") -> JobRecord:
    while record.state != state or reason not in (record.reason or ""):
        record = refresh(store, HOST, record)
        assert record.state in ("queued", "running", state)
    return record


def test_two_nodes_from_submission_to_result(on: Slurm, store: Store, tmp_path: Path) -> None:
    body = 'srun --mpi=none hostname; echo "{\\"answer\\": 42}" > "$HPCLAUNCH_RESULT_FILE"'
    record = submit(store, "slurm", body, tmp_path, "#SBATCH --nodes=2")
    assert record.state == "queued"
    assert record.scheduler_id is not None
    assert record.scheduler_id.isdigit()
    record, output = wait(store, record)
    assert (record.state, record.exit_code, record.reason) == ("done", 0, None)
    assert len(set(output.split())) == 2
    assert result_of(HOST, record) == {"answer": 42}
    assert record.started is not None
    assert record.ended is not None
    created, ended = (dt.datetime.fromisoformat(time) for time in (record.created, record.ended))
    assert created <= ended


@pytest.mark.parametrize(
    ("body", "exit_code", "words"),
    [
        ("exit 3", 3, "ended with exit status 3"),
        ("srun --mpi=none bash -c 'exit 5'", 5, "ended with exit status 5"),
        ("kill -9 $$", 137, "ended by SIGKILL"),
    ],
)
def test_a_failed_job_keeps_its_exit_code(
    on: Slurm, store: Store, tmp_path: Path, body: str, exit_code: int, words: str
) -> None:
    record, _ = wait(store, submit(store, "slurm", body, tmp_path))
    assert (record.state, record.exit_code) == ("failed", exit_code)
    assert words in (record.reason or "")


def test_cancelling_a_running_job(on: Slurm, store: Store, tmp_path: Path) -> None:
    record = until(store, submit(store, "slurm", "srun --mpi=none sleep 1000", tmp_path), "running")
    cancel_job(store, HOST, record)
    record, _ = wait(store, store.load(record.id))
    assert record.state == "cancelled"
    assert record.exit_code != 0
    SLURM.parse_cancel(HOST.run(SLURM.cancel_command(record.scheduler_id or "")))


def test_a_pending_job_says_why_and_is_waited_for(on: Slurm, store: Store, tmp_path: Path) -> None:
    record = submit(store, "slurm", "echo ran", tmp_path, "#SBATCH --hold")
    record = until(store, record, "queued", "JobHeldUser: it is held by its owner")
    release = threading.Timer(1.0, on.run, ["scontrol", "release", record.scheduler_id or ""])
    release.start()
    record, output = wait(store, record)
    release.join()
    assert (record.state, output) == ("done", "ran\n")


def test_cancelling_a_pending_job(on: Slurm, store: Store, tmp_path: Path) -> None:
    record = submit(store, "slurm", "true", tmp_path, "#SBATCH --begin=now+1hour")
    record = until(store, record, "queued", "BeginTime")
    cancel_job(store, HOST, record)
    record = until(store, store.load(record.id), "cancelled")
    assert record.exit_code is None


def test_what_sbatch_refuses_is_told_in_its_words(on: Slurm, store: Store, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="invalid partition specified: nosuch") as caught:
        submit(store, "slurm", "true", tmp_path, "#SBATCH --partition=nosuch")
    assert caught.value.exit_code == 4
    record = store.find("last")
    assert (record.state, record.scheduler_id) == ("failed", None)
    assert "invalid partition specified: nosuch" in (record.reason or "")


def test_the_output_comes_while_the_job_runs(on: Slurm, store: Store, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"echo first; until [ -e {seen} ]; do sleep 0.05; done; echo second"
    record, got = submit(store, "slurm", body, tmp_path), b""

    def on_output(data: bytes) -> None:
        nonlocal got
        got += data
        seen.touch()

    assert wait_job(store, HOST, record, on_output, poll_s=FAST).state == "done"
    assert got == b"first\nsecond\n"


def test_names_paths_and_arguments_arrive_as_given(on: Slurm, tmp_path: Path) -> None:
    workdir = tmp_path / 'it\'s a "$HOME" ü'
    workdir.mkdir()
    record, output = wait(
        Store(tmp_path / "state"), submit(Store(tmp_path / "state"), "slurm", 'printf "%s" "$PWD"', workdir)
    )
    assert record.state == "done"
    assert output == str(workdir)


def test_many_jobs_are_one_question(
    on: Slurm, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [submit(store, "slurm", "true", tmp_path, "#SBATCH --begin=now+1hour") for _ in range(5)]
    asked: list[str] = []
    run = LocalHost.run

    def counting(self: LocalHost, argv: list[str], *args: object, **options: object) -> object:
        asked.append(argv[0])
        return run(self, argv, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalHost, "run", counting)
    assert [record.state for record in refresh_all(store, HOST, records)] == ["queued"] * 5
    assert asked == ["squeue"]
    monkeypatch.undo()
    use(on, monkeypatch)
    for record in records:
        cancel_job(store, HOST, record)


@pytest.mark.mpi
def test_ranks_on_two_nodes_find_each_other(on: Slurm, store: Store, tmp_path: Path) -> None:
    program = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD; "
        "print(c.allreduce(c.rank + 1), c.size, MPI.Get_processor_name())"
    )
    body = f"srun --mpi=pmix {sys.executable} -c '{program}'"
    directives = ("#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=2")
    environment = "export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,sm,tcp\n"
    record, output = wait(store, submit(store, "slurm", environment + body, tmp_path, *directives))
    assert record.state == "done", output
    lines = [line.split() for line in output.splitlines()]
    assert len(lines) == 4
    assert {(line[0], line[1]) for line in lines} == {("10", "4")}
    assert len({line[2] for line in lines}) == 2


def test_a_job_that_slurm_has_forgotten_is_known_by_its_exit_file(
    own_slurm: Slurm, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(own_slurm, monkeypatch)
    bodies = {"true": ("done", 0), "exit 6": ("failed", 6)}
    records = [submit(store, "slurm", body, tmp_path) for body in bodies]
    never_ran = submit(store, "slurm", "true", tmp_path, "#SBATCH --begin=now+1hour")
    for record in records:
        while not (Path(record.folder) / "exit_status").exists():
            pass
    own_slurm.forget_jobs()
    for record, expected in zip(records, bodies.values(), strict=True):
        record = refresh(store, HOST, record)
        assert (record.state, record.exit_code) == expected
        assert record.ended is not None
    assert refresh(store, HOST, never_ran).state == "lost"


@pytest.mark.parametrize("by", ["TERM", "KILL"])
def test_a_controller_that_is_killed_in_the_middle_is_waited_for(
    own_slurm: Slurm, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    use(own_slurm, monkeypatch)
    go, notes = tmp_path / "go", list[str]()
    body = f"echo started; until [ -e {go} ]; do sleep 0.05; done; exit 4"
    record = submit(store, "slurm", body, tmp_path)

    def end_controller(data: bytes) -> None:
        own_slurm.save_jobs(record.scheduler_id or "")  # 25.05 forgets a start of the last seconds
        own_slurm.end_controller(by)

    def note(text: str) -> None:
        notes.append(text)
        assert store.load(record.id).state in ("queued", "running")
        own_slurm.start()
        go.touch()

    ended = wait_job(store, HOST, record, end_controller, poll_s=FAST, note=note)
    assert (ended.state, ended.exit_code) == ("failed", 4)
    assert len(notes) == 1
    assert "Unable to contact slurm controller" in notes[0]


def test_the_emulated_lumi_g_takes_the_sites_partition_and_masks(
    lumig: Slurm, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(lumig, monkeypatch)
    record = new_record(store, "slurm", tmp_path)
    directives = ["#SBATCH --partition=standard-g", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=8"]
    directives += ["#SBATCH --gpus-per-node=8", "#SBATCH --exclusive"]
    masks = "fe000000000000,fe00000000000000,fe0000,fe000000,fe,fe00,fe00000000,fe0000000000"
    task = f"echo $SLURMD_NODENAME $SLURM_LOCALID $(cat {lumig.lab}/cpus/$$)"
    body = f"srun --mpi=none --cpu-bind=mask_cpu:{masks} bash -c '{task}'"
    script = contract_script(record, body, [*output_directives(record), *directives])
    record, output = wait(store, submit_job(store, HOST, SLURM, record, script))
    assert record.state == "done", output
    first = [49, 57, 17, 25, 1, 9, 33, 41]
    expected = {
        f"n{n} {r} " + " ".join(map(str, range(c, c + 7))) for n in (1, 2) for r, c in enumerate(first)
    }
    assert set(output.splitlines()) == expected


def test_a_mask_with_a_reserved_core_is_refused_by_the_emulated_lumi_g(
    lumig: Slurm, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(lumig, monkeypatch)
    body = "srun --mpi=none -n1 --cpu-bind=mask_cpu:ff true"
    record, output = wait(store, submit(store, "slurm", body, tmp_path, "#SBATCH --exclusive"))
    assert record.state == "failed"
    assert "CPU binding outside of job step allocation" in output
