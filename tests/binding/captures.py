"""The recorded nodes and expected answers that cannot be shipped, read from HPCLAUNCH_TEST_CAPTURES."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.binding.reserved_cores import reserve
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.topology.sources import read_files

Case = dict[str, Any]

# Folder of a capture -> the source it is read as.
SOURCE_OF = {
    "lscpu": "lscpu",
    "lscpu-json": "lscpu",
    "lscpu-p": "lscpu",
    "rocm-smi": "rocm_smi",
    "rocm-smi-json": "rocm_smi",
    "amd-smi": "amd_smi",
    "nvidia-smi-topo": "nvidia_smi",
    "numactl-H": "numactl",
    "hwloc-xml": "hwloc",
}


def folder() -> Path:
    return Path(os.environ["HPCLAUNCH_TEST_CAPTURES"])


def cases(*kinds: str) -> list[Case]:
    everything: list[Case] = json.loads((folder() / "oracles.json").read_text())
    return [case for case in everything if case["kind"] in kinds]


@lru_cache(maxsize=64)
def _read(inputs: tuple[str, ...]) -> NodeTopology:
    files = {SOURCE_OF[name.split("/")[0]]: folder() / "nodes" / name for name in inputs}
    return read_files(files)


def node_of(case: Case) -> NodeTopology:
    """Read a case's node with its reserved cores."""
    topology = _read(tuple(case["inputs"]))
    if reserved := case.get("reserved_cores"):
        topology = reserve(topology, ",".join(map(str, reserved)))
    return topology


def request_of(case: Case) -> BindingRequest:
    """Turn the fields of a case into a request; ``threads_per_task`` counts cores of one thread."""
    return BindingRequest(
        tasks_per_node=case["tasks_per_node"],
        cpus_per_task=case.get("threads_per_task"),
        threads_per_core=case.get("smt") or 1,
        order=case.get("order", "gpu"),
    )
