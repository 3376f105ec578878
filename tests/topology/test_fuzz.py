"""Readers get arbitrary and damaged text: they read it or refuse it with BadInputError."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.topology.merge_sources import merge
from hpclaunch.topology.node_topology import Partial
from hpclaunch.topology.sources import KINDS
from tests.how_much import examples
from tests.topology import machines

MACHINE = machines.Machine(numa_ids=(0, 1, 6), memory_only=(9,), gpu_numa=(6, 1, 0))
VALID: dict[str, list[str]] = {
    "lscpu": [
        machines.lscpu_text(MACHINE),
        machines.lscpu_text(MACHINE, sections=True),
        machines.lscpu_json(MACHINE, nested=True),
        machines.lscpu_table(MACHINE),
        machines.lscpu_table(MACHINE, joined_caches=True),
    ],
    "rocm_smi": [machines.rocm_smi(MACHINE), machines.rocm_smi_json(MACHINE)],
    "amd_smi": [machines.amd_smi_json(MACHINE), "GPU: 0\n    NUMA:\n        NODE: 1\n        AFFINITY: 1\n"],
    "nvidia_smi": [machines.nvidia_smi(MACHINE), machines.nvidia_smi(MACHINE, tabs=False, colour=True)],
    "numactl": [machines.numactl(MACHINE), machines.numactl(MACHINE, width=60)],
    "hwloc": [machines.hwloc_xml(MACHINE, 1), machines.hwloc_xml(MACHINE, 2)],
}
PIECES = [
    *[
        "",
        "\n",
        "\t",
        " ",
        ",",
        "-",
        ":",
        "[",
        "]",
        "{",
        "}",
        '"',
        "<",
        ">",
        "&",
        "0",
        "-1",
        "4294967295",
        "N/A",
    ],
    *[
        "\x00",
        "\x1b[31m",
        "\ufeff",
        "\u0664",
        "9" * 30,
        "null",
        "NaN",
        "GPU[0]",
        "node 0 cpus:",
        "NUMA node0 CPU(s):",
    ],
    *["# CPU,Core", "<object type='PU' os_index='1'/>", "0-65535", "1e999", "\udcff", "²"],
]
some = settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read_or_refuse(read: Callable[[str, str], Partial], text: str) -> Partial | None:
    try:
        partial = read(text, "fuzz")
        merge([partial])
    except BadInputError as error:
        refusal = error
    else:
        return partial
    assert 0 < len(str(refusal)) < 2000
    return None


def mutated(text: str, seed: int) -> str:
    """Damage a text as editors, mailers and broken pipes do: cut, doubled, swapped, with foreign pieces."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        start, end = sorted(chance.randint(0, len(text)) for _ in range(2))
        end = min(end, start + chance.choice([0, 1, 3, 40, 400]))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:start] + chance.choice(PIECES) + text[end:]
        elif kind == 1:
            text = text[:end] + text[start:end] + text[end:]
        elif kind == 2:
            text = text[:start] if chance.random() < 0.3 else text[:start] + text[end:]
        else:
            lines = text.split("\n")
            chance.shuffle(lines[: chance.randint(1, 5)])
            lines.insert(chance.randrange(len(lines)), lines[chance.randrange(len(lines))])
            text = "\n".join(lines)
    return text


@some
@given(st.sampled_from(sorted(KINDS)), st.text(max_size=400))
def test_arbitrary_text(kind: str, text: str) -> None:
    read_or_refuse(KINDS[kind], text)


@some
@given(st.sampled_from(sorted(KINDS)), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_heaps_of_pieces(kind: str, text: str) -> None:
    read_or_refuse(KINDS[kind], text)


@pytest.mark.slow
@settings(some, max_examples=examples(100))
@given(st.sampled_from(sorted(KINDS)), st.integers(0, 1 << 32))
def test_damaged_output(kind: str, seed: int) -> None:
    for text in VALID[kind]:
        read_or_refuse(KINDS[kind], mutated(text, seed))


@some
@given(st.permutations(sorted(KINDS)))
def test_every_reader_refuses_or_reads_the_output_of_other_tools(order: list[str]) -> None:
    for kind in order:
        for text in VALID[order[0]]:
            read_or_refuse(KINDS[kind], text)


def test_the_undamaged_texts_are_read() -> None:
    for kind, texts in VALID.items():
        assert all(read_or_refuse(KINDS[kind], text) is not None for text in texts), kind


def test_long_lines_and_deep_nesting_are_read_or_refused_without_delay() -> None:
    for text in (
        "GPU[0]" * 200_000,
        "a:" * 300_000,
        " " * 500_000,
        "[" * 300_000,
        '{"a":' * 100_000,
        "<a>" * 100_000,
    ):
        for read in KINDS.values():
            read_or_refuse(read, text)
    read_or_refuse(KINDS["lscpu"], '{"lscpu": ' + '[{"field": "a:", "children": ' * 2000)
    read_or_refuse(KINDS["hwloc"], "<topology>" + "<info name='a'/>" * 50_000 + "</topology>")
