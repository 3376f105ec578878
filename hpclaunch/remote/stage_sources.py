# ruff: noqa: UP006, UP035  (the interpreter of a node may be old)
"""The sources of a staging: their kinds and listings, and the bytes that travel to the nodes.

A folder travels as a stream of records, each a head, a name, a link's target and a file's content: it is
``lstat``-ed once per file, and every file is read once. This file goes to nodes; it imports only modules
of this folder that are sent with it, and runs on any Python from 3.6 on.
"""

import hashlib
import json
import os
import re
import socket
import stat
import struct
from typing import IO, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from hpclaunch.remote.archive_reader import ARCHIVES
from hpclaunch.remote.safe_unpack import BLOCK, FILE, FOLDER, HARD_LINK, LINK, Member

IMAGES = (".sqsh", ".squashfs", ".sfs")
_SUM = re.compile(r"(.*)#sha256=([0-9A-Fa-f]{64})", re.DOTALL)
_HEAD = struct.Struct(">BHqQHH")
"""Kind, mode, time of change in ns, size, length of the name, length of the target."""
_END = 255
_KINDS = (FILE, FOLDER, LINK, HARD_LINK)
Json = Dict[str, Any]


class StageError(Exception):
    """A failure with a message for the user."""


class Source(NamedTuple):
    """The source of one ``--stage``."""

    path: str
    kind: str
    """``folder``, ``tar`` (to be unpacked), ``image`` (to be mounted or unpacked) or ``file``."""
    listing: str
    """Digest of names, sizes and times: another one means another source."""
    size: int
    """Bytes that a node needs at least."""
    files: int
    """Files and folders that a node needs at least."""
    mode: int
    mtime_ns: int
    sha256: str
    """That of a file's content as the user gave it, else empty."""
    members: List[Member]
    """Of a folder."""


def split_sum(text: str) -> Tuple[str, str]:
    """The path and the sum, in lower case, of ``SRC[#sha256=SUM]``; without a sum the text and nothing."""
    given = _SUM.fullmatch(text)
    return (given.group(1), given.group(2).lower()) if given else (text, "")


def look_at(text: str, target: str) -> Source:
    """Look at ``SRC[#sha256=SUM]``; the target's name decides on unpacking. StageError: cannot be copied."""
    path, sha256 = split_sum(text)
    kind = _kind(path, target)
    if kind == "folder" and sha256:
        raise StageError(f"--stage {text}: a sum can be given of a file, and this is a folder")
    if kind == "folder":
        return _folder(path)
    found = os.stat(path)
    mode = found.st_mode & 0o777
    listing = _digest([os.path.basename(path), found.st_size, found.st_mtime_ns, mode, sha256])
    return Source(path, kind, listing, found.st_size, 1, mode, found.st_mtime_ns, sha256, [])


def _folder(path: str) -> Source:
    members = list(walk(os.path.realpath(path)))  # not the link that it may be
    wrong = next((member for member in members if member.kind not in _KINDS), None)
    if wrong:
        raise StageError(f"{os.path.join(path, wrong.name)}: not a file, folder or link, but a {wrong.kind}")
    listing = _digest([[one.name, one.kind, one.mode, one.size, one.mtime_ns, one.target] for one in members])
    size = sum(member.size for member in members)
    return Source(path, "folder", listing, size, len(members) - 1, 0, 0, "", members)


def _kind(path: str, target: str) -> str:
    if os.path.isdir(path):
        return "folder"
    if not os.path.isfile(path):
        raise StageError(f"--stage {path}: not a folder or regular file on {socket.gethostname()}")
    for kind, suffixes in (("tar", ARCHIVES), ("image", IMAGES)):
        if path.endswith(suffixes) and not target.endswith(suffixes):
            return kind
    return "file"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def walk(folder: str) -> Iterator[Member]:
    """The members of a folder in order, itself first, named ``.``; each is ``lstat``-ed once."""
    first_names: Dict[Tuple[int, int], str] = {}
    yield _entry(".", os.lstat(folder), folder, first_names)
    todo = [""]
    while todo:
        at = todo.pop()
        try:
            with os.scandir(os.path.join(folder, at)) as entries:
                inner = sorted(entries, key=lambda entry: entry.name)
            for entry in inner:
                name = os.path.join(at, entry.name)
                member = _entry(name, entry.stat(follow_symlinks=False), entry.path, first_names)
                yield member
                if member.kind == FOLDER:
                    todo.append(name)
        except OSError as error:
            raise StageError(f"{error.filename}: {error.strerror or error}") from error


_OTHER_KINDS = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def _entry(name: str, found: os.stat_result, path: str, first_names: Dict[Tuple[int, int], str]) -> Member:
    kind, size, target = _OTHER_KINDS.get(stat.S_IFMT(found.st_mode), "unknown kind"), 0, ""
    if stat.S_ISDIR(found.st_mode):
        kind = FOLDER
    elif stat.S_ISLNK(found.st_mode):
        kind, target = LINK, os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        kind, size = FILE, found.st_size
        first = first_names.setdefault((found.st_dev, found.st_ino), name) if found.st_nlink > 1 else name
        if first != name:
            kind, size, target = HARD_LINK, 0, first
    return Member(name, kind, stat.S_IMODE(found.st_mode), found.st_mtime_ns, size, target)


def send_source(source: Source, write: Callable[[bytes], None]) -> None:
    """Give ``write`` the source's bytes in blocks of about 1 MiB. StageError: changed since `look_at`."""
    path, waiting, size = os.path.realpath(source.path), [], 0
    pieces = _content(path, source.size, source.mtime_ns)
    for piece in _records(path, source.members) if source.kind == "folder" else pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK:
            write(b"".join(waiting))
            waiting, size = [], 0
    if size:
        write(b"".join(waiting))


def _records(folder: str, members: List[Member]) -> Iterator[bytes]:
    for member in members:
        name, target = os.fsencode(member.name), os.fsencode(member.target)
        kind = _KINDS.index(member.kind)
        yield _HEAD.pack(kind, member.mode, member.mtime_ns, member.size, len(name), len(target))
        yield name + target
        if member.kind == FILE:
            yield from _content(os.path.join(folder, member.name), member.size, member.mtime_ns)
    for member in members:
        path = os.path.join(folder, member.name)
        if member.kind == FOLDER and os.lstat(path).st_mtime_ns != member.mtime_ns:
            raise _changed(path)
    yield _HEAD.pack(_END, 0, 0, 0, 0, 0)


def _content(path: str, size: int, mtime_ns: int) -> Iterator[bytes]:
    left = size
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while left:
            block = os.read(file, min(left, BLOCK))
            if not block:
                raise _changed(path)
            left -= len(block)
            yield block
        after = os.fstat(file)
    finally:
        os.close(file)
    if (after.st_size, after.st_mtime_ns) != (size, mtime_ns):
        raise _changed(path)


def _changed(path: str) -> StageError:
    return StageError(f"{path}: it changed while it was read")


def folder_members(stream: "IO[bytes]") -> Iterator[Tuple[Member, Optional["IO[bytes]"]]]:
    """The members of a folder that `send_source` has sent; content is to be read before the next one."""
    while True:
        kind, mode, mtime_ns, size, name_size, target_size = _HEAD.unpack(exactly(stream, _HEAD.size))
        if kind == _END:
            return
        names = exactly(stream, name_size + target_size)
        name, target = os.fsdecode(names[:name_size]), os.fsdecode(names[name_size:])
        yield Member(name, _KINDS[kind], mode, mtime_ns, size, target), stream


def exactly(stream: "IO[bytes]", size: int) -> bytes:
    """That many bytes; StageError where fewer come."""
    data = stream.read(size)
    if len(data) < size:
        raise StageError("what was received ends early")
    return data


def sha256_of(path: str) -> str:
    """Of a file, which is not followed where it is a link."""
    digest = hashlib.sha256()
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        buffer = bytearray(min(BLOCK, os.fstat(file).st_size + 1))
        while True:
            size = os.readv(file, [buffer])
            digest.update(memoryview(buffer)[:size])
            if size < len(buffer):  # only at the end: man 2 read, of a regular file
                return digest.hexdigest()
    finally:
        os.close(file)
