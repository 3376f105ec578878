"""The user's folders of hpclaunch: configuration, state and cache, by the XDG base directory specification.

https://specifications.freedesktop.org/basedir-spec/latest/: a variable whose value is not an absolute path
is ignored. None of the folders is made here. All functions raise RuntimeError for a user without a home.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path


def user_config_folder() -> Path:
    """Return ``$XDG_CONFIG_HOME/hpclaunch``, by default ``~/.config/hpclaunch``."""
    return _folder("XDG_CONFIG_HOME", ".config")


def user_state_folder() -> Path:
    """Return ``$XDG_STATE_HOME/hpclaunch``, by default ``~/.local/state/hpclaunch``."""
    return _folder("XDG_STATE_HOME", ".local/state")


def user_cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/hpclaunch``, by default ``~/.cache/hpclaunch``."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return (Path(value) if os.path.isabs(value) else Path.home() / default) / "hpclaunch"


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
