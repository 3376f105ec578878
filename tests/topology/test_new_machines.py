"""Machines of 2025 and 2026: Grace-Blackwell, MI355X, tiles of Intel's GPU Max, MIG, GPUs of two vendors.

The texts are written here in the format of the tools; each function names the source of what it states, and
what is made up. None is a recording.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.binding import dialects
from hpclaunch.errors import BadInputError
from hpclaunch.topology import hwloc, nvidia_smi
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.topology.sources import read_files
from tests.binding.machines import bound, lists
from tests.in_one_test import in_one_test
from tests.topology.test_hwloc_and_numactl import osdev


def read(tmp_path: Path, **texts: str) -> NodeTopology:
    files = {}
    for kind, text in texts.items():
        files[kind] = tmp_path / kind
        files[kind].write_text(text)
    return read_files(files)


def gb200_topo() -> str:
    """A compute tray of GB200 NVL72, as GB300's: two Grace processors of 72 cores, two GPUs on each.

    CPUs, NUMA affinity and GPU NUMA IDs of GPUs 0 to 2 as in sgl-project/sglang issue 11208 (driver
    570.172.08); the ID of GPU 3 and the single NIC are made up.
    """
    near = ["0-71\t0,3-9,11-17\t\t2", "0-71\t0,3-9,11-17\t\t10"]
    near += ["72-143\t1,19-25,27-33\t\t18", "72-143\t1,19-25,27-33\t\t26"]
    rows = ["\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for gpu in range(4):
        links = "\t".join(" X " if other == gpu else "NV18" for other in range(4))
        rows.append(f"GPU{gpu}\t{links}\tSYS\t{near[gpu]}")
    return "\n".join([*rows, "NIC0\tSYS\tSYS\tSYS\tSYS\t X "]) + "\n"


def gb200_lscpu() -> str:
    """Its 34 NUMA nodes, of which two have cores, in the format of lscpu (util-linux 2.39)."""
    empty = "".join(f"NUMA node{node} CPU(s):\n" for node in range(2, 34))
    return (
        "Architecture: aarch64\nCPU(s): 144\nOn-line CPU(s) list: 0-143\nThread(s) per core: 1\n"
        "Core(s) per socket: 72\nSocket(s): 2\nNUMA node(s): 34\n"
        f"NUMA node0 CPU(s): 0-71\nNUMA node1 CPU(s): 72-143\n{empty}"
    )


@pytest.mark.parametrize("with_lscpu", [True, False])
def test_a_grace_blackwell_tray_has_two_gpus_per_processor(tmp_path: Path, with_lscpu: bool) -> None:
    node = read(tmp_path, nvidia_smi=gb200_topo(), **({"lscpu": gb200_lscpu()} if with_lscpu else {}))
    assert [gpu.numa for gpu in node.gpus] == [0, 0, 1, 1]
    assert lists(bound(node, 4)) == ["0-35", "36-71", "72-107", "108-143"]
    assert lists(bound(node, 2)) == ["0-71", "72-143"]
    assert [rank.numa for rank in bound(node, 4).ranks] == [(0,), (0,), (1,), (1,)]


def mi355x_rocm_smi(per_gpu: int = 1) -> str:
    """Eight MI355X on two processors; ``per_gpu`` partitions of each (2 in mode DPX, 8 in CPX).

    No output of an MI355X node was found: the NUMA nodes are those of a server with eight GPUs in
    ROCm/legacy-rocm-build issue 4740, and partitions are written ``GPU[n] XCP[m]`` as on MI300A.
    """
    lines = [f"{' Numa Nodes ':=^88}"]
    for gpu in range(8):
        for part in range(per_gpu):
            name = f"GPU[{gpu}]\t\t" if per_gpu == 1 else f"GPU[{gpu}] XCP[{part}]\t"
            lines.append(f"{name}: (Topology) Numa Node: {gpu // 4}")
            lines.append(f"{name}: (Topology) Numa Affinity: {gpu // 4}")
    return "\n".join([*lines, f"{' End of ROCm SMI Log ':=^88}"]) + "\n"


def two_epycs() -> str:
    """``lscpu -p`` of two processors of 64 cores in L3 groups of eight; threads are left out (made up)."""
    rows = [f"{cpu},{cpu},{cpu // 64},{cpu // 64},{cpu}:{cpu}:{cpu}:{cpu // 8}" for cpu in range(128)]
    return "# CPU,Core,Socket,Node,L1d:L1i:L2:L3\n" + "\n".join(rows) + "\n"


def test_an_mi355x_gets_two_l3_groups_of_its_own_processor(tmp_path: Path) -> None:
    node = read(tmp_path, rocm_smi=mi355x_rocm_smi(), lscpu=two_epycs())
    assert lists(bound(node, 8)) == [f"{16 * gpu}-{16 * gpu + 15}" for gpu in range(8)]
    assert [rank.l3 for rank in bound(node, 8).ranks][:2] == [(0, 1), (2, 3)]


def test_partitions_of_an_mi355x_count_as_gpus(tmp_path: Path) -> None:
    node = read(tmp_path, rocm_smi=mi355x_rocm_smi(per_gpu=2), lscpu=two_epycs())
    binding = bound(node, 16)
    assert len(node.gpus) == 16
    assert [len(rank.l3) for rank in binding.ranks] == [1] * 16
    assert binding.ranks[8].numa == (1,)


def gpu_max_xml(composite: bool) -> str:
    """Two GPUs of Intel's Data Center GPU Max series, two tiles each, on two processors of four cores.

    Names and attributes as hwloc's topology-levelzero.c (commit 06dbafd) writes them: with COMPOSITE each GPU
    has sub-devices; with FLAT each tile is a device, and both tiles of a GPU have its PCI address. 8086:0bd5
    is the number of a GPU Max 1550 (pci.ids); the PCI addresses and the small processors are made up.
    """
    parts = []
    for socket in range(2):
        names = [f"ze{2 * socket}", f"ze{2 * socket + 1}"]
        tiles = "".join(map(osdev, names))
        if composite:
            inner = "".join(osdev(f"ze{socket}.{tile}") for tile in range(2))
            tiles = (
                f'<object type="OSDev" name="ze{socket}" subtype="LevelZero" osdev_type="5">'
                f'<info name="LevelZeroSubdevices" value="2"/>{inner}</object>'
            )
        mask = hex(0xF << 4 * socket)
        cores = "".join(
            f'<object type="Core"><object type="PU" os_index="{cpu}"/></object>'
            for cpu in range(4 * socket, 4 * socket + 4)
        )
        parts.append(
            f'<object type="Package" os_index="{socket}" cpuset="{mask}">'
            f'<object type="NUMANode" os_index="{socket}" cpuset="{mask}"/>{cores}'
            f'<object type="PCIDev" pci_busid="000{socket}:18:00.0" pci_type="0380 [8086:0bd5]">'
            f"{tiles}</object></object>"
        )
    return f'<topology><object type="Machine" cpuset="0xff">{"".join(parts)}</object></topology>'


@pytest.mark.parametrize("composite", [True, False])
def test_each_tile_of_intels_gpus_is_one(composite: bool) -> None:
    partial = hwloc.read(gpu_max_xml(composite), "x")
    assert [gpu.bus_id for gpu in partial.gpus or ()] == ["0000:18:00.0"] * 2 + ["0001:18:00.0"] * 2
    assert (partial.gpu_vendor, partial.gpu_order) == ("Intel", True)
    noted = any("2 GPUs have 4 tiles: each tile counts as a GPU" in note for note in partial.notes)
    assert noted == composite
    binding = bound(merge([partial]), 4)
    assert lists(binding) == ["0-1", "2-3", "4-5", "6-7"]
    assert [rank.gpus for rank in binding.ranks] == [(0,), (1,), (2,), (3,)]


A100 = "NVIDIA A100-SXM4-40GB"
NUMACTL = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3 4 5 6 7\nnode 1 cpus: 8 9 10 11 12 13 14 15\n"
MIG_TOPO = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tSYS\t0-7\t0\t\tN/A\nGPU1\tSYS\t X \t8-15\t1\t\tN/A\n\n"
)


def mig_list() -> str:
    """Two A100, the first with three MIG instances, as in NVIDIA's MIG User Guide; the UUIDs are made up."""
    uuids = [f"MIG-0000000{number}-c75d-52e3-b5fe-e3f8ba0c5da{number}" for number in range(3)]
    instances = "".join(
        f"  MIG {name}     Device  {number}: (UUID: {uuids[number]})\n"
        for number, name in enumerate(("3g.20gb", "2g.10gb", "1g.5gb"))
    )
    return (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)\n"
        f"{instances}GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c)\n"
    )


def test_mig_instances_are_gpus_with_the_place_of_theirs(tmp_path: Path) -> None:
    node = read(tmp_path, nvidia_smi=MIG_TOPO + mig_list(), numactl=NUMACTL)
    assert [gpu.numa for gpu in node.gpus] == [0, 0, 0, 1]
    assert [gpu.model for gpu in node.gpus][1:] == [f"{A100} MIG 2g.10gb", f"{A100} MIG 1g.5gb", A100]
    binding = bound(node, 4)
    assert lists(binding) == ["0-2", "3-5", "6-7", "8-15"]
    (gpus,) = [line for line in dialects.env(node, binding).splitlines() if "HPCLAUNCH_GPUS" in line]
    names = [gpu.uuid for gpu in node.gpus]
    assert gpus == f"export HPCLAUNCH_GPUS='{names[0]} {names[1]} {names[2]} 3'"
    assert any("3 MIG instances count as GPUs" in note for note in node.notes)


def test_the_list_alone_names_the_instances_without_a_place() -> None:
    partial = nvidia_smi.read(mig_list(), "x")
    assert [(gpu.numa, gpu.device) for gpu in partial.gpus or ()] == [(None, 0)] * 3 + [(None, 1)]


@in_one_test(
    "text, message",
    [
        (mig_list().replace("GPU 1:", "GPU 2:"), "line 5: GPU 2 follows 1 GPUs"),
        (mig_list().split("\n", 1)[1], "line 1: a MIG instance before the line of its GPU"),
        (MIG_TOPO + mig_list().rsplit("GPU 1:", 1)[0], "the matrix has 2 GPUs, the list has others"),
    ],
)
def test_damaged_lists_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        nvidia_smi.read(text, "gpus.txt")
    assert message in str(caught.value)


def test_tools_of_two_vendors_are_not_joined_by_number(tmp_path: Path) -> None:
    """A made-up node with two GPUs of AMD and two of NVIDIA: the numbers mean different devices."""
    rocm = "".join(
        f"GPU[{gpu}]\t\t: (Topology) Numa {column}: {1 - gpu}\n"
        for gpu in range(2)
        for column in ("Node", "Affinity")
    )
    node = read(tmp_path, rocm_smi=rocm, nvidia_smi=MIG_TOPO, numactl=NUMACTL)
    assert [gpu.numa for gpu in node.gpus] == [1, 0]
    (note,) = [note for note in node.notes if "shows GPUs of AMD" in note]
    assert note.endswith("2 of NVIDIA; those of AMD are used")
