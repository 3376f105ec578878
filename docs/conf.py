"""Configuration of Sphinx: the documentation as a site.

pip install '.[docs]'
python -m sphinx -W -b html docs site
"""

from __future__ import annotations

import re
from typing import Any

from hpclaunch import __version__

project = "hpclaunch"
author = "The hpclaunch authors"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["examples"]
html_theme = "furo"
html_title = f"hpclaunch {version}"
html_static_path: list[str] = []
html_extra_path = ["llms.txt"]
html_show_sphinx = False
html_copy_source = False
smartquotes = False  # -- is an option's beginning, not a dash

myst_heading_anchors = 3  # links to headings, as GitHub makes them
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"

_SECTION = re.compile(r"^(?P<caption>\S.*):\n\n(?P<links>(?:- .*\n(?:  .*\n)*)+)", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([^)#:]+)\.md\)", re.MULTILINE)


def _side_bar(app: object, page: str, source: list[str]) -> None:
    """Give the site the sections and pages of index.md, in its order: they are listed once."""
    if page != "index":
        return
    for section in _SECTION.finditer(source[0]):
        pages = "\n".join(_PAGE.findall(section["links"]))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {section['caption']}\n\n{pages}\n```\n"


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _side_bar)
    return {"parallel_read_safe": True}
