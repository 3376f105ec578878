"""The sources of a topology, one row per kind: the command line, the readers and the merge use this table.

It imports nothing that takes time to load, for ``hpclaunch topology --help`` needs it.
"""

from typing import NamedTuple

SYSFS = "sysfs"
"""The kind that reads a folder; all other kinds read one text."""


class SourceKind(NamedTuple):
    """One kind of source."""

    name: str
    """Its module in ``hpclaunch.topology``, and with dashes its option."""
    precedence: int
    """Where sources differ about cores and NUMA nodes, the one with the lowest number is used."""
    help: str
    """Text of the option."""


SOURCE_KINDS = (
    SourceKind(
        "lscpu",
        3,
        "Output of lscpu: text, -J or -p=CPU,CORE,SOCKET,NODE,CACHE; these file options may be repeated.",
    ),
    SourceKind("rocm_smi", 7, "Output of rocm-smi --showtoponuma, text or --json."),
    SourceKind("amd_smi", 6, "Output of amd-smi static or topology, text or --json."),
    SourceKind(
        "nvidia_smi",
        5,
        "Output of nvidia-smi topo -m; with MIG instances that of nvidia-smi -L after it.",
    ),
    SourceKind("numactl", 4, "Output of numactl -H."),
    SourceKind("hwloc", 2, "XML of lstopo or hwloc-ls."),
    SourceKind(SYSFS, 1, "A root folder with the node's /sys in it."),
)
"""In the order of the options. The kernel's own files take precedence, the tools of GPUs come last."""
