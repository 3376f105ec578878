"""What took time to make and can be made again, kept in ``$XDG_CACHE_HOME/hpclaunch``; it may be deleted.

Whoever keeps something puts into it what it was made from, and uses it only where that is still the same.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def recall(name: str) -> bytes | None:
    """Return what was kept under ``name``, such as ``sites/lumi-g.json``; None: nothing to be trusted.

    A folder of caches may be shared, so only a file that nobody but this user may have written is read.
    """
    try:
        with _place(name).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            return file.read()
    except (OSError, RuntimeError):  # RuntimeError: no home folder
        return None


def keep(name: str, data: bytes) -> None:
    """Keep ``data`` under ``name``, whole or not at all; where that fails it is made anew the next time."""
    with suppress(OSError, RuntimeError):
        place = _place(name)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = place.with_name(f".{os.urandom(8).hex()}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            temporary.replace(place)
        except OSError:
            temporary.unlink(missing_ok=True)


def _place(name: str) -> Path:
    folder = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: a path that is not absolute is to be ignored.
    cache = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return cache / "hpclaunch" / name
