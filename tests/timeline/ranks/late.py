"""The bundled training, with one rank or all of them slow: ``python -m tests.timeline.ranks.late KIND RANK S
...``.

KIND is ``computing`` or ``input``; RANK the slow one, or all; S for how many seconds in each step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from typing import Any
from unittest import mock

from mpi4py import MPI

from hpclaunch.train.command_line import main
from hpclaunch.train.engine.models import NumpyEngine
from hpclaunch.train.training_loop import Training

if __name__ == "__main__":
    kind, slow, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    del sys.argv[1:4]
    late = seconds if slow in ("all", str(MPI.COMM_WORLD.Get_rank())) else 0.0
    gradients, batches = NumpyEngine.compute_gradients, Training._batches

    def slow_gradients(self: NumpyEngine, *arguments: Any, **options: Any) -> Any:
        time.sleep(late)
        return gradients(self, *arguments, **options)

    def slow_batches(self: Training) -> Generator[Any, None, None]:
        for batch in batches(self):
            time.sleep(late)
            yield batch

    if kind == "computing":
        mock.patch.object(NumpyEngine, "compute_gradients", slow_gradients).start()
    else:
        mock.patch.object(Training, "_batches", slow_batches).start()
    sys.exit(main())
