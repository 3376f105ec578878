"""The fixtures with a real Slurm and sshd, and what becomes of their tests where these are missing."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.job.store import Store
from tests.testbed.cluster import (
    Slurm,
    Sshd,
    apt_line,
    lumig_settings,
    missing_for_simgrid,
    missing_for_ssh,
    missing_parts,
    write_ssh,
)
from tests.testbed.second_user import SecondUser

_missing = cache(missing_parts)
_missing_for_ssh = cache(missing_for_ssh)
_NEEDS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "slurm": ("Slurm", _missing),
    "sshd": ("sshd", _missing_for_ssh),
    "simgrid": ("SimGrid", missing_for_simgrid),
}


def _all_required() -> bool:
    ci = os.environ.get("CI", "").lower() in {"1", "true"}
    return ci or os.environ.get("HPCLAUNCH_TEST_REQUIRE_ALL") == "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests out whose servers are missing, unless all tests are required: then they fail."""
    left_out: dict[str, int] = config.stash.setdefault(_LEFT_OUT, {})
    for marker, (_, missing) in _NEEDS.items():
        needing = [item for item in items if item.get_closest_marker(marker)]
        if needing and missing() and not _all_required():
            items[:] = [item for item in items if item not in needing]
            config.hook.pytest_deselected(items=needing)
            left_out[marker] = len(needing)


_LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send what a worker of pytest-xdist left out to the process that prints the summary."""
    if output := getattr(session.config, "workeroutput", None):
        output["left_out"] = session.config.stash.get(_LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Receive it there: every worker collects, and leaves out, the same tests."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line what was left out and why."""
    for marker, count in config.stash.get(_LEFT_OUT, {}).items():
        name, missing = _NEEDS[marker]
        terminalreporter.write_line(
            f"{count} tests with {name} left out: this machine lacks {', '.join(missing())}; {apt_line()}"
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


@pytest.fixture(scope="module")
def east_and_west() -> Iterator[tuple[Slurm, Slurm]]:
    """Two clusters of one node each that give the same numbers: no two such jobs may run at once."""
    first = str(33_000_000 + os.getpid() % 300_000 * 100)  # MaxJobId is 67 million
    settings = {"NODES": "1", "GPUS": "0", "EXTRA": "MessageTimeout=2"}
    for east in _cluster(CLUSTER="east", FIRSTJOB=first, **settings):
        for west in _cluster(CLUSTER="west", FIRSTJOB=first, **settings):
            yield east, west


@pytest.fixture(scope="module")
def accounting_slurm() -> Iterator[Slurm]:
    """A Slurm of one node with its accounting database, which takes jobs of the account science only."""
    for cluster in _cluster(NODES="1", ACCT="dbd", EXTRA="AccountingStorageEnforce=associations"):
        user = getpass.getuser()
        for words in (("account", "science"), ("user", user, "account=science")):
            added = cluster.run("sacctmgr", "-i", "add", *words)
            assert added.returncode == 0, added.stderr
        yield cluster


@pytest.fixture
def second_user() -> SecondUser:
    """Another user of this machine; only root can be one."""
    if os.geteuid() != 0:
        pytest.skip("only root can run programs as another user")
    return SecondUser()


@pytest.fixture(scope="session")
def sshd(slurm: Slurm) -> Iterator[Sshd]:
    """An sshd on loopback whose users are on a client of ``slurm``."""
    yield from _server(slurm)


@pytest.fixture(scope="session")
def plain_sshd() -> Iterator[Sshd]:
    """An sshd on loopback, of a machine without a scheduler."""
    yield from _server()


@pytest.fixture
def start_sshd() -> Iterator[Callable[..., Sshd]]:
    """Start servers of a test's own; takes what ``Sshd`` takes."""
    servers: list[Sshd] = []

    def start(*arguments: Any, **settings: Any) -> Sshd:
        servers.append(Sshd(*arguments, **settings))
        return servers[-1].start()

    try:
        yield start
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def ssh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, with an empty ~/.ssh that the program ssh reads, and no agent."""
    home, programs = tmp_path / "home", tmp_path / "programs"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    programs.mkdir()
    write_ssh(programs)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


def _server(cluster: Slurm | None = None) -> Iterator[Sshd]:
    if _missing_for_ssh():
        pytest.fail(f"this machine lacks {', '.join(_missing_for_ssh())}: {apt_line()}")
    server = Sshd(cluster)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """A Slurm whose commands this test and its programs call."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return slurm


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder of records that no other test knows."""
    return Store(tmp_path / "state")
