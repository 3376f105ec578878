"""Trees whose names, links and modes are meant to harm, copied one after the other with one cache."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.host.sync import sync_folder
from hpclaunch.host.this_machine import LocalHost
from tests.how_much import examples

SOURCE = "my code"
ROOT, OUTSIDE = b"ROOT", b"OUTSIDE"
"""In a link's text: the absolute path of the source, of a folder beside it."""


class File(NamedTuple):
    content: bytes
    mode: int


class Link(NamedTuple):
    text: bytes


Node = File | Link | dict[bytes, "Node"]
Tree = dict[bytes, Node]

NAMES = [
    b"a",
    b"b",
    b"-rf",
    b"--to-command=sh",
    b'it\'s "$(x)" `y`\\n*',
    b"new\nline\r\t",
    b" ",
    b"...",
    b"\xff\xfe",
    b"n" * 250,
    b"manifest",
    b"current",
]
names = st.sampled_from(NAMES)
files = st.builds(
    File,
    st.sampled_from([b"", b"one", b"two", b"\0" * 5000]),
    st.sampled_from([0o644, 0o755, 0o400, 0o777, 0o4755, 0o2711, 0o1644, 0o6777]),
)
inside = st.lists(st.one_of(names, names, st.sampled_from([b"..", b".", b""])), min_size=1, max_size=4)
starts = st.sampled_from([b"", b"", b"", b"", b"./", ROOT + b"/", b"../my code/", OUTSIDE + b"/", b"/"])
links = st.builds(lambda start, parts: Link((start + b"/".join(parts)) or b"."), starts, inside)
nodes = st.recursive(st.one_of(files, files, links), lambda inner: st.dictionaries(names, inner, max_size=4))
trees = st.dictionaries(names, nodes, max_size=5).map(lambda tree: {**tree, b"always": File(b"", 0o644)})


def make(folder: bytes, tree: Tree, replaced: dict[bytes, bytes]) -> None:
    for name, node in tree.items():
        path = os.path.join(folder, name)
        if isinstance(node, File):
            with open(path, "wb") as file:
                file.write(node.content)
            os.chmod(path, node.mode)
        elif isinstance(node, Link):
            text = node.text
            for word, value in replaced.items():
                text = text.replace(word, value)
            os.symlink(text, path)
        else:
            os.mkdir(path)
            make(path, node, replaced)


def leads_out(tree: Tree, at: list[bytes], text: bytes) -> bool | None:
    """Does a link in the folder ``at`` leave the tree on its way? None: it turns in a circle."""
    place, rest, followed = list(at), text.split(b"/"), 0
    if text == ROOT or text.startswith(ROOT + b"/"):
        place, rest = [], rest[1:]
    elif text.startswith((b"/", OUTSIDE)):
        return True
    while rest:
        part = rest.pop(0)
        if part == b"..":
            if not place:
                return True
            place.pop()
        elif part not in (b"", b"."):
            node: Node | None = tree
            for name in (*place, part):
                node = node.get(name) if isinstance(node, dict) else None
            if not isinstance(node, Link):
                place.append(part)
                continue
            followed += 1
            if followed > 40:
                return None
            more = node.text.split(b"/")
            if node.text == ROOT or node.text.startswith(ROOT + b"/"):
                place, more = [], more[1:]
            elif node.text.startswith((b"/", OUTSIDE)):
                return True
            rest = more + rest
    return False


def all_links(tree: Tree, at: tuple[bytes, ...] = ()) -> list[tuple[list[bytes], bytes]]:
    found = [(list(at), node.text) for node in tree.values() if isinstance(node, Link)]
    for name, node in tree.items():
        if isinstance(node, dict):
            found += all_links(node, (*at, name))
    return found


def without_links_out(tree: Tree) -> Tree:
    """The tree without those links: most trees have one, and then nothing is copied."""

    def kept(folder: Tree, at: list[bytes]) -> Tree:
        found: Tree = {}
        for name, node in folder.items():
            if isinstance(node, dict):
                found[name] = kept(node, [*at, name])
            elif isinstance(node, File) or leads_out(tree, at, node.text) is False:
                found[name] = node
        return found

    while any(leads_out(tree, at, text) is not False for at, text in all_links(tree)):
        tree = kept(tree, [])
    return tree


Content = dict[bytes, tuple[object, ...]]


def content(folder: Path) -> Content:
    """Each file and link below: kind, mode, bytes, or its text and where it ends."""
    found: Content = {}
    top = os.fsencode(folder)
    for at, folders, others in os.walk(top):
        for name in (*folders, *others):
            path = os.path.join(at, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                end = os.path.relpath(os.path.realpath(path), os.path.realpath(top))
                text = os.readlink(path)
                found[os.path.relpath(path, top)] = ("link", b"" if text.startswith(top) else text, end)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = ("file", stat.S_IMODE(status.st_mode), file.read())
            elif not stat.S_ISDIR(status.st_mode):
                found[os.path.relpath(path, top)] = ("other",)
    return found


def assert_same(copy: Content, source: Content) -> None:
    """The copy is the source, with fewer bits; a link with the source's own path is a relative one."""
    assert copy.keys() == source.keys()
    for path, (kind, what, *more) in source.items():
        if kind == "file":
            assert isinstance(what, int)
            assert copy[path] == ("file", what & 0o777, *more), path
        else:
            text = copy[path][1] if what == b"" else what
            assert isinstance(text, bytes)
            assert not text.startswith(b"/")
            assert copy[path] == (kind, text, *more), path


def seen(folder: Path) -> list[tuple[object, ...]]:
    """What would show a change: bytes, mode, owner and time of all below, and of the folder."""
    found: list[tuple[object, ...]] = []
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found.append((path, data, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns))
    return found


A_LINK_BECAME_A_FOLDER: list[Tree] = [
    {b"b": {b"x": File(b"1", 0o644)}, b"a": Link(b"b"), b"always": File(b"", 0o644)},
    {b"b": {b"x": File(b"1", 0o644)}, b"a": {b"x": File(b"2", 0o600)}, b"always": File(b"", 0o644)},
    {b"b": Link(b"a"), b"a": {b"x": File(b"2", 0o600)}, b"always": File(b"", 0o644)},
]
A_FOLDER_BECAME_A_LINK: list[Tree] = [A_LINK_BECAME_A_FOLDER[1], A_LINK_BECAME_A_FOLDER[0]]
"""In a checkout the index still has a/x, which is there: through the link."""
OUT_AND_BACK: list[Tree] = [{b"a": Link(b"../my code/always"), b"always": File(b"", 0o644)}]
UP_AFTER_A_LINK: list[Tree] = [
    {b"a": Link(ROOT + b"/b/../c"), b"b": Link(b"d/e"), b"d": {b"e": {b"f": File(b"", 0o644)}}}
]
"""The kernel goes up from where ``b`` leads."""


@pytest.mark.slow
@given(st.lists(st.one_of(trees, *[trees.map(without_links_out)] * 4), min_size=2, max_size=3), st.booleans())
@example(A_LINK_BECAME_A_FOLDER, False)
@example(A_LINK_BECAME_A_FOLDER, True)
@example(A_FOLDER_BECAME_A_LINK, True)
@example(OUT_AND_BACK, False)
@example(UP_AFTER_A_LINK, False)
@settings(max_examples=examples(40), deadline=None)
def test_a_copy_is_the_source_and_nothing_else_changes(versions: list[Tree], checkout: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        source, outside = top / SOURCE, top / "outside"
        source.mkdir()
        if checkout:
            git(source, "init", "-q")
        (outside / "always").mkdir(parents=True)
        for name in ("a", "b", "always/x"):
            (outside / name).write_text("keep")
            (outside / name).chmod(0o640)
        before = seen(outside)
        made: dict[Path, Content] = {}
        for number, tree in enumerate(versions):
            for path in source.iterdir():
                if path.name != ".git":
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            make(os.fsencode(source), tree, {ROOT: os.fsencode(source), OUTSIDE: os.fsencode(outside)})
            wanted = {path: what for path, what in content(source).items() if not path.startswith(b".git/")}
            out = {leads_out(tree, at, text) for at, text in all_links(tree)}
            copy = top / "copies" / str(number)
            copy.parent.mkdir(exist_ok=True)
            try:
                synced = sync_folder(LocalHost(), source, str(copy), str(top / "cache"))
                assert synced.files == len(wanted)
                made[copy], said = wanted, ""
            except BadInputError as error:
                said = str(error)
            refused = "this link leads outside" in said
            assert (refused, copy.exists()) == (bool(said), not said), said
            assert out & {True, None} if refused else True not in out
            for each, then in made.items():
                assert_same(content(each), then)
            assert seen(outside) == before
            if checkout and number == 0:
                git(source, "add", "-A")  # the index of a later tree has names that are no longer there


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(autouse=True, scope="module")
def _no_settings_of_git() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        yield
