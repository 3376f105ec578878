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
import io
import shutil
import tarfile
from typing import IO, Any, Iterator, Optional, Tuple

from hpclaunch.remote.safe_unpack import BLOCK, KINDS, Member, shown

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst")
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_READERS = {"gzip": ("gzip", "GzipFile"), "bzip2": ("bz2", "BZ2File"), "xz": ("lzma", "LZMAFile")}
_TAR_BLOCK = 512
_ZEROS = bytes(_TAR_BLOCK)
_EXTENSIONS = b"xgXLK"
_LONGEST_EXTENSION = 16 << 20


class DamagedArchive(Exception):
    """The archive is incomplete or damaged."""


class _Blocks(io.RawIOBase):
    """A file to read from, made of blocks that come one after the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._blocks, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def plain(stream: "IO[bytes]") -> Any:
    """The archive without its compression, which its first bytes tell."""
    buffered = io.BufferedReader(stream, BLOCK)  # type: ignore[type-var]
    first = buffered.peek(6)
    kind = next((name for magic, name in _MAGIC.items() if first.startswith(magic)), "")
    if not kind:
        return buffered
    blocks = _unzstd(buffered) if kind == "zstd" else _decompressed(buffered, kind)
    return io.BufferedReader(_Blocks(blocks), BLOCK)


def _decompressed(compressed: "IO[bytes]", kind: str) -> Iterator[bytes]:
    """By Python's reader of the format; each checks the sums, and that the data have their end."""
    module, name = _READERS[kind]
    try:
        reader = getattr(importlib.import_module(module), name)
    except ImportError as error:  # a Python may have been built without it
        raise DamagedArchive(f"this node's Python cannot read {kind}: {error}") from error
    try:
        file = reader(filename="", fileobj=compressed) if kind == "gzip" else reader(compressed)
        yield from iter(lambda: file.read(BLOCK), b"")
    except Exception as error:  # each module has its own
        raise DamagedArchive(f"its {kind} data are damaged: {error}") from error


def _unzstd(compressed: "IO[bytes]") -> Iterator[bytes]:
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
                shutil.copyfileobj(compressed, pipe, BLOCK)
        except Exception as error:
            failed.append(error)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        output: Any = program.stdout
        yield from iter(lambda: output.read(BLOCK), b"")
        why = (program.stderr.read() if program.stderr else b"").decode("utf-8", "replace").strip()
        feeder.join()
        if program.wait() != 0:
            raise DamagedArchive(f"its zstd data are damaged: {why}")
        if failed:
            raise failed[0]
    finally:
        program.kill()
        program.wait()


class _Header(tarfile.TarInfo):
    """A header, and those that extend it; tarfile itself takes a damaged one for the archive's end."""

    @classmethod
    def frombuf(cls, buf: "bytes | bytearray", encoding: str, errors: str) -> "_Header":
        """As tarfile's, but DamagedArchive for sizes that no archive has."""
        found = super().frombuf(buf, encoding, errors)
        if found.size < 0:
            raise DamagedArchive(f"{shown(found.name)}: a header with a number that is none")
        if found.type in _EXTENSIONS and found.size > _LONGEST_EXTENSION:
            raise DamagedArchive(f"an extended header of {found.size:,} bytes")
        return found

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> "_Header":
        """As tarfile's, but DamagedArchive where it is not whole."""
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            kind = type(error).__name__  # the classes have no public names
            if kind == "EOFHeaderError":
                raise
            why = str(error).replace("bad checksum", "a header's checksum is wrong")
            why += ": the archive is damaged, or not a tar"
            if kind in ("EmptyHeaderError", "TruncatedHeaderError"):
                why = "the archive ends early: without the two blocks of zeros that end a tar"
            raise DamagedArchive(why) from None


class _Content:
    """The bytes of one member, as a file."""

    def __init__(self, file: "Optional[IO[bytes]]") -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """As a file's; DamagedArchive where the archive ends in it."""
        try:
            return self._file.read(size) if self._file else b""
        except tarfile.TarError:
            raise DamagedArchive("the archive ends within a member") from None


def members(stream: "IO[bytes]") -> Iterator[Tuple[Member, Any]]:
    """Each member and its content, to be read before the next one; DamagedArchive where it is not whole."""
    blocks: Any = plain(stream)
    try:
        with tarfile.open(
            fileobj=blocks, mode="r|", tarinfo=_Header, encoding="utf-8", errors="surrogateescape"
        ) as archive:
            while True:
                header = archive.next()
                if header is None:
                    break
                archive.members = []  # type: ignore[attr-defined]  # it keeps all of them
                yield _member(header), _Content(archive.extractfile(header) if header.isreg() else None)
            _need_the_end(archive.fileobj)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise DamagedArchive(f"the archive is damaged, or ends early: {error}") from None


def _need_the_end(stream: Any) -> None:
    """One block of zeros was read: another one, and nothing else, must follow."""
    block = stream.read(_TAR_BLOCK)
    if block != _ZEROS:
        raise DamagedArchive("the archive is damaged: one block of zeros where two end a tar")
    while block:
        if block.count(0) < len(block):
            raise DamagedArchive("something follows the end of the archive: damaged, or two archives in one")
        block = stream.read(BLOCK)


def _member(header: tarfile.TarInfo) -> Member:
    kind = KINDS.get(header.type, f"member of type {header.type!r}")
    if header.issparse():
        kind = KINDS[b"S"]
    seconds, _, fraction = header.pax_headers.get("mtime", str(int(header.mtime))).partition(".")
    mtime_ns = int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])
    size = header.size if header.isreg() else 0
    return Member(header.name, kind, header.mode, mtime_ns, size, header.linkname)
