"""What ``hpclaunch bench`` shows of a measurement, and the command itself on ranks of this machine."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

import hpclaunch
from hpclaunch.errors import BadInputError
from hpclaunch.job.program_check import option_problems
from hpclaunch.scaling.bench_report import as_csv, as_svg, as_text, bench_of
from hpclaunch.scaling.link_tests import Bench, read_link_test
from tests.in_process import hpclaunch_here

TIMES = {
    ("ring", "array"): (20.0, 400.0),
    ("hierarchical", "window"): (5.0, 125.0),
    ("hierarchical", "array"): (8.0, 250.0),
    ("mpi", "array"): (10.0, 500.0),
    ("copy", "array"): (1.0, 100.0),
}
DOCUMENT = {
    "ranks": 4,
    "rounds": 7,
    "date": "2026-11-25T10:00:00+00:00",
    "ranks_by_host": {"n1": 2, "n2": 2},
    "versions": {"mpi": "Open MPI v5.0.11, package: somebody's"},
    "rows": [
        {
            **{"algorithm": name, "buffer": buffer, "bytes": size, "median_us": time, "ranks": 4},
            **{"algbw_gb_s": size / time / 1000, "busbw_gb_s": 1.5 * size / time / 1000},
        }
        for at, size in enumerate((4096, 1 << 20))
        for (name, buffer), times in TIMES.items()
        for time in times[at : at + 1]
    ],
}


@pytest.fixture
def bench() -> Bench:
    return bench_of(DOCUMENT, "1")


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_the_table_fits_the_terminal_and_says_what_it_leaves_out(bench: Bench, columns: int) -> None:
    table = as_text(bench, columns).partition("4 ranks on")[0]
    assert max(map(len, table.splitlines())) <= columns
    assert ("not shown: " in table) == (columns < 80)


def test_the_table_compares_with_mpi_and_with_a_copy(bench: Bench) -> None:
    lines = [re.split(r"  +", line) for line in as_text(bench).splitlines()]
    assert lines[1] == ["4,096", "ring", "array", "20.0", "0.307", "0.50 x", "5.0%"]
    assert lines[7] == ["1,048,576", "hierarchical", "window", "125.0", "12.583", "4.00 x", "80.0%"]
    assert lines[5] == ["4,096", "copy", "array", "1.0", "-", "-", "-"]
    assert "4 ranks on 2 hosts, 2026-11-25;" in as_text(bench)
    assert "MPI_Allreduce (Open MPI v5.0.11) is 1" in as_text(bench)


def test_csv_has_the_numbers_and_nothing_where_nothing_was_measured(bench: Bench) -> None:
    rows = list(csv.DictReader(as_csv(bench).splitlines()))
    assert (rows[0]["against_mpi"], rows[0]["of_memory_limit"], rows[4]["against_mpi"]) == ("0.5", "0.05", "")
    alone = msgspec.structs.replace(bench, rows=[row for row in bench.rows if row.algorithm == "ring"])
    (first, _) = csv.DictReader(as_csv(alone).splitlines())
    assert (first["median_us"], first["against_mpi"], first["of_memory_limit"]) == ("20.0", "", "")


def test_the_picture_has_a_line_for_each_and_tells_them_apart_without_colour(bench: Bench) -> None:
    root = ET.fromstring(as_svg(bench))
    space = {"s": "http://www.w3.org/2000/svg"}
    lines = root.findall("s:g", space)
    titles = [line.findtext("s:title", "", space) for line in lines]
    assert titles == [
        "ring, array",
        "hierarchical, window",
        "hierarchical, array",
        "mpi, array",
        "limit of memory (copy)",
    ]
    drawn = [line.find("s:polyline", space) for line in lines]
    looks = {
        (each.get("stroke-dasharray"), len(line.findall("s:circle", space)))
        for each, line in zip(drawn, lines, strict=True)
        if each is not None
    }
    assert len(looks) == len(lines)
    heights = [float(each.get("points", "").split()[-1].split(",")[1]) for each in drawn if each is not None]
    assert heights.index(max(heights)) == titles.index("limit of memory (copy)"), (
        "the shortest time is lowest"
    )
    assert ET.fromstring(as_svg(msgspec.structs.replace(bench, rows=bench.rows[:1]))) is not None


def test_a_result_of_another_job_is_refused() -> None:
    with pytest.raises(BadInputError, match="job 7 is not one of hpclaunch bench"):
        bench_of({"test_accuracy": 0.9}, "7")
    with pytest.raises(BadInputError, match="job 8 is not one"):
        bench_of(None, "8")


def test_a_copy_is_no_network_test() -> None:
    """Not even the fastest of those that name no usual algorithm."""
    rows = [row for row in DOCUMENT["rows"] if row["algorithm"] in ("mpi", "copy")]  # type: ignore[attr-defined]
    test = read_link_test(json.dumps({**DOCUMENT, "rows": rows}), "file", None)
    assert test.seconds[4096] == pytest.approx(10e-6)
    assert "copy" not in test.program


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "hpclaunch", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.mpi
def test_the_command_measures_shows_and_shows_again(tmp_path: Path) -> None:
    words = ("--tasks", "2", "--sizes", "4K,8K", "--algorithms", "ring,mpi,copy", "--rounds", "1")
    done = command("bench", *words, "--json", "--picture", "b.svg", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [(row["algorithm"], row["bytes"]) for row in document["rows"]] == [
        (name, size) for size in (4096, 8192) for name in ("ring", "mpi", "copy")
    ]
    assert document["ranks"] == 2
    assert all(row["median_us"] > 0 for row in document["rows"])
    assert "limit of memory" in (tmp_path / "b.svg").read_text()
    again = command("bench", "last", "--csv", folder=tmp_path)
    assert len(again.stdout.splitlines()) == 7
    assert str(document["rows"][0]["median_us"]) in again.stdout
    test = read_link_test(done.stdout, "test.json", None, "mpi")
    mpi = [row["median_us"] for row in document["rows"] if row["algorithm"] == "mpi"]
    assert [1e6 * seconds for seconds in test.seconds.values()] == pytest.approx(mpi)


@pytest.mark.slow
def test_wrong_options_are_refused_before_a_job_waits_in_a_queue(tmp_path: Path) -> None:
    for words, said in (
        (["--algorithms", "rign"], "'rign' is not an algorithm; there are copy, halving-doubling,"),
        (["--sizes", "3"], "'3' is not a size"),
        (["--checkpoint-dir", "x"], "unrecognized arguments: --checkpoint-dir"),
    ):
        job = hpclaunch.Job(command=["mnist", "bench", *words], site="lumi-g", account="project_465000001")
        (problem,) = option_problems(job.prepared.request)
        assert said in problem.message
    right = hpclaunch.Job(
        command=["mnist", "bench", "--sizes", "4K"], site="lumi-g", account="project_465000001"
    )
    assert option_problems(right.prepared.request) == ()
    assert "hpclaunch.train bench --sizes 4K" in right.script()
    done = hpclaunch_here("bench", "--picture", "b.png", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "SVG" in done.stderr


@pytest.mark.mpi
def test_a_wrong_option_is_refused_and_a_failed_job_says_why(tmp_path: Path) -> None:
    done = command("bench", "--tasks", "2", "--algorithms", "rign", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "'rign' is not an algorithm" in done.stderr
    failed = hpclaunch.Job(command=["sh", "-c", "exit 5"], site="local", tasks=1).submit()
    failed.wait()
    done = command("bench", failed.id, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"job {failed.id} failed" in done.stderr
