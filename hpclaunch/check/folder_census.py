"""How many files a folder has and how large they are, counted in bounded time."""

import os
import time
from collections.abc import Callable

import msgspec

from hpclaunch.errors import BadInputError

SMALL_BYTES = 1 << 20
"""Smaller files are small ones (wiki.lustre.org, Lustre Striping Best Practices)."""
LARGE_BYTES = 1 << 30
"""Larger ones are large (the same page)."""


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted below a folder, or of one file."""

    files: int = 0
    folders: int = 0
    bytes: int = 0
    small_files: int = 0
    large_files: int = 0
    largest_bytes: int = 0
    largest: str | None = None
    """Path of the largest file."""
    most_in_a_folder: int = 0
    """Entries of the fullest folder."""
    unreadable: int = 0
    """Folders that cannot be listed."""
    seconds: float = 0.0
    complete: bool = True
    """False: the time was over first, so that there is more."""


def take_census(path: str, limit_s: float, clock: Callable[[], float] = time.monotonic) -> Census:
    """Count what is below ``path``, following no links, for at most ``limit_s`` seconds.

    Raises BadInputError where there is no such file or folder.
    """
    if not os.path.lexists(path):
        raise BadInputError(f"{path}: does not exist", "name a folder or a file")
    start, counted = clock(), _Counter()
    if not os.path.isdir(path):
        counted.file(path, os.stat(path).st_size)
        return counted.census(clock() - start, complete=True)
    waiting = [path]
    while waiting:
        waiting += counted.folder(waiting.pop())
        if clock() - start > limit_s:
            return counted.census(clock() - start, complete=not waiting)
    return counted.census(clock() - start, complete=True)


class _Counter:
    def __init__(self) -> None:
        self._sums = dict.fromkeys(
            ("files", "folders", "bytes", "small_files", "large_files", "most_in_a_folder", "unreadable"), 0
        )
        self._largest: tuple[int, str | None] = (0, None)

    def folder(self, path: str) -> list[str]:
        """Count its entries; the folders among them."""
        inner, entries = [], 0
        try:
            with os.scandir(path) as listing:
                for entry in listing:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        self.file(entry.path, entry.stat(follow_symlinks=False).st_size)
        except OSError:
            self._sums["unreadable"] += 1
        self._sums["folders"] += 1
        self._sums["most_in_a_folder"] = max(self._sums["most_in_a_folder"], entries)
        return inner

    def file(self, path: str, size: int) -> None:
        """Count a file."""
        self._sums["files"] += 1
        self._sums["bytes"] += size
        self._sums["small_files"] += size < SMALL_BYTES
        self._sums["large_files"] += size > LARGE_BYTES
        if size > self._largest[0] or self._largest[1] is None:
            self._largest = size, path

    def census(self, seconds: float, *, complete: bool) -> Census:
        """What was counted so far."""
        size, path = self._largest
        return Census(**self._sums, largest_bytes=size, largest=path, seconds=seconds, complete=complete)
