"""Profiles of named sites that were loaded before, kept as ``hpclaunch.cache`` does.

Reading YAML and checking it takes longer than all else that is done with a profile. What is kept is used only
where everything it was made from is still the same, byte for byte: its own file, those it extends, the names
of all profiles (another one may hide what it extends) and the code that read and checked it. So it cannot be
out of date.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpclaunch import cache
from hpclaunch.site.schema import SiteProfile

Known = Mapping[str, Sequence[Path]]
"""Site name -> its files, the one that counts first."""

_PACKAGE = Path(__file__).parents[1]
CODE = (
    *(
        "site/job_environment.py",
        "site/load_profile.py",
        "site/merge_profiles.py",
        "site/profile_rules.py",
        "site/schema.py",
        "site/yaml_tree.py",
        "site/validate.py",
    ),
    # What fits a scheduler, its own module says; further ones that it imports stand in that folder, too.
    *sorted(f"scheduler/{name}" for name in os.listdir(_PACKAGE / "scheduler") if name.endswith(".py")),
    *("command_result.py", "cpuset.py", "walltime.py"),
)
"""What a profile's content depends on besides its files: modules of hpclaunch."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    files: tuple[str, ...]
    profile: SiteProfile


def recall(name: str, known: Known) -> SiteProfile | None:
    """Return the profile of a site if it was kept and nothing that it was made from has changed."""
    data = cache.recall(f"sites/{name}.json")
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data, type=_Kept)
        digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in found.files]
        return found.profile if found.key == _key(name, known, found.files, digests) else None
    except (OSError, ValueError):  # damaged (msgspec's errors are ValueErrors), or one of its files is gone
        return None


def keep(
    name: str, known: Known, files: Iterable[Path], digests: Iterable[str], profile: SiteProfile
) -> None:
    """Keep the profile of a site, which was made from ``files`` when they had these sha256 digests."""
    paths = tuple(map(str, files))
    try:
        key = _key(name, known, paths, digests)
        data = msgspec.json.encode(_Kept(key=key, files=paths, profile=profile))
    except (OSError, ValueError):  # the code cannot be read, or a path is no Unicode
        return
    cache.keep(f"sites/{name}.json", data)


def _key(name: str, known: Known, files: Sequence[str], digests: Iterable[str]) -> str:
    """Return the digest of all that makes the profile what it is; raises OSError for unreadable code."""
    texts = [name, msgspec.__version__, ""]
    for other, candidates in sorted(known.items()):
        texts += [other, *map(os.path.realpath, candidates), ""]
    texts += [text for pair in zip(files, digests, strict=True) for text in pair]
    digest = hashlib.sha256()
    for part in (*map(os.fsencode, texts), *((_PACKAGE / module).read_bytes() for module in CODE)):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()
