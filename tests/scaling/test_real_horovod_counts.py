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
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.package_data import resource_dir
from hpclaunch.scaling.memory_need import GIB, SLOTS, MemoryOptions, memory_need
from hpclaunch.scaling.model_table import Model, read_model
from hpclaunch.scaling.strategy_costs import Division
from hpclaunch.site.yaml_tree import parse_tree, read_tree
from tests.scaling.test_model_table import saved_bytes

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


@pytest.mark.xdist_group("counts of torch")  # which one worker makes for all
@pytest.mark.parametrize("name", ["vgg16", "alexnet", "resnet50", "mnist-cnn", "mlp"])
def test_operations_and_memory_are_those_of_torch(name: str, torch_counts: dict[str, Any]) -> None:
    model, counted = ours(name), torch_counts[name]
    assert BATCH * sum(layer.forward_flops for layer in model.layers) == counted["forward_flops"]
    assert BATCH * sum(layer.backward_flops for layer in model.layers) == counted["backward_flops"]
    assert model.weights == counted["weights"]
    options = MemoryOptions(slots=SLOTS["momentum"])
    need = memory_need("data", [model.layers], Division(BATCH * 4, 4), options)
    stored = need.total - need.working
    assert stored * GIB == pytest.approx(3 * 4 * counted["weights"] + counted["saved_bytes"], rel=0.01)


@pytest.mark.parametrize(("function", "shape"), [("resnet50", "3,224,224"), ("mnist_cnn", "1,28,28")])
def test_a_traced_network_has_the_table_of_ours(function: str, shape: str) -> None:
    """The same network, by hand as modules of torch and as our table, costs the same layer by layer.

    Of a batch normalisation torch stores its statistics, too.
    """
    place = f"tests.scaling.programs.count_in_torch:{function}"
    words = ["predict", "--from-torch", place, "--input", shape, "--python", str(PYTHON)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        answer = CliRunner().invoke(program, words)
    assert answer.exit_code == 0, answer.output
    traced, table = read_model(parse_tree(answer.stdout, "traced")), ours(function.replace("_", "-"))

    def costs(model: Model) -> list[tuple[int, ...]]:
        kept = [layer for layer in model.layers if layer.kind not in ("softmax", "flatten")]
        return sorted((one.x, one.y, one.weights, one.forward_flops, one.backward_flops) for one in kept)

    assert costs(traced) == costs(table)
    # Of a dropout a processor saves floats, a GPU, as the table has it, bytes.
    masks = 3 * sum(layer.y for layer in table.layers if layer.kind == "dropout")
    saved = [sum(saved_bytes(layer) for layer in model.layers) for model in (traced, table)]
    assert saved[0] == pytest.approx(saved[1] + masks, rel=0.002)


def test_what_cannot_be_traced_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets.py").write_text("from torch import nn\ndef wrong(): return nn.Linear(4, 2)\n")
    monkeypatch.chdir(tmp_path)
    for place, message in (
        ("nets:wrong", "it cannot be run with samples of (3, 8, 8)"),
        ("nets:absent", "has no attribute 'absent'"),
        ("nosuch:f", "No module named 'nosuch'"),
    ):
        words = ["predict", "--from-torch", place, "--input", "3,8,8", "--python", str(PYTHON)]
        answer = CliRunner().invoke(program, words)
        assert answer.exit_code == 3
        assert message in answer.stderr
