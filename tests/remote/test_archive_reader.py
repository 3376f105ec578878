"""A damaged archive is refused; a whole one is read as GNU tar and tarfile read it."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from hpclaunch.remote.archive_reader import DamagedArchive, members
from hpclaunch.remote.safe_unpack import Member

FORMS = {"plain": (), "gzip": ("-z",), "bzip2": ("-j",), "xz": ("-J",), "zstd": ("--zstd",)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    drawn = random.Random(5)
    (folder / "inner").mkdir()
    for number in range(20):
        (folder / "inner" / f"{number}").write_bytes(drawn.randbytes(700))
    (folder / ("é" * 120)).write_text("a long name")
    (folder / "inner" / ("d" * 90)).mkdir()
    (folder / "inner" / ("d" * 90) / ("f" * 90)).write_text("a prefix")
    (folder / "link").symlink_to("inner/1")
    (folder / "far").symlink_to("x" * 200)
    os.link(folder / "inner" / "2", folder / "twin")
    os.utime(folder / "inner" / "3", ns=(1, 1_234_567_890_123_456_789))
    (folder / "empty").touch()
    return folder


def packed(tree: Path, *options: str) -> bytes:
    return subprocess.run(
        ["tar", *options, "-cf", "-", "-C", tree, "."], check=True, capture_output=True
    ).stdout


def read(archive: bytes) -> list[tuple[Member, bytes]]:
    return [(member, content.read()) for member, content in members(io.BytesIO(archive))]


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("kind", ["gnu", "pax"])
def test_a_whole_archive_is_read_as_tarfile_reads_it(tree: Path, form: str, kind: str) -> None:
    found = read(packed(tree, f"--format={kind}", *FORMS[form]))
    with tarfile.open(fileobj=io.BytesIO(packed(tree, f"--format={kind}"))) as tar:
        expected = [
            (info, (tar.extractfile(info) or io.BytesIO()).read() if info.isreg() else b"") for info in tar
        ]
    assert [(one.name.rstrip("/"), one.mode, one.target, content) for one, content in found] == [
        (info.name, info.mode, info.linkname, content) for info, content in expected
    ]
    times = {member.name: member.mtime_ns for member, _ in found}
    assert times["./inner/3"] == (1_234_567_890_123_456_789 if kind == "pax" else 1_234_567_890_000_000_000)


def test_archives_of_other_programs_are_read() -> None:
    """A file of 9 GiB has a size in base 256 (GNU tar), or in an extended header (pax)."""
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        info = tarfile.TarInfo("large")
        info.size, info.mtime = 9 << 30, -5
        header = info.tobuf(kind)
        found = next(members(io.BytesIO(header)))[0]
        assert (found.size, found.mtime_ns) == (9 << 30, -5 * 10**9)
    old = tarfile.TarInfo("folder/")
    old.type = tarfile.AREGTYPE
    assert read(old.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))[0][0].kind == "folder"


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("flips", [40, pytest.param(300, marks=pytest.mark.long)])
def test_a_flipped_bit_is_found(tree: Path, form: str, flips: int) -> None:
    """Of a plain tar wherever it is not in content or a long name, of which one is changed at most."""
    archive = packed(tree, "--format=gnu", *FORMS[form])
    whole, moments, refused = read(archive), random.Random(flips), 0
    for _ in range(flips):
        damaged = bytearray(archive)
        bit = moments.randrange(8 * len(archive))
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = read(bytes(damaged))
        except DamagedArchive:
            refused += 1
            continue
        if form == "plain":
            assert [member.size for member, _ in found] == [member.size for member, _ in whole]
            assert sum(a != b for a, b in zip(found, whole, strict=True)) <= 1
        else:
            assert found == whole, "such as the time in gzip's header"
    assert refused > flips / 3 if form == "plain" else refused > 0.9 * flips


@pytest.mark.parametrize("form", list(FORMS))
def test_an_archive_that_was_cut_is_refused(tree: Path, form: str) -> None:
    archive = packed(tree, *FORMS[form])
    shortest = 1 if form != "plain" else len(archive) - len(archive.rstrip(b"\0"))
    for length in random.Random(1).sample(range(len(archive) - shortest), 30):
        with pytest.raises(DamagedArchive):
            read(archive[:length])


def test_an_archive_needs_its_end_and_nothing_after_it(tree: Path) -> None:
    archive = packed(tree, "-b1")
    assert read(archive + bytes(512)) == read(archive)
    for damaged, message in (
        (archive[:-1024], "without the two blocks of zeros"),
        (archive[:-512], "one block of zeros where two end a tar"),
        (archive + archive, "something follows the end"),
        (b"not a tar" * 100, "not a tar"),
        (b"", "without the two blocks"),
    ):
        with pytest.raises(DamagedArchive, match=message):
            read(damaged)


def test_what_cannot_be_read_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tree / "sparse").open("wb") as file:
        file.truncate(1 << 20)
    try:
        found = {member.kind for member, _ in members(io.BytesIO(packed(tree, "-S", "--format=gnu")))}
        assert "sparse file (make the archive without --sparse)" in found
    except DamagedArchive:
        pytest.fail("the archive itself is whole")
    finally:
        (tree / "sparse").unlink()
    compressed = packed(tree, "--zstd")
    assert shutil.which("zstd")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DamagedArchive, match="needs the program zstd, which this node does not have"):
        read(compressed)
