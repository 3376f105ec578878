"""The real MNIST, in the folder named by HPCLAUNCH_TEST_MNIST: counts, checksums, download and cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from hpclaunch.train.data.dataset import load_dataset
from hpclaunch.train.data.mnist_files import MNIST_FILES
from tests.train.mirror import sends, serving

pytestmark = pytest.mark.slow


def folder() -> Path:
    return Path(os.environ["HPCLAUNCH_TEST_MNIST"]).resolve()


def test_folder() -> None:
    lines: list[str] = []
    data = load_dataset("mnist", data_dir=folder(), log=lines.append)
    assert (data.name, data.source) == ("mnist", str(folder()))
    assert lines == [], "the checksums of the package are those of the real files"
    assert data.train_images.shape == (60_000, 28, 28)
    assert data.test_images.shape == (10_000, 28, 28)
    assert np.bincount(data.train_labels).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    answers = {file.name: sends((folder() / file.name).read_bytes()) for file in MNIST_FILES}
    with serving(answers) as mirror:
        data = load_dataset("mnist", cache_dir=tmp_path, mirrors=[mirror.url], log=lambda line: None)
    again = load_dataset("mnist", cache_dir=tmp_path, mirrors=[], log=lambda line: None)
    assert again.source == f"cache {tmp_path}"
    np.testing.assert_array_equal(again.train_images, data.train_images)
