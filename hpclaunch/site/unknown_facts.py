"""What a profile does not say about its machine: a missing fact is unknown, it does not mean "none". Pure."""

from __future__ import annotations

from hpclaunch.site.schema import SiteProfile


def unknown_facts(profile: SiteProfile) -> tuple[str, ...]:
    """Return the keys of facts that every machine has and that this profile leaves out."""
    node, fabric, links = profile.node, profile.fabric, profile.links
    gpus = len(node.gpus) if node else 0
    missing = {
        "billing": profile.billing is None,
        "queues": not profile.queues,
        "node": node is None,
        "node.numa": node is not None and not node.numa,
        "node.memory_gib": node is not None and node.memory_gib is None,
        "node.count": node is not None and node.count is None,
        "node.nics": node is not None and not node.nics,
        "links.nic": links.nic is None,
        "links.gpu_gpu": links.gpu_gpu is None and gpus > 1,
        "links.cpu_gpu": links.cpu_gpu is None and gpus > 0,
        "mpi.implementation": profile.mpi.implementation is None,
        "fabric.kind": fabric.kind == "unknown",
        "fabric.network": fabric.network is None,
        "fabric.allreduce": not fabric.allreduce,
        "software.container": profile.software.container is None,
        "storage": not profile.storage,
        "internet_on_compute": profile.internet_on_compute is None,
        "retired.since": profile.retired is not None and profile.retired.since is None,
        "retired.successor": profile.retired is not None and profile.retired.successor is None,
    }
    return tuple(key for key, is_missing in missing.items() if is_missing)
