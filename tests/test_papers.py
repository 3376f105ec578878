"""The papers that go with the code agree with it: every file and function that a page names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hpclaunch import __version__

ROOT = Path(__file__).parents[1]
LICENCE = "Apache-2.0"


def test_the_citation_has_the_keys_of_cff_1_2_0() -> None:
    """The schema of the Citation File Format: required keys, an entity as author, the licence by SPDX."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["authors"] == [{"name": "The hpclaunch authors"}]
    assert (citation["version"], citation["license"]) == (__version__, LICENCE)


def test_the_licence_is_the_same_everywhere() -> None:
    assert f'\nlicense = "{LICENCE}"\n' in (ROOT / "pyproject.toml").read_text()
    assert LICENCE in (ROOT / "README.md").read_text()
    assert LICENCE in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_changelog_has_the_form_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\](?: - (.+))?$", text, re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert __version__ in dict(versions)
    assert all(re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", date) for _, date in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


@pytest.mark.parametrize("paper", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_links_of_a_paper_lead_to_files_and_headings(paper: str) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", (ROOT / paper).read_text()):
        page = (ROOT / paper).parent / target if target else ROOT / paper
        assert page.exists(), target
        headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, anchor
