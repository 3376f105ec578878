"""What a host is: where commands run and files live. It knows no scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError


class NoAnswerError(RefusedError):
    """A command gave no answer in time: whether it did its work is not known."""


class Host(Protocol):
    """One machine, this one or another. Paths are absolute paths there."""

    name: str
    """How messages call it."""

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Run a program, never through a shell, and return what it answered.

        ``env`` is added to the host's environment; a variable that is None there is taken out of it. Raises
        RefusedError where the program is missing or the folder does not exist, and NoAnswerError where the
        time is over.
        """
        ...

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once: whoever reads the path sees the old file or the new one.

        Raises BadInputError where it cannot be written.
        """
        ...

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes, or None where there is no such file; raises RefusedError if unreadable."""
        ...

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those files that exist, in one round trip; RefusedError for unreadable ones."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it; fine if it exists. Raises BadInputError."""
        ...

    def tail(self, path: str, offset: int) -> bytes:
        """Return the file's bytes from ``offset`` on; nothing where the file does not exist yet."""
        ...
