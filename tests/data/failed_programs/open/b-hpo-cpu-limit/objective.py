import math


def minimise(step, tol):
    x = [1.3, -0.7, 2.1]
    while True:
        g = [math.sin(v) + 0.1 * v + 1e-12 * (k + 1) for k, v in enumerate(x)]
        if sum(c * c for c in g) < tol:
            return sum(1 - math.cos(v) + 0.05 * v * v for v in x)
        x = [v - step * c for v, c in zip(x, g)]
