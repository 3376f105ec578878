"""From a tree of plain values to a SiteProfile: types first, then the rules between values.

All problems are found in one run; each names file, line, key, what was found and what would be right.
"""

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, package_table
from hpclaunch.site.profile_rules import broken_rules
from hpclaunch.site.schema import NodeKind, SiteProfile
from hpclaunch.site.yaml_tree import KeyPath, Tree

_WORD = package_constants("site/forms.json", "validate")
_T = TypeVar("_T", bound=msgspec.Struct)


class Problem(NamedTuple):
    """One thing that is wrong with a profile."""

    where: str
    """``FILE:LINE``."""
    what: str
    """Key and value found."""
    right: str
    """The remedy: a value or form that would be right."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.right}"


_Profile = TypeVar("_Profile", SiteProfile, NodeKind)


def checked(tree: Tree, wanted: type[_Profile]) -> _Profile:
    """Return the typed profile or node kind. Raises BadInputError with all problems, one per line."""
    profile = to_struct(tree, wanted)
    problems = [Problem(tree.at(path).where, what, right) for path, what, right in broken_rules(profile)]
    if problems:
        raise BadInputError("\n".join(map(str, problems)))
    return profile


def to_struct(tree: Tree, wanted: type[_T]) -> _T:
    """Return the typed struct. Raises BadInputError with all values of a wrong type, one per line."""
    try:
        return msgspec.convert(tree.plain(), wanted)
    except msgspec.ValidationError as error:  # it names only the first value, and no line
        problems = [str(problem) for problem in type_problems(tree, wanted, ())]
        raise BadInputError("\n".join(problems) or f"{tree.where}: {error}") from None


def type_problems(tree: Tree, wanted: Any, path: KeyPath) -> Iterator[Problem]:
    """Yield the values that do not have the type ``wanted`` (an annotation of the schema), at any depth."""
    wanted, may_be_null = _without_null(wanted)
    if tree.value is None and may_be_null:
        return
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        yield from _struct_problems(tree, wanted, path)
    elif get_origin(wanted) is dict:
        if not isinstance(tree.value, dict):
            yield Problem(tree.where, _found(tree, path), "it must be a mapping from names to values")
        for key, item in tree.items():
            yield from type_problems(item, get_args(wanted)[1], (*path, key))
    elif get_origin(wanted) is tuple:
        yield from _list_problems(tree, get_args(wanted)[0], path)
    else:
        yield from _leaf_problems(tree, wanted, path)


def _without_null(wanted: Any) -> tuple[Any, bool]:
    """Return ``X`` of the annotation ``X | None``, else the annotation, and whether it allows None."""
    options = get_args(wanted) if _is_union(wanted) else ()
    others = [option for option in options if option is not types.NoneType]
    return others[0] if len(others) == 1 else wanted, types.NoneType in options


def _is_union(wanted: Any) -> bool:
    return get_origin(wanted) in (Union, types.UnionType)


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
            place = show_keys(path, wanted)
            yield Problem(item.where, f"unknown key {key!r} in {place}", did_you_mean(key, fields))
    for key, field in fields.items():
        if field.required and key not in tree.value:
            yield Problem(
                tree.where,
                f"{show_keys(path, wanted)} lacks {key!r}",
                f"add {key}: with {_right(field.type)}",
            )


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
    if without_note(wanted)[0] is str and isinstance(value, int | float):
        written = str(value).lower()
        return f'it must be text: put it in quotes, "{written}"'
    return f"it must be {_right(wanted)}"


def choices_of(wanted: Any) -> list[str]:
    """Return the names of which a value must be one; none where it is free."""
    if get_origin(wanted) is Literal:
        return [str(choice) for choice in get_args(wanted)]
    notes = get_args(wanted)[1:] if get_origin(wanted) is Annotated else ()
    return [choice for meta in notes for choice in (getattr(meta, "extra", None) or {}).get("choices", ())]


def without_note(annotation: Any) -> tuple[Any, str | None]:
    """Return an annotation without its msgspec.Meta, and the description in that."""
    if get_origin(annotation) is not Annotated:
        return annotation, None
    plain, *metas = get_args(annotation)
    return plain, next((meta.description for meta in metas if getattr(meta, "description", None)), None)


def type_words(wanted: Any) -> str | None:
    """Return what the values of a plain type are, in words; None for any other annotation."""
    words: dict[str, str] = package_table("site/words.yaml")["types"]
    return words.get(getattr(wanted, "__name__", ""))


def _right(wanted: Any) -> str:
    """Return in words what an annotation requires."""
    wanted, note = without_note(wanted)
    origin, parts = get_origin(wanted), get_args(wanted)
    if note is not None:
        return note
    if origin is Literal:
        choices = [str(choice) for choice in parts]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if _is_union(wanted):
        return " or ".join(map(_right, parts))
    return type_words(wanted) or ("a list" if origin is tuple else "a mapping")


def _found(tree: Tree, path: KeyPath) -> str:
    if isinstance(tree.value, dict | list):
        return f"{show_keys(path)} is a {'mapping' if isinstance(tree.value, dict) else 'list'}"
    text = repr(tree.value) if isinstance(tree.value, str) else json.dumps(tree.value)
    return f"{show_keys(path)} is {text if len(text) <= 80 else text[:77] + '...'}"


def show_keys(path: KeyPath, document: type[msgspec.Struct] | None = None) -> str:
    """Return a key path as text: ``node.numa[0].cores``; for the whole ``document`` what it is."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    documents: dict[str, str] = package_table("site/words.yaml")["documents"]
    return text.removeprefix(".") or documents.get(document.__name__ if document else "", "the file")


def did_you_mean(word: str, known: Any) -> str:
    """Return ``did you mean 'x'?``, or the list of known words."""
    names = sorted(known)
    from difflib import get_close_matches  # only messages need it

    meant = (word.lower(), _WORD.meant.get(word.lower()))
    same = [name for name in names if name.lower() in meant]
    near = same or get_close_matches(word.lower(), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names) or 'none'}"
