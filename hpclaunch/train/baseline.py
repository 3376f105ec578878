"""How fast one rank trains alone on its node: what ``--baseline`` compares all ranks with."""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .allreduce import Comm
from .collective import on_rank_0_alone
from .data.image_sources import Source
from .engine import ENGINES, Images, Labels
from .exchange import COMMS
from .run_options import Options

_WARM_UP_STEPS = 3
_LEAST_STEPS = 10
_LEAST_S = 1.0
_IMAGES = 4096


class Baseline(NamedTuple):
    """Steps of one rank alone."""

    images_per_s: float
    steps: int
    seconds: float


def measure_alone(comm: Comm, options: Options, data: Source) -> Baseline:
    """Rank 0 trains for one second or ten steps, whichever takes longer; the result is discarded. Collective.

    The same model, engine and batch; the other ranks sleep. So it is what a run of one rank would do, with
    the cores, caches and memory of its node for itself. The steps use a learning rate of 0.
    """
    first = np.arange(min(len(data.train_labels), max(_IMAGES, options.step_images)))
    take = data.epoch(lambda rank: first if rank == 0 else first[:0])
    everything = slice(0, len(first))
    found = on_rank_0_alone(comm, lambda: _measure(options, take(everything), data.train_labels[first]))
    measured: Baseline = comm.bcast(found, root=0)
    return measured


def _measure(options: Options, images: Images, labels: Labels) -> Baseline:
    from mpi4py import MPI

    options = replace(options, comm="ring", allreduce="ring", compression="none", overlap=False)
    engine = ENGINES[options.engine](options, 0)
    engine.initialise()
    exchange = COMMS["ring"](MPI.Intracomm(MPI.COMM_SELF), options, engine, None)
    size, step, start = min(options.step_images, len(images)), 0, 0.0
    while step < _WARM_UP_STEPS + _LEAST_STEPS or time.perf_counter() - start < _LEAST_S:
        if step == _WARM_UP_STEPS:
            start = time.perf_counter()
        place = step * size % (len(images) - size + 1)
        exchange.gradients(images[place : place + size], labels[place : place + size], step)
        engine.update(0.0, size)
        step += 1
    seconds, steps = time.perf_counter() - start, step - _WARM_UP_STEPS
    exchange.close()
    return Baseline(steps * size / seconds, steps, seconds)
