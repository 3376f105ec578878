"""hwloc's XML and numactl -H: damage, dangers, and machines of an unusual shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.topology import hwloc, numactl
from hpclaunch.topology.merge_sources import merge
from tests.in_one_test import in_one_test
from tests.topology import machines

DATA = Path(__file__).parents[1] / "data/topology"
XML = machines.hwloc_xml(machines.Machine())


def document(*objects: str, cpuset: str = "0x0000000f", more: str = "") -> str:
    inner = "".join(objects)
    return f'<topology><object type="Machine" cpuset="{cpuset}" {more}>{inner}</object></topology>'


def pus(*cpus: int) -> str:
    return "".join(f'<object type="PU" os_index="{cpu}"/>' for cpu in cpus)


def test_memory_of_other_kinds_next_to_the_same_cores_has_no_cpus() -> None:
    text = document(
        '<object type="NUMANode" os_index="3" cpuset="0xf" local_memory="8"/>',
        '<object type="Group" cpuset="0x3"><object type="NUMANode" os_index="0" cpuset="0x3"/>',
        '<object type="NUMANode" os_index="2" cpuset="0x3"/>' + pus(0, 1) + "</object>",
        '<object type="Group" cpuset="0xc"><object type="NUMANode" os_index="1" cpuset="0xc"/>' + pus(2, 3),
        "</object>",
    )
    topology = merge([hwloc.read(text, "x")])
    assert [(node.id, sorted(node.cpus)) for node in topology.numa_nodes] == [
        (0, [0, 1]),
        (1, [2, 3]),
        (2, []),
        (3, []),
    ]
    assert [core.numa for core in topology.cores] == [0, 0, 1, 1]


def test_cpus_that_are_not_online_or_not_allowed() -> None:
    more = 'online_cpuset="0x7" allowed_cpuset="0x6" complete_cpuset="0x1f"'
    partial = hwloc.read(document(pus(0, 1, 2, 3), more=more), "x")
    assert (partial.online, partial.allowed) == (frozenset((0, 1, 2)), frozenset((1, 2)))
    assert any("CPUs 3-4 are hidden" in note for note in partial.notes)


def test_the_order_of_hwlocs_cores_is_kept() -> None:
    """A group by distance puts the second package's cores between those of the others."""
    text = document(
        '<object type="Package" os_index="1" cpuset="0xc">' + pus(2, 3) + "</object>",
        '<object type="Package" os_index="0" cpuset="0x3">' + pus(0, 1) + "</object>",
    )
    topology = merge([hwloc.read(text, "x")])
    assert topology.hwloc_order == (2, 3, 0, 1)
    assert [core.cpus for core in topology.cores] == [(0,), (1,), (2,), (3,)]


def device(kind: str, vendor: str, bus: str, inner: str = "", chip: str = "0001") -> str:
    return f'<object type="PCIDev" pci_busid="{bus}" pci_type="{kind} [{vendor}:{chip}]">{inner}</object>'


def osdev(name: str) -> str:
    return f'<object type="OSDev" name="{name}" osdev_type="1"/>'


def test_without_a_driver_gpus_come_in_pci_order_and_displays_do_not_count() -> None:
    text = document(
        pus(0, 1, 2, 3),
        device("0302", "10de", "0000:41:00.0"),
        device("0302", "10de", "0000:03:00.0"),
        device("0300", "1a03", "0000:65:00.0", osdev("card0")),
        device("0300", "8086", "0000:00:02.0"),
        device("0200", "15b3", "0000:05:00.0", osdev("ib0") + osdev("mlx5_0")),
        device("0200", "8086", "0000:06:00.0", osdev("eth0")),
    )
    partial = hwloc.read(text, "x")
    assert [gpu.bus_id for gpu in partial.gpus or ()] == ["0000:03:00.0", "0000:41:00.0"]
    assert not partial.gpu_order
    assert [nic.name for nic in partial.nics or ()] == ["mlx5_0"]


@in_one_test("chip", ["515e", "5969", "5159", "4752"])
def test_the_display_of_a_servers_main_board_is_no_gpu(chip: str) -> None:
    """ATI ES1000, RV100 and Rage XL."""
    partial = hwloc.read(document(pus(0, 1), device("0300", "1002", "0000:07:0d.0", chip=chip)), "x")
    assert partial.gpus == ()


@pytest.mark.parametrize("name", ["nvml0", "card0"])
def test_gpus_of_a_second_vendor_are_noted_and_not_counted(name: str) -> None:
    text = document(
        pus(0, 1),
        device("0380", "1002", "0000:03:00.0"),
        device("0380", "1002", "0000:04:00.0"),
        device("0302", "10de", "0000:41:00.0", osdev(name)),
    )
    partial = hwloc.read(text, "x")
    assert [gpu.bus_id for gpu in partial.gpus or ()] == ["0000:41:00.0"]
    assert partial.gpu_vendor == "NVIDIA"
    assert any(
        "in addition to the GPUs of NVIDIA there are 2 of AMD; they are not counted" in note
        for note in partial.notes
    )


def test_the_vendors_driver_numbers_gpus_before_opencl() -> None:
    text = document(
        pus(0, 1, 2, 3),
        device("0302", "10de", "0000:03:00.0", osdev("opencl0d0") + osdev("nvml1")),
        device("0302", "10de", "0000:41:00.0", osdev("opencl0d1") + osdev("nvml0")),
    )
    gpus = hwloc.read(text, "x").gpus or ()
    assert [(gpu.index, gpu.bus_id) for gpu in gpus] == [(0, "0000:41:00.0"), (1, "0000:03:00.0")]


BOMB = '<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><topology>&b;</topology>'
OUTSIDE = '<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/hostname">]><topology>&a;</topology>'


@in_one_test(
    "text, message",
    [
        ("", "no XML document"),
        ("Machine (503GB total)\n  NUMANode P#0\n", "no XML document"),
        (XML[: len(XML) // 2], "ends without </topology>"),
        (XML.replace("</object>", "", 1), "damaged XML"),
        (XML.replace('type="Machine"', 'type="Thing"'), "no object of type Machine"),
        ("<topology></topology>", "no object of type Machine"),
        (BOMB, "line 1: an XML entity is declared"),
        (OUTSIDE, "line 1: an XML entity is declared"),
        (document(pus(0), cpuset="0x0"), "Machine without CPUs"),
        (document(pus(0), cpuset="0xf...f"), "cpuset '0xf...f' is not a CPU set"),
        (document(pus(0), cpuset="0x1234567890"), "is not a CPU set"),
        (document(pus(0), cpuset="0x1" + ",0x0" * 5000), "is not a CPU set"),
        (document('<object type="PU" os_index="-1"/>'), "PU with os_index '-1'"),
        (document('<object type="PU" os_index="9999999"/>'), "PU with os_index"),
        (document(pus(1, 1)), "a CPU appears in two cores"),
        (document(pus(0), '<object type="NUMANode" os_index="0"/>' * 2), "NUMA node 0 appears twice"),
        ("<topology>" + '<object type="Misc">' * 300 + "</object>" * 300 + "</topology>", "200 levels"),
    ],
)
def test_damaged_or_dangerous_xml_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        hwloc.read(text, "node.xml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("node.xml")


def test_wrapped_lines_holes_in_the_numbers_and_nodes_without_cpus() -> None:
    partial = numactl.read((DATA / "numactl-superchip.txt").read_text(), "x")
    nodes = {node.id: (len(node.cpus), node.memory_bytes) for node in partial.numa_nodes or ()}
    assert nodes[0] == (36, 119264 << 20)
    assert nodes[1] == (36, 120000 << 20)
    assert nodes[3] == (0, 97280 << 20)
    assert sorted(nodes) == [0, 1, *range(3, 11)]


@in_one_test(
    "text, message",
    [
        ("", "no line such as 'node 0 cpus"),
        ("No NUMA support available on this system.\n", "no line such as 'node 0 cpus"),
        ("node 0 cpus: 0 1 two\n", "line 1: 'two' among the CPUs"),
        ("node 0 cpus: 0 1 99999\n", "line 1: '99999' among the CPUs"),
        ("node 0 cpus: 0\nnode 0 cpus: 1\n", "line 2: node 0 appears twice"),
        ("available: 2 nodes (0-1)\nnode 0 cpus: 0\n", "node 1 is announced but has no line"),
        ("available: 1 nodes (0)\nnode 0 cpus: 0\nnode 1 cpus: 1\n", "node 1 is shown but not announced"),
        ("available: 3 nodes (0-1)\nnode 0 cpus: 0\nnode 1 cpus: 1\n", "line 1: 'available: 3 nodes (0-1)'"),
        ("available: 1 nodes (1-0)\nnode 0 cpus: 0\n", "line 1: bad CPU list"),
    ],
)
def test_damaged_numactl_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        numactl.read(text, "numa.txt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("numa.txt")
