"""The fixtures ``slurm`` and ``lumig``, and what becomes of their tests where Slurm is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest

from tests.testbed.cluster import Slurm, Sshd, apt_line, lumig_settings, missing_parts

_missing = cache(missing_parts)


def _all_required() -> bool:
    ci = os.environ.get("CI", "").lower() in {"1", "true"}
    return ci or os.environ.get("HPCLAUNCH_TEST_REQUIRE_ALL") == "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests with Slurm out where it is missing, unless all tests are required: then they fail."""
    needing = [item for item in items if item.get_closest_marker("slurm")]
    if needing and _missing() and not _all_required():
        items[:] = [item for item in items if item not in needing]
        config.hook.pytest_deselected(items=needing)
        config.stash[_LEFT_OUT] = len(needing)


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line what was left out and why."""
    if count := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{count} tests with Slurm left out: this machine lacks {', '.join(_missing())}; {apt_line()}"
        )


def _cluster(**settings: str) -> Iterator[Slurm]:
    if _missing():
        pytest.fail(f"this machine lacks {', '.join(_missing())}: {apt_line()}")
    cluster = Slurm(**settings)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A Slurm of four nodes, n1 to n4; plain srun starts ranks by PMIx."""
    yield from _cluster(MPI="pmix")


@pytest.fixture(scope="session")
def lumig() -> Iterator[Slurm]:
    """A Slurm of four emulated LUMI-G nodes; the CPUs that each task was bound to are in ``lab/cpus/PID``."""
    yield from _cluster(MPI="pmix", **lumig_settings())


@pytest.fixture
def own_slurm() -> Iterator[Slurm]:
    """A Slurm of one node that a test may break; clients give up on a dead controller after 1 s, not 10."""
    yield from _cluster(NODES="1", EXTRA="MessageTimeout=1")


@pytest.fixture(scope="session")
def sshd(slurm: Slurm) -> Iterator[Sshd]:
    """An sshd on loopback whose users are on a client of ``slurm``."""
    server = Sshd(slurm)
    try:
        yield server.start()
    finally:
        server.stop()
