"""The sources of a topology, one row per kind, ``source_kinds.json``.

The command line, the readers, the merge and ``--save`` use it, and ``hpclaunch topology --help``: it imports
nothing that takes time to load.
"""

import msgspec

from hpclaunch.package_data import text_beside

SYSFS = "sysfs"
"""The kind that reads a folder; all other kinds read one text."""


class SourceKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of source; the tool is the program that prints its text, where there is one."""

    precedence: int
    help: str
    file: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    limit_s: float = 20


SOURCE_KINDS = msgspec.json.decode(text_beside(__file__, "source_kinds.json"), type=dict[str, SourceKind])
"""Name of a module in this folder, and with dashes of its option -> the kind, in the order of the options.
The kernel's own files take precedence, the tools of GPUs come last."""
