"""A profile for the machine at hand: the live node as YAML, the rest from a generic profile."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import yaml

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.registry import schedulers
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.profile_node import threads_of
from hpclaunch.site.schema import Node, NumaDomain
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology

_GIB = 1 << 30
_VISIBLE = {"amd": "ROCR_VISIBLE_DEVICES", "nvidia": "CUDA_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}


def base_profiles() -> dict[str, Scheduler]:
    """Return the profiles of which nothing but the scheduler is known, with that scheduler."""
    return {
        scheduler.kind if scheduler.starts_at_once else f"generic-{scheduler.kind}": scheduler
        for scheduler in schedulers()
    }


def profile_text(
    name: str, base: str, topology: NodeTopology, cpu_model: str, host: str, day: dt.date
) -> str:
    """Return a profile that extends ``base`` with the node that was measured on ``host``.

    What no source told is left out, never guessed. Raises BadInputError for a node that the format cannot
    describe: offline CPUs, or a numbering that is neither spread nor adjacent.
    """
    node = _node(topology, cpu_model)
    scheduler = base_profiles()[base]
    binding: dict[str, Any] = {
        "cpu": scheduler.measured_binding,
        "needs_whole_node": scheduler.binding_needs_whole_node,
    }
    if vendor := node.get("gpu_vendor"):
        binding["gpu_visible_var"] = _VISIBLE[vendor]
    document = {
        "schema": 1,
        "name": name,
        "description": f"{name}, node measured on {host}",
        "extends": base,
        "status": "production",
        "node": node,
        "binding": binding,
    }
    notes = "".join(f"# {note}\n" for note in topology.notes)
    head = f"# Measured by hpclaunch sites new on {host}, {day}. Add account, queues, modules and fabric.\n"
    return head + notes + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def _node(topology: NodeTopology, cpu_model: str) -> dict[str, Any]:
    cores = topology.cores
    if not cores or not topology.numa_nodes:
        raise BadInputError("this node does not tell its cores and NUMA nodes", "write the profile by hand")
    number = {cpu: index for index, core in enumerate(cores) for cpu in core.cpus}
    node: dict[str, Any] = {
        "cpu_model": cpu_model,
        "sockets": len({core.socket for core in cores}),
        "cores": len(cores),
        "threads_per_core": len(cores[0].cpus),
    }
    node["numbering"] = _numbering(cores)
    node["numa"] = [
        {"id": domain.id, "cores": _cores(number, domain.cpus), **_memory(domain.memory_bytes)}
        for domain in topology.numa_nodes
    ]
    groups = sorted({core.l3 for core in cores if core.l3 is not None})
    if groups and all(core.l3 is not None for core in cores):
        node["l3_groups"] = [
            format_cpu_list(index for index, core in enumerate(cores) if core.l3 == group) for group in groups
        ]
    if topology.reserved:
        node["reserved_cores"] = _cores(number, topology.reserved)
    memory = sum(domain.memory_bytes or 0 for domain in topology.numa_nodes if domain.cpus)
    if memory >= _GIB:
        node["memory_gib"] = memory // _GIB
    return {**node, **_gpus(topology.gpus, number), **_nics(topology)}


def _numbering(cores: tuple[Core, ...]) -> str:
    """Return which of the two numberings fits all cores."""
    for numbering in ("spread", "adjacent"):
        guess = Node(
            cpu_model="",
            cores=len(cores),
            threads_per_core=len(cores[0].cpus),
            numbering=numbering,
            numa=(NumaDomain(id=0),),
        )
        if all(core.cpus == threads_of(guess, index) for index, core in enumerate(cores)):
            return numbering
    raise BadInputError(
        "the CPUs here are numbered neither spread nor adjacent (offline CPUs, or cores of two kinds)",
        "measure on a node whose CPUs are all online, or write the profile by hand",
    )


def _cores(number: dict[int, int], cpus: CpuSet) -> str:
    return format_cpu_list(number[cpu] for cpu in cpus if cpu in number)


def _memory(memory_bytes: int | None) -> dict[str, int]:
    return {"memory_gib": memory_bytes // _GIB} if memory_bytes and memory_bytes >= _GIB else {}


def _gpus(gpus: Iterable[Gpu], number: dict[int, int]) -> dict[str, Any]:
    """Return the GPUs whose NUMA node is known; if that of one is not, none: a profile must not guess."""
    gpus = tuple(gpus)
    if not gpus or any(gpu.numa is None for gpu in gpus):
        return {}
    rows = []
    for gpu in gpus:
        row: dict[str, Any] = {"numa": gpu.numa}
        if gpu.cpus:
            row["cores"] = _cores(number, gpu.cpus)
        if gpu.bus_id:
            row["bus_id"] = gpu.bus_id
        rows.append(row)
    model = gpus[0].model or ""
    vendor = next((vendor for vendor in _VISIBLE if vendor in model.lower()), None)
    return {
        "gpus": rows,
        **({"gpu_vendor": vendor} if vendor else {}),
        **({"gpu_model": model} if model else {}),
    }


def _nics(topology: NodeTopology) -> dict[str, Any]:
    rows = [{"name": nic.name, **({} if nic.numa is None else {"numa": nic.numa})} for nic in topology.nics]
    return {"nics": rows} if rows else {}


def cpu_model(cpuinfo: str) -> str:
    """Return the processor's name from /proc/cpuinfo; "unknown" where the kernel gives none (many Arm)."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu") and value.strip():
            return value.strip()
    return "unknown"
