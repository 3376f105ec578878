"""Every format of an invented machine reads as that machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.topology import amd_smi, hwloc, lscpu, numactl, nvidia_smi, rocm_smi, sysfs
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import Core, NumaNode
from tests.how_much import examples
from tests.in_one_test import in_one_test
from tests.topology import machines
from tests.topology.machines import Machine

few = settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def plain_nodes(nodes: tuple[NumaNode, ...] | None) -> tuple[NumaNode, ...]:
    return tuple(msgspec.structs.replace(node, memory_bytes=None) for node in nodes or ())


def without_socket(cores: tuple[Core, ...]) -> tuple[Core, ...]:
    return tuple(msgspec.structs.replace(core, socket=None) for core in cores)


@few
@given(machines.any_machine, st.booleans())
def test_lscpu_table(machine: Machine, joined: bool) -> None:
    partial = lscpu.read(machines.lscpu_table(machine, joined_caches=joined), "x")
    assert without_socket(merge([partial]).cores) == machine.cores()
    assert plain_nodes(partial.numa_nodes) == tuple(node for node in machine.nodes() if node.cpus)


@few
@given(machines.any_machine, st.sampled_from(["flat", "sections", "json", "nested"]))
def test_lscpu_text_and_json(machine: Machine, form: str) -> None:
    text = {
        "flat": lambda: machines.lscpu_text(machine),
        "sections": lambda: machines.lscpu_text(machine, sections=True),
        "json": lambda: machines.lscpu_json(machine),
        "nested": lambda: machines.lscpu_json(machine, nested=True),
    }[form]()
    partial = lscpu.read(text, "x")
    assert plain_nodes(partial.numa_nodes) == machine.nodes()
    assert partial.threads_per_core == machine.threads
    assert partial.l3_instances == len(machine.numa_ids) * machine.l3_per_numa
    assert partial.cpu_count == machine.cpu_count


@few
@given(machines.any_machine)
def test_lscpu_text_never_derives_a_wrong_core(machine: Machine) -> None:
    topology = merge([lscpu.read(machines.lscpu_text(machine), "x")])
    threads = {frozenset(core.cpus) for core in topology.cores}
    truth = {frozenset(core.cpus) for core in machine.cores()}
    single = {frozenset((cpu,)) for core in machine.cores() for cpu in core.cpus}
    assert threads in (truth, single)
    assert threads == truth or any("counted as a core" in note for note in topology.notes)


@few
@given(machines.any_machine, st.sampled_from([None, 60, 76]))
def test_numactl(machine: Machine, width: int | None) -> None:
    partial = numactl.read(machines.numactl(machine, width=width), "x")
    assert plain_nodes(partial.numa_nodes) == machine.nodes()
    assert {node.memory_bytes for node in partial.numa_nodes or ()} == {1 << 30}


@few
@given(machines.any_machine, st.sampled_from([1, 2, 3]))
def test_hwloc(machine: Machine, version: int) -> None:
    topology = merge([hwloc.read(machines.hwloc_xml(machine, version), "x")])
    assert without_socket(topology.cores) == machine.cores()
    assert plain_nodes(topology.numa_nodes) == machine.nodes()
    for gpu in topology.gpus:
        assert (gpu.numa, gpu.bus_id) == (machine.gpu_numa[gpu.index], machine.bus(gpu.index))
        assert (gpu.cpus or machine.node_cpus(0)) == machine.gpu_cpus(gpu.index)
    assert len(topology.gpus) == len(machine.gpu_numa)


@pytest.mark.slow
@few
@given(machines.any_machine)
def test_sysfs(machine: Machine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        topology = merge([sysfs.read(machines.write_sysfs(machine, Path(folder), allowed="0-3"))])
    assert without_socket(topology.cores) == machine.cores()
    assert plain_nodes(topology.numa_nodes) == machine.nodes()
    assert topology.allowed == frozenset(range(min(4, machine.cpu_count)))
    assert [gpu.numa for gpu in topology.gpus] == list(machine.gpu_numa)
    assert [gpu.cpus or machine.node_cpus(0) for gpu in topology.gpus] == [
        machine.gpu_cpus(gpu) for gpu in range(len(machine.gpu_numa))
    ]


def two_or_more_gpus(machine: Machine) -> bool:
    return bool(machine.gpu_numa)


@few
@given(
    machines.any_machine.filter(two_or_more_gpus),
    st.sampled_from(["GPU[{}]\t\t", "GPU[{}]          ", "GPU {}   "]),
)
def test_rocm_smi(machine: Machine, form: str) -> None:
    partial = rocm_smi.read(machines.rocm_smi(machine, form), "x")
    assert [gpu.numa for gpu in partial.gpus or ()] == list(machine.gpu_numa)
    assert partial.notes == ()


@few
@given(machines.any_machine.filter(two_or_more_gpus))
def test_json_of_amd(machine: Machine) -> None:
    for partial in (
        rocm_smi.read(machines.rocm_smi_json(machine), "x"),
        amd_smi.read(machines.amd_smi_json(machine), "x"),
    ):
        assert [gpu.numa for gpu in partial.gpus or ()] == list(machine.gpu_numa)
        assert [gpu.bus_id for gpu in partial.gpus or ()] == [
            machine.bus(gpu) for gpu in range(len(machine.gpu_numa))
        ]


@few
@given(machines.any_machine.filter(two_or_more_gpus), st.booleans(), st.integers(0, 3), st.booleans())
def test_nvidia_smi(machine: Machine, tabs: bool, columns: int, colour: bool) -> None:
    text = machines.nvidia_smi(machine, tabs=tabs, columns=columns, colour=colour)
    partial = nvidia_smi.read(text, "x")
    numa = list(machine.gpu_numa)
    assert [gpu.numa for gpu in partial.gpus or ()] == (numa if columns > 1 else [None] * len(numa))
    cpus = [machine.node_cpus(node) for node in numa]
    assert [gpu.cpus for gpu in partial.gpus or ()] == (cpus if columns else [None] * len(numa))


@pytest.mark.slow
@pytest.mark.parametrize(("threads", "cores"), [(1, 36), (2, 18), (4, 9), (8, 5)])
def test_a_node_of_more_than_1024_cpus(threads: int, cores: int, tmp_path: Path) -> None:
    machine = Machine(
        numa_ids=tuple(range(8)), l3_per_numa=4, cores_per_l3=cores, threads=threads, gpu_numa=(3, 5)
    )
    topology = merge(
        [
            sysfs.read(machines.write_sysfs(machine, tmp_path)),
            hwloc.read(machines.hwloc_xml(machine), "hwloc.xml"),
            lscpu.read(machines.lscpu_table(machine), "lscpu.csv"),
            numactl.read(machines.numactl(machine), "numactl.txt"),
        ]
    )
    assert len(topology.cpus) == 8 * 4 * cores * threads > 1024
    assert without_socket(topology.cores) == machine.cores()
    assert [gpu.numa for gpu in topology.gpus] == [3, 5]
    assert {node.memory_bytes for node in topology.numa_nodes} == {1 << 30}


DECORATIONS: dict[str, Callable[[str], str]] = {
    "windows": lambda text: text.replace("\n", "\r\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "prompt": lambda text: "user@login1:~> srun -n1 the-tool --option\n" + text + "user@login1:~> \n",
    "one label": lambda text: "".join(f"0: {line}\n" for line in text.splitlines()),
    "padded labels": lambda text: "".join(f" 3: {line}\n" for line in text.splitlines()),
    "two tasks": lambda text: "".join(f"{task}: {line}\n" for line in text.splitlines() for task in (1, 0)),
    "blanks at the end": lambda text: "".join(f"{line}  \t\n" for line in text.splitlines()),
    "colours": lambda text: "".join(f"\x1b[1m{line}\x1b[0m\n" for line in text.splitlines()),
    "banner": lambda text: "=== Welcome to Example: 2 nodes down ===\nWARNING: something: 3\n\n" + text,
}

MACHINE = Machine(numa_ids=(0, 1, 2, 3), memory_only=(9,), gpu_numa=(3, 3, 1, 1, 0, 0, 2, 2))
PRINTED = {
    "lscpu text": (lscpu.read, machines.lscpu_text(MACHINE)),
    "lscpu sections": (lscpu.read, machines.lscpu_text(MACHINE, sections=True)),
    "lscpu json": (lscpu.read, machines.lscpu_json(MACHINE)),
    "lscpu table": (lscpu.read, machines.lscpu_table(MACHINE)),
    "numactl": (numactl.read, machines.numactl(MACHINE)),
    "rocm-smi": (rocm_smi.read, machines.rocm_smi(MACHINE)),
    "rocm-smi json": (rocm_smi.read, machines.rocm_smi_json(MACHINE)),
    "amd-smi json": (amd_smi.read, machines.amd_smi_json(MACHINE)),
    "nvidia-smi": (nvidia_smi.read, machines.nvidia_smi(MACHINE)),
    "nvidia-smi blanks": (nvidia_smi.read, machines.nvidia_smi(MACHINE, tabs=False)),
    "hwloc 1": (hwloc.read, machines.hwloc_xml(MACHINE, 1)),
    "hwloc 2": (hwloc.read, machines.hwloc_xml(MACHINE, 2)),
}


@in_one_test("printed, decoration", product(PRINTED, DECORATIONS))
def test_pasted_output_reads_like_the_plain_one(printed: str, decoration: str) -> None:
    read, text = PRINTED[printed]
    assert read(DECORATIONS[decoration](text), "x") == read(text, "x")
