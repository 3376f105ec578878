"""Writing a file whole or not at all: at any moment a reader finds the old one, or the whole new one."""

import contextlib
import errno
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from .run_errors import BadRequestError


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file next to ``path``, make it durable, rename it; OSError if anything fails."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # several runs may write one path
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # so that the rename survives a crash of the machine
    finally:
        os.close(folder)


def prepare_folder(folder: Path, option: str) -> None:
    """Make ``folder`` and check that it can be written; BadRequestError, naming ``option``, if not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        reason = error.strerror or error
        raise BadRequestError.of("no folder", option=option, folder=folder, reason=reason) from error


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
