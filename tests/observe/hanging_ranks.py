"""Ranks that hang: ``python hanging_ranks.py FIFO FAULT...``, where the fault of rank N is word N, or none.

``stop``: by SIGSTOP. ``read``: in open() of a FIFO without a writer. ``worker``: a process that it has forked
reads the FIFO. ``skip``: it calls another collective. ``c``, ``shell``, ``isolated``, ``bare``: it becomes a
program that does not catch the signal of ``hpclaunch stacks``, and would die of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path


def become_another(fault: str, folder: Path) -> None:
    """Run a program without the start-up file in this process."""
    sleeps = "import time; time.sleep(600)"
    programs = {
        "c": [str(folder / "sleeps")],
        "shell": ["bash", "-c", "while :; do sleep 600; done"],
        "isolated": [sys.executable, "-I", "-c", sleeps],
        "bare": ["env", "-i", sys.executable, "-c", sleeps],
    }
    if fault in programs:
        (folder / f"became.{fault}").write_text(str(os.getpid()))
        os.execvp(programs[fault][0], programs[fault])


def load(path: str) -> str:
    """Read the data of a step."""
    return Path(path).read_text()  # HERE: read


def train(path: str, fault: str) -> None:
    """Hang in the fourth step."""
    from mpi4py import MPI

    for step in range(4):
        if step == 3:
            (Path(path).parent / f"hangs.{MPI.COMM_WORLD.Get_rank()}").touch()
            if fault == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif fault == "read":
                load(path)
            elif fault == "worker":
                worker = multiprocessing.get_context("fork").Process(target=load, args=(path,))
                worker.start()
                worker.join()  # HERE: join
            elif fault == "skip":
                MPI.COMM_WORLD.allgather(step)  # HERE: allgather
        MPI.COMM_WORLD.allreduce(step)  # HERE: allreduce


if __name__ == "__main__":
    names = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "HPCLAUNCH_RANK", "SLURM_PROCID", "RANK")
    number = next(os.environ[name] for name in names if name in os.environ)
    faults = dict(enumerate(sys.argv[2:]))
    mine = faults.get(int(number), "none")
    become_another(mine, Path(sys.argv[1]).parent)
    train(sys.argv[1], mine)
