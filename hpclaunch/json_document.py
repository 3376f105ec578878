"""Documents that commands print with ``--json`` or ``--csv``: their type, their text and their schema."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

import msgspec

from hpclaunch.package_data import package_table


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Keys may be added; a key that is removed or changes its meaning raises ``schema``."""

    schema: Literal[1] = 1


_Document = TypeVar("_Document", bound=msgspec.Struct)


def document_of(wanted: type[_Document], source: object, **more: Any) -> _Document:
    """Return a document whose keys are the attributes of an object that have their names, and ``more``."""
    fields = {name: getattr(source, name) for name in wanted.__struct_fields__ if hasattr(source, name)}
    return wanted(**{**fields, **more})


def document_text(document: object, indent: int | None = None) -> str:
    """Return a document, or a list of them, as JSON in ASCII, which any terminal and any file takes."""
    import json

    return json.dumps(msgspec.to_builtins(document), indent=indent)


def document_csv(document: object) -> str:
    """Return the tables of a document as CSV, with the keys of its JSON.

    A list of objects is one table. Of an object each list or mapping of objects is one, whose first column,
    ``table``, has its key; ``key`` has that of a mapping. Between two tables is an empty line; what is in no
    list is left to JSON. Within a row the keys of an object are joined by dots, a list is written with
    semicolons, and one of objects as JSON.
    """
    import csv
    import io

    output = io.StringIO()
    for number, table in enumerate(_tables(document)):
        output.write("\n" * bool(number))
        writer = csv.DictWriter(
            output, list(dict.fromkeys(key for row in table for key in row)), lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(table)
    return output.getvalue()


def _tables(document: object) -> Iterator[list[dict[str, str]]]:
    if isinstance(document, msgspec.Struct):
        for name, value in msgspec.structs.asdict(document).items():
            rows = [] if isinstance(value, msgspec.Struct) else list(_objects(value))
            if rows:
                yield [{"table": name, **row} for row in rows]
    elif rows := list(_objects(document)):
        yield rows


def _objects(value: object) -> Iterator[dict[str, str]]:
    if isinstance(value, msgspec.Struct):
        yield dict(_cells(msgspec.to_builtins(value)))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from ({"key": str(key), **row} for row in _objects(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _objects(each)


def _cells(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the columns of a row with their texts."""
    for key, value in values.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from _cells(value, f"{name}.")
        elif isinstance(value, list | tuple) and not any(
            isinstance(one, dict | list | tuple) for one in value
        ):
            yield name, _line(";".join(map(str, value)))
        elif isinstance(value, str):
            yield name, _line(value)
        else:
            yield name, "" if value is None else msgspec.json.encode(value).decode()


def _line(text: str) -> str:
    """Return a text for one line, the characters that steer a terminal written out."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def structs_in(annotation: Any) -> dict[str, type[msgspec.Struct]]:
    """Return the structs of a type by their names, each after the one that first uses it."""
    found: dict[str, type[msgspec.Struct]] = {}
    waiting = list(_named_in(annotation))
    while waiting:
        struct = waiting.pop(0)
        if struct.__name__ not in found:
            found[struct.__name__] = struct
            waiting += [part for field in msgspec.structs.fields(struct) for part in _named_in(field.type)]
    return found


def _named_in(annotation: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for part in get_args(annotation):
        yield from _named_in(part)


def field_docs(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return field -> its meaning in one line, from ``fields.yaml``."""
    docs: dict[str, str] = {}
    for base in struct.__mro__[: struct.__mro__.index(msgspec.Struct)]:
        told = package_table("fields.yaml").get(base.__module__.rpartition(".")[2], {})
        docs = {**told.get(base.__name__, {}), **docs}
    return docs
