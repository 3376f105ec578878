"""What every test gets: its own folders, a time limit that ends all it started, and no hidden skip."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import time
from collections.abc import Generator, Iterator
from heapq import merge
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from tests import how_much

HERE = Path(__file__).parent
USERS_ENVIRONMENT = dict(os.environ)

# Recorded data that cannot be shipped: without the folder that holds them their tests do not exist.
_NEEDED_FOLDERS = {
    "HPCLAUNCH_TEST_CAPTURES": "test_captures*.py",
    "HPCLAUNCH_TEST_MNIST": "test_real_mnist*.py",
    # What tests/horovod/build.sh torch prints.
    "HPCLAUNCH_TEST_HOROVOD": "test_real_horovod*.py",
    # What tests/testbed/gridengine.sh prints.
    "HPCLAUNCH_TEST_GRIDENGINE": "test_real_gridengine*.py",
    # What tests/testbed/flux.sh prints.
    "HPCLAUNCH_TEST_FLUX": "test_real_flux*.py",
    # What tests/frameworks/build.sh prints.
    "HPCLAUNCH_TEST_FRAMEWORKS": "test_real_frameworks*.py",
    "HPCLAUNCH_TEST_PODMAN": "test_real_podman*.py",
    # Links to its other builds, under the names of their variants.
    "HPCLAUNCH_TEST_HOROVODS": "test_other_horovods*.py",
}
collect_ignore_glob = [
    f"{prefix}{pattern}"
    for variable, pattern in _NEEDED_FOLDERS.items()
    if not os.environ.get(variable)
    for prefix in ("", "**/")
]

collect_ignore = ["data", "golden"]  # thousands of files, none a test

if sys.version_info < (3, 11):
    collect_ignore_glob.append("test_docs_site.py")  # Sphinx needs Python 3.11

pytest_plugins = ["tests.testbed.fixtures"] if (HERE / "testbed" / "fixtures.py").exists() else []

# Variables of an outer job or of an active environment would change what a test sees: which scheduler, which
# rank, which settings, which software a job is to hold.
_FOREIGN = (
    "VIRTUAL_ENV",
    "CONDA_",
    "SLURM_",
    "SBATCH_",
    "SRUN_",
    "PBS_",
    "PALS_",
    "LSB_",
    "FLUX_",
    "PMI_",
    "PMIX_",
    "OMPI_",
    "PRTE_",
    "HPCLAUNCH_",
)
_OURS = "HPCLAUNCH_TEST_"

# Open MPI refuses root and more ranks than cores unless both are allowed. A rank that waits yields its core,
# in Open MPI 5 by a short sleep. Looking for fabrics that no test machine has takes each rank of Open MPI 5.0
# 1.3 s, mostly in libfabric; without, it takes the same components as after that search.
MPI_VARIABLES = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^ofi,uct,openib",
    "OMPI_MCA_mtl": "^ofi,psm,psm2",
    "OMPI_MCA_osc": "^ucx",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


# Tests with real servers or MPI take seconds: they are slow by rule.
_REAL = {"slurm", "sshd", "mpi", "simgrid"}
_REAL_LIMIT_S = 900  # default of the other tests: timeout in pyproject.toml
_WHOLLY_SLOW = re.compile(rf"^pytestmark = .*\bmark\.({'|'.join(_REAL | {'slow'})})\b", re.MULTILINE)


def _leaves_slow_ones_out(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the inner loop, do not import a module of which every test is slow: a quarter of all modules."""
    if not _leaves_slow_ones_out(config) or not collection_path.match("test_*.py"):
        return None
    return True if _WHOLLY_SLOW.search(collection_path.read_text("utf-8")) else None


def pytest_configure(config: pytest.Config) -> None:
    """Make a test's environment the same however the tests were started.

    An outer job's variables are taken out, and those that change how Python writes: without bytecode each
    program that a test starts would be compiled again. Ctrl-C and a closed terminal work in what the tests
    start: a shell without job control starts background commands with SIGINT ignored, nohup with SIGHUP
    ignored, and a child inherits that.
    """
    how_much.INNER_LOOP = _leaves_slow_ones_out(config) and not _all_tests_required()
    # A busy machine is no fault of a test. Where CI is set, hypothesis' own profile says the same.
    if settings.default and settings.default.deadline is not None:
        number, no_hurry = 25 if how_much.INNER_LOOP else 100, [HealthCheck.too_slow]
        settings.register_profile(
            "busy machine", deadline=None, max_examples=number, suppress_health_check=no_hurry
        )
        settings.load_profile("busy machine")
    config.option.loadscopereorder = False  # pytest-xdist takes the order that is made below
    gc.set_threshold(100_000, 50, 50)  # looking through all that is loaded takes a fifth of the time
    for name in [n for n in os.environ if n.startswith(_FOREIGN) and not n.startswith(_OURS)]:
        del os.environ[name]
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)
    # Starting the threads of numpy's OpenBLAS takes longer than what most tests compute.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Cut the name of a test that is a long text: it is sent to and fro several times."""
    return ascii(val[:40])[1:-1] if isinstance(val, str) and len(val) > 200 else None


def _markers(item: pytest.Item) -> set[str]:
    return {marker.name for marker in item.iter_markers()}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests out that are marked ``long``; put slow ones first, so that all workers end together.

    Modules with servers wait most of the time, the other slow ones compute: they come in turn, so that cores
    are neither idle nor crowded. Of the rest, groups of several modules come first: they are the largest.
    """
    if not how_much.LONG and (left_out := [item for item in items if item.get_closest_marker("long")]):
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            modules.setdefault(item.path, []).append(item)
    waiting: list[list[pytest.Item]] = []
    computing: list[list[pytest.Item]] = []
    for module in modules.values():
        (waiting if any(map(_waits, module)) else computing).append(module)
    turns = ([(i / len(kind), module) for i, module in enumerate(kind)] for kind in (waiting, computing))
    slow = [item for _, module in merge(*turns, key=lambda turn: turn[0]) for item in module]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    items[:] = slow + sorted(quick, key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a module's tests, or those of a group, to one worker, which makes what they share once.

    pytest-xdist's own ``loadgroup`` takes each test without a group as one: for each it counts all others.
    """
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    class ByModule(LoadGroupScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            scope = super()._split_scope(nodeid)
            return str(scope if scope != nodeid else nodeid.partition("::")[0])

    return ByModule(config, log) if config.getvalue("dist") == "loadgroup" else None


def _waits(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(marker) for marker in ("slurm", "sshd"))


def pytest_collection_finish() -> None:
    """Leave modules and items out of what the collector looks through."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Leave all out that is left: pytest collects five times at its end, the interpreter once more."""
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give the tests with real servers or MPI their time limit and the marker ``slow``."""
    markers = _markers(item)
    if markers & _REAL:
        item.add_marker(pytest.mark.slow)
        if "timeout" not in markers:
            item.add_marker(pytest.mark.timeout(_REAL_LIMIT_S))


@pytest.fixture(scope="session")
def users_environment() -> dict[str, str]:
    """The environment the tests were started in, for programs that need the user's own configuration."""
    return dict(USERS_ENVIRONMENT)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder each time: by their own count, for mktemp would look through all of them each time."""
    root = tmp_path_factory.mktemp("homes")
    return (root / str(number) for number in count())


@pytest.fixture(scope="session")
def _cache_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profiles and compiled templates, each read once by all workers, as by the second command of a user."""
    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _folders_of_its_own(
    request: pytest.FixtureRequest, _homes: Iterator[Path], _cache_of_all: Path
) -> Generator[None]:
    """Keep a test away from the user's configuration, job records and caches; let MPI start for ``mpi``."""
    home = next(_homes)
    home.mkdir()
    request.node.stash[_HOME] = home
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("CONFIG", "STATE", "DATA"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        patch.setenv("XDG_CACHE_HOME", str(_cache_of_all))
        patch.setenv("XDG_CONFIG_DIRS", str(home / "system"))
        patch.delenv("HPCLAUNCH_CENTRE", raising=False)
        if not _markers(request.node) & _REAL:  # Slurm's commands would seek a cluster in DNS, up to 5 s
            patch.setenv("SLURM_CONF", os.devnull)
        if any(request.node.get_closest_marker(marker) for marker in ("mpi", "slurm")):
            for name, value in MPI_VARIABLES.items():
                patch.setenv(name, value)
            # A killed mpiexec of Open MPI 5.0 leaves its folder ompi.PID; a later one with this PID fails.
            patch.setenv("PRTE_MCA_prte_tmpdir_base", str(home))
        yield


@pytest.fixture
def tmp_path(_folders_of_its_own: None, request: pytest.FixtureRequest) -> Path:
    """A folder for the test's files; pytest's own fixture counts all that it has made, each time."""
    folder: Path = request.node.stash[_HOME] / "tmp"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def own_cache(
    _folders_of_its_own: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give a test an empty cache: it is about what is cached."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(request.node.stash[_HOME] / "cache"))


def _all_tests_required() -> bool:
    return (
        os.environ.get("CI", "").lower() in {"1", "true"}
        or os.environ.get("HPCLAUNCH_TEST_REQUIRE_ALL") == "1"
    )


_HOME = pytest.StashKey[Path]()
_STARTED = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note the start of a test, for what is ended with it."""
    item.stash[_STARTED] = time.time()


def _end_what_it_started(item: pytest.Item) -> None:
    """Kill the processes of a failed test: our descendants since its start, and who has its folders.

    The latter finds what has left the tree, such as jobs in the background; servers that tests share have
    none of a test's folders (see ``Slurm.environment``).
    """
    mine = {p.pid for p in psutil.Process().children(recursive=True) if _since(item, p)}
    home = str(item.stash.get(_HOME, "no folder yet"))
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid in mine or process.environ().get("XDG_STATE_HOME", "").startswith(f"{home}/"):
                process.kill()


def _since(item: pytest.Item, process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.create_time() >= item.stash[_STARTED] - 0.1  # clock ticks
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End what a failed test has started; count a skip as a failure where every test must run."""
    report = yield
    if report.failed and call.when != "teardown":
        _end_what_it_started(item)
    if report.skipped and _all_tests_required():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: not run ({reason}), and this run requires every test"
        vars(report).pop("wasxfail", None)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Count a module that skips itself as a failure where every test must run."""
    report = yield
    if report.skipped and _all_tests_required():
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: module not run, and this run requires every test"
    return report
