"""Staging: every node gets the whole source, verified, or nothing that a later job takes for it."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from hpclaunch.job.job_script import STAGING
from hpclaunch.remote import stage
from hpclaunch.remote.stage_copy import Place
from tests.remote.staging import STAGE, Nodes, content, make_data_set

pytestmark = pytest.mark.slow


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_data_set(tmp_path / "source")


@pytest.mark.parametrize("module", STAGING)
def test_it_runs_on_old_interpreters(module: str) -> None:
    ast.parse(Path(STAGE).with_name(f"{module}.py").read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_folder_reaches_every_node(tmp_path: Path, source: Path, count: int) -> None:
    nodes = Nodes(tmp_path, count)
    status, output, errors = nodes.stage(source)
    assert (status, errors) == (0, "")
    assert f"hpclaunch: staged {source} to " in output
    assert f"verified on {count} node{'s' * (count != 1)}, in " in output
    assert "copied from node to node" in output
    for target in nodes.targets:
        assert content(target) == content(source)
    assert nodes.leftovers() == []


def test_a_link_to_a_folder_is_followed(tmp_path: Path, source: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    nodes = Nodes(tmp_path, 1)
    assert nodes.stage(tmp_path / "link")[0] == 0
    assert content(nodes.targets[0]) == content(source)


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "tar.zst"])
def test_a_tar_is_unpacked(tmp_path: Path, source: Path, suffix: str) -> None:
    archive = tmp_path / f"data.{suffix}"
    subprocess.run(["tar", "--auto-compress", "-cf", archive, "-C", source, "."], check=True)
    nodes = Nodes(tmp_path, 2)
    status, _, errors = nodes.stage(archive, links="keep")
    assert (status, errors) == (0, "")
    for target in nodes.targets:
        assert content(target) == content(source)
    status, _, errors = nodes.stage(archive)
    assert status == 1
    assert "nowhere: a link that leads out of the folder, to /missing; --stage-links keep makes" in errors


@pytest.mark.parametrize("name", ["env.sqsh", "data.tar"])
def test_a_file_stays_a_file(tmp_path: Path, source: Path, name: str) -> None:
    """A squashfs image; also a tar whose target is called so."""
    image = tmp_path / name
    with tarfile.open(image, "w") as tar:
        tar.add(source, ".")
    nodes = Nodes(tmp_path, 2, name)
    assert nodes.stage(image)[0] == 0
    for target in nodes.targets:
        assert target.read_bytes() == image.read_bytes()


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o444])
def test_a_single_file_has_the_mode_of_its_source(tmp_path: Path, mode: int) -> None:
    program = tmp_path / "run.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    nodes = Nodes(tmp_path, 1, "run.sh")
    assert nodes.stage(program)[0] == 0
    assert nodes.targets[0].stat().st_mode & 0o7777 == mode


def test_a_sum_that_the_user_gives_is_checked_before_a_copy_has_its_name(tmp_path: Path) -> None:
    """Also of a plain tar, whose content has no sum of its own."""
    (tmp_path / "x").write_bytes(b"data" * 1000)
    archive = tmp_path / "data.tar"
    subprocess.run(["tar", "-cf", archive, "-C", tmp_path, "x"], check=True)
    good = archive.read_bytes()
    wanted = f"{archive}#sha256={hashlib.sha256(good).hexdigest()}"
    nodes = Nodes(tmp_path, 2)
    archive.write_bytes(good.replace(b"datadata", b"datadatb", 1))
    status, _, errors = nodes.stage(wanted)
    assert status == 1
    assert f"its sha256 is {hashlib.sha256(archive.read_bytes()).hexdigest()}, not " in errors
    assert not nodes.targets[0].exists()
    archive.write_bytes(good)
    assert nodes.stage(wanted)[0] == 0
    assert (nodes.targets[1] / "x").read_bytes() == b"data" * 1000
    status, _, errors = nodes.stage(f"{tmp_path}#sha256={'0' * 64}")
    assert status == 1
    assert "a sum can be given of a file, and this is a folder" in errors


def make_image(source: Path, folder: Path) -> Path:
    image = folder / "data.sqsh"
    command = ["mksquashfs", str(source), str(image), "-quiet", "-no-progress", "-noappend"]
    subprocess.run(command, check=True, capture_output=True)
    return image


def only(folder: Path, *programs: str) -> str:
    """A PATH on which only some programs are."""
    folder.mkdir()
    for name in programs:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_a_squashfs_is_mounted_where_the_node_can(tmp_path: Path, source: Path) -> None:
    nodes = Nodes(tmp_path, 2)
    can_mount = os.access("/dev/fuse", os.R_OK | os.W_OK)
    for _ in range(2):  # a mount that a job has left is ended by the next one
        status, output, errors = nodes.stage(make_image(source, tmp_path), "here", "keep")
        assert (status, errors) == (0, "")
        assert f"verified on 2 nodes, {'mounted' if can_mount else 'unpacked'}, in " in output
        for target in nodes.targets:
            assert target.is_mount() == can_mount
            assert content(target) == content(source)
    nodes.remove(tmp_path / "data.sqsh")
    assert not any(target.parent.exists() for target in nodes.targets), "nothing is left"


@pytest.mark.parametrize("afterwards", ["leave", "keep", "here"])
def test_a_squashfs_is_unpacked_where_it_cannot_be_mounted_for_long(
    tmp_path: Path, source: Path, afterwards: str
) -> None:
    """Where what mounts it would be ended with its process, or the node has no squashfuse."""
    image = make_image(source, tmp_path)
    path = only(tmp_path / "bin", "unsquashfs")
    status, output, errors = Nodes(tmp_path, 1).stage(image, afterwards, PATH=path)
    assert status == 1
    assert "nowhere: a link that leads out of the image, to /missing; --stage-links keep" in errors
    nodes = Nodes(tmp_path, 1)
    status, output, errors = nodes.stage(image, afterwards, "keep", PATH=path)
    assert (status, errors) == (0, "")
    assert ", unpacked, in " in output
    assert content(nodes.targets[0]) == content(source)
    assert "1 had it already" in nodes.stage(image, afterwards, "keep", PATH=path)[1]


@pytest.mark.parametrize("name", [b"name1", b"../zz"])
def test_a_squashfs_whose_names_lead_elsewhere_is_not_unpacked(tmp_path: Path, name: bytes) -> None:
    """A link and a folder of one name, or a name with "..": the folder would be made elsewhere."""
    source, outside = tmp_path / "made", tmp_path / "outside"
    (source / "name2").mkdir(parents=True)
    outside.mkdir()
    (source / "name1").symlink_to(outside)
    (source / "name2" / "evil").write_text("evil\n")
    image = tmp_path / "hostile.sqsh"
    plain = ("-noI", "-noD", "-noF", "-noX", "-noappend")  # so that names stand in it as they are
    subprocess.run(["mksquashfs", source, image, *plain], check=True, capture_output=True)
    changed = image.read_bytes().replace(b"name2", name)
    image.write_bytes(changed)
    path = only(tmp_path / "bin", "unsquashfs")
    status, _, errors = Nodes(tmp_path, 1).stage(image, "leave", "keep", PATH=path)
    assert (status, list(outside.iterdir())) == (1, [])
    assert "unsquashfs cannot read the image: " in errors
    assert not list(tmp_path.rglob("evil")) or list(tmp_path.rglob("evil")) == [source / "name2" / "evil"]


def test_a_squashfs_that_can_be_neither_mounted_nor_unpacked_is_refused(tmp_path: Path, source: Path) -> None:
    nodes = Nodes(tmp_path, 1)
    status, _, errors = nodes.stage(make_image(source, tmp_path), PATH=only(tmp_path / "bin"))
    assert status == 1
    assert "this node has no unsquashfs to unpack it; to stage the file as it is, end DEST in .sqsh" in errors
    assert not nodes.targets[0].exists()


def test_nodes_that_share_the_place_of_their_copies_are_refused(tmp_path: Path, source: Path) -> None:
    """They would wait for one another's lock."""
    nodes = Nodes(tmp_path, 2)
    nodes.targets[1] = nodes.targets[0]
    status, _, errors = nodes.stage(source)
    assert status == 1
    assert f"{nodes.targets[0]}: it is on a file system that nodes of this job share" in errors


def test_a_folder_is_looked_at_about_once_per_file(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    for number in range(300):
        (folder / str(number % 3)).mkdir(parents=True, exist_ok=True)
        (folder / str(number % 3) / str(number)).write_text("1")
    log = tmp_path / "strace"
    program = (
        "import sys; from hpclaunch.remote.stage_sources import look_at, send_source; "
        "send_source(look_at(sys.argv[1], 'x'), len)"
    )
    calls = "--trace=stat,lstat,newfstatat,statx,fstat,open,openat"
    command = ["strace", "-f", "-o", str(log), calls, sys.executable, "-S", "-c", program, str(folder)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
    lines = [line for line in log.read_text().splitlines() if str(folder) in line]
    looks = [line for line in lines if "open" not in line.partition("(")[0]]
    assert 300 <= len(looks) < 330
    assert 300 <= len(lines) - len(looks) < 330


@pytest.mark.parametrize("nodes", [4, 64])
def test_nodes_that_wait_open_few_files_together(tmp_path: Path, nodes: int) -> None:
    """As many a second with 64 nodes as with 4; a program counts its own opens by an audit hook."""
    program = (
        "import sys, threading, time\n"
        "from hpclaunch.remote import stage\n"
        "opens = []\n"
        "control, nodes = sys.argv[1], int(sys.argv[2])\n"
        "sys.addaudithook(lambda event, more: event == 'open' and control in str(more) and opens.append(1))\n"
        "run = stage.Run(control, nodes, '', '', [])\n"
        "for _ in range(nodes):\n"
        "    threading.Thread(target=stage._wait_for_plan, args=(run, 0), daemon=True).start()\n"
        "time.sleep(3)\n"
        "print(len(opens) / 3)\n"
    )
    command = [sys.executable, "-S", "-c", program, str(tmp_path), str(nodes)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert 10 < float(done.stdout) < 100
    assert max(count / stage.poll_s(count, 0) for count in range(1, 1000)) <= 100


FAKE_SBCAST = """#!/bin/sh
[ "$1" = --force ] && cp "$2" "$3" && echo "$2" >> "$FAKE_SBCAST_LOG"
exit "${FAKE_SBCAST_STATUS:-0}"
"""


@pytest.mark.parametrize("status", ["0", "1"])
@pytest.mark.parametrize("name", ["env.sqsh", "data.tar"])
def test_a_file_goes_by_sbcast_in_a_job_of_slurms(
    tmp_path: Path, source: Path, name: str, status: str
) -> None:
    """Where it fails, the nodes copy from one another."""
    image, log = tmp_path / name, tmp_path / "log"
    with tarfile.open(image, "w") as tar:
        tar.add(source, ".")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sbcast").write_text(FAKE_SBCAST)
    (tmp_path / "bin" / "sbcast").chmod(0o755)
    nodes = Nodes(tmp_path, 1, "data" if name == "data.tar" else name)
    done, output, _ = nodes.stage(
        image,
        links="keep",
        SLURM_JOB_ID="1",
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        FAKE_SBCAST_LOG=str(log),
        FAKE_SBCAST_STATUS=status,
    )
    assert done == 0
    assert ("(sbcast)" in output) == (status == "0")
    assert ("sbcast failed; copying from node to node" in output) == (status == "1")
    assert log.read_text().split() == [str(image)]
    target = nodes.targets[0]
    assert content(target) == (content(source) if target.name == "data" else content(image))
    assert nodes.leftovers() == []


def test_a_whole_copy_is_used_again_and_any_other_is_replaced(tmp_path: Path, source: Path) -> None:
    nodes = Nodes(tmp_path, 2)
    nodes.stage(source, "keep")
    first = nodes.targets[0] / "run"
    inode = first.stat().st_ino
    assert "2 had it already" in nodes.stage(source, "keep")[1]
    assert first.stat().st_ino == inode
    first.write_text("#!/bin/no\n")
    (nodes.targets[1] / "more").touch()
    assert "had it already" not in nodes.stage(source, "keep")[1]
    (source / "run").write_text("#!/bin/ba\n")
    assert "had it already" not in nodes.stage(source, "keep")[1]
    for target in nodes.targets:
        assert content(target) == content(source)
    assert nodes.leftovers() == []


def test_what_was_not_staged_is_not_replaced(tmp_path: Path, source: Path) -> None:
    nodes = Nodes(tmp_path, 2)
    nodes.targets[1].mkdir(parents=True)
    (nodes.targets[1] / "mine").touch()
    status, _, errors = nodes.stage(source)
    assert status == 1
    assert f"{nodes.targets[1]}: it exists, and was not made by --stage" in errors
    assert content(nodes.targets[1]) == {"mine": content(nodes.targets[1])["mine"]}


def test_a_job_removes_its_own_copies_only(tmp_path: Path, source: Path) -> None:
    first, second = Nodes(tmp_path, 2, job="first"), Nodes(tmp_path, 2, job="second")
    first.stage(source, "keep")
    assert "2 had it already" in second.stage(source)[1]
    second.remove(source)
    assert content(first.targets[0]) == content(source)
    first.remove(source)
    assert not any(target.parent.exists() for target in first.targets), "nothing is left"


@pytest.mark.parametrize(("afterwards", "stays"), [("stay", False), ("keep", True)])
def test_a_process_that_stays_removes_its_copy_when_the_job_ends(
    tmp_path: Path, source: Path, afterwards: str, stays: bool
) -> None:
    nodes = Nodes(tmp_path, 2)
    reader, processes = nodes.start(source, afterwards)
    assert reader.wait(timeout=60) == 0
    assert all(content(target) == content(source) for target in nodes.targets)
    for process in processes:
        if afterwards == "stay":
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert [target.exists() for target in nodes.targets] == [stays] * 2
    assert nodes.leftovers() == []


@pytest.mark.parametrize("afterwards", ["stay", "keep", "leave"])
def test_a_job_that_is_cancelled_while_it_stages_leaves_nothing(tmp_path: Path, afterwards: str) -> None:
    source = make_data_set(tmp_path / "source", [60_000_000])
    nodes = Nodes(tmp_path, 3)
    reader, processes = nodes.start(source, afterwards)
    while not any((target.parent / f".{target.name}.part").exists() for target in nodes.targets):
        time.sleep(0.01)
    for process in (reader, *processes):
        process.terminate()
    for process in (reader, *processes):
        process.wait(timeout=60)
    nodes.remove(source)
    assert [target for target in nodes.targets if target.exists() and afterwards != "keep"] == []
    assert nodes.leftovers() == []


SIGNAL_BEFORE_SELECT = """
import ctypes, functools, os, select, signal, sys, types
from hpclaunch.remote import stage

class Late:
    # Called in C by select, so that no handler in Python runs before the system call; the 0 is stdin.
    fileno = staticmethod(functools.partial(ctypes.CDLL(None).kill, os.getpid(), signal.SIGTERM))

stage.select = types.SimpleNamespace(select=lambda read, *more: select.select([*read, Late()], *more))
sys.exit(stage.main(sys.argv[1:]))
"""


def test_a_signal_right_before_the_wait_is_not_lost(tmp_path: Path) -> None:
    control, target = tmp_path / "staging.x", tmp_path / "local" / "data"
    control.mkdir()
    words = ["node", str(control), "1", "leave", "-", str(tmp_path), str(target)]
    command = [sys.executable, "-c", SIGNAL_BEFORE_SELECT, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0


@pytest.mark.parametrize("seed", range(5))
def test_signals_at_random_moments_leave_nothing(tmp_path: Path, source: Path, seed: int) -> None:
    """As a cancelled job of Slurm gets them: SIGTERM to all, SIGUSR1 by srun, one after the other."""
    moments = random.Random(seed)
    nodes = Nodes(tmp_path, 3)
    reader, processes = nodes.start(source, "stay")
    time.sleep(moments.uniform(0, 1.5))
    reader.terminate()
    for process in processes:
        for number in moments.sample([signal.SIGTERM, signal.SIGUSR1], 2):
            process.send_signal(number)  # one that comes before it handles them ends it, with nothing made
    for process in (reader, *processes):
        process.wait(timeout=60)
    assert [target for target in nodes.targets if target.exists()] == []
    assert nodes.leftovers() == []


def test_kills_at_random_moments_leave_nothing_that_is_taken_for_whole(tmp_path: Path, source: Path) -> None:
    """20 more, on two nodes of a real Slurm: tests/long_staging.py."""
    check_kills(Nodes(tmp_path, 3), source, kills=6, seed=3)


def check_kills(nodes: Nodes, source: Path, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    start = time.monotonic()
    assert nodes.stage(source, "keep")[0] == 0
    usual_s = time.monotonic() - start
    before = content(source)
    for turn in range(kills):
        (source / "run").write_text(f"#!/bin/sh\n# {turn}\n")
        reader, processes = nodes.start(source, "keep")
        time.sleep(moments.uniform(0, usual_s))
        for process in moments.sample([reader, *processes], 2):
            process.kill()
        for process in (reader, *processes):
            process.terminate()
            process.communicate(timeout=120)
        for target in nodes.targets:
            if Place(str(target)).whole() is not None:
                assert content(target) in (content(source), before)
        assert nodes.stage(source, "keep")[0] == 0
        for target in nodes.targets:
            assert content(target) == content(source)
        before = content(source)
        assert nodes.leftovers() == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [("missing", "not a folder or regular file"), ("fifo", "train/pipe: not a file, folder or link")],
)
def test_a_source_that_cannot_be_copied_is_named(
    tmp_path: Path, source: Path, fault: str, message: str
) -> None:
    if fault == "fifo":
        os.mkfifo(source / "train" / "pipe")
    status, _, errors = Nodes(tmp_path, 2).stage(tmp_path / "none" if fault == "missing" else source)
    assert status == 1
    assert message in errors


def test_a_disk_that_fills_up_meanwhile_ends_all_with_its_name(tmp_path: Path) -> None:
    source = make_data_set(tmp_path / "source", [8_000_000])
    small = tmp_path / "node1" / "local"
    small.mkdir(parents=True)
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    program = (
        "import sys; from pathlib import Path; from tests.remote.staging import Nodes; import json; "
        "nodes = Nodes(Path(sys.argv[1]), 2); print(json.dumps(nodes.stage(Path(sys.argv[2]))))"
    )
    script = f'mount -t tmpfs -o size=6m none "{small}" && export PYTHONPATH="$PWD" && exec "$@"'
    command = [*alone, "bash", "-c", script, "bash", sys.executable, "-c", program]
    done = subprocess.run([*command, str(tmp_path), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, _, errors = json.loads(done.stdout)
    assert status == 1
    assert "it needs 8," in errors
    assert not (tmp_path / "node0" / "local" / "data").exists()


@pytest.mark.parametrize("name", ["../out", "/tmp/hpclaunch-out", "train/../../out"])
def test_an_archive_may_not_write_outside_of_its_target(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "bad.tar"
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    status, _, errors = Nodes(tmp_path, 1).stage(archive)
    assert status == 1
    assert "would be written outside of" in errors


def test_an_archive_may_not_write_through_a_link(tmp_path: Path) -> None:
    archive = tmp_path / "bad.tar"
    with tarfile.open(archive, "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        member = tarfile.TarInfo("link/out")
        tar.addfile(member, io.BytesIO(b""))
    status, _, errors = Nodes(tmp_path, 1).stage(archive)
    assert status == 1
    assert "link: a link that leads out of the folder" in errors
    assert not (tmp_path / "out").exists()


def test_nodes_whose_processes_end_early_end_the_reader(tmp_path: Path, source: Path) -> None:
    """The launcher is gone, and one node has never reported."""
    nodes = Nodes(tmp_path, 2)
    reader, processes = nodes.start(source)
    processes[1].kill()
    processes[0].kill()
    for process in processes:
        process.wait()
    _, errors = reader.communicate(timeout=60)
    assert reader.returncode == 1
    assert "the processes on the nodes ended early" in errors or "connection" in errors


@pytest.mark.parametrize(
    ("kind", "then"),
    [
        (tarfile.SYMTYPE, tarfile.REGTYPE),
        (tarfile.LNKTYPE, tarfile.REGTYPE),
        (tarfile.SYMTYPE, tarfile.DIRTYPE),
    ],
)
def test_an_archive_changes_nothing_outside_of_its_target(tmp_path: Path, kind: bytes, then: bytes) -> None:
    """A link, perhaps with a hard link to it, and then a file or folder of the same name."""
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700) if then == tarfile.DIRTYPE else victim.write_text("mine")
    before = victim.stat()
    archive = tmp_path / "evil.tar"
    with tarfile.open(archive, "w") as tar:
        for name, form, target in (
            ("link", tarfile.SYMTYPE, str(victim)),
            ("x", kind, "link" if kind == tarfile.LNKTYPE else str(victim)),
            ("x", then, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = form, target, 0o777
            member.size = 4 if form == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"evil"))
    nodes = Nodes(tmp_path, 1)
    status, _, errors = nodes.stage(archive, links="keep")
    assert status == 1
    assert "x: it is there already, or twice in the source" in errors
    after = victim.stat()
    assert (after.st_mode, after.st_ctime_ns, after.st_mtime_ns) == (
        before.st_mode,
        before.st_ctime_ns,
        before.st_mtime_ns,
    )
    assert not nodes.targets[0].exists()


def test_a_damaged_archive_is_not_staged_short(tmp_path: Path, source: Path) -> None:
    """A bit of a header after the first: Python's tarfile takes it for the end."""
    archive = tmp_path / "data.tar"
    subprocess.run(["tar", "--format=gnu", "-cf", archive, "-C", source, "."], check=True)
    damaged = bytearray(archive.read_bytes())
    damaged[600] ^= 0xFF
    archive.write_bytes(damaged)
    nodes = Nodes(tmp_path, 2)
    status, output, errors = nodes.stage(archive)
    assert (status, "verified" in output) == (1, False)
    assert "a header's checksum is wrong: the archive is damaged" in errors
    assert not nodes.targets[0].exists()
