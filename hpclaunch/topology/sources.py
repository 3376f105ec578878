"""Where a topology comes from: files of captured output, a saved folder, or the live node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hpclaunch.errors import BadInputError
from hpclaunch.topology import lscpu, numactl, rocm_smi, sysfs
from hpclaunch.topology.merge import merge
from hpclaunch.topology.model import NodeTopology
from hpclaunch.topology.partial import Partial
from hpclaunch.topology.text import MAX_CHARS

KINDS: Mapping[str, Callable[[str, str], Partial]] = {
    "lscpu": lscpu.read,
    "rocm_smi": rocm_smi.read,
    "numactl": numactl.read,
}
"""Readers of text by option name; ``sysfs`` takes a folder and is not among them."""


def read_files(files: Mapping[str, Path]) -> NodeTopology:
    """Read captured output, one file (or for ``sysfs`` folder) a kind, and join it.

    Raises BadInputError for an unknown kind, an unreadable or damaged file, or sources of different nodes.
    """
    return merge([_read_one(kind, path) for kind, path in files.items()])


def _read_one(kind: str, path: Path) -> Partial:
    if kind == sysfs.KIND:
        return sysfs.read(path)
    if kind not in KINDS:
        raise BadInputError(f"unknown source {kind!r}", f"known are {', '.join(KINDS)} and sysfs")
    return KINDS[kind](_text_of(path), str(path))


def _text_of(path: Path) -> str:
    """Return a capture's text; UTF-8 with or without mark, UTF-16 as PowerShell writes it."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror or error}", "name a readable file") from None
    if len(data) > MAX_CHARS:
        raise BadInputError(f"{path}: more than {MAX_CHARS} bytes", "is this the output of a topology tool?")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return data.decode(encoding, "replace")


def read_live(sysroot: Path | None = None) -> NodeTopology:
    """Read the node this process runs on (below ``sysroot``, else ``HPCLAUNCH_SYSROOT``, else ``/``).

    Only /sys and /proc are read; no program is started. Raises BadInputError.
    """
    return merge([sysfs.read(sysroot)])


def read_folder(folder: Path) -> NodeTopology:
    """Read a folder that ``save`` wrote. Raises BadInputError."""
    raise NotImplementedError(folder)


def save(folder: Path, sysroot: Path | None = None) -> tuple[str, ...]:
    """Write what tools and /sys say about this node into ``folder``; return what was not there."""
    raise NotImplementedError((folder, sysroot))


def apply_site(topology: NodeTopology, site_node: NodeTopology) -> NodeTopology:
    """Add what only the site profile knows; the files win and differences go to ``notes``."""
    raise NotImplementedError((topology, site_node))
