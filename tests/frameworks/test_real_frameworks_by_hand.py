"""The runs by hand that jobs are compared with: the same each time, and the same on two nodes as on one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.frameworks.by_hand import COMMANDS, digest_by_hand

pytestmark = [pytest.mark.slow, pytest.mark.mpi]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("by hand")


@cache
def two_workers(name: str, folder: Path) -> str:
    """Two workers of one node; Ray, which has an actor a node, on two nodes."""
    nodes, workers = (2, 1) if name == "ray" else (1, 2)
    return digest_by_hand(name, nodes, workers, folder / name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_learns_the_same_each_time(name: str, references: Path, tmp_path: Path) -> None:
    digest = two_workers(name, references)
    assert digest.endswith(" 6 steps, 2 workers")
    nodes, workers = (2, 1) if name == "ray" else (1, 2)
    assert digest_by_hand(name, nodes, workers, tmp_path / "again") == digest


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "ray"])
def test_two_nodes_learn_as_two_workers_of_one(name: str, references: Path, tmp_path: Path) -> None:
    assert digest_by_hand(name, 2, 1, tmp_path / "two") == two_workers(name, references)


def test_one_worker_learns_something_else(references: Path, tmp_path: Path) -> None:
    """So the digests above are of what all workers had."""
    for name in ("ddp", "trainer", "ray"):
        digest, _, said = digest_by_hand(name, 1, 1, tmp_path / name).partition(" ")
        assert said == "6 steps, 1 workers"
        assert digest != two_workers(name, references).split()[0]
