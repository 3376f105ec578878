"""A node saved with ``save_node`` reads like the node."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.topology.capture import save_node
from hpclaunch.topology.sources import read_folder, read_live
from tests.topology import machines

MACHINE = machines.Machine(gpu_numa=(1, 0), gpu_cpus_l3=True)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with GPUs of the compute driver and a NIC of two names, read instead of this one."""
    root = machines.write_sysfs(MACHINE, tmp_path / "tree", allowed="0-7")
    machines.kfd_node(root, 1, 440, int(MACHINE.bus(1)[5:7], 16) << 8)
    machines.kfd_node(root, 2, 440, int(MACHINE.bus(0)[5:7], 16) << 8)
    machines.pci_device(root, "0000:21:00.0", "0x020000", "0x17db", 1, "0-3")
    machines.network_device(root, "cxi", "cxi0", "0000:21:00.0")
    machines.network_device(root, "net", "hsn0", "0000:21:00.0")
    monkeypatch.setenv("HPCLAUNCH_SYSROOT", str(root))
    return root


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but fake tools, which a test adds."""
    folder = tmp_path / "fake-tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake(tools: Path, name: str, script: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def test_a_copied_tree_reads_like_the_tree(tree: Path, tmp_path: Path) -> None:
    absent = save_node(tmp_path / "saved")
    original, copy = read_live(), read_folder(tmp_path / "saved")
    for field in ("cores", "numa_nodes", "gpus", "nics", "allowed"):
        assert getattr(copy, field) == getattr(original, field), field
    assert [gpu.bus_id for gpu in copy.gpus] == [MACHINE.bus(1), MACHINE.bus(0)]
    assert [nic.name for nic in copy.nics] == ["cxi0"]
    assert absent == (f"no tool was run: the description is that of {tree}",)


@pytest.mark.usefixtures("tree")
def test_of_the_process_only_its_cpus_are_saved(tmp_path: Path) -> None:
    save_node(tmp_path / "saved")
    status = (tmp_path / "saved/sysfs/proc/self/status").read_text()
    assert status == "Cpus_allowed_list:\t0-7\n"


def test_this_machine_with_tools_that_work_fail_or_are_missing(tools: Path, tmp_path: Path) -> None:
    cpus = ",".join(str(cpu) for cpu in sorted(read_live().cpus))
    fake(tools, "lscpu", f'[ $# = 0 ] && echo "NUMA node0 CPU(s): {cpus}" && echo "lang: $LC_ALL"; true')
    fake(tools, "nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not reach the driver'")
    fake(tools, "rocm-smi", "exit 7")
    absent = save_node(tmp_path / "saved")
    assert "lang: C\n" in (tmp_path / "saved/lscpu.txt").read_text()
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "lscpu.txt",
        "sysfs",
        "topology.json",
    ]
    missing = "\n".join(absent)
    assert "numactl: no such program" in missing
    assert "rocm-smi --showtoponuma --showbus ended with exit status 7" in missing
    assert "the output of nvidia-smi cannot be read" in missing
    assert json.loads((tmp_path / "saved/topology.json").read_text()) == {"format": 1, "absent": list(absent)}
    assert read_folder(tmp_path / "saved").cores == read_live().cores


@pytest.mark.usefixtures("tree")
def test_an_older_description_is_replaced_and_other_folders_are_not(tmp_path: Path) -> None:
    target = tmp_path / "saved"
    save_node(target)
    (target / "lscpu.txt").write_text("old")
    save_node(target)
    assert not (target / "lscpu.txt").exists()
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter1").write_text("words")
    with pytest.raises(BadInputError, match="exists and is not a saved topology"):
        save_node(other)
    assert (other / "chapter1").read_text() == "words"


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HPCLAUNCH_SYSROOT", str(tmp_path / "empty"))
    with pytest.raises(BadInputError, match="no CPU in"):
        save_node(tmp_path / "saved")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be written"):
        save_node(tmp_path / "file/saved")
    assert sorted(os.listdir(tmp_path)) == ["empty", "file"]
