"""Published memory and step times of transformers next to predictions: ``prediction.py --published``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from hpclaunch.scaling.machine_speed import Machine, SpeedOptions, machine_of
from hpclaunch.scaling.measured_sizes import MeasuredSize
from hpclaunch.scaling.memory_need import MemoryNeed, MemoryOptions, memory_need
from hpclaunch.scaling.model_table import Model, read_model
from hpclaunch.scaling.prediction import PredictRequest, predict_all
from hpclaunch.scaling.strategy_costs import Division
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.yaml_tree import parse_tree

FILE = Path(__file__).parents[1] / "tests" / "data" / "scaling" / "transformers.json"
DATA = json.loads(FILE.read_text())
MACHINES = {
    "a100_80gb": ("polaris", 2039, 300),
    "a100_40gb": ("polaris", 1555, 300),
    "h100_80gb": ("mn5-acc", 3350, 450),
}
"""GPU -> a site that has it, for the data sheet's operations; GB/s of its memory, and of NVLink one way."""
NETWORK_GB_S = {"llm-foundry": 200, "korthikanti": 200, "narayanan": 200, "bigscience": 50, "nanotron": 400}
"""Of a node, one direction: 1600 Gbit/s RoCE; 8 HDR cards of Selene; 4 Omni-Path cards of Jean Zay; EFA."""
NVLINK_SHARE = 0.8


@cache
def model(name: str, tokens: int) -> Model:
    """Return a model of the file."""
    sizes = DATA["models"][name]
    transformer = {
        **{"blocks": sizes["layers"], "hidden": sizes["hidden"], "heads": sizes["heads"]},
        **{"vocabulary": sizes["vocabulary"], "flash": sizes["flash"], "dropout": not sizes["flash"]},
        "positions": "learned" if sizes["positions"] == "learned" else "none",
        "biases": sizes.get("biases", True),
        **{key: sizes[key] for key in ("inner", "mlp", "norm") if key in sizes},
    }
    table = {"schema": 1, "name": name, "input": [tokens], "transformer": transformer}
    return read_model(parse_tree(json.dumps(table), name))


@cache
def machine(gpu: str, source: str, zero: int) -> Machine:
    """Return the parameters of the machine that a row ran on; the shares are those of the product."""
    site, memory, node = MACHINES[gpu]
    speeds = SpeedOptions(
        node_gb_s=NVLINK_SHARE * node,
        network_gb_s=NETWORK_GB_S[source],
        precision="bf16",
        hidden_by_default=0.5 if zero == 3 else 0.0,
    )
    found = machine_of(load_site(site), speeds, 8)
    return msgspec.structs.replace(
        found, memory_gb_s=msgspec.structs.replace(found.memory_gb_s, value=memory)
    )


def request(row: dict[str, Any], gpus: tuple[int, ...] = (), **more: Any) -> PredictRequest:
    """Return what a row asks for."""
    run = row["run"]
    memory = MemoryOptions(
        slots=2,
        saved_bytes=2,
        reserved=True,
        **{
            key: run[key]
            for key in ("zero", "recompute", "copies", "sequence_parallel", "interleave")
            if key in run
        },
    )
    return PredictRequest(
        model=model(row["model"], run["sequence"]),
        machine=machine(row["gpu"], row["source"], run["zero"]),
        batch=run["micro_batch"] * run["accumulate"],
        gpus_per_worker=8,
        gpus=gpus or (run["gpus"],),
        strategies=("3d",),
        memory=memory,
        accumulate=run["accumulate"],
        tensor=run.get("tensor", 1),
        pipeline=run.get("pipeline", 1),
        **more,
    )


def step_s(row: dict[str, Any]) -> float | None:
    """Return the measured seconds of a step."""
    run, measured = row["run"], row["measured"]
    if "tokens_per_s_per_gpu" in measured:
        samples = run["micro_batch"] * run["accumulate"]
        return float(samples * run["sequence"] / measured["tokens_per_s_per_gpu"])
    if "paper_tflops_per_gpu" in measured:  # equation 3 of the paper, with recomputation
        sizes, tokens = DATA["models"][row["model"]], run["sequence"]
        hidden, layers = sizes["hidden"], sizes["layers"]
        batch = run["micro_batch"] * run["accumulate"] * run["data"]
        rest = 1 + tokens / (6 * hidden) + sizes["vocabulary"] / (16 * layers * hidden)
        operations = 96 * batch * tokens * layers * hidden**2 * rest
        return float(operations / (run["gpus"] * measured["paper_tflops_per_gpu"] * 1e12))
    return measured.get("step_s")  # type: ignore[no-any-return]


def zero_states(row: dict[str, Any]) -> float:
    """Return the GB of the states of a model that is stated by its parameters only."""
    from hpclaunch.scaling.model_table import Layer

    layer = Layer(name="all", kind="linear", x=0, y=0, weights=DATA["models"][row["model"]]["parameters"])
    options = MemoryOptions(slots=2, saved_bytes=2, zero=row["run"]["zero"], copies=row["run"]["copies"])
    need = memory_need("data", [[layer]], Division(64, 64), options)
    return (need.parameters + need.gradients + need.optimiser) * 1.073741824


def rows() -> Iterator[tuple[str, str, str, float, float]]:
    """Yield half, what, id, predicted and measured."""
    for row in DATA["rows"]:
        half, name, measured = row["half"], row["id"], row["measured"]
        if row["source"] == "zero":
            yield half, "states, ZeRO's figure 1", name, zero_states(row), measured["states_gb"]
            continue
        found = request(row)
        points = predict_all(found).points
        if not points:  # 24 blocks on 16 stages are refused
            continue
        point = points[0]
        need: MemoryNeed = point.memory
        source = row["source"] + (f" {row['gpu']}" if row["source"] == "llm-foundry" else "")
        if seconds := step_s(row):
            yield half, f"step, {source}", name, point.step_s.value, seconds
        if "memory_gb" in measured:
            yield half, f"peak, {source}", name, need.total, measured["memory_gb"]
        if "memory_gb_at_least" in measured:
            least = measured["memory_gb_at_least"]  # more than that is right
            predicted = least if need.total >= least else need.total
            yield half, "out of memory, bigscience", name, predicted, least
        if "allocated_mib" in measured:
            states = need.parameters + need.gradients + need.optimiser
            allocated = states + need.saved + need.working
            yield half, "states, nanotron", name, 1024 * states, measured["states_mib"]
            yield half, "peak, nanotron", name, 1024 * allocated, measured["allocated_mib"]
        if "states_gib" in measured:
            states = need.parameters + need.gradients + need.optimiser
            yield half, f"states, {source}", name, states, measured["states_gib"]
            yield half, f"activations, {source}", name, need.saved, measured["activations_gib"]
        if "activations_percent_of_none" in measured:
            plain = msgspec.structs.replace(found.memory, recompute="none", sequence_parallel=False)
            whole = predict_all(msgspec.structs.replace(found, memory=plain)).points[0].memory.saved
            percent = 100 * need.saved / whole
            yield half, f"activations, {source}", name, percent, measured["activations_percent_of_none"]


def calibrated() -> Iterator[tuple[str, str, str, float, float]]:
    """Yield the larger sizes of the curves that have three or more, from their two smallest."""
    curves: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in DATA["rows"]:
        if row["source"] == "llm-foundry":
            run = row["run"]
            same = tuple(run[key] for key in ("sequence", "micro_batch", "accumulate", "zero", "recompute"))
            key = (row["model"], row["gpu"], *same)
            curves[key][run["gpus"]] = row
    for curve in curves.values():
        small, large = sorted(curve)[:2], sorted(curve)[2:]
        times = {size: step_s(curve[size]) or 0.0 for size in curve}
        sizes = tuple(MeasuredSize(size=size, seconds=(times[size],)) for size in small)
        if large:
            first = request(curve[large[0]], tuple(large), measured=sizes)
            for point in predict_all(first).points:
                row = curve[point.gpus]
                yield row["half"], "step, with two sizes", row["id"], point.step_s.value, times[point.gpus]
                carried = sum(times[size] for size in small) / 2
                yield row["half"], "step, carried on", row["id"], carried, times[point.gpus]


def print_tables(*, each: bool) -> None:
    """Print the errors, by half and kind."""
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for half, what, name, predicted, true in chain(rows(), calibrated()):
        errors[(what, half)].append(predicted / true - 1)
        if each:
            print(f"{half} {what}: {name}: {predicted:.4g}, measured {true:.4g}, {predicted / true - 1:+.1%}")
    print("| what | half | rows | median error | within 10 % | within 25 % | largest |")
    print("|---|---|---:|---:|---:|---:|---:|")
    plain = [key for key in errors if key[0] not in ("step, with two sizes", "step, carried on")]
    for kind in ("peak", "states", "activations", "step"):  # all without calibration
        for half in ("open", "kept"):
            some = [errors[key] for key in plain if key[0].startswith(f"{kind},") and key[1] == half]
            errors[f"all: {kind}", half] = [*chain(*some)]
    for (what, half), found in sorted(errors.items()):
        inside = [f"{sum(abs(one) <= most for one in found) / len(found):.0%}" for most in (0.1, 0.25)]
        shown = f"{median(found):+.1%} | {inside[0]} | {inside[1]} | {max(found, key=abs):+.0%}"
        print(f"| {what} | {half} | {len(found)} | {shown} |")
