"""A neural network as a table of layers: shapes, parameters, operations and saved tensors of each. Pure.

Operations are counted as torch's counter does: two per multiplication with addition, of convolutions, linear
layers and attention only; backward twice the forward ones, once in the first layer, whose input needs no
gradient, 2.5 times in attention without stored scores, which are computed again. Saved are the tensors that
autograd stores for the backward pass, each storage once: inputs of convolutions, linear layers,
normalisations and poolings, results of ReLU; of attention queries, keys and values with the result, or with
the scores. A file states the layers, or a transformer by its sizes, or what torch counted.
"""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, text_beside
from hpclaunch.site.validate import show_keys, to_struct
from hpclaunch.site.yaml_tree import Tree

Kind = Literal[
    "conv", "linear", "relu", "gelu", "batchnorm", "layernorm", "rmsnorm", "maxpool", "avgpool", "dropout",
    "flatten", "add", "concat", "softmax", "elementwise", "embedding", "positions", "attention",
    "multiply", "tokens", "loss",
]  # fmt: skip
Count = Annotated[int, Meta(ge=1, le=1 << 40, description="a whole number, at least 1")]
Padding = Annotated[int, Meta(ge=0, le=1 << 20, description="a whole number, at least 0")]
Shape = tuple[int, ...]


_KINDS = package_constants("scaling/constants.yaml", "models")


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
    vocabulary: Count | None = None
    heads: Count | None = None
    kv_heads: Count | None = None
    flash: bool = True
    dropout: bool = False
    tied: bool = False
    extra: Padding = 0
    parallel: bool = False


class Transformer(_Strict, frozen=True, kw_only=True):
    """The sizes of a transformer; its input is [tokens], or an image that is cut in patches."""

    blocks: Count
    hidden: Count
    heads: Count
    kv_heads: Count | None = None
    inner: Count | None = None
    mlp: Literal["gelu", "swiglu"] = "gelu"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_first: bool = True
    positions: Literal["learned", "none"] = "learned"
    vocabulary: Count | None = None
    types: Count | None = None
    patch: Count | None = None
    classes: Count | None = None
    biases: bool = True
    tied: bool = True
    flash: bool = True
    dropout: bool = False
    masked: bool = False


class ModelTable(_Strict, frozen=True, kw_only=True):
    """A model's file."""

    schema: Literal[1]
    name: str
    description: str = ""
    input: tuple[Count, ...]
    samples: Count | None = None
    layers: tuple[Row, ...] = ()
    transformer: Transformer | None = None
    counted: tuple["Layer", ...] = ()


class Saved(_Strict, frozen=True, kw_only=True):
    """A tensor that autograd saves, per sample."""

    elements: int = 0
    raw_bytes: int = 0
    parallel: bool = False
    core: bool = False

    def bytes(self, per_element: float) -> float:
        """Return its bytes."""
        return self.elements * per_element + self.raw_bytes


class Layer(_Strict, frozen=True, kw_only=True):
    """Cost of one row, per sample."""

    name: str
    kind: Kind
    x: int
    y: int
    weights: int = 0
    shared_weights: int = 0
    forward_flops: int = 0
    backward_flops: int = 0
    channels: int = 1
    filters: int = 1
    area: int = 1
    halo_x: int = 0
    halo_y: int = 0
    scores: int = 0
    saves: tuple[Saved, ...] = ()
    block: str = ""
    parallel: bool = False
    joins: bool = False

    @property
    def weighted(self) -> bool:
        """Whether it does the arithmetic that strategies divide."""
        return self.kind in ("conv", "linear")


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A network with what each layer costs."""

    name: str
    samples: int | None
    layers: tuple[Layer, ...]

    @property
    def weights(self) -> int:
        """Return the number of its parameters."""
        return sum(layer.weights for layer in self.layers)

    @property
    def can_be_tensor_parallel(self) -> bool:
        """Return whether it is known which layers tensor parallelism divides."""
        return any(layer.parallel for layer in self.layers)


def read_named(tree: Tree, name: str, tokens: int | None) -> Model:
    """Return one of the transformers of a file that has them by their names."""
    head = {"schema": Tree(1, tree.file, tree.line), "name": Tree(name, tree.file, tree.line)}
    return read_model(Tree({**head, **tree.value[name].value}, tree.file, tree.value[name].line), tokens)


def read_model(tree: Tree, tokens: int | None = None) -> Model:
    """Return the model of a YAML file; ``tokens``: of a sample. Raises BadInputError with file and line."""
    table = to_struct(tree, ModelTable)
    if tokens:
        if table.transformer is None or len(table.input) != 1:
            raise BadInputError(f"{table.name} has no tokens whose number could be chosen")
        table = msgspec.structs.replace(table, input=(tokens,))
    if not table.input:
        raise BadInputError(f"{tree.at(('input',)).where}: input is empty", "write [channels, height, width]")
    if [bool(table.layers), table.transformer is not None, bool(table.counted)].count(True) != 1:
        raise BadInputError(f"{tree.where}: a model has layers, or a transformer, or what torch counted")
    if sizes := table.transformer:
        layers = _transformed(sizes, table.input, tree.at(("transformer",)))
    else:
        layers = table.counted or _layers(table.layers, table.input, tree, "layers")
    if not any(layer.weighted for layer in layers):
        raise BadInputError(f"{tree.at(('layers',)).where}: no layer is a conv or a linear one")
    return Model(name=table.name, samples=table.samples, layers=layers)


def _transformed(sizes: Transformer, sample: Shape, tree: Tree) -> tuple[Layer, ...]:
    if sizes.hidden % sizes.heads:
        text = f"hidden is {sizes.hidden}, not a multiple of {sizes.heads} heads"
        raise BadInputError(f"{tree.where}: {text}")
    rows = msgspec.convert(_transformer_rows(sizes, sample), tuple[Row, ...])
    return _layers(rows, sample, tree, "transformer")


_ROWS: dict[str, list[dict[str, Any]]] = json.loads(text_beside(__file__, "transformer_rows.json"))
"""Of a transformer, by its part."""


def _transformer_rows(sizes: Transformer, sample: Shape) -> list[dict[str, Any]]:
    """Return the rows of ``transformer_rows.json``, as a model's file would have them."""
    values = _values(sizes, sample)
    rows: list[dict[str, Any]] = []
    parts = [("embedding", ""), *(("block", f"b{number}_") for number in range(sizes.blocks)), ("head", "")]
    for part, prefix in parts:
        start = rows[-1]["name"] if rows else "input"
        for row in (row for row in _ROWS[part] if _wanted(row, values)):
            made = {key: _value(value, values) for key, value in row.items() if key not in ("if", "unless")}
            if "from" in row:
                names = {"PREVIOUS": rows[-1]["name"], "START": start}
                made["from"] = [names.get(name, prefix + name) for name in row["from"]]
            rows.append({**made, "name": prefix + row["name"], "block": prefix or part})
    return rows


def _wanted(row: dict[str, Any], values: dict[str, Any]) -> bool:
    return bool(values[row.get("if", "HIDDEN")] and not values.get(row.get("unless", "")))


def _values(sizes: Transformer, sample: Shape) -> dict[str, Any]:
    groups, patch = sizes.kv_heads or sizes.heads, sizes.patch
    # The class token is a parameter, too.
    places = 2 + (sample[1] // patch) * (sample[2] // patch) if patch else sample[0] + (sizes.types or 0)
    return {name.upper(): value for name, value in msgspec.structs.asdict(sizes).items()} | {
        "KV_HEADS": groups,
        "QKV": sizes.hidden // sizes.heads * (sizes.heads + 2 * groups),
        "INNER": sizes.inner or 4 * sizes.hidden,
        "LEARNED": sizes.positions == "learned",
        "POSITION_ROWS": places,
        "SWIGLU": sizes.mlp == "swiglu",
    }


def _value(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_value(one, values) for one in value]
    return values.get(value, value) if isinstance(value, str) else value


class _Output(NamedTuple):
    shape: Shape
    storage: str
    """The layer whose storage holds it: a view has none."""
    parallel: bool = False


def _layers(rows: tuple[Row, ...], sample: Shape, tree: Tree, key: str) -> tuple[Layer, ...]:
    """Return what each row costs. Raises BadInputError with its place."""
    done: dict[str, _Output] = {"input": _Output(sample, "input")}
    saved: set[str] = set()
    layers: list[Layer] = []
    block = "input"
    for number, row in enumerate(rows):
        where = tree.at((key, number)).where
        if row.name in done:
            raise BadInputError(f"{where}: {key}[{number}]: the name {row.name!r} is used already")
        inputs = row.inputs or (layers[-1].name if layers else "input",)
        if missing := [name for name in inputs if name not in done]:
            text = f"from names {missing[0]!r}, which is not above it"
            raise BadInputError(f"{where}: layer {row.name!r}: {text}")
        block = row.block or (row.name if row.kind in ("conv", "linear") else block)
        came = [done[name] for name in inputs]
        try:
            layer, shape = _layer(row, [one.shape for one in came], first="input" in inputs, block=block)
        except ValueError as error:
            place = show_keys((key, number))
            raise BadInputError(f"{where}: {place}: {row.kind} {row.name!r}: {error}") from None
        view = row.kind in ("flatten", "tokens")
        done[row.name] = _Output(shape, came[0].storage if view else row.name, row.parallel)
        keep = {done[name].storage for name in _saved_tensors(row, inputs)} - saved
        saved |= keep
        saves = [
            Saved(elements=math.prod(o.shape), parallel=o.parallel) for o in map(done.get, sorted(keep)) if o
        ]
        saves += _saved_besides(row, layer, came[0].shape)
        joins = row.kind == "embedding" or (row.kind == "linear" and came[0].parallel and not row.parallel)
        layers.append(msgspec.structs.replace(layer, saves=tuple(saves), joins=joins))
    return tuple(layers)


def _saved_tensors(row: Row, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the layers whose outputs autograd stores for this one."""
    if row.kind in ("relu", "softmax"):
        return (row.name,)
    if row.kind == "attention" and row.flash:
        return (*inputs, row.name)
    pooled = row.kind == "avgpool" and set(row.size) != {1}  # pooling to one element is a mean
    return inputs if row.kind in _KINDS.saves_input or pooled else ()


def _saved_besides(row: Row, layer: Layer, shape: Shape) -> list[Saved]:
    """Return what else is saved: places of maxima, masks, scores of attention or a number for each row."""
    if row.kind == "attention":
        if row.flash:
            return [Saved(raw_bytes=4 * shape[0] * (row.heads or 1), parallel=True)]
        scores = Saved(elements=layer.scores, parallel=True, core=True)
        return [scores, *([msgspec.structs.replace(scores, raw_bytes=layer.scores)] if row.dropout else [])]
    raw = {"maxpool": 8 * layer.y, "dropout": layer.y, "loss": 4 * layer.x}.get(row.kind)
    return [Saved(raw_bytes=raw, parallel=row.parallel or row.kind == "loss")] if raw else []


def _layer(row: Row, inputs: list[Shape], *, first: bool, block: str) -> tuple[Layer, Shape]:
    """Return what a row costs, without what it saves, and its output's shape. Raises ValueError."""
    shape, out = inputs[0], _shape(row, inputs)
    count = _COUNTS.get(row.kind)
    weights, biases, products = count(row, shape, out) if count else (0, 0, 0)
    biases *= row.bias
    fused = row.kind == "attention" and row.flash
    layer = Layer(
        name=row.name,
        kind=row.kind,
        x=sum(map(math.prod, inputs)),
        y=math.prod(out),
        weights=biases + (0 if row.tied else weights),
        shared_weights=weights if row.tied else 0,
        forward_flops=2 * products,
        backward_flops=5 * products if fused else 2 * products * (2 - first),
        scores=(row.heads or 0) * shape[0] * shape[0] * (not fused),
        block=block,
        parallel=row.parallel,
        **_sides(row, shape, out),
    )
    return layer, out


def _sides(row: Row, shape: Shape, out: Shape) -> dict[str, Any]:
    """Return channels, area and borders of input and output; of features, their number."""
    image, rows = len(shape) in (3, 4), row.kernel[0] // 2 if row.kind == "conv" else 0
    sizes = {"channels": shape[0] if image else shape[-1], "filters": out[-1]}
    if image:
        sizes["halo_x"] = rows * math.prod(shape[2:]) * shape[0]
    if len(out) in (3, 4):
        sizes |= {"filters": out[0], "area": math.prod(out[1:]), "halo_y": rows * math.prod(out[2:]) * out[0]}
    return sizes


def _conv(row: Row, shape: Shape, out: Shape) -> tuple[int, int, int]:
    per_output = shape[0] // row.groups * math.prod(row.kernel)
    return out[0] * per_output, out[0], math.prod(out) * per_output


_COUNTS: dict[str, Callable[[Row, Shape, Shape], tuple[int, int, int]]] = {
    "conv": _conv,
    "linear": lambda _, shape, out: (shape[-1] * out[-1], out[-1], math.prod(shape) * out[-1]),
    "batchnorm": lambda _, shape, out: (shape[0], shape[0], 0),
    "layernorm": lambda _, shape, out: (shape[-1], shape[-1], 0),
    "rmsnorm": lambda _, shape, out: (shape[-1], 0, 0),
    "embedding": lambda row, _, out: ((row.vocabulary or 0) * out[-1], 0, 0),
    "positions": lambda row, _, out: ((row.vocabulary or 0) * out[-1], 0, 0),
    "attention": lambda _, shape, out: (0, 0, 2 * shape[0] * shape[0] * out[-1]),
}
"""Kind -> weights, biases, and multiplications with addition."""


def _shape(row: Row, inputs: list[Shape]) -> Shape:
    """Return the shape of the output. Raises ValueError with what is wrong."""
    shape = inputs[0]
    same = [other[1:] if row.kind == "concat" else other for other in inputs]
    if row.kind in ("add", "multiply", "concat") and any(other != same[0] for other in same):
        raise ValueError(f"its inputs have the shapes {', '.join(map(str, inputs))}")
    for key in _KINDS.needed.get(row.kind, ()):
        if getattr(row, key) is None:
            raise ValueError(f"it lacks {key}")
    change = _SHAPES.get(row.kind)
    return change(row, inputs) if change else shape


_SHAPES: dict[str, Callable[[Row, list[Shape]], Shape]] = {
    "flatten": lambda _, inputs: (math.prod(inputs[0]),),
    "linear": lambda row, inputs: (*inputs[0][:-1], row.outputs or 0),
    "embedding": lambda row, inputs: (*inputs[0], row.outputs or 0),
    **dict.fromkeys(("conv", "maxpool", "avgpool"), lambda row, inputs: _window(row, inputs[0])),
    "attention": lambda row, inputs: _attended(row, inputs[0]),
    "concat": lambda _, inputs: (sum(other[0] for other in inputs), *inputs[0][1:]),
    "tokens": lambda row, inputs: _tokens(row, inputs[0]),
}


def _tokens(row: Row, shape: Shape) -> Shape:
    """Return the tokens of an image; of tokens, the first."""
    return (math.prod(shape[1:]) + row.extra, shape[0]) if len(shape) > 2 else shape[-1:]


def _attended(row: Row, shape: Shape) -> Shape:
    """Return the shape of attention's result; its input has queries, keys and values next to one another."""
    heads = row.heads or 1
    parts = heads + 2 * (row.kv_heads or heads)
    if len(shape) != 2 or shape[1] % parts:
        raise ValueError(f"its input {shape} is not [tokens, features of {parts} heads]")
    return (shape[0], shape[1] // parts * heads)


def _window(row: Row, shape: Shape) -> Shape:
    if len(shape) not in (3, 4):
        raise ValueError(f"its input has the shape {shape}, not channels, height, width")
    channels = row.filters if row.kind == "conv" and row.filters else shape[0]
    if shape[0] % row.groups or channels % row.groups:
        text = f"{shape[0]} channels and {channels} filters"
        raise ValueError(f"{text} are not divisible by {row.groups} groups")
    count = len(shape) - 1
    if row.size:
        return (channels, *_each(row.size, "size", count))
    lengths = [_each(getattr(row, name), name, count) for name in ("padding", "dilation", "kernel", "stride")]
    sides = []
    for side, length in enumerate(shape[1:]):
        padding, dilation, kernel, stride = (each[side] for each in lengths)
        sides.append((length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)
    if min(sides) < 1:
        raise ValueError(f"its window is larger than its input of {' x '.join(map(str, shape[1:]))}")
    return (channels, *sides)


_DEFAULTS = ((0, 0), (1, 1))


def _each(lengths: tuple[int, ...], name: str, count: int) -> tuple[int, ...]:
    """Return one length for each side; a default is that of any number of sides."""
    if len(lengths) != count and lengths not in _DEFAULTS:
        raise ValueError(
            f"{name} has {len(lengths)} numbers; it must be [{'depth, ' * (count - 2)}height, width]"
        )
    return lengths if len(lengths) == count else lengths[:1] * count
