# ruff: noqa: UP006, UP035, UP045  (the interpreter of a node may be old)
"""Copies folders and files to node-local storage before a job's ranks start, and removes them at its end.

This file goes with the job, and with it the modules that it imports. It runs on any Python from 3.6 on.

    stage.py node   CONTROL NODES AFTERWARDS - SOURCE TARGET...    one process per node: receive, verify
    stage.py reader CONTROL NODES LAUNCHER LINKS SOURCE TARGET...  one process: read the sources, send them
    stage.py remove CONTROL NODES - - SOURCE TARGET...             one process per node: remove the copies

CONTROL is a folder on a file system that all nodes share, new for this run and readable by its owner only;
through it the processes find each other. SOURCE (``SRC[#sha256=SUM]``) and TARGET may be repeated. AFTERWARDS
is ``stay`` (until a signal, then remove the copies), ``leave`` (end; another process removes them), ``here``
(as ``leave``; processes that are left on this node live on) or ``keep``; LAUNCHER is the process id of what
starts the processes on the nodes; LINKS is ``keep`` where an archive's links that lead out of it are made,
else ``refuse``. A regular file is sent by Slurm's sbcast where there is one. Everything else travels over TCP
down a binary tree of the nodes: each node passes on what it receives while it unpacks it.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import random
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from hpclaunch.remote.safe_unpack import BLOCK, write_all
from hpclaunch.remote.stage_copy import POLL_S, Place, is_safe, own_folder, remove_path, unpack
from hpclaunch.remote.stage_images import need_program, unsquash
from hpclaunch.remote.stage_sources import Json, Source, StageError, exactly, look_at, send_source, sha256_of
from hpclaunch.remote.words import WORDS

REGISTER_S = 600.0
"""The longest that nodes may take to start, one after the other."""
SILENCE_S = 600.0
"""The longest silence of a connection."""
REPORT_S = 30.0
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""Of the job: Slurm sends SIGTERM to a cancelled one; srun passes SIGUSR1 on, and kills on SIGTERM."""
_LATE_FILES_S = 10.0
"""After the end of a process its last file may take this long to arrive on a network file system."""
_LENGTH = struct.Struct(">I")


class Ended(BaseException):
    """The job ends: one of `_ENDINGS` came."""


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
    try:
        return exactly(stream, _LENGTH.unpack(exactly(stream, _LENGTH.size))[0])
    except StageError:
        raise StageError("the connection to the node that sends broke") from None


class Run(NamedTuple):
    """Facts that all processes of a run share."""

    control: str
    nodes: int
    more: str
    """AFTERWARDS or LAUNCHER."""
    links: str
    items: List[Json]

    @property
    def owner(self) -> str:
        """The job's folder: the same after a restart."""
        return os.path.dirname(os.path.abspath(self.control))


def node(run: Run) -> None:
    """One per node: get each item, verify it, report; where this fails or the job ends, remove it.

    A worker process does the work. This one waits for its end and for signals, so that a signal at any
    moment ends the worker as SIGKILL does, and never the removal.
    """
    signals, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled)  # written at once; a handler might have to wait until select has ended
    for ending in _ENDINGS:
        signal.signal(ending, lambda _number, _frame: None)
    worker, over = _start_worker(run)
    ready = select.select([signals, over], [], [])[0]
    if signals in ready:
        os.kill(worker, signal.SIGKILL)
    failed = os.waitpid(worker, 0)[1] != 0
    if signals not in ready and not failed and run.more == "stay":
        ready = select.select([signals], [], [])[0]
    if signals in ready or failed:
        _clean(run)
    if failed and signals not in ready:
        raise StageError("its worker failed")


def _start_worker(run: Run) -> Tuple[int, int]:
    """Its process id, and a file descriptor that can be read when it has ended."""
    over, held = os.pipe()
    parent = os.getpid()
    worker = os.fork()
    if worker:
        os.close(held)
        return worker, over
    status = 1
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # when the parent ends: man 2 prctl, PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
        for ending in _ENDINGS:  # Slurm signals all processes; the parent decides
            signal.signal(ending, signal.SIG_IGN)
        for number, item in enumerate(run.items):
            _get_item(run, number, item)
        status = 0
    except StageError:
        pass  # `_get_item` has reported it
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _end(number: int, frame: object) -> None:
    raise Ended


def _clean(run: Run) -> None:
    if run.more != "keep":
        remove(run)
        return
    for item in run.items:
        place = Place(item["target"])
        if is_safe(place.folder):
            with place.locked():
                place.clear_part()


def _get_item(run: Run, number: int, item: Json) -> None:
    name = f"{socket.gethostname()}.{os.getpid()}"
    try:
        place = Place(item["target"])
        own_folder(place.folder)
        with place.locked(run.control):
            outcome = _one_item(run, number, name, place)
    except (StageError, OSError) as error:
        outcome = {"error": f"{socket.gethostname()}: {error}"}
    _put(run.control, f"{number}.done.{name}", outcome)
    if "error" in outcome:
        raise StageError(outcome["error"])


def _one_item(run: Run, number: int, name: str, place: Place) -> Json:
    whole = place.whole(run.control)
    if whole is None:
        place.clear()
    else:
        place.clear_part()
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen(4)
        listener.settimeout(SILENCE_S)
        room = os.statvfs(place.folder)
        place.make_part()  # sbcast needs it on every node
        mine = {
            "name": name,
            "addresses": _addresses(),
            "port": listener.getsockname()[1],
            "free": room.f_bavail * room.f_frsize,
            "inodes": room.f_favail if room.f_files else None,
            "listing": whole["listing"] if whole else None,
        }
        _put(run.control, f"{number}.node.{name}", mine)
        plan = _wait_for_plan(run, number)
        order = [other["name"] for other in plan["nodes"]]
        if whole is not None and name not in order:
            remove_path(place.part)
            return {"reused": True, "count": whole["count"], "bytes": whole["bytes"]}
        place.clear_copy()
        may_mount = run.more in ("stay", "here")
        if plan["kind"] == "image":
            need_program(plan["source"], may_mount)
        facts = _copy(plan, order.index(name), listener, place)
    record = {"listing": plan["listing"], "owner": run.owner, "control": run.control}
    facts["how"] = _finish(plan, place, {**record, "host": socket.gethostname()}, facts, may_mount)
    remove_path(place.part)
    del facts["files"]
    return {"reused": False, **facts}


def _finish(plan: Json, place: Place, record: Json, facts: Json, may_mount: bool) -> str:
    """Give the verified copy its name, and mount or unpack an image; how, as text."""
    copy, tree = os.path.join(place.part, "copy"), os.path.join(place.part, "tree")
    if plan["kind"] != "image":
        place.finish(copy, {**record, **facts}, plan["mode"])
        return ""
    if may_mount and place.mount(copy, record):
        return ", mounted"
    need_program(plan["source"], False)
    facts.update(unsquash(copy, tree, plan["keep_links"]))
    place.finish(tree, {**record, **facts})
    return ", unpacked"


def _copy(plan: Json, index: int, listener: socket.socket, place: Place) -> Json:
    """Write the copy, from the archive that sbcast has left here, or from the tree; as `unpack`."""
    copy, archive = os.path.join(place.part, "copy"), os.path.join(place.part, "archive")
    if plan["archive"]:
        if sha256_of(archive) != plan["archive"]:
            raise StageError(f"what sbcast wrote does not have the sha256 {plan['archive']}")
        if plan["kind"] != "tar":
            os.rename(archive, copy)
            return {"files": {"": plan["archive"]}, "bytes": os.path.getsize(copy), "count": 1, "notes": []}
        with open(archive, "rb") as stream:
            facts = unpack(stream, plan["kind"], copy, plan["keep_links"])
        os.unlink(archive)
        return facts
    senders = Senders(plan["nodes"], children(index, len(plan["nodes"])), plan["token"])
    read_end, write_end = os.pipe()
    with contextlib.suppress(OSError):  # a user may not have so much memory for pipes
        fcntl.fcntl(write_end, WORDS["set_pipe_size"], BLOCK)
    found: List[Any] = []

    def unpack_all() -> None:
        try:
            with open(read_end, "rb", BLOCK) as stream:
                found.append(unpack(stream, plan["kind"], copy, plan["keep_links"]))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=unpack_all)
    thread.start()
    try:
        for block in receive(_accept(listener, plan["token"]), senders):
            with contextlib.suppress(BrokenPipeError):  # it failed; the next nodes get the rest all the same
                write_all(write_end, block)
    finally:
        os.close(write_end)
        senders.close()
        thread.join()  # the folder that is removed next must not grow meanwhile
    if isinstance(found[0], BaseException):
        raise StageError(f"{found[0]}") from found[0]
    return dict(found[0])


def reader(run: Run) -> None:
    """Read each source once, give it to the nodes, report when all have verified it."""
    signal.signal(signal.SIGTERM, _end)  # so that sbcast ends with this process
    number = 0
    try:
        reports = Reports(run)
        for number, item in enumerate(run.items):
            _say(_stage_one(run, reports, number, item))
    except (StageError, OSError) as error:
        for later in range(number, len(run.items)):
            if not os.path.exists(os.path.join(run.control, f"{later}.plan")):
                _put(run.control, f"{later}.plan", {"error": str(error)})
        raise StageError(str(error)) from error


def _stage_one(run: Run, reports: "Reports", number: int, item: Json) -> str:
    """Give one item to the nodes; what was done, as text."""
    start = time.monotonic()
    source = look_at(item["source"], item["target"])
    if source.kind != "folder":
        source = source._replace(listing=f"{source.listing} {run.links}")
    there = reports.all(f"{number}.node.")
    missing = [other for other in there if other["listing"] != source.listing]
    _check_room(source, item["target"], missing)
    how = _give_or_explain(run, reports, number, item["target"], source, missing)
    done = reports.all(f"{number}.done.")
    for note in sorted({note for outcome in done for note in outcome.get("notes", [])}):
        _say(f"{source.path}: {note}")
    reused = f", {run.nodes - len(missing)} had it already" if len(missing) < run.nodes else ""
    size = f"{done[0]['count']:,} files and folders, {done[0]['bytes'] / 1e6:,.1f} MB"
    where = f"{run.nodes} node{'s' * (run.nodes != 1)}{reused}"
    made = "".join(sorted({outcome.get("how", "") for outcome in done}))
    seconds = time.monotonic() - start
    what = f"{source.path} to {item['target']}: {size}"
    return f"staged {what}, verified on {where}{made}, in {seconds:.1f} s{how}"


def _check_room(source: Source, target: str, where: List[Json]) -> None:
    """StageError, naming the nodes, where a copy does not fit.

    An archive that sbcast sends is there until it is unpacked. The bytes and files that an archive unpacks to
    are not known before it is read: at least the bytes that it has are needed.
    """
    needed = int(source.size * WORDS["room_factor"])
    if source.kind == "tar" and _sbcast():
        needed += source.size
    for node_ in where:
        name = node_["name"].rpartition(".")[0]
        if node_["free"] < needed:
            raise StageError(WORDS["no room"].format(source, needed, os.path.dirname(target), name, node_))
        if node_["inodes"] is not None and node_["inodes"] < source.files:
            raise StageError(WORDS["no inodes"].format(source, name, node_))


def _give_or_explain(
    run: Run, reports: "Reports", number: int, target: str, source: Source, where: List[Json]
) -> str:
    """`_give`; where a connection breaks, the nodes' own errors say why."""
    try:
        return _give(run, number, target, source, where)
    except (StageError, OSError) as error:
        if "connection" not in str(error):
            raise
        time.sleep(WORDS["explanation_s"])
        raise StageError(_causes(reports.errors()) or str(error)) from error


def _causes(errors: List[str]) -> str:
    """The nodes' errors; connections that broke because another node failed only where nothing else did."""
    first = [error for error in errors if "connection" not in error]
    return "; ".join(first or errors)


def _give(run: Run, number: int, target: str, source: Source, where: List[Json]) -> str:
    """Send the source to the nodes of ``where``; how, as text."""
    plan = {
        "kind": source.kind,
        "source": source.path,
        "listing": source.listing,
        "mode": None if source.kind == "folder" else source.mode,
        "keep_links": run.links == "keep",
        "nodes": where,
        "token": secrets.token_hex(32),
        "archive": None,
    }
    command = _sbcast()
    if where and source.kind != "folder" and command:
        archive = os.path.join(Place(target).part, "archive")
        sending = subprocess.Popen([command, "--force", source.path, archive])
        expected = source.sha256 or sha256_of(os.path.realpath(source.path))  # while it is in the page cache
        if sending.wait() == 0:
            _put(run.control, f"{number}.plan", {**plan, "archive": expected})
            return " (sbcast)"
        _say("sbcast failed; copying from node to node instead")
    _put(run.control, f"{number}.plan", plan)
    if where:
        _send(source, Senders(where, children(-1, len(where)), str(plan["token"])))
    return " (read once, copied from node to node)" if where else ""


def _send(source: Source, senders: Senders) -> None:
    digest = hashlib.sha256()

    def write(block: bytes) -> None:
        digest.update(block)
        senders.send(block)

    try:
        send_source(source, write)
        if source.sha256 and digest.hexdigest() != source.sha256:
            raise StageError(WORDS["another sum"].format(source, digest.hexdigest()))
        senders.send(b"")
        senders.send(digest.hexdigest().encode())
    finally:
        senders.close()


def _sbcast() -> Optional[str]:
    """Slurm's program, in a job of Slurm's."""
    return shutil.which("sbcast") if os.environ.get("SLURM_JOB_ID") else None


def remove(run: Run) -> None:
    """Remove what this job has copied to this node; what another job left there stays."""
    for item in run.items:
        place = Place(item["target"])
        if not is_safe(place.folder):
            continue  # nothing was staged there
        with place.locked():
            record = place.my_record()
            mine = record.get("owner") == run.owner if record else not os.path.lexists(place.target)
            if mine:
                place.clear()
        with contextlib.suppress(OSError):
            os.rmdir(place.folder)  # that of this job, now empty


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


def poll_s(nodes: int, waited_s: float) -> float:
    """How long one of ``nodes`` that wait pauses between two looks: together at most ``looks_per_s``."""
    return float(min(WORDS["longest_poll_s"], max(POLL_S, nodes / WORDS["looks_per_s"], waited_s / 50)))


def _wait_for_plan(run: Run, number: int) -> Json:
    start = time.monotonic()
    time.sleep(random.uniform(0, poll_s(run.nodes, 0)))  # noqa: S311  (the nodes do not look all at once)
    while True:
        found = _get(run.control, f"{number}.plan")
        waited_s = time.monotonic() - start
        if found is not None:
            break
        if waited_s > REGISTER_S:
            raise StageError(f"the reader gave no sign for {REGISTER_S:.0f} s")
        time.sleep(poll_s(run.nodes, waited_s))
    if "error" in found:
        raise StageError("the reader ended: " + str(found["error"]))
    return found


class Reports:
    """The nodes' reports; each report is read once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: Dict[str, Json] = {}

    def _look(self) -> None:
        for name in os.listdir(self._run.control):
            if name not in self._found and not name.endswith((".new", ".plan")):
                facts = _get(self._run.control, name)
                if facts is not None:
                    self._found[name] = facts

    def errors(self) -> List[str]:
        """Of all nodes."""
        self._look()
        return [facts["error"] for _, facts in sorted(self._found.items()) if "error" in facts]

    def all(self, prefix: str) -> List[Json]:
        """Return all nodes' reports, in the order of their names; StageError as soon as one has failed."""
        start = said = running = time.monotonic()
        while True:
            errors = self.errors()
            if errors:
                raise StageError(_causes(errors))
            found = [facts for name, facts in sorted(self._found.items()) if name.startswith(prefix)]
            if len(found) == self._run.nodes:
                return found
            now, share = time.monotonic(), f"{len(found)} of {self._run.nodes}"
            if os.path.exists(f"/proc/{self._run.more}"):
                running = now
            if now - running > _LATE_FILES_S:
                raise StageError(f"the processes on the nodes ended early; {share} reported")
            if now - start > REGISTER_S + SILENCE_S:
                raise StageError(f"only {share} nodes reported in {now - start:.0f} s")
            if now - said > REPORT_S:
                said = now
                _say(f"staging: {share} nodes have reported")
            time.sleep(poll_s(1, now - start))


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
    mode, control, nodes, more, links = argv[:5]
    pairs = zip(argv[5::2], argv[6::2])  # noqa: B905
    items = [{"source": source, "target": target} for source, target in pairs]
    try:
        modes[mode](Run(control, int(nodes), more, links, items))
    except (StageError, OSError) as error:
        if mode != "node":  # the reader reports for all nodes
            print(f"hpclaunch: {error}", file=sys.stderr, flush=True)
        return 1
    except Ended:
        return 128 + signal.SIGTERM
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
