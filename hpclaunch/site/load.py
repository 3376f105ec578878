"""Site profiles by name or path, merged over what they extend.

Merging: mappings merge key by key, a null removes an inherited key, everything else (lists too) is replaced.
An environment variable and a source are one thing each: replaced whole, since a value needs its own reason
and a date its own page. Queues that the extending profile names stand first, in its order, since their order
is their preference.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.resources import resource_dir
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.tree import KeyPath, Tree, read_tree, show_path
from hpclaunch.site.validate import did_you_mean, to_profile

_WHOLE = (("sources",), ("env",), ("fabric", "common"), ("fabric", "single_node"), ("fabric", "multi_node"))


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A profile and where it came from."""

    profile: SiteProfile
    files: tuple[Path, ...]
    """Its own file, then the one it extends, and so on."""
    tree: Any
    """The merged hpclaunch.site.tree.Tree: every value with the file and line it came from."""


def user_sites_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_CONFIG_HOME/hpclaunch/sites`` (``~/.config`` where that is unset or not absolute)."""
    config = Path(environ.get("XDG_CONFIG_HOME", ""))
    base = config if config.is_absolute() else Path.home() / ".config"
    return base / "hpclaunch" / "sites"


def site_names() -> dict[str, Path]:
    """Return every site's name and file; a user's profile hides a shipped one of the same name."""
    return {name: files[0] for name, files in sorted(_all_files().items())}


def hidden_sites() -> dict[str, Path]:
    """Return the shipped profiles that a user's profile of the same name hides."""
    return {name: files[1] for name, files in sorted(_all_files().items()) if len(files) > 1}


def load_site(name_or_path: str) -> SiteProfile:
    """Return the profile with this name or in this file. Raises BadInputError with file and line."""
    return load_merged(name_or_path).profile


def load_merged(name_or_path: str) -> Loaded:
    """Return the profile with the files it was merged from.

    A path is anything with a slash, or that ends in .yaml or .yml. Raises BadInputError.
    """
    path = Path(os.path.expanduser(name_or_path)) if _is_path(name_or_path) else _named(name_or_path)
    tree, files = _merged(path, ())
    profile = to_profile(tree)
    if not _is_path(name_or_path) and profile.name != path.stem:
        where = tree.at(("name",)).where
        raise BadInputError(f"{where}: name is {profile.name!r} in {path.name}; it must be {path.stem!r}")
    return Loaded(profile=profile, files=files, tree=tree)


def load_all() -> tuple[dict[str, SiteProfile], dict[str, str]]:
    """Return every profile by name, and for those that cannot be read the message instead."""
    profiles: dict[str, SiteProfile] = {}
    broken: dict[str, str] = {}
    for name in site_names():
        try:
            profiles[name] = load_site(name)
        except BadInputError as error:
            broken[name] = str(error)
    return profiles, broken


def profile_digest(profile: SiteProfile) -> str:
    """Return the sha256 of the profile as JSON with sorted keys and no defaults, in hexadecimal."""
    text = json.dumps(msgspec.to_builtins(profile), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _all_files() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for folder in (user_sites_dir(), resource_dir("site_profiles")):
        for path in sorted(folder.glob("*.yaml")):
            found.setdefault(path.stem, []).append(path)
    return found


def _is_path(text: str) -> bool:
    return "/" in text or text.endswith((".yaml", ".yml"))


def _named(name: str) -> Path:
    names = site_names()
    if name not in names:
        raise BadInputError(
            f"no site is named {name!r}; {did_you_mean(name, names)}", "or give the path of a file"
        )
    return names[name]


def _merged(path: Path, above: tuple[Path, ...]) -> tuple[Tree, tuple[Path, ...]]:
    """Return the tree of a file over all it extends, and the files; ``above`` extend this one."""
    own = read_tree(path)
    if not isinstance(own.value, dict):
        raise BadInputError(f"{own.where}: a profile is a mapping", "begin with schema: 1 and name:")
    files = (*above, path.resolve())
    base_name = own.value.get("extends")
    if base_name is None or not isinstance(base_name.value, str):
        return own, files
    for key in ("schema", "name"):
        if key not in own.value:
            raise BadInputError(f"{own.where}: {key!r} is missing; it is not inherited, add {key}:")
    base, chain = _merged(_base(base_name, files), files)
    return merge(base, own), chain


def _base(name: Tree, files: tuple[Path, ...]) -> Path:
    """Return the file that ``extends: name`` means.

    A user's profile may extend the shipped one of its own name.
    """
    known = _all_files()
    if name.value not in known:
        raise BadInputError(
            f"{name.where}: extends {name.value!r}, which is no site; {did_you_mean(name.value, known)}"
        )
    for path in known[name.value]:
        if path.resolve() not in files:
            return path
    chain = " -> ".join(show_path(path) for path in (*files, known[name.value][0]))
    raise BadInputError(f"{name.where}: extends {name.value!r} in a circle: {chain}", "end the circle")


def merge(base: Tree, over: Tree, path: KeyPath = ()) -> Tree:
    """Return ``over`` merged over ``base`` by the rules of this module; every value keeps its place."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)) or path[:-1] in _WHOLE:
        return over
    merged = dict(base.value)
    for key, item in over.value.items():
        inherited = merged.get(key)
        if inherited is None:
            merged[key] = item
        elif item.value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(inherited, item, (*path, key))
    if path == ("queues",):
        first = [key for key in over.value if key in merged]
        merged = {key: merged[key] for key in (*first, *(k for k in merged if k not in first))}
    return Tree(merged, over.file, over.line)
