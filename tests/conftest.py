"""What every test gets: folders of its own, and no outcome that hides behind a skip where none is allowed."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
USERS_ENVIRONMENT = dict(os.environ)

# Recorded data that cannot be shipped: without the folder that holds them their tests do not exist.
_NEEDED_FOLDERS = {
    "HPCLAUNCH_TEST_CAPTURES": "test_captures*.py",
    "HPCLAUNCH_TEST_MNIST": "test_real_mnist*.py",
    # What tests/horovod/build.sh torch prints.
    "HPCLAUNCH_TEST_HOROVOD": "test_real_horovod*.py",
    # Links to its other builds, under the names of their variants.
    "HPCLAUNCH_TEST_HOROVODS": "test_other_horovods*.py",
}
collect_ignore_glob = [
    f"{prefix}{pattern}"
    for variable, pattern in _NEEDED_FOLDERS.items()
    if not os.environ.get(variable)
    for prefix in ("", "**/")
]

pytest_plugins = ["tests.testbed.fixtures"] if (HERE / "testbed" / "fixtures.py").exists() else []

# An outer job's variables would change what a test sees: which scheduler, which rank, which settings.
_FOREIGN = (
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

# Open MPI refuses root and more ranks than cores unless told that both are meant.
_MPI_VARIABLES = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def pytest_configure() -> None:
    """Take an outer job's variables out of the environment of all tests."""
    for name in [n for n in os.environ if n.startswith(_FOREIGN) and not n.startswith(_OURS)]:
        del os.environ[name]


@pytest.fixture(scope="session")
def users_environment() -> dict[str, str]:
    """The environment the tests were started in, for programs that need the user's own configuration."""
    return dict(USERS_ENVIRONMENT)


@pytest.fixture(autouse=True)
def _folders_of_its_own(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[None]:
    """Keep a test away from the user's configuration, job records and caches; let MPI start for ``mpi``."""
    home = tmp_path_factory.mktemp("xdg")
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        if request.node.get_closest_marker("mpi"):
            for name, value in _MPI_VARIABLES.items():
                patch.setenv(name, value)
        yield


def _all_tests_required() -> bool:
    return (
        os.environ.get("CI", "").lower() in {"1", "true"}
        or os.environ.get("HPCLAUNCH_TEST_REQUIRE_ALL") == "1"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count a skip or an expected failure as a failure where every test must run."""
    report = yield
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
