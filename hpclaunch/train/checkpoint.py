"""Checkpoints: one file each, written whole or not at all, and known to be whole when read.

A checkpoint is an npz file without pickles: the arrays by name, ``meta`` (JSON as bytes) and ``sha256`` over
both. The file's name is ``checkpoint-<start of the run>-<step>.npz``: sorted by name, the last one is the
newest of the newest run. ``best.npz`` is another name of the best one, which stays when that is removed.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .allreduce import Array
from .run_errors import BadCheckpointError, BadRequestError, TrainError, text_of
from .whole_files import prepare_folder, write_whole

BEST = "best.npz"
_NAME = re.compile(r"checkpoint-(\d{8}T\d{6})-(\d{10})\.npz")
# What zipfile and numpy raise on damaged files.
_DAMAGE = (
    *(OSError, ValueError, KeyError, EOFError, RuntimeError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on: flat arrays by name, and facts that JSON can hold."""

    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]


class CheckpointFolder:
    """The folder of a run's checkpoints. Used by rank 0 only."""

    def __init__(self, folder: Path, keep: int) -> None:
        """``keep``: how many checkpoints of this run stay."""
        self._folder = folder
        self._keep = keep
        self._run = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._lock: TextIO | None = None

    def prepare(self) -> str | None:
        """Make the folder, see that a file can be written there, and take it for this process.

        Returns a warning for the user, or None. BadRequestError if the folder cannot be written, or another
        run uses it. What a killed run left half-written is removed.
        """
        prepare_folder(self._folder, "--checkpoint-dir")
        remark = self._take()
        for left in self._folder.glob(".checkpoint-*.part"):
            left.unlink(missing_ok=True)
        return remark

    def _take(self) -> str | None:
        """Lock the folder until this process ends, however it ends: a dead run's lock file locks nothing."""
        lock = (self._folder / ".lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                lock.seek(0)
                owner = lock.read().strip() or "another run"
                raise BadRequestError.of("folder in use", folder=self._folder, owner=owner) from error
            return text_of("no locks", folder=self._folder, error=error)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}\n")
        lock.flush()
        self._lock = lock
        return None

    def newest(self) -> list[Path]:
        """Checkpoints of the newest run, the last one first; further ones are written as of the same run."""
        matches = [match for path in self._folder.iterdir() if (match := _NAME.fullmatch(path.name))]
        if matches:
            self._run = max(match[1] for match in matches)
        names = [match[0] for match in matches if match[1] == self._run]
        return [self._folder / name for name in sorted(names, reverse=True)]

    def save(self, checkpoint: Checkpoint, step: int, *, best: bool = False) -> Path:
        """Write the checkpoint of global ``step``, then remove what is too old; TrainError if it fails.

        ``best``: it replaces `BEST`, too, whole or not at all.
        """
        path = self._folder / f"checkpoint-{self._run}-{step:010d}.npz"
        try:
            write_checkpoint(path, checkpoint)
            if best:
                named = self._folder / BEST
                link = self._folder / f".checkpoint-best.{os.getpid()}.part"
                try:
                    link.unlink(missing_ok=True)
                    os.link(path, link)
                    link.replace(named)
                except OSError:  # a file system without hard links
                    with contextlib.suppress(OSError):
                        link.unlink()
                    write_checkpoint(named, checkpoint)
            for old in sorted(self._folder.glob(f"checkpoint-{self._run}-*.npz"))[: -self._keep]:
                old.unlink()
        except OSError as error:
            raise TrainError.of("no checkpoint", path=path, reason=error.strerror or error) from error
        return path


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write ``path``, whole or not at all; OSError if it fails."""
    meta = np.frombuffer(json.dumps(checkpoint.meta, sort_keys=True).encode(), np.uint8)
    digest = np.frombuffer(_digest(checkpoint.arrays, meta).encode(), np.uint8)
    arrays: dict[str, Any] = {**checkpoint.arrays, "meta": meta, "sha256": digest}
    write_whole(path, lambda file: np.savez(file, **arrays))


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint in ``path``; BadCheckpointError, naming the file, if it is missing or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
            if bad is not None:
                raise ValueError(f"bad checksum of {bad}")
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, Array] = {name: file[name] for name in file.files}
        meta, digest = arrays.pop("meta"), arrays.pop("sha256")
        if _digest(arrays, meta).encode() != digest.tobytes():
            raise ValueError("the sha256 does not fit the content")
        facts = json.loads(meta.tobytes())
    except _DAMAGE as error:
        raise BadCheckpointError.of("damaged checkpoint", path=path, error=error) from error
    return Checkpoint(arrays, facts)


def check_matches(path: Path, meta: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise BadCheckpointError, naming file and setting, where ``meta`` differs from ``expected``."""
    for name, value in expected.items():
        if meta.get(name) != value:
            raise BadCheckpointError.of("other run", path=path, name=name, found=meta.get(name), value=value)


def _digest(arrays: Mapping[str, Array], meta: Array) -> str:
    digest = hashlib.sha256(meta.tobytes())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
