"""The papers that go with the code agree with it: every file and function that a page names exists."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml

from hpclaunch import __version__
from tests.in_one_test import in_one_test
from tests.parsed import nodes
from tests.test_architecture import FLOORS, PACKAGE

ROOT = Path(__file__).parents[1]
LICENCE = "Apache-2.0"
PLACEHOLDER = re.compile(r"NAME|ID|WORD")
CALLS = """
import sys
from benchmarks.way import calls_of
for call in calls_of(sys.argv[1:]):
    print(">", call.file, call.function, file=sys.stderr)
"""
PAGES_OF_CODE = ["docs/architecture.md", "docs/explanation/one-job.md"]


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


@in_one_test("paper", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_links_of_a_paper_lead_to_files_and_headings(paper: str) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", (ROOT / paper).read_text()):
        page = (ROOT / paper).parent / target if target else ROOT / paper
        assert page.exists(), target
        headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, anchor


@cache
def functions(path: Path) -> frozenset[str]:
    """Every function of a module, methods also as ``Class.method``."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(found)


def code_words(text: str) -> Iterator[str]:
    """The words of a page in backticks, without blocks and placeholders."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from (word for word in re.findall(r"`([^`]+)`", text) if not PLACEHOLDER.search(word))


def named_functions(words: Iterator[str]) -> list[str]:
    return [word[:-2] for word in words if re.fullmatch(r"[\w.]+\(\)", word)]


@pytest.mark.xdist_group("syntax trees")
@pytest.mark.parametrize("page", PAGES_OF_CODE)
def test_every_file_and_function_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    modules = list(PACKAGE.rglob("*.py"))
    paths = [word for word in code_words(text) if re.fullmatch(r"[\w./-]+(\.(py|j2|md)|/)", word)]
    places = {path.name for path in modules}
    assert [name for name in paths if name not in places and not exists(name)] == []
    everywhere = frozenset[str]().union(*map(functions, modules))
    assert [name for name in named_functions(code_words(text)) if name not in everywhere] == []
    assert len(paths) > 20


# It names files of other repositories.
MACHINES = ROOT / "docs" / "reference" / "sites.md"
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {MACHINES})


@in_one_test("page", PAGES)
def test_every_file_of_the_repository_that_a_page_names_exists(page: Path) -> None:
    """In text and in commands: what begins with the name of one of the repository's folders."""
    folders = [*(path.name for path in ROOT.iterdir() if path.is_dir() and path.name != ".venv")]
    path = re.compile(rf"(?<![\w/.$~}}-])((?:{'|'.join(map(re.escape, folders))})/[\w./-]*\w)")
    named = [name for name in path.findall(page.read_text()) if not PLACEHOLDER.search(name)]
    assert [name for name in named if not exists(name)] == []


def exists(name: str) -> bool:
    return (PACKAGE / name).exists() or (ROOT / name).exists()


def test_the_functions_of_a_step_are_in_its_file() -> None:
    """A row of the page of one job: the file, its functions, what goes in and out."""
    rows = re.findall(r"^\| `(.+?\.py)` \| (.+?) \|", (ROOT / PAGES_OF_CODE[1]).read_text(), re.MULTILINE)
    for file, cell in rows:
        named = named_functions(code_words(cell))
        assert named, file
        assert set(named) <= functions(PACKAGE / file), file
    assert len(rows) > 30


# Rows of the way that a dry run leaves out, as the page says.
ONLY_SUBMITTED = {"job/start_job.py", "job/store.py"}
DRY_RUN = ("--site", "lumi-g", "--nodes", "2", "--account", "project_465000001", "--dry-run", "mnist")


def way_of_the_page() -> dict[str, set[str]]:
    """The files of the first table of the page of one job, in their order, and their functions."""
    table = (ROOT / PAGES_OF_CODE[1]).read_text().partition("\n## 1. ")[0]
    rows = re.findall(r"^\| `(.+?\.py)` \| (.+?) \|", table, re.MULTILINE)
    return {
        file: {name.rpartition(".")[2] for name in named_functions(code_words(cell))} for file, cell in rows
    }


def entered(way: dict[str, set[str]], words: Sequence[str]) -> list[str]:
    """The files of the way in the order in which a command first calls a function that its row names."""
    run = [sys.executable, "-c", CALLS, "submit", *words]  # afresh: a cached answer enters no function
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    calls = [line.split() for line in done.stderr.splitlines() if line.startswith(">")]
    return list(dict.fromkeys(file for _, file, function in calls if function in way.get(file, ())))


@pytest.mark.slow  # It runs a whole job.
def test_a_submission_enters_the_files_of_the_way_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    way = way_of_the_page()
    assert len(way) <= 12
    assert entered(way, ("--site", "local", "--tasks", "1", "--", "true")) == list(way)


def test_a_dry_run_enters_the_files_of_the_way_in_their_order() -> None:
    way = way_of_the_page()
    assert entered(way, DRY_RUN) == [file for file in way if file not in ONLY_SUBMITTED]


def test_the_architecture_lists_every_room_and_its_floor() -> None:
    text = (ROOT / PAGES_OF_CODE[0]).read_text()
    rooms = {
        path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    (listed,) = re.findall(r"```text\n(site_profiles/.*?)```", text, re.DOTALL)
    assert rooms - {"__init__.py", "__main__.py"} == {
        word.strip("/,")
        for word in re.findall(r"(?m)^  (\w+/|(?:\w+\.py(?:, )?)+)", listed)
        for word in word.split()
    }
    (floors,) = re.findall(r"```text\n(cli\n.*?)```", text, re.DOTALL)
    top_down = [set(line.split(" · ")) for line in floors.splitlines()]
    assert top_down == [
        floor for floor in (rooms - {"__init__", "__main__"} for rooms in FLOORS[::-1]) if floor
    ]


def rows_of(page: str, after: str) -> list[list[str]]:
    """The cells of the first table after a text of a page, without the table's head."""
    table = page.partition(after)[2].partition("\n|")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_each_launcher_compared_says_what_its_row_rests_on() -> None:
    """A cell without a source says unknown, and nothing else does."""
    page = (ROOT / "docs" / "explanation" / "other-launchers.md").read_text()
    tools = [row for row in rows_of(page, "# hpclaunch") if row[0] != "hpclaunch"]
    sources = rows_of(page, "## What each row rests on")
    assert len(tools) > 10
    for (name, _, *cells), (source, day, *origins) in zip(tools, sources, strict=True):
        assert source.split(",")[0] in name
        assert day
        for cell, origin in zip(cells, origins, strict=True):
            assert (not origin) == (cell == "unknown"), (name, cell)


def test_every_paper_cited_is_in_the_bibliography() -> None:
    """By its DOI or number at arXiv. Those that only profiles cite are on the page of the machines."""
    bibliography = (ROOT / "docs" / "reference" / "bibliography.md").read_text()
    number = re.compile(
        r"\b(?:doi(?:\.org/|:)(10\.\d{4,}/[^\s)>,;\]]+[^\s)>,;.:\]])|arxiv[ :.a-z/]*(\d{4}\.\d{4,5}))", re.I
    )
    cited: dict[str, Path] = {}
    for folder, ending in (("hpclaunch", "py"), ("hpclaunch", "yaml"), ("docs", "md")):
        for path in {*(ROOT / folder).rglob(f"*.{ending}")} - {MACHINES}:
            cited |= {doi or arxiv: path for doi, arxiv in number.findall(path.read_text())}
    assert len(cited) > 20
    assert {name: path for name, path in cited.items() if name not in bibliography} == {}
