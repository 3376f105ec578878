# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""The one rule for everything that is unpacked: members are created, never followed.

`Unpacker` makes members below a folder that the caller has opened, and that only the caller may write to.
Each part of a name is opened relative to the descriptor of its parent with ``O_NOFOLLOW``, a file is made
with ``O_EXCL``, and modes and times are set by descriptor (man 2 open, fchmod, utimensat). Links are made
last, so nothing is written through one. Absolute names, ``..``, names that come twice, devices and FIFOs are
refused by name. Set-uid, set-gid and sticky bits are dropped, which `Unpacker.notes` says; the other bits of
a mode are kept.

This file goes to nodes with ``words.json``. It runs on any Python from 3.6 on.

    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    with Unpacker(root, keep_links=False) as unpacker:
        for member, content in members(stream):  # archive_reader
            unpacker.add(member, content)
        unpacker.finish()
        unpacker.set_modes()
"""

import contextlib
import hashlib
import os
from typing import IO, Any, Dict, List, NamedTuple, Optional, Tuple

from hpclaunch.remote.words import WORDS

BLOCK = 1 << 20
FILE, FOLDER, LINK, HARD_LINK = "file", "folder", "link", "hard link"
KINDS: Dict[bytes, str] = {mark.encode(): kind for mark, kind in WORDS["members of a tar"].items()}
"""Type of a member in a tar -> kind."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""Links that the kernel follows in one name (man 7 path_resolution)."""
_LONGEST_NAME = 3500
"""Bytes: with the folder before it, a program can still open the name (PATH_MAX is 4,096)."""
_DEEPEST = 500
"""Folders in one another: Python's ``shutil.rmtree`` cannot remove about 1,000."""
_FARTHEST_NS = 2**33 * 10**9
"""A time from an archive may be any number; beyond the year 2242 some file systems refuse it."""
_SHOWN = 120


class UnsafeMember(Exception):
    """A member that may not be made; the message begins with its name."""


class LinkOut(UnsafeMember):
    """A link that leads out of the folder, where such links are not kept."""


class Member(NamedTuple):
    """One entry of an archive or a folder."""

    name: str
    kind: str
    """``file``, ``folder``, ``link``, ``hard link``, or the name of what cannot be unpacked (``FIFO``)."""
    mode: int
    mtime_ns: int
    size: int
    """Bytes of content that follow; 0 but for files."""
    target: str
    """Of a link its text, of a hard link the name of the other member; else empty."""


def shown(name: str) -> str:
    """A name as text of a message: without control characters, and not too long."""
    text = name.encode("utf-8", "backslashreplace").decode()
    text = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(name)} characters)"


def clean_name(name: str) -> str:
    """A name without ``.`` and empty parts, empty for the folder itself. UnsafeMember: outside, too long."""
    slashed = f"/{name}/"
    if "//" in slashed or "/." in slashed or "\0" in name or len(name) > 255:
        return "/".join(_parts(name))
    return name  # most names


def _parts(name: str) -> List[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/"):
        raise UnsafeMember(f"{shown(name)}: would be written outside of the folder: an absolute name")
    if ".." in parts:
        raise UnsafeMember(f"{shown(name)}: would be written outside of the folder: it has '..'")
    if "\0" in name:
        raise UnsafeMember(f"{shown(name)}: a name with a zero byte")
    if len(os.fsencode(name)) > _LONGEST_NAME or len(parts) > _DEEPEST:
        raise UnsafeMember(WORDS["long name"].format(shown(name), _LONGEST_NAME, _DEEPEST))
    return parts


def open_part(parent: int, part: str, mode: int) -> int:
    """The descriptor of a folder in an opened one, made with ``mode`` where it is missing, never followed.

    NotADirectoryError where a link or a file is there.
    """
    try:
        return os.open(part, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # made by another process meanwhile
            os.mkdir(part, mode, dir_fd=parent)
        return os.open(part, _FOLDER, dir_fd=parent)


class Unpacker:
    """Makes members below the folder with the descriptor ``root``, which stays the caller's to close.

    ``keep_links``: links that lead out of the folder are made as they are; else they are refused.
    `found` has for each file its sha256, and for each link ``{"link": TEXT}``. After an error the folder
    holds part of the members; the caller removes it.
    """

    def __init__(self, root: int, keep_links: bool = False) -> None:
        self.found: Dict[str, Any] = {}
        self._root = root
        self._keep_links = keep_links
        self._opened: Tuple[str, int] = ("", os.dup(root))
        """The folder that was opened last: most members follow one of the same folder."""
        self._folders: Dict[str, Member] = {}
        self._unreadable: List[Member] = []
        self._hard_links: List[Tuple[str, str]] = []
        self._links: Dict[str, str] = {}
        self._dropped: List[str] = []
        self._make = {FILE: self._file, FOLDER: self._folder, LINK: self._link, HARD_LINK: self._hard_link}

    def __enter__(self) -> "Unpacker":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._opened[1])

    @property
    def notes(self) -> List[str]:
        """Differences from the source, as sentences."""
        if not self._dropped:
            return []
        more = f" and {len(self._dropped) - 1:,} more" if len(self._dropped) > 1 else ""
        return [f"set-uid, set-gid or sticky bits dropped of {shown(self._dropped[0])}{more}"]

    def add(self, member: Member, content: "Optional[IO[bytes]]" = None) -> None:
        """Make a member; ``content`` gives a file's bytes. Links are made by `finish`.

        UnsafeMember where the rule forbids it, OSError (with the member's name) where the system does.
        """
        name = clean_name(member.name)
        if not name and member.kind != FOLDER:
            raise UnsafeMember(f"{shown(member.name)}: the folder itself, but a {member.kind}")
        if member.kind not in self._make:
            raise UnsafeMember(f"{shown(member.name)}: not a file, folder or link, but a {member.kind}")
        if member.mode & 0o7000 and member.kind in (FILE, FOLDER):
            self._dropped.append(name or ".")
        named = member if name == member.name else member._replace(name=name)
        self._named_call(member.name, self._make[member.kind], named, content)

    def finish(self) -> None:
        """Make the links, then set the modes and times of the folders."""
        if not self._keep_links:
            for name, target in self._links.items():
                if leads_out(name, self._links):
                    raise LinkOut(f"{shown(name)}: a link that leads out of the folder, to {shown(target)}")
        for name, other in self._hard_links:
            self._make_hard_link(name, other)
        for name, target in self._links.items():
            folder, base = self._parent(name)
            self._named_call(name, os.symlink, target, base, dir_fd=folder)
            self.found[name] = {"link": target}

    def set_modes(self) -> None:
        """Set the modes and times that would have been in the way; the last call."""
        for member in self._unreadable:
            folder, base = self._parent(member.name)
            self._set_by_name(base, folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, member)
        deepest_first = sorted(self._folders.values(), key=lambda member: -member.name.count("/"))
        for member in (one for one in deepest_first if one.name):
            folder, base = self._parent(member.name)
            self._set_by_name(base, folder, _FOLDER, member)
        if "" in self._folders:
            _set(self._root, self._folders[""])

    # --- one kind of member each --------------------------------------------------------------------------

    def _file(self, member: Member, content: "Optional[IO[bytes]]") -> None:
        folder, base = self._parent(member.name)
        if member.name in self._links:
            raise FileExistsError
        file = os.open(base, _NEW_FILE, 0o600, dir_fd=folder)
        try:
            digest, left = hashlib.sha256(), member.size
            while left:
                block = content.read(min(left, BLOCK)) if content else b""
                if not block:
                    raise UnsafeMember(f"{shown(member.name)}: its content ends {left:,} bytes early")
                digest.update(block)
                left -= len(block)
                write_all(file, block)
            self.found[member.name] = digest.hexdigest()
            _set(file, member if member.mode & 0o400 else member._replace(mode=0o600))
        finally:
            os.close(file)
        if not member.mode & 0o400:
            self._unreadable.append(member)

    def _folder(self, member: Member, _: object) -> None:
        self._open_folder(member.name)
        self._folders[member.name] = member

    def _link(self, member: Member, _: object) -> None:
        if not member.target or "\0" in member.target:
            raise UnsafeMember(f"{shown(member.name)}: a link to nothing")
        self._new_link(member.name)
        self._links[member.name] = member.target

    def _hard_link(self, member: Member, _: object) -> None:
        other = clean_name(member.target)
        self._new_link(member.name)
        if other in self._links:
            self._links[member.name] = self._links[other]
        elif other in self.found:
            self._hard_links.append((member.name, other))
            self.found[member.name] = self.found[other]
        else:
            raise UnsafeMember(WORDS["hard link to none"].format(shown(member.name), shown(member.target)))

    def _new_link(self, name: str) -> None:
        if name in self._links or name in self.found:
            raise FileExistsError
        self._parent(name)

    def _make_hard_link(self, name: str, other: str) -> None:
        from_folder, from_base = self._parent(other)
        from_folder = os.dup(from_folder)  # opening the next one may close it
        try:
            folder, base = self._parent(name)
            self._named_call(
                name,
                os.link,
                from_base,
                base,
                src_dir_fd=from_folder,
                dst_dir_fd=folder,
                follow_symlinks=False,
            )
        finally:
            os.close(from_folder)

    # --- descriptors --------------------------------------------------------------------------------------

    def _parent(self, name: str) -> Tuple[int, str]:
        folder, _, base = name.rpartition("/")
        return self._open_folder(folder), base

    def _open_folder(self, name: str) -> int:
        """The descriptor of a folder, made where it is missing; valid until the next call."""
        if name == self._opened[0]:
            return self._opened[1]
        at = os.dup(self._root)
        try:
            for part in name.split("/") if name else ():
                above, at = at, open_part(at, part, 0o700)
                os.close(above)
        except OSError as error:
            os.close(at)
            raise (FileExistsError if isinstance(error, NotADirectoryError) else error) from None
        os.close(self._opened[1])
        self._opened = name, at
        return at

    @staticmethod
    def _named_call(name: str, call: Any, *arguments: Any, **named: Any) -> None:
        try:
            call(*arguments, **named)
        except FileExistsError:
            raise UnsafeMember(f"{shown(name)}: it is there already, or twice in the source") from None
        except OSError as error:
            raise _named(error, name) from error

    @staticmethod
    def _set_by_name(base: str, folder: int, flags: int, member: Member) -> None:
        there = os.open(base, flags, dir_fd=folder)
        try:
            _set(there, member)
        finally:
            os.close(there)


def _set(descriptor: int, member: Member) -> None:
    os.fchmod(descriptor, member.mode & 0o777)
    time_ns = max(-_FARTHEST_NS, min(member.mtime_ns, _FARTHEST_NS))
    os.utime(descriptor, ns=(time_ns, time_ns))


def write_all(file: int, block: bytes) -> None:
    """Write a block to an open file, which may take it in parts."""
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(file, rest) :]


def _named(error: OSError, name: str) -> OSError:
    return type(error)(error.errno, error.strerror, shown(name))


def leads_out(name: str, links: Dict[str, str]) -> bool:
    """Whether following the link ``name`` leaves the folder that has ``links`` (name -> text) and no others.

    A name that the kernel would not follow to its end (too many links) counts as one that leaves.
    """
    at = name.split("/")[:-1]
    todo = links[name].split("/")[::-1]
    if links[name].startswith("/"):
        return True
    followed = 1
    while todo:
        part = todo.pop()
        if part == "..":
            if not at:
                return True
            at.pop()
        elif part not in ("", "."):
            at.append(part)
            target = links.get("/".join(at))
            if target is not None:
                followed += 1
                if target.startswith("/") or followed > _MOST_LINKS:
                    return True
                at.pop()
                todo += target.split("/")[::-1]
    return False
