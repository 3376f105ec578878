"""Node kinds, and what a profile takes from a kind, from a generic profile and from another machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.job.template_files import script_templates
from hpclaunch.package_data import resource_dir
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.plan.script_text import render
from hpclaunch.site.load_profile import load_all, load_kinds, load_merged, load_site
from hpclaunch.site.merge_profiles import FROM_ANOTHER_MACHINE
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.node_topology import NodeTopology
from tests.in_process import hpclaunch_here
from tests.site.conftest import VALID, Write
from tests.site.test_shipped_profiles import MACHINES
from tests.site.test_site_load import refusal

SHIPPED = resource_dir("site_profiles") / "nodes"
KINDS = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
KIND = """\
schema: 1
node_kind: ours
description: nodes for tests
sources: {maker: {url: "https://example.org/node", checked: 2026-11-20}}
node:
  cpu_model: test
  cores: 16
  numa: [{id: 0, cores: 0-7}, {id: 1, cores: 8-15}]
  gpus: [{numa: 0}, {numa: 1}]
  gpu_vendor: nvidia
  source: maker
links: {gpu_gpu: {gb_s: 50, source: maker}}
binding: {gpu_visible_var: CUDA_VISIBLE_DEVICES}
"""


@pytest.fixture
def kind(sites: Path) -> Path:
    """The user's node kind ``ours``."""
    (sites / "nodes").mkdir()
    path = sites / "nodes" / "ours.yaml"
    path.write_text(KIND)
    return path


def rendered(request: JobRequest, profile: SiteProfile, topology: NodeTopology | None) -> str:
    place = JobPlace()
    return render(make_plan(request, profile, topology, place), place, script_templates())


def test_every_shipped_kind_is_right_alone_and_named_as_its_file() -> None:
    kinds, broken = load_kinds()
    assert ([*kinds], broken) == (KINDS, {})
    assert {kind.node_kind for kind, _ in kinds.values()} == set(kinds)
    checked = hpclaunch_here("sites", "validate", *KINDS, *map(str, SHIPPED.glob("*.yaml")))
    assert (checked.returncode, checked.stdout.count(": ok")) == (0, 2 * len(KINDS))


def test_a_kind_holds_no_decision_of_a_site_and_only_pages_that_it_cites() -> None:
    for kind, _ in load_kinds()[0].values():
        node = kind.node
        assert (node.count, node.memory_request, node.reserved_cores, node.local_scratch) == (
            None,
            None,
            "",
            None,
        )
        assert kind.binding.gpu_visible_var
        cited = set(re.findall(r'"source":"([^"]+)"', msgspec.json.encode(kind).decode()))
        assert cited == set(kind.sources)


def test_the_pages_of_a_kind_have_names_that_no_profile_uses() -> None:
    profiles = {name: load_merged(name) for name in load_all()[0]}
    for kind, path in load_kinds()[0].values():
        for loaded in profiles.values():
            if path.resolve() not in [read.path for read in loaded.read]:
                assert not set(kind.sources) & set(loaded.profile.sources) - shared(kind.node_kind)


def shared(kind: str) -> set[str]:
    """Sources that another kind of the same superchip has, too."""
    return {"gh200-speeds"} if kind.startswith("gh200") else set()


@pytest.mark.parametrize("name", KINDS)
def test_a_generic_profile_with_a_kind_binds_one_to_all_gpus(write: Write, name: str) -> None:
    write("x", text=f"schema: 1\nname: x\ndescription: x\nextends: generic-slurm\nnode_kind: {name}\n")
    profile, topology = load_site("x"), site_topology(load_site("x"))
    assert profile.node is not None
    assert topology is not None
    for ranks in range(1, len(profile.node.gpus) + 1):
        request = JobRequest(
            site="x", command=Command(argv=("./train",)), tasks_per_node=ranks, gpus_per_task=1, time="1h"
        )
        script = rendered(request, profile, topology)
        read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, "")
        masks = re.findall(r"mask_cpu:([0-9a-fx,]+)", script)
        assert bool(masks) == bool(profile.node.numa)
        for mask, gpu in zip(masks[0].split(",") if masks else (), topology.gpus, strict=False):
            cpus = {cpu for cpu in range(1024) if int(mask, 16) >> cpu & 1}
            near = next(numa.cpus for numa in topology.numa_nodes if numa.id == gpu.numa)
            assert cpus
            assert cpus <= near
        assert [len(each.split(",")) for each in masks[:1]] == [ranks] * bool(masks)


def test_own_keys_lie_over_those_of_the_kind_and_these_over_the_base(write: Write, kind: Path) -> None:
    write("here")
    text = "part_of: here\nnode_kind: ours\nnode: {count: 7, gpu_vendor: amd}\nlinks: null\n"
    write("child", text=f"schema: 1\nname: child\n{text}")
    child, base = load_site("child"), load_site("here")
    assert child.node is not None
    assert (child.node.count, child.node.gpu_vendor, child.node.cores) == (7, "amd", 16)
    assert (child.node.memory_gib, child.node.l3_groups) == (None, ())  # nothing of the base's other node
    assert child.binding == msgspec.structs.replace(base.binding, gpu_visible_var="CUDA_VISIBLE_DEVICES")
    assert (child.queues, child.links.gpu_gpu) == (base.queues, None)
    assert set(child.sources) == {"page", "maker"}
    assert [read.relation for read in load_merged("child").read] == ["", "part_of", "node_kind"]


def test_a_profile_of_its_own_may_name_a_kind_and_nothing_else(write: Write, kind: Path) -> None:
    before, _, after = VALID.partition("node:\n")
    node_kind = before + "node_kind: ours\n" + after[after.index("binding:") :]
    write("here", text=node_kind)
    profile = load_site("here")
    assert profile.node is not None
    assert (profile.node.cores, profile.binding.cpu, profile.node_kind) == (16, "mask_cpu", "ours")


def test_the_launcher_s_binding_over_a_generic_profile_may_be_refused(write: Write, kind: Path) -> None:
    text = "schema: 1\nname: x\ndescription: x\nextends: generic-slurm\nnode_kind: ours\n"
    write("x", text=text)
    assert (load_site("x").binding.cpu, load_site("x").binding.needs_whole_node) == ("mask_cpu", True)
    write("x", text=text + "binding: {cpu: cores, needs_whole_node: false}\n")
    assert (load_site("x").binding.cpu, load_site("x").binding.needs_whole_node) == ("cores", False)
    write("x", text=text.replace("generic-slurm", "generic-lsf"))
    assert (load_site("x").binding.cpu, load_site("x").binding.needs_whole_node) == ("taskset", True)
    kind.write_text(KIND.replace("  numa: [{id: 0, cores: 0-7}, {id: 1, cores: 8-15}]\n", "").replace(
        "[{numa: 0}, {numa: 1}]", "[{}, {}]"))  # fmt: skip
    write("x", text=text)
    assert (load_site("x").binding.cpu, load_site("x").binding.needs_whole_node) == ("cores", False)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_of_another_machine_only_the_table_s_keys_are_inherited(write: Write, name: str) -> None:
    write("x", text=f"schema: 1\nname: x\ndescription: x\nextends: {name}\n")
    mine, theirs = load_site("x"), load_site(name)
    for field in msgspec.structs.fields(SiteProfile):
        value, base = getattr(mine, field.name), getattr(theirs, field.name)
        if field.name in ("schema", "name", "description", "extends", "sources"):
            continue
        inner = FROM_ANOTHER_MACHINE.get(field.name)
        if inner is None:
            assert value == (field.default_factory() if callable(field.default_factory) else field.default)
        elif not inner or base is None:
            assert value == base
        else:
            kept = {key: getattr(base, key) for key in inner}
            plain = {part.name: part for part in msgspec.structs.fields(type(base))}
            for key, part in plain.items():
                empty = part.default_factory() if callable(part.default_factory) else part.default
                assert getattr(value, key) == kept.get(key, empty)
    cited = set(re.findall(r'"source":"([^"]+)"', msgspec.json.encode(mine).decode()))
    assert set(mine.sources) == cited
    assert site_topology(mine) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_a_part_of_a_machine_and_a_profile_of_its_name_inherit_all(write: Write, name: str) -> None:
    theirs = load_site(name)
    write("x", text=f"schema: 1\nname: x\npart_of: {name}\n")
    write(name, text=f"schema: 1\nname: {name}\nextends: {name}\n")
    relations = {"name": name, "extends": theirs.extends, "part_of": theirs.part_of}
    for mine in (load_site("x"), load_site(name)):
        assert msgspec.structs.replace(mine, **relations) == theirs


def test_a_script_of_a_profile_that_extends_alps_names_nothing_of_cscs(write: Write) -> None:
    text = "queues: {normal: {max_nodes: 9}}\nenv: {A: {value: '1', reason: for the tests here}}\n"
    write("x", text=f"schema: 1\nname: x\ndescription: x\nextends: daint\n{text}")
    profile = load_site("x")
    request = JobRequest(site="x", command=Command(argv=("./train",)), nodes=2, tasks_per_node=4, time="1h")
    script = rendered(request, profile, site_topology(profile))
    assert "mask_cpu" in script
    assert not re.search(
        "cscs|uenv|ela[.]|g123|AWS Libfabric", script.replace("docs.cscs.ch/running/slurm", "")
    )


def test_show_says_what_came_from_where(write: Write) -> None:
    write("x", text="schema: 1\nname: x\ndescription: x\nextends: daint\n")
    lines = hpclaunch_here("sites", "show", "x").stdout.splitlines()
    found = next(line for line in lines if line.startswith("    from daint: "))
    taken, left = found.split("; not inherited: ")
    assert taken == "    from daint: scheduler, node, links, binding, fabric"
    for word in ("login", "account", "billing", "queues", "software", "storage", "traps", "node.count"):
        assert word in left.split(", ")
    assert "    from gh200x4-slingshot: node, links, binding" in lines
    assert "not inherited" not in hpclaunch_here("sites", "show", "daint").stdout
    shown = hpclaunch_here("sites", "show", "gh200x4").stdout
    assert shown.startswith("gh200x4: 4 GH200")
    assert "cores: 288" in shown


def test_kinds_are_listed_apart(kind: Path) -> None:
    text = hpclaunch_here("sites", "list", "--kinds").stdout
    assert [line.split()[0] for line in text.splitlines()[1:] if line[2] != " "] == sorted([*KINDS, "ours"])
    assert f"yours: {kind}" in text
    assert "gh200x4" not in hpclaunch_here("sites", "list").stdout
    kind.write_text(KIND.replace("cores: 16", "cores: x"))
    assert "ours  " in (broken := hpclaunch_here("sites", "list", "--kinds").stdout)
    assert "node.cores is 'x'" in broken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node_kind: our\n", "x.yaml:4: no node kind is named 'our'; did you mean 'ours'?"),
        ("node_kind: lumi-g\n", "x.yaml:4: no node kind is named 'lumi-g'"),
        ("node_kind: [ours]\n", "x.yaml:4: node_kind is a list"),
        ("extends: lumi-g\npart_of: lumi-g\n", "x.yaml:5: extends and part_of are both given"),
        ("part_of: lumi\n", "x.yaml:4: part_of 'lumi', which is not a site; did you mean 'lumi-g'?"),
        ("extends: ours\n", "x.yaml:4: extends 'ours', which is not a site"),
        (
            "node_kind: ours\nsources: {maker: {url: 'https://a.b', checked: 2026-01-01}}\n",
            "x.yaml:5: ours has a page 'maker', too",
        ),
    ],
)
def test_what_a_profile_cannot_start_from(write: Write, kind: Path, text: str, message: str) -> None:
    write("x", text=f"schema: 1\nname: x\ndescription: x\n{text}")
    assert message in refusal("x")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("cores: 16", "cores: 12"), "ours.yaml:8: cores 12-15 are not in the node"),
        (
            ("source: maker\nlinks", "source: makr\nlinks"),
            "source 'makr' is not in sources; did you mean 'maker'?",
        ),
        (("binding: {", "queues: {}\nbinding: {cpu: cores, "), "unknown key 'queues' in the node kind"),
        (("node_kind: ours", "node_kind: other"), "node_kind is 'other'; in ours.yaml it must be 'ours'"),
        (("schema: 1\n", ""), "the node kind lacks 'schema'"),
    ],
)
def test_a_wrong_kind_is_refused_where_it_is_used_and_by_validate(
    write: Write, kind: Path, change: tuple[str, str], message: str
) -> None:
    assert change[0] in KIND
    kind.write_text(KIND.replace(*change))
    write("x", text="schema: 1\nname: x\ndescription: x\nextends: generic-slurm\nnode_kind: ours\n")
    assert message in refusal("x")
    for named in ("ours", str(kind)):
        checked = hpclaunch_here("sites", "validate", named)
        assert (checked.returncode, message in checked.stderr) == (3, True)


def test_a_kind_is_no_site(kind: Path) -> None:
    with pytest.raises(BadInputError, match=r"ours\.yaml:2: a file without name: is a node kind, not a site"):
        load_site(str(kind))
    with pytest.raises(BadInputError, match="no site is named 'ours'"):
        load_site("ours")


@pytest.mark.usefixtures("own_cache")
def test_a_cached_profile_knows_when_its_kind_changes_or_is_hidden(write: Write, kind: Path) -> None:
    write("x", text="schema: 1\nname: x\ndescription: x\nextends: generic-slurm\nnode_kind: ours\n")
    write("y", text="schema: 1\nname: y\ndescription: y\nextends: generic-slurm\nnode_kind: mi300a4\n")
    models = [profile.node.cpu_model for profile in (load_site("x"), load_site("y")) if profile.node]
    kind.write_text(KIND.replace("cpu_model: test", "cpu_model: new"))
    (kind.parent / "mi300a4.yaml").write_text(KIND.replace("node_kind: ours", "node_kind: mi300a4"))
    again = [profile.node.cpu_model for profile in (load_site("x"), load_site("y")) if profile.node]
    assert (models, again) == (["test", "4 AMD Instinct MI300A (24 cores each)"], ["new", "test"])
