"""Recursive halving and doubling: as few bytes as the ring, in log2(p) steps.

R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004, LNCS 3036, pp. 1-9,
doi:10.1007/978-3-540-24685-5_1.
"""

from . import Array, chunk_bounds
from .algorithm import Algorithm


class HalvingDoublingAllreduce(Algorithm):
    """Ranks at halving distances swap halves and add; at doubling distances they swap the sums.

    Where p is not a power of two, the ranks beyond the largest one send their array to a partner first and
    get the total from it last.
    """

    name = "halving-doubling"

    def _sum(self, array: Array) -> None:
        power = 1 << (self._ranks.bit_length() - 1)
        beyond = self._ranks - power
        if self._rank >= power:
            self._send(array, self._rank - power)
            self._receive(array, self._rank - power, add=False)
            return
        if self._rank < beyond:
            self._receive(array, self._rank + power, add=True)
        bounds = chunk_bounds(array.size, power)
        swaps: list[tuple[int, Array, Array]] = []
        low, high = 0, power  # the chunks that this rank still sums
        while high - low > 1:
            middle = (low + high) // 2
            lower, upper = array[bounds[low] : bounds[middle]], array[bounds[middle] : bounds[high]]
            distance = middle - low
            if self._rank < middle:
                kept, given, partner, high = lower, upper, self._rank + distance, middle
            else:
                kept, given, partner, low = upper, lower, self._rank - distance, middle
            self._exchange(given, partner, kept, partner, add=True)
            swaps.append((partner, kept, given))
        for partner, kept, given in reversed(swaps):
            self._exchange(kept, partner, given, partner, add=False)
        if self._rank < beyond:
            self._send(array, self._rank + power)
