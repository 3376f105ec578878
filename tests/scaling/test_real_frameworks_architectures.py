"""What --from-torch counts of public architectures, compared with what torch counts in a real step of them.

HPCLAUNCH_TEST_FRAMEWORKS names the environment of tests/frameworks/build.sh. The networks are built from
configurations, without weights. Each is traced with attention that stores its scores, whose operations torch
counts on a processor; some also with torch's fused attention, of which it counts none there.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpclaunch.cli.main import program
from hpclaunch.scaling.model_table import Model, read_model
from hpclaunch.site.yaml_tree import parse_tree
from tests.scaling.test_model_table import saved_bytes

PYTHON = Path(os.environ["HPCLAUNCH_TEST_FRAMEWORKS"]) / "bin" / "python"
ROOT = Path(__file__).parents[2]
BATCH = 2
NETWORKS = [
    "gpt2", "llama", "mistral", "qwen2", "gemma", "phi3", "gpt-neox", "opt", "bloom", "falcon", "bert",
    "roberta", "electra", "distilbert", "t5", "vit", "deit", "swin", "convnext", "resnet",
    "roformer", "rwkv", "bigbird-pegasus", "mvp",
]  # fmt: skip
FUSED = ["llama", "mistral", "qwen2", "phi3", "gpt-neox", "opt", "vit", "deit"]
"""Those without dropout or a trained bias in attention, with which torch stores the scores on a processor."""
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("architectures")]


@cache
def counted() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for kind, names in (("eager", NETWORKS), ("sdpa", FUSED)):
        command = [str(PYTHON), "-m", "tests.scaling.programs.architectures", kind, *names]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        found.update(json.loads(done.stdout))
    return found


def traced(name: str, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.chdir(ROOT)
    place = f"tests.scaling.programs.architectures:{name}"
    answer = CliRunner().invoke(program, ["predict", "--from-torch", place, "--python", str(PYTHON)])
    assert answer.exit_code == 0, answer.output
    return read_model(parse_tree(answer.stdout, "traced"))


@pytest.mark.parametrize("name", NETWORKS)
def test_counts_are_those_of_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, torch = traced(f"{name.replace('-', '_')}_eager", monkeypatch), counted()[f"{name}_eager"]
    assert model.weights == torch["weights"]
    assert BATCH * sum(layer.forward_flops for layer in model.layers) == torch["forward_flops"]
    backward = BATCH * sum(layer.backward_flops for layer in model.layers)
    if name == "convnext":
        # torch's formula for the gradient of a grouped convolution's weights has no groups: too much.
        assert backward < torch["backward_flops"]
    else:
        assert backward == torch["backward_flops"]
    saved = BATCH * sum(saved_bytes(layer) for layer in model.layers)
    assert saved == pytest.approx(torch["saved_bytes"], rel=0.05)


@pytest.mark.parametrize("name", FUSED)
def test_fused_attention_saves_what_torch_saves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operations are two products, backward five, as torch counts them on a GPU."""
    underscored = name.replace("-", "_")
    model, torch = traced(f"{underscored}_sdpa", monkeypatch), counted()[f"{name}_sdpa"]
    saved = BATCH * sum(saved_bytes(layer) for layer in model.layers)
    assert saved == pytest.approx(torch["saved_bytes"], rel=0.05)
    attention = [layer for layer in model.layers if layer.kind == "attention"]
    others = BATCH * sum(layer.forward_flops for layer in model.layers if layer.kind != "attention")
    assert attention
    assert others == torch["forward_flops"]
    assert all(2 * layer.backward_flops == 5 * layer.forward_flops for layer in attention)
    stored = counted()[f"{name}_eager"]
    assert others + BATCH * sum(layer.forward_flops for layer in attention) == stored["forward_flops"]
