"""Profiles that were loaded before: used as long as nothing they were made from has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.site import load_profile, merge_profiles
from hpclaunch.site.load_profile import load_merged, load_site, site_names
from tests.site.conftest import VALID, Write

pytestmark = pytest.mark.usefixtures("own_cache")
PACKAGE = Path(load_profile.__file__).parents[1]


def place(name: str) -> Path:
    return Path(os.environ["XDG_CACHE_HOME"]) / "hpclaunch" / "sites" / f"{name}.json"


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose YAML is read from here on."""
    from hpclaunch.site import yaml_tree

    read: list[Path] = []
    before = yaml_tree.read_data

    def noting(path: Path) -> bytes:
        read.append(path)
        return before(path)

    monkeypatch.setattr(merge_profiles, "read_data", noting)
    return read


@pytest.mark.slow
def test_a_cached_profile_is_the_profile_that_was_read(read_again: list[Path]) -> None:
    names = list(site_names())
    first = [load_site(name) for name in names]
    assert {path.stem for path in read_again} >= set(names)
    read_again.clear()
    assert [load_site(name) for name in names] == first
    assert read_again == []
    assert [load_merged(name).profile for name in names] == first


def test_a_changed_file_is_read_again(write: Write) -> None:
    write("here")
    write("child", text="schema: 1\nname: child\npart_of: here\n")
    assert load_site("child").description == load_site("here").description
    path = site_names()["here"]
    status = path.stat()
    path.write_text(VALID.replace("max_nodes: 4", "max_nodes: 5"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # of the same age and size
    assert [load_site(name).queues["main"].max_nodes for name in ("here", "child")] == [5, 5]
    path.write_text(VALID)
    assert [load_site(name).queues["main"].max_nodes for name in ("here", "child")] == [4, 4]


def test_a_profile_that_comes_to_hide_the_base_counts(write: Write) -> None:
    write("child", text="schema: 1\nname: child\npart_of: lumi-g\n")
    assert "standard-g" in load_site("child").queues
    write("lumi-g", ("name: here", "name: lumi-g"))
    assert load_site("child").queues.keys() == {"main"}


def test_a_file_that_became_bad_is_refused(write: Write) -> None:
    write("here")
    load_site("here")
    write("here", text=VALID + "colour: red\n")
    for _ in range(2):
        with pytest.raises(BadInputError, match="unknown key 'colour'"):
            load_site("here")
    site_names()["here"].unlink()
    with pytest.raises(BadInputError, match="no site is named 'here'"):
        load_site("here")


@pytest.mark.slow
def test_other_code_reads_again(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_again: list[Path]
) -> None:
    write("here")
    load_site("here")
    read_again.clear()
    for module in load_profile.CODE:
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_bytes((PACKAGE / module).read_bytes())
    monkeypatch.setattr(load_profile, "_PACKAGE", tmp_path)
    load_site("here")
    assert read_again == []
    for module in load_profile.CODE:
        with (tmp_path / module).open("a") as file:
            file.write("# another rule\n")
        load_profile.code_digest.cache_clear()  # as in another process
        load_site("here")
        load_site("here")
        assert len(read_again) == 1, module
        read_again.clear()


def test_the_code_that_reads_profiles_is_known() -> None:
    """The key holds all modules that loading imports, except those that do not affect a profile."""
    code = (
        "import sys; from hpclaunch.site.load_profile import load_merged; load_merged('santis');"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('hpclaunch')), sep='\\n')"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {Path(line).relative_to(PACKAGE).as_posix() for line in answer.stdout.splitlines()}
    neutral = {
        "__init__.py",
        "site/__init__.py",
        "errors.py",
        "package_data.py",
        "amounts.py",
        "cache.py",
        "folders.py",
    }
    assert loaded - neutral <= set(load_profile.CODE)
    other_schedulers = set(load_profile.CODE) - loaded
    assert {Path(module).parts[0] for module in other_schedulers} == {"scheduler"}


def damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


def of_another_site(path: Path) -> None:
    load_site("daint")
    path.write_bytes(place("daint").read_bytes())


def writable_for_others(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"max_nodes":4', b'"max_nodes":9'))
    path.chmod(0o666)


@pytest.mark.parametrize("harm", [damaged, no_text, of_another_site, writable_for_others])
def test_what_cannot_be_trusted_is_not_used(write: Write, harm: Callable[[Path], None]) -> None:
    write("here")
    profile = load_site("here")
    harm(place("here"))
    assert load_site("here") == profile


def test_only_its_user_may_write_it(write: Write) -> None:
    write("here")
    before = os.umask(0)
    try:
        load_site("here")
    finally:
        os.umask(before)
    assert place("here").stat().st_mode & 0o777 == 0o600
    assert place("here").parent.stat().st_mode & 0o777 == 0o700


def test_where_nothing_can_be_cached_profiles_load(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write("here")
    assert load_site("here") == load_site("here")
    assert (tmp_path / "file").read_bytes() == b""


def test_a_profile_by_path_is_not_cached(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(VALID)
    load_site(str(tmp_path / "mine.yaml"))
    assert not place("mine").parent.exists()
