import numpy as np


def fill(rank, size):
    rng = np.random.default_rng(7 + rank)
    x = rng.random((900, 3))
    x[:, 0] = (x[:, 0] + rank) / size
    return x


def pairs_within(x, cutoff):
    d = x[:, None, :] - x[None, :, :]
    r2 = (d * d).sum(axis=2)
    return int((r2 < cutoff * cutoff).sum() - len(x)) // 2


def settle(x, rank, step):
    """Particles fall into the trap at rank 2 from the reservoir."""
    if rank == 2 and step >= 2:
        grown = np.repeat(x, 7, axis=0)
        return grown + np.random.default_rng(step).normal(0, 1e-3, grown.shape)
    return x
