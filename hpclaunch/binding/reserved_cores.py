"""Reserved cores as the user names them: a CPU list or a rule."""

from collections import Counter
from itertools import chain

import msgspec

from hpclaunch.amounts import grouped
from hpclaunch.cpuset import format_cpu_list, parse_cpu_list
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.topology.node_topology import Core, NodeTopology

FIRST_CORE_PER_L3 = "first-core-per-l3"


def reserve(topology: NodeTopology, what: str) -> NodeTopology:
    """Return the node with more cores reserved: a CPU list, or ``first-core-per-l3``.

    All threads of a named core are reserved. Where L3 groups are unknown, ``first-core-per-l3`` takes each
    GPU's equal block of its NUMA node for one group, as on the MI250X nodes where this rule comes from
    (LUMI-G, Frontier), and adds a note.
    Raises BadInputError for a CPU that the node does not have, and where the L3 groups are unknown.
    """
    if what == FIRST_CORE_PER_L3:
        topology = _with_l3(topology)
        first: dict[int | None, Core] = {}
        for core in topology.cores:
            first.setdefault(core.l3, core)
        chosen = frozenset(cpu for core in first.values() for cpu in core.cpus)
    else:
        try:
            named = parse_cpu_list(what)
        except BadInputError as error:
            raise BadInputError(f"--reserve {what}: {error.message}", error.hint) from None
        if missing := named - topology.cpus:
            values = {"missing": format_cpu_list(missing), "has": format_cpu_list(topology.cpus)}
            raise BadInputError.case("reserved cores: not there", what=what, word=FIRST_CORE_PER_L3, **values)
        whole = (core.cpus for core in topology.cores if named.intersection(core.cpus))
        chosen = frozenset(chain.from_iterable(whole))
    return msgspec.structs.replace(topology, reserved=topology.reserved | chosen)


def _with_l3(topology: NodeTopology) -> NodeTopology:
    """Return the node with its L3 groups; where they are unknown, each GPU's equal block counts as one."""
    if topology.cores and all(core.l3 is not None for core in topology.cores):
        return topology
    cores = list(topology.cores)
    gpu_count = Counter(gpu.numa for gpu in topology.gpus)
    groups = 0
    for numa, places in _places_by_numa(cores).items():
        gpus = gpu_count[numa]
        if numa is None or not gpus or len(places) % gpus:
            raise _unknown_groups(numa, len(places), gpus)
        size = len(places) // gpus
        for at, place in enumerate(places):
            cores[place] = msgspec.structs.replace(cores[place], l3=groups + at // size)
        groups += gpus
    note = note_text("binding: assumed L3 groups", groups=groups)
    return msgspec.structs.replace(topology, cores=tuple(cores), notes=(*topology.notes, note))


def _places_by_numa(cores: list[Core]) -> dict[int | None, list[int]]:
    """Return the indices of each NUMA node's cores."""
    return grouped((core.numa, place) for place, core in enumerate(cores))


def _unknown_groups(numa: int | None, cores: int, gpus: int) -> BadInputError:
    where = "" if numa is None else f", and NUMA node {numa} has {cores} cores for {gpus} GPUs"
    return BadInputError.case("reserved cores: no L3 groups", word=FIRST_CORE_PER_L3, where=where)
