"""Reading IDX files, the format of MNIST, plain or gzip, without trusting what they claim.

The format (MNIST page of LeCun, Cortes and Burges): two zero bytes, a type code (0x08: unsigned byte),
the number of dimensions, the size of each as a big-endian 32-bit word, then the values in C order.
Here: labels have one dimension (magic 0x00000801), images three (magic 0x00000803).
"""

import gzip
import io
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..run_errors import BadDataError

Bytes = npt.NDArray[np.uint8]

IMAGE_SIDE = 28
CLASSES = 10
MAX_CONTENT_BYTES = 1 << 30  # over 20 times MNIST; a file that claims more is refused, not read

_GZIP_MAGIC = b"\x1f\x8b"
_DIMENSIONS = {0x00000801: 1, 0x00000803: 3}
_RIGHT_MAGIC = "An IDX file of bytes starts with 0x00000801 (labels) or 0x00000803 (images), perhaps in gzip."


def check_pair(images: Bytes, labels: Bytes, images_where: str, labels_where: str) -> tuple[Bytes, Bytes]:
    """Images (n, 28, 28) and their labels (n,), if they fit together.

    Raises BadDataError for counts that differ, no images at all, images that are not 28 x 28, labels over 9.
    """
    if images.ndim != 3 or images.shape[1:] != (IMAGE_SIDE, IMAGE_SIDE):
        found = " x ".join(map(str, images.shape))
        raise BadDataError(f"{images_where}: holds {found} values, not images of 28 x 28 pixels")
    if labels.ndim != 1:
        found = " x ".join(map(str, labels.shape))
        raise BadDataError(f"{labels_where}: holds {found} values", "The right file holds a list of labels.")
    if len(images) != len(labels):
        found = f"{len(images)} images in {images_where}, but {len(labels)} labels in {labels_where}"
        raise BadDataError(found, "Both files must come from the same set, one label an image.")
    if len(images) == 0:
        raise BadDataError(f"{images_where}: holds no images", "At least one image is needed.")
    wrong = np.flatnonzero(labels >= CLASSES)
    if len(wrong):
        first = int(wrong[0])
        raise BadDataError(f"{labels_where}: label {first} is {labels[first]}", "Labels are digits, 0 to 9.")
    return images, labels


def read_bytes(path: Path, limit: int = MAX_CONTENT_BYTES) -> bytes:
    """The whole of a regular file of at most ``limit`` bytes; raises BadDataError for anything else."""
    try:
        if not path.is_file():  # a FIFO would wait forever, a device never ends
            found = "is not a regular file" if path.exists() else "does not exist"
            raise BadDataError(f"{path}: {found}", "Name an IDX file, plain or gzip.")
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise BadDataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > limit:
        raise BadDataError(f"{path}: larger than {limit} bytes", "MNIST's largest file has 47,040,016.")
    return raw


def unpack(raw: bytes, where: str) -> bytes:
    """The uncompressed content of an IDX file given its bytes, exactly as long as its header says.

    No more is decompressed than the header announces, and no more is announced than the compressed
    bytes can hold, so that neither a lying header nor a gzip bomb costs memory.
    ``where`` names the data in errors (BadDataError).
    """
    if not raw.startswith(_GZIP_MAGIC):
        _, length = _content_length(raw[:16], where)
        if len(raw) != length:
            raise _wrong_length(where, length, len(raw))
        return raw
    # Deflate compresses to 1/1032 at best (zlib's technical notes); no file can hold more than this.
    most = 1032 * len(raw)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            head = stream.read(16)
            _, length = _content_length(head, where)
            if length > most:
                raise BadDataError.of("gzip too short", where=where, length=length, found=len(raw), most=most)
            # One byte past the end: finds what is too long and makes gzip check its own checksum.
            content = head + _read_at_most(stream, length + 1 - len(head))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadDataError.of("gzip damaged", where=where, error=error) from error
    if len(content) != length:
        raise _wrong_length(where, length, len(content))
    return content


def parse_content(content: bytes, where: str) -> Bytes:
    """The values in what `unpack` returns: a read-only view, nothing is copied."""
    shape, _ = _content_length(content[:16], where)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def _read_at_most(stream: gzip.GzipFile, length: int) -> bytes:
    """Up to ``length`` bytes, in pieces: one large read would reserve all of ``length`` beforehand."""
    pieces = []
    while length > 0 and (piece := stream.read(min(length, 1 << 20))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _content_length(head: bytes, where: str) -> tuple[tuple[int, ...], int]:
    """The dimensions in an IDX header and the bytes that the whole file must then have."""
    if len(head) < 4:
        raise BadDataError(f"{where}: only {len(head)} bytes", _RIGHT_MAGIC)
    (magic,) = struct.unpack(">I", head[:4])
    if magic not in _DIMENSIONS:
        raise BadDataError(f"{where}: starts with 0x{magic:08x}", _RIGHT_MAGIC)
    count = _DIMENSIONS[magic]
    if len(head) < 4 + 4 * count:
        raise BadDataError.of("header cut", where=where, found=len(head), magic=magic, whole=4 + 4 * count)
    shape = struct.unpack(f">{count}I", head[4 : 4 + 4 * count])
    length = 4 + 4 * count + math.prod(shape)
    if length > MAX_CONTENT_BYTES:
        sizes = " x ".join(map(str, shape))
        raise BadDataError.of("too many values", where=where, sizes=sizes, most=MAX_CONTENT_BYTES)
    return shape, length


def _wrong_length(where: str, length: int, found: int) -> BadDataError:
    problem, more = ("cut", "") if found < length else ("too long", " or more")
    says = f"{found:,} bytes{more}, but its header says {length:,}"
    return BadDataError(f"{where}: {problem}: {says}", "Fetch the file again.")
