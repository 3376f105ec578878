"""The JSON Schemas in packaging/schemas: fresh, ready for a schema store, true to what the loaders accept.

After a change of a setting or a field of profiles, HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes them.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.job.settings_files import read_layers
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.settings import JobSettings, job_file_schema
from hpclaunch.plan.settings_table import rows
from hpclaunch.port.port_script import port_script
from hpclaunch.site import profile_reference
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.yaml_tree import parse_tree, read_tree
from tests.in_one_test import in_one_test
from tests.port.fixture_scripts import SCRIPTS, machine_of

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "packaging" / "schemas"
PROFILES = sorted(resource_dir("site_profiles").glob("*.yaml"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^cat > (\S+\.ya?ml) <<'(\w+)'\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
WRITTEN = [(match[1], match[3]) for page in PAGES for match in BLOCK.finditer(page.read_text())]


def schema(name: str) -> Any:
    return json.loads((FOLDER / f"hpclaunch-{name}.json").read_text())


def checker(name: str) -> Any:
    return jsonschema.Draft202012Validator(schema(name), format_checker=jsonschema.FormatChecker())


def wrong(name: str, text: str) -> list[str]:
    """What the schema says against a YAML text."""
    return [error.message for error in checker(name).iter_errors(parse_tree(text, name).plain())]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "made"), [("site", profile_reference.json_schema), ("job", job_file_schema)]
)
def test_a_schema_is_fresh_and_ready_for_a_store(name: str, made: Any) -> None:
    text = json.dumps(made(), indent=2) + "\n"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        (FOLDER / f"hpclaunch-{name}.json").write_text(text)
    document = schema(name)
    assert document == json.loads(text)
    jsonschema.Draft202012Validator.check_schema(document)
    entries = json.loads((FOLDER / "catalog.json").read_text())
    (entry,) = [one for one in entries if one["url"] == document["$id"]]
    assert (entry["name"], f"{entry['description']}.") == (document["title"], document["description"])
    assert document["type"] == "object"


def test_the_patterns_of_files_are_ours_alone() -> None:
    entries = json.loads((FOLDER / "catalog.json").read_text())
    patterns = [pattern for entry in entries for pattern in entry["fileMatch"]]
    assert len(patterns) == len(set(patterns))
    for general in ("job.yaml", "config.yaml", "site.yaml", "a/sites/b.yaml"):
        assert not any(fnmatch.fnmatch(general, pattern) for pattern in patterns)
    for ours in ("hpclaunch/sites/mine.yaml", "hpclaunch/sites/nodes/mine.yaml"):
        assert any(fnmatch.fnmatch(f"/home/me/.config/{ours}", each) for each in entries[0]["fileMatch"])


def test_every_key_of_a_job_file_is_described() -> None:
    properties = schema("job")["properties"]
    assert list(properties) == [row.name for row in rows()]
    assert all(each["description"] for each in properties.values())


@pytest.mark.slow
@in_one_test("path", sorted(resource_dir("site_profiles").rglob("*.yaml")))
def test_every_profile_and_node_kind_is_valid(path: Path) -> None:
    assert [error.message for error in checker("site").iter_errors(read_tree(path).plain())] == []


def test_every_file_that_the_docs_write_is_valid() -> None:
    profiles = [text for _, text in WRITTEN if re.search("^extends: ", text, re.MULTILINE)]
    jobs = [text for name, text in WRITTEN if name == "job.yaml"]
    assert profiles
    assert len(jobs) >= 2
    assert [wrong("site", text) for text in profiles] == [[]] * len(profiles)
    assert [wrong("job", text) for text in jobs] == [[]] * len(jobs)


def test_job_files_that_port_writes_are_valid() -> None:
    for path in SCRIPTS[::25]:
        text = path.read_bytes().decode()
        assert wrong("job", port_script(text, machine_of(text), load_site("polaris")).job_file) == []


@pytest.mark.parametrize(
    "text",
    [
        "command: [a]\n",
        "command: [a]\nnodes: 2\nenv: {A: '1'}\nexclusive: true\n",
        "command: [a]\naccount: null\n",
        "command: [a]\nenv: {A: 1}\n",
        "command: a b\n",
        "command: [a, 1]\n",
        "command: [a]\nnods: 2\n",
        "command: [a]\nnodes: many\n",
        "command: [a]\nnodes: 1.5\n",
        "command: [a]\nframework: tensorflow2\n",
        "command: [a]\nexclusive: yes\n",
        "command: [a]\ndirectives: --x\n",
        "command: [a]\ntime: 30\n",
        "- command\n",
    ],
)
def test_the_schema_of_job_files_and_the_loader_agree(text: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    try:
        read_layers(JobSettings(), file)
        found = ""
    except BadInputError as error:
        found = str(error)
    assert bool(wrong("job", text)) is bool(found), found
