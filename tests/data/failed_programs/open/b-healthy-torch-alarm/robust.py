import torch


class SimulatedOOM(RuntimeError):
    pass


def _batch(rank, step, size):
    if size > 64 and step == 4:
        raise SimulatedOOM("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB")
    return torch.randn(size, 16, generator=torch.Generator().manual_seed(rank * 99 + step))


def with_smaller_batch(rank, step, log):
    size = 128
    while True:
        try:
            return _batch(rank, step, size)
        except SimulatedOOM:
            log.error("batch of %d does not fit", size, exc_info=True)
            size //= 2


def nan_guard(g, step, log):
    if torch.isnan(g).any():
        log.critical("step %d: gradient is NaN, aborting this step (not the run)", step)
        return torch.zeros_like(g)
    return g
