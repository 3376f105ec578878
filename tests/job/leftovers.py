"""Folders that a killed mpiexec leaves, in a TMPDIR of a test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
"""Open MPI 5's, from the wheel."""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
HERE = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", **AS_ROOT}
_OURS = ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base", "HPCLAUNCH_MPI_SESSION")


def environment(tmpdir: Path) -> dict[str, str]:
    """What a person's own mpiexec has."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    return {**kept, **HERE, "TMPDIR": str(tmpdir)}


def killed_launch(tmpdir: Path, after_s: float = 0.0) -> Path | None:
    """Kill an mpiexec some time after its folder is there; return the folder that it leaves, if it does.

    What was planted before is removed: it would end this mpiexec.
    """
    for path in tmpdir.glob("ompi.*"):
        if path.is_symlink():
            path.unlink()
    process = subprocess.Popen(
        [MPIEXEC, "-n", "2", "sleep", "60"],
        env=environment(tmpdir),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = tmpdir / f"ompi.{process.pid}"
    while not (folder / "pmix.vm.tool").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for rank in _ranks_in(folder):
        os.kill(rank, signal.SIGKILL)
    return folder if folder.exists() else None


def _ranks_in(folder: Path) -> Iterator[int]:
    """Yield the processes that know the folder: the ranks of a killed mpiexec live on."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if os.fsencode(folder) + b"\0" in environ.read_bytes():
                yield int(environ.parent.name)
        except OSError:
            continue


def plant(leftover: Path, count: int) -> None:
    """Give the next process numbers the same leftover; without hwloc.sm, or Open MPI looks no further."""
    (leftover / "hwloc.sm").unlink(missing_ok=True)
    for number in next_pids(count):
        folder = leftover.parent / f"ompi.{number}"
        if not os.path.lexists(folder):
            folder.symlink_to(leftover)


def next_pids(count: int) -> Iterator[int]:
    """Yield the numbers that the next processes of this machine get, as long as they are free."""
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    yield from (
        number if number < highest else number - highest + 300 for number in range(last, last + count)
    )
