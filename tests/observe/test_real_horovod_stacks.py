"""``hpclaunch stacks`` on torch's DDP over gloo, one rank of which calls another collective.

HPCLAUNCH_TEST_HOROVOD names the virtual environment that has torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PYTHON = str(Path(os.environ["HPCLAUNCH_TEST_HOROVOD"]) / "bin" / "python")
TRAIN = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
for step in range(4):
    if step == 3:
        print("HERE", flush=True)
        if dist.get_rank() == 1:
            dist.all_gather([torch.zeros(2), torch.zeros(2)], torch.ones(2))
    model(torch.ones(2, 3)).sum().backward()
"""


def hpclaunch(*words: str) -> str:
    line = [sys.executable, "-m", "hpclaunch", *words]
    answer = subprocess.run(line, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.mpi
def test_the_flight_recorder_tells_which_collectives_do_not_match(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAIN)
    words = ("--site", "local", "--tasks", "2", "--framework", "torch", "--no-wait")
    job = hpclaunch("submit", *words, "--", PYTHON, str(program)).strip()
    try:
        while hpclaunch("logs", job).count("HERE") < 2:
            time.sleep(0.5)
        time.sleep(1.0)
        found: dict[str, Any] = json.loads(hpclaunch("stacks", job, "--json"))
    finally:
        hpclaunch("cancel", job)
    assert (found["kind"], found["suspects"]) == ("mismatch", [0, 1])  # of two, none is the majority
    first, second = found["by_rank"]
    assert (first["what"], first["at"]) == ("allreduce", "train.py:10")
    assert (second["what"], second["at"]) == ("allgather", "train.py:9")
    assert first["number"] == second["number"] is not None
