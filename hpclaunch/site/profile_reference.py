"""The profile format explained to editors: its JSON Schema, with the texts of ``hpclaunch/fields.yaml``."""

from typing import Any

import msgspec

from hpclaunch import json_document
from hpclaunch.site import schema

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
