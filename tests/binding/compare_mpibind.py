"""Count where the bindings of hpclaunch and mpibind (Leon 2017) agree, for each recorded answer.

Run it with the captures: HPCLAUNCH_TEST_CAPTURES=FOLDER python -m tests.binding.compare_mpibind [-v]
"""

from __future__ import annotations

import sys
from collections import Counter

import msgspec

from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import CpuSet, parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import NodeTopology
from tests.binding.captures import Case, cases, node_of

PerGpu = dict[str, CpuSet]


def granted(topology: NodeTopology, case: Case) -> NodeTopology:
    """Restrict the node as the case does: to CPUs, or to NUMA nodes."""
    what, text = case["params"].get("restrict_type"), case["params"].get("restrict")
    if not what:
        return topology
    named = parse_cpu_list(text)
    if what == "mem":
        named = frozenset(cpu for node in topology.numa_nodes if node.id in named for cpu in node.cpus)
    return msgspec.structs.replace(topology, allowed=named)


def theirs(case: Case) -> PerGpu:
    found: PerGpu = {}
    tasks = zip(case["expect"]["cpus_per_task"], case["expect"]["gpu_pci_per_task"], strict=True)
    for cpus, buses in tasks:
        for bus in buses:
            found[bus] = found.get(bus, frozenset()) | parse_cpu_list(cpus)
    return found


def ours(topology: NodeTopology, binding: NodeBinding) -> PerGpu:
    buses = {gpu.index: gpu.bus_id or "" for gpu in topology.gpus}
    found: PerGpu = {}
    for rank in binding.ranks:
        for gpu in rank.gpus:
            found[buses[gpu]] = found.get(buses[gpu], frozenset()) | frozenset(rank.cpus)
    return found


def first_threads(topology: NodeTopology, cpus: CpuSet) -> CpuSet:
    """Reduce CPUs to their cores, each named by its first CPU: what is left when SMT is disregarded."""
    return frozenset(core.cpus[0] for core in topology.cores if cpus.intersection(core.cpus))


def numa(topology: NodeTopology, cpus: CpuSet) -> set[int | None]:
    return {core.numa for core in topology.cores if cpus.intersection(core.cpus)}


def verdict(case: Case) -> str:
    """Name the difference between the two answers to one case."""
    topology = granted(node_of(case), case)
    smt = max(case["params"]["smt"], 1)
    most = max(len(core.cpus) for core in topology.cores)
    request = BindingRequest(
        tasks_per_node=case["tasks_per_node"], threads_per_core=min(smt, most), order="numa"
    )
    try:
        binding = bind(topology, request)
    except BadInputError:
        return "hpclaunch refuses: more ranks than cores"
    nodes = {core.numa for core in topology.cores if topology.usable.intersection(core.cpus)}
    few = case["params"]["greedy"] == 1 and case["tasks_per_node"] < len(nodes)
    if not topology.gpus:
        return _without_gpus(topology, case, binding, few)
    mine, other = ours(topology, binding), theirs(case)
    if mine == other:
        return "same CPUs for every GPU"
    if {bus: first_threads(topology, cpus) for bus, cpus in mine.items()} == {
        bus: first_threads(topology, cpus) for bus, cpus in other.items()
    }:
        return "same cores for every GPU, other hardware threads"
    if set(mine) != set(other):
        return "the ranks use other GPUs"
    if {bus: numa(topology, cpus) for bus, cpus in mine.items()} == {
        bus: numa(topology, cpus) for bus, cpus in other.items()
    }:
        return f"other cores of the same NUMA nodes for every GPU: {_how_split(topology, case, binding)}"
    if few:
        return "fewer ranks than NUMA nodes: mpibind distributes NUMA nodes, hpclaunch GPUs"
    return "other NUMA nodes"


def _how_split(topology: NodeTopology, case: Case, binding: NodeBinding) -> str:
    """Name the difference between two answers on the same NUMA nodes."""
    buses = {gpu.index: gpu.bus_id or "" for gpu in topology.gpus}
    my_gpus = sorted(sorted(buses[gpu] for gpu in rank.gpus) for rank in binding.ranks)
    if my_gpus != sorted(sorted(gpus) for gpus in case["expect"]["gpu_pci_per_task"]):
        return "the ranks have other GPUs"
    my_cores = sorted(sorted(first_threads(topology, frozenset(rank.cpus))) for rank in binding.ranks)
    other = (first_threads(topology, parse_cpu_list(cpus)) for cpus in case["expect"]["cpus_per_task"])
    if my_cores != sorted(map(sorted, other)):
        return "the cores are cut in other places"
    return "the GPUs are in another order"


def _without_gpus(topology: NodeTopology, case: Case, binding: NodeBinding, few: bool) -> str:
    mine = [frozenset(rank.cpus) for rank in binding.ranks]
    other = [parse_cpu_list(cpus) for cpus in case["expect"]["cpus_per_task"]]
    if mine == other:
        return "no GPU: same CPUs for every rank"
    if [first_threads(topology, cpus) for cpus in mine] == [first_threads(topology, cpus) for cpus in other]:
        return "no GPU: same cores for every rank, other hardware threads"
    return "no GPU: fewer ranks than NUMA nodes, other cores" if few else "no GPU: other cores"


def main() -> None:
    """Print the counts, with -v each case that differs."""
    counts: Counter[str] = Counter()
    for case in cases("mpibind"):
        found = verdict(case)
        counts[found] += 1
        if "-v" in sys.argv and not found.endswith(("same CPUs for every GPU", "same CPUs for every rank")):
            print(f"{case['name']}: {found}")
    for found, count in counts.most_common():
        print(f"{count:4d}  {found}")
    print(f"{sum(counts.values()):4d}  cases")


if __name__ == "__main__":
    main()
