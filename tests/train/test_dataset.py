"""Which data a run gets: from the user's folder, and what contradicts itself."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpclaunch.train.data import dataset
from hpclaunch.train.data.dataset import load_dataset
from hpclaunch.train.data.mnist_files import MNIST_FILES
from hpclaunch.train.run_errors import BadDataError, BadRequestError
from tests.train.mirror import small_contents, small_files

NAMES = [file.name.removesuffix(".gz") for file in MNIST_FILES]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MNIST_FILES", small_files())
    monkeypatch.setenv("HPCLAUNCH_MNIST_MIRRORS", "http://192.0.2.1/must/not/be/asked/")


def fill(folder: Path, contents: Sequence[bytes], form: str = "{name}.gz") -> Path:
    """``folder`` with the four files, each named by ``form`` and gzip where the name ends so."""
    for name, content in zip(NAMES, contents, strict=True):
        path = folder / form.format(name=name, dotted=name.replace("-idx", ".idx"))
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return folder


@pytest.mark.parametrize("form", ["{name}.gz", "{name}", "{dotted}", "{dotted}.gz"])
@pytest.mark.parametrize("wanted", ["auto", "mnist"])
def test_folder_under_each_usual_name(form: str, wanted: str, tmp_path: Path) -> None:
    lines: list[str] = []
    contents = small_contents()
    data = load_dataset(wanted, data_dir=fill(tmp_path, contents, form), log=lines.append)
    assert (data.name, data.source) == ("mnist", str(tmp_path))
    assert data.train_images.tobytes() == contents[0][16:]
    assert data.train_labels.tobytes() == contents[1][8:]
    assert data.test_images.tobytes() == contents[2][16:]
    assert data.test_labels.tobytes() == contents[3][8:]
    assert lines == []


def test_folder_with_other_digits_is_used_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MNIST_FILES", MNIST_FILES)
    lines: list[str] = []
    data = load_dataset(data_dir=fill(tmp_path, small_contents()), log=lines.append)
    assert data.source == f"{tmp_path} (not the original MNIST)"
    assert len(data.train_images) == 40
    assert len(lines) == 1
    assert "not the original MNIST" in lines[0]


def test_folder_must_work_there_is_no_fallback(tmp_path: Path) -> None:
    fill(tmp_path, small_contents())
    (tmp_path / f"{NAMES[2]}.gz").unlink()
    (tmp_path / f"{NAMES[3]}.gz").unlink()
    with pytest.raises(BadDataError, match=f"{NAMES[2]}, {NAMES[3]} missing") as caught:
        load_dataset("auto", data_dir=tmp_path)
    assert str(tmp_path) in caught.value.message
    with pytest.raises(BadDataError, match="does not exist"):
        load_dataset("auto", data_dir=tmp_path / "absent")
    with pytest.raises(BadDataError, match="is not a folder"):
        load_dataset("auto", data_dir=tmp_path / f"{NAMES[0]}.gz")


def test_damaged_file_in_the_folder_is_named(tmp_path: Path) -> None:
    contents = small_contents()
    fill(tmp_path, [contents[0], contents[1], contents[2][:-1], contents[3]])
    with pytest.raises(BadDataError) as caught:
        load_dataset("auto", data_dir=tmp_path)
    assert caught.value.message.startswith(f"{tmp_path / NAMES[2]}.gz: cut")


def test_count_mismatch_in_the_folder_is_named(tmp_path: Path) -> None:
    contents = small_contents()
    fill(tmp_path, [contents[0], contents[3], contents[2], contents[3]])
    with pytest.raises(BadDataError) as caught:
        load_dataset("auto", data_dir=tmp_path)
    assert caught.value.message == (
        f"40 images in {tmp_path / NAMES[0]}.gz, but 10 labels in {tmp_path / NAMES[1]}.gz"
    )


def test_synthetic_asks_nobody(tmp_path: Path) -> None:
    data = load_dataset("synthetic", cache_dir=tmp_path / "cache")
    assert (data.name, data.source) == ("synthetic", "synthetic digits (requested)")
    assert len(data.train_images) == 12_000
    assert not (tmp_path / "cache").exists()


def test_requests_that_contradict_themselves(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="contradicts"):
        load_dataset("synthetic", data_dir=tmp_path)
