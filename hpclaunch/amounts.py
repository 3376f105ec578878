"""Numbers with their nouns, amounts of bytes, and lists of names, for people."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def counted(number: int, noun: str, plural: str | None = None, spec: str = "") -> str:
    """Return ``1 node`` or ``2 nodes``; ``plural``: if an s is not enough; ``spec``: the number's form."""
    return f"{number:{spec}} {noun if number == 1 else plural or f'{noun}s'}"


def amount_of(number: float, unit: str, spec: str = ",.4g") -> str:
    """Return ``1 node-hour`` or ``2 node-hours``; ``unit``: in the plural, as in profiles."""
    text = f"{number:{spec}}"
    return f"{text} {unit.removesuffix('s') if text == '1' else unit}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return ``n1, n2``; of more than ``most`` names the first ones, and ``...``."""
    return ", ".join((*names[:most], "...") if len(names) > most else names)


def format_bytes(count: float) -> str:
    """Write a number of bytes, such as ``1.5 GiB``."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:{'.3g' if abs(count) < 999.5 * size else ',.0f'}} {unit}"
    return f"{count:.0f} bytes"


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Round what is known."""
    return None if value is None else round(value, digits)


def grouped(pairs: Iterable[tuple[_Key, _Item]]) -> dict[_Key, list[_Item]]:
    """Return key -> the items that have it, both in the order in which they came."""
    found: dict[_Key, list[_Item]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found
