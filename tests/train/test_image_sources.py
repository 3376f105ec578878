"""The ways of reading give every rank the same images, and refuse what one rank cannot see."""

from __future__ import annotations

import functools
import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.train.mpirun import refusals, run_program, train, write_digits

FROM_FILES = ("shard", "mpi-io", "scatter")
COMMON = ("--batch-size", "20", "--epochs", "2", "--seed", "3")
IMAGES = "train-images-idx3-ubyte"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("digits"), 301, 50)


@pytest.fixture(scope="module")
def plain(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    for path in packed.iterdir():
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder


def outcome(result: dict[str, Any]) -> tuple[Any, ...]:
    return result["parameters_sha256"], result["test_loss"], result["test_accuracy"]


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [3, pytest.param(1, marks=pytest.mark.long)])
def test_all_ways_train_to_the_same_bits(packed: Path, plain: Path, tmp_path: Path, ranks: int) -> None:
    expected = outcome(train(ranks, "--data", packed, *COMMON))
    for reading in FROM_FILES:
        for folder in (packed, plain):
            result = train(
                ranks, "--data", folder, *COMMON, "--reading", reading, XDG_CACHE_HOME=str(tmp_path)
            )
            assert result["reading"] == reading
            assert outcome(result) == expected, (reading, folder)
    unpacked = sorted((tmp_path / "hpclaunch" / "mnist" / "unpacked").iterdir())
    contents = [(plain / name).read_bytes() for name in (IMAGES, "t10k-images-idx3-ubyte")]
    assert sorted(path.read_bytes() for path in unpacked) == sorted(contents), "unpacked once, for all ways"


@pytest.mark.mpi
@pytest.mark.parametrize("reading", ["broadcast", "shard"])
def test_prefetching_changes_no_bit(plain: Path, reading: str) -> None:
    options = ("--data", plain, *COMMON, "--reading", reading)
    ahead, not_ahead = train(2, *options, "--prefetch"), train(2, *options, "--no-prefetch")
    assert (ahead["prefetch"], not_ahead["prefetch"]) == (True, False)
    assert outcome(ahead) == outcome(not_ahead)


@functools.cache
def whole_run(plain: Path) -> tuple[Path, tuple[Any, ...]]:
    """The checkpoints of steps 3 and 6, and how the run ended."""
    folder = plain / "checkpoints"
    common = ("--data", plain, *COMMON, "--checkpoint-dir", folder)
    result = train(2, *common, "--checkpoint-every", "3", "--keep", "9")
    for path in folder.glob("*.npz"):
        if path.stem[-10:] not in {"0000000003", "0000000006"}:
            path.unlink()
    return folder, outcome(result)


@pytest.mark.mpi
@pytest.mark.parametrize("reading", FROM_FILES)
def test_a_run_resumes_in_the_middle_of_an_epoch_read_another_way(
    plain: Path, tmp_path: Path, reading: str
) -> None:
    checkpoints, whole = whole_run(plain)
    shutil.copytree(checkpoints, tmp_path, dirs_exist_ok=True)
    common = ("--data", plain, *COMMON, "--checkpoint-dir", tmp_path)
    resumed = train(2, *common, "--resume", "--reading", reading)
    assert resumed["resumed_from_step"] == 6
    assert outcome(resumed) == whole


@pytest.mark.mpi
def test_images_of_several_nodes_arrive_where_they_are_wanted(plain: Path) -> None:
    run_program(4, "readings", ",".join(FROM_FILES), plain)


@pytest.mark.mpi
def test_damaged_files_and_synthetic_digits_are_refused_with_one_message(plain: Path, tmp_path: Path) -> None:
    for path in plain.glob("*ubyte"):
        shutil.copy(path, tmp_path)
    os.truncate(tmp_path / IMAGES, 10_000)
    sources: tuple[tuple[str | Path, ...], ...] = (("--data", tmp_path), ("--dataset", "synthetic"))
    cases = [(source, reading) for source in sources for reading in FROM_FILES]
    answers = refusals(*([(*source, "--reading", reading)] * 2 for source, reading in cases))
    for (source, reading), done in zip(cases, answers, strict=True):
        message = f"--reading {reading}: synthetic digits are drawn"
        if "synthetic" not in source:
            message = f"{tmp_path / IMAGES}: cut: 10,000 bytes"
        assert done.codes == {3}, (source, reading)
        assert done.stderr.count(message) == 1, (source, reading)
        assert "Traceback" not in done.stderr


@pytest.mark.mpi
def test_a_node_that_sees_other_files_is_named(plain: Path, tmp_path: Path) -> None:
    run_program(4, "readings", ",".join(FROM_FILES), plain, tmp_path)


@pytest.mark.mpi
def test_a_damaged_file_in_the_cache_is_made_anew(packed: Path, tmp_path: Path) -> None:
    options = ("--data", packed, *COMMON, "--reading", "shard")
    expected = outcome(train(1, *options, XDG_CACHE_HOME=str(tmp_path)))
    for path in (tmp_path / "hpclaunch" / "mnist" / "unpacked").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert outcome(train(1, *options, XDG_CACHE_HOME=str(tmp_path))) == expected
