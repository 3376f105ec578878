"""rocm-smi, amd-smi and nvidia-smi: variants and damage that the generated machines do not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.topology import amd_smi, nvidia_smi, rocm_smi
from hpclaunch.topology.node_topology import Partial
from tests.in_one_test import in_one_test
from tests.topology import machines

DATA = Path(__file__).parents[1] / "data/topology"
MACHINE = machines.Machine(numa_ids=(0, 1), gpu_numa=(1, 1, 0, 0))


def numa(partial: Partial) -> list[int | None]:
    return [gpu.numa for gpu in partial.gpus or ()]


def test_partitions_count_as_gpus_and_contradicting_columns_stay_unknown() -> None:
    partial = rocm_smi.read((DATA / "rocm-smi-errors-partitions.txt").read_text(), "x")
    assert numa(partial) == [0, 0, 1, None]
    assert [note for note in partial.notes if "NUMA node 0 but NUMA affinity 1" in note]


@in_one_test("word", ["-1", "4294967295", "N/A"])
def test_an_unknown_affinity_makes_the_node_unknown(word: str) -> None:
    text = f"GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: {word}\n"
    partial = rocm_smi.read(text, "x")
    assert numa(partial) == [None]
    assert "the kernel does not know its NUMA node" in partial.notes[0]
    entry = (
        f'{{"card0": {{"(Topology) Numa Node": "0", "(Topology) Numa Affinity": "{word}"}}, "system": {{}}}}'
    )
    assert numa(rocm_smi.read(entry, "x")) == [None]


def test_bus_lines_are_read_too() -> None:
    text = "GPU[0]      : PCI Bus: 0000:C9:00.0\nGPU[1]      : PCI Bus: 0000:CE:00.0\n"
    assert [gpu.bus_id for gpu in rocm_smi.read(text, "x").gpus or ()] == ["0000:c9:00.0", "0000:ce:00.0"]


def without(text: str, piece: str) -> str:
    assert piece in text
    return "".join(line for line in text.splitlines(keepends=True) if piece not in line)


@in_one_test(
    "text, message",
    [
        ("", "no line such as 'GPU[0]"),
        ("ERROR: GPU[1]   : Cannot read Numa Node: Not supported\n", "no line such as 'GPU[0]"),
        (without(machines.rocm_smi(MACHINE), "GPU[1]"), "GPU 1 is missing but GPU 3 is there"),
        (
            without(machines.rocm_smi(MACHINE), "GPU[3]\t\t: (Topology) Numa Affinity"),
            "GPU 3 has no line 'Numa Aff",
        ),
        (machines.rocm_smi(MACHINE).split("ffinity: 0")[0], "'GPU[2]\\t\\t: (Topology) Numa A' is cut off"),
        ("GPU[0] : (Topology) Numa Node:\n", "line 1: Numa Node without a value"),
        ("GPU[0] : (Topology) Numa Node: 3.5\n", "line 1: '3.5' is not a NUMA node"),
        (
            "GPU[0] : (Topology) Numa Node: 3\nGPU[0] : (Topology) Numa Node: 2\n",
            "line 2: Numa Node is 2, but 3 in line 1",
        ),
        ('{"card0": {"(Topology) Numa Node": "0"', "damaged JSON"),
        ('{"system": {}}', "JSON without card0"),
        ('{"card0": {"Temperature": "3"}}', "neither NUMA nodes nor PCI addresses"),
    ],
)
def test_damaged_rocm_smi_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        rocm_smi.read(text, "gpus.txt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("gpus.txt")


def test_output_without_its_end_is_read_with_a_warning() -> None:
    text = machines.rocm_smi(MACHINE).rsplit("\n", 2)[0]
    assert any("may be cut off" in note for note in rocm_smi.read(text, "x").notes)


def test_amd_smi_text() -> None:
    partial = amd_smi.read((DATA / "amd-smi-static.txt").read_text(), "x")
    assert numa(partial) == [1, None]
    assert [gpu.bus_id for gpu in partial.gpus or ()] == ["0000:c1:00.0", "0000:c6:00.0"]
    assert (partial.gpus or ())[0].cpus == frozenset((*range(8, 16), *range(64, 72)))


def test_amd_smi_topology_gives_addresses_and_says_that_numa_nodes_are_missing() -> None:
    table = "ACCESS TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 ENABLED      ENABLED\n"
    for text in (table, "$ amd-smi topology\n" + table, '[{"gpu": 0, "weight": {}}, {"gpu": 1}]'):
        partial = amd_smi.read(text, "x")
        assert numa(partial) == [None, None]
        assert any("no NUMA nodes in this output" in note for note in partial.notes)


@in_one_test(
    "text, message",
    [
        ("", "not the output of amd-smi"),
        ("GPU: 0\n NODE: 0\nGPU: 0\n", "line 3: GPU 0 appears twice"),
        ("GPU: 1\n NODE: 0\n", "not numbered from 0"),
        ("GPU: 0\n  NODE: many\n", "line 2: 'many' is not a NUMA node"),
        ("GPU: 0\n CPU_AFFINITY:\n  CPU_LIST_0:\n   BITMASK: 0-3\n", "line 4: bad CPU mask '0-3'"),
        ('[{"gpu": 0, "numa": {"node": 0}', "damaged JSON"),
        ('[{"gpu": 0}, {"gpu": 0}]', "or the number of another entry"),
        ('{"gpu_data": []}', "JSON without a list of GPUs"),
        ("ACCESS TABLE:\n\n", "ACCESS TABLE without columns"),
        ("ACCESS TABLE:\n one two\n", "line 2: columns that are not PCI addresses"),
    ],
)
def test_damaged_amd_smi_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        amd_smi.read(text, "gpus.json")
    assert message in str(caught.value)


def test_nvidia_smi_on_a_superchip_names_several_nodes_and_the_gpus_own_memory() -> None:
    partial = nvidia_smi.read((DATA / "nvidia-smi-superchip.txt").read_text(), "x")
    assert [sorted(gpu.numa_candidates) for gpu in partial.gpus or ()] == [[0, 4, 5, 6, 7], [1, 8, 9, 10, 11]]
    assert [gpu.memory_numa for gpu in partial.gpus or ()] == [3, 8]


def test_nvidia_smi_without_affinities() -> None:
    empty = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t\t\tN/A\n"
    spaced = empty.replace("\t", "    ")
    for text in (empty, spaced):
        (gpu,) = nvidia_smi.read(text, "x").gpus or ()
        assert (gpu.numa, gpu.cpus, gpu.memory_numa) == (None, None, None)
    partial = nvidia_smi.read("\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n", "x")
    assert any("no affinity columns" in note for note in partial.notes)


@in_one_test(
    "row",
    [
        "\t0-7\t\tN/A\t\tN/A",
        "\t0-7\tN/A\t\tN/A",
        "\t0-7\tN/A\tN/A",
        "    0-7             N/A             N/A",
    ],
)
def test_a_gpu_whose_numa_node_is_not_available_still_has_cpus(row: str) -> None:
    """What cloud nodes and desktops with one GPU print."""
    text = f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X {row}\n"
    (gpu,) = nvidia_smi.read(text if row[0] == "\t" else text.replace("\t", "    "), "x").gpus or ()
    assert (gpu.numa, gpu.cpus, gpu.memory_numa) == (None, frozenset(range(8)), None)


def test_column_names_that_a_terminal_glued_are_told_apart() -> None:
    glued = TOPO.replace("GPU3\tNIC0\tmlx5_1", "GPU3\tNIC0mlx5_1", 1)
    assert glued != TOPO
    assert numa(nvidia_smi.read(glued, "x")) == [1, 1, 0, 0]


@pytest.mark.parametrize("blank", ["\n", ""])
def test_only_the_first_matrix_is_read(blank: str) -> None:
    """The output of topo -m, followed by that of topo -p2p r."""
    p2p = "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tOK\tOK\tOK\nGPU1\tOK\tX\tCNS\tOK\n"
    assert numa(nvidia_smi.read(TOPO + blank + p2p, "x")) == [1, 1, 0, 0]


def test_the_bits_of_amd_smi_count_and_not_the_first_and_last_of_them() -> None:
    text = (
        "GPU: 0\n  NUMA:\n    NODE: 1\n    AFFINITY: 1\n    CPU_AFFINITY:\n"
        "      CPU_LIST_0:\n        BITMASK: AAAAAAAAAAAAAAAA\n        CPU_CORES_AFFINITY: 1-63\n"
        "      CPU_LIST_1:\n        CPU_CORES_AFFINITY: 65-66\n"
        "    SOCKET_AFFINITY:\n      CPU_LIST_0:\n        BITMASK: FFFFFFFFFFFFFFFF\n"
    )
    json = (
        '[{"gpu": 0, "numa": {"node": 1, "affinity": 1, "cpu_affinity": {"cpu_list_0":'
        ' {"bitmask": "AAAAAAAAAAAAAAAA", "cpu_cores_affinity": "1-63"},'
        ' "cpu_list_1": {"bitmask": "N/A", "cpu_cores_affinity": "65-66"}}}}]'
    )
    for output in (text, json):
        (gpu,) = amd_smi.read(output, "x").gpus or ()
        assert gpu.cpus == frozenset((*range(1, 64, 2), 65, 66))


def test_colour_codes_whose_escape_was_lost_are_ignored() -> None:
    text = machines.nvidia_smi(MACHINE, colour=True).replace("\x1b", "")
    assert numa(nvidia_smi.read(text, "x")) == [1, 1, 0, 0]


def test_a_number_cut_in_its_middle_is_left_out() -> None:
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t96,98,100,10\t0\n"
    (gpu,) = nvidia_smi.read(text, "x").gpus or ()
    assert gpu.cpus == frozenset((96, 98, 100))


TOPO = machines.nvidia_smi(MACHINE)


@in_one_test(
    "text, message",
    [
        ("", "no line of column names"),
        ("NUMA IDs of closest CPU: 1\n", "nvidia-smi topo -C, which names no GPU"),
        ("| CPU Affinity | | GPU0 | GPU1 |\n|---|---|---|---|\n", "line 1: a table in Markdown"),
        ("\tCPU Affinity\tGPU0\nGPU0\t0-3\t X \n", "line 2: column '0-3'"),
        ("\tGPU0\tNUMA Affinity\tCPU Affinity\nGPU0\t X \t0\t0-3\n", "line 1: columns in another order"),
        ("\tGPU0\tGPU2\tCPU Affinity\nGPU0\t X \tSYS\t0\n", "line 1: the GPU columns are not GPU0, GPU1"),
        ("\tGPU0\tGPU1\tCPU Affinity\n\n", "a header of columns but no row"),
        (TOPO.replace("GPU2\tSYS\tSYS", "GPU2\tSYS"), "line 4: "),
        (TOPO.replace("\nGPU1", "\nGPU7"), "line 3: row GPU7 follows 1 rows"),
        (
            TOPO.replace("\t X \tSYS\tSYS\tPIX", "\tSYS\t X \tSYS\tPIX"),
            "line 3: row GPU1 has no X in column GPU1",
        ),
        (TOPO.replace("GPU0\t X \tSYS", "GPU0\t X \tHELLO"), "line 2: 'HELLO' in row GPU0"),
        (TOPO.replace("\t1\t\tN/A", "\tone\t\tN/A", 1), "line 2: 'one' is not a NUMA node"),
        (TOPO.replace("8-15,24-31", "8-15,24-", 1), "line 2: bad CPU list"),
        (
            machines.nvidia_smi(MACHINE, tabs=False).replace(" 0-7,16-23 ", " ", 1),
            "line 4: 8 cells, 9 columns",
        ),
    ],
)
def test_damaged_nvidia_smi_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        nvidia_smi.read(text, "topo.txt")
    assert message in str(caught.value)
    assert str(caught.value).startswith("topo.txt")


def test_missing_rows_at_the_end_are_noted() -> None:
    text = "\n".join(TOPO.splitlines()[:3])
    partial = nvidia_smi.read(text, "x")
    assert len(partial.gpus or ()) == 2
    assert any(
        "names 4 GPUs, but there are rows for 2: the output is cut off" in note for note in partial.notes
    )


@pytest.mark.parametrize(
    "wrapped",
    [
        "        GPU0    GPU1    NIC0    CPU Affinity    NUMA\n Affinity   GPU NUMA ID\n"
        "GPU0     X      SYS     PIX     0-3,8-\n11  0    N/A\n"
        "GPU1    SYS      X\n     SYS     4-7,12-15  1\n  N/A\n"
        "NIC0    PIX     SYS      X\n",
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tSYS\tPIX\t0-3\n,8-11\t0\nGPU1\tSYS\t X \tSYS\t4-7,\n12-15\t1\n",
    ],
    ids=["blanks", "tabs"],
)
def test_lines_that_a_mail_program_broke_are_joined(wrapped: str) -> None:
    gpus = nvidia_smi.read(wrapped, "x").gpus or ()
    assert [gpu.numa for gpu in gpus] == [0, 1]
    assert [gpu.cpus for gpu in gpus] == [
        frozenset((0, 1, 2, 3, 8, 9, 10, 11)),
        frozenset((4, 5, 6, 7, 12, 13, 14, 15)),
    ]
