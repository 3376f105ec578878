"""The folders of hpclaunch: the user's own, and those in which a computing centre keeps its layer.

The user's: configuration, state and cache, by the XDG base directory specification
(https://specifications.freedesktop.org/basedir-spec/latest/); a variable whose value is not an absolute path
is ignored. None of them is made here. Their functions raise RuntimeError for a user without a home.

A centre's, with configuration, profiles and blocks of templates: first the folder that HPCLAUNCH_CENTRE
names, then ``hpclaunch`` in each of XDG_CONFIG_DIRS (unset: /etc/xdg), then /etc/hpclaunch. The user's own
folder comes before them. A file that others can write is refused: all users read it.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from hpclaunch.errors import BadInputError

CENTRE_VARIABLE = "HPCLAUNCH_CENTRE"


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


def centre_folders() -> tuple[Path, ...]:
    """Return the folders that exist, the one that counts most first. Raises BadInputError.

    A folder that the variable names must exist; in XDG_CONFIG_DIRS only absolute paths count.
    """
    named = os.environ.get(CENTRE_VARIABLE, "")
    if named and not (os.path.isabs(named) and os.path.isdir(named)):
        raise BadInputError(f"{CENTRE_VARIABLE}={named}: no such folder", "name a folder by its whole path")
    system = filter(os.path.isabs, (os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"))
    places = filter(None, (named, *(f"{place}/hpclaunch" for place in system), "/etc/hpclaunch"))
    return tuple(folder for folder in map(Path, dict.fromkeys(places)) if folder.is_dir())


def centre_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of this pattern in a centre's folder, sorted.

    Raises BadInputError where one, or a folder on the way to it, can be written by its group or by all, or
    belongs to another user than root, this one and the owner of the folder.
    """
    owner = folder.stat().st_uid
    found = sorted(folder.glob(pattern))
    for path in found:
        for place in (path, *path.parents):
            _check(place, owner)
            if place == folder:
                break
    return found


def _check(path: Path, owner: int) -> None:
    status = path.stat()
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who = "all users" if status.st_mode & stat.S_IWOTH else "its group"
        raise BadInputError(f"{path} of {_name(status.st_uid)} can be written by {who}", f"chmod go-w {path}")
    if status.st_uid not in (0, os.geteuid(), owner):
        raise BadInputError.case(
            "centre: other owner", path=path, user=_name(status.st_uid), right=_name(owner)
        )


def _name(user: int) -> str:
    import pwd  # for messages only

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
