"""Invented machines for tests, and what each tool would print on them."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from pathlib import Path

from hypothesis import strategies as st

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.topology.node_topology import Core, NumaNode


@dataclasses.dataclass(frozen=True)
class Machine:
    """A regular node: NUMA nodes of equal size, each with equal L3 groups of equal cores."""

    numa_ids: tuple[int, ...] = (0, 1)
    l3_per_numa: int = 2
    cores_per_l3: int = 4
    threads: int = 2
    adjacent: bool = False
    """Siblings are 2i and 2i+1, as on POWER; otherwise i and i+n/t."""
    interleaved: bool = False
    """Core i belongs to node i modulo the number of nodes, as on some Dell machines."""
    memory_only: tuple[int, ...] = ()
    gpu_numa: tuple[int, ...] = (1, 0)
    gpu_cpus_l3: bool = False
    """GPUs are local to an L3 group (the first of their node), not to the whole node."""

    @property
    def core_count(self) -> int:
        return len(self.numa_ids) * self.l3_per_numa * self.cores_per_l3

    @property
    def cpu_count(self) -> int:
        return self.core_count * self.threads

    def threads_of(self, core: int) -> tuple[int, ...]:
        """CPU numbers of a core, by its place in the machine."""
        if self.adjacent:
            return tuple(range(core * self.threads, (core + 1) * self.threads))
        return tuple(core + i * self.core_count for i in range(self.threads))

    def place(self, core: int) -> tuple[int, int]:
        """(place of the NUMA node, place of the L3 group in it) of a core."""
        nodes = len(self.numa_ids)
        if self.interleaved:
            return core % nodes, core // nodes // self.cores_per_l3
        node, inside = divmod(core, self.l3_per_numa * self.cores_per_l3)
        return node, inside // self.cores_per_l3

    def cores(self) -> tuple[Core, ...]:
        """The cores as a complete source should give them: L3 groups numbered by first CPU."""
        return _cores(self)

    def nodes(self) -> tuple[NumaNode, ...]:
        """NUMA nodes in ascending order, without memory sizes."""
        return _nodes(self)

    def node_cpus(self, node: int) -> CpuSet:
        return next(found.cpus for found in self.nodes() if found.id == node)

    def gpu_cpus(self, gpu: int) -> CpuSet:
        """CPUs near a GPU as /sys and hwloc show them."""
        numa = self.gpu_numa[gpu]
        if not self.gpu_cpus_l3:
            return self.node_cpus(numa)
        first = next(core.l3 for core in self.cores() if core.numa == numa)
        return frozenset(cpu for core in self.cores() if core.l3 == first for cpu in core.cpus)

    def bus(self, gpu: int) -> str:
        return f"0000:{16 + 7 * gpu:02x}:00.0"


@functools.lru_cache(maxsize=64)
def _cores(machine: Machine) -> tuple[Core, ...]:
    places = [machine.place(core) for core in range(machine.core_count)]
    order = {place: i for i, place in enumerate(dict.fromkeys(places))}
    return tuple(
        Core(cpus=machine.threads_of(core), numa=machine.numa_ids[place[0]], l3=order[place])
        for core, place in enumerate(places)
    )


@functools.lru_cache(maxsize=64)
def _nodes(machine: Machine) -> tuple[NumaNode, ...]:
    cpus: dict[int, set[int]] = {node: set() for node in (*machine.numa_ids, *machine.memory_only)}
    for core in machine.cores():
        assert core.numa is not None
        cpus[core.numa].update(core.cpus)
    return tuple(NumaNode(id=node, cpus=frozenset(cpus[node])) for node in sorted(cpus))


any_machine = st.builds(
    Machine,
    numa_ids=st.sampled_from([(0,), (0, 1), (0, 8), (0, 1, 2, 3), (0, 1, 6)]),
    l3_per_numa=st.integers(1, 3),
    cores_per_l3=st.integers(1, 5),
    threads=st.sampled_from([1, 2, 4, 8]),
    adjacent=st.booleans(),
    interleaved=st.booleans(),
    memory_only=st.sampled_from([(), (9,), (252, 253)]),
    gpu_numa=st.lists(st.just(0), max_size=5).map(tuple),
    gpu_cpus_l3=st.booleans(),
)


def lscpu_text(machine: Machine, *, sections: bool = False) -> str:
    """``lscpu`` in the C locale."""
    nodes = "".join(
        f"{'  ' if sections else ''}NUMA node{node.id} CPU(s):   {format_cpu_list(node.cpus)}\n"
        for node in machine.nodes()
    )
    groups = len(machine.numa_ids) * machine.l3_per_numa
    cache = "  L3:" if sections else "L3 cache:"
    return (
        f"Architecture:        {'ppc64le' if machine.adjacent else 'x86_64'}\n"
        f"CPU(s):              {machine.cpu_count}\n"
        f"On-line CPU(s) list: 0-{machine.cpu_count - 1}\n"
        "Vendor ID:           Example\n"
        f"Thread(s) per core:  {machine.threads}\n"
        f"Core(s) per socket:  {machine.core_count}\n"
        "Socket(s):           1\n"
        + ("Caches (sum of all):\n" if sections else "")
        + f"{cache}            64 MiB ({groups} instance{'s' if groups > 1 else ''})\n"
        + ("NUMA:\n" if sections else "")
        + f"NUMA node(s):        {len(machine.nodes())}\n"
        + nodes
        + "Vulnerability Spectre v1: Mitigation; usercopy/swapgs barriers and __user pointer sanitization\n"
    )


def lscpu_json(machine: Machine, *, nested: bool = False) -> str:
    """``lscpu -J``."""
    fields = [line.split(":", 1) for line in lscpu_text(machine).splitlines()]
    entries: list[dict[str, object]] = [
        {"field": f"{key}:", "data": value.strip() or None} for key, value in fields
    ]
    if nested:
        numa = [entry for entry in entries if str(entry["field"]).startswith("NUMA")]
        others = [entry for entry in entries if entry not in numa]
        entries = [{"field": "All:", "data": None, "children": others}, {"field": "NUMA:", "children": numa}]
    return json.dumps({"lscpu": entries}, indent=3)


def lscpu_table(machine: Machine, *, joined_caches: bool = False) -> str:
    """``lscpu -p``: separate cache columns (util-linux 2.38) or joined by colons (2.43)."""
    head = (
        "# CPU,Core,Socket,Node,L1d:L1i:L2:L3" if joined_caches else "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3"
    )
    rows: dict[int, str] = {}
    for number, core in enumerate(machine.cores()):
        caches = (":" if joined_caches else ",").join(str(n) for n in (number, number, number, core.l3))
        for cpu in core.cpus:
            rows[cpu] = f"{cpu},{number},0,{core.numa},{'' if joined_caches else ','}{caches}"
    return (
        "# The following is the parsable format\n"
        + "\n".join([head, *(rows[cpu] for cpu in sorted(rows))])
        + "\n"
    )


def numactl(machine: Machine, *, width: int | None = None) -> str:
    """``numactl -H``; ``width`` wraps long lines as a mail program does."""
    lines = [f"available: {len(machine.nodes())} nodes ({format_cpu_list(n.id for n in machine.nodes())})"]
    for node in machine.nodes():
        line = f"node {node.id} cpus: " + " ".join(str(cpu) for cpu in sorted(node.cpus))
        while width and len(line) > width and " " in line[15:width]:
            cut = line.rindex(" ", 15, width)
            lines.append(line[:cut])
            line = line[cut + 1 :]
        lines += [line.rstrip(), f"node {node.id} size: 1024 MB", f"node {node.id} free: 1000 MB"]
    lines += ["node distances:", "node   0", "  0:  10"]
    return "\n".join(lines) + "\n"


def rocm_smi(machine: Machine, form: str = "GPU[{}]\t\t") -> str:
    """``rocm-smi --showtoponuma``."""
    lines = [f"{' Numa Nodes ':=^88}"]
    for gpu, numa in enumerate(machine.gpu_numa):
        lines.append(f"{form.format(gpu)}: (Topology) Numa Node: {numa}")
        lines.append(f"{form.format(gpu)}: (Topology) Numa Affinity: {numa}")
    return "\n".join([*lines, f"{' End of ROCm SMI Log ':=^88}"]) + "\n"


def rocm_smi_json(machine: Machine) -> str:
    """``rocm-smi --showtoponuma --showbus --json``."""
    cards: dict[str, dict[str, str]] = {
        f"card{gpu}": {
            "PCI Bus": machine.bus(gpu).upper(),
            "(Topology) Numa Node": str(numa),
            "(Topology) Numa Affinity": str(numa),
        }
        for gpu, numa in enumerate(machine.gpu_numa)
    }
    return json.dumps({**cards, "system": {}})


def amd_smi_json(machine: Machine) -> str:
    """``amd-smi static --numa --bus --json``."""
    return json.dumps(
        [
            {"gpu": gpu, "bus": {"bdf": machine.bus(gpu)}, "numa": {"node": numa, "affinity": numa}}
            for gpu, numa in enumerate(machine.gpu_numa)
        ]
    )


def nvidia_smi(machine: Machine, *, tabs: bool = True, columns: int = 3, colour: bool = False) -> str:
    """``nvidia-smi topo -m`` with two NICs and up to three affinity columns."""
    gpus = range(len(machine.gpu_numa))
    names = [*(f"GPU{gpu}" for gpu in gpus), "NIC0", "mlx5_1"]
    head = "\t".join(["", *names, *("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")[:columns]])
    rows = [f"\x1b[4m{head}\x1b[0m" if colour else head]
    for gpu in gpus:
        links = [" X " if other == gpu else "SYS" for other in gpus]
        numa = machine.gpu_numa[gpu]
        affinity = [format_cpu_list(machine.node_cpus(numa)), str(numa), "\tN/A"][:columns]
        rows.append("\t".join([f"GPU{gpu}", *links, "PIX", "NODE", *affinity]))
    rows.append("\t".join(["NIC0", *("SYS" for _ in gpus), " X ", "PIX"]))
    text = (
        "\n".join([*rows, "", "Legend:", "", "  X    = Self", "  SYS  = Connection traversing PCIe"]) + "\n"
    )
    return text if tabs else text.replace("\t\t", "\t").expandtabs(12)


def _set(cpus: CpuSet) -> str:
    value = sum(1 << cpu for cpu in cpus)
    groups = []
    while value:
        groups.append(f"0x{value & 0xFFFFFFFF:08x}" if value & 0xFFFFFFFF else "")
        value >>= 32
    if groups and not groups[0]:
        groups[0] = "0x0"
    return ",".join(reversed(groups)) or "0x0"


def hwloc_xml(machine: Machine, version: int = 2) -> str:
    """``lstopo --of xml`` of hwloc 1, 2 or 3 with GPUs named by AMD's driver."""
    everything = frozenset(cpu for core in machine.cores() for cpu in core.cpus)
    parts = [_opening(version), f'<object type="Machine" os_index="0" cpuset="{_set(everything)}">']
    for node in machine.nodes():
        parts += _node_xml(machine, node, version)
    return "\n".join([*parts, "</object>", "</topology>"]) + "\n"


def _opening(version: int) -> str:
    dtd, number = ("hwloc.dtd", "") if version == 1 else ("hwloc2.dtd", f' version="{version}.0"')
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "{dtd}">\n<topology{number}>'


def _node_xml(machine: Machine, node: NumaNode, version: int) -> list[str]:
    memory = (
        f'<object type="NUMANode" os_index="{node.id}" cpuset="{_set(node.cpus)}" local_memory="1073741824"'
    )
    inner = [
        _l3_xml(machine, group, version)
        for group in sorted({c.l3 or 0 for c in machine.cores() if c.numa == node.id})
    ]
    gpus = [gpu for gpu, numa in enumerate(machine.gpu_numa) if numa == node.id]
    devices = [
        f'<object type="PCIDev" pci_busid="{machine.bus(gpu)}" pci_type="0380 [1002:7408] [1002:0b0c] 00">'
        f'<object type="OSDev" name="rsmi{gpu}" osdev_type="1"/></object>'
        for gpu in gpus
    ]
    bridge = ['<object type="Bridge" bridge_type="0-1">', *devices, "</object>"] if devices else []
    if bridge and machine.gpu_cpus_l3:
        inner[0] = inner[0].replace("</l3>", "\n".join(bridge))
        bridge = []
    inner = [part.replace("</l3>", "") for part in inner]
    if version == 1:
        return [f"{memory}>", *inner, *bridge, "</object>"]
    return [f'<object type="Group" cpuset="{_set(node.cpus)}">', f"{memory}/>", *inner, *bridge, "</object>"]


def _l3_xml(machine: Machine, group: int, version: int) -> str:
    cores = [core for core in machine.cores() if core.l3 == group]
    cpus = _set(frozenset(cpu for core in cores for cpu in core.cpus))
    kind = 'type="Cache" depth="3"' if version == 1 else 'type="L3Cache" depth="3"'
    inner = "".join(
        f'<object type="Core" os_index="{core.cpus[0]}" cpuset="{_set(frozenset(core.cpus))}">'
        + "".join(
            f'<object type="PU" os_index="{cpu}" cpuset="{_set(frozenset((cpu,)))}"/>' for cpu in core.cpus
        )
        + "</object>\n"
        for core in cores
    )
    return f'<object {kind} cpuset="{cpus}">\n{inner}</l3></object>'


def write_sysfs(machine: Machine, root: Path, *, allowed: str | None = None, vendor: str = "0x1002") -> Path:
    """Write a /sys and /proc tree below ``root``."""
    cpu = root / "sys/devices/system/cpu"
    _put(cpu / "online", f"0-{machine.cpu_count - 1}")
    groups: dict[int | None, set[int]] = {}
    for core in machine.cores():
        groups.setdefault(core.l3, set()).update(core.cpus)
    for core in machine.cores():
        shared = groups[core.l3]
        for thread in core.cpus:
            _put(cpu / f"cpu{thread}/topology/thread_siblings_list", format_cpu_list(core.cpus))
            _put(cpu / f"cpu{thread}/topology/physical_package_id", "0")
            _put(cpu / f"cpu{thread}/cache/index3/level", "3")
            _put(cpu / f"cpu{thread}/cache/index3/shared_cpu_list", format_cpu_list(shared))
    for node in machine.nodes():
        folder = root / f"sys/devices/system/node/node{node.id}"
        _put(folder / "cpulist", format_cpu_list(node.cpus))
        _put(folder / "meminfo", f"Node {node.id} MemTotal:       1048576 kB\nNode {node.id} MemFree: 5 kB")
    for gpu, numa in enumerate(machine.gpu_numa):
        pci_device(root, machine.bus(gpu), "0x038000", vendor, numa, format_cpu_list(machine.gpu_cpus(gpu)))
    if allowed is not None:
        _put(root / "proc/self/status", f"Name:\tpython\nCpus_allowed_list:\t{allowed}")
    return root


def pci_device(root: Path, address: str, kind: str, vendor: str, numa: int, cpus: str) -> None:
    """Add one PCI device, linked from the bus folder as the kernel does."""
    device = root / "sys/devices/pci0000:00" / address
    for name, text in (
        ("class", kind),
        ("vendor", vendor),
        ("numa_node", str(numa)),
        ("local_cpulist", cpus),
    ):
        _put(device / name, text)
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    os.symlink(f"../../../devices/pci0000:00/{address}", bus / address)


def network_device(root: Path, folder: str, name: str, address: str) -> None:
    """Add a network interface of a PCI device to a class folder."""
    place = root / "sys/class" / folder / name
    place.mkdir(parents=True)
    os.symlink(f"../../../devices/pci0000:00/{address}", place / "device")


def kfd_node(root: Path, number: int, simd: int, location: int) -> None:
    """Add a node of AMD's compute driver; ``simd`` 0 is a processor."""
    _put(
        root / f"sys/class/kfd/kfd/topology/nodes/{number}/properties",
        f"cpu_cores_count {0 if simd else 64}\nsimd_count {simd}\nlocation_id {location}\ndomain 0",
    )


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
