"""What ended jobs left behind: the telling lines of their logs, and when they ended, in one round trip."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.log_extract import Trace, read_failures, read_traces
from hpclaunch.job.record import PREFIX


def test_the_telling_lines_of_any_folder(tmp_path: Path) -> None:
    odd, plain, empty = tmp_path / "a\nü 'b", tmp_path / "plain", tmp_path / "empty"
    telling = [f"{PREFIX}rank=0", "0: " + PREFIX + "rank=1", "srun: error: n1: task 0: Killed"]
    for folder in (odd, plain, empty):
        folder.mkdir()
    (odd / "out.log").write_bytes(
        "\n".join(["noise", *telling, "Rank 0/1", "a srun: b", "12"]).encode() + b"\n\xff\n"
    )
    (odd / "exit_status").write_text("3\n")
    os.utime(odd / "exit_status", (1_700_000_000, 1_700_000_000))
    (plain / "out.log").write_text("1\n" * 100_000)
    found = read_traces(LocalHost(), map(str, (odd, plain, empty, tmp_path / "none")))
    assert found[str(odd)].log.splitlines() == [*telling, "Rank 0/1"]
    ended = found[str(odd)].ended
    assert ended is not None
    assert dt.datetime.fromisoformat(ended).timestamp() == 1_700_000_000
    assert [found[str(f)] for f in (plain, empty, tmp_path / "none")] == [Trace()] * 3


def test_reports_in_the_jobs_folder_and_in_the_log_of_an_older_job(tmp_path: Path) -> None:
    new, old = tmp_path / "binding" / "new", tmp_path / "old\nit's"
    (new / "binding").mkdir(parents=True)
    old.mkdir()
    (new / "out.log").write_text("the program's own\n")
    for node, rank in (("n1", 0), ("n 2", 1)):
        (new / "binding" / node).write_text(f"{PREFIX}rank={rank}\n")
    (new / "preflight").write_text('noise\nhpclaunch-preflight {"host": "n1"}\n')
    (old / "out.log").write_text(f"{PREFIX}rank=7\nmore\n")
    found = read_traces(LocalHost(), [str(new), str(old)])
    reports = {f"{PREFIX}rank=0", f"{PREFIX}rank=1", 'hpclaunch-preflight {"host": "n1"}'}
    assert set(found[str(new)].log.splitlines()) == reports
    assert found[str(old)].log == f"{PREFIX}rank=7\n"


def test_of_what_ranks_say_at_every_step_not_all_is_brought(tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text("rank 0 of 4\n" * 50_000 + f"{PREFIX}rank=0\n")
    lines = read_traces(LocalHost(), [str(tmp_path)])[str(tmp_path)].log.splitlines()
    assert lines[0] == f"{PREFIX}rank=0"
    assert len(lines) == 20_001


def test_a_line_of_json_may_hold_a_long_traceback(tmp_path: Path) -> None:
    frames = '  File "a&b.py", line 1, in f\n    g()\n' * 2_000
    text = f"Traceback (most recent call last):\n{frames}RecursionError: too deep"
    plain = 'no {"Traceback"}'
    (tmp_path / "out.log").write_text(f"{plain}\nr&1| {json.dumps({'exc': text})}\n{plain}")
    lines = read_failures(LocalHost(), [str(tmp_path)])[str(tmp_path)].lines
    assert lines[-4:] == (
        'r&1|   File "a&b.py", line 1, in f',
        "r&1|     g()",
        'r&1| RecursionError: too deep"}',
        plain,
    )


def test_nothing_is_asked_for_nothing() -> None:
    assert read_traces(LocalHost(), []) == {}
