"""Allreduce through one server, as the first distributed trainers did it; to show how it scales."""

from __future__ import annotations

from .algorithm import Algorithm
from .chunks import Array


class ParameterServerAllreduce(Algorithm):
    """Rank 0 receives every array, adds them in the order of the ranks and sends the total to each.

    All bytes pass through one link: the time grows with the number of ranks.
    """

    name = "parameter-server"

    def _sum(self, array: Array) -> None:
        if self._rank:
            self._send(array, 0)
            self._receive(array, 0, add=False)
            return
        for rank in range(1, self._ranks):
            self._receive(array, rank, add=True)
        for rank in range(1, self._ranks):
            self._send(array, rank)
