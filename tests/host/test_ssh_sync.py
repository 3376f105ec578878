"""The user's code goes along: what goes, what is sent, that it is there whole; here and over ssh."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hpclaunch.host.sync
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.host.ssh import connect
from hpclaunch.host.sync import Synced, list_files, sync_folder
from hpclaunch.host.this_machine import LocalHost
from tests.testbed.cluster import Sshd

ODD = 'it\'s $(x)\n"ü" \\ *'


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.sshd)])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param == "local":
        yield LocalHost()
        return
    server: Sshd = request.getfixturevalue("plain_sshd")
    (tmp_path / "config").write_text(server.host_block("there"))
    with connect("there", config=tmp_path / "config") as host:
        yield host


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a program, a folder of a difficult name, a link and a name that is not text."""
    source = tmp_path / "my code"
    (source / ODD).mkdir(parents=True)
    (source / "train.py").write_text("print(1)\n")
    (source / "run.sh").write_text("#!/bin/bash\n")
    (source / "run.sh").chmod(0o750)
    (source / ODD / ODD).write_text("odd")
    (source / "link").symlink_to(f"{ODD}/{ODD}")
    (source / os.fsdecode(b"\xff")).write_text("no text")
    return source


@pytest.fixture(autouse=True)
def _no_settings_of_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def contents(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file and link below a folder: mode and bytes, or where it leads."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = (0, os.readlink(path))
        elif path.is_file():
            found[name] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
    return found


class JobPlace:
    """A place on the host; each job's copy has a number."""

    def __init__(self, host: Host, source: Path, root: Path) -> None:
        self.host, self.source, self.root, self.count = host, source, root, 0
        root.mkdir()

    def sync(self) -> tuple[Synced, Path]:
        self.count += 1
        copy = self.root / f"job {self.count}"
        return sync_folder(self.host, self.source, str(copy), str(self.root / "cache")), copy


@pytest.fixture
def target(host: Host, source: Path, tmp_path: Path) -> JobPlace:
    return JobPlace(host, source, tmp_path / "there")


def test_a_tree_arrives_unchanged(target: JobPlace, source: Path) -> None:
    os.utime(source / "train.py", (10**9, 10**9))
    synced, copy = target.sync()
    assert contents(copy) == contents(source)
    assert (synced.files, synced.sent) == (5, 5)
    assert (copy / "train.py").stat().st_mtime == 10**9
    assert sorted(os.listdir(target.root)) == ["cache", "job 1"]


def test_only_what_changed_is_sent(target: JobPlace, source: Path) -> None:
    target.sync()
    assert target.sync()[0].sent == 0
    (source / "train.py").write_text("print(2)\n")  # of the same size, perhaps within the same second
    (source / "run.sh").chmod(0o700)
    (source / ODD / ODD).unlink()
    (source / ODD / "new").write_text("new")
    (source / "link").unlink()
    (source / "link").symlink_to("train.py")
    synced, copy = target.sync()
    assert (synced.files, synced.sent) == (5, 4)
    assert contents(copy) == contents(source)
    assert target.sync()[0].sent == 0


def test_set_uid_and_the_like_are_left_out_and_named(target: JobPlace, source: Path) -> None:
    (source / "run.sh").chmod(0o6755)
    synced, copy = target.sync()
    assert synced.dropped == ("run.sh",)
    assert stat.S_IMODE((copy / "run.sh").stat().st_mode) == 0o755
    assert target.sync()[0].sent == 0


def test_a_file_becomes_a_folder_and_back(target: JobPlace, source: Path) -> None:
    target.sync()
    (source / "train.py").unlink()
    (source / "train.py").mkdir()
    (source / "train.py" / "x").write_text("x")
    assert contents(target.sync()[1]) == contents(source)
    (source / "train.py" / "x").unlink()
    (source / "train.py").rmdir()
    (source / "train.py").write_text("back")
    assert contents(target.sync()[1]) == contents(source)


def test_changes_of_a_job_to_its_copy_reach_no_other_job(target: JobPlace, source: Path) -> None:
    _, first = target.sync()
    with (first / "train.py").open("a") as file:
        file.write("changed by the job")
    (first / "run.sh").unlink()
    (source / "link").unlink()
    assert contents(target.sync()[1]) == contents(source)


def test_a_damaged_manifest_costs_only_time(target: JobPlace, source: Path) -> None:
    target.sync()
    (manifest,) = target.root.glob("cache/*/current/manifest")
    manifest.write_text("{")
    synced, copy = target.sync()
    assert (synced.sent, contents(copy)) == (5, contents(source))


def test_half_made_trees_are_removed_after_a_day(target: JobPlace, source: Path) -> None:
    target.sync()
    trees = next((target.root / "cache").iterdir())
    for folder, name, age_s in (
        (trees, "new-1", 90000),
        (trees, "new-2", 60),
        (trees.parent / "x", "new-3", 90000),
    ):
        (folder / name / "files").mkdir(parents=True)
        (folder / name / "files" / "half").write_text("")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    (source / "train.py").write_text("print(2)\n")
    target.sync()
    assert [path.name for path in (target.root / "cache").glob("*/new-*")] == ["new-2"]


def test_more_than_one_batch(target: JobPlace, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hpclaunch.host.sync.LIMIT, "batch_bytes", 4096)
    for i in range(9):
        (source / f"{i}").write_bytes(os.urandom(2000))
    assert contents(target.sync()[1]) == contents(source)


def test_a_step_that_fails_leaves_no_copy_and_says_why(target: JobPlace) -> None:
    (target.root / "cache").write_text("in the way")
    with pytest.raises(RefusedError, match=r"the code could not be copied to .*: mkdir: "):
        target.sync()
    assert os.listdir(target.root) == ["cache"]


def test_many_small_files_are_sent_at_once(host: Host, tmp_path: Path) -> None:
    files = {"a.py": b"1", f"deep/{ODD}": b"2"}
    for _ in range(2):
        host.write_folder(f"{tmp_path}/runner", files)
    assert {name: data for name, (_, data) in contents(tmp_path / "runner").items()} == files
    assert not list(tmp_path.glob("runner.*"))


@pytest.mark.sshd
def test_a_connection_killed_in_the_middle_leaves_the_whole_tree(
    plain_sshd: Sshd, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(plain_sshd.host_block("there"))
    (source / "big").write_bytes(os.urandom(60 << 20))
    cuts: list[list[str]] = []

    def cut() -> None:
        while not any(
            path.stat().st_size > 1 << 20 for path in tmp_path.glob("there/cache/*/new-*/files/big")
        ):
            time.sleep(0.001)
        cuts.append(os.listdir(tmp_path / "there"))
        plain_sshd.break_connections()

    thread = threading.Thread(target=cut)
    thread.start()
    with connect("there", config=tmp_path / "config") as host:
        synced, copy = JobPlace(host, source, tmp_path / "there").sync()
    thread.join()
    assert cuts == [["cache"]]
    assert synced.sent == 6
    assert contents(copy) == contents(source)


# -- what goes along


def test_a_checkout_gives_what_git_does_not_ignore(source: Path) -> None:
    git(source, "init", "-q")
    (source / ".gitignore").write_text("*.ckpt\n/data/\n!keep.ckpt\n")
    for name in ("model.ckpt", "keep.ckpt", "data/x", "sub/a.py", "sub/b.ckpt", "gone.py"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(name)
    git(source, "add", "train.py", "gone.py")
    git(source, "add", "-f", "model.ckpt")
    (source / "gone.py").unlink()
    expected = {".gitignore", "keep.ckpt", "model.ckpt", "sub/a.py", "train.py", "run.sh", "link"}
    expected |= {f"{ODD}/{ODD}", os.fsdecode(b"\xff")}
    assert set(list_files(source, set())) == expected
    assert list_files(source / "sub", set()) == ["a.py"]


def test_gitignore_counts_without_a_checkout(source: Path) -> None:
    (source / "sub").mkdir()
    (source / "sub" / ".gitignore").write_text("*.ckpt\n")
    for name in ("sub/x.ckpt", "sub/x.py", "x.ckpt"):
        (source / name).write_text(name)
    found = set(list_files(source, set()))
    assert {"sub/x.py", "x.ckpt", "sub/.gitignore", "train.py"} < found
    assert "sub/x.ckpt" not in found


def test_submodules_and_repositories_inside_are_copied(source: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "library", source / "nested"):
        place.mkdir()
        git(place, "init", "-q")
        (place / "lib.py").write_text("x")
        (place / ".gitignore").write_text("*.o\n")
        (place / "lib.o").write_text("x")
        git(place, "add", ".")
        git(place, "commit", "-qm", "x")
    git(source, "init", "-q")
    git(source, "submodule", "add", "-q", str(tmp_path / "library"), "module")
    found = set(list_files(source, set()))
    assert {"module/lib.py", "nested/lib.py", "nested/.gitignore", ".gitmodules"} < found
    assert not any(name.endswith("lib.o") or "/.git/" in name for name in found)


def test_links_inside_stay_and_links_outside_are_refused(source: Path, tmp_path: Path) -> None:
    (source / "sub").mkdir()
    (source / "sub" / "up").symlink_to("../train.py")
    (source / "sub" / "absolute").symlink_to(source / "run.sh")
    (source / "nowhere").symlink_to("not there yet")
    (tmp_path / "there").mkdir()
    sync_folder(LocalHost(), source, f"{tmp_path}/there/copy", f"{tmp_path}/there/cache")
    copy = tmp_path / "there" / "copy"
    assert os.readlink(copy / "sub" / "up") == "../train.py"
    assert os.readlink(copy / "sub" / "absolute") == "../run.sh"
    assert os.readlink(copy / "nowhere") == "not there yet"
    (source / "round").symlink_to(".")
    (source / "sneaky").symlink_to("round/../../my code/train.py")
    for target in ("../secret", "/etc/passwd", "sub/../../x"):
        (source / "out").unlink(missing_ok=True)
        (source / "out").symlink_to(target)
        with pytest.raises(BadInputError, match=r"out: this link leads outside"):
            sync_folder(LocalHost(), source, f"{tmp_path}/there/second", f"{tmp_path}/there/cache")
    assert not (tmp_path / "there" / "second").exists()


def test_what_cannot_be_copied_is_named(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> str:
        with pytest.raises(BadInputError) as caught:
            sync_folder(LocalHost(), folder, f"{tmp_path}/copy", f"{tmp_path}/cache")
        return str(caught.value)

    (tmp_path / "empty").mkdir()
    assert "there is nothing to copy" in refused(tmp_path / "empty")
    assert "no such folder" in refused(source / "train.py")
    os.mkfifo(source / "pipe")
    assert f"{source}/pipe: is neither a file nor a link" in refused(source)
    (source / "pipe").unlink()
    (source / "data").write_bytes(b"x" * 5000)
    monkeypatch.setattr(hpclaunch.host.sync.LIMIT, "max_bytes", 4096)
    assert "are too much to be copied for every job; the largest: data" in refused(source)
    assert not (tmp_path / "copy").exists()


def test_without_git_gitignore_is_not_ignored(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "train.py" in list_files(source, set())
    (source / ".gitignore").write_text("x")
    with pytest.raises(RefusedError, match="git is needed"):
        list_files(source, set())


# -- folders of tools


def make_tools(source: Path) -> set[str]:
    """Add what stands beside a program; return the folders that are left out."""
    (source / "env" / "bin").mkdir(parents=True)
    (source / "env" / "pyvenv.cfg").touch()
    (source / "env" / "bin" / "python").symlink_to("/usr/bin/python3")
    (source / "sub" / "__pycache__").mkdir(parents=True)
    (source / "sub" / "__pycache__" / "x.pyc").touch()
    (source / "sub" / "x.py").touch()
    (source / "cached").mkdir()
    (source / "cached" / "CACHEDIR.TAG").touch()
    (source / "wandb").mkdir()
    (source / "wandb" / "log").touch()
    (source / "mamba" / "conda-meta").mkdir(parents=True)
    (source / "mamba" / "conda-meta" / "history").touch()
    (source / ".venv").symlink_to(source.parent)
    return {"env", "sub/__pycache__", "cached", "wandb", "mamba", ".venv"}


@pytest.mark.parametrize("kind", ["folder", "with .gitignore", "checkout"])
def test_folders_of_tools_stay_here_and_are_named(source: Path, tmp_path: Path, kind: str) -> None:
    before = set(list_files(source, set()))
    tools = make_tools(source)
    if kind == "checkout":
        git(source, "init", "-q")
    elif kind == "with .gitignore":
        (source / ".gitignore").write_text("*.ckpt\n")
    notes: list[str] = []
    (tmp_path / "there").mkdir()
    sync_folder(LocalHost(), source, f"{tmp_path}/there/copy", f"{tmp_path}/there/cache", notes.append)
    copied = set(contents(tmp_path / "there" / "copy")) - {".gitignore"}
    assert copied == before | {"sub/x.py"}
    assert notes == [f"{source}: folders of tools are not copied: {', '.join(sorted(tools))}"]


def test_what_git_tracks_is_copied_from_a_folder_of_any_name(source: Path) -> None:
    tools = make_tools(source)
    git(source, "init", "-q")
    git(source, "add", "wandb/log")
    (source / "wandb" / "later").touch()
    left_out: set[str] = set()
    found = list_files(source, left_out)
    assert "wandb/log" in found
    assert "wandb/later" not in found
    assert left_out == tools


def test_nothing_is_read_before_all_is_looked_at(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of gigabytes beside a program the size is known at once, and of a link where it leads."""
    monkeypatch.setattr(hpclaunch.host.sync, "_read", lambda path: pytest.fail(f"{path} is read"))
    with (source / "big").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(BadInputError, match="3072 MiB are too much"):
        sync_folder(LocalHost(), source, "/nowhere/copy", "/nowhere/cache")
    (source / "big").unlink()
    (source / "out").symlink_to("/etc/passwd")
    with pytest.raises(BadInputError, match="this link leads outside"):
        sync_folder(LocalHost(), source, "/nowhere/copy", "/nowhere/cache")


@pytest.mark.slow
def test_a_copy_that_takes_long_tells_how_far_it_is(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hpclaunch.host.sync.LIMIT, "tell_s", 0)
    for name in ("a", "b"):
        (source / name).write_bytes(b"x" * (33 << 20))
    notes: list[str] = []
    (tmp_path / "there").mkdir()
    sync_folder(LocalHost(), source, f"{tmp_path}/there/copy", f"{tmp_path}/there/cache", notes.append)
    read = [note for note in notes if note.startswith(f"{source} is read: ")]
    sent = [note for note in notes if note.startswith(f"{source} to this machine: ")]
    assert read[-1].endswith(": 66 of 66 MiB")
    assert len(sent) > 1
    assert sent[-1].endswith(": 66 of 66 MiB")
    monkeypatch.setattr(hpclaunch.host.sync.LIMIT, "tell_s", 60)
    notes.clear()
    (source / "a").write_text("small")
    sync_folder(LocalHost(), source, f"{tmp_path}/there/copy 2", f"{tmp_path}/there/cache", notes.append)
    assert notes == []
