"""Site profiles merged over the profiles that they extend.

Mappings merge key by key, a null removes an inherited key, everything else (lists too) is replaced. An
environment variable and a source are replaced whole, since a value needs its own reason and a date its own
page. Queues that the extending profile names come first, in its order, since the order of queues is their
preference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpclaunch.errors import BadInputError
from hpclaunch.site.validate import did_you_mean
from hpclaunch.site.yaml_tree import KeyPath, Tree, parse_data, read_data, show_path

_WHOLE = (("sources",), ("env",), ("fabric", "common"), ("fabric", "single_node"), ("fabric", "multi_node"))

Known = Mapping[str, Sequence[Path]]
"""Site name -> its files; the first is used, the second is hidden by it."""
Read = tuple[Path, str]
"""A file that was read, links resolved, and the sha256 of its bytes."""


def merged(path: Path, known: Known) -> tuple[Tree, tuple[Read, ...]]:
    """Return a file's tree merged over all it extends, and the files, its own first. Raises BadInputError."""
    return _merged(path, (), known)


def _merged(path: Path, above: tuple[Read, ...], known: Known) -> tuple[Tree, tuple[Read, ...]]:
    """Do the same for a file that the files ``above`` extend."""
    data = read_data(path)
    own = parse_data(data, path)
    if not isinstance(own.value, dict):
        raise BadInputError(f"{own.where}: a profile is a mapping", "begin with schema: 1 and name:")
    read = (*above, (path.resolve(), hashlib.sha256(data).hexdigest()))
    base_name = own.value.get("extends")
    if base_name is None or not isinstance(base_name.value, str):
        return own, read
    for key in ("schema", "name"):
        if key not in own.value:
            raise BadInputError(f"{own.where}: {key!r} is missing; it is not inherited, add {key}:")
    base, chain = _merged(_base(base_name, [file for file, _ in read], known), read, known)
    return merge(base, own), chain


def _base(name: Tree, files: Sequence[Path], known: Known) -> Path:
    """Return the file that ``extends: name`` means.

    A user's profile may extend the shipped profile of the same name.
    """
    if name.value not in known:
        raise BadInputError(
            f"{name.where}: extends {name.value!r}, which is not a site; {did_you_mean(name.value, known)}"
        )
    for path in known[name.value]:
        if path.resolve() not in files:
            return path
    chain = " -> ".join(show_path(path) for path in (*files, known[name.value][0]))
    raise BadInputError(f"{name.where}: extends {name.value!r} in a circle: {chain}", "end the circle")


def merge(base: Tree, over: Tree, path: KeyPath = ()) -> Tree:
    """Return ``over`` merged over ``base`` by the rules of this module; values keep their file and line."""
    are_mappings = isinstance(base.value, dict) and isinstance(over.value, dict)
    if not are_mappings or path[:-1] in _WHOLE:
        return over
    merged = dict(base.value)
    for key, item in over.value.items():
        if key not in merged:
            merged[key] = item
        elif item.value is None:
            del merged[key]
        else:
            merged[key] = merge(merged[key], item, (*path, key))
    if path == ("queues",):
        merged = {key: merged[key] for key in over.value if key in merged} | merged
    return Tree(merged, over.file, over.line)
