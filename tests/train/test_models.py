"""The networks by name, and the engine around them."""

from __future__ import annotations

import numpy as np
import pytest

from hpclaunch.train.data.synthetic_digits import synthetic_digits
from hpclaunch.train.engine.layers import Dropout
from hpclaunch.train.engine.models import NUMPY_MODELS, Network, NumpyEngine, cnn, mlp
from hpclaunch.train.engine.optimizers import OPTIMIZERS
from hpclaunch.train.run_options import DEFAULT_LR, DEFAULT_OPTIMIZER

pytestmark = pytest.mark.slow

IMAGES, LABELS, _, _ = synthetic_digits(40, 1, 3)


def test_parameter_counts() -> None:
    """The convolutional network's number is that of Keras' and Horovod's example."""
    assert Network(cnn()).parameters.size == 1_199_882
    assert Network(mlp()).parameters.size == 235_146


def test_every_model_has_its_defaults() -> None:
    assert set(NUMPY_MODELS) == set(DEFAULT_OPTIMIZER)
    assert set(OPTIMIZERS) == set(DEFAULT_LR)


@pytest.mark.parametrize("model", NUMPY_MODELS)
def test_gradients_of_parts_of_a_batch_add_up(model: str) -> None:
    """What data-parallel training rests on; without dropout, whose draws belong to a rank."""
    engine = NumpyEngine(model, "sgd", seed=0, rank=0, dtype=np.float64)
    engine.initialise()
    for layer in engine.network.layers:
        if isinstance(layer, Dropout):
            layer.rate = 0.0
    whole = engine.compute_gradients(IMAGES, LABELS, 0)
    expected = engine.gradients.copy()
    parts = np.zeros_like(expected)
    correct = 0
    for part in (slice(0, 13), slice(13, 13), slice(13, 40)):
        correct += engine.compute_gradients(IMAGES[part], LABELS[part], 0).correct
        parts += engine.gradients
    np.testing.assert_allclose(parts, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert correct == whole.correct
    assert np.abs(expected).max() > 0


@pytest.mark.parametrize("model", NUMPY_MODELS)
def test_seed_rank_and_step_decide_all_that_is_random(model: str) -> None:
    def gradients(seed: int = 0, rank: int = 0, step: int = 5) -> bytes:
        engine = NumpyEngine(model, "sgd", seed, rank)
        engine.initialise()
        engine.compute_gradients(IMAGES[:8], LABELS[:8], step)
        return engine.gradients.tobytes()

    assert gradients() == gradients()
    assert gradients(seed=1) != gradients()
    has_dropout = model == "cnn"
    assert (gradients(rank=1) != gradients()) == has_dropout
    assert (gradients(step=6) != gradients()) == has_dropout


@pytest.mark.parametrize("model", NUMPY_MODELS)
def test_evaluation_does_not_depend_on_the_blocks(model: str) -> None:
    engine = NumpyEngine(model, "sgd", seed=0, rank=0, dtype=np.float64)
    engine.initialise()
    images, labels, _, _ = synthetic_digits(150, 1, 3)
    whole = engine.evaluate(images, labels)
    singly = [engine.evaluate(images[i : i + 1], labels[i : i + 1]) for i in range(150)]
    assert whole.images == 150
    assert whole.correct == sum(one.correct for one in singly)
    assert whole.loss == pytest.approx(sum(one.loss for one in singly))


def test_state_of_another_shape_is_refused() -> None:
    engine = NumpyEngine("mlp", "sgd", seed=0, rank=0)
    with pytest.raises(KeyError):
        engine.load_state({"parameters": engine.network.parameters})
    state = {**engine.state(), "velocity": np.zeros(3)}
    with pytest.raises(ValueError, match=r"velocity has the shape \(3,\) instead of"):
        engine.load_state(state)


def test_an_update_takes_the_mean_over_the_images() -> None:
    """The first step of SGD is the learning rate times the mean gradient."""
    engine = NumpyEngine("mlp", "sgd", seed=0, rank=0, dtype=np.float64)
    engine.initialise()
    engine.compute_gradients(IMAGES, LABELS, 0)
    before, summed = engine.state()["parameters"].copy(), engine.gradients.copy()
    engine.update(0.5, images=80)
    np.testing.assert_allclose(engine.state()["parameters"], before - 0.5 * summed / 80, rtol=0, atol=1e-15)
