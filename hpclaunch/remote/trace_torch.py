"""Print a torch network as a table of layers for ``hpclaunch predict``, without computing anything.

``MODULE:FUNCTION`` returns the network; it is traced by torch.fx and its shapes are found on the meta device,
so neither memory nor a GPU is needed. An interpreter with torch runs this file: it imports nothing from
hpclaunch. Arguments: MODULE:FUNCTION and the shape of one sample, such as 3,224,224. What it cannot express
ends it with a message and exit code 3.
"""

from __future__ import annotations

import importlib
import operator
import os
import re
import sys
from typing import Any, NoReturn

SKIPPED = "skip"


def fail(message: str) -> NoReturn:
    """End with one message."""
    print(message, file=sys.stderr)
    sys.exit(3)


def pair(value: Any) -> str:
    """Return a number or a pair as ``[height, width]``."""
    both = tuple(value) if isinstance(value, tuple | list) else (value, value)
    return "[" + ", ".join(str(int(item)) for item in both) + "]"


def window(module: Any) -> dict[str, str]:
    """Return the keys of a convolution's or a pooling's window that are not the defaults."""
    stride = module.kernel_size if module.stride is None else module.stride
    if isinstance(module.padding, str):
        fail(f"padding {module.padding!r} is not supported; state numbers")
    keys = {"kernel": pair(module.kernel_size), "stride": pair(stride), "padding": pair(module.padding)}
    if hasattr(module, "dilation"):
        keys["dilation"] = pair(module.dilation)
    usual = {"kernel": "[1, 1]", "stride": "[1, 1]", "padding": "[0, 0]", "dilation": "[1, 1]"}
    return {key: value for key, value in keys.items() if value != usual[key]}


def of_module(module: Any, name: str) -> dict[str, str]:  # long: one line per kind of module
    """Return the kind of a module and its keys."""
    from torch import nn

    if isinstance(module, nn.Conv2d):
        more = {"groups": str(module.groups)} if module.groups > 1 else {}
        bias = {} if module.bias is not None else {"bias": "false"}
        return {"kind": "conv", "filters": str(module.out_channels), **window(module), **more, **bias}
    if isinstance(module, nn.Linear):
        bias = {} if module.bias is not None else {"bias": "false"}
        return {"kind": "linear", "outputs": str(module.out_features), **bias}
    if isinstance(module, nn.MaxPool2d | nn.AvgPool2d):
        if module.ceil_mode:
            fail(f"{name}: ceil_mode is not supported")
        return {"kind": "maxpool" if isinstance(module, nn.MaxPool2d) else "avgpool", **window(module)}
    if isinstance(module, nn.AdaptiveAvgPool2d):
        return {"kind": "avgpool", "size": pair(module.output_size)}
    if isinstance(module, nn.Flatten) and (module.start_dim, module.end_dim) == (1, -1):
        return {"kind": "flatten"}
    kinds = {
        "relu": nn.ReLU,
        "gelu": nn.GELU,
        "batchnorm": nn.BatchNorm2d,
        "layernorm": nn.LayerNorm,
        "dropout": (nn.Dropout, nn.Dropout2d),
        "softmax": (nn.Softmax, nn.LogSoftmax),
        "elementwise": (nn.SiLU, nn.Sigmoid, nn.Tanh, nn.LeakyReLU, nn.Hardswish, nn.ELU),
        SKIPPED: nn.Identity,
    }
    for kind, types in kinds.items():
        if isinstance(module, types):  # type: ignore[arg-type,unused-ignore]
            return {"kind": kind}
    return fail(f"{name}: modules of type {type(module).__name__} are not supported")


def of_function(node: Any) -> dict[str, str]:
    """Return the kind of a function or method in the graph."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    if node.target in (operator.add, operator.iadd) or name in ("add", "add_"):
        return {"kind": "add"}
    if name in ("relu", "relu_", "gelu", "dropout", "softmax", "log_softmax"):
        return {"kind": {"relu_": "relu", "log_softmax": "softmax"}.get(name, name)}
    if name in ("sigmoid", "tanh", "silu", "leaky_relu"):
        return {"kind": "elementwise"}
    if name in ("cat", "concat") and node.kwargs.get("dim", (*node.args, 0)[1]) == 1:
        return {"kind": "concat"}
    if name == "flatten" and tuple(node.args[1:2]) == (1,):
        return {"kind": "flatten"}
    return fail(
        f"{node.name}: the function {name} is not supported; write it as a module, or write the table"
    )


def rows(traced: Any) -> list[str]:
    """Return a line for each layer of the graph, with shapes found already."""
    modules = dict(traced.named_modules())
    shown: dict[Any, str] = {}
    lines: list[str] = []
    before = "input"
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            shown[node] = "input"
        elif node.op in ("call_module", "call_function", "call_method"):
            name = str(node.target) if node.op == "call_module" else node.name
            keys = of_module(modules[node.target], name) if node.op == "call_module" else of_function(node)
            inputs = [shown[other] for other in node.all_input_nodes]
            if keys["kind"] == SKIPPED:
                shown[node] = inputs[0]
                continue
            label = unused(re.sub(r"\W", "_", name), lines)
            source = {} if inputs == [before] else {"from": f"[{', '.join(inputs)}]"}
            items = {"name": label, "kind": keys.pop("kind"), **source, **keys}
            lines.append("  - {" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}")
            shown[node] = before = label
        elif node.op == "get_attr":
            fail(f"{node.name}: parameters outside of modules are not supported")
    return lines


def unused(name: str, lines: list[str]) -> str:
    """Return the name, with a number where a layer has it: a module may be called twice."""
    names, number = [line.split("name: ")[1].split(",")[0] for line in lines], 1
    unique = name = name if name[0].isalpha() else f"layer_{name}"
    while unique in names:
        number += 1
        unique = f"{name}_{number}"
    return unique


def main() -> None:
    """Print the table."""
    place, shape = sys.argv[1], tuple(int(length) for length in sys.argv[2].split(","))
    sys.path.insert(0, os.getcwd())
    try:
        import torch
        from torch.fx import symbolic_trace
        from torch.fx.passes.shape_prop import ShapeProp
    except ImportError as error:
        fail(f"{sys.executable} cannot import torch: {error}; name one that can: --python PATH")
    module_name, _, function_name = place.partition(":")
    try:
        make = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        fail(f"{place}: {error}")
    with torch.device("meta"):
        network = make()
    try:
        traced = symbolic_trace(network)
        ShapeProp(traced).propagate(torch.empty(1, *shape, device="meta"))
    except Exception as error:  # whatever the user's network raises
        fail(f"{place}: torch.fx cannot trace it with one sample of {shape}: {error}")
    lines = rows(traced)
    print(f"schema: 1\nname: {function_name}\ndescription: traced from {place} by torch {torch.__version__}")
    print(f"input: [{', '.join(map(str, shape))}]\nlayers:")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
