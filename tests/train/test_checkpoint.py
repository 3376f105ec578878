"""Checkpoints are whole or absent, and damage is found and named."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from hpclaunch.train.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    check_matches,
    read_checkpoint,
    write_checkpoint,
)
from hpclaunch.train.run_errors import BadCheckpointError, BadRequestError, TrainError
from hpclaunch.train.whole_files import write_whole


def a_checkpoint(seed: int = 0) -> Checkpoint:
    generator = np.random.default_rng(seed)
    arrays = {name: generator.standard_normal(50).astype(np.float32) for name in ("parameters", "velocity")}
    return Checkpoint(arrays, {"model": "mlp", "epoch": 2, "history": [{"test_loss": 0.5}]})


def same(one: Checkpoint, other: Checkpoint) -> bool:
    return (
        one.meta == other.meta
        and one.arrays.keys() == other.arrays.keys()
        and all(
            one.arrays[name].dtype == other.arrays[name].dtype
            and np.array_equal(one.arrays[name], other.arrays[name])
            for name in one.arrays
        )
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.npz", a_checkpoint())
    assert same(read_checkpoint(tmp_path / "a.npz"), a_checkpoint())
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.slow
def test_no_damaged_byte_goes_unnoticed(tmp_path: Path) -> None:
    """Each byte in turn: the file is refused by name, or the byte meant nothing: the same content."""
    path = tmp_path / "checkpoint.npz"
    write_checkpoint(path, a_checkpoint())
    whole = path.read_bytes()
    refusals = []
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            assert same(read_checkpoint(path), a_checkpoint()), f"byte {place}"
        except BadCheckpointError as error:
            refusals.append(error.message)
    assert len(refusals) > len(whole) / 2
    assert all(message.startswith(f"{path}: damaged") for message in refusals)


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    write_checkpoint(path, a_checkpoint())
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(BadCheckpointError, match="damaged checkpoint"):
            read_checkpoint(path)


def test_an_exchanged_array_is_refused(tmp_path: Path) -> None:
    """Whole by zip's own checksums, yet not what was written: only the sha256 tells."""
    path = tmp_path / "checkpoint.npz"
    write_checkpoint(path, a_checkpoint())
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["velocity"] = arrays["velocity"] + 1
    with path.open("wb") as target:
        np.savez(target, **arrays)
    with pytest.raises(BadCheckpointError, match="sha256"):
        read_checkpoint(path)


def test_a_pickle_in_a_checkpoint_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    arrays = {"meta": np.array([{"a": 1}], object), "sha256": np.zeros(64, np.uint8)}
    with path.open("wb") as target:
        np.savez(target, **arrays)  # type: ignore[arg-type]
    with pytest.raises(BadCheckpointError, match="damaged checkpoint"):
        read_checkpoint(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def half(file: BinaryIO) -> None:
        file.write(b"ne")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        write_whole(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_newest_is_the_last_of_the_newest_run(tmp_path: Path) -> None:
    """Not the highest step: an older run may have gone further."""
    for name in ("20260101T000000-0000000900", "20260202T000000-0000000010", "20260202T000000-0000000200"):
        (tmp_path / f"checkpoint-{name}.npz").touch()
    (tmp_path / "checkpoint-20270101T000000-0000000001.npz.old").touch()
    folder = CheckpointFolder(tmp_path, keep=3)
    assert [path.name for path in folder.newest()] == [
        "checkpoint-20260202T000000-0000000200.npz",
        "checkpoint-20260202T000000-0000000010.npz",
    ]


def test_only_the_last_of_this_run_are_kept(tmp_path: Path) -> None:
    earlier = tmp_path / "checkpoint-20200101T000000-0000000900.npz"
    earlier.touch()
    folder = CheckpointFolder(tmp_path, keep=2)
    written = [folder.save(a_checkpoint(), step) for step in (5, 10, 15)]
    assert sorted(tmp_path.iterdir()) == [earlier, *written[1:]]
    assert folder.newest() == [written[2], written[1]]


def test_a_resumed_run_goes_on_with_the_earlier_names(tmp_path: Path) -> None:
    earlier = tmp_path / "checkpoint-20200101T000000-0000000900.npz"
    earlier.touch()
    folder = CheckpointFolder(tmp_path, keep=2)
    folder.newest()
    assert folder.save(a_checkpoint(), 901).name == "checkpoint-20200101T000000-0000000901.npz"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadRequestError, match=r"--checkpoint-dir .*cannot write there"):
        CheckpointFolder(tmp_path / "file" / "below", keep=1).prepare()


def test_a_checkpoint_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "gone", keep=1)
    with pytest.raises(TrainError, match=r"gone/checkpoint-.*not written"):
        folder.save(a_checkpoint(), 1)


def test_a_mismatch_names_file_setting_and_both_values() -> None:
    with pytest.raises(BadCheckpointError) as caught:
        check_matches(Path("c.npz"), {"model": "cnn", "seed": 1}, {"seed": 1, "model": "mlp"})
    assert caught.value.message == "c.npz: a checkpoint of model cnn, but this run has model mlp"


def test_a_folder_in_use_is_refused_and_names_its_owner(tmp_path: Path) -> None:
    """Also for another process; the lock of a process that is gone is none."""
    take = f"""
import sys
from pathlib import Path
from hpclaunch.train.checkpoint import CheckpointFolder
folder = CheckpointFolder(Path({str(tmp_path)!r}), keep=1)
folder.prepare()
"""
    command = [sys.executable, "-c", take + "print('taken', flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"taken\n"
        with pytest.raises(BadRequestError, match=f"in use by process {other.pid} on {platform.node()}"):
            CheckpointFolder(tmp_path, keep=1).prepare()
        other.kill()
    assert CheckpointFolder(tmp_path, keep=1).prepare() is None


def test_what_a_killed_run_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".checkpoint-20200101T000000-0000000900.npz.part").write_bytes(b"half")
    CheckpointFolder(tmp_path, keep=1).prepare()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
