"""The profile format explained: JSON Schema for editors, a reference page for users.

Both take their texts from the attribute docs in ``hpclaunch/site/schema.py``, the only place that describes a
field.
"""

import datetime as dt
import inspect
import re
import textwrap
import types
from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from hpclaunch import json_document
from hpclaunch.site import schema
from hpclaunch.site.merge_profiles import FROM_ANOTHER_MACHINE
from hpclaunch.site.validate import choices_of, without_note

SCHEMA_URI = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "https://json.schemastore.org/hpclaunch-site.json"
# Never merged when a profile extends another (hpclaunch.site.merge_profiles), so always complete.
_WHOLE = ("Source", "EnvVar")
_STARTS = ("extends", "part_of", "node_kind")
_YAML_WORD = {"None": "null", "True": "true", "False": "false"}
_PYTHON_WORD = re.compile(r"\b(?:None|True|False)\b")

_HEAD = """\
# Site profile reference

<!-- Written by `hpclaunch sites schema --markdown` from hpclaunch/site/schema.py: change it there. -->

A site profile is one YAML file that describes one machine. `hpclaunch sites validate FILE` checks it,
`hpclaunch sites schema` prints its JSON Schema for editors.

## Merging

A profile may start from another one, from a node kind, or from both, and contains only the differences:

- `extends: NAME` takes all of a generic profile, or of the one of the same name that yours hides. Of another
  machine it takes the hardware, and how ranks are started and bound:
  @INHERITED@.
  Nothing else comes along: no login host, queue, price, storage, software or page that is not cited;
- `part_of: NAME` takes all of the profile of the same machine, for one of its partitions or clusters;
- `node_kind: NAME` takes `node`, `links` and `gpu_visible_var` of a kind (`hpclaunch sites list --kinds`).

The profile's own keys are merged over those of the kind, and these over those of `extends` or `part_of`,
whose own `node` and `links` then do not count. `hpclaunch sites show` names what came from where. The rules:

- mappings merge key by key; `null` removes an inherited key; everything else, lists too, is replaced;
- an environment variable and a source are replaced whole: a value needs its own reason, a date its own page;
- queues that the profile names come first, in its order: the order of queues is their preference;
- `schema` and `name` are not inherited.

Your own profiles are in `$XDG_CONFIG_HOME/hpclaunch/sites/NAME.yaml` (`~/.config` where the variable is unset
or not an absolute path). They hide a shipped profile of the same name, which they may extend. Your own node
kinds are in the folder `nodes` there. A profile that was read is cached in `$XDG_CACHE_HOME/hpclaunch/sites`
(by default in `~/.cache`) and used from there until a file that it was made from changes. You may delete that
folder at any time.

## Reading

Stricter than YAML 1.1: a key may appear once; aliases and tags are refused; all plain words are text except
`true`, `false`, `null` and decimal numbers. So `48:00:00` and `no` need no quotes, and the value of an
environment variable that looks like a number needs them (`"1"`).
"""


@cache
def field_docs() -> dict[str, dict[str, str]]:
    """Return struct name -> field name -> its doc, from the source of the schema, with YAML's constants."""
    return {
        struct.__name__: {
            field: _PYTHON_WORD.sub(lambda word: _YAML_WORD[word[0]], text)
            for field, text in json_document.field_docs(struct).items()
        }
        for struct in structs()
    }


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
    taken = textwrap.fill("; ".join(parts), 110, subsequent_indent="  ")
    return _HEAD.replace("@INHERITED@", taken) + "".join(f"\n{_section(struct)}" for struct in structs())


def _section(struct: type[msgspec.Struct]) -> str:
    docs = field_docs().get(struct.__name__, {})
    rows = []
    for field in sorted(msgspec.structs.fields(struct), key=lambda field: field.name == "source"):
        meaning = _cell(docs.get(field.name, ""))
        cells = (f"`{field.name}`", _type_text(field.type), _default_text(field), meaning)
        rows.append(f"| {' | '.join(cells)} |\n")
    about = textwrap.fill(" ".join((inspect.getdoc(struct) or "").split()), 110)
    head = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n"
    return f"## {struct.__name__}\n\n{about}\n\n{head}{''.join(rows)}"


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


_TYPE_WORDS: dict[Any, str] = {
    types.NoneType: "null",
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    dt.date: "date",
}


def _type_text(annotation: Any) -> str:
    if choices := choices_of(annotation):
        return ", ".join(f"`{choice}`" for choice in choices)
    annotation, note = without_note(annotation)
    if note is not None or annotation in _TYPE_WORDS:
        return _cell(note or _TYPE_WORDS[annotation])
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
