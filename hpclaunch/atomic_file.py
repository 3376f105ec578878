"""Files and folders that appear whole or not at all.

Both are made under a temporary name in the same folder and then renamed: a reader sees the old content or the
new one. A process that is killed leaves at most a file or folder with a name that starts with a dot.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path


def write_file(path: Path, data: bytes, mode: int = 0o644, *, durable: bool = True) -> None:
    """Write a whole file, new or in place of an older one.

    ``mode``: its permissions, whatever the umask is; ``durable``: it is on the disk when this returns.
    A device, a pipe and /dev/stdout are written to and stay.
    Raises OSError with the path that was given; the older file is then unchanged.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.is_char_device() or path.is_fifo() or (path.parent == Path("/dev") and path.is_symlink()):
        path.write_bytes(data)
        return
    temporary = _temporary(path)
    try:
        write_new_file(temporary, data, mode, durable=durable)
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise
    if durable:
        _sync_folder(path.parent)


def write_new_file(path: Path, data: bytes, mode: int = 0o644, *, durable: bool = True) -> None:
    """Write a file that is new, without renaming: for the files of a ``new_folder``. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(handle, mode)
        if durable:
            os.fsync(handle)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths below a folder, such as a ``new_folder``. Raises OSError."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@contextmanager
def new_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Give a temporary folder to fill; it is renamed to ``path`` when the block ends, removed when it fails.

    An older folder at ``path`` must be empty, or is removed with ``replace``. The folders above are made.
    Raises OSError.
    """
    import shutil  # few commands make folders

    temporary = _temporary(path)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        older = _temporary(path) if replace and path.exists() else None
        if older is not None:
            path.rename(older)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(path.parent)
    if older is not None:
        shutil.rmtree(older, ignore_errors=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}")


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; some network file systems refuse to fsync a folder and need not."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
