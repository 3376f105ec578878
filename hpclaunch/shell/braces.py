"""The words that bash makes of braces, ``a{1,2}b`` and ``{08..10..2}`` (man bash, Brace Expansion)."""

import re
from itertools import pairwise

_MOST = 1000
_PIECE = re.compile(
    r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`|\$\{(?:[^{}]|\{[^{}]*\})*\}|\$\((?:[^()]|\([^()]*\))*\)|.",
    re.S,
)
"""A character, or what hides the braces in it."""
_SEQUENCE = re.compile(
    r"(?=-?\d+\.\.-?\d|[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])(-?\d{1,9}|\w)\.\.(-?\d{1,9}|\w)(?:\.\.-?(\d{1,9}))?"
)


def in_braces(raw: str, too_many: str) -> list[str]:
    """Return the words that bash makes of one, as they would be written; ``too_many``: a text for those."""
    return [too_many] if raw.count("{") > 40 else _expanded(_PIECE.findall(raw), too_many)


def _expanded(pieces: list[str], too_many: str) -> list[str]:
    for start in (at for at, piece in enumerate(pieces) if piece == "{"):
        cuts = _cuts(pieces, start)
        if items := _items([pieces[first + 1 : last] for first, last in pairwise(cuts)], too_many):
            tails = _expanded(pieces[cuts[-1] + 1 :], too_many)
            head, known = "".join(pieces[:start]), len(items) * len(tails) <= _MOST
            return [f"{head}{item}{tail}" for item in items for tail in tails] if known else [too_many]
    return ["".join(pieces)]


def _items(parts: list[list[str]], too_many: str) -> list[str]:
    if len(parts) == 1:
        return _sequence("".join(parts[0]))
    return [item for part in parts for item in _expanded(part, too_many)]


def _cuts(pieces: list[str], start: int) -> list[int]:
    """Return where an opening brace, its commas and its closing brace are; none: it is not closed."""
    depth, cuts = 0, [start]
    for at in range(start + 1, len(pieces)):
        depth += (pieces[at] == "{") - (pieces[at] == "}")
        if depth == 0 and pieces[at] == ",":
            cuts.append(at)
        elif depth < 0 and (len(cuts) > 1 or _sequence("".join(pieces[start + 1 : at]))):
            return [*cuts, at]
        depth = max(depth, 0)  # of {a},b} the second closes
    return []


def _sequence(text: str) -> list[str]:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return []
    first, last = (ord(end) if end.isalpha() else int(end) for end in match.group(1, 2))
    way = 1 if first <= last else -1
    numbers = range(first, last + way, way * (int(match[3] or 1) or 1))[: _MOST + 1]
    width = max(map(len, match.group(1, 2))) if re.search(r"(^|\.\.)-?0\d+(?=\.\.|$)", text) else 1
    return [chr(number) if match[1].isalpha() else f"{number:0{width}d}" for number in numbers]
