"""Every format writes the same binding: what is written can be read back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding, RankBinding
from hpclaunch.cpuset import parse_cpu_list, parse_mask
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import Core, NodeTopology
from hpclaunch.topology.sources import read_live
from tests.binding.machines import lumi_like, machine
from tests.how_much import examples

checked = settings(max_examples=examples(40), deadline=None)

CPU_SETS = st.frozensets(st.integers(0, 4095), min_size=1, max_size=40)


@st.composite
def bindings(draw: st.DrawFn) -> NodeBinding:
    ranks = draw(st.lists(CPU_SETS, min_size=1, max_size=20))
    return NodeBinding(
        ranks=tuple(
            RankBinding(
                local_rank=rank,
                cpus=tuple(sorted(cpus)),
                gpus=tuple(sorted(draw(st.frozensets(st.integers(0, 15), max_size=3)))),
                numa=tuple(sorted(draw(st.frozensets(st.integers(0, 300), max_size=2)))),
                nic=draw(st.none() | st.text(max_size=8)),
            )
            for rank, cpus in enumerate(ranks)
        )
    )


def sets(binding: NodeBinding) -> list[frozenset[int]]:
    return [frozenset(rank.cpus) for rank in binding.ranks]


@pytest.mark.slow
@checked
@given(bindings())
def test_masks_and_lists_read_back_as_the_same_cpus(binding: NodeBinding) -> None:
    wanted = sets(binding)
    assert [parse_mask(mask) for mask in dialects.mask_cpu(binding).split(",")] == wanted
    prefix, _, masks = dialects.srun(binding).partition("mask_cpu:")
    assert prefix == "--cpu-bind="
    assert [parse_mask(mask) for mask in masks.split(",")] == wanted
    assert [int(cpu) for cpu in dialects.map_cpu(binding).split(",")] == [min(cpus) for cpus in wanted]
    assert [parse_cpu_list(line) for line in dialects.cpu_list(binding).splitlines()] == wanted
    option, _, lists = dialects.pals(binding).partition(" list:")
    assert option == "--cpu-bind"
    assert [parse_cpu_list(text) for text in lists.split(":")] == wanted


@pytest.mark.slow
@checked
@given(bindings())
def test_command_prefixes_read_back_as_the_same_cpus(binding: NodeBinding) -> None:
    wanted = sets(binding)
    tasksets = [line.split() for line in dialects.taskset(binding).splitlines()]
    assert [words[:2] for words in tasksets] == [["taskset", "--cpu-list"]] * len(wanted)
    assert [parse_cpu_list(words[2]) for words in tasksets] == wanted
    for line, rank in zip(dialects.numactl(binding).splitlines(), binding.ranks, strict=True):
        match = re.fullmatch(r"numactl --physcpubind=(\S+)(?: --membind=(\S+))?", line)
        assert match
        assert parse_cpu_list(match[1]) == frozenset(rank.cpus)
        assert parse_cpu_list(match[2] or "") == frozenset(rank.numa)


@pytest.mark.slow
@checked
@given(bindings())
def test_json_holds_the_whole_binding(binding: NodeBinding) -> None:
    document = json.loads(dialects.FORMATS["json"](NodeTopology(cores=()), binding))
    for entry, rank in zip(document["ranks"], binding.ranks, strict=True):
        assert entry["cpus"] == list(rank.cpus)
        assert parse_cpu_list(entry["cpu_list"]) == parse_mask(entry["cpu_mask"]) == frozenset(rank.cpus)
        assert (entry["gpus"], entry["numa"], entry["nic"]) == (list(rank.gpus), list(rank.numa), rank.nic)


@settings(max_examples=examples(8), deadline=None)
@given(bindings())
def test_a_real_shell_reads_the_variables(binding: NodeBinding) -> None:
    names = ("CPU_LISTS", "CPU_MASKS", "GPUS", "NUMA_NODES", "NICS")
    ask = "\n".join(f'set -- $HPCLAUNCH_{name}; echo "$#"' for name in names)
    script = f"set -f\n{dialects.env(NodeTopology(cores=()), binding)}\n{ask}\necho $HPCLAUNCH_CPU_LISTS"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    *counts, lists = done.stdout.splitlines()
    assert counts == [str(len(binding.ranks))] * len(names)
    assert [parse_cpu_list(text) for text in lists.split()] == sets(binding)


def test_gpu_bind_maps_one_gpu_and_masks_several() -> None:
    node = lumi_like()
    eight = bind(node, BindingRequest(tasks_per_node=8))
    assert dialects.gpu_bind(eight) == "--gpu-bind=map:0,1,2,3,4,5,6,7"
    four = bind(node, BindingRequest(tasks_per_node=4, order="numa"))
    assert dialects.gpu_bind(four) == "--gpu-bind=mask:0x30,0xc,0xc0,0x3"
    with pytest.raises(BadInputError, match="ranks 0 have no GPU"):
        dialects.gpu_bind(bind(machine([4]), BindingRequest(tasks_per_node=1)))


def test_rankfile_counts_hwlocs_logical_cores() -> None:
    # Interleaved sockets: the kernel's CPU 1 is the first core of the second socket, hwloc's core 2.
    cores = tuple(Core(cpus=(cpu, cpu + 4), numa=cpu % 2, socket=cpu % 2) for cpu in range(4))
    node = NodeTopology(cores=cores)
    lines = dialects.openmpi(node, bind(node, BindingRequest(tasks_per_node=2))).splitlines()
    assert lines[-2:] == ["rank 0=+n0 slot=0-1", "rank 1=+n0 slot=2-3"]
    inside = msgspec.structs.replace(node, allowed=frozenset({1, 3, 5, 7}))
    lines = dialects.openmpi(inside, bind(inside, BindingRequest(tasks_per_node=2))).splitlines()
    assert lines[-2:] == ["rank 0=+n0 slot=0", "rank 1=+n0 slot=1"]


def test_rankfile_follows_the_order_that_hwloc_itself_has() -> None:
    """hwloc's groups (by distance) may put the second socket first, or join the first and the third."""
    node = machine([2] * 4)
    node = msgspec.structs.replace(node, hwloc_order=(0, 1, 4, 5, 2, 3, 6, 7))
    lines = dialects.openmpi(node, bind(node, BindingRequest(tasks_per_node=4))).splitlines()
    assert lines[-4:] == [
        "rank 0=+n0 slot=0-1", "rank 1=+n0 slot=4-5", "rank 2=+n0 slot=2-3", "rank 3=+n0 slot=6-7"
    ]  # fmt: skip


@pytest.mark.mpi
@pytest.mark.openmpi
def test_a_real_open_mpi_binds_as_the_rankfile_says(tmp_path: Path) -> None:
    node = read_live()
    tasks = min(len(node.allowed or node.cpus), 2)
    binding = bind(node, BindingRequest(tasks_per_node=tasks, order="gpu"))
    turned = NodeBinding(
        ranks=tuple(
            RankBinding(local_rank=rank, cpus=other.cpus) for rank, other in enumerate(binding.ranks[::-1])
        )
    )
    rankfile = tmp_path / "ranks"
    rankfile.write_text(dialects.openmpi(node, turned) + "\n")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    show = "import os; print(os.environ['OMPI_COMM_WORLD_RANK'], *sorted(os.sched_getaffinity(0)))"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PRTE_")}
    done = subprocess.run(
        [mpiexec, "--host", f"localhost:{tasks}", "--map-by", f"rankfile:file={rankfile}", "-n", str(tasks),
         sys.executable, "-c", show],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    got = sorted(tuple(map(int, line.split())) for line in done.stdout.splitlines())
    assert got == [(rank.local_rank, *rank.cpus) for rank in turned.ranks]


def test_the_table_lines_up() -> None:
    lines = dialects.table(bind(lumi_like(), BindingRequest(tasks_per_node=8))).splitlines()
    assert lines[0].split() == ["rank", "CPUs", "NUMA", "L3", "GPU", "NIC"]
    assert lines[1].split() == ["0", "49-55", "3", "6", "0", "-"]
    assert len(lines) == 9
