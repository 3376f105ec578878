"""A JSON array in a file that grows, and is whole at every moment, whatever kills its writer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from .whole_files import write_whole

# A signal may cut a write into a file short between two pages of memory, but not within one.
_PAGE_BYTES = 4096
_FIRST_BYTES = 16 * _PAGE_BYTES
_COPIED_BYTES = 1 << 20
_CLOSING = b"\n]\n"

LONGEST_BYTES = _PAGE_BYTES - len(b",\n" + _CLOSING)
"""Of an element's text."""


class GrowingArray:
    """Elements are written over blanks that lie before the closing bracket, each write within a page.

    Where the blanks end, a copy twice as long takes the place of the file. `close` leaves no blanks.
    """

    def __init__(self, path: Path, elements: Iterable[str]) -> None:
        """Replace ``path`` by an array of ``elements`` (JSON, at least one); OSError if that fails."""
        self.path = path
        text = b"[\n" + ",\n".join(elements).encode()
        write_whole(path, lambda file: _fill(file, text, _FIRST_BYTES))
        self._file = os.open(path, os.O_RDWR)
        self._size = _FIRST_BYTES
        self._end = len(text)

    def extend(self, elements: Iterable[str]) -> None:
        """Add ``elements``, each of at most `LONGEST_BYTES`.

        OSError where the file cannot grow: it then ends with some of them, and is whole.
        """
        start, text = self._end, b""
        for element in elements:
            more = (b"," if text else b",\n") + element.encode()
            if len(more) > _PAGE_BYTES - len(_CLOSING):
                raise ValueError(f"an element of {len(more)} bytes")
            page_end = (start // _PAGE_BYTES + 1) * _PAGE_BYTES
            if start + len(text) + len(more) > min(page_end, self._size - len(_CLOSING)):
                self._write(start, text)
                start, text = self._end, b""
                if start + len(more) > min(page_end, self._size - len(_CLOSING)):
                    start = self._next_page(page_end)
            text += more
        self._write(start, text)

    def close(self) -> None:
        """Cut off the blanks and close the file; where that fails, OSError, and the blanks stay."""
        try:
            self._replace(self._end + len(_CLOSING))
        finally:
            os.close(self._file)

    def _write(self, start: int, text: bytes) -> None:
        if text:
            os.pwrite(self._file, text, start)
            self._end = start + len(text)

    def _next_page(self, start: int) -> int:
        if start >= self._size:
            self._replace(2 * self._size)
        return start

    def _replace(self, size: int) -> None:
        """Let a copy of another ``size`` take the file's place."""

        def write(file: BinaryIO) -> None:
            for at in range(0, self._end, _COPIED_BYTES):
                file.write(os.pread(self._file, min(_COPIED_BYTES, self._end - at), at))
            _fill(file, b"", size - self._end)

        write_whole(self.path, write)
        os.close(self._file)
        self._file = os.open(self.path, os.O_RDWR)
        self._size = size


def _fill(file: BinaryIO, text: bytes, size: int) -> None:
    """Write ``text``, blanks and a closing bracket, together ``size`` bytes."""
    file.write(text)
    blanks = size - len(text) - len(_CLOSING)
    for at in range(0, blanks, _COPIED_BYTES):
        file.write(b" " * min(_COPIED_BYTES, blanks - at))
    file.write(_CLOSING)
