"""lscpu: what the generated machines do not show."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.topology import lscpu
from hpclaunch.topology.merge_sources import merge
from tests.in_one_test import in_one_test

DATA = Path(__file__).parents[1] / "data/topology"


def fixture(name: str) -> str:
    return (DATA / name).read_text()


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("lscpu-german.txt", {0: set(range(8)), 1: set(range(8, 16))}),
        ("lscpu-chinese.txt", {0: {0, 2, 4, 6}, 1: {1, 3, 5, 7}}),
    ],
)
def test_numa_lines_are_read_in_any_language_and_a_note_says_that_only_they_are(
    name: str, nodes: dict[int, set[int]]
) -> None:
    partial = lscpu.read(fixture(name), name)
    assert {node.id: node.cpus for node in partial.numa_nodes or ()} == nodes
    assert any("LC_ALL=C" in note for note in partial.notes)


def test_a_translated_output_without_numa_lines_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadInputError, match="LC_ALL=C"):
        lscpu.read(fixture("lscpu-french-no-numa.txt"), "french.txt")


def test_hybrid_cores_with_the_same_number_are_distinguished_by_their_caches() -> None:
    cores = lscpu.read(fixture("lscpu-hybrid.csv"), "x").cores or ()
    assert [core.cpus for core in cores] == [(0, 1), (2, 3), (4,), (5,)]


def test_offline_rows_are_left_out_and_a_cpu_without_a_node_has_none() -> None:
    partial = lscpu.read(fixture("lscpu-offline.csv"), "x")
    assert [(core.cpus, core.numa) for core in partial.cores or ()] == [((0,), 0), ((2,), None)]
    assert partial.online == frozenset((0, 2))


def test_text_followed_by_the_table_gives_both() -> None:
    text = "CPU(s): 2\nOn-line CPU(s) list: 0,1\nThread(s) per core: 2\nNUMA node0 CPU(s): 0,1\n\n"
    partial = lscpu.read(text + "# CPU,Core,Socket,Node\n0,0,0,0\n1,0,0,0\n", "x")
    assert [core.cpus for core in partial.cores or ()] == [(0, 1)]
    assert partial.threads_per_core == 2


@in_one_test(
    "text, message",
    [
        ("", "not the output of lscpu"),
        ("nothing here\n", "not the output of lscpu"),
        ("Model name: Example\n", "neither NUMA nodes nor a list of CPUs"),
        ("NUMA node0 CPU(s): 0-3,5-\n", "line 1: bad CPU list"),
        ("NUMA node0 CPU(s): 7-3\n", "line 1: bad CPU list"),
        ("NUMA node0 CPU(s): 0-99999999\n", "line 1: bad CPU list"),
        ("x: 1\nNUMA node0 CPU(s): 0\nNUMA node0 CPU(s): 1\n", "line 3: NUMA node 0 appears again"),
        ("NUMA node0 CPU(s): 0\nThread(s) per core: two\n", "line 2: 'two' is not a number"),
        ('{"lscpu": [{"field": "NUMA node0 CPU(s):", "data": "0-3"}', "damaged JSON"),
        ('{"lscpu": {"field": 3}}', "without a list 'lscpu'"),
        ('{"lscpu": [{"name": 3}]}', "without 'field'"),
        ("# CPU,Core,Socket,Node\n0,0,0\n", "line 2: '0,0,0' has 3 fields, the header 4"),
        ("# CPU,Core\n0,0\n0,1\n", "line 3: CPU 0 appears twice"),
        ("# CPU,Core\n0,0\nx1,1\n2,2\n", "line 3: 'x1' is not a number"),
        ("#\x1fCPU,Core\n0,0\n", "not the output of lscpu"),
        ("# CPU,Core\n", "line 1: a header of lscpu -p without rows"),
        ("# CPU,Core\n99999,0\n", "line 2: CPU 99999"),
        ("# CPU,Core,L1d:L2:L3\n0,0,1:2\n", "line 2: caches '1:2'"),
        ("0,0,0,0\n1,1,0,0\n", "without the line '# CPU,Core,...'"),
    ],
)
def test_damaged_output_is_refused_with_file_line_and_finding(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        lscpu.read(text, "node7.txt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("node7.txt")
    assert caught.value.hint


def read_one(text: str) -> tuple[list[tuple[int, ...]], tuple[str, ...]]:
    topology = merge([lscpu.read(text, "x")])
    return [core.cpus for core in topology.cores], topology.notes


def test_siblings_are_derived_from_numa_lines_where_each_node_lists_equal_ranges() -> None:
    cores, notes = read_one("NUMA node0 CPU(s): 0-1,4-5\nNUMA node1 CPU(s): 2-3,6-7\n")
    assert cores == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert any("derived from the numbering" in note for note in notes)


@in_one_test(
    "text",
    [
        "NUMA node0 CPU(s): 0-7\n",
        "NUMA node0 CPU(s): 0,2,4,6\nNUMA node1 CPU(s): 1,3,5,7\n",
        "NUMA node0 CPU(s): 0-3\nThread(s) per core: 2\n",
        "NUMA node0 CPU(s): 0-7\nArchitecture: x86_64\nHypervisor vendor: KVM\nThread(s) per core: 2\n",
        "CPU(s): 16\nNUMA node0 CPU(s): 0-1,4-5\nNUMA node1 CPU(s): 2-3,6-7\n",
    ],
)
def test_siblings_that_are_not_certain_stay_unknown_with_a_note(text: str) -> None:
    cores, notes = read_one(text)
    assert all(len(cpus) == 1 for cpus in cores)
    assert any("each CPU is counted as a core" in note for note in notes)


def test_the_architecture_decides_on_a_single_node() -> None:
    text = "NUMA node0 CPU(s): 0-7\nThread(s) per core: 4\nArchitecture: {}\n"
    assert read_one(text.format("x86_64"))[0] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert read_one(text.format("ppc64le"))[0] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_the_numbering_that_would_split_a_core_over_nodes_is_ruled_out() -> None:
    text = "NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\nThread(s) per core: 2\n"
    assert read_one(text)[0] == [(0, 1), (2, 3), (4, 5), (6, 7)]


def l3_of(text: str) -> list[int | None]:
    return [core.l3 for core in merge([lscpu.read(text, "x")]).cores]


def test_l3_groups_follow_from_their_number_only_where_blocks_are_certain() -> None:
    nodes = "NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\nThread(s) per core: 1\n"
    assert l3_of(nodes + "L3: 64 MiB (4 instances)\n") == [0, 0, 1, 1, 2, 2, 3, 3]
    assert l3_of(nodes + "L3 cache: 64 MiB (1 instance)\n") == [0] * 8
    assert l3_of(nodes + "L3 cache: 64 MiB (3 instances)\n") == [None] * 8
    assert l3_of(nodes + "L3 cache: 64 MiB\n") == [None] * 8
    assert l3_of("CPU(s): 12\n" + nodes + "L3 cache: 64 MiB (4 instances)\n") == [None] * 8
    interleaved = "NUMA node0 CPU(s): 0,2\nNUMA node1 CPU(s): 1,3\nThread(s) per core: 1\n"
    assert l3_of(interleaved + "L3 cache: 64 MiB (2 instances)\n") == [None] * 4


def test_masks_are_read_like_lists() -> None:
    partial = lscpu.read("On-line CPU(s) mask: 0xff\nNUMA node0 CPU(s): 0xf\nNUMA node1 CPU(s): 0xF0\n", "x")
    assert partial.online == frozenset(range(8))
    assert [sorted(node.cpus) for node in partial.numa_nodes or ()] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(BadInputError, match="line 1: bad CPU mask"):
        lscpu.read("NUMA node0 CPU(s): 0xg\n", "x")


@pytest.mark.parametrize(
    "text",
    [
        "On-line CPU(s) mask:  3\nNUMA node0 CPU(s):  1\nNUMA node1 CPU(s):  2\nNUMA node2 CPU(s):\n",
        "On-line CPU(s) mask:  0x3\nNUMA node0 CPU(s):  0x1\nNUMA node1 CPU(s):  0x2\nNUMA node2 CPU(s):\n",
    ],
)
def test_masks_of_lscpu_x_are_no_cpu_numbers(text: str) -> None:
    """util-linux 2.38 prints them without 0x."""
    partial = lscpu.read(text, "x")
    assert partial.online == frozenset((0, 1))
    assert [node.cpus for node in partial.numa_nodes or ()] == [{0}, {1}, frozenset()]


def test_masks_with_letters_are_masks_in_any_language() -> None:
    text = "Maske:  ffff\nNUMA-Knoten0 CPU(s):  ff\nNUMA-Knoten1 CPU(s):  ff00\n"
    nodes = lscpu.read(text, "x").numa_nodes or ()
    assert [node.cpus for node in nodes] == [set(range(8)), set(range(8, 16))]


def test_a_core_of_thousands_of_threads_takes_little_memory() -> None:
    rows = "# CPU,Core,Socket,Node\n" + "".join(f"{cpu},0,0,0\n" for cpu in range(4000))
    tracemalloc.start()
    topology = merge([lscpu.read(rows, "x")])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(topology.cores[0].cpus) == 4000
    assert peak < 64 << 20
