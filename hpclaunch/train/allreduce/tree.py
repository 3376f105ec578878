"""Allreduce over a binomial tree: few messages, each of the whole array; for short ones."""

from __future__ import annotations

from .algorithm import Algorithm
from .chunks import Array


class TreeAllreduce(Algorithm):
    """Sums travel up to rank 0, the total down again: log2(p) messages each way."""

    name = "tree"

    def _sum(self, array: Array) -> None:
        distance = 1
        while distance < self._ranks:
            if self._rank & distance:
                self._send(array, self._rank - distance)
                break
            if self._rank + distance < self._ranks:
                self._receive(array, self._rank + distance, add=True)
            distance *= 2
        if self._rank:
            self._receive(array, self._rank - distance, add=False)
        while distance > 1:
            distance //= 2
            if self._rank + distance < self._ranks:
                self._send(array, self._rank + distance)
