import numpy as np


class LineSearchError(Exception):
    pass


def line_search(f, x, d, g, tries):
    t = 1.0
    for _ in range(tries):
        if f(x + t * d) < f(x) + 1e-4 * t * (g @ d):
            return t
        t *= 0.5
    raise LineSearchError(f"no decrease along the direction after {tries} trials")


def descend(f, grad, x, say, iters=25):
    tries = 2
    for it in range(iters):
        g = grad(x)
        try:
            t = line_search(f, x, -g, g, tries)
        except LineSearchError as e:
            say(f"ERROR: line search failed at iteration {it}: {e}")
            say("Aborting this step; restarting with a longer search")
            tries += 4
            continue
        x = x - t * g
        if np.linalg.norm(grad(x)) < 1e-6:
            break
    return x, it
