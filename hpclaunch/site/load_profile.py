"""Load site profiles by name or path, merged over what they extend (``hpclaunch.site.merge_profiles``)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpclaunch.cache import read_cached, write_cached
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.site.schema import SiteProfile
from hpclaunch.user_folders import user_config_folder

if TYPE_CHECKING:
    from hpclaunch.site.merge_profiles import Known


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A profile and its origin."""

    profile: SiteProfile
    files: tuple[Path, ...]
    """Its own file, then the one it extends, and so on."""
    digests: tuple[str, ...]
    """The sha256 of each of these files."""
    tree: Any
    """The merged hpclaunch.site.yaml_tree.Tree: every value with its file and line."""


def user_sites_folder() -> Path:
    """Return the folder of the user's own profiles, made or not."""
    return user_config_folder() / "sites"


def site_names() -> dict[str, Path]:
    """Return each site's name and file; a user's profile hides a shipped profile of the same name."""
    return {name: files[0] for name, files in sorted(_all_files().items())}


def hidden_sites() -> dict[str, Path]:
    """Return the shipped profiles that a user's profile of the same name hides."""
    return {name: files[1] for name, files in sorted(_all_files().items()) if len(files) > 1}


def load_site(name_or_path: str) -> SiteProfile:
    """Return the profile with this name or in this file. Raises BadInputError with file and line."""
    known = _all_files()
    if _is_path(name_or_path):
        return _load(name_or_path, known).profile
    return _load_by_name(name_or_path, known, ProfileCache(known))


def site_reference(name_or_path: str) -> str:
    """Return a path of a profile as an absolute one, which holds in any folder; a name unchanged."""
    if not _is_path(name_or_path):
        return name_or_path
    return os.path.abspath(os.path.expanduser(name_or_path))


def load_merged(name_or_path: str) -> Loaded:
    """Return the profile and the files that it was merged from.

    A path is anything with a slash, or that ends in .yaml or .yml. Raises BadInputError.
    """
    return _load(name_or_path, _all_files())


def load_all() -> tuple[dict[str, SiteProfile], dict[str, str]]:
    """Return all profiles by name, and the messages about those that cannot be read."""
    profiles: dict[str, SiteProfile] = {}
    broken: dict[str, str] = {}
    known = _all_files()
    cache = ProfileCache(known)
    for name in sorted(known):
        try:
            profiles[name] = _load_by_name(name, known, cache)
        except BadInputError as error:
            broken[name] = str(error)
    return profiles, broken


def profile_digest(profile: SiteProfile) -> str:
    """Return the sha256 of the profile as JSON with sorted keys and no defaults, in hexadecimal."""
    text = json.dumps(msgspec.to_builtins(profile), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _load_by_name(name: str, known: Known, cache: ProfileCache) -> SiteProfile:
    if (profile := cache.read(name)) is not None:
        return profile
    loaded = _load(name, known)
    cache.write(name, loaded.files, loaded.digests, loaded.profile)
    return loaded.profile


def _load(name_or_path: str, known: Known) -> Loaded:
    # Reading YAML takes most of the time of a dry run; a cached profile does without it.
    from hpclaunch.site.merge_profiles import merged
    from hpclaunch.site.validate import to_profile

    path = _path(name_or_path, known)
    tree, read = merged(path, known)
    profile = to_profile(tree)
    if not _is_path(name_or_path) and profile.name != path.stem:
        where = tree.at(("name",)).where
        raise BadInputError(f"{where}: name is {profile.name!r} in {path.name}; it must be {path.stem!r}")
    files, digests = zip(*read, strict=True)
    return Loaded(profile=profile, files=files, digests=digests, tree=tree)


def _all_files() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for folder in (user_sites_folder(), resource_dir("site_profiles")):
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, []).append(path)
    return found


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".yaml", ".yml"))


def _path(name_or_path: str, known: Known) -> Path:
    if _is_path(name_or_path):
        return Path(os.path.expanduser(name_or_path))
    if name_or_path not in known:
        from hpclaunch.site.validate import did_you_mean

        raise BadInputError(
            f"no site is named {name_or_path!r}; {did_you_mean(name_or_path, known)}",
            "or give the path of a file",
        )
    return known[name_or_path][0]


# --- cached profiles of named sites -------------------------------------------------------------------------

# Reading and checking YAML takes longer than everything else that is done with a profile. A cached profile is
# used only while everything it was made from is the same, byte for byte: its own file, those it extends, the
# names of all profiles (another one may hide what it extends) and the code that read and checked it. So it is
# never out of date.

_PACKAGE = Path(__file__).parents[1]
CODE = (
    "site/job_environment.py",
    "site/load_profile.py",
    "site/merge_profiles.py",
    "site/profile_rules.py",
    "site/schema.py",
    "site/yaml_tree.py",
    "site/validate.py",
    # What fits a scheduler, its own module says; further ones that it imports stand in that folder, too.
    *sorted(f"scheduler/{name}" for name in os.listdir(_PACKAGE / "scheduler") if name.endswith(".py")),
    "command_result.py",
    "cpuset.py",
    "walltime.py",
)
"""The modules of hpclaunch that a profile's content depends on, in addition to its files."""


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    files: tuple[str, ...]
    profile: SiteProfile


class ProfileCache:
    """The cached profiles, while ``known`` are the files of all names. Made for one look, not to be kept."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def read(self, name: str) -> SiteProfile | None:
        """Return the cached profile of a site; None: there is none, or what it was made from has changed."""
        data = read_cached(_cache_name(name))
        if data is None:
            return None
        try:
            found = msgspec.json.decode(data, type=_Cached)
            digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in found.files]
            return found.profile if found.key == self._key(name, found.files, digests) else None
        except (OSError, ValueError):  # damaged (msgspec raises ValueErrors), or a file of it is gone
            return None

    def write(self, name: str, files: Iterable[Path], digests: Iterable[str], profile: SiteProfile) -> None:
        """Cache the profile of a site, which was made from ``files`` when they had these sha256 digests."""
        paths = tuple(map(str, files))
        try:
            key = self._key(name, paths, digests)
            data = msgspec.json.encode(_Cached(key=key, files=paths, profile=profile))
        except (OSError, ValueError):  # the code cannot be read, or a path is not valid Unicode
            return
        write_cached(_cache_name(name), data)

    def _key(self, name: str, files: Sequence[str], digests: Iterable[str]) -> str:
        """Return the digest of everything that determines the profile; raises OSError for unreadable code."""
        digest = self._same_for_all.copy()
        _add(digest, name, *(text for pair in zip(files, digests, strict=True) for text in pair))
        return digest.hexdigest()

    @cached_property
    def _same_for_all(self) -> hashlib._Hash:
        digest = hashlib.sha256()
        _add(digest, code_digest(_PACKAGE), msgspec.__version__, "")
        for other, candidates in sorted(self._known.items()):
            _add(digest, other, *map(os.path.realpath, candidates), "")
        return digest


@cache
def code_digest(package: Path) -> bytes:
    """Return the digest of the code, as this process found it first: it goes on with what it has loaded."""
    digest = hashlib.sha256()
    _add(digest, *((package / module).read_bytes() for module in CODE))
    return digest.digest()


def _cache_name(name: str) -> str:
    return f"sites/{name}.json"


def _add(digest: hashlib._Hash, *parts: str | bytes) -> None:
    for part in map(os.fsencode, parts):
        digest.update(b"%d:" % len(part) + part)
