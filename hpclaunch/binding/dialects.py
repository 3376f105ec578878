"""One binding in the syntax of each launcher. Pure: NodeBinding -> text, one entry per local rank.

Each list has one entry per rank: Slurm silently starts again at the front of a shorter one (man srun,
--cpu-bind), and ranks then share cores.
"""

import shlex
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hpclaunch.binding.node_binding import NodeBinding, RankBinding, rank_table
from hpclaunch.cpuset import format_cpu_list, to_mask
from hpclaunch.errors import BadInputError
from hpclaunch.json_document import document_text
from hpclaunch.topology.node_topology import Core, NodeTopology

if TYPE_CHECKING:
    from hpclaunch.binding.binding_documents import NodeDocument, TopologyDocument

T = TypeVar("T", bound=msgspec.Struct)


def map_cpu(binding: NodeBinding) -> str:
    """Return each rank's first CPU, ``49,57,17``: the value of srun's ``--cpu-bind=map_cpu:``."""
    return ",".join(str(min(rank.cpus)) for rank in binding.ranks)


def mask_cpu(binding: NodeBinding) -> str:
    """Return each rank's CPUs as a mask, ``0xfe,0xfe00``: the value of srun's ``--cpu-bind=mask_cpu:``."""
    return ",".join(to_mask(rank.cpus) for rank in binding.ranks)


def cpu_list(binding: NodeBinding) -> str:
    """Return each rank's CPUs as the kernel writes lists, ``1-7``, one line per rank."""
    return "\n".join(format_cpu_list(rank.cpus) for rank in binding.ranks)


def srun(binding: NodeBinding) -> str:
    """Return srun's whole option, ``--cpu-bind=mask_cpu:0xfe,0xfe00``."""
    return f"--cpu-bind=mask_cpu:{mask_cpu(binding)}"


def gpu_bind(binding: NodeBinding) -> str:
    """Return srun's GPU option: ``--gpu-bind=map:`` with one GPU per rank, ``mask:`` with several.

    Raises BadInputError where a rank has no GPU: the option cannot express it.
    """
    if bare := [rank.local_rank for rank in binding.ranks if not rank.gpus]:
        raise BadInputError.case("binding: ranks without a GPU", ranks=format_cpu_list(bare))
    if all(len(rank.gpus) == 1 for rank in binding.ranks):
        return "--gpu-bind=map:" + ",".join(str(rank.gpus[0]) for rank in binding.ranks)
    return "--gpu-bind=mask:" + ",".join(to_mask(rank.gpus) for rank in binding.ranks)


def pals(binding: NodeBinding) -> str:
    """Return PALS mpiexec's option, ``--cpu-bind list:1-7:9-15``: ranks separated by colons."""
    return "--cpu-bind list:" + ":".join(format_cpu_list(rank.cpus) for rank in binding.ranks)


def openmpi(topology: NodeTopology, binding: NodeBinding) -> str:
    """Return a rankfile for one node, for Open MPI 5 and 4.

    Both read the numbers as hwloc's logical cores of the CPUs that are granted, not as the kernel's CPU
    numbers (Open MPI 5 has no other way; 4 has the parameter rmaps_rank_file_physical). ``+n0`` is the first
    node of the allocation; outside of one, name it with ``--host NAME:RANKS``.
    """
    logical = _logical_cores(topology)
    lines = [
        "# Open MPI 5: mpiexec --map-by rankfile:file=THIS_FILE    Open MPI 4: mpiexec --rankfile THIS_FILE",
        "# The numbers are hwloc's logical cores, not CPU numbers.",
    ]
    for rank in binding.ranks:
        cores = format_cpu_list(logical[cpu] for cpu in rank.cpus)
        lines.append(f"rank {rank.local_rank}=+n0 slot={cores}")
    return "\n".join(lines)


def _logical_cores(topology: NodeTopology) -> dict[int, int]:
    """Number the granted cores as hwloc does: in its own order where it was read (its groups may reorder
    sockets), else by socket, NUMA node and L3 group, then by first CPU.
    """
    granted = topology.cpus if topology.allowed is None else topology.cpus & topology.allowed
    cores = [core for core in topology.cores if granted.intersection(core.cpus)]
    place_of = {cpu: place for place, cpu in enumerate(topology.hwloc_order)}
    if all(core.cpus[0] in place_of for core in cores):
        ordered = sorted(cores, key=lambda core: place_of[core.cpus[0]])
    else:
        ordered = _in_usual_order(topology, cores)
    return {cpu: index for index, core in enumerate(ordered) for cpu in core.cpus}


def _in_usual_order(topology: NodeTopology, cores: list[Core]) -> list[Core]:
    parts = ("socket", "numa", "l3")
    at: dict[tuple[str, int | None], int] = {}  # part -> its first CPU
    for core, part in product(topology.cores, parts):
        at.setdefault((part, getattr(core, part)), core.cpus[0])
    return sorted(cores, key=lambda core: (*(at[part, getattr(core, part)] for part in parts), core.cpus[0]))


def numactl(binding: NodeBinding) -> str:
    """Return one line per rank: the numactl that binds its CPUs and its memory."""
    return "\n".join(
        f"numactl --physcpubind={format_cpu_list(rank.cpus)}"
        + (f" --membind={format_cpu_list(rank.numa)}" if rank.numa else "")
        for rank in binding.ranks
    )


def taskset(binding: NodeBinding) -> str:
    """Return one line per rank: the taskset that binds its CPUs."""
    return "\n".join(f"taskset --cpu-list {format_cpu_list(rank.cpus)}" for rank in binding.ranks)


def env(topology: NodeTopology, binding: NodeBinding) -> str:
    """Return shell variables, each with one word per rank; ``-`` stands for nothing or unknown.

    HPCLAUNCH_GPUS has the words that CUDA_VISIBLE_DEVICES takes: numbers, or UUIDs of MIG instances.
    """
    ranks = binding.ranks
    values = {
        "HPCLAUNCH_TASKS_PER_NODE": str(len(ranks)),
        "HPCLAUNCH_CPU_LISTS": " ".join(format_cpu_list(rank.cpus) for rank in ranks),
        "HPCLAUNCH_CPU_MASKS": " ".join(to_mask(rank.cpus) for rank in ranks),
        "HPCLAUNCH_GPUS": " ".join(_gpu_names(topology, rank) or "-" for rank in ranks),
        "HPCLAUNCH_NUMA_NODES": " ".join(format_cpu_list(rank.numa) or "-" for rank in ranks),
        "HPCLAUNCH_NICS": " ".join(_word(rank.nic) for rank in ranks),
    }
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in values.items())


def _gpu_names(topology: NodeTopology, rank: RankBinding) -> str:
    names = {gpu.index: gpu.visible_name for gpu in topology.gpus}
    return ",".join(names.get(gpu, str(gpu)) for gpu in rank.gpus)


def _word(name: str | None) -> str:
    """Return a name as one word, ``-`` where nothing is left of it."""
    return "".join(char for char in name or "" if char.isprintable() and not char.isspace()) or "-"


def document(topology: NodeTopology, binding: NodeBinding) -> "TopologyDocument":
    """Return node and binding for JSON; CPU sets are lists such as ``1-7``, None is unknown."""
    from hpclaunch.binding.binding_documents import RankDocument, TopologyDocument  # jobs do without

    buses = {gpu.index: gpu.bus_id for gpu in topology.gpus}
    ranks = tuple(
        RankDocument(
            cpu_list=format_cpu_list(rank.cpus),
            cpu_mask=to_mask(rank.cpus),
            gpu_bus_ids=tuple(buses.get(gpu) for gpu in rank.gpus),
            **msgspec.structs.asdict(rank),
        )
        for rank in binding.ranks
    )
    bound = all(rank.cpus for rank in binding.ranks) and bool(ranks)
    return TopologyDocument(
        tasks_per_node=len(ranks),
        ranks=ranks,
        map_cpu=map_cpu(binding) if bound else None,
        mask_cpu=mask_cpu(binding) if bound else None,
        node=_node(topology),
        sources=topology.sources,
        notes=(*topology.notes, *binding.notes),
    )


def _node(topology: NodeTopology) -> "NodeDocument":
    from hpclaunch.binding.binding_documents import GpuDocument, NicDocument, NodeDocument, NumaNodeDocument

    return NodeDocument(
        cores=topology.cores,
        numa_nodes=tuple(_shown(node, NumaNodeDocument) for node in topology.numa_nodes),
        gpus=tuple(_shown(gpu, GpuDocument) for gpu in topology.gpus),
        nics=tuple(_shown(nic, NicDocument) for nic in topology.nics),
        reserved=format_cpu_list(topology.reserved),
        allowed=None if topology.allowed is None else format_cpu_list(topology.allowed),
    )


def _shown(source: msgspec.Struct, document: type[T]) -> T:
    """Return a document of a part of a node, whose fields have the same names; CPU sets are lists."""
    values = ((name, getattr(source, name)) for name in document.__struct_fields__)
    return document(**{n: format_cpu_list(v) if isinstance(v, frozenset) else v for n, v in values})


def table(binding: NodeBinding, width: int | None = None) -> str:
    """Return a table for people, one line per rank; ``-`` stands for nothing or unknown."""
    return rank_table(binding.ranks, "NIC", [rank.nic or "-" for rank in binding.ranks], width)


FORMATS: dict[str, Callable[[NodeTopology, NodeBinding], str]] = {
    "table": lambda _, binding: table(binding),
    "json": lambda topology, binding: document_text(document(topology, binding), indent=2),
    "map_cpu": lambda _, binding: map_cpu(binding),
    "mask_cpu": lambda _, binding: mask_cpu(binding),
    "cpu_list": lambda _, binding: cpu_list(binding),
    "srun": lambda _, binding: srun(binding),
    "gpu_bind": lambda _, binding: gpu_bind(binding),
    "pals": lambda _, binding: pals(binding),
    "openmpi": openmpi,
    "numactl": lambda _, binding: numactl(binding),
    "taskset": lambda _, binding: taskset(binding),
    "env": env,
}
"""Name of a format -> the function that writes it."""
