import os


def write(path, mean, spread, fmt):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if fmt == "nc":
        from netCDF4 import Dataset
        with Dataset(path, "w") as nc:
            nc.createDimension("x", mean.size)
            for name, data in (("mean", mean), ("spread", spread)):
                nc.createVariable(name, "f8", ("x",))[:] = data
    else:
        import numpy as np
        np.savez(path, mean=mean, spread=spread)
