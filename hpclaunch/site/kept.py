"""Profiles of named sites that were loaded before, kept below ``$XDG_CACHE_HOME/hpclaunch/sites``.

Reading YAML and checking it takes longer than all else that is done with a profile. What is kept is used only
where everything it was made from is still the same, byte for byte: its own file, those it extends, the names
of all profiles (another one may hide what it extends) and the code that read and checked it. So it cannot be
out of date, and it may be deleted at any time. It is trusted no further than the profile: only a file that
nobody but this user may have written is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpclaunch.site.schema import SiteProfile

Known = Mapping[str, Sequence[Path]]
"""Site name -> its files, the one that counts first."""

_PACKAGE = Path(__file__).parents[1]
CODE = (
    *("site/load.py", "site/merge.py", "site/rules.py", "site/schema.py", "site/tree.py", "site/validate.py"),
    *("cpuset.py", "units.py"),
)
"""What a profile's content depends on besides its files: modules of hpclaunch."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    files: tuple[str, ...]
    profile: SiteProfile


def recall(name: str, known: Known) -> SiteProfile | None:
    """Return the profile of a site if it was kept and nothing that it was made from has changed."""
    try:
        with _place(name).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            found = msgspec.json.decode(file.read(), type=_Kept)
        digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in found.files]
        return found.profile if found.key == _key(name, known, found.files, digests) else None
    except (OSError, RuntimeError, ValueError):
        # Not there, damaged (msgspec's errors are ValueErrors), one of its files is gone, or no home folder.
        return None


def keep(
    name: str, known: Known, files: Iterable[Path], digests: Iterable[str], profile: SiteProfile
) -> None:
    """Keep the profile of a site, which was made from ``files`` when they had these sha256 digests.

    Where it cannot be written nothing is kept, and the profile is read anew the next time.
    """
    paths = tuple(map(str, files))
    try:
        key = _key(name, known, paths, digests)
        place = _place(name)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = place.with_name(f".{os.urandom(8).hex()}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(msgspec.json.encode(_Kept(key=key, files=paths, profile=profile)))
            temporary.replace(place)
        except (OSError, ValueError):  # ValueError: a path that is no Unicode
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError):
        return


def _place(name: str) -> Path:
    folder = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: a path that is not absolute is to be ignored.
    cache = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"
    return cache / "hpclaunch" / "sites" / f"{name}.json"


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
