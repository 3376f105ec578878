"""Writing a file whole or not at all: at any moment a reader finds the old one, or the whole new one."""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable
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
    _sync_folder(path.parent)


def prepare_folder(folder: Path, option: str) -> None:
    """Make ``folder`` and check that it can be written; BadRequestError, naming ``option``, if not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        raise BadRequestError(
            f"{option} {folder}: cannot write there ({error.strerror or error})",
            "Name a folder that you may write to.",
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
