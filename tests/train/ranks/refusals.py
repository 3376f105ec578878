"""A command line on all ranks, again and again in one start of MPI: it refuses each.

Arguments: the module whose ``main`` it is; a JSON list of cases, each the list of every rank's options.
Rank 0 prints, as JSON, of each case every rank's exit code, stdout and stderr.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module

from mpi4py import MPI

MAIN = import_module(sys.argv[1]).main
COMM = MPI.COMM_WORLD


def answer(options: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = MAIN(options)
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    answers = [COMM.gather(answer(by_rank[COMM.Get_rank()])) for by_rank in json.loads(sys.argv[2])]
    if COMM.Get_rank() == 0:
        print(json.dumps(answers))
