"""Several sources of one node, and what a site adds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpclaunch.cpuset import CpuSet, format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology import amd_smi, hwloc, lscpu, numactl, nvidia_smi, rocm_smi, sysfs
from hpclaunch.topology.merge_sources import _first_difference, merge
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology, NumaNode
from hpclaunch.topology.sources import KINDS, apply_site, read_files, read_folder
from tests.topology import machines

DATA = Path(__file__).parents[1] / "data/topology"
# The numbering of LUMI-G: 4 NUMA nodes, 2 L3 groups of 8 cores each, 2 threads; two GPUs per NUMA node.
MI250X = machines.Machine(numa_ids=(0, 1, 2, 3), cores_per_l3=8, gpu_numa=(3, 3, 1, 1, 0, 0, 2, 2))
NUMA_LINES = "".join(f"NUMA node{n.id} CPU(s): {format_cpu_list(n.cpus)}\n" for n in MI250X.nodes())


def has(topology: NodeTopology, *words: str) -> bool:
    return any(all(word in note for word in words) for note in topology.notes)


def test_numa_lines_and_rocm_smi_describe_a_node_except_its_l3_groups() -> None:
    topology = merge(
        [rocm_smi.read(machines.rocm_smi(MI250X), "rocm.txt"), lscpu.read(NUMA_LINES, "lscpu.txt")]
    )
    assert [core.cpus for core in topology.cores] == [core.cpus for core in MI250X.cores()]
    assert [core.numa for core in topology.cores] == [core.numa for core in MI250X.cores()]
    assert [gpu.numa for gpu in topology.gpus] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert topology.sources == ("rocm-smi (rocm.txt)", "lscpu (lscpu.txt)")
    assert has(topology, "no source states which cores share an L3 cache")


def test_sources_that_agree_are_joined_without_a_note() -> None:
    machine = MI250X
    topology = merge(
        [
            lscpu.read(machines.lscpu_table(machine), "a"),
            numactl.read(machines.numactl(machine), "b"),
            rocm_smi.read(machines.rocm_smi_json(machine), "c"),
            hwloc.read(machines.hwloc_xml(machine), "d"),
        ]
    )
    assert topology.notes == ()
    assert topology.numa_nodes[0].memory_bytes == 1 << 30
    assert [gpu.bus_id for gpu in topology.gpus] == [machine.bus(gpu) for gpu in range(8)]
    assert [core.l3 for core in topology.cores] == [core.l3 for core in machine.cores()]


def test_no_source_at_all_is_refused() -> None:
    with pytest.raises(BadInputError, match="no source"):
        merge([])


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-7\n", "0 1 2 3 4 5 6 7", "puts CPU 4 on NUMA node 1"),
        ("NUMA node0 CPU(s): 0-3\n", "2 3 4 5", "only numactl (b) has CPUs"),
    ],
)
def test_sources_of_different_machines_are_refused(left: str, right: str, message: str) -> None:
    partials = [lscpu.read(left, "a"), numactl.read(f"node 0 cpus: {right}\n", "b")]
    with pytest.raises(BadInputError) as caught:
        merge(partials)
    assert "lscpu (a)" in str(caught.value)
    assert "numactl (b)" in str(caught.value)
    assert message in str(caught.value) or "only lscpu (a) has CPUs 0-1" in str(caught.value)


def test_cpus_that_one_source_hides_are_left_out_with_a_note() -> None:
    whole = lscpu.read("NUMA node0 CPU(s): 0-7\nThread(s) per core: 1\n", "a")
    part = hwloc.read(
        '<topology><object type="Machine" cpuset="0x0f">'
        + "".join(f'<object type="PU" os_index="{cpu}"/>' for cpu in range(4))
        + "</object></topology>",
        "b",
    )
    for partials in ([whole, part], [part, whole]):
        topology = merge(partials)
        assert topology.cpus == frozenset(range(4))
        assert topology.numa_nodes[0].cpus == frozenset(range(4))
        assert has(topology, "lscpu (a) has CPUs 4-7 that hwloc (b) lacks")


def test_different_siblings_are_noted_with_both_sources() -> None:
    table = lscpu.read("# CPU,Core\n0,0\n1,0\n2,1\n3,1\n", "a")
    core = '<object type="Core"><object type="PU" os_index="{}"/><object type="PU" os_index="{}"/></object>'
    cores = core.format(0, 2) + core.format(1, 3)
    xml = f'<topology><object type="Machine" cpuset="0xf">{cores}</object></topology>'
    topology = merge([table, hwloc.read(xml, "b")])
    assert [core.cpus for core in topology.cores] == [(0, 2), (1, 3)]
    assert has(topology, "hwloc (b) says that CPUs 0,2 share a core", "lscpu (a) says 0-1")


def test_the_grants_of_all_sources_are_intersected(tmp_path: Path) -> None:
    machine = machines.Machine(numa_ids=(0,), cores_per_l3=2, threads=1, gpu_numa=())
    machines.write_sysfs(machine, tmp_path, allowed="0-2")
    xml = machines.hwloc_xml(machine).replace('type="Machine"', 'type="Machine" allowed_cpuset="0xe"')
    assert merge([sysfs.read(tmp_path), hwloc.read(xml, "x")]).allowed == frozenset((1, 2))


def test_more_nodes_counted_than_listed_is_noted() -> None:
    topology = merge([lscpu.read("NUMA node(s): 36\nNUMA node0 CPU(s): 0-3\nThread(s) per core: 1\n", "a")])
    assert has(topology, "counts 36 NUMA nodes, 1 are listed")


def topo(affinity: str, numa: str) -> str:
    return f"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{affinity}\t{numa}\n"


INTERLEAVED = (
    "NUMA node0 CPU(s): 0,2,4,6,8,10,12,14\nNUMA node1 CPU(s): 1,3,5,7,9,11,13,15\nThread(s) per core: 1\n"
)


def test_a_cut_affinity_column_gives_way_to_the_numa_node() -> None:
    topology = merge([nvidia_smi.read(topo("0,2,4,6,8,10", "0"), "a"), lscpu.read(INTERLEAVED, "b")])
    assert (topology.gpus[0].numa, topology.gpus[0].cpus) == (0, None)
    assert has(topology, "GPU 0 (0,2,4,6,8,10) is cut off", "0,2,4,6,8,10,12,14")


def test_an_affinity_printed_inside_a_job_is_used() -> None:
    nodes = "NUMA node0 CPU(s): 0-7\nNUMA node1 CPU(s): 8-15\nThread(s) per core: 1\n"
    topology = merge([nvidia_smi.read(topo("12-13", "1"), "a"), lscpu.read(nodes, "b")])
    assert (topology.gpus[0].numa, topology.gpus[0].cpus) == (1, frozenset((12, 13)))
    assert has(topology, "printed inside a job")


def test_an_affinity_outside_its_numa_node_is_noted() -> None:
    nodes = "NUMA node0 CPU(s): 0-7\nNUMA node1 CPU(s): 8-15\nThread(s) per core: 1\n"
    topology = merge([nvidia_smi.read(topo("0-3", "1"), "a"), lscpu.read(nodes, "b")])
    assert (topology.gpus[0].numa, topology.gpus[0].cpus) == (1, None)
    assert has(topology, "lists CPUs 0-3, but its NUMA node 1 has 8-15")


def test_without_a_numa_column_the_cpus_tell_the_node() -> None:
    old = "\tGPU0\tCPU Affinity\nGPU0\t X \t8-15\n"
    nodes = "NUMA node0 CPU(s): 0-7\nNUMA node1 CPU(s): 8-15\nThread(s) per core: 1\n"
    assert merge([nvidia_smi.read(old, "a"), lscpu.read(nodes, "b")]).gpus[0].numa == 1
    alone = merge([nvidia_smi.read(old, "a")])
    assert (alone.gpus[0].numa, alone.gpus[0].cpus) == (None, frozenset(range(8, 16)))
    assert alone.cpus == frozenset(range(8, 16))


def test_nvidia_smi_alone_gives_the_nodes_of_its_gpus_with_a_warning() -> None:
    topology = merge([nvidia_smi.read(topo("64-71", "1"), "a")])
    assert topology.cpus == frozenset(range(64, 72))
    assert [(node.id, len(node.cpus)) for node in topology.numa_nodes] == [(1, 8)]
    assert has(topology, "nodes without a GPU are missing")


def test_a_superchip_has_one_node_with_cpus_per_gpu_and_many_without() -> None:
    topology = read_files(
        {"nvidia_smi": DATA / "nvidia-smi-superchip.txt", "numactl": DATA / "numactl-superchip.txt"}
    )
    assert [gpu.numa for gpu in topology.gpus] == [0, 1]
    assert [node.id for node in topology.numa_nodes if not node.cpus] == list(range(3, 11))
    alone = read_files({"nvidia_smi": DATA / "nvidia-smi-superchip.txt"})
    assert [(node.id, len(node.cpus)) for node in alone.numa_nodes] == [(0, 36), (1, 36), (3, 0), (8, 0)]


def test_a_gpu_on_a_node_without_cpus_is_noted() -> None:
    text = "GPU[0] : (Topology) Numa Node: 6\nGPU[0] : (Topology) Numa Affinity: 6\n"
    topology = merge([rocm_smi.read(text, "a"), lscpu.read("NUMA node0 CPU(s): 0-7\n", "b")])
    assert has(topology, "GPU 0: NUMA node 6 (rocm-smi (a)) has no CPUs in lscpu (b)")


def gpus_of(first: str, second: str) -> NodeTopology:
    return merge([rocm_smi.read(first, "a"), amd_smi.read(second, "b")])


def test_gpus_are_matched_by_address_not_by_number() -> None:
    machine = machines.Machine(gpu_numa=(1, 0))
    turned = (
        f'[{{"gpu": 0, "bus": {{"bdf": "{machine.bus(1)}"}}, "asic": {{"market_name": "Example"}}}},'
        f' {{"gpu": 1, "bus": {{"bdf": "{machine.bus(0)}"}}}}]'
    )
    topology = gpus_of(machines.rocm_smi_json(machine), turned)
    assert [(gpu.index, gpu.numa, gpu.model) for gpu in topology.gpus] == [(0, 1, None), (1, 0, "Example")]
    assert has(topology, "amd-smi (b) numbers GPU 0, 1 of rocm-smi (a) differently")


def test_without_addresses_gpus_that_contradict_each_other_are_not_joined() -> None:
    machine = machines.Machine(gpu_numa=(1, 0))
    topology = gpus_of(machines.rocm_smi(machine), machines.amd_smi_json(machines.Machine(gpu_numa=(0, 1))))
    assert [gpu.numa for gpu in topology.gpus] == [1, 0]
    assert {gpu.bus_id for gpu in topology.gpus} == {None}
    assert has(topology, "rocm-smi (a) says NUMA node 1", "amd-smi (b) says NUMA node 0", "cannot be matched")


def test_a_job_with_some_of_the_gpus_keeps_its_numbers(tmp_path: Path) -> None:
    machines.write_sysfs(MI250X, tmp_path)
    shown = "".join(f"GPU[{i}] : PCI Bus: {MI250X.bus(gpu).upper()}\n" for i, gpu in enumerate((2, 3, 6)))
    topology = merge([rocm_smi.read(shown, "a"), sysfs.read(tmp_path)])
    assert [(gpu.index, gpu.bus_id, gpu.numa) for gpu in topology.gpus] == [
        (0, MI250X.bus(2), 1),
        (1, MI250X.bus(3), 1),
        (2, MI250X.bus(6), 2),
    ]
    assert has(topology, "rocm-smi (a) shows 3 GPUs", "shows 8")


def test_the_kernels_numa_node_is_used_for_a_gpu_of_the_same_address(tmp_path: Path) -> None:
    machine = machines.Machine(gpu_numa=(1, 0))
    machines.write_sysfs(machine, tmp_path)
    wrong = (
        machines.rocm_smi_json(machine)
        .replace('Node": "1"', 'Node": "0"')
        .replace('Affinity": "1"', 'Affinity": "0"')
    )
    topology = merge([rocm_smi.read(wrong, "a"), sysfs.read(tmp_path)])
    assert [gpu.numa for gpu in topology.gpus] == [1, 0]
    assert has(topology, "GPU 0: rocm-smi (a) says NUMA node 0", "sysfs", "says 1; the second is used")


def test_local_cpus_of_gpus_come_from_the_kernel(tmp_path: Path) -> None:
    machine = machines.Machine(gpu_numa=(1, 0), gpu_cpus_l3=True)
    machines.write_sysfs(machine, tmp_path)
    topology = merge([rocm_smi.read(machines.rocm_smi_json(machine), "a"), sysfs.read(tmp_path)])
    assert [gpu.cpus for gpu in topology.gpus] == [machine.gpu_cpus(0), machine.gpu_cpus(1)]


def test_a_source_that_shows_no_gpu_is_noted(tmp_path: Path) -> None:
    machines.write_sysfs(machines.Machine(gpu_numa=()), tmp_path)
    topology = merge([sysfs.read(tmp_path), rocm_smi.read(machines.rocm_smi(machines.Machine()), "a")])
    assert len(topology.gpus) == 2
    assert has(topology, "rocm-smi (a) shows 2 GPUs", "shows none")


def site(machine: machines.Machine, reserved: CpuSet = frozenset()) -> NodeTopology:
    """A profile that states everything about a machine."""
    gpus = tuple(
        Gpu(index=gpu, numa=numa, cpus=machine.gpu_cpus(gpu)) for gpu, numa in enumerate(machine.gpu_numa)
    )
    nics = (Nic(name="cxi0", numa=0),)
    return NodeTopology(
        cores=machine.cores(), numa_nodes=machine.nodes(), gpus=gpus, nics=nics, reserved=reserved
    )


def from_files() -> NodeTopology:
    return merge([rocm_smi.read(machines.rocm_smi(MI250X), "a"), lscpu.read(NUMA_LINES, "b")])


def test_the_site_adds_reserved_cores_l3_groups_and_local_cpus_of_gpus() -> None:
    joined = apply_site(from_files(), site(MI250X, reserved=frozenset((0, 8))))
    assert joined.reserved == frozenset((0, 64, 8, 72))
    assert [core.l3 for core in joined.cores] == [core.l3 for core in MI250X.cores()]
    assert [gpu.cpus for gpu in joined.gpus] == [MI250X.gpu_cpus(gpu) for gpu in range(8)]
    assert [nic.name for nic in joined.nics] == ["cxi0"]
    assert has(joined, "L3 groups are the site profile's")


def test_the_files_win_over_the_profile_with_a_note() -> None:
    measured = merge(
        [lscpu.read(machines.lscpu_table(MI250X), "a"), rocm_smi.read(machines.rocm_smi(MI250X), "b")]
    )
    other = machines.Machine(
        numa_ids=(0, 1, 2, 3), l3_per_numa=4, cores_per_l3=4, gpu_numa=(0, 0, 1, 1, 3, 3, 2, 2)
    )
    joined = apply_site(measured, site(other))
    assert joined.cores == measured.cores
    assert [gpu.numa for gpu in joined.gpus] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert has(joined, "L3 groups differ")
    assert has(joined, "GPU 0 is on NUMA node 3 here, on 0 in the site profile")


def test_a_profile_of_another_machine_adds_reserved_cores_only() -> None:
    other = machines.Machine(numa_ids=(0, 1), l3_per_numa=4, cores_per_l3=8, gpu_numa=(0,) * 8)
    joined = apply_site(from_files(), site(other, reserved=frozenset((0, 500))))
    assert all(core.l3 is None for core in joined.cores)
    assert joined.reserved == frozenset((0, 64))
    assert has(joined, "of the profile only the reserved cores are used")
    assert has(joined, "the site reserves CPUs 500, which are not here")


def test_the_site_adds_cores_to_the_output_of_a_gpu_tool() -> None:
    joined = apply_site(merge([rocm_smi.read(machines.rocm_smi(MI250X), "a")]), site(MI250X))
    assert joined.cores == MI250X.cores()
    assert joined.numa_nodes == MI250X.nodes()
    assert has(joined, "cores are the site profile's")


def test_unknown_nodes_of_gpus_come_from_the_site_when_the_count_agrees() -> None:
    text = "".join(
        f"GPU[{i}] : (Topology) Numa Node: 0\nGPU[{i}] : (Topology) Numa Affinity: -1\n" for i in range(8)
    )
    files = merge([rocm_smi.read(text, "a"), lscpu.read(NUMA_LINES, "b")])
    assert [gpu.numa for gpu in apply_site(files, site(MI250X)).gpus] == list(MI250X.gpu_numa)
    fewer = msgspec.structs.replace(files, gpus=files.gpus[:4])
    joined = apply_site(fewer, site(MI250X))
    assert [gpu.numa for gpu in joined.gpus] == [None] * 4
    assert has(joined, "the site profile has 8 GPUs, this node has 4")


def test_files_are_read_by_kind(tmp_path: Path) -> None:
    machines.write_sysfs(MI250X, tmp_path / "tree")
    windows = "Thread(s) per core: 2\n" + NUMA_LINES
    (tmp_path / "lscpu.txt").write_bytes(windows.replace("\n", "\r\n").encode("utf-16"))
    topology = read_files({"sysfs": tmp_path / "tree", "lscpu": tmp_path / "lscpu.txt"})
    assert len(topology.cores) == 64
    assert topology.sources == (f"sysfs ({tmp_path / 'tree'})", f"lscpu ({tmp_path / 'lscpu.txt'})")


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"missing\.txt: No such file"):
        read_files({"lscpu": tmp_path / "missing.txt"})
    with pytest.raises(BadInputError, match="unknown source 'lspci'"):
        read_files({"lspci": tmp_path / "x"})
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 40)
    for kind in KINDS:
        with pytest.raises(BadInputError, match="noise"):
            read_files({kind: tmp_path / "noise"})
    with pytest.raises(BadInputError, match="not a saved topology"):
        read_folder(tmp_path)


def test_model_holds_what_merge_makes() -> None:
    topology = from_files()
    assert isinstance(topology.cores[0], Core)
    assert isinstance(topology.numa_nodes[0], NumaNode)
    assert msgspec.convert(msgspec.to_builtins(topology), NodeTopology) == topology


@pytest.mark.parametrize(
    ("theirs", "differs"),
    [((0, 4), False), ((0,), False), ((0, 4, 8), False), ((0, 5), True), ((4, 1), True), ((9, 10), False)],
)
def test_cores_differ_where_they_overlap_and_neither_holds_the_other(
    theirs: tuple[int, ...], differs: bool
) -> None:
    siblings = {cpu: frozenset((cpu % 4, cpu % 4 + 4)) for cpu in range(8)}
    core = Core(cpus=theirs, socket=None, numa=None, l3=None)
    assert (_first_difference(siblings, [core]) is not None) is differs
