# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""Copies folders and files to node-local storage before a job's ranks start, and removes them at its end.

This file goes with the job. It imports nothing of hpclaunch and runs on any Python from 3.6 on.

    stage.py node   CONTROL NODES AFTERWARDS SOURCE TARGET...  one process per node: receive, unpack, verify
    stage.py reader CONTROL NODES LAUNCHER SOURCE TARGET...    one process: read the sources once, send them
    stage.py remove CONTROL NODES - SOURCE TARGET...           one process per node: remove this job's copies

CONTROL is a folder on a file system that all nodes share, new for this run and readable by its owner only;
through it the processes find each other. SOURCE and TARGET may be repeated. AFTERWARDS is ``stay`` (until a
signal, then remove the copies), ``leave`` (end; another process removes them) or ``keep``; LAUNCHER is the
process id of what starts the processes on the nodes. A regular file is sent by Slurm's
sbcast where there is one. Everything else travels over TCP down a binary tree of the nodes: each node passes
on what it receives while it unpacks it.

A copy grows in ``.NAME.part`` next to its target. When its content is verified, ``.NAME.staged.json`` (which
lists the files with their sha256) is written, and then the copy gets its name. So a target with that file is
whole, and its content is verified again before it is used by another job: an interruption at any moment
leaves nothing that is taken for whole.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import io
import json
import os
import secrets
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import threading
import time
import traceback
from queue import Empty, Full, Queue
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Tuple

BLOCK = 1 << 20
POLL_S = 0.1
REGISTER_S = 600.0
"""The longest that nodes may take to start, one after the other."""
SILENCE_S = 600.0
"""The longest silence of a connection or a lock."""
REPORT_S = 30.0
ROOM_FACTOR = 1.05
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Of the job: Slurm sends SIGTERM to a cancelled one; srun passes SIGUSR1 on, and kills on SIGTERM."""
_EXPLANATION_S = 2.0
_LATE_FILES_S = 10.0
"""After the end of a process its last file may take this long to arrive on a network file system."""
_LENGTH = struct.Struct(">I")
Json = Dict[str, Any]


class Ended(BaseException):
    """The job ends: one of `_ENDINGS` came."""


class StageError(Exception):
    """A failure with a message for the user."""


# --- sources ----------------------------------------------------------------------------------------------


def source_kind(source: str, target: str) -> str:
    """``folder``, ``tar`` (to be unpacked) or ``file``; the name of the target decides about a tar."""
    if os.path.isdir(source):
        return "folder"
    if not os.path.isfile(source):
        raise StageError(f"--stage {source}: not a folder or regular file on {socket.gethostname()}")
    suffixes = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
    return "tar" if source.endswith(suffixes) and not target.endswith(suffixes) else "file"


def census(source: str, kind: str) -> Json:
    """Bytes and files that a copy needs, and a digest of names, sizes and times."""
    if kind != "folder":
        found = os.stat(source)
        size, files = found.st_size, 1
        if kind == "tar":
            with tarfile.open(source) as archive:
                members = [member.size for member in archive]
            size, files = sum(members), len(members)
        listing = [[os.path.basename(source), found.st_size, found.st_mtime_ns]]
        return {"bytes": size, "files": files, "listing": _digest(listing)}
    entries = sorted(_entries(source))
    return {
        "bytes": sum(size for _, size, _ in entries),
        "files": len(entries),
        "listing": _digest([list(entry) for entry in entries]),
    }


def _entries(folder: str) -> Iterator[Tuple[str, int, int]]:
    def fail(error: OSError) -> None:
        raise StageError(f"{error.filename}: {error.strerror or error}")

    for at, folders, files in os.walk(folder, onerror=fail):
        for name in folders + files:
            path = os.path.join(at, name)
            found = os.lstat(path)
            size = found.st_size if stat.S_ISREG(found.st_mode) else 0
            yield os.path.relpath(path, folder), size, found.st_mtime_ns


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def read_source(source: str, kind: str, write: Callable[[bytes], None]) -> None:
    """Give ``write`` the bytes that travel: of a folder a tar, else the file itself."""
    if kind == "folder":
        writer = io.BufferedWriter(_Writer(write), BLOCK)
        with tarfile.open(fileobj=writer, mode="w|", format=tarfile.PAX_FORMAT, bufsize=BLOCK) as archive:
            archive.add(os.path.realpath(source), ".")  # not the link that it may be
        writer.flush()
        return
    with open(source, "rb") as file:
        while True:
            block = file.read(BLOCK)
            if not block:
                return
            write(block)


class _Writer(io.RawIOBase):
    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        block = bytes(data)
        self._write(block)
        return len(block)


# --- one copy on a node -----------------------------------------------------------------------------------


class Place:
    """The target of a copy on this node, and the names next to it."""

    def __init__(self, target: str) -> None:
        self.target = target
        folder, name = os.path.split(target)
        self.folder = folder
        self.part = os.path.join(folder, f".{name}.part")
        self.record = os.path.join(folder, f".{name}.staged.json")
        self._lock = os.path.join(folder, f".{name}.lock")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other process of this node may work on the target meanwhile."""
        until = time.monotonic() + SILENCE_S
        while True:
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_ino == os.stat(self._lock).st_ino:  # else the last owner has removed it
                    break
            except OSError:
                if time.monotonic() > until:
                    os.close(lock)
                    raise StageError(f"{self.target}: another job works on it") from None
            os.close(lock)
            time.sleep(POLL_S)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(self._lock)
            os.close(lock)

    def whole(self) -> Optional[Json]:
        """The record of a copy whose content is what it lists; None where there is none."""
        try:
            with open(self.record) as file:
                record = json.load(file)
            verify(self.target, record["files"])
        except (OSError, ValueError, KeyError, TypeError, StageError):
            return None
        return dict(record)

    def clear_part(self) -> None:
        """Remove an unfinished copy, and one whose removal was interrupted."""
        for path in (self.part, f"{self.part}.old"):
            if os.path.lexists(path):
                _remove(path)

    def clear(self) -> None:
        """Remove an unfinished copy, and a finished one that this program made."""
        self.clear_part()
        self.clear_copy()

    def clear_copy(self) -> None:
        """Remove a finished copy that this program made; StageError for what it has not made."""
        if os.path.lexists(self.target):
            if not os.path.exists(self.record):
                raise StageError(f"{self.target}: it exists, and was not made by --stage")
            old = f"{self.part}.old"
            if os.path.lexists(old):
                _remove(old)
            os.rename(self.target, old)
            _remove(old)
        with contextlib.suppress(OSError):
            os.unlink(self.record)

    def finish(self, copy: str, record: Json) -> None:
        """Give the verified ``copy`` its name."""
        new = f"{self.record}.new"
        with open(new, "w") as file:
            json.dump(record, file)
        os.rename(new, self.record)
        os.rename(copy, self.target)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        for at, folders, _ in os.walk(path):  # read-only folders cannot be emptied
            for name in folders:
                inner = os.path.join(at, name)
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)


def unpack(stream: "IO[bytes]", kind: str, copy: str) -> Json:
    """Write what travelled to ``copy``; path -> sha256 of each file, or the target of each link."""
    if kind == "file":
        return {"": _write_file(stream, copy, 0o644)}
    os.mkdir(copy, 0o700)
    found: Json = {}
    folders: List[Tuple[str, int]] = []
    with tarfile.open(fileobj=stream, mode="r|*", bufsize=BLOCK) as archive:
        for member in archive:
            name = os.path.normpath(member.name)
            path = _inside(copy, name)
            if member.isdir():
                os.makedirs(path, 0o700, exist_ok=True)
                folders.append((path, member.mode & 0o777))
                continue
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            if member.issym():
                os.symlink(member.linkname, path)
                found[name] = {"link": member.linkname}
            elif member.islnk():
                os.link(_inside(copy, os.path.normpath(member.linkname)), path)
                found[name] = found[os.path.normpath(member.linkname)]
            elif member.isreg():
                content = archive.extractfile(member)
                assert content is not None  # noqa: S101
                found[name] = _write_file(content, path, member.mode & 0o777)
                os.utime(path, (member.mtime, member.mtime))
            else:
                raise StageError(f"{member.name}: not a file, folder or link")
    for path, mode in reversed(folders):
        os.chmod(path, mode | 0o500)
    return found


def _inside(folder: str, name: str) -> str:
    """The path of a member; StageError where it would lie elsewhere."""
    path = os.path.join(folder, name)
    parent = os.path.realpath(os.path.dirname(path)) if name != "." else os.path.realpath(folder)
    root = os.path.realpath(folder)
    if os.path.isabs(name) or name.startswith("..") or (parent + os.sep).find(root + os.sep) != 0:
        raise StageError(f"{name}: would be written outside of {folder}")
    return path


def _write_file(content: "IO[bytes]", path: str, mode: int) -> str:
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        while True:
            block = content.read(BLOCK)
            if not block:
                break
            digest.update(block)
            file.write(block)
    os.chmod(path, mode | 0o400)
    return digest.hexdigest()


def verify(copy: str, files: Json) -> None:
    """StageError where the content of ``copy`` on disk is not what ``files`` lists, or has more."""
    for name, expected in files.items():
        path = os.path.join(copy, name) if name else copy
        if isinstance(expected, dict):
            right = os.path.islink(path) and os.readlink(path) == expected["link"]
        else:
            right = os.path.isfile(path) and _sha256(path) == expected
        if not right:
            raise StageError(f"{path}: its content on disk is wrong")
    if os.path.isdir(copy):
        there = sum(
            len(names) + sum(os.path.islink(os.path.join(at, folder)) for folder in folders)
            for at, folders, names in os.walk(copy)
        )
        if there != len(files):
            raise StageError(f"{copy}: {there} files on disk, {len(files)} were sent")


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            block = file.read(BLOCK)
            if not block:
                return digest.hexdigest()
            digest.update(block)


# --- the way between the nodes ----------------------------------------------------------------------------


def children(index: int, count: int) -> List[int]:
    """Nodes that node ``index`` of ``count`` sends to; -1: the reader."""
    return [child for child in (2 * index + 2, 2 * index + 3) if child < count]


class Senders:
    """Connections to the next nodes of the tree."""

    def __init__(self, nodes: List[Json], targets: List[int], token: str) -> None:
        self._connections = [_connect(nodes[target], token) for target in targets]

    def send(self, block: bytes) -> None:
        """Pass a block on; an empty one ends the data, and what follows is the digest."""
        for name, connection in self._connections:
            try:
                connection.sendall(_LENGTH.pack(len(block)) + block)
            except OSError as error:
                raise StageError(f"{name}: the connection broke ({error})") from error

    def close(self) -> None:
        """Close all."""
        for _, connection in self._connections:
            connection.close()


def _connect(node: Json, token: str) -> Tuple[str, socket.socket]:
    reasons = []
    for address in node["addresses"]:
        try:
            connection = socket.create_connection((address, node["port"]), timeout=30)
            connection.settimeout(SILENCE_S)
            connection.sendall(token.encode())
            return node["name"], connection
        except OSError as error:
            reasons.append(f"{address}: {error}")
    raise StageError(f"{node['name']}: no TCP connection to it ({'; '.join(reasons)})")


def _listen() -> socket.socket:
    listener = socket.socket()
    listener.bind(("", 0))
    listener.listen(4)
    listener.settimeout(SILENCE_S)
    return listener


def _accept(listener: socket.socket, token: str) -> Any:
    """The connection that knows the token, which only the owner of the job can read."""
    while True:
        connection, _ = listener.accept()
        connection.settimeout(SILENCE_S)
        stream: Any = connection.makefile("rb", BLOCK)
        with contextlib.suppress(OSError):
            if secrets.compare_digest(stream.read(len(token)), token.encode()):
                return stream
        connection.close()


def receive(stream: "IO[bytes]", senders: Senders) -> Iterator[bytes]:
    """Blocks as they come, each passed on first; StageError where they are not what the reader sent."""
    digest = hashlib.sha256()
    while True:
        block = _block(stream)
        senders.send(block)
        if not block:
            break
        digest.update(block)
        yield block
    expected = _block(stream)
    senders.send(expected)
    if expected.decode() != digest.hexdigest():
        raise StageError("what was received is not what was sent (sha256)")


def _block(stream: "IO[bytes]") -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise StageError("the connection to the node that sends broke")
    size = _LENGTH.unpack(head)[0]
    block = stream.read(size)
    if len(block) < size:
        raise StageError("the connection to the node that sends broke")
    return block


class Pipe(io.RawIOBase):
    """What one thread writes and another reads as a file."""

    def __init__(self) -> None:
        self._blocks: Queue[bytes] = Queue(8)
        self._rest = b""
        self._ended = False
        self._stopped = threading.Event()
        self.abandoned = threading.Event()

    def readable(self) -> bool:
        """As `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As `io.RawIOBase`; waits for `put`, and raises StageError after `stop`."""
        while not self._rest and not self._ended:
            if self._stopped.is_set():
                raise StageError("stopped")
            with contextlib.suppress(Empty):
                self._rest = self._blocks.get(timeout=POLL_S)
                self._ended = not self._rest
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def put(self, block: bytes) -> None:
        """Give the reader a block; an empty one is the end."""
        while not self.abandoned.is_set():
            with contextlib.suppress(Full):
                self._blocks.put(block, timeout=POLL_S)
                return

    def stop(self) -> None:
        """Let the reader end where it waits for a block: there will be none."""
        self._stopped.set()


# --- the processes ----------------------------------------------------------------------------------------


def node(control: str, nodes: int, afterwards: str, items: List[Json]) -> None:
    """One per node: get each item, verify it, report; where this fails or the job ends, remove it.

    A worker process does the work. This one waits for its end and for signals, so that a signal at any
    moment ends the worker as SIGKILL does, and never the removal.
    """
    signals, signalled = os.pipe()
    for ending in _ENDINGS:
        signal.signal(ending, lambda _number, _frame: os.write(signalled, b"e"))
    worker, over = _start_worker(control, items)
    ready = select.select([signals, over], [], [])[0]
    if signals in ready:
        os.kill(worker, signal.SIGKILL)
    failed = os.waitpid(worker, 0)[1] != 0
    if signals not in ready and not failed and afterwards == "stay":
        ready = select.select([signals], [], [])[0]
    if signals in ready or failed:
        _clean(control, nodes, afterwards, items)
    if failed and signals not in ready:
        raise StageError("its worker failed")


def _start_worker(control: str, items: List[Json]) -> Tuple[int, int]:
    """Its process id, and a file descriptor that can be read when it has ended."""
    over, held = os.pipe()
    worker = os.fork()
    if worker:
        os.close(held)
        return worker, over
    status = 1
    try:
        _end_with_parent()
        for ending in _ENDINGS:  # Slurm signals all processes; the parent decides
            signal.signal(ending, signal.SIG_IGN)
        for number, item in enumerate(items):
            _get_item(control, number, item)
        status = 0
    except StageError:
        pass  # `_get_item` has reported it
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _end_with_parent() -> None:
    """Let the kernel kill this process when its parent has ended (man 2 prctl, PR_SET_PDEATHSIG)."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end(number: int, frame: object) -> None:
    raise Ended


def _clean(control: str, nodes: int, afterwards: str, items: List[Json]) -> None:
    if afterwards != "keep":
        remove(control, nodes, "", items)
        return
    for item in items:
        _clear_part(Place(item["target"]))


def _clear_part(place: Place) -> None:
    if os.path.isdir(place.folder):
        with place.locked():
            place.clear_part()


def _get_item(control: str, number: int, item: Json) -> None:
    name = f"{socket.gethostname()}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(item["target"]), 0o700, exist_ok=True)
        place = Place(item["target"])
        with place.locked():
            outcome = _one_item(control, number, name, place)
    except (StageError, OSError, tarfile.TarError, EOFError) as error:
        outcome = {"error": f"{socket.gethostname()}: {error}"}
    _put(control, f"{number}.done.{name}", outcome)
    if "error" in outcome:
        raise StageError(outcome["error"])


def _one_item(control: str, number: int, name: str, place: Place) -> Json:
    whole = place.whole()
    if whole is None:
        place.clear()
    with contextlib.closing(_listen()) as listener:
        room = os.statvfs(place.folder)
        os.makedirs(place.part, 0o700, exist_ok=True)  # sbcast needs it on every node
        mine = {
            "name": name,
            "addresses": _addresses(),
            "port": listener.getsockname()[1],
            "free": room.f_bavail * room.f_frsize,
            "inodes": room.f_favail if room.f_files else None,
            "listing": whole["listing"] if whole else None,
        }
        _put(control, f"{number}.node.{name}", mine)
        plan = _wait_for(control, f"{number}.plan")
        order = [other["name"] for other in plan["nodes"]]
        if name not in order:
            _remove(place.part)
            return {"reused": True}
        place.clear_copy()
        files = _copy(plan, order.index(name), listener, place)
    copy = os.path.join(place.part, "copy")
    verify(copy, files)
    place.finish(copy, {"listing": plan["listing"], "owner": _owner(control), "files": files})
    _remove(place.part)
    return {"reused": False}


def _copy(plan: Json, index: int, listener: socket.socket, place: Place) -> Json:
    """Write the copy, from the archive that sbcast has left here, or from the tree."""
    copy, archive = os.path.join(place.part, "copy"), os.path.join(place.part, "archive")
    if plan["archive"]:
        if _sha256(archive) != plan["archive"]:
            raise StageError("what sbcast wrote is not the source (sha256)")
        if plan["kind"] == "file":
            os.chmod(archive, 0o644)
            os.rename(archive, copy)
            return {"": plan["archive"]}
        with open(archive, "rb") as stream:
            files = unpack(stream, plan["kind"], copy)
        os.unlink(archive)
        return files
    senders = Senders(plan["nodes"], children(index, len(plan["nodes"])), plan["token"])
    pipe, found = Pipe(), []  # type: Tuple[Pipe, List[Any]]
    reader = io.BufferedReader(pipe, BLOCK)

    def unpack_all() -> None:
        try:
            found.append(unpack(reader, plan["kind"], copy))
            while reader.read(BLOCK):  # what pads the end of an archive
                pass
        except BaseException as error:
            found.append(error)
        pipe.abandoned.set()

    thread = threading.Thread(target=unpack_all, daemon=True)
    try:
        thread.start()
        for block in receive(_accept(listener, plan["token"]), senders):
            pipe.put(block)
        pipe.put(b"")
        thread.join()
    finally:
        try:
            pipe.stop()
            senders.close()
            _wait_for_thread(thread)
        finally:  # a signal may have come in between; only the first one raises
            pipe.stop()
            _wait_for_thread(thread)
    if isinstance(found[0], BaseException):
        raise StageError(f"{found[0]}") from found[0]
    return dict(found[0])


def _wait_for_thread(thread: threading.Thread) -> None:
    """What is removed next must not grow meanwhile."""
    while thread.is_alive():
        thread.join()


def reader(control: str, nodes: int, launcher: str, items: List[Json]) -> None:
    """Read each source once, give it to the nodes, report when all have verified it."""
    signal.signal(signal.SIGTERM, _end)  # so that sbcast ends with this process
    try:
        for number, item in enumerate(items):
            start = time.monotonic()
            kind = source_kind(item["source"], item["target"])
            facts = census(item["source"], kind)
            there = _wait_for_all(control, f"{number}.node.", nodes, launcher)
            missing = [other for other in there if other["listing"] != facts["listing"]]
            _check_room(item, kind, facts, missing)
            how = _give_or_explain(control, number, item, kind, facts, missing)
            _wait_for_all(control, f"{number}.done.", nodes, launcher)
            seconds = time.monotonic() - start
            reused = f", {nodes - len(missing)} had it already" if len(missing) < nodes else ""
            size = f"{facts['files']:,} files and folders, {facts['bytes'] / 1e6:,.1f} MB"
            where = f"{nodes} node{'s' * (nodes != 1)}{reused}"
            _say(
                f"staged {item['source']} to {item['target']}: {size}, verified on {where}, "
                f"in {seconds:.1f} s{how}"
            )
    except (StageError, OSError, tarfile.TarError) as error:
        _put(control, "failed", {"error": str(error)})
        raise StageError(str(error)) from error


def _check_room(item: Json, kind: str, facts: Json, where: List[Json]) -> None:
    """StageError, naming the nodes, where a copy does not fit; an archive is there until it is unpacked."""
    needed = int(facts["bytes"] * ROOM_FACTOR)
    if kind == "tar" and _sbcast():
        needed += os.path.getsize(item["source"])
    for node_ in where:
        name = node_["name"].rpartition(".")[0]
        if node_["free"] < needed:
            raise StageError(
                f"--stage {item['source']}: it needs {needed:,} bytes in {os.path.dirname(item['target'])}, "
                f"and {name} has {node_['free']:,}"
            )
        if node_["inodes"] is not None and node_["inodes"] < facts["files"]:
            raise StageError(
                f"--stage {item['source']}: it has {facts['files']:,} files, and {name} has inodes for "
                f"{node_['inodes']:,}"
            )


def _give_or_explain(control: str, number: int, item: Json, kind: str, facts: Json, where: List[Json]) -> str:
    """`_give`; where a connection breaks, the nodes' own errors say why."""
    try:
        return _give(control, number, item, kind, facts, where)
    except (StageError, OSError) as error:
        time.sleep(_EXPLANATION_S)
        found = [_get(control, name) for name in os.listdir(control) if f"{number}.done." in name]
        errors = [outcome for outcome in found if outcome and "error" in outcome]
        raise StageError(_causes(errors) or str(error)) from error


def _causes(outcomes: List[Json]) -> str:
    """The nodes' errors; connections that broke because another node failed only where nothing else did."""
    errors = [outcome["error"] for outcome in outcomes]
    first = [error for error in errors if "connection" not in error]
    return "; ".join(first or errors)


def _give(control: str, number: int, item: Json, kind: str, facts: Json, where: List[Json]) -> str:
    """Send the source to the nodes of ``where``; how, as text."""
    plan = {
        "kind": kind,
        "listing": facts["listing"],
        "nodes": where,
        "token": secrets.token_hex(32),
        "archive": None,
    }
    command = _sbcast()
    if where and kind != "folder" and command:
        target = os.path.join(Place(item["target"]).part, "archive")
        if subprocess.call([command, "--force", item["source"], target]) == 0:
            _put(control, f"{number}.plan", {**plan, "archive": _sha256(item["source"])})
            return " (sbcast)"
        _say("sbcast failed; copying from node to node instead")
    _put(control, f"{number}.plan", plan)
    if not where:
        return ""
    senders, digest = Senders(where, children(-1, len(where)), str(plan["token"])), hashlib.sha256()

    def write(block: bytes) -> None:
        digest.update(block)
        senders.send(block)

    try:
        read_source(item["source"], kind, write)
        if census(item["source"], kind)["listing"] != facts["listing"]:
            raise StageError(f"{item['source']}: it changed while it was read")
        senders.send(b"")
        senders.send(digest.hexdigest().encode())
    finally:
        senders.close()
    return " (read once, copied from node to node)"


def _sbcast() -> Optional[str]:
    """Slurm's program, in a job of Slurm's."""
    return shutil.which("sbcast") if os.environ.get("SLURM_JOB_ID") else None


def remove(control: str, nodes: int, _: str, items: List[Json]) -> None:
    """Remove what this job has copied to this node; what another job left there stays."""
    for item in items:
        place = Place(item["target"])
        if not os.path.isdir(place.folder):
            continue
        with place.locked():
            try:
                with open(place.record) as file:
                    mine = json.load(file)["owner"] == _owner(control)
            except (OSError, ValueError, KeyError, TypeError):
                mine = not os.path.lexists(place.target)
            if mine:
                place.clear()
        with contextlib.suppress(OSError):
            os.rmdir(place.folder)  # that of this job, now empty


def _owner(control: str) -> str:
    """The job's folder: the same after a restart."""
    return os.path.dirname(os.path.abspath(control))


# --- the folder that all share ----------------------------------------------------------------------------


def _put(control: str, name: str, facts: Json) -> None:
    path = os.path.join(control, name)
    with open(f"{path}.{os.getpid()}.new", "w") as file:
        json.dump(facts, file)
    os.rename(f"{path}.{os.getpid()}.new", path)


def _get(control: str, name: str) -> Optional[Json]:
    try:
        with open(os.path.join(control, name)) as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return None


def _wait_for(control: str, name: str) -> Json:
    until = time.monotonic() + REGISTER_S
    while time.monotonic() < until:
        found = _get(control, name)
        if found is not None:
            return found
        failed = _get(control, "failed")
        if failed is not None:
            raise StageError("the reader ended: " + failed["error"])
        time.sleep(POLL_S)
    raise StageError(f"the reader gave no sign for {REGISTER_S:.0f} s")


def _wait_for_all(control: str, prefix: str, count: int, launcher: str) -> List[Json]:
    """What all nodes reported, in the order of their names; StageError as soon as one has failed."""
    start = reported = time.monotonic()
    ended = None
    while True:
        names = sorted(name for name in os.listdir(control) if not name.endswith(".new"))
        found = [(name, _get(control, name)) for name in names if name.startswith(prefix) or ".done." in name]
        errors = [facts for _, facts in found if facts and "error" in facts]
        reports = [facts for name, facts in found if facts and name.startswith(prefix)]
        if errors:
            raise StageError(_causes(errors))
        if len(reports) == count:
            return reports
        now = time.monotonic()
        if ended is None and not os.path.exists(f"/proc/{launcher}"):
            ended = now
        if ended is not None and now - ended > _LATE_FILES_S:
            raise StageError(f"the processes on the nodes ended early; {len(reports)} of {count} reported")
        if now - start > REGISTER_S + SILENCE_S:
            raise StageError(f"only {len(reports)} of {count} nodes reported in {now - start:.0f} s")
        if now - reported > REPORT_S:
            reported = now
            _say(f"staging: {len(reports)} of {count} nodes have reported")
        time.sleep(POLL_S)


def _addresses() -> List[str]:
    name = socket.gethostname()
    found = [name]
    with contextlib.suppress(OSError):
        found += [str(entry[4][0]) for entry in socket.getaddrinfo(name, None, socket.AF_INET)]
    return list(dict.fromkeys(found))


def _say(text: str) -> None:
    print(f"hpclaunch: {text}", flush=True)


def main(argv: List[str]) -> int:
    """Run one of the modes; 1 where it failed, having said why."""
    modes = {"node": node, "reader": reader, "remove": remove}
    mode, control, nodes, more = argv[:4]
    pairs = zip(argv[4::2], argv[5::2])  # noqa: B905
    items = [{"source": source, "target": target} for source, target in pairs]
    try:
        modes[mode](control, int(nodes), more, items)
    except (StageError, OSError) as error:
        if mode != "node":  # the reader reports for all nodes
            print(f"hpclaunch: {error}", file=sys.stderr, flush=True)
        return 1
    except Ended:
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
