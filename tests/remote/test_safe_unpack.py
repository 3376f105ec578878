"""Unpacking makes what is in the archive, below its folder, and touches nothing else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.remote import safe_unpack
from hpclaunch.remote.safe_unpack import LinkOut, Member, Unpacker, UnsafeMember
from tests.how_much import examples

Entry = tuple[str, bytes, str, int, bytes]
"""Name, type, link's target, mode, content."""


def archive_of(entries: list[Entry]) -> bytes:
    """A tar of members as they are given."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, target, mode, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.mtime = kind, target, mode, 1_000_000_000
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member_of(info: tarfile.TarInfo) -> Member:
    """What tarfile has read."""
    usual = safe_unpack.KINDS.get(info.type, f"member of type {info.type!r}")
    kind = safe_unpack.FILE if info.isreg() else usual
    size = info.size if kind == safe_unpack.FILE else 0
    return Member(info.name, kind, info.mode, int(info.mtime * 10**9), size, info.linkname)


def unpack(archive: bytes, folder: Path, keep_links: bool = False) -> Unpacker:
    """Unpack it into a new folder."""
    folder.mkdir(mode=0o700)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(archive), mode="r|") as tar,
            Unpacker(root, keep_links) as unpacker,
        ):
            for info in tar:
                unpacker.add(member_of(info), tar.extractfile(info) if info.isreg() else None)
            unpacker.finish()
            unpacker.set_modes()
            return unpacker
    finally:
        os.close(root)


def state_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that can be changed of what is below a folder, and of itself."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        content: object = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, *times, content)
    return found


def make_victim(folder: Path) -> Path:
    """What an archive may want to change."""
    (folder / "inner").mkdir(parents=True)
    (folder / "file").write_text("mine")
    (folder / "inner" / "key").write_text("secret")
    (folder / "inner").chmod(0o700)
    (folder / "file").chmod(0o600)
    return folder


NAMES = ("a", "b", "a/b", "b/a", "a/b/c", "./a", "a/", "a//b", ".", "..", "../victim/file", "a/../../victim")
LONG = ("d/" * 2047 + "x", "d/" * 200 + "x", "n" * 4096, "l" * 255, "k" * 256)


def entries(victim: str) -> st.SearchStrategy[list[Entry]]:
    """Members that try to leave: chains of links, hard links to links, names twice, devices."""
    outside = (victim, f"{victim}/file", f"{victim}/inner", f"{victim}/new", "../victim", "../victim/file")
    names = st.sampled_from((*NAMES[:7] * 4, *NAMES, *LONG, *outside))
    kinds = st.sampled_from(
        [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE] * 4
        + [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"?"]
    )
    modes = st.sampled_from([0, 0o777, 0o644, 0o7777, 0o4755])
    member = st.tuples(names, kinds, names, modes, st.sampled_from([b"", b"evil"]))
    return st.lists(member, min_size=1, max_size=6)


@pytest.mark.parametrize("keep_links", [False, True])
def test_no_archive_changes_anything_outside(tmp_path: Path, keep_links: bool) -> None:
    """No byte, mode, owner or time; and what is made inside is made once, as it was said."""
    victim = make_victim(tmp_path / "victim")
    before = state_of(victim)
    turn = iter(range(10_000))

    @settings(max_examples=examples(150), deadline=None)
    @given(entries(str(victim)))
    def check(members: list[Entry]) -> None:
        folder = tmp_path / f"copy{next(turn)}"
        try:
            unpacker = unpack(archive_of(members), folder, keep_links)
        except (UnsafeMember, OSError, tarfile.TarError):
            pass
        else:
            root = str(folder.resolve())
            for name, content in unpacker.found.items():
                path = folder / name
                assert path.is_symlink() == isinstance(content, dict)
                assert str(path.parent.resolve()) + "/" == os.path.dirname(f"{root}/{name}") + "/"
                if path.is_symlink() and not keep_links:
                    assert f"{os.path.realpath(path)}/".startswith(f"{root}/")
                elif not path.is_symlink():
                    assert not path.stat().st_mode & 0o7000
        assert state_of(victim) == before

    check()


FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (lambda v: [("x", LINK, f"{v}/file", 0, b""), ("x", FILE, "", 0o644, b"evil")], "x: it is there"),
        (lambda v: [("x", LINK, f"{v}/new", 0, b""), ("x", FILE, "", 0o644, b"evil")], "x: it is there"),
        (lambda v: [("d", LINK, f"{v}/inner", 0, b""), ("d", FOLDER, "", 0o777, b"")], "d: it is there"),
        (lambda v: [("d", LINK, f"{v}/inner", 0, b""), ("d/x", FILE, "", 0o644, b"evil")], "d: it is there"),
        (
            lambda v: [
                ("x", LINK, f"{v}/file", 0, b""),
                ("y", HARD, "x", 0, b""),
                ("y", FILE, "", 0o644, b"evil"),
            ],
            "y: it is there",
        ),
        (lambda v: [("y", HARD, f"{v}/file", 0, b"")], "/file: would be written outside of .* absolute"),
        (
            lambda v: [(f"{v}/file", FILE, "", 0o644, b"evil")],
            "/file: would be written outside of .*absolute",
        ),
        (lambda v: [("../victim/file", FILE, "", 0o644, b"evil")], r"outside of the folder: it has '\.\.'"),
        (lambda v: [("x", LINK, v, 0, b"")], "x: a link that leads out of the folder, to /"),
        (lambda v: [("a", LINK, ".", 0, b""), ("x", LINK, "a/a/../b", 0, b"")], "x: a link that leads out"),
        (lambda v: [("x", FILE, "", 0o644, b"1"), ("x", FILE, "", 0o644, b"2")], "x: it is there already"),
        (lambda v: [("p", tarfile.FIFOTYPE, "", 0, b"")], "p: not a file, folder or link, but a FIFO"),
        (lambda v: [("p", tarfile.CHRTYPE, "", 0, b"")], "p: not a file, folder or link, but a character"),
        (lambda v: [("p", tarfile.BLKTYPE, "", 0, b"")], "p: not a file, folder or link, but a block"),
    ],
)
def test_an_attack_is_refused_by_name(
    tmp_path: Path, attack: Callable[[str], list[Entry]], message: str
) -> None:
    victim = make_victim(tmp_path / "victim")
    before = state_of(victim)
    with pytest.raises(UnsafeMember, match=message):
        unpack(archive_of(attack(str(victim))), tmp_path / "copy", keep_links="leads out" not in message)
    assert state_of(victim) == before


def test_links_that_stay_are_made_and_others_only_where_they_are_kept(tmp_path: Path) -> None:
    members = [
        ("bin/python", LINK, "python3", 0, b""),
        ("bin/python3", LINK, "/usr/bin/python3", 0, b""),
        ("lib/x", FILE, "", 0o644, b"x"),
        ("lib64", LINK, "lib", 0, b""),
        ("up", LINK, "lib/../lib64/x", 0, b""),
    ]
    with pytest.raises(LinkOut, match="bin/python"):
        unpack(archive_of(members), tmp_path / "refused")
    unpack(archive_of(members[2:]), tmp_path / "inside")
    assert (tmp_path / "inside" / "up").read_bytes() == b"x"
    unpack(archive_of(members), tmp_path / "kept", keep_links=True)
    assert os.readlink(tmp_path / "kept" / "bin" / "python3") == "/usr/bin/python3"


def test_modes_and_times_are_those_of_the_archive_but_for_three_bits(tmp_path: Path) -> None:
    modes = {"a": 0o4755, "b": 0o640, "c": 0, "d": 0o2770}
    unpacker = unpack(
        archive_of(
            [
                (".", FOLDER, "", 0o1750, b""),
                *((name, FILE, "", mode, b"x") for name, mode in modes.items()),
                ("f/g", FOLDER, "", 0o500, b""),
                ("f", FOLDER, "", 0o2555, b""),
                ("f/g/late", FILE, "", 0o444, b"in a folder that may not be written"),
                ("twin", HARD, "f/g/late", 0, b""),
            ]
        ),
        tmp_path / "copy",
    )
    for name, mode in {**modes, ".": 0o750, "f": 0o555, "f/g": 0o500}.items():
        status = (tmp_path / "copy" / name).stat()
        assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (mode & 0o777, 1_000_000_000)
    assert (tmp_path / "copy" / "twin").samefile(tmp_path / "copy" / "f" / "g" / "late")
    assert unpacker.notes == ["set-uid, set-gid or sticky bits dropped of . and 3 more"]


def test_deep_names_need_few_descriptors(tmp_path: Path) -> None:
    """More folders than descriptors may be open, and names that the kernel takes part by part only."""
    members = [(f"{number}/" + "deep/" * 150 + "file", FILE, "", 0o600, b"1") for number in range(9)]
    unpacker = unpack(archive_of(members), tmp_path / "copy")
    assert len(unpacker.found) == 9
    with pytest.raises(
        UnsafeMember, match=r"^n+\.\.\. \(4096 characters\): its name has more than 3,500 bytes"
    ):
        unpack(archive_of([("n" * 4096, FILE, "", 0o600, b"1")]), tmp_path / "long")
    with pytest.raises(OSError, match=r"name too long: 'k+"):
        unpack(archive_of([("k" * 256, FILE, "", 0o600, b"1")]), tmp_path / "wide")
