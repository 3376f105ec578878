"""A neural network as a table of layers: shapes, parameters, operations and saved tensors of each. Pure.

Operations are counted as torch's counter does: two per multiplication with addition, of convolutions and
linear layers only; backward twice the forward ones, once in the first layer, whose input needs no gradient.
Saved are the tensors that autograd stores for the backward pass, each storage once: inputs of convolutions,
linear layers, normalisations and poolings, results of ReLU.
"""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hpclaunch.errors import BadInputError
from hpclaunch.site.validate import show_keys, to_struct
from hpclaunch.site.yaml_tree import Tree

Kind = Literal[
    "conv", "linear", "relu", "gelu", "batchnorm", "layernorm", "maxpool", "avgpool", "dropout", "flatten",
    "add", "concat", "softmax", "elementwise",
]  # fmt: skip
Count = Annotated[int, Meta(ge=1, le=1 << 40, description="a whole number, at least 1")]
Padding = Annotated[int, Meta(ge=0, le=1 << 20, description="a whole number, at least 0")]
Shape = tuple[int, ...]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the structs of a model's file."""


class Row(_Strict, frozen=True, kw_only=True):
    """One layer. Its input is the row before, or what ``from`` names."""

    name: str
    kind: Kind
    inputs: tuple[str, ...] = msgspec.field(default=(), name="from")
    filters: Count | None = None
    outputs: Count | None = None
    kernel: tuple[Count, ...] = (1, 1)
    stride: tuple[Count, ...] = (1, 1)
    padding: tuple[Padding, ...] = (0, 0)
    dilation: tuple[Count, ...] = (1, 1)
    groups: Count = 1
    bias: bool = True
    size: tuple[Count, ...] = ()
    block: str | None = None


class ModelTable(_Strict, frozen=True, kw_only=True):
    """A model's file."""

    schema: Literal[1]
    name: str
    description: str = ""
    input: tuple[Count, ...]
    samples: Count | None = None
    layers: tuple[Row, ...]


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one row, per sample."""

    name: str
    kind: Kind
    x: int
    """Elements of its inputs."""
    y: int
    """Elements of its output."""
    weights: int
    """Parameters, biases included."""
    forward_flops: int
    backward_flops: int
    channels: int
    """Channels, or features, of the input."""
    filters: int
    """Channels, or features, of the output."""
    area: int
    """Height x width of the output; 1 where it has none."""
    halo_x: int
    """Elements of one border of the input that a neighbour of a spatial split needs."""
    halo_y: int
    """The same of the gradient of the output."""
    saved_bytes: int
    """Bytes that autograd saves here and at no layer before, per sample, of 4-byte elements."""
    block: str

    @property
    def weighted(self) -> bool:
        """Whether it does the arithmetic that strategies divide."""
        return self.kind in ("conv", "linear")


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A network with what each layer costs."""

    name: str
    input: int
    """Elements of one sample."""
    samples: int | None
    layers: tuple[Layer, ...]

    @property
    def weights(self) -> int:
        """Return the number of its parameters."""
        return sum(layer.weights for layer in self.layers)


def read_model(tree: Tree) -> Model:
    """Return the model of a YAML file. Raises BadInputError with file and line."""
    table = to_struct(tree, ModelTable)
    if not table.input:
        raise BadInputError(f"{tree.at(('input',)).where}: input is empty", "write [channels, height, width]")
    if not any(row.kind in ("conv", "linear") for row in table.layers):
        raise BadInputError(f"{tree.at(('layers',)).where}: no layer is a conv or a linear one")
    shapes: dict[str, Shape] = {"input": table.input}
    stored: dict[str, str] = {"input": "input"}
    """Layer -> the layer whose storage holds its output: a view has none."""
    saved: set[str] = set()
    layers: list[Layer] = []
    before, block = "input", "input"
    for number, row in enumerate(table.layers):
        where = tree.at(("layers", number))
        if row.name in shapes:
            raise BadInputError(f"{where.where}: layers[{number}]: the name {row.name!r} is used already")
        inputs = row.inputs or (before,)
        missing = [name for name in inputs if name not in shapes]
        if missing:
            raise BadInputError(
                f"{where.where}: layer {row.name!r}: from names {missing[0]!r}, which is not above it"
            )
        block = row.block or (row.name if row.kind in ("conv", "linear") else block)
        try:
            layer, shape = _layer(
                row, [shapes[name] for name in inputs], first="input" in inputs, block=block
            )
        except ValueError as error:
            place = show_keys(("layers", number))
            raise BadInputError(f"{where.where}: {place}: {row.kind} {row.name!r}: {error}") from None
        shapes[row.name] = shape
        stored[row.name] = stored[inputs[0]] if row.kind == "flatten" else row.name
        keep = {stored[name] for name in _saved_tensors(row, inputs)} - saved
        saved |= keep
        # What is not an output: where a maximum was (8 bytes), the factors of a dropout (4).
        more = {"maxpool": 8, "dropout": 4}.get(row.kind, 0) * layer.y
        size = sum(4 * math.prod(shapes[name]) for name in keep) + more
        layers.append(msgspec.structs.replace(layer, saved_bytes=size))
        before = row.name
    return Model(name=table.name, input=math.prod(table.input), samples=table.samples, layers=tuple(layers))


_SAVES_INPUT = ("conv", "linear", "gelu", "batchnorm", "layernorm", "maxpool", "elementwise")


def _saved_tensors(row: Row, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the layers whose outputs autograd stores for this one."""
    if row.kind in ("relu", "softmax"):
        return (row.name,)
    pooled = row.kind == "avgpool" and row.size != (1, 1)  # pooling to one element is a mean
    return inputs if row.kind in _SAVES_INPUT or pooled else ()


def _layer(row: Row, inputs: list[Shape], *, first: bool, block: str) -> tuple[Layer, Shape]:
    """Return what a row costs, without what it saves, and its output's shape. Raises ValueError."""
    shape = inputs[0]
    out, weights, products, fan = _shape(row, inputs), 0, 0, math.prod(shape)
    if row.kind == "conv":
        per_output = shape[0] // row.groups * math.prod(row.kernel)
        weights = out[0] * per_output + (out[0] if row.bias else 0)
        products = math.prod(out) * per_output
    elif row.kind == "linear":
        weights = shape[-1] * out[-1] + (out[-1] if row.bias else 0)
        products = math.prod(shape) * out[-1]
    elif row.kind in ("batchnorm", "layernorm"):
        weights = 2 * (shape[0] if row.kind == "batchnorm" else shape[-1])
    image = len(shape) == 3
    rows = row.kernel[0] // 2 if row.kind == "conv" else 0
    layer = Layer(
        name=row.name,
        kind=row.kind,
        x=sum(map(math.prod, inputs)) if len(inputs) > 1 else fan,
        y=math.prod(out),
        weights=weights,
        forward_flops=2 * products,
        backward_flops=2 * products * (1 if first else 2),
        channels=shape[0] if image else shape[-1],
        filters=out[0] if len(out) == 3 else out[-1],
        area=out[1] * out[2] if len(out) == 3 else 1,
        halo_x=rows * shape[2] * shape[0] if image else 0,
        halo_y=rows * out[2] * out[0] if image and len(out) == 3 else 0,
        saved_bytes=0,
        block=block,
    )
    return layer, out


def _shape(row: Row, inputs: list[Shape]) -> Shape:
    """Return the shape of the output. Raises ValueError with what is wrong."""
    shape = inputs[0]
    if row.kind == "flatten":
        return (math.prod(shape),)
    if row.kind == "linear":
        if row.outputs is None:
            raise ValueError("it lacks outputs")
        return (*shape[:-1], row.outputs)
    if row.kind in ("conv", "maxpool", "avgpool"):
        return _window(row, shape)
    if row.kind == "add" and any(other != shape for other in inputs):
        raise ValueError(f"its inputs have the shapes {', '.join(map(str, inputs))}")
    if row.kind == "concat":
        if any(other[1:] != shape[1:] for other in inputs):
            raise ValueError(f"its inputs have the shapes {', '.join(map(str, inputs))}")
        return (sum(other[0] for other in inputs), *shape[1:])
    return shape


def _window(row: Row, shape: Shape) -> Shape:
    if len(shape) != 3:
        raise ValueError(f"its input has the shape {shape}, not channels, height, width")
    if row.kind == "conv":
        if row.filters is None:
            raise ValueError("it lacks filters")
        if shape[0] % row.groups or row.filters % row.groups:
            raise ValueError(
                f"{shape[0]} channels and {row.filters} filters are not divisible by {row.groups} groups"
            )
    channels = row.filters if row.kind == "conv" and row.filters else shape[0]
    if row.size:
        return (channels, *_two(row.size, "size"))
    lengths = [_two(getattr(row, name), name) for name in ("padding", "dilation", "kernel", "stride")]
    sides = []
    for side, length in enumerate(shape[1:]):
        padding, dilation, kernel, stride = (both[side] for both in lengths)
        sides.append((length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)
    if min(sides) < 1:
        raise ValueError(f"its window is larger than its input of {shape[1]} x {shape[2]}")
    return (channels, *sides)


def _two(pair: tuple[int, ...], name: str) -> tuple[int, int]:
    if len(pair) != 2:
        raise ValueError(f"{name} has {len(pair)} numbers; it must be [height, width]")
    return pair[0], pair[1]
