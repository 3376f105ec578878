"""Cached data in the user's cache folder: what takes time to make and can be made again.

The folder may be deleted at any time. A caller stores with the data what they were made from, and uses them
only while that is unchanged.
"""

import os
import stat
from contextlib import suppress

from hpclaunch.user_folders import user_cache_folder


def read_cached(name: str) -> bytes | None:
    """Return the data cached under ``name``, such as ``sites/lumi-g.json``; None: nothing to be trusted.

    A cache folder may be shared, so only a file that this user owns and no other user may write is read.
    """
    try:
        with (user_cache_folder() / name).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            return file.read()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


def write_cached(name: str, data: bytes) -> None:
    """Cache ``data`` under ``name``, whole or not at all; a failure is ignored."""
    from hpclaunch.atomic_file import write_file  # most commands find all they need in the cache

    with suppress(OSError, RuntimeError):
        path = user_cache_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, data, 0o600, durable=False)
