"""Outputs of nccl-tests, OSU and our benchmark as the bandwidth and latency of a prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpclaunch.check.check_report import AllreduceTimes, Check, make_report
from hpclaunch.errors import BadInputError
from hpclaunch.json_document import document_text
from hpclaunch.scaling.link_tests import read_link_test
from tests.in_one_test import in_one_test
from tests.scaling.test_predict import SITE, vgg

# Olivia, 2 nodes of 4 GH200: sizes and times as its pages print them, rank lines as the program writes them.
TIMES_US = {8: 24.0, 4096: 32.0, 65536: 60.0, 1048576: 90.0, 8388608: 290.0, 134217728: 2309.0}
RANK = "#  Rank {0:2} Group  0 Pid 2989375 on gpu-1-1 device  {0} [0009:01:00] NVIDIA GH200 120GB"
ROW = (
    "{0:12} {1:13}     float     sum      -1  {2:7.2f}  {3:6.2f}  {3:6.2f}       0  {2:7.2f}    0.48    0.24"
)
NCCL = "\n".join(
    [
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20",
        "# Using devices",
        *map(RANK.format, range(8)),
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)",
        *(ROW.format(size, size // 4, time, size / time / 1e3) for size, time in TIMES_US.items()),
        "# Avg bus bandwidth    : 1.5",
    ]
)


def test_an_output_of_nccl_tests() -> None:
    test = read_link_test(NCCL, "nccl.txt", None)
    assert (test.program, test.ranks) == ("nccl-tests", 8)
    assert test.seconds == {size: pytest.approx(time * 1e-6) for size, time in TIMES_US.items()}
    assert test.latency_s == pytest.approx(24e-6 / 14)
    # 14 / 8 x bytes / (time - 24 us)
    assert test.bandwidth_gb_s(134217728) == pytest.approx(14 / 8 * 134217728 / 2285e-6 / 1e9)
    assert test.bandwidth_gb_s(1e12) == test.bandwidth_gb_s(134217728)


def test_each_size_is_predicted_by_its_piece() -> None:
    """One latency and one bandwidth miss the middle sizes by half; the pieces give every size again."""
    test = read_link_test(NCCL, "nccl.txt", None)
    for size, time in TIMES_US.items():
        if size > 8:
            again = 14 * test.latency_s + 14 / 8 * size / (test.bandwidth_gb_s(size) * 1e9)
            assert again == pytest.approx(time * 1e-6)
    one_beta = 14 * test.latency_s + 14 / 8 * 65536 / (test.bandwidth_gb_s(134217728) * 1e9)
    assert one_beta < 0.5 * TIMES_US[65536] * 1e-6


def test_an_output_of_osu_needs_its_ranks() -> None:
    text = "# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n"
    text += "4                      10.05\n1024                   23.24\n4194304              816.53\n"
    assert read_link_test(text, "osu.txt", 4).seconds[1024] == pytest.approx(23.24e-6)
    with pytest.raises(BadInputError, match="--network-test-gpus"):
        read_link_test(text, "osu.txt", None)


def bench(*rows: tuple[str, str, float], hosts: int = 1, **facts: object) -> str:
    """A document of our benchmark with two ranks: algorithm, buffer, microseconds of 1 MiB; 4 KiB is 3 us."""
    common = {"ranks": 2, "ranks_by_host": {f"n{host}": 2 // hosts for host in range(hosts)}}
    sums = [
        {"algorithm": name, "ranks": 2, "buffer": buffer, "bytes": size, "median_us": time}
        for name, buffer, long in rows
        for size, time in ((4096, 3.0), (1 << 20, long))
    ]
    return json.dumps({**common, **facts, "rows": sums})


SUMS = (("ring", "array", 120.0), ("shared", "window", 30.0), ("shared", "array", 80.0))


def test_of_our_benchmark_the_allreduce_of_the_training_counts() -> None:
    """By default a training on one node uses the ring; shared memory, four times as fast, would mislead."""

    def read(text: str, name: str | None = None) -> tuple[str, float]:
        test = read_link_test(text, "bench.json", None, name)
        return test.program.removeprefix("hpclaunch bench, "), round(1e6 * test.seconds[1 << 20])

    assert read(bench(*SUMS)) == ("ring", 120)
    assert read(bench(*SUMS), "shared") == ("shared", 30)
    several = (*SUMS, ("hierarchical", "array", 200.0))
    assert read(bench(*several, hosts=2)) == ("hierarchical", 200)
    assert read(bench(*SUMS[1:])) == ("the fastest of shared", 30)
    with pytest.raises(BadInputError, match="no times of the allreduce tree"):
        read_link_test(bench(*SUMS), "bench.json", None, "tree")
    with pytest.raises(BadInputError, match="the output of nccl-tests does not name algorithms"):
        read_link_test(NCCL, "nccl.txt", None, "ring")


def test_sums_of_the_same_array_are_less_certain(tmp_path: Path) -> None:
    """They are in the caches, which gradients are not."""
    (tmp_path / "four.yaml").write_text(SITE)
    found = []
    for fresh in (False, True):
        (tmp_path / "bench.json").write_text(bench(*SUMS, fresh=fresh))
        options = ("--gpus", 2, "--strategy", "data", "--network-test", tmp_path / "bench.json")
        parameters = vgg(str(tmp_path / "four.yaml"), *options)["parameters"]
        found.append({one["name"]: one for one in parameters}["node_gb_s"])
    assert [one["uncertainty"] for one in found] == [1.0, 0.3]
    assert "one array again and again: without --fresh" in found[0]["origin"]
    assert "ring on 2 GPUs, bench.json, each array newly written" in found[1]["origin"]


@in_one_test("text", ["", "hello", '{"rows": 3}', "# OSU MPI Latency Test v7.3\n4  1.0\n8  2.0\n"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match=r"x\.txt: "):
        read_link_test(text, "x.txt", 2)


def test_the_prediction_takes_it_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "four.yaml").write_text(SITE)
    (tmp_path / "nccl.txt").write_text(NCCL)
    options = ("--gpus", 8, "--strategy", "data", "--network-test", tmp_path / "nccl.txt")
    found = vgg(str(tmp_path / "four.yaml"), *options)
    network = {one["name"]: one for one in found["parameters"]}["network_gb_s"]
    assert network["value"] == pytest.approx(14 / 8 * 134217728 / 2285e-6 / 1e9)
    assert network["origin"] == "measured: nccl-tests on 8 GPUs, nccl.txt, at 553.4 MB"


def test_the_document_of_a_check() -> None:
    """The times of ``hpclaunch check --allreduce-test --json``; one without a passed test is refused."""
    times = AllreduceTimes(ranks=2, seconds={"4096": 20e-6, "1048576": 1e-3})
    report = make_report([Check(name="allreduce", status="have", evidence="", times=times)], [])
    test = read_link_test(document_text(report), "check.json", None)
    assert test.ranks == 2
    assert test.seconds == pytest.approx({4096: 20e-6, 1048576: 1e-3})
    failed = make_report([Check(name="allreduce", status="missing", evidence="wrong sums")], [])
    with pytest.raises(BadInputError, match="nor of check --allreduce-test"):
        read_link_test(document_text(failed), "check.json", None)
