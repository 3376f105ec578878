"""The parts of a saved description of a node: tools' output and the files of /sys that the reader uses.

Pure: which programs describe a node, the names of the files with their output, and which files of a /sys tree
are copied. ``hpclaunch.topology.capture`` runs the programs and writes the files.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from hpclaunch.topology.sysfs import Tree, read_tree

MARKER = "topology.json"
"""File that marks the folder and lists what is missing; a folder without it is never replaced."""
SYSFS_FOLDER = "sysfs"


class Tool(NamedTuple):
    """One program that describes a node."""

    kind: str
    """Its reader, a key of ``sources.KINDS``."""
    file: str
    commands: tuple[tuple[str, ...], ...]
    """The commands to run, in the C locale; the file holds the outputs one after another."""
    limit_s: float


# rocm-smi takes up to 20 s on large nodes.
TOOLS = (
    Tool("lscpu", "lscpu.txt", (("lscpu",), ("lscpu", "-p=CPU,CORE,SOCKET,NODE,CACHE")), 20),
    Tool("numactl", "numactl.txt", (("numactl", "-H"),), 20),
    Tool("rocm_smi", "rocm-smi.txt", (("rocm-smi", "--showtoponuma", "--showbus"),), 90),
    Tool("amd_smi", "amd-smi.json", (("amd-smi", "static", "--numa", "--bus", "--json"),), 90),
    Tool("nvidia_smi", "nvidia-smi.txt", (("nvidia-smi", "topo", "-m"), ("nvidia-smi", "-L")), 60),
    Tool("hwloc", "hwloc.xml", (("lstopo-no-graphics", "--of", "xml"),), 60),
)


class TreeCopy(NamedTuple):
    """A compact copy of a /sys and /proc tree, by path below its root."""

    files: Mapping[str, str]
    links: Mapping[str, str]
    """Symbolic links and where they lead, relative."""


def copy_tree(root: Path) -> TreeCopy:
    """Return the part of ``root`` that the reader uses: a copy of it reads the same.

    Raises BadInputError as ``sysfs.read``.
    Of /proc/self/status only the line about CPUs is copied.
    """
    tree = Tree(root, {}, {})
    read_tree(tree)
    files = dict(tree.texts)
    if status := files.get("proc/self/status"):
        lines = status.splitlines(keepends=True)
        files["proc/self/status"] = "".join(line for line in lines if line.startswith("Cpus_allowed_list:"))
    links = {}
    for path, address in tree.links.items():
        up = [".."] * (len(PurePosixPath(path).parts) - 1)
        links[path] = str(PurePosixPath(*up, "sys/bus/pci/devices", address))
    return TreeCopy(files, links)
