"""The answers that sites document, and those derived or computed from captures of real nodes."""

from __future__ import annotations

import re

from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.cpuset import format_cpu_list, parse_cpu_list
from tests.binding.captures import Case, cases, node_of, request_of
from tests.in_one_test import in_one_test

# srun's default distribution (cyclic over the NUMA nodes, one core per rank, GPUs that its input does not
# name): a record of another program, not an order that hpclaunch offers.
_NOT_OUR_ORDERS = {"numa-cyclic"}

BINDINGS = [
    case
    for case in cases("documented", "derived-from-capture", "error-handling")
    if case["expect"].get("cpus_per_task") or case["expect"].get("map_cpu")
]
OURS = [case for case in BINDINGS if case.get("order") not in _NOT_OUR_ORDERS]
LOCALITIES = cases("computed")


@in_one_test("case", OURS)
def test_binding_is_the_documented_one(case: Case) -> None:
    expect = case["expect"]
    binding = bind(node_of(case), request_of(case))
    got = {
        "cpus_per_task": [format_cpu_list(rank.cpus) for rank in binding.ranks],
        "gpu_per_task": [list(rank.gpus) for rank in binding.ranks],
        "map_cpu": f"map_cpu:{dialects.map_cpu(binding)}",
        "mask_cpu": f"mask_cpu:{dialects.mask_cpu(binding)}",
        "pals_list": dialects.pals(binding),
    }
    if expect.get("mask_gpu"):
        got["mask_gpu"] = dialects.gpu_bind(binding).replace("--gpu-bind=mask:", "mask_gpu:")
    wanted = {key: value for key, value in expect.items() if key != "note" and value is not None}
    assert {key: got[key] for key in wanted} == wanted


@in_one_test("case", LOCALITIES)
def test_ranks_stay_on_the_cpus_that_hwloc_calls_local(case: Case) -> None:
    topology = node_of(case)
    numa = {node.id: node.cpus for node in topology.numa_nodes}
    local = {
        int(re.sub(r"\D", "", name)): text for name, text in case["expect"]["local_cpus_per_gpu"].items()
    }
    for index, text in local.items():
        gpu = topology.gpus[index]
        near = gpu.cpus if gpu.cpus is not None else numa[gpu.numa if gpu.numa is not None else -1]
        assert format_cpu_list(near) == text
    binding = bind(topology, request_of(case))
    for rank in binding.ranks:
        assert rank.gpus
        assert set(rank.cpus) <= frozenset().union(*(parse_cpu_list(local[gpu]) for gpu in rank.gpus))


def test_the_cases_were_found() -> None:
    assert len(OURS) >= 12
    assert len(LOCALITIES) >= 4
