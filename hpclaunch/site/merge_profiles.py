"""Site profiles merged over what they start from: another profile, a node kind, or both.

Mappings merge key by key, a null removes an inherited key, everything else (lists too) is replaced. An
environment variable and a source are replaced whole, since a value needs its own reason and a date its own
page. Queues that the extending profile names come first, in its order, since the order of queues is their
preference.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from hpclaunch.errors import BadInputError, note_text
from hpclaunch.scheduler.registry import KINDS, get_scheduler
from hpclaunch.site.profile_files import Known, Read
from hpclaunch.site.schema import NodeKind
from hpclaunch.site.validate import checked, did_you_mean
from hpclaunch.site.yaml_tree import KeyPath, Tree, parse_data, read_data, show_path

_WHOLE = (("sources",), ("env",), ("fabric", "common"), ("fabric", "single_node"), ("fabric", "multi_node"))

_NODE = "cpu_model sockets cores threads_per_core numbering numa l3_groups memory_gib gpus nics gpu_vendor"
FROM_ANOTHER_MACHINE: dict[str, tuple[str, ...]] = {
    "node_kind": (),
    "scheduler": ("kind", "launcher"),
    "node": (*_NODE.split(), "gpu_model", "gpu_memory_gib", "gpu_arch", "source"),
    "links": (),
    "binding": ("cpu", "gpu_visible_var", "needs_whole_node"),
    "fabric": ("kind",),
}
"""Taken by ``extends`` from a profile that is neither generic nor of the same name: key -> the keys in it
(none: all). It is the hardware, and how ranks are started and bound. The rest is the rule, the price, the
software or the page of one site."""
_NEVER = ("schema", "name", "extends", "part_of", "sources")
_NOTHING = Tree({}, "", 1)


def read_kind(path: Path) -> tuple[Tree, Read, NodeKind]:
    """Return a node kind's tree, file and content. Raises BadInputError with all its problems."""
    own, read = _own(path)
    kind = checked(own, NodeKind)
    if kind.node_kind != path.stem:
        where = own.value["node_kind"].where
        raise BadInputError(note_text("node kind: other name", where=where, kind=kind, path=path))
    return own, read, kind


def is_kind(tree: Tree) -> bool:
    """Tell a node kind's file, which has ``node_kind`` and no name, from a profile."""
    return "node_kind" in tree.value and "name" not in tree.value


def _own(path: Path) -> tuple[Tree, Read]:
    data = read_data(path)
    own = parse_data(data, path)
    if not isinstance(own.value, dict):
        raise BadInputError(f"{own.where}: a profile is a mapping", "begin with schema: 1 and name:")
    return own, Read(path.resolve(), hashlib.sha256(data).hexdigest())


def merged(path: Path, known: Known, above: tuple[Path, ...] = ()) -> tuple[Tree, tuple[Read, ...]]:
    """Return a file's tree merged over all it starts from, and the files. Raises BadInputError.

    ``above``: the files that start from it.
    """
    own, read = _own(path)
    if is_kind(own):
        raise BadInputError.case("node kind: no site", where=own.value["node_kind"].where)
    base, bases, pages = _start(own, (*above, read.path), known)
    kind, kinds = _kind(own, known)
    if kinds:
        base = merge(_without_node(base, kind), kind)
        pages |= _names(kind)
    if not bases and not kinds:
        return own, (read,)
    return _without_uncited(merge(base, own), pages - _names(own)), (read, *bases, *kinds)


def _start(own: Tree, files: tuple[Path, ...], known: Known) -> tuple[Tree, tuple[Read, ...], set[str]]:
    """Return what a profile inherits from another one, the files, and the names of another site's pages."""
    relation = _relation(own)
    if relation is None:
        return _NOTHING, (), set()
    name = own.value[relation]
    base, (first, *chain) = merged(_base(relation, name, files, known.sites), known, files)
    whole = (
        relation == "part_of"
        or name.value == _child(own, "name").value
        or _child(base, "status").value == "generic"
    )
    part = base if whole else _of_another_machine(base)
    first = first._replace(
        relation=relation,
        taken=tuple(key for key in part.value if key not in _NEVER),
        left=tuple(_left(base, part)),
    )
    return part, (first, *chain), set() if whole else _names(part)


def _relation(own: Tree) -> str | None:
    """Return the key by which a profile names another one; None: it names none. Raises BadInputError."""
    relations = [key for key in ("extends", "part_of") if isinstance(_child(own, key).value, str)]
    if len(relations) > 1:
        where = own.value["part_of"].where
        raise BadInputError(f"{where}: extends and part_of are both given", "keep part_of: it inherits all")
    for key in ("schema", "name") if relations else ():
        if key not in own.value:
            raise BadInputError(f"{own.where}: {key!r} is missing; it is not inherited, add {key}:")
    return relations[0] if relations else None


def _left(base: Tree, part: Tree) -> Iterator[str]:
    """Yield the keys of ``base`` that ``part`` lacks, as ``node.count`` where it has others of ``node``."""
    for key, tree in base.items():
        if key not in part.value and key not in _NEVER:
            yield key
        elif key not in _NEVER:
            yield from (f"{key}.{inner}" for inner, _ in tree.items() if inner not in part.value[key].value)


def _base(relation: str, name: Tree, files: Sequence[Path], known: Mapping[str, Sequence[Path]]) -> Path:
    """Return the file that ``extends: name`` (or ``part_of``) means: a user's may extend the shipped one."""
    if name.value not in known:
        meant = did_you_mean(name.value, known)
        raise BadInputError(f"{name.where}: {relation} {name.value!r}, which is not a site; {meant}")
    for path in known[name.value]:
        if path.resolve() not in files:
            return path
    chain = " -> ".join(show_path(path) for path in (*files, known[name.value][0]))
    raise BadInputError(f"{name.where}: {relation} {name.value!r} in a circle: {chain}", "end the circle")


def _of_another_machine(base: Tree) -> Tree:
    """Return the keys of FROM_ANOTHER_MACHINE, and the pages that they cite."""
    part: dict[str, Tree] = {}
    for key, tree in base.items():
        if inner := FROM_ANOTHER_MACHINE.get(key, ()):
            tree = Tree({name: item for name, item in tree.items() if name in inner}, tree.file, tree.line)
        if key in FROM_ANOTHER_MACHINE:
            part[key] = tree
    part["sources"] = _child(base, "sources")
    return _without_uncited(Tree(part, base.file, base.line), _names(base))


def _kind(own: Tree, known: Known) -> tuple[Tree, tuple[Read, ...]]:
    """Return what a profile takes from its node kind, and the kind's file; nothing where it names none."""
    name = _child(own, "node_kind")
    if not isinstance(name.value, str):
        return _NOTHING, ()
    if name.value not in known.kinds:
        meant = did_you_mean(name.value, known.kinds)
        raise BadInputError(f"{name.where}: no node kind is named {name.value!r}; {meant}")
    tree, read, _ = read_kind(known.kinds[name.value][0])
    for key, page in _child(own, "sources").items():
        if key in tree.value["sources"].value:
            raise BadInputError(f"{page.where}: {name.value} has a page {key!r}, too", "name yours otherwise")
    keys = tuple(key for key in ("node", "links", "binding") if key in tree.value)
    taken = {key: tree.value[key] for key in (*keys, "sources")}
    return Tree(taken, tree.file, tree.line), (read._replace(relation="node_kind", taken=keys),)


def _without_node(base: Tree, kind: Tree) -> Tree:
    """Return ``base`` without another kind's node; over a generic profile its binding of cores holds."""
    kept = {key: item for key, item in base.items() if key not in ("node", "links")}
    scheduler = _child(_child(base, "scheduler"), "kind").value
    is_known = "numa" in kind.value["node"].value and scheduler in KINDS
    if is_known and _child(base, "status").value == "generic":
        its = get_scheduler(scheduler)
        bound = {"cpu": its.measured_binding, "needs_whole_node": its.binding_needs_whole_node}
        binding = {key: Tree(value, kind.file, kind.line) for key, value in bound.items()}
        kept["binding"] = Tree(binding, kind.file, kind.line)
    return Tree(kept, base.file, base.line)


def _without_uncited(tree: Tree, pages: Set[str]) -> Tree:
    """Return a profile without those of ``pages`` that nothing in it cites."""
    cited, sources = set(_cited(tree)), _child(tree, "sources")
    if not isinstance(sources.value, dict):
        return tree
    kept = {name: page for name, page in sources.items() if name in cited or name not in pages}
    return Tree(tree.value | {"sources": Tree(kept, sources.file, sources.line)}, tree.file, tree.line)


def _names(tree: Tree) -> set[str]:
    return {name for name, _ in _child(tree, "sources").items()}


def _cited(tree: Tree) -> Iterator[str]:
    for key, item in tree.items():
        if key.endswith("source") and isinstance(item.value, str):
            yield item.value
        yield from _cited(item)
    for item in tree.value if isinstance(tree.value, list) else ():
        yield from _cited(item)


def _child(tree: Tree, key: str) -> Tree:
    """Return the tree of a key, an empty one where there is none."""
    return tree.value.get(key, _NOTHING) if isinstance(tree.value, dict) else _NOTHING


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
