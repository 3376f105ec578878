"""``hpclaunch docs``: pages found by their path or its end."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from hpclaunch.cli.main import COMMANDS
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here

DOCS = Path(__file__).parents[2] / "docs"


@in_one_test(
    "page",
    ["how-to/lumi-g", "lumi-g", "lumi-g.md", "docs/how-to/lumi-g.md", "how-to/lumi-g.md"],
)
def test_a_page_is_found_by_its_path_or_the_end_of_it(page: str) -> None:
    done = hpclaunch_here("docs", page)
    assert (done.returncode, done.stdout) == (0, (DOCS / "how-to" / "lumi-g.md").read_text())


def test_all_pages_are_listed_with_their_titles() -> None:
    lines = hpclaunch_here("docs").stdout.splitlines()
    names = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    assert {line.split()[0] for line in lines} == names
    assert all(len(line.split()) > 1 for line in lines)
    assert "Install hpclaunch" in next(line for line in lines if line.startswith("how-to/install"))


@in_one_test(
    "page, hint",
    [
        ("lumi", "did you mean lumi-g?"),
        ("xyzzy", "hpclaunch docs lists all"),
        ("report", "how-to/report, reference/report"),
        ("../README", "no page"),
        ("", "no page"),
    ],
)
def test_a_page_that_is_not_there_is_bad_input(page: str, hint: str) -> None:
    done = hpclaunch_here("docs", page)
    assert done.returncode == 3
    assert hint in done.stderr


def test_the_page_for_agents_is_a_skill_as_it_is_printed() -> None:
    """Its first lines are those of SKILL.md; each command in it is there, each document has a schema."""
    done = hpclaunch_here("docs", "agents")
    _, head, text = done.stdout.split("---\n", 2)
    about = yaml.safe_load(head)
    assert set(about) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", about["name"])
    assert 100 < len(about["description"]) <= 1024
    named = set(re.findall(r"(?:^|`)hpclaunch ([a-z]+)", text, re.MULTILINE))
    assert (
        {"submit", "status", "wait", "verify", "report", "lint", "port"}
        <= named
        <= set(COMMANDS) | {"itself"}
    )
    assert "did you mean hpclaunch docs?" in hpclaunch_here("skill").stderr
