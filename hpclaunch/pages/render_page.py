"""Write HTML and SVG from the templates of this folder: no script, nothing from the network."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from hpclaunch.amounts import amount_of, counted
from hpclaunch.json_document import document_text
from hpclaunch.package_data import text_beside

PALETTE: dict[str, Any] = json.loads(text_beside(__file__, "palette.json"))
"""``colours``: of ranks and of parts of a whole, in order; ``line``, ``late``, ``wrong``: on either paper.

tests/pages measures how far they are apart, also for the colour-blind and in print.
"""


def render(template: str, **facts: Any) -> str:
    """Return the text of a template with these facts, which are escaped; None is written ``-``."""
    return _templates().get_template(template).render(facts)


def html_page(template: str, document: msgspec.Struct, **facts: Any) -> str:
    """Return a page about a document, which is in it as JSON under the id ``document``, too."""
    data = Markup(document_text(document).replace("<", "\\u003c"))  # noqa: S704 - no tag can begin in it
    return render(template, document=document, data=data, **facts)


def ink(fill: str) -> str:
    """Return black or white, whichever has more contrast on a colour ``#rrggbb`` (WCAG 2.2)."""
    shares = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    luminance = sum(map(float.__mul__, (0.2126, 0.7152, 0.0722), linear))
    return "#000000" if luminance > 0.179 else "#ffffff"


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
    environment.filters.update(px="{:.1f}".format, counted=lambda count, word: counted(count, word), ink=ink)
    environment.filters["amount_of"] = amount_of
    environment.globals["palette"] = PALETTE
    return environment


def _shown(value: object) -> object:
    """Return a value as a page has it, without the characters that XML forbids."""
    if value is None:
        return "-"
    if isinstance(value, str) and not isinstance(value, Markup):
        return "".join(char for char in value if char.isprintable() or char == "\n")
    return value
