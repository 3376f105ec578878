"""How a flat array is cut over ranks."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def chunk_bounds(items: int, parts: int) -> list[int]:
    """The ``parts + 1`` bounds, from 0 to ``items``, that cut an array into chunks as even as possible.

    The first ``items % parts`` chunks hold one item more, so 2(p-1) of p chunks exceed the even share by
    fewer than p items.
    """
    each, more = divmod(items, parts)
    return [part * each + min(part, more) for part in range(parts + 1)]
