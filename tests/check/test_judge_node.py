"""Verdicts on the node: GPUs, plugin, clock, space and stripes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hpclaunch.check.check_report import Check
from hpclaunch.check.facts import NodeFacts, Outcome
from hpclaunch.check.judge_node import gpu_names, judge_node, parse_lustre_quota
from hpclaunch.package_data import resource_dir
from hpclaunch.remote.probe import MARK
from tests.check.horovods import make_library
from tests.in_one_test import in_one_test
from tests.profiles import shipped

PROBE = resource_dir("remote") / "probe.py"
LUMI, DAINT = shipped("lumi-g"), shipped("daint")

NVIDIA = "".join(
    f"GPU {i}: NVIDIA GH200 120GB (UUID: GPU-0b3f6e2a-0000-0000-0000-00000000000{i})\n" for i in range(4)
)
ROCM = "".join(
    f"GPU[{i}]\t\t: Device Name: \t\tAMD Instinct MI250X\nGPU[{i}]\t\t: GUID: 1\n" for i in range(8)
)
XPU = "| 0         | Device Name: Intel(R) Data Center GPU Max 1550 |\n"


def outcome(stdout: str = "", **rest: Any) -> Outcome:
    return Outcome(**{"exit_code": 0, "stdout": stdout, **rest})


def probe(**facts: Any) -> Outcome:
    defaults = {"host": "n1", "cwd": "/x", "fs_offset_s": 0.0, "visible": {}, "folders": {}}
    return outcome(MARK + json.dumps({**defaults, **facts}))


def judged(facts: NodeFacts, site: Any = None) -> dict[str, Check]:
    return {check.name: check for check in judge_node(facts, site)}


@in_one_test("tool, text, count", [("nvidia-smi", NVIDIA, 4), ("rocm-smi", ROCM, 8), ("xpu-smi", XPU, 1)])
def test_gpus_are_counted(tool: str, text: str, count: int) -> None:
    assert len(gpu_names(tool, text)) == count


def test_a_gpu_that_fell_off_is_seen() -> None:
    facts = NodeFacts(gpu_tool=outcome(ROCM), gpu_tool_name="rocm-smi", node=probe())
    assert judged(facts, LUMI)["gpus"].status == "have"
    seven = "".join(line for line in ROCM.splitlines(keepends=True) if "GPU[5]" not in line)
    facts = NodeFacts(gpu_tool=outcome(seven), gpu_tool_name="rocm-smi", node=probe())
    found = judged(facts, LUMI)["gpus"]
    assert (found.status, "lists 7 GPUs" in found.evidence) == ("missing", True)


def test_no_tool_may_be_a_login_node() -> None:
    facts = NodeFacts(gpu_tool=outcome(exit_code=127), gpu_tool_name="nvidia-smi", node=probe())
    assert judged(facts, DAINT)["gpus"].status == "unknown"


def test_clock_against_the_file_system() -> None:
    assert judged(NodeFacts(node=probe(fs_offset_s=0.4)))["clock"].status == "have"
    late = judged(NodeFacts(node=probe(fs_offset_s=90.0)))["clock"]
    assert (late.status, "90.0 s behind" in late.evidence) == ("missing", True)
    closed = judged(NodeFacts(node=probe(fs_offset_s=None, fs_error="Read-only file system")))["clock"]
    assert (closed.status, "Read-only" in closed.evidence) == ("unknown", True)


def folder(free_bytes: int, free_inodes: int | None) -> dict[str, Any]:
    return {"/x": {"free_bytes": free_bytes, "free_inodes": free_inodes, "filesystem": "lustre"}}


def test_space_and_inodes() -> None:
    found = judged(NodeFacts(node=probe(folders=folder(5 << 30, 9_999))))
    assert (found["space"].status, found["inodes"].status) == ("have", "missing")
    found = judged(NodeFacts(node=probe(folders=folder((1 << 30) - 1, None))))
    assert (found["space"].status, found["inodes"].status) == ("missing", "have")
    lost = judged(NodeFacts(node=probe(folders={"/x": "FileNotFoundError: /x"})))
    assert (lost["space"].status, "FileNotFoundError" in lost["space"].evidence) == ("missing", True)


# As man lfs-quota shows it; the second with a long path on a separate line and a star over the quota.
QUOTA = "     /lustre  18000000  20000000 20971520       -   99000       0  100000       -\n"
LONG = "/a/very/long/path\n   20971520*  20000000 20971520  6d23h  5  0  0  -\n"


def test_quota_counts_where_it_is_less_than_the_disk() -> None:
    assert parse_lustre_quota(QUOTA) == ((20971520 - 18000000) * 1024, 1000)
    assert parse_lustre_quota(LONG) == (0, None)
    assert parse_lustre_quota("lfs: quota not enabled\n") == (None, None)
    facts = NodeFacts(node=probe(folders=folder(50 << 40, 10**9)), quotas={"/x": outcome(QUOTA)})
    found = judged(facts)
    assert (found["space"].status, found["inodes"].status) == ("have", "missing")
    assert "1000 more files" in found["inodes"].evidence


def test_stripes_with_the_sites_advice() -> None:
    text = "stripe_count:  1 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n"
    found = judged(NodeFacts(stripes=outcome(text)), LUMI)["stripes"]
    assert found.status == "have"
    assert "1 stripes of 1 MiB" in found.evidence
    assert "lfs setstripe" in found.remedy


# --- the network's plugin, through the real loader ---------------------------------------------------------


def load_plugin(folder: Path, **extra: str) -> Check:
    """Ask the probe with this folder on the loader's path."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **extra}
    done = subprocess.run(
        [sys.executable, str(PROBE), "plugin"], env=environment, capture_output=True, text=True, check=True
    )
    return judged(NodeFacts(plugin=outcome(done.stdout)), DAINT)["fabric-plugin"]


def test_a_plugin_that_loads(tmp_path: Path) -> None:
    make_library(tmp_path / "libnccl-net.so", "int ncclNetPlugin_v8;")
    found = load_plugin(tmp_path)
    assert (found.status, "ncclNetPlugin_v8" in found.evidence) == ("have", True)


def test_no_plugin_means_tcp(tmp_path: Path) -> None:
    found = load_plugin(tmp_path)
    assert (found.status, "TCP, silently" in found.remedy) == ("missing", True)


def test_a_plugin_that_lacks_a_library_of_its_own(tmp_path: Path) -> None:
    make_library(tmp_path / "libfabric_made_up.so", "int fi(void) { return 1; }")
    source = "int fi(void); int ncclNetPlugin_v8; int f(void) { return fi(); }"
    make_library(tmp_path / "libnccl-net.so", source, f"-L{tmp_path}", "-lfabric_made_up")
    (tmp_path / "libfabric_made_up.so").unlink()
    found = load_plugin(tmp_path)
    assert (found.status, "libfabric_made_up.so" in found.evidence) == ("missing", True)


def test_a_library_that_is_no_plugin(tmp_path: Path) -> None:
    make_library(tmp_path / "libnccl-net-mine.so", "int other;")
    found = load_plugin(tmp_path, NCCL_NET_PLUGIN="mine")
    assert (found.status, "is not a network plugin" in found.evidence) == ("missing", True)
