# ruff: noqa: UP035, UP045  (the interpreter of a node may be old)
"""The copy of a source on a node: where it grows, how it is unpacked, verified, locked and removed.

A copy grows in ``.NAME.part`` next to its target. When its content is verified, ``.NAME.staged.json`` (which
lists the files with their sha256) is written, and then the copy gets its name. So a target with that file is
whole, and its content is verified again before it is used by another job: an interruption at any moment
leaves nothing that is taken for whole.

No other user of the node may be able to exchange a copy: the folder around it, which is made for its owner
only, must belong to the user or the system, and others may not write to it unless it has the sticky bit;
the copy and the record of it must be the user's own (man 7 path_resolution, man 5 proc_sys_fs).

It goes to nodes with the modules of this folder that it imports, and runs on any Python from 3.6 on.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import shutil
import socket
import stat
import time
from typing import IO, Any, Iterator, Optional

from hpclaunch.remote.archive_reader import DamagedArchive, members
from hpclaunch.remote.safe_unpack import BLOCK, FOLDER, LinkOut, Unpacker, UnsafeMember
from hpclaunch.remote.stage_images import mount, unmount
from hpclaunch.remote.stage_sources import Json, StageError, folder_members, sha256_of, walk
from hpclaunch.remote.words import WORDS

POLL_S = 0.1
LOCK_S = 600.0
"""The longest that a lock is waited for."""
LOCK_SAID_S = 10.0
"""After this long its holder is named."""
_OWN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def own_folder(folder: str) -> None:
    """Make the folder around a copy where it is missing, and the folders above it, for this user only.

    StageError where another user could exchange what is in it.
    """
    missing = []
    at = folder
    while not os.path.lexists(at):
        missing.append(at)
        at = os.path.dirname(at)
    _need_safe(at)
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(one, 0o700)
    _need_safe(folder)


def _need_safe(folder: str) -> None:
    """StageError where a folder, or the link that it is, is not safe from other users."""
    trusted = (os.geteuid(), os.stat("/").st_uid)  # not 0, which a user namespace may show as another
    for found in (os.lstat(folder), os.stat(folder)):
        if found.st_uid not in trusted:
            raise StageError(WORDS["folder of another"].format(folder, user_name(found.st_uid)))
    if not stat.S_ISDIR(found.st_mode):
        raise StageError(f"{folder}: not a folder")
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise StageError(WORDS["folder for all"].format(folder, found.st_mode & 0o7777))


def is_safe(folder: str) -> bool:
    """Whether a folder is there, and none but this user and the system can exchange what is in it."""
    try:
        _need_safe(folder)
    except (OSError, StageError):
        return False
    return True


def user_name(number: int) -> str:
    """The name of a user, else the number."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _own(path: str) -> bool:
    """Whether something is there that belongs to this user, and is not a link."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode)


class Place:
    """The target of a copy on this node, and the names next to it."""

    def __init__(self, target: str) -> None:
        self.target = target
        folder, name = os.path.split(target)
        self.folder = folder
        self.part = os.path.join(folder, f".{name}.part")
        self.record = os.path.join(folder, f".{name}.staged.json")
        self.image = os.path.join(folder, f".{name}.image")
        self._lock = os.path.join(folder, f".{name}.lock")

    @contextlib.contextmanager
    def locked(self, control: str = "") -> Iterator[None]:
        """No other process of this node may work on the target meanwhile.

        ``control`` is this run's folder. StageError where another process of the run has the lock: it is that
        of another node, which shares the file system of the target.
        """
        start = time.monotonic()
        said = False
        while True:
            lock = self._try_lock(control)
            if lock is not None:
                break
            if time.monotonic() - start > LOCK_SAID_S and not said:
                said = True
                who = self._holder()
                print(f"hpclaunch: {self.target}: waiting for {who}, which works on it", flush=True)
            if time.monotonic() - start > LOCK_S:
                raise StageError(f"{self.target}: {self._holder()} has worked on it for {LOCK_S:.0f} s")
            time.sleep(POLL_S)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(self._lock)
            os.close(lock)

    def _try_lock(self, control: str) -> Optional[int]:
        """The descriptor of the lock; None while another process has it, or has just removed it."""
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(lock).st_uid != os.geteuid():
                raise StageError(f"{self._lock}: it belongs to {user_name(os.fstat(lock).st_uid)}")
            self._need_other_run(_json_of(lock), control)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_ino != os.stat(self._lock).st_ino:
                raise BlockingIOError
            self._need_other_run(_json_of(lock), control)
            job = os.path.basename(os.path.dirname(control)) if control else ""
            mine = {"host": socket.gethostname(), "pid": os.getpid(), "job": job, "control": control}
            os.ftruncate(lock, 0)
            os.pwrite(lock, json.dumps(mine).encode(), 0)
        except (BlockingIOError, FileNotFoundError):
            os.close(lock)
            return None
        except BaseException:
            os.close(lock)
            raise
        return lock

    def _need_other_run(self, holder: Json, control: str) -> None:
        if control and holder.get("control") == control:
            raise StageError(_shared(self.target, str(holder.get("host")), holder.get("pid")))

    def _holder(self) -> str:
        """Return the holder of the lock, in words."""
        holder = _own_json(self._lock) or {}
        if "pid" not in holder:
            return "another process"
        job = f" of job {holder['job']}" if holder.get("job") else ""
        return f"process {holder['pid']} on {holder['host']}{job}"

    def my_record(self) -> Optional[Json]:
        """The record of the copy, if it is this user's own."""
        return _own_json(self.record)

    def whole(self, control: str = "") -> Optional[Json]:
        """The record of a copy of one's own whose content is what it lists; None where there is none.

        StageError where another node of the run ``control`` has made it.
        """
        record = self.my_record()
        if record and control and record.get("control") == control:
            raise StageError(_shared(self.target, str(record.get("host")), None))
        if not record or "image" in record or not _own(self.target):
            return None
        try:
            verify(self.target, record["files"])
            record["count"] + record["bytes"]  # another version's record may lack them
        except (OSError, ValueError, KeyError, TypeError, StageError):
            return None
        return record

    def make_part(self) -> None:
        """Make the folder in which a copy grows."""
        try:
            os.mkdir(self.part, 0o700)
        except FileExistsError:
            raise StageError(f"{self.part}: another process has made it") from None

    def clear_part(self) -> None:
        """Remove an unfinished copy, and one whose removal was interrupted."""
        for path in (self.part, f"{self.part}.old"):
            if os.path.lexists(path):
                remove_path(path)

    def clear(self) -> None:
        """Remove an unfinished copy, and a finished one that this program made."""
        self.clear_part()
        self.clear_copy()

    def clear_copy(self) -> None:
        """Remove a finished copy that this program made; StageError for what it has not made."""
        record = self.my_record()
        if record and "image" in record:
            unmount(self.target)
        if os.path.lexists(self.target):
            if record is None:
                raise StageError(f"{self.target}: it exists, and was not made by --stage")
            old = f"{self.part}.old"
            if os.path.lexists(old):
                remove_path(old)
            if os.path.isdir(self.target) and _own(self.target):
                os.chmod(self.target, 0o700)
            os.rename(self.target, old)
            remove_path(old)
        for path in (self.image, self.record):
            if _own(path):
                os.unlink(path)

    def finish(self, copy: str, record: Json, mode: Optional[int] = None) -> None:
        """Give the verified ``copy`` its name; what other users can reach is made private, or read-only."""
        reached = os.stat(self.folder).st_mode & 0o077
        folder = os.path.isdir(copy)
        mode = stat.S_IMODE(os.stat(copy).st_mode) if mode is None else mode
        if reached:
            mode &= 0o700 if folder else 0o755
        os.chmod(copy, mode | 0o700 if folder else mode)  # only a folder that may be written can be moved
        self._write_record(record)
        os.rename(copy, self.target)
        if folder:
            os.chmod(self.target, mode)

    def mount(self, image: str, record: Json) -> bool:
        """Mount a verified image as the copy; False where this node cannot."""
        self._write_record({**record, "image": True})  # first: it lets the next process clear what follows
        os.rename(image, self.image)
        if mount(self.image, self.target):
            return True
        os.rename(self.image, image)
        os.unlink(self.record)
        return False

    def _write_record(self, record: Json) -> None:
        new = os.path.join(self.part, "record")
        with open(new, "x") as file:
            json.dump(record, file)
        os.rename(new, self.record)


def _shared(target: str, host: str, process: Any) -> str:
    who = f"process {process} on {host}" if process else host
    return (
        f"{target}: it is on a file system that nodes of this job share ({socket.gethostname()} and {who}); "
        "DEST must be on storage of each node"
    )


def _own_json(path: str) -> Optional[Json]:
    """The object in a file of this user's own; None where there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _json_of(file) if os.fstat(file).st_uid == os.geteuid() else None
    finally:
        os.close(file)


def _json_of(file: int) -> Json:
    """The object in an open file; empty where there is none."""
    try:
        found = json.loads(os.pread(file, os.fstat(file).st_size, 0).decode())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def remove_path(path: str) -> None:
    """Remove a file or folder of one's own, also one with folders that may not be written."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    if not _own(path):
        raise StageError(f"{path}: it belongs to {user_name(os.lstat(path).st_uid)}")
    os.chmod(path, 0o700)
    for at, folders, _ in os.walk(path):  # read-only folders cannot be emptied
        for name in folders:
            inner = os.path.join(at, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(path)


def unpack(stream: "IO[bytes]", kind: str, copy: str, keep_links: bool = False) -> Json:
    """Write what travelled to ``copy``, and verify what is on disk then.

    Returns ``files`` (path -> sha256 of each file, or the target of each link), ``bytes``, ``count`` (of
    files and folders) and ``notes``. StageError where the data are damaged or may not be made.
    """
    if kind in ("file", "image"):
        digest, size = hashlib.sha256(), 0
        with open(copy, "xb") as file:
            for block in iter(lambda: stream.read(BLOCK), b""):
                digest.update(block)
                file.write(block)
                size += len(block)
        files = {"": digest.hexdigest()}
        verify(copy, files)
        return {"files": files, "bytes": size, "count": 1, "notes": []}
    os.mkdir(copy, 0o700)
    root = os.open(copy, _OWN_FOLDER)
    size = count = 0
    try:
        with Unpacker(root, keep_links or kind == "folder") as unpacker:
            for member, content in folder_members(stream) if kind == "folder" else members(stream):
                unpacker.add(member, content)
                size, count = size + member.size, count + (member.name not in (".", "./"))
            unpacker.finish()
            verify(copy, unpacker.found)
            unpacker.set_modes()
    except LinkOut as error:
        raise StageError(f"{error}; --stage-links keep makes such links") from error
    except (UnsafeMember, DamagedArchive) as error:
        raise StageError(str(error)) from error
    finally:
        os.close(root)
    return {"files": unpacker.found, "bytes": size, "count": count, "notes": unpacker.notes}


def verify(copy: str, files: Json) -> None:
    """StageError where the content of ``copy`` on disk is not what ``files`` lists, or has more."""
    for name, expected in files.items():
        path = os.path.join(copy, name) if name else copy
        try:
            is_link = isinstance(expected, dict)
            right = ({"link": os.readlink(path)} if is_link else sha256_of(path)) == expected
        except OSError:
            right = False
        if not right:
            raise StageError(f"{path}: its content on disk is wrong")
    if os.path.isdir(copy):
        there = sum(member.kind != FOLDER for member in walk(copy))
        if there != len(files):
            raise StageError(f"{copy}: {there} files on disk, {len(files)} were sent")
