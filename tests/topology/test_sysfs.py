"""/sys and /proc: machines of an unusual shape, GPUs and NICs, and this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.topology import sysfs
from hpclaunch.topology.sources import read_files, read_live
from tests.in_one_test import in_one_test
from tests.topology import machines


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text + "\n")


def test_this_machine_agrees_with_what_the_kernel_grants_this_process() -> None:
    topology = read_files({"sysfs": Path("/")})
    assert topology.allowed == frozenset(os.sched_getaffinity(0))
    assert topology.allowed <= topology.cpus
    assert len(topology.cpus) == os.sysconf("SC_NPROCESSORS_ONLN")


def test_the_variable_names_the_tree_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.write_sysfs(machines.Machine(numa_ids=(0, 1, 6)), tmp_path)
    monkeypatch.setenv("HPCLAUNCH_SYSROOT", str(tmp_path))
    assert [node.id for node in read_live().numa_nodes] == [0, 1, 6]


def test_offline_cpus_are_left_out_of_cores_nodes_and_grants(tmp_path: Path) -> None:
    machine = machines.Machine(numa_ids=(0, 1), l3_per_numa=1, cores_per_l3=2, threads=2, gpu_numa=())
    machines.write_sysfs(machine, tmp_path, allowed="0-7")
    put(tmp_path, "sys/devices/system/cpu/online", "0-2,4,6-7")
    topology = read_files({"sysfs": tmp_path})
    assert [core.cpus for core in topology.cores] == [(0, 4), (1,), (2, 6), (7,)]
    assert [sorted(node.cpus) for node in topology.numa_nodes] == [[0, 1, 4], [2, 6, 7]]
    assert topology.allowed == frozenset((0, 1, 2, 4, 6, 7))


def test_trees_of_older_kernels_with_masks_and_without_the_online_list(tmp_path: Path) -> None:
    for cpu in range(4):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        put(tmp_path, f"{folder}/topology/thread_siblings", f"00000000,{1 << cpu | 1 << (cpu ^ 2):08x}")
        put(tmp_path, f"{folder}/online", "0" if cpu == 3 else "1")
    put(tmp_path, "sys/devices/system/node/node0/cpumap", "00000000,0000000f")
    put(
        tmp_path,
        "sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal:       131581780 kB\nNode 0 MemFree: 1 kB",
    )
    topology = read_files({"sysfs": tmp_path})
    assert topology.numa_nodes[0].memory_bytes == 134_739_742_720
    assert [core.cpus for core in topology.cores] == [(0, 2), (1,)]
    assert sorted(topology.numa_nodes[0].cpus) == [0, 1, 2]


def test_lists_that_end_with_a_zero_byte_are_read(tmp_path: Path) -> None:
    """As Linux 5.15.0-rc1 writes them."""
    put(tmp_path, "sys/devices/system/cpu/online", "0-3\n\0")
    put(tmp_path, "sys/devices/system/node/node0/cpulist", "0-3\n\0")
    topology = read_files({"sysfs": tmp_path})
    assert [sorted(node.cpus) for node in topology.numa_nodes] == [[0, 1, 2, 3]]


def test_the_display_of_a_servers_main_board_is_no_gpu(tmp_path: Path) -> None:
    """An ATI ES1000 next to a GPU of AMD; it is no boot display where another one is."""
    root = machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    machines.pci_device(root, "0000:07:0d.0", "0x030000", "0x1002", 0, "0")
    put(root, "sys/devices/pci0000:00/0000:07:0d.0/device", "0x515e")
    machines.pci_device(root, "0000:c1:00.0", "0x038000", "0x1002", 0, "0")
    topology = read_files({"sysfs": root})
    assert [gpu.bus_id for gpu in topology.gpus] == ["0000:c1:00.0"]


def test_a_cache_of_level_3_under_another_index(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/cpu/online", "0-1")
    for cpu in range(2):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index3/level", "2")
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index4/level", "3")
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index4/shared_cpu_list", "0-1")
    assert [core.l3 for core in read_files({"sysfs": tmp_path}).cores] == [0, 0]


def test_amd_gpus_come_in_the_order_of_the_compute_driver(tmp_path: Path) -> None:
    machine = machines.Machine(gpu_numa=(1, 1, 0, 0))
    machines.write_sysfs(machine, tmp_path)
    machines.kfd_node(tmp_path, 0, 0, 0)
    for number, gpu in enumerate((2, 3, 0, 1), 1):
        machines.kfd_node(tmp_path, number, 440, int(machine.bus(gpu)[5:7], 16) << 8)
    topology = read_files({"sysfs": tmp_path})
    assert [gpu.bus_id for gpu in topology.gpus] == [machine.bus(gpu) for gpu in (2, 3, 0, 1)]
    assert [gpu.numa for gpu in topology.gpus] == [0, 0, 1, 1]
    assert not any("PCI order" in note for note in topology.notes)


def test_a_gpu_that_was_not_granted_is_noted(tmp_path: Path) -> None:
    machine = machines.Machine(gpu_numa=(1, 0))
    machines.write_sysfs(machine, tmp_path)
    machines.kfd_node(tmp_path, 1, 440, int(machine.bus(0)[5:7], 16) << 8)
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/2").mkdir()
    topology = read_files({"sysfs": tmp_path})
    assert [gpu.bus_id for gpu in topology.gpus] == [machine.bus(0)]
    assert any("KFD node 2 cannot be read" in note for note in topology.notes)


def test_displays_and_integrated_graphics_are_not_gpus(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    machines.pci_device(tmp_path, "0000:00:02.0", "0x030000", "0x8086", 0, "0-3")
    machines.pci_device(tmp_path, "0000:02:00.0", "0x030000", "0x1a03", 0, "0-3")
    machines.pci_device(tmp_path, "0000:03:00.0", "0x030000", "0x1002", 0, "0-3")
    put(tmp_path, "sys/bus/pci/devices/0000:03:00.0/boot_vga", "1")
    assert read_files({"sysfs": tmp_path}).gpus == ()
    machines.pci_device(tmp_path, "0000:81:00.0", "0x120000", "0x1002", 1, "4-7")
    assert [gpu.bus_id for gpu in read_files({"sysfs": tmp_path}).gpus] == ["0000:81:00.0"]


def test_nvidia_gpus_in_pci_order_with_their_model_and_a_note(tmp_path: Path) -> None:
    machine = machines.Machine(gpu_numa=(1, 0))
    machines.write_sysfs(machine, tmp_path, vendor="0x10de")
    put(tmp_path, f"proc/driver/nvidia/gpus/{machine.bus(1)}/information", "Model: \t\t Example X100\nIRQ: 1")
    topology = read_files({"sysfs": tmp_path})
    assert [(gpu.numa, gpu.model) for gpu in topology.gpus] == [(1, None), (0, "Example X100")]
    assert any("CUDA_DEVICE_ORDER=PCI_BUS_ID" in note for note in topology.notes)


def test_the_place_of_a_device_without_numa_node_stays_unknown(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    machines.pci_device(tmp_path, "0000:81:00.0", "0x030200", "0x10de", -1, "0-31")
    topology = read_files({"sysfs": tmp_path})
    assert (topology.gpus[0].numa, topology.gpus[0].cpus) == (None, None)
    assert "the NUMA node of GPU 0 is unknown" in topology.notes


def test_one_nic_per_device_by_the_name_that_libraries_use(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    for address, numa in (("0000:21:00.0", 0), ("0000:a1:00.0", 1), ("0000:05:00.0", 0)):
        machines.pci_device(tmp_path, address, "0x020000", "0x17db", numa, "0-3")
    machines.network_device(tmp_path, "cxi", "cxi0", "0000:21:00.0")
    machines.network_device(tmp_path, "net", "hsn0", "0000:21:00.0")
    machines.network_device(tmp_path, "infiniband", "mlx5_0", "0000:a1:00.0")
    machines.network_device(tmp_path, "net", "ib0", "0000:a1:00.0")
    machines.network_device(tmp_path, "net", "eth0", "0000:05:00.0")
    assert [(nic.name, nic.numa, nic.bus_id) for nic in read_files({"sysfs": tmp_path}).nics] == [
        ("cxi0", 0, "0000:21:00.0"),
        ("mlx5_0", 1, "0000:a1:00.0"),
    ]


def test_nodes_that_list_the_same_cpus_count_as_one(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(numa_ids=(0,), gpu_numa=()), tmp_path)
    for node in (1, 2):
        put(tmp_path, f"sys/devices/system/node/node{node}/cpulist", "0-15")
    topology = read_files({"sysfs": tmp_path})
    assert [len(node.cpus) for node in topology.numa_nodes] == [16, 0, 0]
    assert {core.numa for core in topology.cores} == {0}
    assert any("NUMA nodes 1, 2 list CPUs that another node has too" in note for note in topology.notes)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("sys/devices/system/cpu/online", "0-3,x", "cpu/online, line 1: bad CPU list"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0--3", "thread_siblings_list, line 1"),
        ("sys/devices/system/node/node0/cpulist", "3-0", "node0/cpulist, line 1"),
        ("proc/self/status", "Name:\tx\nCpus_allowed_list:\tall", "self/status, line 2: bad"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, path: str, text: str, message: str) -> None:
    machines.write_sysfs(machines.Machine(), tmp_path, allowed="0-3")
    put(tmp_path, path, text)
    with pytest.raises(BadInputError) as caught:
        sysfs.read(tmp_path)
    assert message in str(caught.value)


def test_a_folder_without_a_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no CPU in sys/devices/system/cpu"):
        sysfs.read(tmp_path)


def test_a_pipe_instead_of_a_file_does_not_hang_the_reader(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    (tmp_path / "proc/self").mkdir(parents=True)
    os.mkfifo(tmp_path / "proc/self/status")
    assert sysfs.read(tmp_path).allowed is None


@in_one_test(
    "location, domain, simds, address",
    [
        ("49408", "0", "304", "0000:c1:00.0"),  # 0xc100
        ("49433", "0", "304", "0000:c1:03.1"),  # 0xc119: device 3, function 1
        ("65535", "17", "1", "0011:ff:1f.7"),
        ("256", None, "304", "0000:01:00.0"),
        ("49408", "0", "0", None),  # a processor
        ("49408", "0", None, None),
        (None, "0", "304", None),
        ("x", "0", "304", None),
    ],
)
def test_the_address_of_a_gpu_of_the_compute_driver(
    location: str | None, domain: str | None, simds: str | None, address: str | None
) -> None:
    values = {"location_id": location, "domain": domain, "simd_count": simds, "cpu_cores_count": "0"}
    lines = [f"{key} {value}" for key, value in values.items() if value is not None]
    assert sysfs._kfd_address("\n".join(lines)) == address


def test_a_partition_of_a_gpu_counts_in_the_function_of_its_address(tmp_path: Path) -> None:
    """Function 1 is a device of its own only where the kernel lists it."""
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    for address in ("0000:c1:00.0", "0000:c2:00.0", "0000:c2:00.1"):
        machines.pci_device(tmp_path, address, "0x120000", "0x1002", 0, "0-3")
    for number, location in enumerate((0xC100, 0xC101, 0xC200, 0xC201)):
        machines.kfd_node(tmp_path, number, 304, location)
    buses = [gpu.bus_id for gpu in read_files({"sysfs": tmp_path}).gpus]
    assert buses == ["0000:c1:00.0", "0000:c1:00.0", "0000:c2:00.0", "0000:c2:00.1"]


def test_graphics_of_a_processor_are_vga_on_bus_0_or_the_boot_display(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    for address, kind in (
        ("0000:00:02.0", "0x030000"),
        ("0000:00:03.0", "0x038000"),
        ("0000:41:00.0", "0x030000"),
    ):
        machines.pci_device(tmp_path, address, kind, "0x1002", 0, "0-3")
    put(tmp_path, "sys/bus/pci/devices/0000:41:00.0/boot_vga", "0")
    found = read_files({"sysfs": tmp_path})
    assert [gpu.bus_id for gpu in found.gpus] == ["0000:00:03.0", "0000:41:00.0"]
    assert any("GPUs of AMD are numbered in PCI order" in note for note in found.notes)
    put(tmp_path, "sys/bus/pci/devices/0000:41:00.0/boot_vga", "1")
    found = read_files({"sysfs": tmp_path})
    assert [gpu.bus_id for gpu in found.gpus] == ["0000:00:03.0"]
    assert not any("PCI order" in note for note in found.notes), "of one there is no order"


def test_what_files_of_the_kernel_hold(tmp_path: Path) -> None:
    tree = sysfs.Tree(tmp_path, {}, {})
    for name in ("n10", "n9", "n0", "nx", "other"):
        put(tmp_path, f"folder/{name}", "1")
    assert list(tree.numbered("folder", "n", 10)) == [0, 9, 10]
    with pytest.raises(BadInputError, match="n10"):
        list(tree.numbered("folder", "n", 9))
    assert tree.names("none") == []
    for text, number in (
        ("17", 17),
        ("-1", None),
        ("x", None),
        ("9" * 15, 999_999_999_999_999),
        ("9" * 16, None),
    ):
        put(tmp_path, "number", text)
        assert tree.integer("number") == number
    assert tree.integer("folder") is None, "a folder is not read"
    put(tmp_path, "mask", "1,00000003")
    assert tree.cpus("list", "mask") == frozenset((0, 1, 32))
    put(tmp_path, "list", "5")
    assert tree.cpus("list", "mask") == frozenset((5,)), "the list comes first"
    assert tree.cpus("none", "neither") is None
    put(tmp_path, "mask", "000000003")
    with pytest.raises(BadInputError, match="eight hexadecimal digits"):
        tree.cpus("none", "mask")
    for line, size in (
        ("Node 1 MemTotal: 3 kB", 3072),
        ("Node 1 MemTotal: 3 MB", None),
        ("Node 1 MemFree: 3 kB", None),
    ):
        assert sysfs._memory_bytes(f"Node 1 MemUsed: 9 kB\n{line}") == size
    assert sysfs._memory_bytes("Node 1 MemTotal: x kB") is None


def test_a_device_is_near_some_cpus_or_its_place_is_unknown(tmp_path: Path) -> None:
    """The kernel lists all CPUs where it does not know."""
    tree = sysfs.Tree(tmp_path, {}, {})
    online = frozenset(range(8))
    for text, near in (("4-11", frozenset((4, 5, 6, 7))), ("0-7", None), ("0-63", None), ("8-11", None)):
        put(tmp_path, "gpu/local_cpulist", text)
        put(tmp_path, "gpu/numa_node", "1")
        assert sysfs._locality(tree, "gpu", online) == (1, near)
    assert sysfs._locality(tree, "none", online) == (None, None)
