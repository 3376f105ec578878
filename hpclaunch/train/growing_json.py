"""A JSON array in a file that grows: closed again by every write."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from .whole_files import write_whole

_CLOSING = b"\n]\n"


class GrowingArray:
    """Each write replaces the closing bracket by more elements and a new one, as Horovod does.

    So the file is a whole JSON document between two writes. A kill in the middle of one may cut it within
    its last line; readers of Chrome's trace format accept a missing end ("Trace Event Format", JSON array
    format: the closing bracket is optional).
    """

    def __init__(self, path: Path, elements: Iterable[str]) -> None:
        """Replace ``path`` by an array of ``elements`` (JSON, at least one); OSError if that fails."""
        text = b"[\n" + ",\n".join(elements).encode()
        write_whole(path, lambda file: file.write(text + _CLOSING))
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._end = len(text)

    def extend(self, elements: Iterable[str]) -> None:
        """Add ``elements``, one per line. OSError where the file cannot grow: it then has none of them."""
        text = "".join(f",\n{element}" for element in elements).encode()
        try:
            if os.pwrite(self._file, text + _CLOSING, self._end) < len(text) + len(_CLOSING):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._file, self._end)
            os.pwrite(self._file, _CLOSING, self._end)
            raise
        self._end += len(text)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
