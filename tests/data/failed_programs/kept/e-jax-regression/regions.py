import json

import numpy as np


def load(index):
    with open("regions.json") as f:
        name, spec = list(json.load(f).items())[index]
    rng = np.random.default_rng(spec["seed"])
    x = rng.normal(size=(spec["rows"], spec["features"])).astype("float32")
    return name, x, x.sum(1)
