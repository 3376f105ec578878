"""The folders of caches on a node, where another user was there first."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpclaunch.package_data import resource_dir
from tests.testbed.second_user import SecondUser

FILE = resource_dir("remote") / "private_folders.sh"
MAKE = f". {FILE}; hpclaunch_private_folders CACHE"


@pytest.fixture
def tmp() -> Iterator[Path]:
    """As /tmp is: every user may write there, and nobody may remove what others have."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def rank(folder: Path | str, *, umask: str = "0000", key: str = "k3y") -> tuple[str, str]:
    """The value that a rank's program gets, and what its shell says."""
    text = f'umask {umask}; export CACHE={folder}; {MAKE}; printf %s "${{CACHE-unset}}"'
    done = subprocess.run(
        ["bash", "-ec", text], env={**os.environ, "HPCLAUNCH_KEY": key}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def mode(folder: str | Path) -> int:
    return Path(folder).lstat().st_mode & 0o7777


def test_the_folder_is_made_for_its_user_only(tmp: Path) -> None:
    cache = tmp / "me-cache"
    assert rank(cache) == (str(cache), "")
    assert mode(cache) == 0o700
    assert rank(cache) == (str(cache), ""), "the next rank of the node"


def test_what_another_user_has_put_there_is_not_used(tmp: Path, second_user: SecondUser) -> None:
    cache = tmp / "me-cache"
    second_user.shell(f"mkdir -m 777 {cache}; echo evil > {cache}/kernel.so")
    found = [rank(cache)[0] for _ in range(2)]
    assert found == [f"{cache}.k3y"] * 2, "all ranks of a node find the same"
    assert (os.listdir(found[0]), mode(found[0])) == ([], 0o700)
    assert second_user.run("touch", f"{found[0]}/x").returncode != 0


def test_a_link_is_not_followed(tmp: Path, second_user: SecondUser) -> None:
    (tmp / "own").mkdir(0o700)
    second_user.shell(f"ln -s {tmp}/own {tmp}/me-cache")
    value, said = rank(tmp / "me-cache")
    assert value == f"{tmp}/me-cache.k3y"
    assert "is not this user's own" in said


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o1777, 0o722])
def test_a_folder_that_others_may_write_to_is_not_used(tmp: Path, bits: int) -> None:
    (tmp / "cache").mkdir()
    (tmp / "cache").chmod(bits)
    assert rank(tmp / "cache")[0] == f"{tmp}/cache.k3y"


@pytest.mark.parametrize("bits", [0o700, 0o755, 0o2750])
def test_an_older_folder_of_the_user_is_used_again(tmp: Path, bits: int) -> None:
    (tmp / "cache").mkdir()
    (tmp / "cache").chmod(bits)
    assert rank(tmp / "cache") == (str(tmp / "cache"), "")


def test_a_folder_below_one_of_another_user_is_not_used(tmp: Path, second_user: SecondUser) -> None:
    """Its owner could put another in its place at any time."""
    second_user.shell(f"mkdir -m 777 {tmp}/me")
    value, said = rank(tmp / "me" / "cache")
    assert value == "unset"
    assert "CACHE is not set" in said


EXCHANGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[1]))
print("begins", flush=True)
while True:  # until it is killed
    libc.renameat2(-100, sys.argv[3].encode(), -100, sys.argv[4].encode(), 2)  # AT_FDCWD, RENAME_EXCHANGE
"""
"""Another user exchanges what is at two names: man 2 rename, Linux 3.15 and newer, glibc 2.28 and newer."""


@pytest.mark.slow
def test_what_is_exchanged_while_it_is_looked_at_is_not_used(tmp: Path, second_user: SecondUser) -> None:
    """At a name of the other user's, a folder of theirs and a link to one of ours take turns."""
    (tmp / "own").mkdir(0o700)
    second_user.shell(f"mkdir -m 755 {tmp}/cache; ln -s {tmp}/own {tmp}/link")
    words = (str(second_user.uid), str(second_user.gid), f"{tmp}/cache", f"{tmp}/link")
    with subprocess.Popen([sys.executable, "-c", EXCHANGE, *words], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == b"begins\n"
            starts = f'for i in {{1..150}}; do export CACHE={tmp}/cache; {MAKE}; echo "$CACHE"; done'
            done = subprocess.run(
                ["bash", "-ec", starts],
                env={**os.environ, "HPCLAUNCH_KEY": "k3y"},
                capture_output=True,
                text=True,
            )
        finally:
            other.kill()
    assert done.stdout.splitlines() == [f"{tmp}/cache.k3y"] * 150


@pytest.mark.parametrize("value", ["/nosuch/cache", "cache", ""])
def test_a_place_that_the_jobs_setup_chose_stays(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rank(value) == (value, "")
    assert os.listdir(tmp_path) == []


def test_without_any_folder_the_variable_is_not_set(tmp: Path) -> None:
    value, said = rank(tmp / "nosuch" / "cache")
    assert value == "unset"
    assert "CACHE is not set" in said
