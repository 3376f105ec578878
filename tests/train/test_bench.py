"""``python -m hpclaunch.train bench`` as its users start it."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from datetime import datetime
from pathlib import Path

import pytest

import hpclaunch.train
from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.measure_allreduces import size_in_bytes
from tests.train.mpirun import refusals, run_ranks

BENCH = (sys.executable, "-m", "hpclaunch.train", "bench")


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
@pytest.mark.mpi
def test_it_reports_each_algorithm_size_and_kind_of_buffer(fresh: tuple[str, ...]) -> None:
    options = ("--sizes", "4K,64K", "--algorithms", ",".join(ALLREDUCES), "--rounds", "1")
    done = run_ranks(2, *BENCH, *options, *fresh)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ranks"] == 2
    assert document["host_by_rank"] == [platform.node()] * 2
    assert document["ranks_by_host"] == {platform.node(): 2}
    assert all(cpus for cpus in document["cpus_by_rank"])
    assert set(document["versions"]) == {"python", "numpy", "mpi4py", "mpi"}
    assert datetime.fromisoformat(document["date"]).date()
    assert (document["rounds"], document["fresh"], document["threads_per_rank"]) == (1, bool(fresh), 1)
    rows = document["rows"]
    in_window = {"hierarchical", "shared"}
    expected = {(name, size, "array") for name in ALLREDUCES for size in (4096, 65536)}
    expected |= {(name, size, "window") for name in in_window for size in (4096, 65536)}
    assert {(row["algorithm"], row["bytes"], row["buffer"]) for row in rows} == expected
    assert len(rows) == len(expected)
    for row in rows:
        assert row["ranks"] == 2
        assert row["algbw_gb_s"] == pytest.approx(row["bytes"] / row["median_us"] / 1000)
        assert row["busbw_gb_s"] == pytest.approx(row["algbw_gb_s"])  # 2(p-1)/p is 1


@pytest.mark.mpi
def test_it_runs_from_a_copied_folder(tmp_path: Path) -> None:
    shutil.copytree(Path(hpclaunch.train.__file__).parent, tmp_path / "copied")
    program = (
        "import runpy, sys; sys.path[:0] = [sys.argv.pop(1)]; "
        "runpy.run_module('copied', run_name='__main__', alter_sys=True)"
    )
    done = run_ranks(2, sys.executable, "-c", program, tmp_path, "bench", "--sizes", "4K", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 4  # shared has two


def test_k_is_1024() -> None:
    assert [size_in_bytes(text) for text in ("4", "4K", "1m", "1G")] == [4, 4096, 1 << 20, 1 << 30]


WRONG = (
    (("--sizes", "3"), 2),
    (("--sizes", "x"), 2),
    (("--algorithms", "rign"), 2),
    (("--rounds", "0"), 3),
)


@pytest.mark.mpi
def test_a_wrong_option_is_refused_once_by_name() -> None:
    answers = refusals(*([options] * 2 for options, _ in WRONG), module="hpclaunch.train.measure_allreduces")
    for (options, code), done in zip(WRONG, answers, strict=True):
        assert done.codes == {code}, options
        assert done.stderr.count("hpclaunch.train bench: ") == 1, options
        assert options[1] in done.stderr
    assert run_ranks(2, *BENCH, *WRONG[0][0]).returncode == 2


@pytest.mark.mpi
def test_its_help_is_printed_once_with_defaults_and_what_it_is_not() -> None:
    done = run_ranks(2, *BENCH, "--help")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert text.count("usage:") == 1
    for said in ("default: 4K,64K,1M,16M", "default: ring,shared,mpi", "default: 7", "on CPUs", "no GPU"):
        assert said in text


@pytest.mark.mpi
def test_one_rank_has_no_bus_bandwidth() -> None:
    options = ("--sizes", "4K", "--algorithms", "ring", "--rounds", "1")
    (row,) = json.loads(run_ranks(1, *BENCH, *options).stdout)["rows"]
    assert row["busbw_gb_s"] is None
