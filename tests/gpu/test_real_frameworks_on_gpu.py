"""benchmarks/on_gpu.sh, all of it, where torch has no GPU: two GPUs made up in /sys and a fake nvidia-smi."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.kit import FAKES, with_gpus

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NAMES = (
    *("topology", "visibility", "distinct-gpus", "ddp", "check", "timeline"),
    *("stacks", "stacks-others", "report", "memory"),
)


def on_gpu(tmp_path: Path, **environment: str) -> tuple[int, dict[str, list[str]]]:
    """Run the script and return its exit status and its summary, by the names of the findings."""
    with_gpus(tmp_path / "root")
    env = {
        **os.environ,
        "PATH": f"{FAKES}:{os.environ['PATH']}",
        "HPCLAUNCH_SYSROOT": str(tmp_path / "root"),
        "HPCLAUNCH": shlex.join([sys.executable, "-m", "hpclaunch"]),
        "PYTHON": str(Path(os.environ.get("HPCLAUNCH_TEST_FRAMEWORKS", "")) / "bin" / "python"),
        "PYTHONPATH": str(BENCHMARKS.parent),
        **environment,
    }
    done = subprocess.run([BENCHMARKS / "on_gpu.sh", tmp_path / "out"], env=env, stdout=subprocess.DEVNULL)
    rows = [line.split("\t") for line in (tmp_path / "out" / "summary.tsv").read_text().splitlines()]
    return done.returncode, {name: rest for name, *rest in rows}


def test_each_part_runs_and_claims_nothing_of_a_gpu(tmp_path: Path) -> None:
    status, found = on_gpu(tmp_path)
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(NAMES, "rehearsed"), found
    assert status == 0
    assert all(text.startswith("no GPU here: ") for _, text in found.values())
    assert "the other ranks wait for [1]" in found["stacks-others"][1]
    assert "GPUs only: their power at each look" in found["report"][1]
    fixture = tmp_path / "fake"
    keep = [sys.executable, str(BENCHMARKS / "keep_gpu_outputs.py"), str(tmp_path / "out"), str(fixture)]
    subprocess.run(keep, check=True, stdout=subprocess.DEVNULL)
    texts = [file.read_bytes() for file in fixture.rglob("*") if file.is_file()]
    private = (b"abcd0000-1111", str(tmp_path / "out").encode(), str(BENCHMARKS).encode())
    assert [word for word in private for text in texts if word in text] == []


def test_parts_that_fail_do_not_stop_the_next_ones(tmp_path: Path) -> None:
    """Without nvidia-smi the GPUs of /sys are listed nowhere else, and this Python has no torch."""
    status, found = on_gpu(tmp_path, PATH=os.environ["PATH"], PYTHON=sys.executable)
    assert status == 1
    assert found.pop("topology")[0] == "failed"
    others = ("visibility", "ddp", "check", "timeline", "stacks", "report", "memory")
    assert found == {name: ["not-run", "PYTHON has no torch"] for name in others}
