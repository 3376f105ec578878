"""Sets of CPU numbers and their spellings: Linux CPU lists and hexadecimal masks.

A CPU is a hardware thread as the kernel numbers it. Lists are the kernel's format
(``0-3,8,64-67``; man 7 cpuset, "List format"), masks are Slurm's and taskset's hexadecimal numbers.
"""

import re
from collections.abc import Iterable

from hpclaunch.errors import BadInputError

CpuSet = frozenset[int]

# Larger than any machine the kernel supports (NR_CPUS is at most 8192): a guard against "0-9999999999".
MAX_CPU = 65535

_NUMBER = r"[0-9]{1,6}"
_RANGE = re.compile(rf"(?P<first>{_NUMBER})(?:-(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?)?")


def parse_cpu_list(text: str) -> CpuSet:
    """Read a CPU list such as ``0-3,8``; an empty text is the empty set.

    Ranges may carry a step, ``5-19:2``, as lscpu of util-linux 2.43 prints interleaved nodes.
    Raises BadInputError for anything that is not a list of numbers and rising ranges up to ``MAX_CPU``.
    """
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        step = int(match["step"] or 1) if match else 0
        if match is None or step == 0:
            raise BadInputError.case("CPU list: bad part", text=text, part=part)
        low, high = int(match["first"]), int(match["last"] or match["first"])
        if low > high or high > MAX_CPU:
            raise BadInputError(f"bad CPU list {text!r}: {part!r} is a falling range or exceeds {MAX_CPU}")
        cpus.update(range(low, high + 1, step))
    return frozenset(cpus)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Write CPUs as the shortest sorted list, ``0-3,8``; the empty set is the empty text."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def to_mask(cpus: Iterable[int]) -> str:
    """Write CPUs as a hexadecimal mask with ``0x``, bit i standing for CPU i."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


def parse_mask(text: str) -> CpuSet:
    """Read a hexadecimal mask, with or without ``0x``, in either case, zero-padded or not.

    Raises BadInputError when the text is not hexadecimal or names a CPU above ``MAX_CPU``.
    """
    digits = text.strip().lower().removeprefix("0x")
    if not digits or len(digits) > MAX_CPU // 4 or set(digits) - set("0123456789abcdef"):
        raise BadInputError(f"bad CPU mask {text!r}", "write it in hexadecimal, such as 0xfe00")
    value = int(digits, 16)
    return frozenset(cpu for cpu in range(value.bit_length()) if value >> cpu & 1)
