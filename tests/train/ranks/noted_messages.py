"""On every rank: the messages that the allreduces hand to MPI, in their order; rank 0 prints all as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from hpclaunch.train.allreduce.algorithm import Algorithm
from hpclaunch.train.allreduce.halving_doubling import HalvingDoublingAllreduce
from hpclaunch.train.allreduce.hierarchical import HierarchicalAllreduce
from hpclaunch.train.allreduce.ring import RingAllreduce

COMM = MPI.COMM_WORLD
RANK = COMM.Get_rank()
PER_NODE = 2
CALLS: list[tuple[str, int, int]] = []


class Watched:
    """A communicator that notes what passes through it, with the numbers of the ranks in the job."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        group = comm.Get_group()
        self._numbers = MPI.Group.Translate_ranks(group, list(range(group.Get_size())), COMM.Get_group())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._comm, name)

    def Dup(self) -> Watched:
        return Watched(self._comm.Dup())

    def Isend(self, message: Sequence[Any], to: int) -> Any:
        CALLS.append(("send", self._numbers[to], message[0].nbytes))
        return self._comm.Isend(message, to)

    def Irecv(self, message: Sequence[Any], source: int) -> Any:
        CALLS.append(("receive", self._numbers[source], message[0].nbytes))
        return self._comm.Irecv(message, source)

    def Sendrecv(
        self, send: Sequence[Any], to: int, tag: int, receive: Sequence[Any], source: int, other: int
    ) -> None:
        CALLS.append(("send", self._numbers[to], send[0].nbytes))
        CALLS.append(("receive", self._numbers[source], receive[0].nbytes))
        self._comm.Sendrecv(send, to, tag, receive, source, other)


def made(name: str, segment_bytes: int) -> Algorithm:
    if name == "hierarchical":
        node = MPI.Intracomm(COMM.Split(RANK // PER_NODE, RANK))

        def ring(peers: Any, _: int) -> Algorithm:
            return RingAllreduce(Watched(peers), segment_bytes)  # type: ignore[arg-type]

        return HierarchicalAllreduce(COMM, segment_bytes, node, ring)
    kinds = (RingAllreduce, HalvingDoublingAllreduce)
    return {kind.name: kind for kind in kinds}[name](Watched(COMM), segment_bytes)  # type: ignore[arg-type]


if __name__ == "__main__":
    items = int(sys.argv[1])
    found: dict[str, list[list[tuple[str, int, int]]]] = {}
    for case in sys.argv[2:]:
        algorithm, _, segment = case.partition(",")
        allreduce = made(algorithm, int(segment))
        array = allreduce.buffer(items, np.float32)
        array[:] = RANK + 1
        CALLS.clear()
        allreduce.sum(array)
        assert (array == sum(range(1, COMM.Get_size() + 1))).all()
        every = COMM.gather(list(CALLS))
        if every:
            found[case] = every
    if RANK == 0:
        print(json.dumps(found))
