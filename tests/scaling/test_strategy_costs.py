"""Every formula of the table of strategies, against numbers worked out by hand.

Two layers, B = 8, p = 4, p2 = 2, S = 2; FW 1 and 2, BW 3 and 4 seconds per sample, WU 5 and 6 per step:
sum FW + BW = 10, sum WU = 11, sum |w| = 100, |y| = 20 and 30.
"""

from __future__ import annotations

from hpclaunch.scaling.model_table import Layer
from hpclaunch.scaling.strategy_costs import (
    STRATEGIES,
    Division,
    LayerCost,
    Strategy,
    balanced_stages,
    most_gpus,
    step_cost,
)
from tests.in_one_test import in_one_test

LAYERS = [
    LayerCost(y=20, w=40, fw=1, bw=3, wu=5, halo=2 + 3, passed=20),
    LayerCost(y=30, w=60, fw=2, bw=4, wu=6, halo=4 + 5, passed=30),
]
SIZES = [
    Layer(name="1", kind="conv", x=10, y=20, filters=16, channels=3, area=36),
    Layer(name="2", kind="conv", x=20, y=30, filters=32, channels=12, area=25),
]
ALPHA, BETA, DELTA = 0.5, 0.25, 4.0  # delta x beta = 1
BY_HAND: dict[Strategy, tuple[float, float]] = {
    "serial": (8 * 10 + 11, 0),
    "data": (8 / 4 * 10 + 11, 2 * 3 * (0.5 + 100 / 4)),
    # halos: 2 sum(2 x 0.5 + 8 x (2 + 3)), 2 x 0.5 + 8 x (4 + 5)
    "spatial": (8 / 4 * 10 + 11, 2 * (3 * (0.5 + 100 / 4) + (1 + 8 * 5) + (1 + 8 * 9))),
    # Two stages for p = 2: 8 (2 + 2 - 1) / 2 (2 + 4) + 6; 2 (2 + 2 - 2) (0.5 + 8 / 2 x 20)
    "pipeline": (8 * 3 / 2 * 6 + 6, 2 * 2 * (0.5 + 4 * 20)),
    "filter": (8 / 4 * 10 + 11 / 4, 3 * 3 * (0.5 + 8 * 20 / 4)),
    "channel": (8 / 4 * 10 + 11 / 4, 3 * 3 * (0.5 + 8 * 20 / 4)),
    "data+filter": (8 / 4 * 10 + 11 / 2, 3 * 1 * (0.5 + 8 * 20 / 4) + 2 * 1 * (0.5 + 100 / 4)),
    # Per worker 4 samples: 2 sum(2 x 0.5 + 4 x 5), 2 x 0.5 + 4 x 9
    "data+spatial": (8 / 4 * 10 + 11, 2 * (3 * (0.5 + 100 / 4) + (1 + 4 * 5) + (1 + 4 * 9))),
}


def division(strategy: Strategy) -> Division:
    return {
        "serial": Division(8, 1),
        "pipeline": Division(8, 2, segments=2),
        "data+filter": Division(8, 4, 2),
        "data+spatial": Division(8, 4, 2),
    }.get(strategy, Division(8, 4))


@in_one_test(
    "strategy, most",
    [
        ("serial", 1),
        ("data", 8),
        ("spatial", 25),
        ("pipeline", 2),
        ("filter", 16),
        ("channel", 12),
        ("data+filter", 8 * 16),
        ("data+spatial", 8 * 25),
    ],
)
def test_the_most_gpus(strategy: Strategy, most: int) -> None:
    assert most_gpus(strategy, SIZES, 8) == most


def test_stages_are_balanced() -> None:
    layers = [LayerCost(0, 0, fw=time, bw=0, wu=0) for time in (1, 1, 1, 9, 2, 2, 2)]
    stages = [[layer.fw for layer in stage] for stage in balanced_stages(layers, 3)]
    assert stages == [[1, 1, 1], [9], [2, 2, 2]]
    assert [len(stage) for stage in balanced_stages(layers, 1)] == [7]
    assert [len(stage) for stage in balanced_stages(layers, 9)] == [1] * 7


def test_one_gpu_sends_nothing() -> None:
    for strategy in STRATEGIES:
        cost = step_cost(strategy, LAYERS, Division(8, 1))
        if strategy not in ("spatial", "data+spatial"):
            assert (cost.inner.messages, cost.outer.messages) == (0, 0), strategy
    assert step_cost("data+spatial", LAYERS, Division(8, 1)).inner.messages == 0
