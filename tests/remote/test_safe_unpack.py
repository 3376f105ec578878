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
from tests.in_one_test import in_one_test

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


def test_names_that_are_long_or_not_printable_are_shown_short_and_plain() -> None:
    assert safe_unpack.shown("n" * 120) == "n" * 120
    assert safe_unpack.shown("n" * 121) == "n" * 120 + "... (121 characters)"
    assert safe_unpack.shown("a\x1b[31m\n") == "a\\x1b[31m\\x0a"
    assert safe_unpack.shown("\udcff") == "\\udcff"


@in_one_test(
    "name, clean",
    [
        ("a/b", "a/b"),
        ("./a//b/.", "a/b"),
        (".", ""),
        ("a/", "a"),
        ("..a/b..", "..a/b.."),
        (".hidden", ".hidden"),
        ("/".join("d" * 500), "/".join("d" * 500)),
        ("/".join(["n" * 249] * 14), "/".join(["n" * 249] * 14)),  # 3,499 bytes
    ],
)
def test_names_lose_empty_parts_and_dots(name: str, clean: str) -> None:
    assert safe_unpack.clean_name(name) == clean


@in_one_test(
    "name, said",
    [
        ("/a", "an absolute name"),
        ("a/../b", "it has '..'"),
        ("a\0b", "a name with a zero byte"),
        ("/".join("d" * 501), "its name has more than 3,500 bytes or 500 parts"),
        ("/".join(["n" * 249] * 14) + "nn", "its name has more than 3,500 bytes"),
        ("\u00e9" * 1751, "its name has more than 3,500 bytes"),
    ],
)
def test_names_that_lead_elsewhere_or_are_too_long_are_refused(name: str, said: str) -> None:
    with pytest.raises(UnsafeMember) as caught:
        safe_unpack.clean_name(name)
    assert said in str(caught.value)


def test_a_link_may_be_followed_through_forty_links_and_no_more() -> None:
    """As the kernel does (man 7 path_resolution)."""
    for count, out in ((40, False), (41, True)):
        links = {f"l{at}": f"l{at + 1}" for at in range(count)}
        assert safe_unpack.leads_out("l0", links) == out
    circle = {"a": "b", "b": "a"}
    assert safe_unpack.leads_out("a", circle)


@in_one_test(
    "name, text, out",
    [
        ("a/b/link", "../../x", False),
        ("a/b/link", "../../../x", True),
        ("link", "..", True),
        ("a/link", "..", False),
        ("link", "/etc", True),
        ("link", "./a/./b//c", False),
        ("a/link", "in/../../x", False),
        ("a/link", "up/../x", True),  # up leads to the folder itself, and .. from there leaves
        ("a/link", "down/../x", False),
        ("a/link", "absolute/x", True),
    ],
)
def test_a_link_leads_out_where_a_step_of_its_way_does(name: str, text: str, out: bool) -> None:
    links = {"a/up": "..", "a/down": "b/c", "a/absolute": "/etc", name: text}
    assert safe_unpack.leads_out(name, links) == out


def test_members_of_all_kinds_are_made_or_refused_by_what_they_are(tmp_path: Path) -> None:
    def add(*members: Member, content: bytes = b"12345") -> Unpacker:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with Unpacker(root) as unpacker:
                for member in members:
                    unpacker.add(member, io.BytesIO(content))
                unpacker.finish()
                return unpacker
        finally:
            os.close(root)

    def file(name: str, size: int = 5) -> Member:
        return Member(name, safe_unpack.FILE, 0o644, 0, size, "")

    def link(name: str, target: str, kind: str = safe_unpack.LINK) -> Member:
        return Member(name, kind, 0o777, 0, 0, target)

    made = add(file("a"), link("b", "a"), link("c", "a", safe_unpack.HARD_LINK), link("d", "b", "hard link"))
    digest = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"  # sha256sum of 12345
    assert made.found == {"a": digest, "c": digest, "b": {"link": "a"}, "d": {"link": "a"}}
    for members, said in (
        ([file(".")], "the folder itself, but a file"),
        ([file("a", 6)], "its content ends 1 bytes early"),
        ([link("a", "")], "a link to nothing"),
        ([link("a", "x\0y")], "a link to nothing"),
        ([link("a", "b", "hard link")], "which is not a file before it"),
        ([file("a"), link("a", "b")], "it is there already, or twice"),
        ([link("a", "b"), link("a", "b")], "it is there already, or twice"),
        ([file("a"), file("a/b")], "it is there already, or twice"),
    ):
        with pytest.raises(UnsafeMember, match=said):
            add(*members)
