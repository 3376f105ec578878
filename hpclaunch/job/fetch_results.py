"""Bring files of a job to this machine, whatever the other machine answers.

The other machine is not trusted with the files of this one: each name must lead below the target folder, no
file is replaced unless that is requested, no link is followed here, and none gets longer than announced.
"""

import base64
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.record import JobRecord
from hpclaunch.job.submission import SCRIPT
from hpclaunch.package_data import shell_words
from hpclaunch.remote.safe_unpack import open_part

_TIMEOUT_S = 300.0
_SMALL_BYTES, _TOGETHER = 256 << 10, 256
"""Files up to this size are read together, this many at a time: 64 MiB at most."""
# What hpclaunch itself put into the job's folder, as patterns of find -path; before it had ``files``, too.
_BEFORE = (
    *("runner", "startup", "probe.py", "stage.py"),
    *("sampler.sh", "rank_stderr.sh", "mpi_session.sh", "private_folders.sh"),
)
_OURS = ("files", "submission", "log_start", "staging.??????", "staging_key.*", *_BEFORE)


class RemoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that is brought."""

    source: str
    name: str
    size: int
    modified: float
    executable: bool


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The files found there."""

    files: tuple[RemoteFile, ...]
    left_out: tuple[str, ...]


def list_results(host: Host, record: JobRecord, paths: Sequence[str]) -> Listing:
    """Return the files of a job: those of the named paths, which begin at its working folder.

    Without paths: what the job has left in its folder and, where its code was copied there, what changed in
    that copy. Raises BadInputError for a path that is not there, RefusedError for any other answer.
    """
    if paths:
        searches = [(path, *_named(record.workdir, path)) for path in paths]
    else:
        searches = [("the job's folder", record.folder, "")]
    files: dict[str, RemoteFile] = {}
    left_out: list[str] = []
    for asked, start, prefix in searches:
        entries, unread = _find(host, asked, start, () if paths else _pruned(record))
        left_out += unread
        for entry in entries:
            found = _entry(entry, start, prefix, host.name)
            if isinstance(found, str):
                left_out.append(found)
            elif found is not None:
                files[found.name] = found
    return Listing(files=tuple(files[name] for name in sorted(files)), left_out=tuple(left_out))


def _named(workdir: str, path: str) -> tuple[str, str]:
    """Return the absolute path, and the name here: as below the working folder, else the last part."""
    full = os.path.normpath(path if path.startswith("/") else f"{workdir}/{path}")
    inside = full == workdir or full.startswith(f"{workdir}/")
    return full, os.path.relpath(full, workdir) if inside else PurePosixPath(full).name


def _pruned(record: JobRecord) -> tuple[str, ...]:
    """Return find's words that leave out our own copies, but not what a job changed in its copied code."""
    folder = re.sub(r"([*?[\\])", r"\\\1", record.folder)  # which have a meaning in find -path
    ours = [word for name in _OURS for word in ("-path", f"{folder}/{name}", "-o")]
    unchanged = ("-path", f"{folder}/code/*", "!", "-newer", f"{record.folder}/{SCRIPT}", "!", "-type", "d")
    return ("(", "(", *ours, "-name", "__pycache__", ")", "-prune", ")", "-o", "(", *unchanged, ")", "-o")


def _find(
    host: Host, asked: str, start: str, left_out: tuple[str, ...]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return type, size, time, mode and path of all at ``start`` and below, and what cannot be read."""
    program = shell_words(__file__, "fetch.sh", "find_files", "bash")
    answer = host.run((*program, start, *left_out), timeout_s=_TIMEOUT_S)
    try:
        fields = base64.b64decode(answer.stdout).decode(errors="surrogateescape").split("\0")[:-1]
    except ValueError:
        fields = ["not a list"]
    if answer.exit_code != 0 and not fields:
        raise BadInputError.case("fetch: not there", asked=asked, host=host, said=answer.stderr.strip())
    if len(fields) % 5:
        raise RefusedError(f"{host.name}: its list of the job's files cannot be read", "look at it with ssh")
    return list(zip(*[iter(fields)] * 5, strict=True)), answer.stderr.splitlines()


def _entry(entry: tuple[str, ...], start: str, prefix: str, host: str) -> RemoteFile | str | None:
    """Return a file, the path of what is not brought, or None for a folder. Raises RefusedError."""
    kind, size, modified, mode, path = entry
    if kind == "d":
        return None
    below = PurePosixPath(path[len(start) :].lstrip("/"))
    parts = (*PurePosixPath(prefix).parts, *below.parts)
    bad = not (path == start or path.startswith(start.rstrip("/") + "/")) or not parts or ".." in parts
    if bad or any(part in (".", "/") for part in parts):
        raise RefusedError.case("fetch: outside", host=host, start=start, path=path)
    if kind != "f":
        return path
    try:
        return RemoteFile(
            source=path,
            name="/".join(parts),
            size=max(0, int(size)),
            modified=float(modified),
            executable=bool(int(mode, 8) & 0o100),
        )
    except ValueError:
        raise RefusedError(f"{host}: its list of the job's files cannot be read: {entry!r}") from None


def fetch(
    host: Host,
    files: Iterable[RemoteFile],
    target: Path,
    *,
    replace: bool = False,
    done: Callable[[RemoteFile], None] = lambda _: None,
) -> None:
    """Write the files below ``target``, each whole or not at all; ``done`` is called after each.

    Raises BadInputError before the first one is written if one exists, unless ``replace``, or if a link is in
    the way; and where a file cannot be written.
    """
    files = list(files)
    for file in files:
        _check_place(target, file.name, replace=replace)
    for file, pieces in _contents(host, files):
        path = target / file.name
        try:
            target.mkdir(parents=True, exist_ok=True)
            with _opened_parent(target, file.name) as folder:
                _write(host, file, pieces, path, folder, replace=replace)
        except OSError as error:
            raise BadInputError(f"{path}: cannot be written: {error.strerror}") from None
        done(file)


def _contents(host: Host, files: Sequence[RemoteFile]) -> Iterator[tuple[RemoteFile, Iterable[bytes]]]:
    """Yield each file with its bytes in pieces; many small files come in one round trip."""
    for start in range(0, len(files), _TOGETHER):
        together = files[start : start + _TOGETHER]
        found = host.read_files([file.source for file in together if file.size <= _SMALL_BYTES])
        for file in together:
            yield file, [found[file.source]] if file.source in found else _pieces(host, file)


def _pieces(host: Host, file: RemoteFile) -> Iterator[bytes]:
    at = 0
    while at < file.size and (data := host.tail(file.source, at)):
        yield data
        at += len(data)


@contextmanager
def _opened_parent(target: Path, name: str) -> Iterator[int]:
    """Give a descriptor of the folder of a name below ``target``, and make the folders on the way.

    Each is opened relative to the one above and never followed, so that no link gets between check and use.
    ``target`` itself is the user's choice and may be a link.
    """
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in PurePosixPath(name).parts[:-1]:
            below = open_part(handle, part, 0o777)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def _check_place(target: Path, name: str, *, replace: bool) -> None:
    """Refuse a place that is taken, or that a link would lead away from the target folder."""
    path = target
    for part in PurePosixPath(name).parts[:-1]:
        path = path / part
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise BadInputError(f"{path}: is not a folder, nothing was brought", "name another one with --to")
    path = target / name
    if not os.path.lexists(path):
        return
    if not replace:
        raise BadInputError.case("fetch: exists", path=path)
    if not stat.S_ISREG(path.lstat().st_mode):
        raise BadInputError.case("fetch: no plain file", path=path)


def _write(
    host: Host, file: RemoteFile, pieces: Iterable[bytes], path: Path, folder: int, *, replace: bool
) -> None:
    """Write the pieces of a file under another name of the opened folder, then give it its name."""
    temporary = f".{path.name[:200]}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(handle, "wb") as out:
            at = 0
            for data in pieces:
                out.write(data[: file.size - at])
                at += len(data)
            if at < file.size:
                raise RefusedError(f"{file.source}: only {at} of {file.size} bytes came from {host.name}")
            out.flush()
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(handle, (0o777 if file.executable else 0o666) & ~mask)
            with suppress(OverflowError, OSError):
                os.utime(handle, (file.modified, file.modified))
        there = os.access(path.name, os.F_OK, dir_fd=folder, follow_symlinks=False)
        if there and not replace:  # two of the names are one here, such as a and A
            raise BadInputError(f"{path}: exists already", "--force replaces it; --to names another folder")
        os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
