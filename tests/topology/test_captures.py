"""Recorded output of real machines, where HPCLAUNCH_TEST_CAPTURES names the folder that holds it."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpclaunch.cpuset import format_cpu_list, parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.topology.sources import KINDS, read_files
from tests.binding.captures import SOURCE_OF

pytestmark = pytest.mark.slow

CAPTURES = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"])
NODES = CAPTURES / "nodes"
# The reader that each folder of captures is for.
READER_OF = {**SOURCE_OF, "hwloc-lstopo": "hwloc"}
# Captures that no reader can use, and the reason that must be given. All others must be read.
REFUSED = {
    "4gpu_2nic_2socket.txt": "no X in column GPU1",
    "polaris_4xA100_markdown_table.md": "a table in Markdown",
    "topo-C_closest_cpu.txt": "names no GPU",
    "error_lines_and_xcp_formats.txt": "no line such as 'GPU[0]",
    "gpurun_lscpu_mismatch_note.txt": "not the output of amd-smi",
    "gpurun_topo_8gpu.txt": "not the output of amd-smi",
    "lumi-g_lstopo-p_lownoise_first_numa.txt": "no XML document",
}
FILES = sorted(path for path in NODES.rglob("*") if path.is_file() and path.parent.name in READER_OF)
TREES = sorted(NODES.glob("sysfs*/*.tar.*"))
CASES: dict[str, dict[str, Any]] = {
    case["name"]: case for case in json.loads((CAPTURES / "oracles.json").read_text())
}


def read_case(name: str) -> NodeTopology:
    files: dict[str, list[Path]] = {}
    for path in CASES[name]["inputs"]:
        files.setdefault(READER_OF[path.split("/")[0]], []).append(NODES / path)
    return read_files(files)


def test_there_are_captures() -> None:
    assert len(FILES) > 100
    assert len(TREES) > 8


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_capture_is_read_or_refused_for_its_reason(path: Path) -> None:
    kind = READER_OF[path.parent.name]
    if path.name in REFUSED:
        with pytest.raises(BadInputError) as caught:
            read_files({kind: path})
        assert REFUSED[path.name] in str(caught.value)
    else:
        topology = read_files({kind: path})
        assert topology.cores or topology.gpus
        assert msgspec.convert(msgspec.to_builtins(topology), NodeTopology) == topology
        assert_sound(topology)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_reader_reads_or_refuses_captures_of_other_tools(path: Path) -> None:
    text = path.read_text(errors="replace")
    for read in KINDS.values():
        try:
            read(text, path.name)
        except BadInputError as error:
            refusal = error
        else:
            continue
        assert path.name in refusal.message


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.name)
def test_every_tree_is_read(path: Path, tmp_path: Path) -> None:
    with tarfile.open(path) as archive:
        # Trees of /sys hold links and device numbers; "tar" keeps them inside the folder.
        archive.extractall(tmp_path, filter="tar")
    (root,) = tmp_path.iterdir()
    topology = read_files({"sysfs": root})
    assert topology.cores
    assert_sound(topology)


def assert_sound(topology: NodeTopology) -> None:
    """Check what holds on every machine: no CPU twice, nodes within the machine, cores in their nodes."""
    listed = [cpu for core in topology.cores for cpu in core.cpus]
    assert len(listed) == len(set(listed))
    nodes = [cpu for node in topology.numa_nodes for cpu in node.cpus]
    assert len(nodes) == len(set(nodes))
    if topology.cores:
        assert set(nodes) <= set(listed)
    home = {node.id: node.cpus for node in topology.numa_nodes}
    for core in topology.cores:
        assert core.numa is None or set(core.cpus) <= home[core.numa]
    assert [gpu.index for gpu in topology.gpus] == list(range(len(topology.gpus)))


def named(kind: str, field: str) -> list[str]:
    """Names of the cases of a kind that expect something in ``field`` and read files only."""
    return [
        name
        for name, case in CASES.items()
        if case["kind"] == kind
        and field in case["expect"]
        and all(p.split("/")[0] in READER_OF for p in case["inputs"])
    ]


@pytest.mark.parametrize("name", [*named("parse", "numa_per_gpu"), *named("error-handling", "numa_per_gpu")])
def test_numa_nodes_of_gpus(name: str) -> None:
    expected = CASES[name]["expect"]["numa_per_gpu"]
    if isinstance(expected, list):
        assert [gpu.numa for gpu in read_case(name).gpus] == expected


@pytest.mark.parametrize("name", named("parse", "cpu_affinity"))
def test_cpu_affinity_of_gpus(name: str) -> None:
    gpus = read_case(name).gpus
    assert [format_cpu_list(gpu.cpus or ()) for gpu in gpus] == CASES[name]["expect"]["cpu_affinity"]


@pytest.mark.parametrize("name", named("error-handling", "numa_unknown"))
def test_unknown_numa_nodes_stay_unknown_with_a_note(name: str) -> None:
    topology = read_case(name)
    assert [gpu.numa for gpu in topology.gpus] == [None] * len(CASES[name]["expect"]["gpu_per_task"])
    assert any("is unknown" in note for note in topology.notes)


@pytest.mark.parametrize("name", named("computed", "local_cpus_per_gpu"))
def test_local_cpus_of_gpus_are_those_hwloc_computes(name: str) -> None:
    expect: Mapping[str, Mapping[str, Any]] = CASES[name]["expect"]
    topology = read_case(name)
    cpus_of = {node.id: node.cpus for node in topology.numa_nodes}
    found = {
        f"{device.rstrip('0123456789')}{gpu.index}": gpu
        for gpu in topology.gpus
        for device in expect["local_cpus_per_gpu"]
    }
    assert len(topology.gpus) == len(expect["local_cpus_per_gpu"])
    for device, cpus in expect["local_cpus_per_gpu"].items():
        gpu = found[device]
        assert gpu.numa is not None
        assert gpu.numa == expect["numa_per_gpu"][device]
        assert (gpu.cpus if gpu.cpus is not None else cpus_of[gpu.numa]) == parse_cpu_list(cpus)


@pytest.mark.parametrize(
    "name", [name for name in named("error-handling", "cpus_per_task") if "overlap" in name]
)
def test_nodes_that_share_all_cpus_count_as_one(name: str) -> None:
    topology = read_case(name)
    assert [format_cpu_list(topology.cpus)] == CASES[name]["expect"]["cpus_per_task"]
    assert len([node for node in topology.numa_nodes if node.cpus]) == 1
    assert any("list CPUs that another node has too" in note for note in topology.notes)


@pytest.mark.parametrize(
    "name", [name for name in named("error-handling", "cpus_per_task") if "offline" in name]
)
def test_offline_neighbours(name: str) -> None:
    topology = read_case(name)
    assert [format_cpu_list(topology.cpus)] == CASES[name]["expect"]["cpus_per_task"]
    assert any("belong to no known NUMA node" in note for note in topology.notes)


def test_a_gpu_on_a_node_that_lscpu_does_not_have_is_noted() -> None:
    both = NODES / CASES["gpurun/node_not_in_lscpu"]["inputs"][0]
    topology = read_files({"rocm_smi": both, "lscpu": both})
    assert any("NUMA node 6" in note and "has no CPUs in lscpu" in note for note in topology.notes)
