"""YAML text as a tree that stores the file and line of every value.

Stricter than YAML 1.1: a key may appear once, keys are text, aliases and tags are refused, and a plain word
is ``true``, ``false``, ``null``, a decimal number or text. (YAML 1.1 reads ``48:00:00`` as the number
172800, ``no`` as false, and silently uses the last of two equal keys.)
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from hpclaunch.errors import BadInputError

Key = str | int
KeyPath = tuple[Key, ...]
MAX_BYTES = 1 << 20
MAX_DEPTH = 30

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Event = Any  # yaml.Event; the type stubs do not state which events have a tag or a mark
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]{1,17}")


class Tree(msgspec.Struct, frozen=True):
    """A value with its file and line. ``value`` is a scalar, a dict of Trees or a list of Trees."""

    value: Any
    file: str
    line: int
    """From 1; of the key where there is one."""

    @property
    def where(self) -> str:
        """``FILE:LINE``."""
        return f"{self.file}:{self.line}"

    def plain(self) -> Any:
        """Return the value without files and lines."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def at(self, path: KeyPath) -> "Tree":
        """Return the tree at a key path, or the nearest tree above it that exists."""
        tree = self
        for key in path:
            try:
                tree = tree.value[key]
            except (KeyError, IndexError, TypeError):
                return tree
        return tree

    def items(self) -> Iterator[tuple[str, "Tree"]]:
        """Iterate over the items of a mapping; anything else has none."""
        return iter(self.value.items() if isinstance(self.value, dict) else ())


def read_tree(path: Path) -> Tree:
    """Read a YAML file. Raises BadInputError with file and line."""
    return parse_data(read_data(path), path)


def read_data(path: Path) -> bytes:
    """Read a file's bytes. Raises BadInputError where that fails or the file is larger than any profile."""
    shown = show_path(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise BadInputError(f"{shown}: cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(data) > MAX_BYTES:
        raise BadInputError(f"{shown}: larger than {MAX_BYTES} bytes, more than is read of a YAML file")
    return data


def parse_data(data: bytes, path: Path) -> Tree:
    """Read the bytes of the YAML file ``path``. Raises BadInputError with file and line."""
    shown = show_path(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(f"{shown}:{line}: not UTF-8 text", "save the file as UTF-8") from None
    return parse_tree(text, shown)


@lru_cache(maxsize=16)  # many profiles extend the same one
def parse_tree(text: str, file: str) -> Tree:
    """Read YAML text; ``file`` is its name in messages. Raises BadInputError with file and line."""
    try:
        # Events, not yaml.load: its C composer recurses without limit, so deep nesting overflows the stack.
        return _document(_Events(text, file))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        problem = ", ".join(filter(None, (error.context, error.problem)))
        found = text.split("\n")[mark.line : mark.line + 1] if mark else []
        hint = "indent with blanks: YAML takes no tab there" if "\t" in "".join(found) else None
        raise BadInputError(f"{file}{line}: not YAML: {problem}", hint) from None
    except yaml.YAMLError as error:
        raise BadInputError(f"{file}: not YAML: {' '.join(str(error).split())}") from None


class _Events:
    """The parser's events in order; refuses aliases and tags."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._events = yaml.parse(text, Loader=_Loader)

    def next(self) -> _Event:
        event: _Event = next(self._events)
        if isinstance(event, yaml.AliasEvent):
            raise self.error(event, "YAML aliases (*name) are not supported", "write the value out")
        if getattr(event, "tag", None):
            raise self.error(event, f"YAML tags ({event.tag}) are not supported", "remove the tag")
        return event

    def error(self, event: _Event, problem: str, hint: str) -> BadInputError:
        return BadInputError(f"{self.file}:{event.start_mark.line + 1}: {problem}", hint)


def _document(events: _Events) -> Tree:
    events.next()
    start = events.next()
    if isinstance(start, yaml.StreamEndEvent):
        raise BadInputError(f"{events.file}: empty", "write KEY: VALUE on each line")
    tree = _build(events, events.next(), None, 0)
    events.next()
    after = events.next()
    if not isinstance(after, yaml.StreamEndEvent):
        raise events.error(after, "a second YAML document begins", "write one document per file")
    return tree


def _build(events: _Events, event: _Event, line: int | None, depth: int) -> Tree:
    """Build the value that begins with ``event``; ``line``: that of its key, for the value of a key."""
    line = line or event.start_mark.line + 1
    if depth > MAX_DEPTH:
        raise events.error(event, "nested too deeply", f"at most {MAX_DEPTH} levels are read")
    if isinstance(event, yaml.ScalarEvent):
        return Tree(_scalar(event), events.file, line)
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(event := events.next(), yaml.SequenceEndEvent):
            items.append(_build(events, event, None, depth + 1))
        return Tree(items, events.file, line)
    return Tree(_mapping(events, depth), events.file, line)


def _mapping(events: _Events, depth: int) -> dict[str, Tree]:
    built: dict[str, Tree] = {}
    while not isinstance(event := events.next(), yaml.MappingEndEvent):
        key = _scalar(event) if isinstance(event, yaml.ScalarEvent) else None
        if not isinstance(key, str):
            raise events.error(event, "a key must be text", 'put it in quotes: "0": ...')
        if key in built:
            problem = f"key {key!r} appears twice, first in line {built[key].line}"
            raise events.error(event, problem, "remove one of them")
        built[key] = _build(events, events.next(), event.start_mark.line + 1, depth + 1)
    return built


def _scalar(event: _Event) -> str | int | float | bool | None:
    text: str = event.value
    if not event.implicit[0]:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def show_path(path: Path) -> str:
    """Return a path for messages: relative where it is below the working folder."""
    try:
        return str(path.absolute().relative_to(os.getcwd()))
    except (ValueError, OSError):
        return str(path)
