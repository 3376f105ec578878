"""The next batches are made in a thread while the current one is used."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

_AHEAD = 4  # more than one, since the thread may get its turn late


def prefetched(make: Callable[[S], T], wanted: Iterable[S]) -> Generator[T, None, None]:
    """``make(item)`` for each item in turn, a few items ahead in another thread.

    What ``make`` raises is raised where its result would have come. ``make`` may use no MPI. The thread ends
    with the generator.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as thread:
        made: deque[Future[T]] = deque()
        try:
            for item in wanted:
                made.append(thread.submit(make, item))
                if len(made) > _AHEAD:
                    yield made.popleft().result()
            while made:
                yield made.popleft().result()
        finally:
            for future in made:
                future.cancel()
