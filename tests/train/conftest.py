"""Data for the tests of the training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.mpirun import write_digits


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few digits: 301 to train on, so that the last step is short and unequal: of 50, one rank has none."""
    return write_digits(tmp_path_factory.mktemp("digits"), 301, 50)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the larger network: 101, so that the last step is short and unequal."""
    return write_digits(tmp_path_factory.mktemp("few"), 101, 20)
