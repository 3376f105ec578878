"""The cores that a rank computes at its start, in shell, are those that ``bind`` plans for the same node."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest
from hpclaunch.cpuset import format_cpu_list, parse_cpu_list
from hpclaunch.package_data import resource_dir
from hpclaunch.topology.node_topology import Core, Gpu, NodeTopology, NumaNode
from tests.how_much import examples

REMOTE = resource_dir("remote")


def node(numa: int, cores_each: int, threads: int, gpus: tuple[int | None, ...]) -> NodeTopology:
    """A node whose CPUs are numbered as on x86 servers: thread t of core c is CPU c + t x cores."""
    count = numa * cores_each
    cores = tuple(
        Core(cpus=tuple(core + t * count for t in range(threads)), numa=core // cores_each, socket=0)
        for core in range(count)
    )
    return NodeTopology(
        cores=cores,
        numa_nodes=tuple(
            NumaNode(
                id=n,
                cpus=frozenset(cpu for core in cores if core.numa == n for cpu in core.cpus),
            )
            for n in range(numa)
        ),
        gpus=tuple(
            Gpu(index=index, numa=on, bus_id=f"0000:{index + 1:02x}:00.0") for index, on in enumerate(gpus)
        ),
        sources=("made up",),
    )


def write_node(root: Path, topology: NodeTopology, allowed: str) -> None:
    """Write the files of the kernel and of NVIDIA's driver for it."""

    def write(path: str, text: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")

    write("proc/self/status", f"Name:\tbash\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0")
    for numa in topology.numa_nodes:
        write(f"sys/devices/system/node/node{numa.id}/cpulist", format_cpu_list(numa.cpus))
    for core in topology.cores:
        for cpu in core.cpus:
            write(
                f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", format_cpu_list(core.cpus)
            )
    for gpu in topology.gpus:
        about = f"Model: \t A100\nDevice Minor: \t {gpu.index}"
        write(f"proc/driver/nvidia/gpus/{gpu.bus_id}/information", about)
        write(f"sys/bus/pci/devices/{gpu.bus_id}/numa_node", str(-1 if gpu.numa is None else gpu.numa))


def binds(
    root: Path, *, ranks: int, cores: int, threads: int, gpus: int, sees: str, some: str = ""
) -> list[dict[str, str]]:
    """Return what each local rank of a node computes."""
    places = (",".join(map(str, range(rank * gpus, (rank + 1) * gpus))) for rank in range(ranks))
    own = " ".join(f"'{each}'" for each in places) if gpus else ""
    script = f"""
        set -eu
        . {REMOTE}/binding_report.sh; . {REMOTE}/bind_here.sh
        hpclaunch_ranks={ranks} hpclaunch_cores={cores} hpclaunch_threads={threads}
        hpclaunch_gpu_variable=CUDA_VISIBLE_DEVICES hpclaunch_some_gpus={some} hpclaunch_own=()
        hpclaunch_job_gpus=({own})
        export CUDA_VISIBLE_DEVICES={sees}
        for ((rank = 0; rank < {ranks}; rank++)); do
          LOCAL_RANK=$rank hpclaunch_cpus=() hpclaunch_numa=() hpclaunch_bus=()
          hpclaunch_plan_here || {{ echo "none none"; continue; }}
          echo "${{hpclaunch_cpus[rank]:-}} ${{hpclaunch_numa[rank]:-}}"
        done
    """
    answer = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", "HPCLAUNCH_SYSROOT": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not answer.stderr, answer.stderr
    rows = (line.split(" ") for line in answer.stdout.splitlines())
    return [dict(zip(("cpus", "numa"), row, strict=True)) for row in rows]


@st.composite
def nodes(draw: st.DrawFn) -> tuple[NodeTopology, int, int, int]:
    """A node, the ranks on it, and the GPUs and threads per core of each."""
    numa, threads = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    gpus_each, ranks = draw(st.integers(0, 2)), draw(st.integers(1, 8))
    cores_each = draw(st.integers(8, 12))
    places = st.none() | st.integers(0, numa - 1) if draw(st.booleans()) else st.integers(0, numa - 1)
    gpus = tuple(draw(places) for _ in range(gpus_each * ranks))
    return node(numa, cores_each, threads, gpus), ranks, gpus_each, draw(st.integers(1, threads))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(nodes())
def test_ranks_bind_themselves_as_bind_plans(one: tuple[NodeTopology, int, int, int]) -> None:
    topology, ranks, gpus, threads = one
    near = [{gpu.numa for gpu in topology.gpus[rank * gpus : (rank + 1) * gpus]} for rank in range(ranks)]
    are_near = bool(gpus) and all(len(each) == 1 and None not in each for each in near)
    request = BindingRequest(tasks_per_node=ranks, gpus_per_task=gpus, threads_per_core=threads)
    planned = bind(topology, request).ranks if are_near else ()
    cores = min((len(rank.cpus) // threads for rank in planned), default=999)
    everything = format_cpu_list(cpu for core in topology.cores for cpu in core.cpus)
    with tempfile.TemporaryDirectory() as folder:
        write_node(Path(folder), topology, everything)
        sees = ",".join(str(gpu.index) for gpu in topology.gpus)
        got = binds(Path(folder), ranks=ranks, cores=cores, threads=threads, gpus=gpus, sees=sees)
    cpus = [parse_cpu_list(each["cpus"]) for each in got]
    assert all(len(each) % threads == 0 and each for each in cpus)
    assert sum(map(len, cpus)) == len(frozenset().union(*cpus)), "no two ranks share a CPU"
    for rank, each in zip(planned, got, strict=False):
        assert set(parse_cpu_list(each["cpus"])) <= set(rank.cpus)
        assert len(parse_cpu_list(each["cpus"])) == cores * threads
        assert each["numa"] == ",".join(map(str, rank.numa))


def test_gpus_of_one_half_of_the_node_leave_no_core_idle(tmp_path: Path) -> None:
    """As on Leonardo, where all four are attached to the first of two NUMA nodes."""
    write_node(tmp_path, node(2, 16, 1, (0, 0, 0, 0)), "0-31")
    got = binds(tmp_path, ranks=4, cores=8, threads=1, gpus=1, sees="0,1,2,3")
    assert [each["cpus"] for each in got] == ["0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31"]
    assert [each["numa"] for each in got] == ["0,1"] * 4
    got = binds(tmp_path, ranks=4, cores=4, threads=1, gpus=1, sees="0,1,2,3")
    assert [each["cpus"] for each in got] == ["0-3", "4-7", "8-11", "12-15"]


def test_of_a_part_of_a_node_only_its_cores_are_taken(tmp_path: Path) -> None:
    write_node(tmp_path, node(2, 8, 2, (0, 0, 1, 1)), "4-11,20-27")
    got = binds(tmp_path, ranks=2, cores=4, threads=1, gpus=1, sees="1,2")
    assert [each["cpus"] for each in got] == ["4-7", "8-11"]
    got = binds(tmp_path, ranks=2, cores=2, threads=2, gpus=1, sees="1,2")
    assert [each["cpus"] for each in got] == ["4-5,20-21", "8-9,24-25"]


def test_gpus_that_the_job_cannot_open_are_not_counted(tmp_path: Path) -> None:
    """With ConstrainDevices the numbers of CUDA_VISIBLE_DEVICES count the GPUs of the job alone."""
    write_node(tmp_path, node(2, 8, 1, (0, 0, 1, 1)), "0-15")
    for number in range(4):
        device = tmp_path / f"dev/nvidia{number}"
        device.parent.mkdir(exist_ok=True)
        if number < 2:
            device.symlink_to("/nonexistent/loop")
            device.unlink()
            socket.socket(socket.AF_UNIX).bind(str(device))  # it cannot be opened, as what a cgroup refuses
        else:
            device.write_text("")
    got = binds(tmp_path, ranks=2, cores=4, threads=1, gpus=1, sees="0,1", some="1")
    assert [each["cpus"] for each in got] == ["8-11", "12-15"]
    assert [each["numa"] for each in got] == ["1", "1"]


def test_more_ranks_than_cores_stay_unbound(tmp_path: Path) -> None:
    write_node(tmp_path, node(1, 2, 1, ()), "0-1")
    got = binds(tmp_path, ranks=3, cores=1, threads=1, gpus=0, sees="")
    assert [each["cpus"] for each in got] == ["none"] * 3


def test_a_kernel_without_numa_has_one_node(tmp_path: Path) -> None:
    write_node(tmp_path, node(1, 4, 1, ()), "0-3")
    (tmp_path / "sys/devices/system/node/node0/cpulist").unlink()
    got = binds(tmp_path, ranks=2, cores=2, threads=1, gpus=0, sees="")
    assert [each["cpus"] for each in got] == ["0-1", "2-3"]
