"""Shells on nodes name the node where they run: HOSTNAME may be that of the node with the job's script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hpclaunch.package_data import resource_dir
from tests.in_one_test import in_one_test

REMOTE = resource_dir("remote")


@in_one_test(
    "file, call",
    [
        ("worker_end.sh", "RANK=3; hpclaunch_worker_end 1"),
        ("mpi_rank_end.sh", "RANK=3; PMI_FD=1; sleep() { :; }; hpclaunch_mpi_rank_end 1"),
        ("flux_rank_end.sh", "FLUX_TASK_RANK=3; sleep() { :; }; flux() { :; }; hpclaunch_flux_rank_end 1"),
        ("bind_here.sh", "RANK=3; hpclaunch_plan_here() { return 1; }; hpclaunch_bind_here"),
        ("private_folders.sh", "X=/tmp/; hpclaunch_is_own() { return 1; }; hpclaunch_private_folders X"),
        ("start_ranks.sh", ""),
    ],
)
def test_another_nodes_name_in_hostname_is_not_told(file: str, call: str) -> None:
    words = ["bash", str(REMOTE / file), "1", "sh", "-c", "exit 3"]
    words = ["bash", "-c", f". '{REMOTE / file}'; {call}"] if call else words
    environment = {**os.environ, "HOSTNAME": "elsewhere"}
    said = subprocess.run(words, capture_output=True, text=True, env=environment).stderr
    assert os.uname().nodename in said
    assert "elsewhere" not in said


@in_one_test("path", sorted(REMOTE.glob("*.sh")))
def test_no_shell_reads_hostname(path: Path) -> None:
    assert "$HOSTNAME" not in path.read_text()
