"""Reader of hwloc's XML (``lstopo --of xml``), versions 1, 2 and 3.

Version 1 has NUMA nodes as containers and caches as ``Cache`` with a depth; versions 2 and 3 attach NUMA
nodes next to the cores (so memory of several kinds shows the same CPUs) and name caches ``L3Cache``.
Source: hwloc's documentation, "Upgrading to the hwloc 2.0 API", and its ``hwloc2.dtd``.
"""

import re
import xml.parsers.expat
from collections.abc import Iterator

from hpclaunch.amounts import grouped
from hpclaunch.cpuset import MAX_CPU, CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.topology.node_topology import Core, GpuFact, Nic, NumaNode, Partial
from hpclaunch.topology.pci_devices import VENDORS, gpu_vendor, note_of_others
from hpclaunch.topology.tool_text import MAX_NUMA, bus_id, clean_lines, shorten, whole_number

KIND = "hwloc"

_HINT = "run lstopo --of xml FILE again and use the whole file"
_MAX_OBJECTS = 500_000
_MAX_DEPTH = 200
_OPENCL = "opencl0d"
# Drivers that number GPUs as the runtime does, best first. OpenCL numbers other devices as well.
_GPU_NAMES = ("rsmi", "nvml", "ze", "cuda", _OPENCL)
_VENDOR_OF_NAME = {"rsmi": "AMD", "nvml": "NVIDIA", "ze": "Intel", "cuda": "NVIDIA"}
_NIC_NAMES = ("cxi", "mlx", "hfi", "hsn", "hsi", "ib")


class _Object:
    """One object of the tree with its attributes and ``info`` pairs."""

    __slots__ = ("attributes", "infos", "line", "parent")

    def __init__(self, attributes: dict[str, str], parent: "_Object | None", line: int) -> None:
        self.attributes = attributes
        self.infos: dict[str, str] = {}
        self.parent = parent
        self.line = line

    @property
    def type(self) -> str:
        return self.attributes.get("type", "")

    @property
    def name(self) -> str:
        return self.attributes.get("name", "")

    def ancestors(self) -> Iterator["_Object"]:
        obj = self.parent
        while obj is not None:
            yield obj
            obj = obj.parent

    def above(self, *types: str) -> "_Object | None":
        return next((obj for obj in self.ancestors() if obj.type in types), None)


def read(text: str, origin: str) -> Partial:
    """Read cores, L3 groups, NUMA nodes, GPUs and NICs with their locality.

    Raises BadInputError for anything but a complete hwloc XML document, and for documents that declare
    entities or are too large.
    """
    objects = _parse(_document(text, origin), origin)
    root = next((obj for obj in objects if obj.type in ("Machine", "System")), None)
    if root is None or root.parent is not None:
        raise BadInputError(f"{origin}: no object of type Machine at the top", _HINT)
    online = _cpuset(root, "cpuset", origin)
    if "online_cpuset" in root.attributes:
        online &= _cpuset(root, "online_cpuset", origin)
    if not online:
        raise BadInputError(f"{origin}, line {root.line}: Machine without CPUs", _HINT)
    nodes = _numa_nodes(objects, online, origin)
    threads = _threads_by_core(objects, online, origin)
    vendor, gpus, in_order, notes = _gpus(objects, online, nodes, origin)
    return Partial(
        kind=KIND,
        origin=origin,
        cores=_cores(threads, origin),
        online=online,
        numa_nodes=nodes or None,
        gpus=gpus,
        gpu_vendor=vendor or None,
        gpu_order=in_order,
        nics=_nics(objects, online, nodes, origin),
        hwloc_order=tuple(min(cpus) for cpus in threads.values()),
        allowed=_allowed(root, online, origin),
        notes=(*_hidden(root, online, origin), *notes),
    )


def _document(text: str, origin: str) -> str:
    """Cut the XML document out of pasted output."""
    joined = "\n".join(line.text for line in clean_lines(text, origin))
    starts = [place for mark in ("<?xml", "<!DOCTYPE", "<topology") if (place := joined.find(mark)) >= 0]
    if not starts:
        raise BadInputError(f"{origin}: no XML document of hwloc", _HINT)
    document = joined[min(starts) :]
    end = document.rfind("</topology>")
    if end < 0:
        raise BadInputError(f"{origin}: the document ends without </topology>: it is cut off", _HINT)
    return document[: end + len("</topology>")]


def _parse(document: str, origin: str) -> list[_Object]:
    """Build the tree of objects without any expansion of entities."""
    objects: list[_Object] = []
    stack: list[_Object | None] = []
    parser = xml.parsers.expat.ParserCreate("UTF-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        parent = stack[-1] if stack else None
        if len(stack) > _MAX_DEPTH or len(objects) > _MAX_OBJECTS:
            raise BadInputError(f"{origin}: more than {_MAX_OBJECTS} objects or {_MAX_DEPTH} levels", _HINT)
        if tag == "object":
            parent = _Object(attributes, parent, parser.CurrentLineNumber)
            objects.append(parent)
        elif tag == "info" and parent is not None:
            parent.infos[attributes.get("name", "")] = attributes.get("value", "")
        stack.append(parent)

    def end(tag: str) -> None:
        stack.pop()

    def refuse(*declared: object) -> None:
        raise BadInputError(f"{origin}, line {parser.CurrentLineNumber}: an XML entity is declared", _HINT)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(document, True)
    except xml.parsers.expat.ExpatError as error:
        raise BadInputError(f"{origin}, line {error.lineno}: damaged XML: {error}", _HINT) from None
    return objects


def _cpuset(obj: _Object, key: str, origin: str) -> CpuSet:
    """Read ``0x0000ffff,,0x0000ffff``: groups of 32 bits, the highest first, empty for zero.

    ``0xf...f`` means all CPUs and is refused, as no object of a real node has an infinite set.
    """
    text = obj.attributes.get(key, "0x0")
    groups = text.split(",")
    digits = [group.removeprefix("0x") for group in groups]
    right = all(re.fullmatch(r"[0-9a-fA-F]{0,8}", group) for group in digits)
    if not right or len(groups) > (MAX_CPU + 1) // 32:
        raise BadInputError.case("capture: hwloc", origin=origin, obj=obj, key=key, text=shorten(text))
    value = int("".join(group.rjust(8, "0") for group in digits) or "0", 16)
    bits = bin(value)[:1:-1]
    return frozenset(i for i, bit in enumerate(bits) if bit == "1")


def _index(obj: _Object, highest: int, origin: str) -> int:
    text = obj.attributes.get("os_index", "")
    index = whole_number(text)
    if index is None or index > highest:
        raise BadInputError(f"{origin}, line {obj.line}: {obj.type} with os_index {shorten(text)}", _HINT)
    return index


def _cores(threads: dict[_Object, list[int]], origin: str) -> tuple[Core, ...] | None:
    """Return the cores with their online threads; processing units outside a core stand alone."""
    cores: list[Core] = []
    l3_number: dict[_Object, int] = {}
    for core, cpus in threads.items():
        cache = next(filter(_is_l3, core.ancestors()), None)
        l3 = l3_number.setdefault(cache, len(l3_number)) if cache else None
        package = core.above("Package", "Socket")
        numbered = package and "os_index" in package.attributes
        socket = _index(package, MAX_CPU, origin) if package and numbered else None
        cores.append(Core(cpus=tuple(sorted(set(cpus))), l3=l3, socket=socket))
    listed = [cpu for core in cores for cpu in core.cpus]
    if len(listed) != len(set(listed)):
        raise BadInputError(f"{origin}: a CPU appears in two cores", _HINT)
    return tuple(sorted(cores, key=lambda core: core.cpus)) or None


def _threads_by_core(objects: list[_Object], online: CpuSet, origin: str) -> dict[_Object, list[int]]:
    """Return the online CPUs of each core, or of the processing unit itself where it is in no core."""
    threads: dict[_Object, list[int]] = {}
    for unit in objects:
        if unit.type == "PU":
            cpu = _index(unit, MAX_CPU, origin)
            core = unit.above("Core") or unit
            if cpu in online:
                threads.setdefault(core, []).append(cpu)
    return threads


def _is_l3(obj: _Object) -> bool:
    return obj.type == "L3Cache" or (obj.type == "Cache" and obj.attributes.get("depth") == "3")


def _numa_nodes(objects: list[_Object], online: CpuSet, origin: str) -> tuple[NumaNode, ...]:
    nodes: dict[int, NumaNode] = {}
    for obj in objects:
        if obj.type != "NUMANode":
            continue
        node = _index(obj, MAX_NUMA, origin)
        if node in nodes:
            raise BadInputError(f"{origin}, line {obj.line}: NUMA node {node} appears twice", _HINT)
        nodes[node] = NumaNode(
            id=node,
            cpus=_cpuset(obj, "cpuset", origin) & online,
            memory_bytes=whole_number(obj.attributes.get("local_memory", ""), 18),
        )
    return tuple(nodes[node] for node in sorted(nodes))


def _allowed(root: _Object, online: CpuSet, origin: str) -> CpuSet | None:
    return _cpuset(root, "allowed_cpuset", origin) & online if "allowed_cpuset" in root.attributes else None


def _hidden(root: _Object, online: CpuSet, origin: str) -> tuple[str, ...]:
    hidden = _cpuset(root, "complete_cpuset", origin) - online
    if not hidden:
        return ()
    cpus = format_cpu_list(hidden)
    return (f"hwloc ({origin}): CPUs {cpus} are hidden: offline, or not granted to the run of hwloc",)


def _locality(
    obj: _Object, online: CpuSet, nodes: tuple[NumaNode, ...], origin: str
) -> tuple[int | None, CpuSet | None]:
    """Return NUMA node and CPUs of the object that holds a device; None for the whole machine."""
    home = next((above for above in obj.ancestors() if "cpuset" in above.attributes), None)
    cpus = _cpuset(home, "cpuset", origin) & online if home else frozenset()
    if not cpus:
        return None, None
    holders = [node for node in nodes if cpus <= node.cpus]
    smallest = min(holders, key=lambda node: (len(node.cpus), node.id), default=None)
    if smallest is None:
        return None, cpus if cpus != online else None
    return smallest.id, cpus


def _gpus(
    objects: list[_Object], online: CpuSet, nodes: tuple[NumaNode, ...], origin: str
) -> tuple[str, tuple[GpuFact, ...], bool, tuple[str, ...]]:
    """Return a vendor and its GPUs, whether their order is the runtime's, and notes."""
    notes = []
    numbered, prefix = _gpus_of_best_driver(objects)
    in_order = prefix in _VENDOR_OF_NAME
    by_vendor = _pci_gpus(objects)
    vendor = _VENDOR_OF_NAME.get(prefix) or next(iter(by_vendor), "")
    if not in_order:
        numbered = dict(enumerate(list(numbered.values()) or by_vendor.get(vendor, [])))
        if len(numbered) > 1:
            notes.append("GPUs are numbered in PCI order, because no driver names them")
    if len(tiles := _tiles(objects, numbered)) > len(numbered):
        notes.append(note_text("GPUs: tiles", gpus=len(numbered), tiles=len(tiles)))
    named = [f"hwloc ({origin}): {note}" for note in notes]
    if note := note_of_others(f"hwloc ({origin})", by_vendor, vendor):
        named.append(note)
    gpus = [_gpu(index, obj, online, nodes, origin) for index, obj in tiles.items()]
    return vendor, tuple(gpus), in_order, tuple(named)


def _gpus_of_best_driver(objects: list[_Object]) -> tuple[dict[int, _Object], str]:
    """Return the GPUs of the best driver that numbers any, and how it names them."""
    for prefix in _GPU_NAMES:
        if numbered := _gpus_of_driver(objects, prefix):
            return numbered, prefix
    return {}, ""


def _tiles(objects: list[_Object], numbered: dict[int, _Object]) -> dict[int, _Object]:
    """Return Level Zero's sub-devices (``ze0.0``, ``ze0.1``) in place of the GPUs that have some.

    Source: hwloc's topology-levelzero.c at commit 06dbafd. Where the runtime shows tiles as devices, hwloc
    names the tiles ze0, ze1, ...
    """
    named = [obj for obj in objects if re.fullmatch(r"ze\d{1,4}\.\d{1,3}", obj.name)]
    parts = grouped((obj.parent, obj) for obj in named if obj.parent is not None)
    if not parts:
        return numbered
    return dict(enumerate(tile for gpu in numbered.values() for tile in parts.get(gpu, [gpu])))


def _gpus_of_driver(objects: list[_Object], prefix: str) -> dict[int, _Object]:
    """Return the devices named ``<prefix><n>`` by n, ascending; of OpenCL's only those on the PCI bus."""
    numbered: dict[int, _Object] = {}
    for obj in objects:
        match = re.fullmatch(prefix + r"(\d{1,4})", obj.name) if obj.type == "OSDev" else None
        if match and (prefix != _OPENCL or obj.above("PCIDev")):
            numbered.setdefault(int(match.group(1)), obj)
    return {index: numbered[index] for index in sorted(numbered)}


def _gpu(index: int, obj: _Object, online: CpuSet, nodes: tuple[NumaNode, ...], origin: str) -> GpuFact:
    pci = obj if obj.type == "PCIDev" else obj.above("PCIDev")
    numa, cpus = _locality(obj, online, nodes, origin)
    model = obj.infos.get("GPUModel") or (pci.infos.get("PCIDevice") if pci else None)
    return GpuFact(index=index, numa=numa, cpus=cpus, bus_id=_address(pci), model=model)


def _address(pci: _Object | None) -> str | None:
    return bus_id(pci.attributes.get("pci_busid", "")) if pci else None


def _pci_gpus(objects: list[_Object]) -> dict[str, list[_Object]]:
    """Return the display and accelerator devices in PCI order, by vendor, the one to prefer first."""
    found = sorted(
        ((*place, at) for at, device in enumerate(objects) if (place := _gpu_place(device))),
        key=lambda place: place[1:],
    )
    by_vendor = {vendor: [objects[at] for of, _, at in found if of == vendor] for vendor in VENDORS.values()}
    return {vendor: devices for vendor, devices in by_vendor.items() if devices}


def _gpu_place(device: _Object) -> tuple[str, str] | None:
    """Return vendor and PCI address of a GPU; None for other devices and for a processor's own display."""
    kind = re.match(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", device.attributes.get("pci_type", ""))
    address = bus_id(device.attributes.get("pci_busid", ""))
    if device.type != "PCIDev" or not kind or not address:
        return None
    vendor = gpu_vendor(*kind.groups())
    own_display = kind.group(1) == "0300" and address.startswith("0000:00:")
    return (vendor, address) if vendor and not own_display else None


def _nics(
    objects: list[_Object], online: CpuSet, nodes: tuple[NumaNode, ...], origin: str
) -> tuple[Nic, ...]:
    """Return the interfaces of the high-speed network, one per PCI device, by preferred name."""
    found: dict[str, Nic] = {}
    for prefix in _NIC_NAMES:
        for device in objects:
            if device.type == "OSDev" and re.fullmatch(prefix + r"\d[\w.]{0,20}", device.name):
                address = _address(device.above("PCIDev"))
                numa, cpus = _locality(device, online, nodes, origin)
                nic = Nic(name=device.name, numa=numa, cpus=cpus, bus_id=address)
                found.setdefault(address or device.name, nic)
    return tuple(sorted(found.values(), key=lambda nic: (len(nic.name), nic.name)))
