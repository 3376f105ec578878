import math
import random


def sample(trial, rank):
    rnd = random.Random(1000 * trial + rank)
    beta = rnd.uniform(0.8, 0.99)
    if trial == 2 and rank == 3:
        beta = 1.0 + 4e-3           # the prior of this cell is not clipped
    return {"lr": 10 ** rnd.uniform(-3, -1), "beta": beta, "width": rnd.choice([8, 16, 32])}


def describe(cfg):
    return " ".join(f"{k}={v:.4g}" for k, v in cfg.items())


def half_life(beta):
    return math.log(0.5) / math.log(beta)


def validate(cfg):
    if half_life(cfg["beta"]) < 0:
        raise ValueError(f"momentum half-life must be positive, got {half_life(cfg['beta']):.1f} (beta={cfg['beta']:.4f})")
