"""The folders in which a computing centre keeps its own layer: configuration, profiles, blocks of templates.

First the folder that HPCLAUNCH_CENTRE names, then ``hpclaunch`` in each of XDG_CONFIG_DIRS (unset: /etc/xdg;
https://specifications.freedesktop.org/basedir-spec/latest/), then /etc/hpclaunch. The user's own folder comes
before them. A file that others can write is refused: all users read it.
"""

import os
import stat
from pathlib import Path

from hpclaunch.errors import BadInputError

CENTRE_VARIABLE = "HPCLAUNCH_CENTRE"


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
