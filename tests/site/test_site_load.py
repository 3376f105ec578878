"""Names, paths, merging, and errors that point to the file and line a value came from."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import EXIT_BAD_INPUT, BadInputError
from hpclaunch.site.load_profile import (
    hidden_sites,
    load_merged,
    load_site,
    profile_digest,
    site_names,
)
from hpclaunch.site.merge_profiles import merge
from hpclaunch.site.profile_files import user_sites_folder
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.yaml_tree import Tree
from tests.site.conftest import VALID, Write


def refusal(name: str) -> str:
    with pytest.raises(BadInputError) as caught:
        load_site(name)
    assert caught.value.exit_code == EXIT_BAD_INPUT
    return str(caught.value)


def test_the_valid_profile_loads(write: Write) -> None:
    write("here")
    assert load_site("here").queues["main"].max_nodes == 4


def test_by_path_the_name_may_differ(tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text(VALID)
    assert load_site("other.yml").name == "here"
    assert load_site(str(tmp_path / "other.yml")).name == "here"


def test_by_name_the_name_is_the_file_s(write: Write) -> None:
    write("here").rename(write("there"))
    assert "config/hpclaunch/sites/there.yaml:2: name is 'here'" in refusal("there")


def test_the_nearest_to_an_unknown_name_is_suggested() -> None:
    assert "no site is named 'lumig'; did you mean 'lumi-g'?" in refusal("lumig")
    assert "known are abci, abci-3, abci-a100, alps-gh200, aurora, aws-hyperpod" in refusal("zzzzzz")


def test_a_users_profile_hides_a_shipped_one_and_may_extend_it(sites: Path) -> None:
    (sites / "lumi-g.yaml").write_text("schema: 1\nname: lumi-g\nextends: lumi-g\ndescription: mine\n")
    assert site_names()["lumi-g"].parent == sites
    assert set(hidden_sites()) == {"lumi-g"}
    profile = load_site("lumi-g")
    assert profile.description == "mine"
    assert profile.node is not None
    assert profile.node.cores == 64


def test_config_home_must_be_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert user_sites_folder() == Path.home() / ".config/hpclaunch/sites"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    assert user_sites_folder() == Path("/x/hpclaunch/sites")


def test_merging(write: Write) -> None:
    write("here")
    write(
        "child",
        text="""\
schema: 1
name: child
part_of: here
account: {pattern: null, example: null}
queues:
  long: {max_walltime: 2-00:00:00}
  main: {max_nodes: 9}
env:
  A: {value: null, reason: away with it}
  B: {value: "2", reason: more}
node: {l3_groups: [0-3]}
""",
    )
    child, base = load_site("child"), load_site("here")
    assert (child.account.required, child.account.pattern) == (True, None)
    assert list(child.queues) == ["long", "main"]
    assert child.queues["main"] == msgspec.structs.replace(base.queues["main"], max_nodes=9)
    assert (child.env["A"].value, child.env["A"].source) == (None, None)
    assert child.env["B"].value == "2"
    assert child.node is not None
    assert child.node.l3_groups == ("0-3",)
    assert child.node.cores == 8
    assert child.sources == base.sources
    assert load_merged("child").read[1].path.name == "here.yaml"


def test_null_removes_an_inherited_key_whole(write: Write) -> None:
    write("here")
    write(
        "child", text="schema: 1\nname: child\npart_of: here\nqueues: {main: null}\nnode: null\nenv: null\n"
    )
    child = load_site("child")
    assert (child.queues, child.node, child.env) == ({}, None, {})


def test_null_for_what_is_not_inherited_is_checked_as_a_value(write: Write) -> None:
    write("here")
    write("child", text="schema: 1\nname: child\npart_of: here\nquueues: null\nenv:\n  C: null\n")
    message = refusal("child")
    assert "child.yaml:4: unknown key 'quueues' in the profile; did you mean 'queues'?" in message
    assert "child.yaml:6: env.C is null" in message


def test_errors_point_to_the_file_the_value_came_from(write: Write) -> None:
    write("here", ("cores: 8\n", "cores: 6\n"))
    write("child", text="schema: 1\nname: child\npart_of: here\nbinding: {cpu: list}\n")
    message = refusal("child")
    assert "here.yaml:21: cores 6-7 are not in the node" in message
    assert "child.yaml:4: cpu is list, an option of pals" in message


def test_extends_chains_circles_and_missing_bases(write: Write) -> None:
    write("here")
    write("b", text="schema: 1\nname: b\npart_of: here\n")
    write("c", text="schema: 1\nname: c\npart_of: b\n")
    assert [file.path.name for file in load_merged("c").read] == ["c.yaml", "b.yaml", "here.yaml"]
    write("x", text="schema: 1\nname: x\nextends: y\n")
    write("y", text="schema: 1\nname: y\n\nextends: x\n")
    assert "y.yaml:4: extends 'x' in a circle" in refusal("x")
    write("self", text="schema: 1\nname: self\nextends: self\n")
    assert "self.yaml:3: extends 'self' in a circle" in refusal("self")
    write("orphan", text="schema: 1\nname: orphan\nextends: lumi\n")
    assert "orphan.yaml:3: extends 'lumi', which is not a site; did you mean 'lumi-g'?" in refusal("orphan")


@pytest.mark.parametrize("key", ["schema", "name"])
def test_schema_and_name_are_not_inherited(sites: Path, key: str) -> None:
    lines = {"schema": "schema: 1", "name": "name: child", "extends": "extends: lumi-g"}
    del lines[key]
    (sites / "child.yaml").write_text("\n".join(lines.values()) + "\n")
    assert f"{key!r} is missing; it is not inherited" in refusal("child")


@pytest.mark.parametrize("text", ["[1, 2]", "just text", "3"])
def test_a_profile_is_a_mapping(sites: Path, text: str) -> None:
    (sites / "x.yaml").write_text(text)
    assert "x.yaml:1: a profile is a mapping" in refusal("x")


def test_the_digest_depends_on_the_content_only(write: Write) -> None:
    write("here")
    first = profile_digest(load_site("here"))
    lines = VALID.splitlines(keepends=True)
    write("here", text="# a comment\n" + "".join([*lines[:2], *lines[7:], *lines[2:7]]))
    assert profile_digest(load_site("here")) == first
    write("here", ("max_nodes: 4", "max_nodes: 5"))
    assert profile_digest(load_site("here")) != first
    assert len(first) == 64


def test_the_digest_survives_json() -> None:
    profile = load_site("daint")
    again = msgspec.json.decode(msgspec.json.encode(profile), type=SiteProfile)
    assert again == profile
    assert profile_digest(again) == profile_digest(profile)


def tree(value: object) -> Tree:
    if isinstance(value, dict):
        return Tree({key: tree(item) for key, item in value.items()}, "f", 1)
    return Tree(value, "f", 1)


maps = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3),
    max_leaves=10,
).filter(lambda value: isinstance(value, dict))


def leaves(value: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, item in value.items() for key, leaf in leaves(item, (*path, name)).items()}


@given(maps, maps)
def test_merging_keeps_all_of_the_child_and_what_the_child_does_not_touch(
    base: object, child: object
) -> None:
    merged, mine = leaves(merge(tree(base), tree(child)).plain()), leaves(child)
    assert mine.items() <= merged.items()
    untouched = {
        path: value
        for path, value in leaves(base).items()
        if not any(path[: len(key)] == key[: len(path)] for key in mine)
    }
    assert untouched.items() <= merged.items()
    assert set(merged) <= set(mine) | set(leaves(base))


@given(maps)
def test_merging_a_profile_over_itself_or_nothing_over_it_changes_nothing(base: object) -> None:
    assert merge(tree(base), tree(base)).plain() == base
    assert merge(tree(base), tree({})).plain() == base
