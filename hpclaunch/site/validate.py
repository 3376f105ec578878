"""From a tree of plain values to a SiteProfile: types first, then what must fit together.

All problems are found in one go; each says file, line, key, what was found and what would be right.
"""

from __future__ import annotations

import datetime as dt
import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.site.profile_rules import broken_rules
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.yaml_tree import KeyPath, Tree

_T = TypeVar("_T", bound=msgspec.Struct)


class Problem(NamedTuple):
    """One thing that is wrong with a profile."""

    where: str
    """``FILE:LINE``."""
    what: str
    """Key and value found."""
    right: str
    """What would be right."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.right}"


def to_profile(tree: Tree) -> SiteProfile:
    """Return the typed profile. Raises BadInputError with every problem, one a line."""
    profile = to_struct(tree, SiteProfile)
    problems = [Problem(tree.at(path).where, what, right) for path, what, right in broken_rules(profile)]
    if problems:
        raise BadInputError("\n".join(map(str, problems)))
    return profile


def to_struct(tree: Tree, wanted: type[_T]) -> _T:
    """Return the typed struct. Raises BadInputError with every value of a wrong type, one a line."""
    try:
        return msgspec.convert(tree.plain(), wanted)
    except msgspec.ValidationError as error:  # it names the first one only, and no line
        problems = [str(problem) for problem in type_problems(tree, wanted, ())]
        raise BadInputError("\n".join(problems) or f"{tree.where}: {error}") from None


def type_problems(tree: Tree, wanted: Any, path: KeyPath) -> Iterator[Problem]:
    """Yield what does not have the type ``wanted`` (an annotation of the schema), at any depth."""
    options = get_args(wanted) if get_origin(wanted) in (Union, types.UnionType) else (wanted,)
    if tree.value is None and types.NoneType in options:
        return
    options = tuple(option for option in options if option is not types.NoneType)
    wanted = options[0] if len(options) == 1 else wanted
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        yield from _struct_problems(tree, wanted, path)
    elif get_origin(wanted) is dict:
        yield from _dict_problems(tree, get_args(wanted)[1], path)
    elif get_origin(wanted) is tuple:
        yield from _list_problems(tree, get_args(wanted)[0], path)
    else:
        yield from _leaf_problems(tree, wanted, path)


def _struct_problems(tree: Tree, wanted: type[msgspec.Struct], path: KeyPath) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    if not isinstance(tree.value, dict):
        keys = ", ".join(fields)
        yield Problem(tree.where, _found(tree, path), f"it must be a mapping; its keys may be {keys}")
        return
    for key, item in tree.items():
        if key in fields:
            yield from type_problems(item, fields[key].type, (*path, key))
        else:
            yield Problem(item.where, f"unknown key {key!r} in {show_keys(path)}", did_you_mean(key, fields))
    for key, field in fields.items():
        if field.required and key not in tree.value:
            yield Problem(
                tree.where, f"{show_keys(path)} lacks {key!r}", f"add {key}: with {_right(field.type)}"
            )


def _dict_problems(tree: Tree, wanted: Any, path: KeyPath) -> Iterator[Problem]:
    if not isinstance(tree.value, dict):
        yield Problem(tree.where, _found(tree, path), "it must be a mapping from names to values")
    for key, item in tree.items():
        yield from type_problems(item, wanted, (*path, key))


def _list_problems(tree: Tree, wanted: Any, path: KeyPath) -> Iterator[Problem]:
    if not isinstance(tree.value, list):
        yield Problem(tree.where, _found(tree, path), "it must be a list: [a, b], or lines that begin with -")
        return
    for number, item in enumerate(tree.value):
        yield from type_problems(item, wanted, (*path, number))


def _leaf_problems(tree: Tree, wanted: Any, path: KeyPath) -> Iterator[Problem]:
    if isinstance(tree.value, dict | list):
        yield Problem(tree.where, _found(tree, path), f"it must be {_right(wanted)}")
        return
    try:
        msgspec.convert(tree.value, wanted)
    except msgspec.ValidationError:
        yield Problem(tree.where, _found(tree, path), _leaf_hint(tree.value, wanted))


def _leaf_hint(value: Any, wanted: Any) -> str:
    if choices := choices_of(wanted):
        from difflib import get_close_matches  # only messages need it

        near = get_close_matches(str(value), choices, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f"it must be {_right(wanted)}{meant}"
    base = get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted
    if base is str and isinstance(value, int | float):
        written = str(value).lower()
        return f'it must be text: put it in quotes, "{written}"'
    return f"it must be {_right(wanted)}"


def choices_of(wanted: Any) -> list[str]:
    """Return the names of which a value must be one; none where it is free."""
    if get_origin(wanted) is Literal:
        return [str(choice) for choice in get_args(wanted)]
    notes = get_args(wanted)[1:] if get_origin(wanted) is Annotated else ()
    return [choice for meta in notes for choice in (getattr(meta, "extra", None) or {}).get("choices", ())]


def _right(wanted: Any) -> str:
    """Say in words what an annotation asks for."""
    if get_origin(wanted) is Annotated:
        notes = [meta.description for meta in get_args(wanted)[1:] if getattr(meta, "description", None)]
        return notes[0] if notes else _right(get_args(wanted)[0])
    if get_origin(wanted) is Literal:
        choices = [str(choice) for choice in get_args(wanted)]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if get_origin(wanted) in (Union, types.UnionType):
        return " or ".join("null" if part is types.NoneType else _right(part) for part in get_args(wanted))
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    words[dt.date] = "a date such as 2026-11-20"
    return words.get(wanted, "a list" if get_origin(wanted) is tuple else "a mapping")


def _found(tree: Tree, path: KeyPath) -> str:
    if isinstance(tree.value, dict | list):
        return f"{show_keys(path)} is a {'mapping' if isinstance(tree.value, dict) else 'list'}"
    text = repr(tree.value) if isinstance(tree.value, str) else json.dumps(tree.value)
    return f"{show_keys(path)} is {text if len(text) <= 80 else text[:77] + '...'}"


def show_keys(path: KeyPath) -> str:
    """Write a key path: ``node.numa[0].cores``; the whole profile is "the profile"."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".") or "the profile"


def did_you_mean(word: str, known: Any) -> str:
    """Return ``did you mean 'x'?``, or the words that are known."""
    names = sorted(known)
    from difflib import get_close_matches  # only messages need it

    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names) or 'none'}"
