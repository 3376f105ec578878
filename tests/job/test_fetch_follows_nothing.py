"""Whatever is put into the target folder while files are fetched: nothing outside of it changes."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.fetch_results import RemoteFile, fetch

PARTS = st.sampled_from(["a", "b", "c"])
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


def state(folder: Path) -> dict[str, tuple[int, int, int, int, bytes]]:
    """Mode, owner, group, time and bytes of all below a folder."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, data)
    return found


def one(source: Path, name: str) -> RemoteFile:
    return RemoteFile(source=str(source), name=name, size=5, modified=1.0, executable=True)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The file that is fetched, and a folder that nobody may change."""
    (tmp_path / "outside" / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside" / "a" / "c").write_text("precious\n")
    (tmp_path / "source").write_text("theirs\n")
    return tmp_path


@given(
    names=st.lists(NAMES, min_size=2, max_size=5), swapped=st.lists(PARTS, max_size=4), force=st.booleans()
)
def test_a_folder_that_becomes_a_link_is_not_followed(
    names: list[str], swapped: list[str], force: bool
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        outside, target, source = (Path(scratch, name) for name in ("outside", "target", "source"))
        (outside / "a" / "b").mkdir(parents=True)
        (outside / "a" / "c").write_text("precious\n")
        source.write_text("theirs\n")
        before, left = state(outside), list(swapped)

        def swap(_: RemoteFile) -> None:
            """Another process of the user, or of a machine that shares the folder."""
            if left:
                folder = target / left.pop()
                if folder.is_dir() and not folder.is_symlink():
                    shutil.rmtree(folder)
                    folder.symlink_to(outside / "a")

        with suppress(BadInputError):
            fetch(LocalHost(), [one(source, name) for name in names], target, replace=force, done=swap)
        assert state(outside) == before


def test_a_link_that_appears_is_named(there: Path) -> None:
    target, outside = there / "target", there / "outside"
    before = state(outside)

    def swap(file: RemoteFile) -> None:
        (target / "d").symlink_to(outside / "a")

    files = [one(there / "source", name) for name in ("first", "d/c")]
    with pytest.raises(BadInputError, match="d/c: cannot be written: Not a directory"):
        fetch(LocalHost(), files, target, replace=True, done=swap)
    assert state(outside) == before
    assert (target / "first").read_text() == "their"


def test_the_target_may_be_a_link_of_the_users_own(there: Path) -> None:
    (there / "real").mkdir()
    (there / "target").symlink_to(there / "real")
    fetch(LocalHost(), [one(there / "source", "d/x")], there / "target")
    assert (there / "real" / "d" / "x").read_text() == "their"
    assert os.listdir(there / "real" / "d") == ["x"]
