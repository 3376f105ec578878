"""Reader of /sys and /proc: the live node, or a copy of these trees.

Facts about the files: in Documentation of the Linux sources ABI/stable/sysfs-devices-node,
ABI/stable/sysfs-devices-system-cpu, ABI/testing/sysfs-bus-pci and admin-guide/cputopology.rst.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from hpclaunch.cpuset import MAX_CPU, CpuSet, parse_cpu_list, parse_mask
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, GpuFact, Nic, NumaNode, Partial
from hpclaunch.topology.pci_devices import GPU_CLASSES, gpu_vendor, note_of_others
from hpclaunch.topology.tool_text import MAX_NUMA, Line, bus_id, cpu_list, whole_number

SYSROOT_VARIABLE = "HPCLAUNCH_SYSROOT"
KIND = "sysfs"

_MAX_BYTES = 1 << 20
_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_PCI = "sys/bus/pci/devices"
_KFD = "sys/class/kfd/kfd/topology/nodes"

_PCI_ORDER_HINTS = {"NVIDIA": " (as CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID)"}
# Interfaces of high-speed networks, the name that communication libraries use first: where one
# device has several names (cxi0 and hsn0, mlx5_0 and ib0) the first is used.
_NIC_CLASSES = (("cxi", ("cxi",)), ("infiniband", ("",)), ("net", ("hsn", "hsi", "ib")))


class Tree(NamedTuple):
    """A /sys and /proc tree below ``root``; it records what was read."""

    root: Path
    texts: dict[str, str]
    """Text of each file that was read, by path below ``root``."""
    links: dict[str, str]
    """PCI address that a ``device`` link leads to, by path."""

    def text(self, path: str) -> str | None:
        """Return the stripped text of a regular file of at most 1 MiB, None where it cannot be read."""
        try:
            found = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(found).st_mode):
                return None
            data = b""
            while len(data) < _MAX_BYTES and (chunk := os.read(found, 65536)):
                data += chunk
        except OSError:
            return None
        finally:
            os.close(found)
        self.texts[path] = text = data.decode("utf-8", "replace")
        # Linux 5.15.0-rc1 ends the lists of CPUs with a zero byte.
        return text.strip(" \t\r\n\0")

    def names(self, path: str) -> list[str]:
        """Return the entries of a folder in natural order; empty where it cannot be read."""
        try:
            return sorted(os.listdir(f"{self.root}/{path}"), key=lambda name: (len(name), name))
        except OSError:
            return []

    def numbered(self, path: str, prefix: str, highest: int) -> Iterator[int]:
        """Yield n of the entries ``<prefix><n>`` of a folder, ascending, up to ``highest``."""
        for name in self.names(path):
            found = whole_number(name.removeprefix(prefix)) if name.startswith(prefix) else None
            if found is not None and found > highest:
                raise BadInputError(f"{self.root / path}: {name}", f"numbers go up to {highest}")
            if found is not None:
                yield found

    def integer(self, path: str) -> int | None:
        """Return a file's whole number, None where it is absent, negative or something else."""
        return whole_number(self.text(path) or "", 15)

    def cpus(self, list_path: str, mask_path: str) -> CpuSet | None:
        """Return a CPU set from its list file, else from the older mask file; None where both are absent.

        Raises BadInputError when the file holds no CPU set.
        """
        for path, parse in ((list_path, parse_cpu_list), (mask_path, _parse_kernel_mask)):
            if (text := self.text(path)) is not None:
                try:
                    return parse(text)
                except BadInputError as error:
                    place = f"{self.root / path}, line 1"
                    raise BadInputError(f"{place}: {error.message[:200]}", error.hint) from None
        return None


def _parse_kernel_mask(text: str) -> CpuSet:
    """Read a mask in groups of 32 bits, ``00000000,0000ffff``."""
    groups = text.split(",")
    if any(len(group) > 8 for group in groups):
        raise BadInputError(f"bad CPU mask {text[:60]!r}", "groups have eight hexadecimal digits")
    return parse_mask("".join(group.rjust(8, "0") for group in groups))


def default_root() -> Path:
    """Return the folder below which /sys and /proc are read: ``HPCLAUNCH_SYSROOT``, else ``/``."""
    return Path(os.environ.get(SYSROOT_VARIABLE) or "/")


def read(root: Path) -> Partial:
    """Read cores, thread siblings, L3 groups, NUMA nodes, GPUs, NICs and the granted CPUs of a node.

    ``root`` holds ``sys`` and ``proc``. No program is started. Raises BadInputError when there is no
    CPU description below it or a file cannot be parsed.
    """
    return read_tree(Tree(root, {}, {}))


def read_tree(tree: Tree) -> Partial:
    """Read a node from ``tree``, which records what was read."""
    online = _online(tree)
    nodes = _numa_nodes(tree, online)
    vendor, gpus, in_order, notes = _gpus(tree, online)
    return Partial(
        kind=KIND,
        origin=str(tree.root),
        cores=_cores(tree, online, nodes),
        online=online,
        numa_nodes=nodes,
        gpus=gpus,
        gpu_vendor=vendor,
        gpu_order=in_order,
        nics=_nics(tree, online),
        allowed=_allowed(tree, online),
        notes=notes,
    )


def copy_tree(root: Path) -> Tree:
    """Return the part of ``root`` that the reader uses, links as relative paths: a copy of it reads the same.

    Raises BadInputError as ``read``. Of /proc/self/status only the line about CPUs is copied.
    """
    tree = Tree(root, {}, {})
    read_tree(tree)
    files = dict(tree.texts)
    if status := files.get("proc/self/status"):
        lines = status.splitlines(keepends=True)
        files["proc/self/status"] = "".join(line for line in lines if line.startswith("Cpus_allowed_list:"))
    links = {}
    for path, address in tree.links.items():
        up = [".."] * (len(PurePosixPath(path).parts) - 1)
        links[path] = str(PurePosixPath(*up, "sys/bus/pci/devices", address))
    return Tree(root, files, links)


def _allowed(tree: Tree, online: CpuSet) -> CpuSet | None:
    """Return the online CPUs that this process may use; None where the tree does not say."""
    status = "proc/self/status"
    for number, line in enumerate((tree.text(status) or "").splitlines(), 1):
        key, _, value = line.partition(":")
        if key == "Cpus_allowed_list":
            return cpu_list(Line(number, value.strip(), str(tree.root / status))) & online
    return None


def _online(tree: Tree) -> CpuSet:
    """Return the CPUs in use: ``online``, or every cpuN that has a topology folder (older kernels)."""
    if online := tree.cpus(f"{_CPU}/online", ""):
        return online
    present = frozenset(tree.numbered(_CPU, "cpu", MAX_CPU))
    if not present:
        raise BadInputError.case("sysfs: no CPU", tree=tree, folder=_CPU, variable=SYSROOT_VARIABLE)
    return frozenset(cpu for cpu in present if tree.integer(f"{_CPU}/cpu{cpu}/online") != 0) or present


def _cores(tree: Tree, online: CpuSet, nodes: tuple[NumaNode, ...] | None) -> tuple[Core, ...]:
    # A CPU that several nodes list belongs to none here (merge decides).
    numa_of: dict[int, int] = {}
    doubled: set[int] = set()
    for node in nodes or ():
        doubled.update(node.cpus & numa_of.keys())
        numa_of.update(dict.fromkeys(node.cpus, node.id))
    group_of = _l3_groups(tree, online)
    cores: list[Core] = []
    done: set[int] = set()
    for cpu in sorted(online):
        if cpu in done:
            continue
        folder = f"{_CPU}/cpu{cpu}/topology"
        siblings = tree.cpus(f"{folder}/thread_siblings_list", f"{folder}/thread_siblings")
        cpus = tuple(sorted(((siblings or frozenset()) & online) - done | {cpu}))
        done.update(cpus)
        cores.append(
            Core(
                cpus=cpus,
                numa=None if cpu in doubled else numa_of.get(cpu),
                l3=group_of.get(cpu),
                socket=tree.integer(f"{folder}/physical_package_id"),
            )
        )
    return tuple(cores)


def _l3_groups(tree: Tree, online: CpuSet) -> dict[int, int]:
    """Number the sets of CPUs that share a level-3 cache in the order of their first CPU."""
    group_of: dict[int, int] = {}
    for cpu in sorted(online):
        if cpu in group_of:
            continue
        cache = _l3_folder(tree, cpu)
        shared = tree.cpus(f"{cache}/shared_cpu_list", f"{cache}/shared_cpu_map") if cache else None
        if shared is not None:
            group = max(group_of.values(), default=-1) + 1
            group_of.update({other: group for other in (shared & online) | {cpu} if other not in group_of})
    return group_of


def _l3_folder(tree: Tree, cpu: int) -> str | None:
    """Return the folder of a CPU's level-3 cache: index3 on nearly all machines, else the one of level 3."""
    folder = f"{_CPU}/cpu{cpu}/cache"
    usual = ["index3"] if tree.text(f"{folder}/index3/level") else []
    indices = (name for name in [*usual, *tree.names(folder)] if name.startswith("index"))
    return next((f"{folder}/{name}" for name in indices if tree.text(f"{folder}/{name}/level") == "3"), None)


def _numa_nodes(tree: Tree, online: CpuSet) -> tuple[NumaNode, ...] | None:
    """Read the NUMA nodes; None where the kernel was built without NUMA."""
    nodes = [
        NumaNode(
            id=node,
            cpus=(tree.cpus(f"{_NODE}/node{node}/cpulist", f"{_NODE}/node{node}/cpumap") or frozenset())
            & online,
            memory_bytes=_memory_bytes(tree.text(f"{_NODE}/node{node}/meminfo") or ""),
        )
        for node in tree.numbered(_NODE, "node", MAX_NUMA)
    ]
    return tuple(nodes) or None


def _memory_bytes(meminfo: str) -> int | None:
    """Return MemTotal of a node's meminfo, ``Node 0 MemTotal:  131581780 kB``."""
    found = re.search(r"\bMemTotal:\s+(\d{1,15}) kB\s*$", meminfo, re.MULTILINE | re.ASCII)
    return int(found[1]) * 1024 if found else None


class _Device(NamedTuple):
    """A PCI device that may be a compute GPU."""

    bus: str
    vendor: str
    device_class: str


def _gpus(tree: Tree, online: CpuSet) -> tuple[str | None, tuple[GpuFact, ...], bool, tuple[str, ...]]:
    """Return a vendor and its GPUs, whether their order is the runtime's, and notes."""
    devices = _gpu_devices(tree)
    amd, notes = _amd_in_kfd_order(tree, devices)
    by_vendor = _buses_by_vendor(tree, devices, amd)
    if not by_vendor:
        return None, (), True, tuple(notes)
    vendor = next(iter(by_vendor))
    if note := note_of_others("sysfs", by_vendor, vendor):
        notes.append(note)
    gpus = tuple(_gpu(tree, index, bus, online) for index, bus in enumerate(by_vendor[vendor]))
    in_order = vendor == "AMD" and amd is not None
    if not in_order and len(gpus) > 1:
        hint = _PCI_ORDER_HINTS.get(vendor, "")
        notes.append(f"sysfs: GPUs of {vendor} are numbered in PCI order{hint}")
    return vendor, gpus, in_order, tuple(notes)


def _buses_by_vendor(tree: Tree, devices: list[_Device], amd: list[str] | None) -> dict[str, list[str]]:
    """Return the PCI addresses of each vendor that has GPUs here, the vendor to prefer first."""
    found = {
        "NVIDIA": [device.bus for device in devices if device.vendor == "NVIDIA"],
        "AMD": amd if amd is not None else _add_in_cards(tree, devices, "AMD"),
        "Intel": _add_in_cards(tree, devices, "Intel"),
    }
    return {vendor: buses for vendor, buses in found.items() if buses}


def _gpu_devices(tree: Tree) -> list[_Device]:
    """Return the display and accelerator devices of the known vendors in PCI order."""
    found = []
    for name in tree.names(_PCI):
        device_class = (tree.text(f"{_PCI}/{name}/class") or "")[2:6]
        address = bus_id(name)
        if device_class not in GPU_CLASSES or not address:
            tree.texts.pop(f"{_PCI}/{name}/class", None)
            continue
        vendor, device = ((tree.text(f"{_PCI}/{name}/{key}") or "")[2:] for key in ("vendor", "device"))
        if name_of_vendor := gpu_vendor(device_class, vendor, device):
            found.append(_Device(address, name_of_vendor, device_class))
    return sorted(found)


def _add_in_cards(tree: Tree, devices: list[_Device], vendor: str) -> list[str]:
    """Return a vendor's GPUs without the display of a processor: VGA on bus 0 or the boot display."""
    return [
        device.bus
        for device in devices
        if device.vendor == vendor
        and not (
            device.device_class == "0300"
            and (device.bus.startswith("0000:00:") or tree.text(f"{_PCI}/{device.bus}/boot_vga") == "1")
        )
    ]


def _amd_in_kfd_order(tree: Tree, devices: list[_Device]) -> tuple[list[str] | None, list[str]]:
    """Return this job's AMD GPUs in the order of the kernel's driver, which is ROCm's; None without it."""
    numbers = list(tree.numbered(_KFD, "", 4096))
    if not numbers:
        return None, []
    found: list[str] = []
    notes: list[str] = []
    known = {device.bus for device in devices if device.vendor == "AMD"}
    for number in numbers:
        properties = tree.text(f"{_KFD}/{number}/properties")
        if properties is None:
            notes.append(f"sysfs: KFD node {number} cannot be read: a GPU that is not granted to this job")
        elif address := _kfd_address(properties):
            # A partition of a GPU counts its number in the function bits; its device is function 0.
            found.append(address if address in known else f"{address[:-1]}0")
    return found, notes


def _kfd_address(properties: str) -> str | None:
    """Return a KFD GPU's address (``location_id``: bus << 8, device << 3, function); None: no GPU."""
    values = dict(line.partition(" ")[::2] for line in properties.splitlines())
    location, domain, simds = (
        whole_number(values.get(key, ""), 10) for key in ("location_id", "domain", "simd_count")
    )
    if not simds or location is None:
        return None
    return f"{domain or 0:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def _gpu(tree: Tree, index: int, bus: str, online: CpuSet) -> GpuFact:
    numa, cpus = _locality(tree, f"{_PCI}/{bus}", online)
    information = tree.text(f"proc/driver/nvidia/gpus/{bus}/information") or ""
    model = [line.split(":", 1)[1].strip() for line in information.splitlines() if line.startswith("Model:")]
    return GpuFact(index=index, numa=numa, cpus=cpus, bus_id=bus, model=model[0] if model else None)


def _locality(tree: Tree, folder: str, online: CpuSet) -> tuple[int | None, CpuSet | None]:
    """Return NUMA node and local CPUs of a device; both None where the kernel does not know (-1)."""
    numa = tree.integer(f"{folder}/numa_node")
    cpus = tree.cpus(f"{folder}/local_cpulist", f"{folder}/local_cpus")
    local = cpus & online if cpus is not None else None
    # Where the kernel does not know the place it lists all CPUs, or none.
    return numa, local if local and local != online else None


def _nics(tree: Tree, online: CpuSet) -> tuple[Nic, ...]:
    """Return the interfaces of the high-speed network, one per PCI device."""
    found: dict[str, Nic] = {}
    for folder, prefixes in _NIC_CLASSES:
        for name in tree.names(f"sys/class/{folder}"):
            device = f"sys/class/{folder}/{name}/device"
            if not name.startswith(prefixes) or not (tree.root / device).exists():
                continue
            address = bus_id(os.path.basename(os.path.realpath(tree.root / device)))
            if address:
                tree.links[device] = address
            numa, cpus = _locality(tree, f"{_PCI}/{address}" if address else device, online)
            found.setdefault(address or name, Nic(name=name, numa=numa, cpus=cpus, bus_id=address))
    return tuple(sorted(found.values(), key=lambda nic: (len(nic.name), nic.name)))
