"""Where a topology comes from: files of captured output, a saved folder, or the live node."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from hpclaunch.errors import BadInputError
from hpclaunch.topology import saved_node, sysfs
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.topology.partial import Partial
from hpclaunch.topology.site_facts import apply_site
from hpclaunch.topology.source_kinds import SOURCE_KINDS
from hpclaunch.topology.tool_text import MAX_CHARS

__all__ = ["KINDS", "apply_site", "read_files", "read_folder", "read_live"]


def _reader(kind: str) -> Callable[[str, str], Partial]:
    """Return a reader that loads its module when it is first used: the live node needs none of them."""

    def read(text: str, origin: str) -> Partial:
        module = importlib.import_module(f"hpclaunch.topology.{kind}")
        return cast("Partial", module.read(text, origin))

    return read


KINDS: Mapping[str, Callable[[str, str], Partial]] = {
    kind.name: _reader(kind.name) for kind in SOURCE_KINDS if kind.name != sysfs.KIND
}
"""Readers of text by option name; ``sysfs`` takes a folder and is not among them."""


def read_files(files: Mapping[str, Path | Sequence[Path]]) -> NodeTopology:
    """Read captured output, one or several files per kind (for ``sysfs`` folders), and join it.

    Raises BadInputError for an unknown kind, an unreadable or damaged file, or sources of different nodes.
    """
    named = {kind: [paths] if isinstance(paths, Path) else paths for kind, paths in files.items()}
    return merge([_read_one(kind, path) for kind, paths in named.items() for path in paths])


def _read_one(kind: str, path: Path) -> Partial:
    if kind == sysfs.KIND:
        return sysfs.read(path)
    if kind not in KINDS:
        raise BadInputError(f"unknown source {kind!r}", f"known sources: {', '.join(KINDS)} and sysfs")
    return KINDS[kind](_text_of(path), str(path))


def _text_of(path: Path) -> str:
    """Return a capture's text; UTF-8 with or without mark, UTF-16 as PowerShell writes it."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror or error}", "name a readable file") from None
    if len(data) > MAX_CHARS:
        raise BadInputError(f"{path}: more than {MAX_CHARS} bytes", "give the output of a topology tool")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data.decode(encoding, "replace")


def read_live() -> NodeTopology:
    """Read the node this process runs on (below ``HPCLAUNCH_SYSROOT``, else ``/``).

    Only /sys and /proc are read; no program is started. Raises BadInputError.
    """
    return merge([sysfs.read(sysfs.default_root())])


def read_folder(folder: Path) -> NodeTopology:
    """Read a folder that ``hpclaunch topology --save`` wrote: tools' output and the copy of /sys.

    Raises BadInputError when there is none, or as ``read_files``.
    """
    files = {tool.kind: folder / tool.file for tool in saved_node.TOOLS if (folder / tool.file).exists()}
    if (folder / saved_node.SYSFS_FOLDER).is_dir():
        files[sysfs.KIND] = folder / saved_node.SYSFS_FOLDER
    if not files:
        known = ", ".join(tool.file for tool in saved_node.TOOLS)
        raise BadInputError(
            f"{folder}: not a saved topology", f"a saved topology holds {known} or {saved_node.SYSFS_FOLDER}/"
        )
    return read_files(files)
