"""This machine as a host."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import NoAnswerError
from hpclaunch.host.this_machine import LocalHost

HOST = LocalHost()


def test_arguments_arrive_unchanged_and_no_shell_reads_them() -> None:
    hostile = ["$(echo x)", "a b", "'", '"', "`id`", "new\nline", "ü", "", "*", "\\"]
    answer = HOST.run(["printf", "%s\\0", *hostile])
    assert answer.stdout.split("\0")[:-1] == hostile


def test_exit_codes_and_signals_are_those_of_a_shell() -> None:
    assert HOST.run(["bash", "-c", "echo out; echo err >&2; exit 7"]).exit_code == 7
    assert HOST.run(["bash", "-c", "kill -9 $$"]).exit_code == 137


def test_stdin_environment_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    answer = HOST.run(
        ["bash", "-c", 'cat; echo "$KEPT $ADDED $PWD"'], b"in ", env={"ADDED": "added"}, cwd=str(tmp_path)
    )
    assert answer.stdout == f"in kept added {tmp_path}\n"
    assert HOST.run(["sh", "-c", 'echo "${KEPT-none}"'], env={"KEPT": None}).stdout == "none\n"


def test_without_stdin_a_program_reads_nothing() -> None:
    assert HOST.run(["cat"]).stdout == ""


def test_bytes_that_are_not_text_do_not_stop_the_reading() -> None:
    assert HOST.run(["printf", "a\\351b"]).stdout == "a\N{REPLACEMENT CHARACTER}b"


def test_a_missing_program_is_named_with_the_remedy() -> None:
    with pytest.raises(RefusedError, match="no-such-sbatch: no such program") as caught:
        HOST.run(["no-such-sbatch", "x"])
    assert caught.value.exit_code == 4
    assert "PATH" in str(caught.value)


def test_a_file_that_cannot_be_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sbatch").write_text("not a program")
    with pytest.raises(RefusedError, match="cannot be run"):
        HOST.run([str(tmp_path / "sbatch")])


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no such folder"):
        HOST.run(["true"], cwd=str(tmp_path / "gone"))


def test_a_program_that_does_not_answer_is_ended() -> None:
    with pytest.raises(NoAnswerError, match="sleep gave no answer"):
        HOST.run(["sleep", "60"], timeout_s=0.1)


def test_a_file_is_written_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    HOST.write_file(str(path), b"one", mode=0o755)
    HOST.write_file(str(path), b"two", mode=0o700)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [p.name for p in tmp_path.iterdir()] == ["job.sh"]


def test_a_reader_sees_the_old_file_or_the_new(tmp_path: Path) -> None:
    path, versions = str(tmp_path / "f"), [bytes([65 + i]) * 200_000 for i in range(2)]
    HOST.write_file(path, versions[0])
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(HOST.read_file(path) or b"")

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(50):
        HOST.write_file(path, versions[i % 2])
    done.set()
    reader.join()
    assert seen <= set(versions)


def test_an_unwritable_place_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="file/x: cannot be written"):
        HOST.write_file(str(tmp_path / "file" / "x"), b"")
    with pytest.raises(BadInputError, match="cannot make this folder"):
        HOST.make_folder(str(tmp_path / "file" / "x"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInputError, match="folder: cannot be written"):
        HOST.write_file(str(tmp_path / "folder"), b"")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    assert HOST.read_file(str(tmp_path / "x")) is None
    assert HOST.tail(str(tmp_path / "x"), 0) == b""
    assert not HOST.exists(str(tmp_path / "x"))
    with pytest.raises(RefusedError, match="cannot be read"):
        HOST.read_file(str(tmp_path))


def test_tail_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one")
    assert HOST.tail(str(path), 0) == b"one"
    with path.open("ab") as file:
        file.write(b"two")
    assert HOST.tail(str(path), 3) == b"two"
    assert HOST.tail(str(path), 6) == b""
