"""The number of the collective that a rank is in, where ``hpclaunch stacks`` reads it while ranks hang.

All ranks call the same allreduces in the same order, so a rank with another number than the other ranks is
the one that they wait for.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_LENGTH = 40


class CollectiveNumber:
    """Counts collectives and shows the newest."""

    def __init__(self, file: int) -> None:
        """Show them in an open file."""
        self._count = self._depth = 0
        self._file = file

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Show that this rank is in the next collective, then that it has left it.

        Those within it, which only some ranks may call, do not count.
        """
        self._depth += 1
        if self._depth == 1:
            self._count += 1
            self._show(name, "in")
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._show(name, "out")

    def _show(self, name: str, where: str) -> None:
        os.pwrite(self._file, f"{self._count} {name} {where}".ljust(_LENGTH)[:_LENGTH].encode(), 0)


def _requested() -> CollectiveNumber | None:
    """The count, where the job has the start-up file of ``hpclaunch stacks``; None where there is no room.

    Its file is in memory, and only /proc/PID/fd shows it.
    """
    if not os.environ.get("HPCLAUNCH_STACKS"):
        return None
    path = f"/dev/shm/hpclaunch-collective.{os.getpid()}.{os.urandom(4).hex()}"  # noqa: S108  (O_EXCL)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.unlink(path)
    except OSError:
        return None
    return CollectiveNumber(file)


COLLECTIVES = _requested()
"""Those of this process; None: they are not counted, which costs nothing."""
