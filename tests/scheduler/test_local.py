"""Which process a job of this machine is, from the kernel's files about processes."""

import os
import subprocess
from pathlib import Path

import pytest

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.scheduler.local import is_running, process_file

REST = " ".join(["0"] * 18)


@pytest.mark.parametrize(
    ("stat", "runs"),
    [
        (f"7 (bash) S {REST} 123 0 0\n", True),
        (f"7 (a) Z 1 (b) R) D {REST} 123 0 0\n", True),  # a name may hold anything
        (f"7 (bash) S {REST} 124 0 0\n", False),  # another process has its number
        (f"7 (bash) S {REST} 1234 0 0\n", False),
        (f"7 (bash) Z {REST} 123 0 0\n", False),  # it has ended
        (f"7 (bash) X {REST} 123 0 0\n", False),
        (f"7 (bash) S {REST}\n", False),  # cut
        ("", False),
    ],
)
def test_the_process_of_a_job(stat: str, runs: bool) -> None:
    assert is_running("7:123", stat.encode()) is runs


def test_a_process_that_ends_while_it_is_read_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    file = process_file(f"{os.getpid()}:1")
    assert (LocalHost().read_file(file) or b"").startswith(f"{os.getpid()} (".encode())
    process = subprocess.Popen(["sleep", "1000"])
    with Path(process_file(f"{process.pid}:1")).open("rb") as opened:
        process.kill()
        process.wait()
        monkeypatch.setattr("builtins.open", lambda *_, **__: opened)
        assert LocalHost().read_file(process_file(f"{process.pid}:1")) is None
