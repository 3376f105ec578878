"""The runner with an ``--allreduce auto`` that takes five seconds longer, or reports ``late`` choices."""

from __future__ import annotations

import sys
import time
from typing import Any
from unittest import mock

from hpclaunch.train import command_line
from hpclaunch.train.allreduce.auto_choice import AutoAllreduce
from hpclaunch.train.exchange.gradient_exchange import GradientExchange

ADDED_S = 5.0
true_fastest, true_gradients = AutoAllreduce._fastest, GradientExchange.gradients
in_step = False


def slow_fastest(self: AutoAllreduce, candidates: Any, array: Any) -> int:
    time.sleep(ADDED_S)
    return true_fastest(self, candidates, array)


def watched_fastest(self: AutoAllreduce, candidates: Any, array: Any) -> int:
    if in_step:
        print("chosen in a step", file=sys.stderr, flush=True)
    return true_fastest(self, candidates, array)


def gradients(self: GradientExchange, *batch: Any) -> Any:
    global in_step
    in_step = True
    return true_gradients(self, *batch)


if __name__ == "__main__":
    late = sys.argv[1:2] == ["late"]
    if late:
        del sys.argv[1]
        mock.patch.object(GradientExchange, "gradients", gradients).start()
    mock.patch.object(AutoAllreduce, "_fastest", watched_fastest if late else slow_fastest).start()
    sys.exit(command_line.main())
