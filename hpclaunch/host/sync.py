"""A copy of the user's code in the job's folder, on any host: only changed files are sent over the network.

For each folder that was sent before, the host caches the tree that was sent last. A new tree begins as hard
links to that one, loses the changed files, gets the new ones as a tar stream and takes its name by one rename
when it is complete; the job gets a copy, also by one rename. So there is never half a tree, whatever fails,
and no job sees the changes of another job.
"""

import hashlib
import io
import json
import os
import secrets
import socket
import stat
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hpclaunch.amounts import listed
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host, Note, with_retry
from hpclaunch.package_data import package_constants, shell_words

LIMIT = package_constants("host/ssh_words.yaml", "copies")
_KEPT_BITS = 0o777


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One file or symbolic link of a tree."""

    kind: Literal["file", "link"]
    mode: int
    content: str
    size: int


Manifest = dict[str, Entry]
"""Path -> entry; paths relative to the tree, with slashes, not UTF-8 bytes as in Python's surrogateescape."""


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """How much a copy had to send."""

    files: int
    sent: int
    dropped: tuple[str, ...]


def sync_folder(host: Host, source: Path, target: str, cache: str, note: Note = lambda _: None) -> Synced:
    """Copy ``source`` to ``target`` on the host, which must not exist yet; the folder around it must exist.

    Files are copied with their modes and times; files that git ignores and empty folders are not copied.
    Neither are folders of tools, `list_files`. ``cache``: the folder on the host for the trees that were
    sent; ``note``: takes what is left out, and how far the copy is. Raises BadInputError for a source that
    cannot be copied (it names the file), RefusedError where a step fails on the host.
    """
    manifest = read_tree(source, note)
    place = f"{socket.gethostname()}:{os.path.abspath(source)}"  # folders and machines of the user differ
    trees = f"{cache}/{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
    return with_retry(lambda: _sync(host, source, manifest, target, trees, note))


def _sync(host: Host, source: Path, manifest: Manifest, target: str, trees: str, note: Note) -> Synced:
    text = json.dumps({p: msgspec.to_builtins(e) for p, e in sorted(manifest.items())}).encode()
    cached_text = host.read_file(f"{trees}/current/manifest") or b""
    cached = _decode(cached_text)
    changed = _differing(manifest, cached)
    tell = _progress(note, f"{source} to {host.name}", sum(manifest[path].size for path in changed))
    if cached_text != text:
        outdated = _differing(cached, manifest)
        outdated_names = b"".join(b"./" + os.fsencode(path) + b"\0" for path in outdated)
        new = f"new-{secrets.token_hex(8)}"
        _do(host, "begin_tree", trees, new, _name(cached_text) if cached else "", stdin=outdated_names)
        for batch in _batches(source, manifest, changed):
            _check(host, host.run(LIMIT.extract, stdin=batch, cwd=f"{trees}/{new}/files"))
            tell(len(batch))
        _do(host, "finish_tree", trees, new, _name(text), stdin=text)
    _do(host, "copy_tree", f"{trees}/{_name(text)}", target)
    dropped = tuple(path for path, entry in manifest.items() if entry.mode & ~_KEPT_BITS)
    return Synced(files=len(manifest), sent=len(changed), dropped=dropped)


def _progress(note: Note, what: str, total: int) -> Callable[[int], None]:
    """Return what takes the bytes of each step and notes from time to time how many are done."""
    done, last = 0, time.monotonic()

    def tell(more: int) -> None:
        nonlocal done, last
        done += more
        if time.monotonic() - last >= LIMIT.tell_s:
            last = time.monotonic()
            note(f"{what}: {min(done, total) >> 20} of {total >> 20} MiB")

    return tell


def _differing(these: Manifest, those: Manifest) -> list[str]:
    """Return the paths of ``these`` that ``those`` lack or hold with other content."""
    return [path for path, entry in these.items() if those.get(path) != entry]


def _do(host: Host, step: str, *arguments: str, stdin: bytes = b"") -> None:
    words = shell_words(__file__, "sync.sh", step, "bash")
    _check(host, host.run((*words, *arguments), stdin=stdin))


def _check(host: Host, answer: CommandResult) -> None:
    if answer.exit_code != 0:
        raise RefusedError(f"the code could not be copied to {host.name}: {answer.stderr.strip()}")


def _name(manifest: bytes) -> str:
    """Return the name of the tree with that manifest; different trees have different names."""
    return f"tree-{hashlib.sha256(manifest).hexdigest()[:32]}"


def _decode(text: bytes) -> Manifest:
    """Return a manifest; empty where it cannot be read, so that the whole tree is sent."""
    try:
        return msgspec.convert(json.loads(text), Manifest)
    except (ValueError, msgspec.ValidationError):
        return {}


def read_tree(source: Path, note: Note) -> Manifest:
    """Return the files and links of a folder that are copied; raises BadInputError for one that cannot be.

    What only a look at each file tells is checked before any of them is read.
    """
    if not source.is_dir():
        raise BadInputError(f"{source}: no such folder")
    left_out = set[str]()
    manifest = {path: _entry(source, path) for path in list_files(source, left_out)}
    if left_out:
        note(f"{source}: folders of tools are not copied: {listed(sorted(left_out))}")
    total = sum(entry.size for entry in manifest.values())
    if not manifest:
        raise BadInputError(f"{source}: there is nothing to copy", "perhaps .gitignore excludes all of it")
    if total > LIMIT.max_bytes:
        largest = ", ".join(sorted(manifest, key=lambda path: -manifest[path].size)[:3])
        size, limit = total >> 20, LIMIT.max_bytes >> 20
        raise BadInputError.case("sync: too much", source=source, size=size, largest=largest, limit=limit)
    tell = _progress(note, f"{source} is read", total)
    for path, entry in manifest.items():
        if entry.kind == "file":
            data = _read(source / path)
            digest = hashlib.sha256(data).hexdigest()
            manifest[path] = msgspec.structs.replace(entry, content=digest, size=len(data))
            tell(len(data))
    return manifest


def list_files(source: Path, left_out: set[str]) -> list[str]:
    """Return the files and links below a folder that git tracks, or does not ignore, sorted.

    Those that git does not track are left out below a folder of a tool: a virtual environment, a cache, one
    of conda; ``left_out`` gets these folders. Raises RefusedError where git is needed and missing,
    BadInputError with git's message where it fails.
    """
    source = source.absolute()
    if any((folder / ".git").exists() for folder in (source, *source.parents)):
        tracked, others = (_listed_by_git(source, left_out, what) for what in ("-c", "-o"))
        return sorted({*tracked, *_kept(source, others, left_out)})
    if next(source.rglob(".gitignore"), None) is None:
        return sorted(_kept(source, _walk(source), left_out))
    with tempfile.TemporaryDirectory(prefix="hpclaunch-") as repository:
        _git(source, "init", "-q", "--bare", repository)
        words = (f"--git-dir={repository}", f"--work-tree={source}")
        return sorted(_kept(source, _listed_by_git(source, left_out, "-o", *words), left_out))


def _kept(source: Path, paths: Iterable[str], left_out: set[str]) -> Iterator[str]:
    """Yield the paths that are not below a folder of a tool, and are no link to one."""
    of_tool = cache(lambda folder: _is_of_tool(source / folder))
    for path in paths:
        link = [Path(path)] if (source / path).is_symlink() else []
        folders = [folder for folder in (*list(Path(path).parents)[-2::-1], *link) if of_tool(folder)]
        if folders:
            left_out.add(folders[0].as_posix())
        else:
            yield path


def _is_of_tool(folder: Path) -> bool:
    named = folder.name in LIMIT.of_tools
    return folder.is_dir() and (named or any((folder / mark).exists() for mark in LIMIT.marks))


def _listed_by_git(source: Path, left_out: set[str], what: str, *options: str) -> list[str]:
    out = _git(source, *options, "ls-files", what, "--exclude-standard", "-z")
    found: set[str] = set()
    for name in os.fsdecode(out).split("\0"):
        path = source / name
        through_link = any((source / folder).is_symlink() for folder in Path(name).parents[:-1])
        if not name or through_link or not os.path.lexists(path):
            continue  # no longer there, but still in the index
        if path.is_dir() and not path.is_symlink():  # another repository, such as a submodule
            inside = set[str]()
            found |= {f"{name.rstrip('/')}/{inner}" for inner in list_files(path, inside)}
            left_out |= {f"{name.rstrip('/')}/{inner}" for inner in inside}
        else:
            found.add(name)
    return sorted(found)


def _git(source: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=source, capture_output=True, check=False)
    except FileNotFoundError:
        raise RefusedError(f"{source}: git is needed to read .gitignore", "install git") from None
    if done.returncode != 0:
        raise BadInputError(f"{source}: git reports: {os.fsdecode(done.stderr).strip()}")
    return done.stdout


def _walk(source: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(source):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links]
        for name in (*files, *links):
            yield Path(folder, name).relative_to(source).as_posix()


def _entry(source: Path, path: str) -> Entry:
    """Return what a look tells; the digest of a file is missing."""
    try:
        status = os.lstat(source / path)
        if stat.S_ISLNK(status.st_mode):
            return Entry("link", 0o777, _link(source, path), 0)
        if stat.S_ISREG(status.st_mode):
            return Entry("file", status.st_mode & 0o7777, "", status.st_size)
    except OSError as error:
        raise BadInputError(f"{source / path}: cannot be read: {error.strerror}") from None
    raise BadInputError(f"{source / path}: is neither a file nor a link", "add it to .gitignore")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None


def _link(source: Path, path: str) -> str:
    """Return the text of a link, relative to it; raises BadInputError where that is outside of the source.

    Each step of the way must be inside, or the copy's link would lead elsewhere than the source's.
    """
    top, target = os.path.abspath(source), os.readlink(source / path)
    folder = os.path.dirname(os.path.join(top, path))
    inside = f"{target}/".startswith(f"{top}/")
    text = f"{os.path.relpath(top, folder)}{target[len(top) :]}" if inside else target
    for step in Path(text).parts:
        folder = os.path.realpath(os.path.join(folder, step))
        if not f"{folder}/".startswith(f"{os.path.realpath(top)}/"):
            raise BadInputError.case("working folder: link outside", link=source / path, target=target)
    return text


def _batches(source: Path, manifest: Mapping[str, Entry], paths: Sequence[str]) -> Iterator[bytes]:
    """Yield tar archives of the paths, each at most one file larger than ``batch_bytes``."""
    at = 0
    while at < len(paths):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            while at < len(paths) and buffer.tell() < LIMIT.batch_bytes:
                _add(archive, source, paths[at], manifest[paths[at]])
                at += 1
        yield buffer.getvalue()


def _add(archive: tarfile.TarFile, source: Path, path: str, entry: Entry) -> None:
    member = tarfile.TarInfo(f"./{path}")
    member.mode = entry.mode & _KEPT_BITS
    if entry.kind == "link":
        member.type, member.linkname = tarfile.SYMTYPE, entry.content
        archive.addfile(member)
        return
    data = _read(source / path)
    member.mtime = int(os.stat(source / path).st_mtime)
    if hashlib.sha256(data).hexdigest() != entry.content:
        raise BadInputError(f"{source / path}: it changed while it was copied", "submit again")
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
