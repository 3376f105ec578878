"""The parts of staging one by one, and whole runs that are short enough for the inner loop."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.remote import stage, stage_copy
from hpclaunch.remote.stage import Reports, Run
from hpclaunch.remote.stage_copy import Place
from hpclaunch.remote.stage_sources import Source, StageError, look_at
from tests.in_one_test import in_one_test
from tests.remote.staging import Nodes, content, make_data_set


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_data_set(tmp_path / "source", [10, 0])


@pytest.fixture
def reader_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reader runs in the test's process, whose signals stay as they are."""
    monkeypatch.setattr(stage, "POLL_S", 0.01)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def staged(nodes: Nodes, source: Path, afterwards: str = "leave", links: str = "refuse") -> int:
    """The exit status of the reader, when the processes of the nodes have ended, too."""
    control, processes = nodes.start_nodes(source, afterwards)
    words = (control, str(len(processes)), str(processes[0].pid), links, str(source), str(nodes.targets[0]))
    status = stage.main(["reader", *words])
    for process in processes:
        process.communicate(timeout=60)
    return status


def removed(nodes: Nodes, source: Path) -> None:
    """The end of a job, on each node."""
    (nodes.job / "staging.end").mkdir(exist_ok=True)
    for target in nodes.targets:
        words = (str(nodes.job / "staging.end"), "1", "-", "-", str(source), str(target))
        assert stage.main(["remove", *words]) == 0


@pytest.mark.usefixtures("reader_here")
def test_a_folder_is_staged_used_again_and_removed(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three folders, two links, and files: two of numbers, ``small``, ``run`` and its second name."""
    nodes = Nodes(tmp_path, 2)
    assert staged(nodes, source, "keep") == 0
    said = capsys.readouterr().out
    assert f"hpclaunch: staged {source} to {nodes.targets[0]}: 10 files and folders, 0.0 MB" in said
    assert ", verified on 2 nodes, in " in said
    assert said.endswith(" s (read once, copied from node to node)\n")
    assert [content(target) for target in nodes.targets] == [content(source)] * 2
    (nodes.targets[1] / "run").write_text("#!/bin/no\n")
    assert staged(nodes, source, "keep") == 0
    assert "verified on 2 nodes, 1 had it already, in " in capsys.readouterr().out
    assert [content(target) for target in nodes.targets] == [content(source)] * 2
    removed(Nodes(tmp_path, 2, job="another"), source)
    assert content(nodes.targets[0]) == content(source), "another job's copy"
    removed(nodes, source)
    assert not any(target.parent.exists() for target in nodes.targets), "nothing is left"
    removed(nodes, source)


@pytest.mark.usefixtures("reader_here")
def test_a_copy_that_all_nodes_have_is_not_sent_again(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(tmp_path, 1)
    staged(nodes, source, "keep")
    inode = (nodes.targets[0] / "run").stat().st_ino
    capsys.readouterr()
    assert staged(nodes, source, "keep") == 0
    assert "verified on 1 node, 1 had it already, in " in (said := capsys.readouterr().out)
    assert said.endswith(" s\n"), "nothing was read"
    assert (nodes.targets[0] / "run").stat().st_ino == inode
    assert nodes.leftovers() == []


@pytest.mark.usefixtures("reader_here")
def test_an_archive_goes_by_sbcast_and_is_unpacked(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, programs = tmp_path / "data.tar", tmp_path / "bin"
    with tarfile.open(archive, "w") as tar:
        tar.add(source, ".")
    programs.mkdir()
    (programs / "sbcast").write_text('#!/bin/sh\n[ "$1" = --force ] && cp "$2" "$3"\n')
    (programs / "sbcast").chmod(0o755)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    nodes = Nodes(tmp_path, 1)
    assert staged(nodes, archive, links="keep") == 0
    assert capsys.readouterr().out.endswith(" s (sbcast)\n")
    assert content(nodes.targets[0]) == content(source)
    assert staged(Nodes(tmp_path, 1, "again"), archive) == 1
    assert "a link that leads out of the folder, to /missing" in capsys.readouterr().err


@pytest.mark.usefixtures("reader_here")
def test_a_process_that_stays_removes_its_copy_at_a_signal(tmp_path: Path, source: Path) -> None:
    nodes = Nodes(tmp_path, 1)
    control, (process,) = nodes.start_nodes(source, "stay")
    words = (control, "1", str(process.pid), "refuse", str(source), str(nodes.targets[0]))
    assert stage.main(["reader", *words]) == 0
    assert content(nodes.targets[0]) == content(source)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert not nodes.targets[0].exists()


@pytest.mark.usefixtures("reader_here")
def test_a_source_that_is_missing_ends_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = Nodes(tmp_path, 1)
    assert staged(nodes, tmp_path / "none") == 1
    said = f"hpclaunch: --stage {tmp_path / 'none'}: not a folder or regular file on {socket.gethostname()}\n"
    assert capsys.readouterr().err == said
    assert nodes.leftovers() == []


@in_one_test("mode", [0o755, 0o640, 0o444])
def test_a_single_file_keeps_its_mode_in_a_folder_of_its_owner(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / f"{mode:o}"
    folder.mkdir(mode=0o700)
    place = Place(str(folder / "run.sh"))
    place.make_part()
    copy = Path(place.part) / "copy"
    copy.write_text("#!/bin/sh\n")
    place.finish(str(copy), {"files": {}}, mode)
    assert (folder / "run.sh").stat().st_mode & 0o777 == mode


def test_a_copy_in_a_folder_of_all_is_private_or_read_only(tmp_path: Path) -> None:
    """Others reach /tmp: of a folder they get nothing, of a file no right to write."""
    tmp_path.chmod(0o1777)
    for name, wanted in (("folder", 0o700), ("file", 0o755)):
        place = Place(str(tmp_path / name))
        place.make_part()
        copy = Path(place.part) / "copy"
        copy.mkdir() if name == "folder" else copy.touch()
        copy.chmod(0o777)
        place.finish(str(copy), {})
        assert (tmp_path / name).stat().st_mode & 0o777 == wanted
        place.clear_part()


# --- one copy on a node -----------------------------------------------------------------------------------


def test_who_has_the_lock_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stage_copy, "LOCK_SAID_S", 0.0)
    monkeypatch.setattr(stage_copy, "LOCK_S", 0.3)
    place = Place(str(tmp_path / "data"))
    with place.locked("/state/jobs/first/staging.1"):
        with pytest.raises(StageError, match=f"process {os.getpid()} on .* of job first has worked on it"):
            place.locked("/state/jobs/second/staging.2").__enter__()
        with pytest.raises(StageError, match="that nodes of this job share"):
            place.locked("/state/jobs/first/staging.1").__enter__()
    assert f"waiting for process {os.getpid()} on " in capfd.readouterr().out
    with place.locked("/state/jobs/second/staging.2"):
        pass


def record_of(place: Place, **facts: Any) -> None:
    """A copy with one file, and its record."""
    Path(place.target).mkdir(exist_ok=True)
    (Path(place.target) / "x").write_text("1")
    files = {"x": hashlib.sha256(b"1").hexdigest()}
    Path(place.record).write_text(json.dumps({"files": files, "count": 1, "bytes": 1, **facts}))


def test_a_copy_is_whole_only_by_a_record_that_says_all(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "data"))
    assert place.whole() is None, "nothing is there"
    record_of(place, control="/jobs/a/staging.1", host="n7")
    assert (place.whole() or {})["host"] == "n7"
    assert place.whole("/jobs/b/staging.2") is not None
    with pytest.raises(StageError, match=r"data: it is on a file system that nodes of this job share .* n7"):
        place.whole("/jobs/a/staging.1")
    cases: tuple[dict[str, Any], ...] = (
        {"count": None},
        {"bytes": None},
        {"image": True},
        {"files": {}},
        {"files": {"y": "0"}},
    )
    for facts in cases:
        record_of(place, **facts)
        assert place.whole() is None, facts
    for text in ("", "[]", "{"):
        Path(place.record).write_text(text)
        assert place.whole() is None, text


def test_what_is_there_is_removed_only_with_a_record(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "data"))
    place.clear()
    (tmp_path / "data").mkdir()
    with pytest.raises(StageError, match="data: it exists, and was not made by --stage"):
        place.clear()
    record_of(place)
    (tmp_path / "data" / "inner").mkdir()
    (tmp_path / "data" / "inner" / "y").touch()
    for folder in (tmp_path / "data" / "inner", tmp_path / "data"):
        folder.chmod(0o500)  # as in an archive of read-only folders
    (tmp_path / ".data.part.old").mkdir()
    place.make_part()
    with pytest.raises(StageError, match="another process has made it"):
        place.make_part()
    place.clear()
    assert list(tmp_path.iterdir()) == []


def test_content_that_differs_on_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "empty").mkdir()
    files: dict[str, Any] = {"a": hashlib.sha256(b"1").hexdigest(), "link": {"link": "a"}}
    stage_copy.verify(str(tmp_path), files)
    for wrong in ({"a": "0"}, {"link": {"link": "b"}}, {"link": files["a"]}, {"empty": "0"}, {"none": "0"}):
        (name,) = wrong
        with pytest.raises(StageError, match=f"/{name}: its content on disk is wrong"):
            stage_copy.verify(str(tmp_path), {**files, **wrong})
    (tmp_path / "more").touch()
    with pytest.raises(StageError, match="3 files on disk, 2 were sent"):
        stage_copy.verify(str(tmp_path), files)


# --- the way between the nodes ----------------------------------------------------------------------------


def test_nodes_without_room_are_named_before_anything_is_copied() -> None:
    source = Source("/data", "folder", "", 10_000_000, 500, 0, 0, "", [])
    there = [
        {"name": "n1.77", "free": 20_000_000, "inodes": None},
        {"name": "n2.78", "free": 9_000_000, "inodes": 1000},
    ]
    stage._check_room(source, "/local/data", there[:1])
    with pytest.raises(StageError, match="needs 10,500,000 bytes in /local, and n2 has 9,000,000"):
        stage._check_room(source, "/local/data", there)
    there[1] |= {"free": 20_000_000, "inodes": 400}
    with pytest.raises(StageError, match="has 500 files, and n2 has inodes for 400"):
        stage._check_room(source, "/local/data", there)


def stream(*blocks: bytes) -> io.BytesIO:
    """Blocks as a node gets them."""
    return io.BytesIO(b"".join(stage._LENGTH.pack(len(block)) + block for block in blocks))


def test_data_that_were_changed_or_cut_on_the_way_are_refused() -> None:
    senders = stage.Senders([], [], "")
    digest = hashlib.sha256(b"abc").hexdigest().encode()
    assert list(stage.receive(stream(b"ab", b"c", b"", digest), senders)) == [b"ab", b"c"]
    with pytest.raises(StageError, match="not what was sent"):
        list(stage.receive(stream(b"ab", b"d", b"", digest), senders))
    with pytest.raises(StageError, match="connection"):
        list(stage.receive(stream(b"ab"), senders))


def test_the_tree_reaches_every_node_once() -> None:
    for count in range(1, 40):
        reached = list(stage.children(-1, count))
        for at in reached:
            reached += stage.children(at, count)
        assert sorted(reached) == list(range(count))


def test_an_archive_that_sbcast_sends_needs_room_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 bytes and 5 % more; the archive itself is there until it is unpacked."""
    source = Source("/data.tar", "tar", "", 1000, 1, 0, 0, "", [])

    def check(free: int, inodes: int | None = 1) -> None:
        stage._check_room(source, "/local/data", [{"name": "n1.77", "free": free, "inodes": inodes}])

    monkeypatch.setattr(stage, "_sbcast", lambda: None)
    check(1050)
    with pytest.raises(StageError, match="needs 1,050 bytes in /local, and n1 has 1,049"):
        check(1049)
    monkeypatch.setattr(stage, "_sbcast", lambda: "/usr/bin/sbcast")
    check(2050)
    with pytest.raises(StageError, match="needs 2,050 bytes"):
        check(2049)
    with pytest.raises(StageError, match="inodes for 0"):
        check(5000, 0)


def test_nodes_that_wait_look_at_most_fifty_times_a_second_together() -> None:
    looks = [(1, 0.0, 0.1), (50, 0.0, 1.0), (500, 0.0, 10.0), (9_000, 0.0, 20.0), (1, 100.0, 2.0)]
    assert [stage.poll_s(nodes, waited_s) for nodes, waited_s, _ in looks] == [pause for *_, pause in looks]


def run_in(control: Path, nodes: int = 1, more: str = "0") -> Run:
    """A run whose launcher has ended: no process has the number 0."""
    return Run(str(control), nodes, more, "refuse", [])


def test_a_node_waits_for_the_plan_and_says_how_the_reader_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "POLL_S", 0.01)
    (tmp_path / "0.plan").write_text('{"kind": "folder"}')
    assert stage._wait_for_plan(run_in(tmp_path), 0) == {"kind": "folder"}
    (tmp_path / "1.plan").write_text('{"error": "no such folder"}')
    with pytest.raises(StageError, match=r"^the reader ended: no such folder"):
        stage._wait_for_plan(run_in(tmp_path), 1)
    monkeypatch.setattr(stage, "REGISTER_S", 0.0)
    with pytest.raises(StageError, match="the reader gave no sign for 0 s"):
        stage._wait_for_plan(run_in(tmp_path), 2)


def test_a_node_that_failed_ends_the_wait_with_its_own_reason(tmp_path: Path) -> None:
    for name, facts in (
        ("0.node.b.1", {"error": "b: n2: the connection broke"}),
        ("0.node.c.2", {"error": "c: No space left on device"}),
        ("0.node.a.3", {"name": "a"}),
        ("0.plan", {"error": "of the reader"}),
        ("0.done.d.1.99.new", {"error": "half written"}),
    ):
        (tmp_path / name).write_text(json.dumps(facts))
    reports = Reports(run_in(tmp_path, 3))
    with pytest.raises(StageError, match=r"^c: No space left on device$"):
        reports.all("0.node.")
    assert stage._causes(["a: the connection broke", "b: no TCP connection to it"]) == (
        "a: the connection broke; b: no TCP connection to it"
    )


def test_reports_come_in_the_order_of_the_nodes_and_a_silence_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b", "a"):
        (tmp_path / f"0.node.{name}.1").write_text(json.dumps({"name": name}))
    assert [one["name"] for one in Reports(run_in(tmp_path, 2)).all("0.node.")] == ["a", "b"]
    monkeypatch.setattr(stage, "_LATE_FILES_S", 0.0)
    with pytest.raises(StageError, match="the processes on the nodes ended early; 2 of 3 reported"):
        Reports(run_in(tmp_path, 3)).all("0.node.")
    monkeypatch.setattr(stage, "POLL_S", 0.01)
    for limit in ("REGISTER_S", "SILENCE_S"):
        monkeypatch.setattr(stage, limit, 0.03)
    monkeypatch.setattr(stage, "REPORT_S", 0.0)
    living = run_in(tmp_path, 3, str(os.getpid()))
    start = time.monotonic()
    with pytest.raises(StageError, match=r"only 2 of 3 nodes reported in \d+ s"):
        Reports(living).all("0.node.")
    assert time.monotonic() - start > 0.06
    assert "hpclaunch: staging: 2 of 3 nodes have reported\n" in capsys.readouterr().out


def test_only_who_knows_the_token_may_send() -> None:
    """Other users of a node can connect to its port, too."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)
        port = listener.getsockname()[1]
        node = {"name": "n1", "addresses": ["127.0.0.1"], "port": port}
        stranger = stage._connect(node, "f" * 64)[1]
        senders = stage.Senders([node], [0], "0" * 64)
        stream = stage._accept(listener, "0" * 64)
        for block in (b"abc", b""):
            senders.send(block)
        assert (stage._block(stream), stage._block(stream)) == (b"abc", b"")
        assert stranger.recv(1) == b"", "closed"
        stranger.close()
        senders.close()
        with pytest.raises(StageError, match="the connection to the node that sends broke"):
            stage._block(stream)
        stream.close()
    with pytest.raises(StageError, match=r"^n1: no TCP connection to it \(127.0.0.1: .*refused"):
        stage._connect(node, "")


def test_a_block_that_ends_early_is_a_broken_connection() -> None:
    whole = stage._LENGTH.pack(3) + b"abc"
    assert stage._block(io.BytesIO(whole)) == b"abc"
    for size in (0, 3, 6):
        with pytest.raises(StageError, match="broke"):
            stage._block(io.BytesIO(whole[:size]))


class Sent:
    """Senders that keep what they get."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.closed = False

    def send(self, block: bytes) -> None:
        self.blocks.append(block)

    def close(self) -> None:
        self.closed = True


def test_a_sum_that_the_user_gives_is_that_of_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "env.bin").write_bytes(b"data")
    digest = hashlib.sha256(b"data").hexdigest()
    for given in ("", f"#sha256={digest}"):
        sent: Any = Sent()
        stage._send(look_at(f"{tmp_path / 'env.bin'}{given}", "/local/env.bin"), sent)
        assert (sent.blocks, sent.closed) == ([b"data", b"", digest.encode()], True)
    sent = Sent()
    with pytest.raises(StageError, match=f"its sha256 is {digest}, not {'0' * 64} as given"):
        stage._send(look_at(f"{tmp_path / 'env.bin'}#sha256={'0' * 64}", "/local/env.bin"), sent)
    assert (sent.blocks, sent.closed) == ([b"data"], True), "without its digest no node takes it"


def test_how_a_process_ended_is_its_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader that SIGTERM ends exits as a shell says it, with 128 + 15; nodes leave the words to it."""

    def ends(name: str, error: BaseException) -> tuple[int, str]:
        def mode(_: Run) -> None:
            raise error

        monkeypatch.setattr(stage, name, mode)
        return stage.main([name, str(tmp_path), "1", "-", "-"]), capsys.readouterr().err

    assert ends("reader", StageError("no room")) == (1, "hpclaunch: no room\n")
    assert ends("node", StageError("no room")) == (1, "")
    assert ends("reader", stage.Ended()) == (143, "")
    denied = PermissionError(13, "Permission denied", "/x")
    assert ends("remove", denied) == (1, "hpclaunch: [Errno 13] Permission denied: '/x'\n")
