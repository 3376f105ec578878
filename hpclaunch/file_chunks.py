"""A file as a stream of bytes: timelines may be larger than the memory."""

from collections.abc import Iterator
from pathlib import Path

from hpclaunch.errors import BadInputError

_CHUNK_BYTES = 1 << 20


def file_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces; raises BadInputError where it cannot be read."""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
