from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

TABLE = {1e-3: {"momentum": 0.9}, 1e-2: {"momentum": 0.9}, 1e-1: {"momentun": 0.5}, 1.0: {"momentum": 0.0}}


def trial(lr, extra):
    momentum = extra["momentum"]
    w, v = 5.0, 0.0
    for _ in range(100):
        v = momentum * v + 2 * w
        w -= lr * v
    return abs(w)


def best(rates):
    scores = {}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(trial, lr, TABLE[lr]): lr for lr in rates}
        for job in as_completed(jobs):
            scores[jobs[job]] = job.result()
    return {"lr": min(scores, key=scores.get)}
