"""The shipped profiles: all load, none holds a mask, and the facts that scripts depend on."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec
import pytest

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.package_data import resource_dir
from hpclaunch.site.load_profile import load_merged
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.profile_rules import structs_of
from hpclaunch.site.schema import Directive, EnvVar, SiteProfile
from hpclaunch.site.site_scheduler import misfit
from hpclaunch.topology.node_topology import NodeTopology
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.profiles import shipped

FILES = sorted(resource_dir("site_profiles").glob("*.yaml"))
NAMES = [path.stem for path in FILES]
MACHINES = [name for name in NAMES if shipped(name).status != "generic"]
"""Those of a cloud describe no machine: users make their own."""
CLOUDS = [name for name in NAMES if name.startswith(("aws-", "gcp-"))]


def node(name: str) -> NodeTopology:
    topology = site_topology(shipped(name))
    assert topology is not None
    return topology


def test_the_promised_sites_are_there() -> None:
    promised = {"lumi-g", "polaris", "olivia", "alps-gh200", "daint", "clariden", "santis", "aurora"}
    promised |= {"frontier", "perlmutter", "leonardo", "mn5-acc", "jupiter", "betzy"}
    promised |= {"summit", "theta", "thetagpu", "abci"}
    generic = {"generic-slurm", "generic-pbs", "generic-lsf", "generic-flux"}
    assert promised | generic | {"local"} <= set(NAMES)


@in_one_test("name", NAMES)
def test_it_loads_and_is_the_shipped_one(name: str) -> None:
    loaded = load_merged(name)
    assert loaded.profile.name == name
    assert loaded.read[0].path in [path.resolve() for path in FILES]


@in_one_test("path", FILES)
def test_no_mask_is_pasted_in(path: Path) -> None:
    assert not re.search(r"\b0x|fe0{4,}", path.read_text(encoding="utf-8"), re.IGNORECASE)


@in_one_test("name", MACHINES)
def test_every_fact_of_a_machine_has_a_source(name: str) -> None:
    unsourced = [
        path
        for path, part in structs_of(shipped(name), ())
        if getattr(part, "source", "none needed") is None and msgspec.to_builtins(part)
    ]
    assert [path for path in unsourced if path != ("software",)] == []


NETWORK_UNKNOWN = (
    "abci-a100",
    "isambard-ai",
    "delta",
    "deltaai",
    "roihu",
    "dardel-gpu",
    "setonix-gpu",
    "snellius",
    "snellius-a100",
    "abci-3",
    "tuolumne",
)
"""How the nodes of these are connected with each other no page was found to state."""


NICS_UNKNOWN = ("theta", "saga", "saga-a100", "jean-zay")
"""The pages of these that were found state no NICs."""


@in_one_test("name", [name for name in MACHINES if name not in NICS_UNKNOWN])
def test_link_speeds_and_the_network_are_stated_with_their_sources(name: str) -> None:
    profile = shipped(name)
    links, network = profile.links, profile.fabric.network
    assert links.nic is not None
    assert (network is None) == (name in NETWORK_UNKNOWN)
    for fact in (links.nic, links.gpu_gpu, links.cpu_gpu, network):
        assert fact is None or fact.source in profile.sources
    gpus = len(profile.node.gpus) if profile.node else 0
    assert not links.gpu_gpu or gpus > 1
    assert not links.cpu_gpu or gpus


@in_one_test("name", NAMES)
def test_unverified_sources_are_marked(name: str) -> None:
    for key, source in shipped(name).sources.items():
        assert (key == "unverified") <= (source.evidence == "unverified")
        assert source.evidence == "documented" or source.note


@in_one_test("name", NAMES)
def test_script_lines_have_reasons_and_parse(name: str) -> None:
    for _, part in structs_of(shipped(name), ()):
        if isinstance(part, EnvVar | Directive):
            assert len(part.reason) > 10
        if isinstance(part, Directive):
            assert shlex.split(part.text)


def test_lumi_g_node() -> None:
    topology = node("lumi-g")
    assert len(topology.cpus) == 128
    assert len(topology.usable) == 112
    assert format_cpu_list(topology.reserved) == "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120"
    assert [gpu.numa for gpu in topology.gpus] == [3, 3, 1, 1, 0, 0, 2, 2]
    near = [gpu.cpus or frozenset() for gpu in topology.gpus]
    assert [format_cpu_list(cpus) for cpus in near[:3]] == ["48-55,112-119", "56-63,120-127", "16-23,80-87"]
    l3_of_gpu = [{core.l3 for core in topology.cores if set(core.cpus) <= cpus} for cpus in near]
    assert l3_of_gpu == [{6}, {7}, {2}, {3}, {0}, {1}, {4}, {5}]
    assert [gpu.bus_id for gpu in topology.gpus][:2] == ["0000:c1:00.0", "0000:c6:00.0"]
    assert [core.numa for core in topology.cores[::16]] == [0, 1, 2, 3]
    assert topology.sources == ("site profile lumi-g",)


def test_lumi_g_rules() -> None:
    profile = shipped("lumi-g")
    assert list(profile.queues)[:3] == ["standard-g", "small-g", "dev-g"]
    assert [name for name, queue in profile.queues.items() if queue.whole_node] == [
        "standard-g",
        "bench",
        "standard",
    ]
    assert profile.queues["bench"].by_request
    assert (profile.mpi.plugin, profile.mpi.plugin_open) == (None, False)
    assert profile.account.pattern is not None
    assert re.fullmatch(profile.account.pattern, "project_465000096")
    assert not re.fullmatch(profile.account.pattern, "project_46500009")


def test_polaris_gpus_are_in_reverse_order() -> None:
    topology = node("polaris")
    assert [gpu.numa for gpu in topology.gpus] == [3, 2, 1, 0]
    assert format_cpu_list(topology.gpus[0].cpus or ()) == "24-31,56-63"
    profile = shipped("polaris")
    assert profile.scheduler.select == "system=polaris"
    assert [line.text for line in profile.directives] == ["-l filesystems=home:eagle", "-l place=scatter"]
    assert [route.max_nodes for route in profile.queues["prod"].routes] == [24, 99, 496]


@in_one_test("name", ["alps-gh200", "daint", "clariden", "santis", "olivia"])
def test_grace_hopper_nodes(name: str) -> None:
    topology, profile = node(name), shipped(name)
    assert [format_cpu_list(gpu.cpus or ()) for gpu in topology.gpus] == [
        "0-71",
        "72-143",
        "144-215",
        "216-287",
    ]
    assert [domain.id for domain in topology.numa_nodes if not domain.cpus] == [4, 12, 20, 28]
    common = profile.fabric.common
    assert common["NCCL_PROTO"].value == "^LL128"
    assert {common[f"FI_CXI_RDZV_{name}"].value for name in ("THRESHOLD", "GET_MIN", "EAGER_SIZE")} == {"0"}


def test_frontiers_node_is_that_of_lumi_g() -> None:
    """The same blade: OLCF's user guide and LUMI's documentation give one table of GPUs and L3 groups."""
    one, other = node("frontier"), node("lumi-g")
    assert (one.cores, one.reserved) == (other.cores, other.reserved)
    assert [(gpu.numa, gpu.cpus) for gpu in one.gpus] == [(gpu.numa, gpu.cpus) for gpu in other.gpus]


def test_frontiers_walltime_grows_with_the_nodes() -> None:
    batch = shipped("frontier").queues["batch"]
    assert [misfit(batch, nodes, 6 * 3600) is None for nodes in (1, 91, 92, 183, 9472)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert misfit(batch, 183, 7 * 3600)
    assert misfit(batch, 9473, 60)


def test_jupiter_has_grace_hopper_nodes_without_slingshot() -> None:
    profile, topology = shipped("jupiter"), node("jupiter")
    assert [format_cpu_list(gpu.cpus or ()) for gpu in topology.gpus][:2] == ["0-71", "72-143"]
    assert profile.fabric.kind == "infiniband"
    variables = [
        *profile.env,
        *profile.fabric.common,
        *profile.fabric.multi_node,
        *profile.fabric.single_node,
    ]
    assert not [name for name in variables if name.startswith("FI_") or name == "NCCL_NET"]
    assert profile.queues["booster"].max_walltime == "12:00:00"


def test_summits_cores_are_those_that_jsrun_showed() -> None:
    """OLCF's guide: no cores with hardware threads 84-87 and 172-175; 42 slots per node."""
    topology = node("summit")
    assert format_cpu_list(topology.reserved) == "84-87,172-175"
    assert len({core.cpus for core in topology.cores if topology.usable.issuperset(core.cpus)}) == 42


def test_leonardos_gpus_are_all_attached_to_the_first_half_of_the_cores() -> None:
    """So the cores nearest to them would leave the other half idle: srun gives each rank its share of all."""
    profile, topology = shipped("leonardo"), node("leonardo")
    assert profile.binding.cpu == "cores"
    assert {gpu.numa for gpu in topology.gpus} == {0}
    assert [len(numa.cpus) for numa in topology.numa_nodes] == [16, 16]


@in_one_test("name", ["mn5-acc", "betzy", "betzy-accel"])
def test_on_nodes_whose_numa_is_unknown_ranks_bind_themselves(name: str) -> None:
    profile, topology = shipped(name), node(name)
    assert profile.binding.cpu == "at_start"
    assert (topology.numa_nodes, {core.numa for core in topology.cores}) == ((), {None})
    assert {gpu.numa for gpu in topology.gpus} <= {None}


@in_one_test("name", ["polaris", "olivia", "alps-gh200"])
def test_the_slingshot_plugin_is_forced_between_nodes_only(name: str) -> None:
    fabric = shipped(name).fabric
    assert fabric.multi_node["NCCL_NET"].value == "AWS Libfabric"
    assert fabric.single_node["NCCL_NET"].value is None
    assert "NCCL_NET" not in fabric.common


def test_the_alps_clusters_differ_in_their_limits() -> None:
    base = shipped("alps-gh200")
    limits = {
        name: {key: (queue.max_nodes, queue.max_walltime) for key, queue in shipped(name).queues.items()}
        for name in ("daint", "clariden", "santis")
    }
    assert limits["clariden"]["normal"] == (None, "12:00:00")
    assert limits["clariden"]["debug"] == (4, "01:30:00")
    assert limits["daint"]["debug"] == limits["santis"]["debug"] == (2, "00:30:00")
    assert shipped("clariden").queues["debug"].max_node_minutes == 90
    for name in limits:
        assert shipped(name).fabric == base.fabric


@in_one_test("name", ["alps-gh200", "daint", "clariden", "santis"])
def test_cscs_requires_no_account_and_has_a_partition_for_transfer(name: str) -> None:
    profile = shipped(name)
    assert not profile.account.required
    assert profile.queues["xfer"].gpus is False


def test_what_the_sites_document_for_the_mpi_plugin() -> None:
    plugins = {name: shipped(name).mpi for name in ("olivia", "daint", "generic-slurm")}
    assert plugins["olivia"].plugin == "pmix"
    assert plugins["daint"].plugin is None
    assert set(plugins["daint"].alternatives) == {"pmix", "pmi2"}
    assert plugins["generic-slurm"].plugin_open


@in_one_test("name", ["generic-slurm", "generic-pbs", "generic-lsf", "generic-flux", "local"])
def test_generic_profiles_describe_no_node(name: str) -> None:
    profile: SiteProfile = shipped(name)
    assert site_topology(profile) is None
    assert (profile.queues, profile.env, profile.status) == ({}, {}, "generic")


@pytest.mark.slow
@in_one_test("name", NAMES)
def test_each_is_shown(name: str) -> None:
    shown = hpclaunch_here("sites", "show", name)
    assert shown.returncode == 0, shown.stderr
    assert "sources (named by the marks in brackets)" in shown.stdout
