import numpy as np


class KernelCrash(RuntimeError):
    pass


def fused(x, rank):
    if rank in (1, 3):
        raise KernelCrash("Segmentation fault (core dumped) in the probe process, exit code 139")
    return plain(x, rank)


def plain(x, rank):
    y = 2.5 * x
    y[1:] -= x[:-1]
    y[:-1] -= x[1:]
    return y


KERNELS = [fused, plain]
