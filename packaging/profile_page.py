"""Prints docs/reference/profile.md, the page about each key of a site profile: ``profile_page.py > FILE``.

The texts are those of ``hpclaunch/fields.yaml``, the only place that describes a field.
"""

import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
from jinja2 import StrictUndefined, Template

from hpclaunch.site.merge_profiles import FROM_ANOTHER_MACHINE
from hpclaunch.site.profile_reference import field_docs, structs
from hpclaunch.site.validate import choices_of, type_words, without_note


def markdown() -> str:
    """Return the reference page: every key, its type, its default and what it means."""
    parts = [
        f"`{key}`" + (f" ({', '.join(inner)})" if inner else "")
        for key, inner in FROM_ANOTHER_MACHINE.items()
    ]
    docs = field_docs()
    template = Template(
        Path(__file__).with_suffix(".md.j2").read_text(encoding="utf-8"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return str(
        template.render(
            inherited=textwrap.fill("; ".join(parts), 110, subsequent_indent="  "),
            structs=[_section(struct, docs[struct.__name__]) for struct in structs()],
        )
    )


def _section(struct: type[msgspec.Struct], docs: dict[str, str]) -> dict[str, object]:
    fields = sorted(msgspec.structs.fields(struct), key=lambda field: field.name == "source")
    return {
        "name": struct.__name__,
        "about": textwrap.fill(" ".join((inspect.getdoc(struct) or "").split()), 110),
        "rows": [
            (f"`{each.name}`", _type_text(each.type), _default_text(each), _cell(docs[each.name]))
            for each in fields
        ],
    }


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


def _type_text(annotation: Any) -> str:
    if choices := choices_of(annotation):
        return ", ".join(f"`{choice}`" for choice in choices)
    annotation, note = without_note(annotation)
    if text := note or re.sub("^a | such as .*", "", type_words(annotation) or ""):
        return _cell(text)
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


if __name__ == "__main__":
    sys.stdout.write(markdown())
