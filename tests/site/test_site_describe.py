"""JSON Schema and reference page: complete, fresh, and true to what the loader accepts."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_reference import field_docs, json_schema, structs
from hpclaunch.site.yaml_tree import read_tree
from tests.in_one_test import in_one_test
from tests.site.conftest import VALID, Write

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "profile.md"
markdown = runpy.run_path(str(ROOT / "packaging" / "profile_page.py"))["markdown"]
FILES = sorted(resource_dir("site_profiles").glob("*.yaml"))


@pytest.fixture(scope="module")
def checker() -> Any:
    return jsonschema.Draft202012Validator(json_schema(), format_checker=jsonschema.FormatChecker())


@pytest.mark.slow
def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_field_is_described_once_at_its_place() -> None:
    docs = field_docs()
    for struct in structs():
        assert set(docs[struct.__name__]) == {field.name for field in msgspec.structs.fields(struct)}


def test_the_schema_carries_the_descriptions() -> None:
    document = json_schema()
    node = document["$defs"]["Node"]["properties"]
    assert node["reserved_cores"]["description"] == field_docs()["Node"]["reserved_cores"]
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_reference_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "write it again: python packaging/profile_page.py > docs/reference/profile.md"
    )


def test_the_reference_page_names_every_key() -> None:
    page = markdown()
    for struct in structs():
        assert f"\n## {struct.__name__}\n" in page
        for field in msgspec.structs.fields(struct):
            assert f"| `{field.name}` | " in page


@pytest.mark.slow
@in_one_test("path", FILES)
def test_shipped_profiles_follow_the_schema(checker: Any, path: Path) -> None:
    assert [error.message for error in checker.iter_errors(read_tree(path).plain())] == []


@pytest.mark.slow
def test_merged_profiles_follow_the_schema(checker: Any) -> None:
    for path in FILES:
        merged = msgspec.to_builtins(load_site(path.stem))
        assert [error.message for error in checker.iter_errors(json.loads(json.dumps(merged)))] == []


PARTIAL = "schema: 1\nname: part\npart_of: here\n"


@pytest.mark.parametrize(
    "text",
    [
        VALID.replace("name: here", "name: part"),
        VALID.replace("name: here", "name: part").replace("max_nodes: 4", "max_nodes: 0"),
        VALID.replace("name: here", "name: part").replace("max_nodes: 4", "max_node: 4"),
        VALID.replace("name: here", "name: part").replace("reason: because, ", ""),
        VALID.replace("name: here", "name: part").replace("binding: {cpu: mask_cpu}\n", ""),
        PARTIAL,
        PARTIAL + "node: {cores: null, memory_gib: 7}\nqueues: {main: null}\n",
        PARTIAL + "node: {memory_gib: 7}\n",
        PARTIAL + "queues: {main: {max_nodes: 3, note: null}}\n",
        PARTIAL + "queues: {main: {max_nodes: x}}\n",
        PARTIAL + "env: {A: {value: null, reason: unset it}}\n",
        PARTIAL + "env: {A: {value: x}}\n",
        PARTIAL + "env: {A: null}\n",
        PARTIAL + "node: {numa: [{cores: 4-5}]}\n",
        PARTIAL + "nodes: null\n",
        PARTIAL + "node_kind: gh200x4\nnode: {count: 7}\n",
        PARTIAL.replace("part_of: here", "node_kind: gh200x4"),
        "schema: 1\nnode_kind: part\ndescription: x\n",
        "name: part\npart_of: here\n",
    ],
)
def test_schema_and_loader_agree(checker: Any, write: Write, text: str) -> None:
    write("here")
    path = write("part", text=text)
    try:
        load_site("part")
    except BadInputError as error:
        accepted, found = False, str(error)
    else:
        accepted, found = True, ""
    # What a null takes away from a base only the loader can see.
    sees_more = "lacks 'cores'" in found or "lacks 'scheduler'" in found
    assert checker.is_valid(read_tree(path).plain()) is (accepted or sees_more), found


@pytest.mark.slow
def test_shipped_profiles_mean_the_same_to_other_yaml_readers() -> None:
    for path in FILES:
        usual = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        assert usual == as_text(read_tree(path).plain())


def as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return value if isinstance(value, str) else json.dumps(value)
