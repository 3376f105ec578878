"""Print what a torch network costs, layer by layer, for ``hpclaunch predict``, without computing anything.

``MODULE:FUNCTION`` returns the network, or the network and its inputs (a dict of keywords, or a tensor). Its
forward pass runs on fake tensors, so neither memory nor a GPU is needed. A call of a function of torch is a
layer: its operations are those that torch's counter knows, what it saves is what autograd asks its hooks to
keep. An interpreter with torch runs this file: it imports nothing from hpclaunch. Arguments: MODULE:FUNCTION;
how it is trained: ``fp32``, ``bf16`` (the network itself), or ``autocast`` to bf16; the shape of one sample,
such as 3,224,224, or a number of tokens. An element has the bytes of what it is trained in: what stays in
fp32 with bf16, such as a loss, is twice as large. What cannot be run ends it with a message and exit code 3.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

BATCH = 2
"""Samples of the traced step: a normalisation over a batch of one refuses to train."""
_TABLE = json.loads(Path(__file__).with_name("trace_torch.json").read_text("utf-8"))
KIND_OF: dict[str, str] = {name: kind for kind, names in _TABLE["kinds"].items() for name in names.split()}
"""The functions of each kind of layer; others with operations are ``linear``, the rest ``elementwise``."""
IN_FP32 = frozenset(_TABLE["fp32"])
"""What torch.autocast computes in fp32 on GPUs (its documentation, 2.2 to 2.13); on processors it is less."""


def fail(message: str) -> NoReturn:
    """End with one message."""
    print(message, file=sys.stderr)
    sys.exit(3)


def tensors(torch: Any, *values: Any) -> list[Any]:
    """Return the tensors in nested lists, tuples and dicts."""
    leaves = torch.utils._pytree.tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Trace:
    """The layers of a forward pass, as it runs."""

    def __init__(self, torch: Any, network: Any, how: str) -> None:
        """``network``: of fake tensors; ``how`` it is trained, as for `main`."""
        self.torch, self.blocks = torch, [""]
        self.unit, self.casts = 4 if how == "fp32" else 2, how == "autocast"
        self.layers: list[dict[str, Any]] = []
        self.parameters = dict.fromkeys(network.parameters())
        own = [*self.parameters, *network.buffers()]
        self.own = {id(tensor): tensor for tensor in own}
        self.held: list[Any] = []  # a storage that is freed could give its address to another
        self.fixed: set[int] = set()
        """Storages whose size does not depend on the samples."""
        self.saved: set[int] = set()
        """Storages that are counted."""
        self.hold(own, self.fixed)
        self.begin("outside")
        for name, module in network.named_modules():
            block = re.match(r"(?:[^.\d][^.]*\.)*\d+(?=\.|$)|[^.]*", name)
            label = block.group() if block else ""
            module.register_forward_pre_hook(lambda *_, label=label: self.blocks.append(label))
            module.register_forward_hook(lambda *_: self.blocks.pop() and None)

    def begin(self, name: str) -> None:
        """Let a layer begin that costs nothing yet."""
        self.now: dict[str, Any] = {"name": name, "saves": [0, 0], "flops": [0, 0], "largest": 0}

    def hold(self, some: list[Any], known: set[int]) -> None:
        """Add the storages of some tensors to those that are known."""
        storages = [one.untyped_storage() for one in some]
        known.update(one._cdata for one in storages)
        self.held += storages

    def elements(self, tensor: Any) -> int:
        """Return the elements of a sample; one that stays in fp32 among halves counts twice."""
        size = tensor.element_size() if tensor.is_floating_point() else self.unit
        return int(tensor.numel() * size // self.unit // BATCH)

    def pack(self, tensor: Any) -> Any:
        """Count a tensor that autograd saves, each storage once."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.fixed and storage._cdata not in self.saved:
            self.hold([tensor], self.saved)
            size = storage.nbytes() // BATCH
            other = tensor.element_size() != self.unit or not tensor.is_floating_point()
            if "row" in self.now:  # a function of the user's own saves after the calls in it
                late = {"raw_bytes": size} if other else {"elements": size // self.unit}
                self.now["row"].setdefault("saves", []).append(late)
            else:
                self.now["saves"][other] += size
        return tensor

    def operation(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run one of torch's operations and count it."""
        known = self.torch.utils.flop_counter.flop_registry.get(function._overloadpacket)
        fixed = [
            one.untyped_storage()._cdata in self.fixed for one in tensors(self.torch, arguments, keywords)
        ]
        out = function(*arguments, **keywords)
        made = tensors(self.torch, out)
        if fixed and all(fixed):
            self.hold(made, self.fixed)  # such as a weight that autocast has made half as large
        self.now["largest"] = max(self.now["largest"], 0, *map(self.elements, made))
        if known:
            flops = known(*arguments, **keywords, out_val=out)
            inputs = [one for one in arguments if isinstance(one, self.torch.Tensor)]
            factors = inputs[1:3] if "add" in str(function) else inputs[:2]  # before them, what is added
            self.now["flops"][0] += flops
            self.now["flops"][1] += flops * sum(one.requires_grad for one in factors)
        return out

    def call(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run one of torch's functions as a layer."""
        name = getattr(function, "__name__", str(function))
        self.begin(name)
        if self.casts and name in IN_FP32:
            cast = partial(self.cast, self.torch.bfloat16, self.torch.float32)
            arguments, keywords = self.torch.utils._pytree.tree_map(cast, (arguments, keywords))
        if name == "scaled_dot_product_attention":
            out = self.attention(*arguments, **keywords)
        elif name == "dropout" and self.unit == 2:
            out = self.dropout(*arguments, **keywords)
        else:
            out = function(*arguments, **keywords)
        self.layer(tensors(self.torch, arguments, keywords), tensors(self.torch, out))
        return out

    def cast(self, old: Any, new: Any, value: Any) -> Any:
        """Return what is a tensor of one type as one of another."""
        return value.to(new) if isinstance(value, self.torch.Tensor) and value.dtype is old else value

    def dropout(self, tensor: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        """Return the result of dropout whose mask has one byte, as on GPUs; on processors it is a factor."""
        if not training or not p:
            return tensor
        self.now["saves"][1] += tensor.numel() // BATCH
        return tensor * (1 - p)

    def attention(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, *more: Any, **named: Any
    ) -> Any:
        """Return the result of attention as GPUs compute it: where they can, without storing its scores."""
        if self.casts:
            query, key, value = (one.to(self.torch.bfloat16) for one in (query, key, value))
        if stores_scores(query, key, value, attn_mask, named.get("enable_gqa", False)):
            plain = self.torch.ops.aten._scaled_dot_product_attention_math
            return plain(query, key, value, attn_mask, *more, **named)[0]

        def forward(context: Any, *inputs: Any) -> Any:
            same = query.shape[-1] == value.shape[-1]  # its layout is that of the queries
            out = query.new_empty(*query.shape[:-1], value.shape[-1])
            out = self.torch.empty_like(query) if same else out
            context.save_for_backward(*inputs, out, attn_mask)
            return out

        rows = math.prod(query.shape[:-1])
        products = 2 * rows * key.shape[-2] * (query.shape[-1] + value.shape[-1])
        self.now["flops"] = [products, products * 5 // 2]
        self.now["saves"][1] += 4 * rows // BATCH
        flash: Any = type("Flash", (self.torch.autograd.Function,), {"forward": staticmethod(forward)})
        return flash.apply(query, key, value)

    def layer(self, inputs: list[Any], outputs: list[Any]) -> None:
        """Add the layer that has just run, if it costs anything."""
        if self.layers:
            self.now["row"] = self.layers[-1]
        if not outputs:  # such as the type of a parameter
            return
        now, found = self.now, [one for one in inputs if id(one) in self.own]
        weights = sum(one.numel() for one in found if self.parameters.pop(one, True) is None)
        stored = {one.untyped_storage()._cdata for one in inputs}
        view = all(one.untyped_storage()._cdata in stored for one in outputs)
        if view and not any((weights, *now["flops"], *now["saves"])):
            return
        fed = [one for one in inputs if id(one) not in self.own] or inputs
        loss = not any(one.dim() for one in outputs)
        kind = KIND_OF.get(now["name"], "linear" if now["flops"][0] else "elementwise")
        row = {
            "name": f"{now['name']}_{len(self.layers)}",
            "kind": kind,
            "x": sum(map(self.elements, fed)),
            "y": now["largest"] if loss else sum(map(self.elements, outputs)),  # its gradient begins inside
            "weights": weights,
            "forward_flops": now["flops"][0] // BATCH,
            "backward_flops": now["flops"][1] // BATCH,
            "block": self.blocks[-1],
        }
        if any(now["saves"]):
            row["saves"] = [{"elements": now["saves"][0] // self.unit, "raw_bytes": now["saves"][1]}]
        if kind in ("conv", "linear"):
            row |= shape_of(fed[0], outputs[0], found)
        self.layers.append(row)
        now["row"] = row


def stores_scores(query: Any, key: Any, value: Any, mask: Any, grouped: bool) -> bool:
    """Whether a GPU of NVIDIA has no fused attention for these tensors, and stores tokens x tokens in fp32.

    Of torch 2.5 to 2.13, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp; in fp32 it also has none for
    grouped heads, which does not count here.
    """
    given = [one for one in (query, key, value, mask) if one is not None]
    heads = query.shape[:-2] != key.shape[:-2]
    return any(one.stride(-1) != 1 for one in given) or (heads and (not grouped or mask is not None))


def shape_of(source: Any, out: Any, found: list[Any]) -> dict[str, int]:
    """Return the channels of a convolution, or the features of a linear layer, and its borders."""
    if out.dim() < 3 or not found or found[0].dim() != out.dim():
        return {"channels": source.shape[-1] if source.dim() else 1, "filters": out.shape[-1]}
    rows = found[0].shape[2] // 2
    return {
        "channels": source.shape[1],
        "filters": out.shape[1],
        "area": math.prod(out.shape[2:]),
        "halo_x": rows * math.prod(source.shape[3:]) * source.shape[1],
        "halo_y": rows * math.prod(out.shape[3:]) * out.shape[1],
    }


def traced(torch: Any, network: Any, inputs: Any, how: str) -> Trace:
    """Run the network of fake tensors and return what it cost. ``how``: it is trained, as for `main`."""
    trace = Trace(torch, network.train(), how)

    def mode(base: Any, name: str, run: Any) -> Any:
        def method(_: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return run(function, args, kwargs or {})

        return type(base.__name__, (base,), {name: method})()

    operations = mode(torch.utils._python_dispatch.TorchDispatchMode, "__torch_dispatch__", trace.operation)
    calls = mode(torch.overrides.TorchFunctionMode, "__torch_function__", trace.call)
    halves = torch.autocast("cpu", torch.bfloat16, enabled=trace.casts)
    hooks = torch.autograd.graph.saved_tensors_hooks(trace.pack, lambda tensor: tensor)
    with halves, hooks, operations, calls:  # in one line: Python 3.9 knows no parentheses here
        network(**inputs) if isinstance(inputs, dict) else network(inputs)
    rest = sum(one.numel() for one in trace.parameters)
    if rest:
        trace.layers.append({"name": "unused", "kind": "elementwise", "x": 0, "y": 0, "weights": rest})
    return trace


def made(torch: Any, place: str) -> tuple[Any, Any]:
    """Return the network and its inputs, which may be None."""
    module_name, _, function_name = place.partition(":")
    try:
        make = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        fail(f"{place}: {error}")
    with torch.device("meta"):
        network = make()
    return network if isinstance(network, tuple) else (network, None)


def faked(torch: Any, mode: Any, network: Any, inputs: Any, how: str) -> Any:
    """Turn the network's tensors into fake ones of a processor, and return its inputs so, of BATCH samples.

    Networks ask tensors of the meta device for values, but know that fake ones have none.
    """
    from torch._subclasses.fake_tensor import FakeTensor

    done: dict[int, Any] = {}

    def fake(tensor: Any) -> Any:
        meta = tensor.detach()
        if how == "bf16" and meta.is_floating_point():
            meta = meta.bfloat16()
        made = FakeTensor(mode, meta, torch.device("cpu"))
        parameter = isinstance(tensor, torch.nn.Parameter)
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad) if parameter else made

    for module in network.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = done[id(tensor)] = done[id(tensor)] if id(tensor) in done else fake(tensor)
                    done[id(table[name])] = table[name]

    def batch(one: Any) -> Any:
        return fake(one)[:1].expand(BATCH, *one.shape[1:]).contiguous()

    return torch.utils._pytree.tree_map(batch, inputs)


def main() -> None:
    """Print the table."""
    place, how = sys.argv[1:3]
    shape = [int(length) for length in "".join(sys.argv[3:]).split(",") if length]
    sys.path.insert(0, os.getcwd())
    try:
        import torch
        from torch._subclasses import fake_tensor
        from torch.utils import flop_counter  # noqa: F401
    except ImportError as error:
        fail(f"{sys.executable} cannot import torch: {error}; name one that can: --python PATH")
    network, inputs = made(torch, place)
    if inputs is None:
        if not shape:
            fail(f"{place} returns no inputs: state the shape of one sample with --input")
        words = any(isinstance(module, torch.nn.Embedding) for module in network.modules())
        kind = torch.long if words and len(shape) == 1 else torch.get_default_dtype()
        inputs = torch.empty(1, *shape, dtype=kind, device="meta")
    shape = list(tensors(torch, inputs)[0].shape[1:])
    mode = fake_tensor.FakeTensorMode()
    try:
        inputs = faked(torch, mode, network, inputs, how)
        with mode:
            layers = traced(torch, network, inputs, how).layers
    except Exception as error:  # whatever the user's network raises
        fail(f"{place}: it cannot be run with samples of {tuple(shape)}: {error}")
    name = place.partition(":")[2]
    print(f"schema: 1\nname: {name}\ndescription: counted from {place} by torch {torch.__version__}, {how}")
    print(f"input: [{', '.join(map(str, shape))}]\ncounted:")
    for row in layers:
        kept = {key: value for key, value in row.items() if value not in (0, "")}
        print(f"  - {json.dumps({'x': 0, 'y': 0, **kept})}")


if __name__ == "__main__":
    main()
