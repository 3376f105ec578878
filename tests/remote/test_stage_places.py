"""No other user of a node can exchange what a job stages, or make a job believe what it has not staged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpclaunch.remote import stage_copy
from hpclaunch.remote.stage_copy import Place, is_safe, own_folder
from hpclaunch.remote.stage_sources import StageError, sha256_of
from tests.remote.staging import Nodes, content, make_data_set

OTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """As /tmp is."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def by_other(program: str, *words: object) -> None:
    """Run a program as another user, who may pass through the folders of the tests."""
    drop = f"import os; os.setgroups([]); os.setgid({OTHER}); os.setuid({OTHER}); os.umask(0)\n"
    subprocess.run([sys.executable, "-I", "-S", "-c", drop + program, *map(str, words)], check=True)


def open_to_others(folder: Path) -> None:
    """Let other users pass through the folders above one."""
    for above in (folder, *folder.parents):
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o011)


def test_folders_are_made_for_their_owner_only(shared: Path) -> None:
    own_folder(str(shared / "a" / "b"))
    assert [path.stat().st_mode & 0o7777 for path in (shared / "a", shared / "a" / "b")] == [0o700, 0o700]
    own_folder(str(shared / "a" / "b"))
    own_folder(str(shared))


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_refused(shared: Path, mode: int) -> None:
    (shared / "open").mkdir()
    (shared / "open").chmod(mode)
    for folder in (shared / "open", shared / "open" / "below"):
        with pytest.raises(StageError, match=f"open: other users may write to it .mode {mode:o}."):
            own_folder(str(folder))
    assert not is_safe(str(shared / "open"))


@as_root
@pytest.mark.parametrize("kind", ["folder", "link", "link to mine"])
def test_a_folder_of_another_user_is_refused(shared: Path, tmp_path: Path, kind: str) -> None:
    """Also a link of theirs that leads to a folder of one's own."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    theirs = shared / "hpclaunch-1"
    if kind == "folder":
        theirs.mkdir(mode=0o700)
    else:
        theirs.symlink_to(tmp_path / "elsewhere")
        os.chown(tmp_path / "elsewhere", OTHER if kind == "link" else os.geteuid(), -1)
    os.chown(theirs, OTHER, -1, follow_symlinks=False)
    with pytest.raises(StageError, match=r"hpclaunch-1: it belongs to \w+, who could exchange"):
        own_folder(str(theirs))
    status, _, errors = _stage_into(tmp_path, theirs)
    assert status == 1
    assert "who could exchange what is staged there" in errors
    assert list((tmp_path / "elsewhere").iterdir()) == []


def _stage_into(tmp_path: Path, folder: Path) -> tuple[int, str, str]:
    source = make_data_set(tmp_path / "source", [10])
    nodes = Nodes(tmp_path, 1)
    nodes.targets = [folder / "data"]
    return nodes.stage(source)


@as_root
def test_what_another_user_has_prepared_is_not_taken_for_a_copy(shared: Path, tmp_path: Path) -> None:
    """A copy with its record, a record beside one's own copy, a lock, a part: by another user in /tmp."""
    source = make_data_set(tmp_path / "source", [10])
    nodes = Nodes(tmp_path, 1)
    nodes.targets = [shared / "data"]
    assert nodes.stage(source, "keep")[0] == 0
    place = Place(str(shared / "data"))
    assert place.whole() is not None
    record = Path(place.record).read_text()
    os.chown(place.record, OTHER, -1)
    assert place.whole() is None, "a record of another user"
    os.chown(place.record, os.geteuid(), -1)
    os.chown(place.target, OTHER, -1)
    assert place.whole() is None, "a copy of another user"
    os.chown(place.target, os.geteuid(), -1)
    Path(place.record).rename(tmp_path / "record")
    Path(place.record).symlink_to(tmp_path / "record")
    assert place.whole() is None, "a record behind a link"
    assert json.loads(record)["files"]["run"] == sha256_of(str(source / "run"))


@as_root
def test_another_user_cannot_get_in_the_way_unseen(shared: Path, tmp_path: Path) -> None:
    open_to_others(shared)
    prepare = "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/run', 'w').write('evil')"
    by_other(prepare, shared / "data")
    status, _, errors = _stage_into(tmp_path, shared)
    assert status == 1
    assert "data: it exists, and was not made by --stage" in errors
    by_other(
        "import os, sys; os.symlink(sys.argv[1], sys.argv[2])", tmp_path / "victim", shared / ".two.lock"
    )
    with (
        pytest.raises(OSError, match=r"symbolic links|Permission denied"),
        Place(str(shared / "two")).locked(),
    ):
        pass
    assert not (tmp_path / "victim").exists()


@as_root
def test_what_was_staged_in_tmp_cannot_be_changed_by_another_user(shared: Path, tmp_path: Path) -> None:
    """The source may be written by all; the copy may not, where others can reach it."""
    source = make_data_set(tmp_path / "source", [10])
    for path in (source, source / "run", source / "train"):
        path.chmod(0o777)
    nodes = Nodes(tmp_path, 1)
    nodes.targets = [shared / "data"]
    assert nodes.stage(source)[0] == 0
    assert (shared / "data").stat().st_mode & 0o777 == 0o700
    assert content(shared / "data") == content(source)
    nodes = Nodes(tmp_path, 1)
    nodes.targets = [shared / "run"]
    assert nodes.stage(source / "run")[0] == 0
    assert (shared / "run").stat().st_mode & 0o777 == 0o755


def test_the_name_of_a_user_that_has_none_is_its_number() -> None:
    assert stage_copy.user_name(4_000_000_000) == "user 4000000000"
