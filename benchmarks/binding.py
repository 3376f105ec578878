"""Time of planning: the binding of large nodes, and a whole plan for 1 to 10,000 nodes.

Inside one process, medians of many runs; reading the node and starting Python are not in it.

    python benchmarks/binding.py [RUNS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import msgspec

from hpclaunch.binding.compute import bind
from hpclaunch.binding.dialects import mask_cpu
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.plan.layout import JobPlace
from hpclaunch.plan.planner import make_plan
from hpclaunch.plan.request import Command, JobRequest
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology

CASES = (
    # cores, threads per core, NUMA nodes, L3 groups, GPUs, ranks
    (64, 2, 4, 8, 8, 8),
    (288, 1, 4, 4, 4, 4),
    (512, 2, 16, 64, 16, 16),
    (512, 2, 16, 64, 16, 512),
    (1024, 1, 16, 128, 0, 1024),
    (1024, 8, 32, 128, 64, 256),
)
NODES = (1, 10, 100, 1_000, 10_000)


def node(cores: int, threads: int, numa: int, l3: int, gpus: int) -> NodeTopology:
    """Build an even node of two sockets, its GPUs in the reverse order of its NUMA nodes."""
    return NodeTopology(
        cores=tuple(
            Core(
                cpus=tuple(c + t * cores for t in range(threads)),
                numa=c * numa // cores,
                l3=c * l3 // cores,
                socket=c * 2 // cores,
            )
            for c in range(cores)
        ),
        gpus=tuple(Gpu(index=g, numa=numa - 1 - g * numa // gpus) for g in range(gpus)),
    )


def median_ms(runs: int, action: Callable[[], object]) -> float:
    """Return the median wall time of an action, once unmeasured before."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def unlimited(profile: SiteProfile) -> SiteProfile:
    """Return the profile with room for any number of nodes in its queues."""
    queues = {name: msgspec.structs.replace(queue, max_nodes=None) for name, queue in profile.queues.items()}
    return msgspec.structs.replace(profile, queues=queues)


def main(runs: int) -> None:
    """Print both tables."""
    print("binding of one node, with its masks:")
    for cores, threads, numa, l3, gpus, tasks in CASES:
        topology = node(cores, threads, numa, l3, gpus)
        request = BindingRequest(tasks_per_node=tasks, threads_per_core=threads)
        took = median_ms(runs, lambda t=topology, r=request: mask_cpu(bind(t, r)))  # type: ignore[misc]
        print(f"  {cores * threads:5d} CPUs, {gpus:2d} GPUs, {tasks:4d} ranks: {took:8.2f} ms")
    print("whole plan of a job on LUMI-G:")
    profile = unlimited(load_site("lumi-g"))
    site_node = site_topology(profile)
    first = 0.0
    for nodes in NODES:
        job = JobRequest(
            site="lumi-g",
            command=Command(argv=("true",)),
            nodes=nodes,
            tasks_per_node=8,
            account="project_465000001",
        )
        took = median_ms(runs, lambda j=job: make_plan(j, profile, site_node, JobPlace()))  # type: ignore[misc]
        first = first or took
        print(f"  {nodes:6d} nodes: {took:8.2f} ms, {took / first:.2f} of one node's")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
