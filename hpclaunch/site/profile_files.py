"""The files of profiles and node kinds: the user's own, those of the centre, and those that are shipped."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from hpclaunch.folders import centre_files, centre_folders, user_config_folder
from hpclaunch.package_data import resource_dir


class Known(NamedTuple):
    """Name -> its files; the first is used, the second is hidden by it."""

    sites: Mapping[str, Sequence[Path]]
    kinds: Mapping[str, Sequence[Path]]


class Read(NamedTuple):
    """A file that was read."""

    path: Path
    digest: str
    relation: str = ""
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def user_sites_folder() -> Path:
    """Return the folder of the user's own profiles, made or not."""
    return user_config_folder() / "sites"


def known_files() -> Known:
    """Return the files of all profiles and node kinds."""
    return Known(_files_in("."), _files_in("nodes"))


def _files_in(subfolder: str) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    own, shipped = (
        (folder / subfolder).glob("*.yaml") for folder in (user_sites_folder(), resource_dir("site_profiles"))
    )
    of_centre = (
        path for folder in centre_folders() for path in centre_files(folder, f"sites/{subfolder}/*.yaml")
    )
    by_name = attrgetter("name")  # to compare whole paths takes longer than to list them
    for path in (*sorted(own, key=by_name), *of_centre, *sorted(shipped, key=by_name)):
        found.setdefault(path.stem, []).append(path)
    return found
