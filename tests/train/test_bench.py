"""``python -m hpclaunch.train.bench`` as its users start it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import hpclaunch.train
from hpclaunch.train.allreduce import ALLREDUCES
from hpclaunch.train.bench import size_in_bytes
from tests.train.mpirun import run_ranks

BENCH = (sys.executable, "-m", "hpclaunch.train.bench")


@pytest.mark.parametrize("fresh", [(), ("--fresh",)])
@pytest.mark.mpi
def test_it_reports_each_algorithm_size_and_kind_of_buffer(fresh: tuple[str, ...]) -> None:
    options = ("--sizes", "4K,64K", "--algorithms", ",".join(ALLREDUCES), "--rounds", "1", "--json")
    done = run_ranks(2, *BENCH, *options, *fresh)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    in_window = {"auto", "hierarchical", "shared"}
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
        "runpy.run_module('copied.bench', run_name='__main__')"
    )
    done = run_ranks(2, sys.executable, "-c", program, tmp_path, "--sizes", "4K", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5  # heading; shared has two


def test_k_is_1024() -> None:
    assert [size_in_bytes(text) for text in ("4", "4K", "1m", "1G")] == [4, 4096, 1 << 20, 1 << 30]


@pytest.mark.parametrize("options", [("--sizes", "3"), ("--sizes", "x"), ("--algorithms", "rign")])
@pytest.mark.mpi
def test_a_wrong_option_is_refused_by_name(options: tuple[str, str]) -> None:
    done = run_ranks(1, *BENCH, *options)
    assert done.returncode == 2
    assert options[1] in done.stderr
