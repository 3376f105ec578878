"""IDX files: right ones in each packing, and every way to be wrong, with the file named."""

from __future__ import annotations

import gzip
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.train.data.idx_format import Bytes, check_pair, parse_content, read_bytes, unpack
from hpclaunch.train.run_errors import BadDataError
from tests.train.mirror import idx

IMAGES = np.arange(3 * 28 * 28, dtype=np.uint64).astype(np.uint8).reshape(3, 28, 28)
LABELS = np.array([7, 0, 9], np.uint8)
PLAIN = idx(IMAGES)
GZIP = gzip.compress(PLAIN)


def read_idx(path: Path) -> Bytes:
    return parse_content(unpack(read_bytes(path), str(path)), str(path))


def content_or_error(raw: bytes) -> bytes | BadDataError:
    """What `unpack` gives or raises; any other exception is a failure of the test."""
    try:
        return unpack(raw, "x")
    except BadDataError as error:
        return error


def wrong_crc(packed: bytes) -> bytes:
    """The same gzip file with another checksum at its end."""
    return packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]


# Each wrong file, and words that its error must say besides the file's name.
WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "only 0 bytes"),
    "three bytes": (PLAIN[:3], "only 3 bytes"),
    "cut in the header": (PLAIN[:10], "ends inside its header, after 10 bytes"),
    "cut": (PLAIN[:-1], "cut: 2,367 bytes, but its header says 2,368"),
    "cut after the header": (PLAIN[:16], "cut: 16 bytes, but its header says 2,368"),
    "trailing byte": (PLAIN + b"\0", "too long: 2,369 bytes"),
    "text": (b"label,pixel\n1,2\n", "starts with 0x6c616265"),
    "32-bit values": (b"\0\0\x0c\x01" + PLAIN[4:], "starts with 0x00000c01"),
    "two dimensions": (idx(IMAGES[0]), "starts with 0x00000802"),
    "little-endian": (PLAIN[3::-1] + PLAIN[4:], "starts with 0x03080000"),
    "sizes too large": (
        struct.pack(">4I", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1),
        "the header says 4294967295 x",
    ),
    "cut gzip": (GZIP[:-20], "the gzip data are cut or damaged"),
    "gzip without its end": (GZIP[:-8], "the gzip data are cut or damaged"),
    "gzip magic only": (GZIP[:2], "the gzip data are cut or damaged"),
    "gzip with a wrong checksum": (wrong_crc(GZIP), "CRC"),
    "gzip and more": (GZIP + b"more", "the gzip data are cut or damaged"),
    "gzip of an empty file": (gzip.compress(b""), "only 0 bytes"),
    "gzip of a cut file": (gzip.compress(PLAIN[:-1]), "cut: 2,367 bytes"),
    "gzip of a cut header": (gzip.compress(PLAIN[:9]), "ends inside its header, after 9 bytes"),
    "gzip of trailing bytes": (gzip.compress(PLAIN + b"\0\0"), "too long: 2,369 bytes or more"),
    "gzip twice": (gzip.compress(GZIP), "starts with 0x1f8b"),
    "gzip that cannot hold what its header says": (
        gzip.compress(struct.pack(">4I", 0x803, 10_000, 28, 28)),
        "the header says 7,840,016 bytes",
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["images.gz", "images"])
def test_gzip_is_known_by_content_not_by_name(packed: bool, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(GZIP if packed else PLAIN)
    array = read_idx(path)
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(array, IMAGES)


def test_gzip_in_several_members_is_one_file() -> None:
    assert unpack(gzip.compress(PLAIN[:1000]) + gzip.compress(PLAIN[1000:]), "x") == PLAIN


@given(st.lists(st.integers(0, 255), max_size=40))
def test_labels_round_trip(values: list[int]) -> None:
    content = idx(np.array(values, np.uint8))
    for raw in (content, gzip.compress(content)):
        assert parse_content(unpack(raw, "x"), "x").tolist() == values


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_file_is_named_with_what_was_found(kind: str, tmp_path: Path) -> None:
    raw, said = WRONG[kind]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(raw)
    with pytest.raises(BadDataError) as caught:
        read_idx(path)
    assert caught.value.exit_code == 3
    assert caught.value.message.startswith(f"{path}: ")
    assert said in caught.value.message
    assert caught.value.hint


@given(st.binary(max_size=200), st.sampled_from([b"", PLAIN[:4], PLAIN[:16], GZIP[:10], GZIP[:200]]))
def test_any_bytes_are_read_or_refused(tail: bytes, head: bytes) -> None:
    content = content_or_error(head + tail)
    if isinstance(content, BadDataError):
        assert content.message.startswith("x: ")
    else:
        assert len(content) == 4 + 4 * content[3] + parse_content(content, "x").size


@given(st.integers(0, len(GZIP) - 1), st.integers(1, 255))
def test_a_changed_byte_never_changes_the_values(place: int, change: int) -> None:
    """gzip's checksum covers the values; the fields of its head that it does not cover do not matter."""
    raw = bytearray(GZIP)
    raw[place] ^= change
    content = content_or_error(bytes(raw))
    assert isinstance(content, BadDataError) or content == PLAIN


def test_a_bomb_costs_no_memory() -> None:
    """64 MB of zeros in 64 kB, behind a header that says three images: only these are unpacked."""
    bomb = gzip.compress(PLAIN[:16] + bytes(64_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(BadDataError, match="too long"):
            unpack(bomb, "bomb")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4_000_000


def test_a_lying_header_costs_no_memory() -> None:
    """The header says 784 MB, and enough compressed bytes follow to make that possible: they are noise."""
    noise = np.random.PCG64(1).random_raw(125_000).tobytes()
    lie = gzip.compress(struct.pack(">4I", 0x803, 1_000_000, 28, 28) + noise)
    assert 1032 * len(lie) > 784_000_016
    tracemalloc.start()
    try:
        with pytest.raises(BadDataError, match="cut"):
            unpack(lie, "lie")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16_000_000


def test_deflate_never_beats_the_assumed_ratio() -> None:
    zeros = bytes(10_000_000)
    assert len(zeros) < 1032 * len(gzip.compress(zeros, 9, mtime=0))
    assert len(zeros) < 1032 * len(zlib.compress(zeros, 9))


def test_file_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, said in (
        (tmp_path / "absent", "does not exist"),
        (tmp_path, "is not a regular file"),
        (tmp_path / "fifo", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
    ):
        with pytest.raises(BadDataError, match=said) as caught:
            read_idx(path)
        assert str(path) in caught.value.message


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """/proc/self/mem is a regular file that even root cannot read from its start."""
    with pytest.raises(BadDataError, match="/proc/self/mem: cannot be read: Input/output error"):
        read_idx(Path("/proc/self/mem"))


def test_file_over_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(PLAIN)
    assert read_bytes(path, len(PLAIN)) == PLAIN
    with pytest.raises(BadDataError, match="larger than 2367 bytes"):
        read_bytes(path, len(PLAIN) - 1)


def written(tmp_path: Path, images: bytes, labels: bytes) -> tuple[Path, Path]:
    paths = tmp_path / "images", tmp_path / "labels"
    for path, content in zip(paths, (images, labels), strict=True):
        path.write_bytes(content)
    return paths


def pair(images: Path, labels: Path) -> tuple[Bytes, Bytes]:
    return check_pair(read_idx(images), read_idx(labels), str(images), str(labels))


def test_pair(tmp_path: Path) -> None:
    images, labels = pair(*written(tmp_path, GZIP, idx(LABELS)))
    np.testing.assert_array_equal(images, IMAGES)
    np.testing.assert_array_equal(labels, LABELS)


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (IMAGES, LABELS[:2], r"3 images in .*/images, but 2 labels in .*/labels"),
        (IMAGES[:, :14], LABELS, r"/images: holds 3 x 14 x 28 values"),
        (LABELS, LABELS, r"/images: holds 3 values"),
        (IMAGES, IMAGES, r"/labels: holds 3 x 28 x 28 values"),
        (IMAGES[:0], LABELS[:0], r"/images: holds no images"),
        (IMAGES, np.array([1, 10, 200], np.uint8), r"/labels: label 1 is 10"),
    ],
)
def test_pair_that_does_not_fit(
    images: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    labels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    said: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(BadDataError, match=said):
        pair(*written(tmp_path, idx(images), idx(labels)))
