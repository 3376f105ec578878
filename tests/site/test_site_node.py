"""The profile's node as a topology."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import Node, NumaDomain, SiteGpu
from tests.profiles import shipped
from tests.site.conftest import Write

BASE = shipped("generic-slurm")


def test_the_valid_profile(write: Write) -> None:
    write("here")
    topology = site_topology(load_site("here"))
    assert topology is not None
    assert topology.cores[5].cpus == (5, 13)
    assert (topology.cores[5].numa, topology.cores[5].l3, topology.cores[5].socket) == (1, 2, 0)
    assert topology.reserved == {0, 4, 8, 12}
    assert topology.gpus[0].cpus == frozenset({4, 5, 12, 13})
    assert topology.numa_nodes[1].cpus == {4, 5, 6, 7, 12, 13, 14, 15}
    assert (topology.nics[0].name, topology.nics[0].numa) == ("hsn0", 1)
    assert topology.allowed is None


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 12), st.integers(1, 8), st.data())
def test_cpus_are_numbered_thread_after_thread(
    sockets: int, domains: int, size: int, threads: int, data: st.DataObject
) -> None:
    cores = sockets * domains * size
    blocks = [range(start, start + size) for start in range(0, cores, size)]
    reserved = data.draw(st.sets(st.integers(0, cores - 1)))
    node = Node(
        cpu_model="x",
        sockets=sockets,
        cores=cores,
        threads_per_core=threads,
        numa=tuple(NumaDomain(id=2 * i, cores=format_cpu_list(block)) for i, block in enumerate(blocks)),
        reserved_cores=format_cpu_list(reserved),
        gpus=(SiteGpu(numa=0),),
    )
    topology = site_topology(msgspec.structs.replace(BASE, node=node))
    assert topology is not None
    assert topology.cpus == set(range(cores * threads))
    assert topology.reserved == {cpu for cpu in topology.cpus if cpu % cores in reserved}
    assert frozenset().union(*(domain.cpus for domain in topology.numa_nodes)) == topology.cpus
    assert sum(len(domain.cpus) for domain in topology.numa_nodes) == cores * threads
    assert all(core.numa == 2 * (core.cpus[0] // size) for core in topology.cores)
    assert [core.socket for core in topology.cores] == sorted(core.socket or 0 for core in topology.cores)
    assert topology.gpus[0].cpus is None
