"""Write HTML and SVG from the templates of this folder: no script, nothing from the network."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from hpclaunch.json_document import document_text
from hpclaunch.plural import counted


def render(template: str, **facts: Any) -> str:
    """Return the text of a template with these facts, which are escaped; None is written ``-``."""
    return _templates().get_template(template).render(facts)


def html_page(template: str, document: msgspec.Struct, **facts: Any) -> str:
    """Return a page about a document, which is in it as JSON under the id ``document``, too."""
    data = Markup(document_text(document).replace("<", "\\u003c"))  # noqa: S704 - no tag can begin in it
    return render(template, document=document, data=data, **facts)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=select_autoescape(("html.j2", "svg.j2")),  # not of Markdown
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(px="{:.1f}".format, counted=lambda count, word: counted(count, word))
    return environment


def _shown(value: object) -> object:
    """Return a value as a page has it, without the characters that XML forbids."""
    if value is None:
        return "-"
    if isinstance(value, str) and not isinstance(value, Markup):
        return "".join(char for char in value if char.isprintable() or char == "\n")
    return value
