"""Prints how the torch engine differs from the numpy engine on the same images."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hpclaunch.train.data.synthetic_digits import synthetic_digits
from hpclaunch.train.engine import Engine, Sums
from hpclaunch.train.engine.models import NUMPY_MODELS, NumpyEngine
from hpclaunch.train.engine.optimizers import OPTIMIZERS
from hpclaunch.train.engine.torch_engine import TorchEngine

IMAGES, LABELS, _, _ = synthetic_digits(40, 1, 3)
RANK = 1


def relative(one: Engine, other: Engine) -> float:
    """The largest difference of their gradients, as a share of the largest gradient."""
    return float(np.abs(one.gradients - other.gradients).max() / np.abs(one.gradients).max())


def states_differ(one: Engine, other: Engine) -> float:
    """The largest difference of parameters and optimisers."""
    here, there = one.state(), other.state()
    assert here.keys() == there.keys()
    return max(float(np.abs(here[name] - there[name]).max()) for name in here)


def is_same(one: Sums, other: Sums) -> bool:
    return one.correct == other.correct and abs(one.loss - other.loss) < 1e-4 * one.loss


def three_steps(model: str, dtype: Any) -> dict[str, Any]:
    """Training, dropout included, and evaluation."""
    numpys = NumpyEngine(model, "sgd", 0, RANK, dtype)
    torchs = TorchEngine(model, "sgd", 0, RANK, dtype=dtype)
    numpys.initialise()
    torchs.initialise()
    facts: dict[str, Any] = {"first parameters": states_differ(numpys, torchs)}
    sums = []
    for step in range(3):
        mine = numpys.compute_gradients(IMAGES, LABELS, step)
        sums.append(is_same(mine, torchs.compute_gradients(IMAGES, LABELS, step)))
        if step == 0:
            facts["gradients"] = relative(numpys, torchs)
        numpys.update(0.1, len(IMAGES))
        torchs.update(0.1, len(IMAGES))
    sums.append(is_same(numpys.evaluate(IMAGES, LABELS), torchs.evaluate(IMAGES, LABELS)))
    return {**facts, "last parameters": states_differ(numpys, torchs), "sums": sums}


def memory_apart(model: str) -> dict[str, Any]:
    """A GPU's way, on CPU tensors: buffers of its own, copies to and from the host."""
    here = TorchEngine(model, "adam", 0, RANK)
    there = TorchEngine(model, "adam", 0, RANK, host_memory=False)
    buffer = np.zeros_like(there.gradients)
    there.place_gradients(buffer)
    for engine in (here, there):
        engine.initialise()
    told: list[slice] = []
    before = [engine.compute_gradients(IMAGES, LABELS, 0, told.append) for engine in (here, there)]
    here.gradients[:] = buffer  # their dropouts differ
    for engine in (here, there):
        engine.gradients[:] *= 2  # what other ranks add, on the host
        engine.update(0.01, 2 * len(IMAGES))
    summed = there.gradients.copy()
    there.clear()
    there.accumulate(IMAGES, LABELS, 1)
    there.fetch()
    fresh = TorchEngine(model, "adam", 0, RANK, host_memory=False)
    fresh.load_state(there.state())
    return {
        "in its buffer": bool(np.shares_memory(there.gradients, buffer)),
        "images": [one.images for one in before],
        "states": states_differ(here, there),
        "fetched": bool(np.abs(there.gradients - summed).max() > 0),
        "reloaded": states_differ(there, fresh),
        "drawn by step": bool(draws(there, 5) != draws(there, 6)),
        "drawn again": bool(draws(there, 5) == draws(there, 5)),
    }


def draws(engine: TorchEngine, step: int) -> bytes:
    engine.compute_gradients(IMAGES, LABELS, step)
    return engine.gradients.tobytes()


def optimisers_on_tensors(name: str) -> float:
    """The difference that three steps of an optimiser make on tensors of torch."""
    here = TorchEngine("mlp", name, 0, RANK)
    there = TorchEngine("mlp", name, 0, RANK, host_memory=False)
    generator = np.random.default_rng(4)
    for engine in (here, there):
        engine.initialise()
    start = here.state()["parameters"].copy()
    for _ in range(3):
        gradients = generator.standard_normal(len(here.gradients)).astype(np.float32)
        for engine in (here, there):
            engine.gradients[:] = gradients
            engine.update(0.1, 1)
    assert np.abs(here.state()["parameters"] - start).max() > 1e-5
    return states_differ(here, there)


def readiness(model: str) -> dict[str, Any]:
    """Which parts are told, and whether they are final then; no images at all."""
    engine = TorchEngine(model, "sgd", 0, RANK)
    engine.initialise()
    engine.compute_gradients(IMAGES, LABELS, 0)
    expected = engine.gradients.copy()
    parts: list[tuple[int, int]] = []
    final = []

    def ready(part: slice) -> None:
        parts.append((part.start, part.stop))
        final.append(np.array_equal(engine.gradients[part], expected[part]))

    engine.compute_gradients(IMAGES, LABELS, 0, ready)
    told = len(parts)
    none = engine.compute_gradients(IMAGES[:0], LABELS[:0], 1, ready)
    return {
        "parts": parts[:told],
        "parts without images": parts[told:],
        "final": all(final[:told]),
        "without images": [none.images, float(np.abs(engine.gradients).max())],
    }


if __name__ == "__main__":
    kinds = (np.float64, np.float32)
    print(
        json.dumps(
            {
                "steps": {f"{m} {np.dtype(k)}": three_steps(m, k) for m in NUMPY_MODELS for k in kinds},
                "apart": {model: memory_apart(model) for model in NUMPY_MODELS},
                "optimisers": {name: optimisers_on_tensors(name) for name in OPTIMIZERS},
                "ready": {model: readiness(model) for model in NUMPY_MODELS},
            }
        )
    )
