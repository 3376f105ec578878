"""Samples of nodes line by line, as the sampler and the tools of GPUs write them."""

from __future__ import annotations

from typing import Any

import pytest

from hpclaunch.usage.node_samples import NodeRun, NodeSample, RankSample, intervals, read_samples
from tests.in_one_test import in_one_test

BEGIN = "start 1000 every=30 run=2 cpus=4 mem=1024 cgroup=job\n"


def one(lines: str, begin: str = BEGIN) -> NodeRun:
    file = read_samples("n1", begin + lines)
    assert file.damaged == 0
    (run,) = file.runs
    return run


def test_the_head_of_a_run_says_what_it_does_and_an_old_one_nothing() -> None:
    run = one("end 1090\n")
    assert (run.start, run.every, run.label, run.cpus, run.end) == (1000, 30, "2", 4, 1090)
    assert (run.memory_of, run.own_cgroup) == (1024 * 1024, True)
    old = one("", "start 1000\n")
    assert (old.every, old.label, old.cpus, old.memory_of, old.own_cgroup) == (0, "0", 0, 0, False)
    assert one("", "start 1000 cgroup=user\n").own_cgroup is False


def test_ranks_belong_to_the_run_that_began_within_five_minutes_after_or_one_before() -> None:
    """A sampler begins when the first rank of its node has; the other ones may come later."""
    text = "rank 0 77 699\nrank 1 78 700\n" + BEGIN + "rank 2 79 1060\nrank 3 80 1061\nstart 1361\n"
    first, second = read_samples("n1", text).runs
    assert first.ranks_started == {1: 700, 2: 1060}
    assert second.ranks_started == {3: 1061}


def test_looks_are_in_bytes_and_seconds() -> None:
    run = one("node 1000 cpu=10/40 mem=512 now=5 limit=max e0=100/900\nproc 1030 7 250 100 200 3\n")
    assert run.looks == [NodeSample(1000, 10, 40, 512 * 1024, {"now": 5}, {"e0": (100, 900)})]
    assert run.ranks == {7: [RankSample(1030, 2.5, 100 * 1024, 200 * 1024)]}
    assert run.last == 1000, "the last look at the node"
    assert one("node 1000 cpu=1/4 mem=5\nend 1200\n").last == 1200
    assert one("").last == 1000


@in_one_test(
    "line, name, busy, used, of, watts",
    [
        ("gpu 1000 0000:c1:00.0 40 100 200 250000000", "0000:c1:00.0", 40.0, 100, 200, 250.0),
        ("gpu 1000 card1 - - - -", "card1", None, None, None, None),
        ("nvidia-smi 1000 00000000:C1:00.0, 40, 1, 2, 99.5", "0000:c1:00.0", 40.0, 1 << 20, 2 << 20, 99.5),
        (
            "nvidia-smi 1000 00000000:C1:00.0, [N/A], 1 MiB, 2 MiB, [N/A]",
            "0000:c1:00.0",
            None,
            1 << 20,
            2 << 20,
            None,
        ),
    ],
)
def test_a_gpu_in_one_line(line: str, name: str, busy: Any, used: Any, of: Any, watts: Any) -> None:
    ((found, (sample,)),) = one(f"{line}\n").gpus.items()
    assert (found, sample.busy, sample.memory, sample.memory_of, sample.power_w) == (
        name,
        busy,
        used,
        of,
        watts,
    )
    assert sample.time == 1000


def test_tables_of_amd_have_their_columns_by_name_and_other_words_before_them() -> None:
    amd = (
        "amd-smi 1000 WARNING: something\namd-smi 1000 gpu,gfx_activity,used_vram,total_vram,socket_power\n"
        "amd-smi 1000 3,40,100,200,250\namd-smi 1030 3,N/A,100,200,251\n"
    )
    run = one(amd)
    assert run.gpu_source == "amd-smi"
    assert [(one.time, one.busy, one.memory, one.memory_of, one.power_w) for one in run.gpus["3"]] == [
        (1000, 40.0, 100 << 20, 200 << 20, 250.0),
        (1030, None, 100 << 20, 200 << 20, 251.0),
    ]
    head = "device,PCI Bus,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)"
    head += ",Average Package Power (W)"
    rocm = f"rocm-smi 1000 {head}\nrocm-smi 1000 card0,0000:C1:00.0,50,2048,1024,90\n"
    ((name, (sample,)),) = one(rocm).gpus.items()
    assert (name, sample.busy, sample.memory, sample.memory_of, sample.power_w) == (
        "0000:c1:00.0",
        50.0,
        1024,
        2048,
        90.0,
    )
    short = one(f"rocm-smi 1000 {head}\nrocm-smi 1000 card0,too,short\n")
    assert short.gpus == {}
    system = read_samples("n1", f"{BEGIN}rocm-smi 1000 {head}\nrocm-smi 1000 system,,,,,\n")
    assert (system.damaged, system.runs[0].gpus) == (1, {})


def test_lines_before_any_run_or_of_another_kind_are_damaged() -> None:
    file = read_samples("n1", f"node 1000 cpu=1/4 mem=5\n{BEGIN}what 1000 x\nnvidia-smi 1000 a, b\n\nend x\n")
    assert (file.damaged, len(file.runs), file.runs[0].end) == (5, 1, None)


def test_time_passes_between_looks_or_they_are_no_interval() -> None:
    run = one("".join(f"node {time} cpu={time}/1 mem=5\n" for time in (1000, 1030, 1030, 1060)))
    assert [(a.time, b.time) for a, b in intervals(run)] == [(1000, 1030), (1030, 1060)]


@pytest.mark.parametrize("text", ["", "rank 0 77 1000\n"])
def test_a_file_without_a_run(text: str) -> None:
    assert read_samples("n1", text).runs == ()
