"""The runner on ranks of which the last has a fault of its own, named by the first argument."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hpclaunch.train import command_line
from hpclaunch.train.allreduce.ring import RingAllreduce
from hpclaunch.train.engine import ENGINES, Tensor
from hpclaunch.train.engine.models import NumpyEngine
from hpclaunch.train.run_errors import BadRequestError
from hpclaunch.train.run_options import Options

LAST = MPI.COMM_WORLD.Get_rank() == MPI.COMM_WORLD.Get_size() - 1


class FaultyEngine(NumpyEngine):
    """Goes wrong in step 2, or starts from other parameters."""

    fault = ""

    def compute_gradients(self, images: Any, labels: Any, step: int, ready: Any = None) -> Any:
        if LAST and step == 2 and self.fault == "crash":
            raise ZeroDivisionError("an unforeseen error")
        if LAST and step == 2 and self.fault == "inf":
            ready = self.spoiling(ready)
        sums = super().compute_gradients(images, labels, step, ready)
        if LAST and step == 2 and self.fault == "nan":
            self.gradients[-1] = np.nan
        return sums

    def spoiling(self, ready: Any) -> Any:
        """Let one number of dense2.weight be infinite before ``ready`` hears of it."""
        (part,) = (tensor.part for tensor in self.tensors if tensor.name == "dense2.weight")

        def told(done: slice) -> None:
            if done.start <= part.start < done.stop:
                self.gradients[part][7] = np.inf
            if ready is not None:
                ready(done)

        return told

    def load_state(self, state: Any) -> None:
        super().load_state(state)
        if LAST and self.fault == "parameters":
            self.network.parameters[0] += 1


def odd_tensors(tensors: list[Tensor], fault: str) -> list[Tensor]:
    if fault == "shape":
        return [replace(tensor, shape=tensor.shape[::-1]) for tensor in tensors]
    return {"order": tensors[::-1], "fewer": tensors[:-1]}.get(fault, tensors)


def make(options: Options, rank: int) -> NumpyEngine:
    dtype = np.float64 if LAST and FaultyEngine.fault == "dtype" else np.float32
    engine = FaultyEngine(options.model, options.optimizer, options.seed, rank, dtype)
    if LAST:
        engine.network.tensors = odd_tensors(engine.network.tensors, FaultyEngine.fault)
        if FaultyEngine.fault == "shape":  # of one tensor is enough
            engine.network.tensors[:2] = NumpyEngine(options.model, "sgd", 0, 0).network.tensors[:2]
    return engine


def refuse(options: Options) -> None:
    if LAST:
        raise BadRequestError("this rank alone refuses")


if __name__ == "__main__":
    FaultyEngine.fault = sys.argv.pop(1)
    ENGINES["numpy"] = make
    if FaultyEngine.fault == "option" and LAST:
        sys.argv += ["--fusion-bytes", "1"]
    if FaultyEngine.fault == "message" and LAST:
        broken = mock.Mock(side_effect=ZeroDivisionError("the network broke"))
        mock.patch.object(RingAllreduce, "_pipelined", broken).start()
        mock.patch.object(RingAllreduce, "_hop_by_hop", broken).start()
    if FaultyEngine.fault == "refusal":
        mock.patch.object(Options, "check", refuse).start()
    code = command_line.main()
    print(f"rank exit {code}", file=sys.stderr, flush=True)
    sys.exit(code)
