"""Cleaning of pasted command output, and the errors that point at a line of it."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from hpclaunch.cpuset import CpuSet, parse_cpu_list
from hpclaunch.errors import BadInputError

MAX_CHARS = 32 * 1024 * 1024
MAX_NUMA = 65535
"""Above any node number of the kernel (MAX_NUMNODES is at most 1024)."""

ONE_FILE_PER_NODE = "give one file per node"

# 4294967295 is -1 printed unsigned (ROCm 4.3 to 5.7); -1 is the kernel's "no node".
_UNKNOWN = frozenset(
    {"", "-", "-1", "4294967295", "18446744073709551615", "N/A", "NA", "NONE", "NULL", "UNKNOWN"}
)

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9])")
_SRUN_LABEL = re.compile(r"[ \t]{0,8}(\d{1,7}):(?: |$)")


class Line(NamedTuple):
    """One line of a file: its number there, counted from 1, and its text without decoration."""

    number: int
    text: str
    origin: str

    def bad(self, found: str, hint: str) -> BadInputError:
        """Build the error for it: file, line, what was found, what would be right."""
        return BadInputError(f"{self.origin}, line {self.number}: {found}", hint)

    def part(self, text: str) -> "Line":
        """Return a part of it, such as one value, for errors with the same place."""
        return self._replace(text=text.strip())


def shorten(text: str) -> str:
    """Quote a piece of input for a message, cut to 60 characters."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def clean_lines(text: str, origin: str) -> list[Line]:
    """Split pasted output into lines, without colours, Windows line ends, trailing blanks and srun labels.

    ``srun --label`` writes ``3: `` before each line; when most lines carry a label, the lines of the
    first task are returned and the other lines dropped. Raises BadInputError for a text above ``MAX_CHARS``.
    """
    if len(text) > MAX_CHARS:
        raise BadInputError(f"{origin}: {len(text)} characters", f"a capture has at most {MAX_CHARS}")
    valid = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")  # a byte order mark
    plain = _ANSI.sub("", valid).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    texts = enumerate(plain.split("\n"), 1)
    lines = [Line(number, line.rstrip(), origin) for number, line in texts]
    labelled = [(found[1], found.end(), line) for line in lines if (found := _SRUN_LABEL.match(line.text))]
    if 2 * len(labelled) <= sum(1 for line in lines if line.text.strip()):
        return lines
    first = labelled[0][0]
    return [line._replace(text=line.text[end:]) for label, end, line in labelled if label == first]


def json_text(text: str, origin: str) -> str:
    """Return the part of pasted output that can be JSON: from the first bracket to the last.

    Prompts, warnings and labels around it are dropped. Returns the empty text where no bracket opens.
    """
    joined = "\n".join(line.text for line in clean_lines(text, origin))
    match = re.search(r"^[ \t]*[\[{]", joined, re.MULTILINE)
    if match is None:
        return ""
    end = max(joined.rfind("]"), joined.rfind("}")) + 1
    return joined[match.start() : end if end > match.start() else None]


def whole_number(text: str, digits: int = 6) -> int | None:
    """Return a number of at most ``digits`` ASCII digits, None for anything else (signs, other digits)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def numa_id(value: Line) -> int | None:
    """Read a NUMA node number; None for every spelling of "unknown" (-1, 4294967295, N/A, NONE, empty)."""
    if value.text.upper() in _UNKNOWN:
        return None
    node = whole_number(value.text)
    if node is None or node > MAX_NUMA:
        raise value.bad(f"{shorten(value.text)} is not a NUMA node", "expected a node number, -1 or N/A")
    return node


def required_number(value: Line) -> int:
    """Read a small positive count such as threads per core (BadInputError otherwise)."""
    number = whole_number(value.text)
    if number is None:
        raise value.bad(f"{shorten(value.text)} is not a number", "expected a whole number")
    return number


def cpu_list(value: Line) -> CpuSet:
    """Read a CPU list of a capture; the error names the file and the line."""
    return cpus_by(parse_cpu_list, value, "a CPU list looks like 0-3,8; is the line cut off?")


def cpus_by(parse: Callable[[str], CpuSet], value: Line, hint: str) -> CpuSet:
    """Read a set of CPUs by a function; the error names the file and the line."""
    try:
        return parse(value.text)
    except BadInputError as error:
        raise value.bad(error.message[:200], hint) from None


def bus_id(text: str) -> str | None:
    """Write a PCI address the kernel's way, ``0000:c1:00.0``; None when the text is not one.

    Accepts upper case, a missing domain and the eight-digit domain that nvidia-smi prints.
    """
    match = re.fullmatch(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", text.strip().lower())
    if not match:
        return None
    domain = int(match.group(1) or "0", 16)
    return f"{domain:04x}:{match.group(2)}:{match.group(3)}.{match.group(4)}"


def decoded_json(document: str, origin: str, hint: str) -> Any:
    """Return the content of a JSON document; raises BadInputError where it is damaged."""
    try:
        return msgspec.json.decode(document)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadInputError(f"{origin}: damaged JSON: {error}", hint) from None
