"""The runner on ranks of which the last has a fault of its own, named by the first argument."""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hpclaunch.train import cli
from hpclaunch.train.engine import ENGINES
from hpclaunch.train.engine.numpy_engine import NumpyEngine
from hpclaunch.train.errors import BadRequestError
from hpclaunch.train.options import Options

LAST = MPI.COMM_WORLD.Get_rank() == MPI.COMM_WORLD.Get_size() - 1


class FaultyEngine(NumpyEngine):
    """Goes wrong in step 2, or starts from other parameters."""

    fault = ""

    def compute_gradients(self, images: Any, labels: Any, step: int, ready: Any = None) -> Any:
        if LAST and step == 2 and self.fault == "crash":
            raise ZeroDivisionError("an unforeseen error")
        sums = super().compute_gradients(images, labels, step, ready)
        if LAST and step == 2 and self.fault == "nan":
            self.gradients[-1] = np.nan
        return sums

    def load_state(self, state: Any) -> None:
        super().load_state(state)
        if LAST and self.fault == "parameters":
            self.network.parameters[0] += 1


def make(options: Options, rank: int) -> NumpyEngine:
    return FaultyEngine(options.model, options.optimizer, options.seed, rank)


def refuse(options: Options) -> None:
    if LAST:
        raise BadRequestError("this rank alone refuses")


if __name__ == "__main__":
    FaultyEngine.fault = sys.argv.pop(1)
    ENGINES["numpy"] = make
    if FaultyEngine.fault == "refusal":
        mock.patch.object(Options, "check", refuse).start()
    code = cli.main()
    print(f"rank exit {code}", file=sys.stderr, flush=True)
    sys.exit(code)
