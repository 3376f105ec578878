"""The strict YAML reader: what it understands, what it refuses and where."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.settings import JobSettings
from hpclaunch.site.yaml_tree import parse_tree, read_tree
from tests.in_one_test import in_one_test

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(words, values, min_size=1, max_size=4))
def test_reads_back_what_yaml_writes(data: dict[str, object]) -> None:
    assert parse_tree(yaml.safe_dump(data, allow_unicode=True), "f").plain() == data


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_message(text: str) -> None:
    try:
        parse_tree(text, "f")
    except BadInputError as error:
        message = error.message
    else:
        message = "f: read"
    assert message.startswith("f:")


@in_one_test(
    "text, value",
    [
        ("48:00:00", "48:00:00"),  # YAML 1.1: 172800
        ("no", "no"),  # YAML 1.1: false
        ("2026-11-20", "2026-11-20"),
        ("0x10", "0x10"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("-3", -3),
        ("1.5", 1.5),
        ("true", True),
        ("~", None),
        ("", None),
        ("'true'", "true"),
        ("[1, a]", [1, "a"]),
    ],
)
def test_plain_words_mean_what_json_would_say(text: str, value: object) -> None:
    assert parse_tree(f"key: {text}", "f").plain() == {"key": value}


@in_one_test(
    "text, line, message",
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' appears twice, first in line 1"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, "key 'b' appears twice, first in line 2"),
        ("a: &x [1]\nb: *x\n", 2, "aliases"),
        ("a: 1\nb: !!python/object:os.system ls\n", 2, "tags"),
        ("a: 1\n7: 2\n", 2, "a key must be text"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document"),
        ("a: 1\nb: [1, 2\n", 3, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        (
            "a:\n  - [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
            2,
            "too deeply",
        ),
        ("[" * 100_000, 1, "too deeply"),
    ],
)
def test_refusals_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_tree(text, "f.yaml")
    assert caught.value.message.startswith(f"f.yaml:{line}: ")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f.yaml: empty"),
        (b"# nothing\n", "f.yaml: empty"),
        (b"a: 1\nb: \xff\n", "f.yaml:2: not UTF-8"),
        (b"a: \x01\n", "f.yaml: not YAML"),
        (b"a" * (1 << 20) + b"b", "larger than"),
    ],
)
def test_files_that_are_not_yaml(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(data)
    with pytest.raises(BadInputError) as caught:
        read_tree(path)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"name: \xff\n", b"name: \x01\n", b"[name]\n", b"name: *x\n", b"name: !x y\n", b"1: x\n"),
        *(b"name: a\nname: b\n", b"name: a\n---\nname: b\n", b"site_profile: x\n", b"nodes: many\n"),
        b"env: " + b"[" * 40 + b"]" * 40,
        b"#" * (1 << 20) + b"\nname: x\n",
    ],
)
def test_a_job_file_is_not_called_a_site_profile(tmp_path: Path, data: bytes) -> None:
    """The same reader reads both."""
    path = tmp_path / "job.yaml"
    path.write_bytes(data)
    with pytest.raises(BadInputError) as caught:
        read_layers(JobSettings(), path)
    said = f"{caught.value.message}\n{caught.value.hint}"
    assert "job.yaml" in said
    assert "site profile" not in said
    assert "schema" not in said, "only a profile has one"


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(BadInputError, match="cannot be read"):
            read_tree(path)


def test_a_value_has_the_line_of_its_key() -> None:
    tree = parse_tree("a:\n  - x\n  - b: 1\n    c:\n      text\n", "f")
    assert tree.at(("a", 1, "c")).line == 4
    assert tree.at(("a", 0)).line == 2
    assert tree.at(("a", 7, "nothing")).line == 1
