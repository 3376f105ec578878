"""The output of ``horovodrun --check-build`` as data.

The command always exits with status 0, and up to 0.24.3 it may lose its output in a pipe (``os._exit``). Its
boxes for controllers and operations come from the first extension that loads. A framework's box says only
that ``import horovod.NAME`` raised no exception; for torch it raises none even without native code or without
torch itself (horovod/torch/__init__.py, 0.28.1).
"""

import re

import msgspec

_VERSION = re.compile(r"^[ \t]*Horovod v(\S+?):[ \t]*$", re.MULTILINE)
_SECTION = re.compile(r"^[ \t]*Available (Frameworks|Controllers|Tensor Operations):[ \t]*$")
_BOX = re.compile(r"^[ \t]*\[([Xx ]?)\][ \t]*([A-Za-z][\w .+-]*?)[ \t]*$")
_NAMES = {
    "tensorflow": "tensorflow", "pytorch": "pytorch", "mxnet": "mxnet", "keras": "keras", "mpi": "mpi",
    "gloo": "gloo", "nccl": "nccl", "ddl": "ddl", "ccl": "ccl", "mlsl": "ccl",
}  # fmt: skip
# Programs that print what hvd.nccl_built() and its kin say, as guides show them.
_SENTENCE = re.compile(
    r"(?:Horovod|MPI) is (not )?compiled with (rocm|cuda|nccl|horovod) support", re.IGNORECASE
)
_SECTIONS = {"Frameworks": "frameworks", "Controllers": "controllers", "Tensor Operations": "operations"}


class Boxes(msgspec.Struct, frozen=True, kw_only=True):
    """The boxes, by section and lower-case name; CCL's box was called MLSL up to 0.18.2."""

    version: str | None
    """Horovod's version from the first line; None: that line is missing."""
    frameworks: dict[str, bool] = {}
    controllers: dict[str, bool] = {}
    operations: dict[str, bool] = {}

    def __bool__(self) -> bool:
        """Whether there is any box at all."""
        return bool(self.frameworks or self.controllers or self.operations)

    def line(self, name: str) -> str:
        """Quote the boxes of a name, such as ``Controllers [X] MPI, Tensor Operations [ ] MPI``."""
        found = [
            f"{title} [{'X' if section[name] else ' '}]"
            for title, section in (
                ("Frameworks", self.frameworks),
                ("Controllers", self.controllers),
                ("Tensor Operations", self.operations),
            )
            if name in section
        ]
        return ", ".join(found)


def parse(text: str) -> Boxes:
    """Read the boxes in any text; other lines (warnings, --verbose) and colours are ignored.

    An empty or unrelated text has no boxes; a box outside of a section is not counted. Sentences such as
    "Horovod is compiled with NCCL support" count as boxes of operations.
    """
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "")
    version = _VERSION.search(plain)
    sections: dict[str, dict[str, bool]] = {"frameworks": {}, "controllers": {}, "operations": {}}
    current: dict[str, bool] | None = None
    for line in plain.splitlines():
        if section := _SECTION.match(line):
            current = sections[_SECTIONS[section[1]]]
        elif (box := _BOX.match(line)) and current is not None:
            name = _NAMES.get(box[2].lower())
            if name is not None:
                current[name] = box[1] in ("X", "x")
    for negated, what in _SENTENCE.findall(plain):
        name = "mpi" if what.lower() == "horovod" else what.lower()
        sections["operations"].setdefault(name, not negated)
    return Boxes(version=version[1] if version else None, **sections)
