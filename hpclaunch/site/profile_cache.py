"""Cached profiles of named sites, in ``hpclaunch.cache``.

Reading and checking YAML takes longer than everything else that is done with a profile. A cached profile is
used only while everything it was made from is the same, byte for byte: its own file, those it extends, the
names of all profiles (another one may hide what it extends) and the code that read and checked it. So it is
never out of date.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hpclaunch.cache import read_cached, write_cached
from hpclaunch.site.schema import SiteProfile

if TYPE_CHECKING:
    from hpclaunch.site.merge_profiles import Known

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
