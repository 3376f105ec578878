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
from functools import cache
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


def digest_of_names(known: Known) -> str:
    """Return the digest of the names of all profiles and of their places."""
    texts: list[str] = []
    for name, candidates in sorted(known.items()):
        texts += [name, *map(os.path.realpath, candidates), ""]
    return _digest(map(os.fsencode, texts))


def read_cached_profile(name: str, names: str) -> SiteProfile | None:
    """Return the cached profile of a site; None where there is none, or what it was made from has changed.

    ``names``: what ``digest_of_names`` returns.
    """
    data = read_cached(_cache_name(name))
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data, type=_Cached)
        digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in found.files]
        return found.profile if found.key == _key(name, names, found.files, digests) else None
    except (OSError, ValueError):  # damaged (msgspec's errors are ValueErrors), or one of its files is gone
        return None


def write_cached_profile(
    name: str, names: str, files: Iterable[Path], digests: Iterable[str], profile: SiteProfile
) -> None:
    """Cache the profile of a site, which was made from ``files`` when they had these sha256 digests."""
    paths = tuple(map(str, files))
    try:
        key = _key(name, names, paths, digests)
        data = msgspec.json.encode(_Cached(key=key, files=paths, profile=profile))
    except (OSError, ValueError):  # the code cannot be read, or a path is not valid Unicode
        return
    write_cached(_cache_name(name), data)


def _cache_name(name: str) -> str:
    return f"sites/{name}.json"


def _key(name: str, names: str, files: Sequence[str], digests: Iterable[str]) -> str:
    """Return the digest of everything that determines the profile; raises OSError for unreadable code."""
    texts = [name, msgspec.__version__, names, digest_of_code(_PACKAGE)]
    texts += [text for pair in zip(files, digests, strict=True) for text in pair]
    return _digest(map(os.fsencode, texts))


@cache
def digest_of_code(package: Path) -> str:
    """Return the digest of the code that reads profiles; it is the same as long as the process lives."""
    return _digest((package / module).read_bytes() for module in CODE)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()
