import numpy as np

G = 9.81


class SolverDiverged(ArithmeticError):
    """The time step violates the CFL condition somewhere in this strip."""

    def __init__(self, step, cell, courant):
        super().__init__(f"step {step}: Courant number {courant:.2f} in cell {cell}")


def check_cfl(strip, dx, dt, step):
    wave = np.sqrt(G * np.maximum(strip.depth[1:-1] + strip.h[1:-1], 0.0))
    courant = wave * dt / dx
    worst = np.unravel_index(np.argmax(courant), courant.shape)
    try:
        if courant[worst] > 1.0:
            raise FloatingPointError("overflow expected in pressure gradient")
    except FloatingPointError as err:
        raise SolverDiverged(step, tuple(int(i) for i in worst), courant[worst]) from err


def advance(strip, dx, dt):
    h, u, v = strip.h, strip.u, strip.v
    for f in (h, u, v):
        strip.exchange(f)
    u[1:-1] -= dt * G * (np.roll(h, -1, 1)[1:-1] - h[1:-1]) / dx
    v[1:-1] -= dt * G * (h[2:] - h[1:-1]) / dx
    strip.exchange(v)
    div = (u - np.roll(u, 1, 1))[1:-1] + v[1:-1] - v[:-2]
    h[1:-1] -= dt * strip.depth[1:-1] * div / dx
