"""The memory that torch's allocator had at most on a real GPU, next to the prediction of today.

tests/data/scaling/one_gpu.json has what was measured; HPCLAUNCH_TEST_FRAMEWORKS names an environment with
torch and transformers, which traces the networks anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.one_gpu import FILE, predicted

PYTHON = Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"]) / "bin" / "python"
MEASURED = {row["name"]: row["measured"]["allocated_gib"] for row in json.loads(FILE.read_text())["setups"]}
TRAININGS = [
    "gpt2 32 autocast",  # a loss in fp32, halves of weights
    "qwen2 4 pure",  # grouped heads
    "falcon 8 pure",  # attention for which torch has no fused kernel
    "opt 4 autocast",  # gradients that come while saved tensors go
    "regnet 256 pure",  # the largest tensors at the beginning
    "vit_base 128 fp32",
]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("architectures")]


@pytest.mark.parametrize("training", TRAININGS)
def test_memory_is_what_the_allocator_had(training: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert predicted(training, str(PYTHON)).gib == pytest.approx(MEASURED[training], rel=0.05)
