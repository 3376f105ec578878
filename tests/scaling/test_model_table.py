"""Tables of layers: shapes, parameters, operations, saved tensors, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.scaling.model_table import Layer, Model, read_model
from hpclaunch.site.yaml_tree import parse_tree, read_tree
from tests.in_one_test import in_one_test

MODELS = sorted((resource_dir("scaling") / "networks").glob("*.yaml"))


def saved_bytes(layer: Layer) -> float:
    return sum(one.bytes(4) for one in layer.saves)


def model(layers: str, shape: str = "[3, 8, 8]") -> Model:
    lines = "".join(f"  - {{{line}}}\n" for line in layers.strip().splitlines())
    return read_model(parse_tree(f"schema: 1\nname: x\ninput: {shape}\nlayers:\n{lines}", "x.yaml"))


@in_one_test(
    "name, weights, products",
    [
        ("vgg16", 138_357_544, 15_470_264_320),
        ("resnet50", 25_557_032, 4_089_184_256),
        ("alexnet", 61_100_840, 714_188_480),
        ("mnist-cnn", 1_199_882, None),
        ("mlp", 235_146, 234_752),
    ],
)
def test_the_models_have_their_published_sizes(name: str, weights: int, products: int | None) -> None:
    """Parameters as torchvision states them, and as our runner has them; products with additions."""
    found = read_model(read_tree(resource_dir("scaling") / "networks" / f"{name}.yaml"))
    assert found.weights == weights
    if products:
        assert sum(layer.forward_flops for layer in found.layers) == 2 * products
    names = {"vgg16", "resnet50", "alexnet", "mnist-cnn", "mlp", "cosmoflow", "transformers"}
    assert {path.stem for path in MODELS} == names


def test_a_convolution_by_hand() -> None:
    """3 x 8 x 8 to 6 x 4 x 4 with 3 x 3, stride 2, padding 1."""
    first, second = model(
        "name: a, kind: conv, filters: 6, kernel: [3, 3], stride: [2, 2], padding: [1, 1]\n"
        "name: b, kind: conv, filters: 6, kernel: [3, 3], padding: [1, 1], groups: 2, bias: false"
    ).layers
    assert (first.x, first.y, first.weights, first.area) == (192, 96, 6 * 27 + 6, 16)
    assert (first.forward_flops, first.backward_flops) == (2 * 96 * 27, 2 * 96 * 27)
    assert (first.halo_x, first.halo_y) == (8 * 3, 4 * 6)
    assert (second.weights, second.forward_flops) == (6 * 27, 2 * 96 * 27)
    assert second.backward_flops == 2 * second.forward_flops


def test_a_storage_is_counted_once() -> None:
    """ReLU saves its result, which the next layers read; a batch normalisation saves what it reads."""
    layers = model(
        "name: a, kind: conv, filters: 2\n"
        "name: norm, kind: batchnorm\n"
        "name: r, kind: relu\n"
        "name: left, kind: conv, filters: 2\n"
        "name: right, kind: conv, filters: 2, from: [r]\n"
        "name: sum, kind: add, from: [left, right]\n"
        "name: pool, kind: maxpool, kernel: [2, 2], stride: [2, 2]\n"
        "name: flat, kind: flatten\n"
        "name: fc, kind: linear, outputs: 10"
    ).layers
    image, features, pooled = 4 * 192, 4 * 128, 4 * 32
    saved = {layer.name: saved_bytes(layer) for layer in layers}
    assert saved == {
        "a": image, "norm": features, "r": features, "left": 0, "right": 0, "sum": 0,
        "pool": features + 2 * pooled, "flat": 0, "fc": pooled,
    }  # fmt: skip


@in_one_test(
    "layers, message",
    [
        ("name: a, kind: relu", "x.yaml:4: no layer is a conv or a linear one"),
        ("name: a, kind: conv", "x.yaml:5: layers[0]: conv 'a': it lacks filters"),
        ("name: a, kind: linear", "lacks outputs"),
        (
            "name: a, kind: linear, outputs: 2\nname: a, kind: relu",
            "x.yaml:6: layers[1]: the name 'a' is used already",
        ),
        ("name: a, kind: conv, filters: 1, from: [z]", "from names 'z', which is not above it"),
        ("name: a, kind: conv, filters: 2, kernel: [9, 9]", "its window is larger than its input of 8 x 8"),
        ("name: a, kind: conv, filters: 2, kernel: [3]", "kernel has 1 numbers"),
        ("name: a, kind: conv, filters: 2, groups: 2", "not divisible by 2 groups"),
        ("name: a, kind: maxpool, kernal: [2, 2]", "unknown key 'kernal'"),
        ("name: a, kind: convolution", "layers[0].kind is 'convolution'; it must be one of conv, linear"),
        ("name: a, kind: flatten\nname: b, kind: conv, filters: 2", "not channels, height, width"),
        (
            "name: a, kind: conv, filters: 2\nname: b, kind: add, from: [a, input]",
            "its inputs have the shapes (2, 8, 8), (3, 8, 8)",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(layers: str, message: str) -> None:
    with pytest.raises(BadInputError) as error:
        model(layers)
    assert message in str(error.value)


@pytest.mark.parametrize(("shape", "message"), [("[]", "input is empty"), ("[0]", "input[0] is 0")])
def test_a_sample_has_a_shape(shape: str, message: str) -> None:
    with pytest.raises(BadInputError) as error:
        model("name: a, kind: linear, outputs: 2", shape)
    assert message in str(error.value)


def test_a_concatenation_adds_channels(tmp_path: Path) -> None:
    both = model("name: a, kind: conv, filters: 5\nname: b, kind: concat, from: [a, input]").layers[1]
    assert (both.y, both.x, both.filters) == (8 * 64, 8 * 64, 8)
