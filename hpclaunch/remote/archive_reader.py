# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""Reads a tar, plain or compressed, and refuses a damaged one, which Python's tarfile takes for a short one.

Every header must have its right checksum, and the archive must end with two blocks of zeros and nothing but
zeros after them (POSIX.1-2017, pax, "ustar Interchange Format"). A compressed archive must be whole to its
last trailer: CRC and length of gzip (RFC 1952), the CRCs of bzip2, the checks and the index of xz, the
checksum of zstd where its writer made one. The content of a plain tar has no sum: a bit that changed there
cannot be seen.

This file goes to nodes. It imports only ``safe_unpack`` of hpclaunch and runs on any Python from 3.6 on.
"""

import importlib
import shutil
import zlib
from typing import IO, Any, Callable, Dict, Iterator, Optional, Tuple

from hpclaunch.remote.safe_unpack import BLOCK, FILE, FOLDER, HARD_LINK, KINDS, LINK, Member, shown

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst")
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_TAR_BLOCK = 512
_ZEROS = bytes(_TAR_BLOCK)
_LONGEST_EXTENSION = 16 << 20


class DamagedArchive(Exception):
    """The archive is incomplete or damaged."""


# --- compression ------------------------------------------------------------------------------------------


class _Blocks:
    """A file to read from, made of blocks that come one after the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""
        self._at = 0

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end."""
        if self._at + size <= len(self._rest):
            self._at += size
            return self._rest[self._at - size : self._at]
        parts = [self._rest[self._at :]]
        missing = size - len(parts[0])
        self._rest, self._at = b"", 0
        while missing > 0:
            block = next(self._blocks, b"")
            if not block:
                break
            parts.append(block[:missing])
            if len(block) > missing:
                self._rest, self._at = block, missing
            missing -= len(parts[-1])
        return b"".join(parts)


def plain(stream: "IO[bytes]") -> _Blocks:
    """The archive without its compression, which its first bytes tell."""
    first = stream.read(6)
    kind = next((name for magic, name in _MAGIC.items() if first.startswith(magic)), "")
    compressed = _chunks(first, stream)
    if kind == "zstd":
        return _Blocks(_unzstd(compressed))
    makers: Dict[str, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(31),  # with gzip's header and trailer
        "bzip2": lambda: _module("bz2", kind).BZ2Decompressor(),
        "xz": lambda: _module("lzma", kind).LZMADecompressor(),
    }
    return _Blocks(_decompressed(compressed, kind, makers[kind]) if kind else compressed)


def _module(name: str, kind: str) -> Any:
    """A module that a Python may have been built without; its errors are none of this module's."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise DamagedArchive(f"this node's Python cannot read {kind}: {error}") from error


def _chunks(first: bytes, stream: "IO[bytes]") -> Iterator[bytes]:
    yield first + stream.read(BLOCK - len(first))
    while True:
        block = stream.read(BLOCK)
        if not block:
            return
        yield block


def _decompressed(compressed: Iterator[bytes], kind: str, make: Callable[[], Any]) -> Iterator[bytes]:
    """Streams of compressed data one after the other; zeros may follow the last one."""
    current, rest = make(), b""
    try:
        for block in compressed:
            rest += block
            while rest:
                data = current.decompress(rest)
                rest = current.unused_data if current.eof else b""
                if data:
                    yield data
                if not current.eof:
                    break
                rest = rest.lstrip(b"\0")
                if rest:
                    current = make()
    except DamagedArchive:
        raise
    except Exception as error:  # each module has its own
        raise DamagedArchive(f"its {kind} data are damaged: {error}") from error
    if not current.eof:
        raise DamagedArchive(f"its {kind} data end early")


def _unzstd(compressed: Iterator[bytes]) -> Iterator[bytes]:
    """By the program, which checks a frame's checksum (man zstd, --check is its default)."""
    import subprocess
    import threading

    if shutil.which("zstd") is None:
        raise DamagedArchive("a zstd archive needs the program zstd, which this node does not have")
    program = subprocess.Popen(
        ["zstd", "-dc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    failed = []

    def feed() -> None:
        try:
            with program.stdin as pipe:  # type: ignore[union-attr]
                for block in compressed:
                    pipe.write(block)
        except Exception as error:
            failed.append(error)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        output: Any = program.stdout
        while True:
            block = output.read(BLOCK)
            if not block:
                break
            yield block
        why = (program.stderr.read() if program.stderr else b"").decode("utf-8", "replace").strip()
        feeder.join()
        if program.wait() != 0:
            raise DamagedArchive(f"its zstd data are damaged: {why}")
        if failed:
            raise failed[0]
    finally:
        program.kill()
        program.wait()


# --- tar --------------------------------------------------------------------------------------------------


class _Content:
    """The bytes of one member, as a file."""

    def __init__(self, archive: _Blocks) -> None:
        self._archive = archive
        self.left = 0

    def read(self, size: int = -1) -> bytes:
        """As a file's; DamagedArchive where the archive ends in it."""
        size = self.left if size < 0 else min(size, self.left)
        block = self._archive.read(size)
        if len(block) < size:
            raise DamagedArchive("the archive ends within a member")
        self.left -= size
        return block


def members(stream: "IO[bytes]") -> Iterator[Tuple[Member, Any]]:
    """Each member of an archive, and a file with its content, to be read before the next one.

    DamagedArchive where it is not whole.
    """
    archive = plain(stream)
    content = _Content(archive)
    everywhere: Dict[str, str] = {}
    while True:
        header, extended = _next_header(archive, everywhere)
        if header is None:
            _need_the_end(archive)
            return
        member = _member(header, extended)
        content.left = member.size
        yield member, content
        while content.left:
            content.read(BLOCK)
        _skip_padding(archive, member.size)


def _next_header(archive: _Blocks, everywhere: Dict[str, str]) -> Tuple[Optional[bytes], Dict[str, str]]:
    """The header of the next member, None at the end, and what the extended headers before it give for it."""
    extended: Dict[str, str] = {}
    while True:
        header = _header(archive)
        kind = header[156:157] if header else b""
        if header is None and extended:
            raise DamagedArchive("the archive ends before the member that its last header tells of")
        if header is None or kind not in b"gxLK":
            return header, {**everywhere, **extended}
        data = _extension(archive, _number(header[124:136]))
        if kind == b"g":
            everywhere.update(_records(data))
        elif kind == b"x":
            extended.update(_records(data))
        else:
            extended["path" if kind == b"L" else "linkpath"] = _text(data)


def _extension(archive: _Blocks, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise DamagedArchive(f"an extended header of {size:,} bytes")
    data = archive.read(size)
    if len(data) < size:
        raise DamagedArchive("the archive ends within an extended header")
    _skip_padding(archive, size)
    return data


def _header(archive: _Blocks) -> Optional[bytes]:
    """The next block with its checksum verified; None for one of zeros."""
    header = archive.read(_TAR_BLOCK)
    if len(header) < _TAR_BLOCK:
        raise DamagedArchive("the archive ends early: without the two blocks of zeros that end a tar")
    if header == _ZEROS:
        return None
    expected = _number(header[148:156])
    if sum(header) - sum(header[148:156]) + 8 * ord(" ") != expected:
        raise DamagedArchive("a header's checksum is wrong: the archive is damaged, or not a tar")
    return header


def _need_the_end(archive: _Blocks) -> None:
    """One block of zeros was read: another one, and nothing else, must follow."""
    block = archive.read(_TAR_BLOCK)
    if block != _ZEROS:
        raise DamagedArchive("the archive is damaged: one block of zeros where two end a tar")
    while block:
        if block.count(0) < len(block):
            raise DamagedArchive("something follows the end of the archive: damaged, or two archives in one")
        block = archive.read(BLOCK)


def _skip_padding(archive: _Blocks, size: int) -> None:
    padding = -size % _TAR_BLOCK
    if len(archive.read(padding)) < padding:
        raise DamagedArchive("the archive ends early")


def _member(header: bytes, extended: Dict[str, str]) -> Member:
    name, link = _text(header[:100]), _text(header[157:257])
    if header[257:263] == b"ustar\0" and header[345]:
        name = f"{_text(header[345:500])}/{name}"
    name, link = extended.get("path", name), extended.get("linkpath", link)
    kind = KINDS.get(header[156:157], f"member of type {header[156:157]!r}")
    if any(key.startswith("GNU.sparse") for key in extended):
        kind = KINDS[b"S"]
    if kind == FILE and name.endswith("/"):  # as archives before POSIX have it
        kind = FOLDER
    try:
        size, mtime_ns = _size_and_time(header, extended)
    except ValueError:
        raise DamagedArchive(f"{shown(name)}: a header with a number that is none") from None
    has_content = kind not in (FOLDER, LINK, HARD_LINK)
    return Member(name, kind, _number(header[100:108]), mtime_ns, size if has_content else 0, link)


def _size_and_time(header: bytes, extended: Dict[str, str]) -> Tuple[int, int]:
    size = int(extended["size"]) if "size" in extended else _number(header[124:136])
    seconds, _, fraction = extended.get("mtime", str(_number(header[136:148]))).partition(".")
    if size < 0:
        raise ValueError
    return size, int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])


def _records(data: bytes) -> Dict[str, str]:
    """Of a pax header: ``LENGTH KEY=VALUE\\n``, repeated."""
    found = {}
    try:
        while data.strip(b"\0"):
            size = int(data[: data.index(b" ")])
            record, data = data[:size], data[size:]
            key, equals, value = record.partition(b" ")[2].partition(b"=")
            if len(record) != size or record[-1:] != b"\n" or not equals:
                raise ValueError
            found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
    except (ValueError, IndexError):
        raise DamagedArchive("an extended header is damaged") from None
    return found


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _number(field: bytes) -> int:
    """Octal digits; of GNU tar also base 256, marked by the first bit."""
    if field[0] in (0x80, 0xFF):
        return int.from_bytes(field[1:], "big", signed=False) - (
            256 ** (len(field) - 1) if field[0] == 0xFF else 0
        )
    text = field.partition(b"\0")[0].strip()
    try:
        return int(text, 8) if text else 0
    except ValueError:
        raise DamagedArchive("a header's number is none: the archive is damaged, or not a tar") from None
