"""Load site profiles by name or path, merged over what they extend (``hpclaunch.site.merge_profiles``)."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.site.profile_cache import ProfileCache
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
