"""The program's own log files, read where its words do not tell why a job failed, and what status shows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hpclaunch.cli.status import _failed
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.failures.log_events import Event
from hpclaunch.failures.read_failure import FailureLog
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.failure_causes import error_words, failure_of
from hpclaunch.job.log_extract import with_own_files
from hpclaunch.job.record import JobRecord
from hpclaunch.job.store import Store
from tests.own_process import hpclaunch
from tests.testbed.kit import new_record

ERROR = """2026-11-29 13:00:10,007 ERROR run ended
Traceback (most recent call last):
  File "/h/md.py", line 7, in main
    advance(x)
KeyError: 'depth'
"""
START, END = 1_700_000_000, 1_700_000_100


def write(path: Path, text: str | bytes, second: int = START + 50) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (second, second))


@pytest.fixture
def record(tmp_path: Path) -> JobRecord:
    """A job of four ranks that failed without words, from START to END."""
    made = new_record(Store(tmp_path / "state"), "local", tmp_path / "work")
    write(Path(made.folder) / "log_start", "0\n", START)
    write(Path(made.folder) / "exit_status", "1\n", END)
    (tmp_path / "work").mkdir(exist_ok=True)
    return replace(made, state="failed", exit_code=1, tasks=4, nodes=1)


def read(record: JobRecord, *lines: str) -> dict[str, Event]:
    found = with_own_files(LocalHost(), {record.folder: FailureLog(lines=lines)}, [record])
    return {event.process or "": event for event in found[record.folder].files}


def test_files_of_the_job_in_its_working_folder_alone_are_read(record: JobRecord, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in ("rank_0.log", "logs/rank_1.log", "a b/c/rank_2.log"):
        write(work / name, ERROR)
    for name in (
        ".git/rank_3.log",
        "my-venv/rank_3.log",
        "checkpoints/rank_3.log",
        "rank_3.ckpt",
        "a/b/c/rank_3",
    ):
        write(work / name, ERROR)
    write(work / "old" / "rank_3.log", ERROR, START - 1)
    write(work / "new" / "rank_3.log", ERROR, END + 1)
    write(work / "rank_3.npy", ERROR)
    write(work / "bin" / "rank_3.log", b"\x93\x00\x01" + ERROR.encode())
    write(work / "train.log", ERROR)  # of one process
    found = read(record)
    assert {name: event.rank for name, event in found.items()} == {
        "rank_0.log": "0",
        "logs/rank_1.log": "1",
        "a b/c/rank_2.log": "2",
    }


def test_an_empty_file_counts_among_those_of_like_names(record: JobRecord, tmp_path: Path) -> None:
    """Those of ranks that had nothing to write."""
    for rank in range(4):
        write(tmp_path / "work" / f"trials-{rank}.log", ERROR if rank == 1 else "")
    assert {name: event.rank for name, event in read(record).items()} == {"trials-1.log": "1"}


def test_the_ends_of_64_files_are_read_at_most_those_with_an_error(record: JobRecord, tmp_path: Path) -> None:
    for rank in range(90):
        write(tmp_path / "work" / f"rank_{rank}.log", ERROR if rank % 10 else "2026 INFO step 1\n")
    write(tmp_path / "work" / "long.0.log", "step\n" * 100_000 + ERROR)
    write(tmp_path / "work" / "long.1.log", ERROR + "step\n" * 100_000)
    found = read(replace(record, tasks=90))
    assert len(found) == 64
    assert all(int(event.rank or 0) % 10 for name, event in found.items() if name.startswith("rank"))


def test_a_line_of_json_and_a_job_of_another_program_in_the_folder(record: JobRecord, tmp_path: Path) -> None:
    """Whose file it is the reader of status sees by its name."""
    lines = [{"level": "info", "msg": "step 1"}, {"level": "error", "rank": 2, "exc_info": ERROR.rstrip()}]
    write(tmp_path / "work" / "logs" / "2" / "events.jsonl", "\n".join(map(json.dumps, lines)))
    for rank in (0, 1, 3):
        write(tmp_path / "work" / "logs" / str(rank) / "events.jsonl", json.dumps(lines[0]))
    log = FailureLog(files=tuple(read(record).values()))
    failure = failure_of(record, log)
    assert (failure.rank, failure.file, failure.where) == ("2", "logs/2/events.jsonl", "/h/md.py:7")
    shown = dict(_failed(failure, 4))
    assert shown["in logs/2/events.jsonl"].startswith("KeyError: 'depth'")
    assert (error_words(log) or "").endswith("(in logs/2/events.jsonl)")
    long = replace(failure, file=f"logs/{'x' * 60}/rank_2.log")
    assert f"in ...{'x' * 39}/rank_2.log" in dict(_failed(long, 4))


def test_nothing_is_asked_where_words_tell_why_or_the_job_is_another(
    record: JobRecord, tmp_path: Path
) -> None:
    write(tmp_path / "work" / "rank_1.log", ERROR)
    told = ERROR.splitlines()
    assert read(record)
    assert not read(record, *told)
    for other in (replace(record, state="cancelled"), replace(record, exit_code=None)):
        assert not read(other)
    assert not read(replace(record, workdir=str(tmp_path / "gone")))


class Away(LocalHost):
    """Whose working folders cannot be read now."""

    def run(self, *_: object, **__: object) -> CommandResult:
        raise RefusedError("no answer")


def test_a_folder_that_cannot_be_read_changes_nothing(record: JobRecord) -> None:
    logs = {record.folder: FailureLog(lines=("step 1",))}
    assert with_own_files(Away(), dict(logs), [record]) == logs


PROGRAM = """
import logging, os, sys, time
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
healthy = sys.argv[1] == "healthy"
os.makedirs(f"logs/worker-{rank}", exist_ok=True)
log = logging.getLogger("sweep")
log.propagate = False
handler = logging.FileHandler(f"logs/worker-{rank}/out.txt", mode="w")
handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
log.addHandler(handler)
log.warning("rank %d: the cache is cold", rank)
try:
    {}["depth" if rank == 1 else "no cache"]
except KeyError:
    if rank == 1 or healthy:
        log.exception("trial failed")
if healthy:
    log.error("trial again")
    log.warning("step 2")
    sys.exit(0)
time.sleep(0.5 if rank == 1 else 1)
sys.exit(3 if rank == 1 else 4)
"""


def ended(tmp_path: Path, *words: str) -> dict[str, Any]:
    (tmp_path / "sweep.py").write_text(PROGRAM)
    hpclaunch("submit", "--wait", "--site", "local", "--tasks", "2", "--framework", "none", *words)
    facts: dict[str, Any] = json.loads(hpclaunch("status", "--json").stdout)
    return facts


@pytest.mark.mpi
@pytest.mark.slow
def test_a_program_that_writes_its_error_into_a_file_of_its_rank_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failure = ended(tmp_path, "--", "python", "sweep.py", "fail")["failure"]
    assert (failure["rank"], failure["file"]) == ("1", "logs/worker-1/out.txt")
    assert (failure["lines"], failure["file_lines"]) == (["KeyError: 'depth'"], 1)
    assert "in logs/worker-1/out.txt  KeyError: 'depth'\n" in hpclaunch("status").stdout
    assert ended(tmp_path, "--", "python", "sweep.py", "healthy")["failure"] is None
