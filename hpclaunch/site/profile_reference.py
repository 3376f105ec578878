"""The profile format explained: JSON Schema for editors, a reference page for users.

Both take their texts from ``hpclaunch/fields.yaml``, the only place that describes a field.
"""

import inspect
import re
import textwrap
from typing import Any, get_args, get_origin

import msgspec

from hpclaunch import json_document
from hpclaunch.site import schema
from hpclaunch.site.merge_profiles import FROM_ANOTHER_MACHINE
from hpclaunch.site.validate import TYPE_WORDS, choices_of, without_note

SCHEMA_URI = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "https://json.schemastore.org/hpclaunch-site.json"
# Never merged when a profile extends another (hpclaunch.site.merge_profiles), so always complete.
_WHOLE = ("Source", "EnvVar")
_STARTS = ("extends", "part_of", "node_kind")


def field_docs() -> dict[str, dict[str, str]]:
    """Return struct name -> field name -> its meaning."""
    return {struct.__name__: json_document.field_docs(struct) for struct in structs()}


def structs() -> tuple[type[msgspec.Struct], ...]:
    """Return the structs of a profile and of a node kind, each after the one that first uses it."""
    found = json_document.structs_in(schema.SiteProfile) | json_document.structs_in(schema.NodeKind)
    return tuple(found.values())


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a profile file.

    A file that starts from another one may leave out what it inherits, and may write null to remove it. One
    without a name is a node kind.
    """
    _, definitions = msgspec.json.schema_components(
        (schema.SiteProfile, schema.NodeKind), ref_template="#/$defs/{name}"
    )
    for name, docs in field_docs().items():
        for field, doc in docs.items():
            if name in definitions:
                definitions[name]["properties"][field]["description"] = doc
    partial = {f"Partial{name}": _partial(body) for name, body in definitions.items() if name not in _WHOLE}
    partial["PartialSiteProfile"]["required"] = ["schema", "name"]
    starts = [{"required": [key], "properties": {key: {"type": "string"}}} for key in _STARTS]
    profile = {
        "if": {"anyOf": starts},
        "then": {"$ref": "#/$defs/PartialSiteProfile"},
        "else": {"$ref": "#/$defs/SiteProfile"},
    }
    return {
        "$schema": SCHEMA_URI,
        "$id": SCHEMA_ID,
        "title": "hpclaunch site profile",
        "description": "One machine as hpclaunch knows it: scheduler, queues, node, binding and software.",
        "type": "object",
        "if": {"required": ["node_kind"], "not": {"required": ["name"]}},
        "then": {"$ref": "#/$defs/NodeKind"},
        "else": profile,
        "$defs": {**definitions, **partial},
    }


def _partial(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object's schema with every key optional and nullable, also in all mappings below it."""
    properties = {key: _nullable(value) for key, value in body["properties"].items()}
    return {key: value for key, value in body.items() if key != "required"} | {"properties": properties}


def _nullable(value: dict[str, Any]) -> dict[str, Any]:
    outer: dict[str, Any] = {key: value[key] for key in ("description", "default") if key in value}
    inner = {key: item for key, item in value.items() if key not in outer}
    return {"anyOf": [_partial_value(inner), {"type": "null"}], **outer}


def _partial_value(value: dict[str, Any]) -> dict[str, Any]:
    """Refer to the partial objects instead of the complete ones, except in lists, which are not merged."""
    if "$ref" in value:
        name = value["$ref"].removeprefix("#/$defs/")
        return value if name in _WHOLE else {**value, "$ref": f"#/$defs/Partial{name}"}
    if "anyOf" in value:
        return {**value, "anyOf": [_partial_value(option) for option in value["anyOf"]]}
    if isinstance(value.get("additionalProperties"), dict):
        return {**value, "additionalProperties": _nullable(value["additionalProperties"])}
    return value


def markdown() -> str:
    """Return the reference page: every key, its type, its default and what it means."""
    parts = [
        f"`{key}`" + (f" ({', '.join(inner)})" if inner else "")
        for key, inner in FROM_ANOTHER_MACHINE.items()
    ]
    from hpclaunch.pages.render_page import render  # seldom needed, and slow to load

    return render(
        "profile_reference.md.j2",
        inherited=textwrap.fill("; ".join(parts), 110, subsequent_indent="  "),
        structs=[_section(struct) for struct in structs()],
    )


def _section(struct: type[msgspec.Struct]) -> dict[str, object]:
    docs = field_docs().get(struct.__name__, {})
    fields = sorted(msgspec.structs.fields(struct), key=lambda field: field.name == "source")
    return {
        "name": struct.__name__,
        "about": textwrap.fill(" ".join((inspect.getdoc(struct) or "").split()), 110),
        "rows": [
            (f"`{each.name}`", _type_text(each.type), _default_text(each), _cell(docs.get(each.name, "")))
            for each in fields
        ],
    }


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def _type_text(annotation: Any) -> str:
    if choices := choices_of(annotation):
        return ", ".join(f"`{choice}`" for choice in choices)
    annotation, note = without_note(annotation)
    if note is not None or annotation in TYPE_WORDS:
        return _cell(note or re.sub("^a | such as .*", "", TYPE_WORDS[annotation]))
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return f"list of {_type_text(parts[0])}"
    if origin is dict:
        return f"mapping of names to {_type_text(parts[1])}"
    return " or ".join(map(_type_text, parts))


def _default_text(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "**required**"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    value = msgspec.to_builtins(value)
    if isinstance(value, dict | list | tuple) and not value:
        return "empty"
    if value == "":
        return "empty text"
    return f"`{msgspec.json.encode(value).decode()}`"
