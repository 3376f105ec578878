"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.atomic_file import new_folder, write_file, write_new_file


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_with_its_mode_whatever_the_umask(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    before = os.umask(0o077)
    try:
        write_file(path, b"one", 0o755, durable=durable)
        write_file(path, b"two", 0o640, durable=durable)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "folder", b"x")
    with pytest.raises(FileNotFoundError):
        write_file(tmp_path / "missing" / "file", b"x")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_pipe_and_what_dev_links_to_are_written_to_and_stay(tmp_path: Path) -> None:
    """Root could otherwise put a file in the place of /dev/null or /dev/stdout."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert list(tmp_path.iterdir()) == [pipe]
    with pytest.raises(OSError, match="No space left"):
        write_file(Path("/dev/full"), b"text")
    assert Path("/dev/full").is_char_device()
    line = "from pathlib import Path; from hpclaunch.atomic_file import write_file; "
    line += "write_file(Path('/dev/stdout'), b'text')"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True)
    assert (done.stdout, Path("/dev/stdout").is_symlink()) == (b"text", True)


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    write_new_file(tmp_path / "file", b"one")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            write_new_file(tmp_path / name, b"two")
    assert (tmp_path / "file").read_bytes() == b"one"


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "above" / "folder"
    with new_folder(target) as made:
        write_new_file(made / "file", b"x")
        assert not target.exists()
    assert (target / "file").read_bytes() == b"x"
    assert os.listdir(target.parent) == ["folder"]


def test_a_folder_whose_making_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail_halfway() -> None:
        with new_folder(tmp_path / "folder") as made:
            write_new_file(made / "file", b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_halfway()
    assert os.listdir(tmp_path) == []


def test_a_full_folder_is_replaced_only_on_request(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for replace in (False, True):
        with new_folder(target, replace=replace) as made:
            write_new_file(made / str(replace), b"")
    assert os.listdir(target) == ["True"]
    with pytest.raises(OSError, match="not empty"), new_folder(target):
        pass
    assert os.listdir(target) == ["True"]
    assert os.listdir(tmp_path) == ["folder"]
