"""A copy of the user's code in the job's folder, on whatever host: only what changed goes over the network.

The host keeps, for each folder that was ever sent, the tree as it was sent last. A new tree begins as that
one's hard links, loses what changed, gets the new files as a tar stream and takes its name by one rename when
it is complete; the job gets a copy, by one rename too. So there is never half a tree, whatever breaks, and
no job sees another one's changes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
import secrets
import socket
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError

_BATCH_BYTES = 32 << 20
_MAX_BYTES = 2 << 30

# $1: the folder of this source's trees; $2: the tree that is being made; $3: the tree it begins as, if any;
# stdin: the files of that one that go. A tree that is in use is touched: see _FINISH.
_BEGIN = """
set -e
mkdir -p "$1"
cd "$1"
mkdir "$2"
if [ "$3" ]; then touch "$3"; cp -al "$3/files" "$2/files"; else mkdir "$2/files"; fi
cd "$2/files"
xargs -0 -r rm -f --
find . -mindepth 1 -depth -type d -empty -delete
"""
_EXTRACT = ("tar", "-x", "-p", "--no-same-owner", "-f", "-")
# $3: the name of the complete tree; stdin: its manifest. What nobody has used for a day is removed.
_FINISH = """
set -e
cd "$1"
cat > "$2/manifest"
mv -T "$2" "$3" 2> /dev/null || rm -rf "$2"
touch "$3"
ln -s "$3" "$2.link"
mv -T "$2.link" current
find . -mindepth 1 -maxdepth 1 ! -name "$3" ! -name current -mmin +1440 -exec rm -rf {} +
"""
# $1: the complete tree; $2: the job's copy.
_LAY = """
set -e
[ ! -d "$2" ] || exit 0
trap 'rm -rf "$2.new.$$"' EXIT
touch "$1"
cp -a "$1/files" "$2.new.$$"
mv -T "$2.new.$$" "$2"
"""
# $1: the new folder; stdin: a tar archive of what is in it.
_UNPACK = """
set -e
[ ! -d "$1" ] || exit 0
trap 'rm -rf "$1.new.$$"' EXIT
mkdir -p "$1.new.$$"
tar -x -p --no-same-owner -C "$1.new.$$" -f -
mv -T "$1.new.$$" "$1"
"""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One file or symbolic link of a tree."""

    kind: Literal["file", "link"]
    mode: int
    content: str
    """SHA-256 of a file; where a link leads to."""
    size: int


Manifest = dict[str, Entry]
"""Paths with slashes, relative to the tree; names that are no UTF-8 as Python's surrogateescape has them."""


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy took."""

    files: int
    """Files and links of the whole tree."""
    sent: int
    """Those of them that went over the network."""
    sent_bytes: int


def sync_folder(host: Host, source: Path, target: str, cache: str) -> Synced:
    """Copy ``source`` to ``target``, a path on the host that is not there yet; its folder must be.

    Files go along with their modes and times; those that git ignores and empty folders do not. ``cache`` is
    the folder on the host that keeps what was sent. Raises BadInputError for a source that cannot be copied
    (it names the file), RefusedError where the host does not do its part.
    """
    manifest = read_tree(source)
    trees = f"{cache}/{_key(source)}"
    try:
        return _sync(host, source, manifest, target, trees)
    except NoAnswerError:  # a second time costs nothing but time: nothing is ever half there
        return _sync(host, source, manifest, target, trees)


def send_files(host: Host, files: Mapping[str, bytes], folder: str) -> None:
    """Make a folder on the host with these files, all or none, in one round trip; one that is there is left.

    The files' names are paths below it. Raises RefusedError where the host does not do its part.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.mode, member.size, member.mtime = 0o644, len(data), int(time.time())
            archive.addfile(member, io.BytesIO(data))
    try:
        _do(host, _UNPACK, folder, stdin=buffer.getvalue())
    except NoAnswerError:
        _do(host, _UNPACK, folder, stdin=buffer.getvalue())


def _sync(host: Host, source: Path, manifest: Manifest, target: str, trees: str) -> Synced:
    text = _encode(manifest)
    name = _name(text)
    kept = host.read_file(f"{trees}/current/manifest")
    sent: list[str] = []
    if kept != text:
        base = _decode(kept or b"") or {}
        base_name = _name(kept) if kept and base else ""
        sent = [path for path, entry in manifest.items() if base.get(path) != entry]
        gone = [path for path, entry in base.items() if manifest.get(path) != entry]
        made = f"new-{secrets.token_hex(8)}"
        _do(
            host, _BEGIN, trees, made, base_name, stdin=b"".join(b"./" + os.fsencode(p) + b"\0" for p in gone)
        )
        for batch in _batches(source, manifest, sent):
            _check(host, host.run(_EXTRACT, stdin=batch, cwd=f"{trees}/{made}/files"))
        _do(host, _FINISH, trees, made, name, stdin=text)
    _do(host, _LAY, f"{trees}/{name}", target)
    size = sum(manifest[path].size for path in sent)
    return Synced(files=len(manifest), sent=len(sent), sent_bytes=size)


def _do(host: Host, script: str, *arguments: str, stdin: bytes = b"") -> None:
    _check(host, host.run(("bash", "-c", script, "hpclaunch-sync", *arguments), stdin=stdin))


def _check(host: Host, answer: CommandResult) -> None:
    if answer.exit_code != 0:
        raise RefusedError(f"the code could not be copied to {host.name}: {answer.stderr.strip()}")


def _key(source: Path) -> str:
    """Return a name for the source that no other folder and no other machine of this user has."""
    place = f"{socket.gethostname()}:{os.path.abspath(source)}"
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def _name(manifest: bytes) -> str:
    """Return the name of the tree of that manifest; another tree has another name."""
    return f"tree-{hashlib.sha256(manifest).hexdigest()[:32]}"


def _encode(manifest: Manifest) -> bytes:
    return json.dumps({p: msgspec.to_builtins(e) for p, e in sorted(manifest.items())}).encode()


def _decode(text: bytes) -> Manifest | None:
    """Return None for a manifest that cannot be read: then the tree has to be sent whole."""
    try:
        return msgspec.convert(json.loads(text), Manifest)
    except (ValueError, msgspec.ValidationError):
        return None


def read_tree(source: Path) -> Manifest:
    """Return what of a folder goes along; raises BadInputError naming the file that cannot."""
    if not source.is_dir():
        raise BadInputError(f"{source}: no such folder")
    manifest = {path: _entry(source, path) for path in list_files(source)}
    total = sum(entry.size for entry in manifest.values())
    if not manifest:
        raise BadInputError(f"{source}: there is nothing to copy", "is all of it in .gitignore?")
    if total > _MAX_BYTES:
        largest = sorted(manifest, key=lambda path: -manifest[path].size)[:3]
        raise BadInputError(
            f"{source}: {total >> 20} MiB are too much to go along with every job; "
            f"the largest: {', '.join(largest)}",
            f"at most {_MAX_BYTES >> 20} MiB: put data into .gitignore and copy them once",
        )
    return manifest


def list_files(source: Path) -> list[str]:
    """Return the files and links below a folder, without what git ignores there, in order.

    Raises RefusedError where git is needed and missing, BadInputError with its words where it fails.
    """
    source = source.absolute()
    if any((folder / ".git").exists() for folder in (source, *source.parents)):
        return _listed_by_git(source, ("-c", "-o"))
    if next(source.rglob(".gitignore"), None) is None:
        return sorted(_walk(source))
    with tempfile.TemporaryDirectory(prefix="hpclaunch-") as repository:
        _git(source, "init", "-q", "--bare", repository)
        return _listed_by_git(source, ("-o",), f"--git-dir={repository}", f"--work-tree={source}")


def _listed_by_git(source: Path, what: Sequence[str], *options: str) -> list[str]:
    out = _git(source, *options, "ls-files", *what, "--exclude-standard", "-z")
    found: set[str] = set()
    for name in os.fsdecode(out).split("\0"):
        path = source / name
        if not name or not os.path.lexists(path):
            continue  # removed, but still in the index
        if path.is_dir() and not path.is_symlink():  # a repository of its own, such as a submodule
            found |= {f"{name.rstrip('/')}/{inner}" for inner in list_files(path)}
        else:
            found.add(name)
    return sorted(found)


def _git(source: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=source, capture_output=True, check=False)
    except FileNotFoundError:
        raise RefusedError(f"{source}: git is needed to know what it ignores", "install git") from None
    if done.returncode != 0:
        raise BadInputError(f"{source}: git says: {os.fsdecode(done.stderr).strip()}")
    return done.stdout


def _walk(source: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(source):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links and name != ".git"]
        for name in (*files, *links):
            yield Path(folder, name).relative_to(source).as_posix()


def _entry(source: Path, path: str) -> Entry:
    try:
        status = os.lstat(source / path)
        if stat.S_ISLNK(status.st_mode):
            return Entry("link", 0o777, _link(source, path), 0)
        if stat.S_ISREG(status.st_mode):
            data = (source / path).read_bytes()
            return Entry("file", status.st_mode & 0o777, hashlib.sha256(data).hexdigest(), len(data))
    except OSError as error:
        raise BadInputError(f"{source / path}: cannot be read: {error.strerror}") from None
    raise BadInputError(f"{source / path}: is neither a file nor a link", "put it into .gitignore")


def _link(source: Path, path: str) -> str:
    """Return where a link leads to, relative to itself; raises BadInputError where that is outside."""
    root = os.path.abspath(source)
    target = os.readlink(source / path)
    place = os.path.normpath(os.path.join(root, os.path.dirname(path), target))
    real, real_root = os.path.realpath(source / path), os.path.realpath(source)
    if not all(p == r or p.startswith(r + os.sep) for p, r in ((place, root), (real, real_root))):
        raise BadInputError(
            f"{source / path}: this link leads outside, to {target}, which does not go along",
            "put it into .gitignore, or a copy in its place",
        )
    return posixpath.relpath(place, os.path.join(root, os.path.dirname(path))) if target[0] == "/" else target


def _batches(source: Path, manifest: Mapping[str, Entry], paths: Sequence[str]) -> Iterator[bytes]:
    """Yield tar archives of the paths, each of few files more than a batch may hold."""
    at = 0
    while at < len(paths):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            while at < len(paths) and buffer.tell() < _BATCH_BYTES:
                _add(archive, source, paths[at], manifest[paths[at]])
                at += 1
        yield buffer.getvalue()


def _add(archive: tarfile.TarFile, source: Path, path: str, entry: Entry) -> None:
    member = tarfile.TarInfo(f"./{path}")
    member.mode = entry.mode
    if entry.kind == "link":
        member.type, member.linkname = tarfile.SYMTYPE, entry.content
        archive.addfile(member)
        return
    try:
        data = (source / path).read_bytes()
        member.mtime = int(os.stat(source / path).st_mtime)
    except OSError as error:
        raise BadInputError(f"{source / path}: cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != entry.content:
        raise BadInputError(f"{source / path}: it changed while it was copied", "submit again")
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
