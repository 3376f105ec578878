import numpy as np


def weights(nlon, nlat):
    """dense weights, fine for the small grids we use"""
    return np.ones((nlat, nlon, 4), dtype=np.float64) / 4


def interpolate(nlon, nlat, seed=0):
    w = weights(nlon, nlat)
    corners = np.random.default_rng(seed).random((4,))
    return w @ corners
