"""Our counts of operations, parameters and memory, compared with torch's own for the same networks.

HPCLAUNCH_TEST_HOROVOD names a virtual environment with torch.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.package_data import resource_dir
from hpclaunch.scaling.memory_need import GIB, SLOTS, MemoryOptions, memory_need
from hpclaunch.scaling.model_table import Model, read_model
from hpclaunch.scaling.strategy_costs import Division
from hpclaunch.site.yaml_tree import read_tree

PYTHON = Path(os.environ["HPCLAUNCH_TEST_HOROVOD"]) / "bin" / "python"
ROOT = Path(__file__).parents[2]
BATCH = 2
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch_counts() -> dict[str, dict[str, int]]:
    command = [str(PYTHON), "-m", "tests.scaling.programs.count_in_torch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


def ours(name: str) -> Model:
    return read_model(read_tree(resource_dir("scaling") / "networks" / f"{name}.yaml"))


@pytest.mark.parametrize("name", ["vgg16", "alexnet", "resnet50", "mnist-cnn", "mlp"])
def test_operations_and_memory_are_those_of_torch(name: str, torch_counts: dict[str, Any]) -> None:
    model, counted = ours(name), torch_counts[name]
    assert BATCH * sum(layer.forward_flops for layer in model.layers) == counted["forward_flops"]
    assert BATCH * sum(layer.backward_flops for layer in model.layers) == counted["backward_flops"]
    assert model.weights == counted["weights"]
    options = MemoryOptions(slots=SLOTS["momentum"])
    need = memory_need("data", model, [model.layers], Division(BATCH * 4, 4), options)
    assert need.total * GIB == pytest.approx(3 * 4 * counted["weights"] + counted["saved_bytes"], rel=0.01)
