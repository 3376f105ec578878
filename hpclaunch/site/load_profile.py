"""Load site profiles by name or path, merged over what they extend (``hpclaunch.site.merge_profiles``)."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.folders import read_cached, write_cached
from hpclaunch.site.profile_files import Known, Read, known_files
from hpclaunch.site.schema import NodeKind, SiteProfile


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A profile and its origin."""

    profile: SiteProfile
    read: tuple[Read, ...]


def site_names() -> dict[str, Path]:
    """Return each site's name and file; a user's profile hides a shipped profile of the same name."""
    return {name: files[0] for name, files in sorted(known_files().sites.items())}


def hidden_sites() -> dict[str, Path]:
    """Return the shipped profiles that a user's profile of the same name hides."""
    return {name: files[1] for name, files in sorted(known_files().sites.items()) if len(files) > 1}


def load_kinds() -> tuple[dict[str, tuple[NodeKind, Path]], dict[str, tuple[str, Path]]]:
    """Return all node kinds by name, each with its file, and the messages about those that are wrong."""
    from hpclaunch.site.merge_profiles import read_kind

    kinds: dict[str, tuple[NodeKind, Path]] = {}
    broken: dict[str, tuple[str, Path]] = {}
    for name, (path, *_) in sorted(known_files().kinds.items()):
        try:
            kinds[name] = (read_kind(path)[2], path)
        except BadInputError as error:
            broken[name] = (str(error), path)
    return kinds, broken


def load_kind(name_or_path: str) -> tuple[NodeKind, Path] | None:
    """Return the node kind of this name or file, and the file; None: it is none, or a site has the name.

    Raises BadInputError with all problems of the kind.
    """
    from hpclaunch.site.merge_profiles import is_kind, read_kind
    from hpclaunch.site.yaml_tree import read_tree

    known = known_files()
    if not is_path(name_or_path):
        if name_or_path in known.sites or name_or_path not in known.kinds:
            return None
        path = known.kinds[name_or_path][0]
    else:
        path = _path(name_or_path, known)
        if not is_kind(read_tree(path)):
            return None
    return read_kind(path)[2], path


def load_site(name_or_path: str) -> SiteProfile:
    """Return the profile with this name or in this file. Raises BadInputError with file and line."""
    known = known_files()
    if is_path(name_or_path):
        return _load(name_or_path, known).profile
    return _load_by_name(name_or_path, known, ProfileCache(known))


def site_reference(name_or_path: str) -> str:
    """Return a path of a profile as an absolute one, which holds in any folder; a name unchanged."""
    if not is_path(name_or_path):
        return name_or_path
    return os.path.abspath(os.path.expanduser(name_or_path))


def load_merged(name_or_path: str) -> Loaded:
    """Return the profile and the files that it was merged from.

    A path is anything with a slash, or that ends in .yaml or .yml. Raises BadInputError.
    """
    return _load(name_or_path, known_files())


def load_all() -> tuple[dict[str, SiteProfile], dict[str, str]]:
    """Return all profiles by name, and the messages about those that cannot be read."""
    profiles: dict[str, SiteProfile] = {}
    broken: dict[str, str] = {}
    known = known_files()
    cache = ProfileCache(known)
    for name in sorted(known.sites):
        try:
            profiles[name] = _load_by_name(name, known, cache)
        except BadInputError as error:
            broken[name] = str(error)
    return profiles, broken


def profile_digest(profile: SiteProfile | NodeKind) -> str:
    """Return the sha256 of the profile as JSON with sorted keys and no defaults, in hexadecimal."""
    text = json.dumps(msgspec.to_builtins(profile), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _load_by_name(name: str, known: Known, cache: "ProfileCache") -> SiteProfile:
    if (profile := cache.read(name)) is not None:
        return profile
    loaded = _load(name, known)
    cache.write(name, loaded.read, loaded.profile)
    return loaded.profile


def _load(name_or_path: str, known: Known) -> Loaded:
    # Reading YAML takes most of the time of a dry run; a cached profile does without it.
    from hpclaunch.site.merge_profiles import merged
    from hpclaunch.site.validate import checked

    path = _path(name_or_path, known)
    tree, read = merged(path, known)
    profile = checked(tree, SiteProfile)
    if not is_path(name_or_path) and profile.name != path.stem:
        where = tree.at(("name",)).where
        raise BadInputError(f"{where}: name is {profile.name!r} in {path.name}; it must be {path.stem!r}")
    return Loaded(profile=profile, read=read)


def is_path(text: str) -> bool:
    """Tell whether what names a site, or a model, is the path of its file."""
    return "/" in text or text.endswith((".yaml", ".yml"))


def _path(name_or_path: str, known: Known) -> Path:
    if is_path(name_or_path):
        return Path(os.path.expanduser(name_or_path))
    if name_or_path not in known.sites:
        from hpclaunch.site.validate import did_you_mean

        raise BadInputError.case(
            "sites: unknown", name=name_or_path, meant=did_you_mean(name_or_path, known.sites)
        )
    return known.sites[name_or_path][0]


# Reading and checking YAML takes longer than everything else that is done with a profile. A cached profile is
# used only while everything it was made from is the same, byte for byte: its own file, those it extends, its
# node kind, the names of all profiles and kinds (another one may hide what it extends) and the code that read
# and checked it. So it is never out of date.

_PACKAGE = Path(__file__).parents[1]
CODE = (
    "site/load_profile.py",
    "site/merge_profiles.py",
    "site/profile_files.py",
    "site/profile_rules.py",
    "site/schema.py",
    "site/yaml_tree.py",
    "site/validate.py",
    # What fits a scheduler, its own module says; further ones that it imports stand in that folder, too.
    *sorted(str(path.relative_to(_PACKAGE)) for path in (_PACKAGE / "scheduler").rglob("*.py")),
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

    def write(self, name: str, read: Iterable[Read], profile: SiteProfile) -> None:
        """Cache the profile of a site, which was made from these files when they had these digests."""
        digests = {str(file.path): file.digest for file in read}
        paths = tuple(digests)
        try:
            key = self._key(name, paths, digests.values())
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
    def _same_for_all(self) -> "hashlib._Hash":
        digest = hashlib.sha256()
        _add(digest, code_digest(_PACKAGE), msgspec.__version__, "")
        real_folder = cache(os.path.realpath)  # which takes longer than to read a profile

        def real(file: Path) -> str:
            folder, name = os.path.split(file)
            return os.path.realpath(file) if os.path.islink(file) else f"{real_folder(folder)}/{name}"

        for names in self._known:
            for other, candidates in sorted(names.items()):
                _add(digest, other, *map(real, candidates), "")
            _add(digest, "")
        return digest


@cache
def code_digest(package: Path) -> bytes:
    """Return the digest of the code, as this process found it first: it goes on with what it has loaded."""
    digest = hashlib.sha256()
    _add(digest, *((package / module).read_bytes() for module in CODE))
    return digest.digest()


def _cache_name(name: str) -> str:
    return f"sites/{name}.json"


def _add(digest: "hashlib._Hash", *parts: str | bytes) -> None:
    for part in map(os.fsencode, parts):
        digest.update(b"%d:" % len(part) + part)
