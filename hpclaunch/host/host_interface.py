"""The interface of a host: a machine where commands run and files live. It knows nothing about schedulers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol, TypeVar

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError

T = TypeVar("T")
Note = Callable[[str], None]
"""Takes one sentence for the user."""
Ask = Callable[[str, bool], str]
"""Asks the user: prompt, whether the answer may be visible. Raises RefusedError where that is impossible."""


class NoAnswerError(RefusedError):
    """A command gave no answer in time; it is not known whether it did its work."""


class UnreadableFileError(RefusedError):
    """A file exists and cannot be read, while the host works: others may be readable."""


class CutError(NoAnswerError):
    """The connection was lost before a command answered."""


class NoConnectionError(RefusedError):
    """The host cannot be reached, or the connection was lost before the login was complete."""


def with_retry(operation: Callable[[], T]) -> T:
    """Do something that may be done twice; repeat it, over a new connection, where that was lost.

    Raises the error of the last of three tries.
    """
    for _ in range(2):
        with suppress(CutError):
            return operation()
    return operation()


@contextmanager
def only_reading(host: "Host") -> Iterator[None]:
    """Within, each command only asks: it is repeated where the connection was lost.

    The errors of a network that stays away then say that nothing was submitted.
    """
    host.repeats = True
    try:
        yield
    except (NoAnswerError, NoConnectionError) as error:
        error.message += "; nothing was submitted"
        raise
    finally:
        host.repeats = False


def text_of(data: bytes) -> str:
    """Return the output of a program as text."""
    return data.decode("utf-8", errors="replace")


class Call(NamedTuple):
    """A program to run; see ``Host.run``."""

    argv: Sequence[str]
    stdin: bytes | None = None
    timeout_s: float | None = None
    env: Mapping[str, str | None] | None = None
    cwd: str | None = None


class Host(Protocol):
    """One machine, this one or another. Paths are absolute paths there."""

    name: str
    """Its name in messages."""
    repeats: bool
    """Whether ``run`` may be done twice: it is then repeated where the connection was lost."""
    _piece_bytes: int = 16 << 20

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Run a program, never through a shell, and return its output and exit status.

        ``env`` is added to the host's environment; a variable with the value None is removed from it. Raises
        RefusedError where the program is missing or the folder does not exist, and NoAnswerError where the
        program takes longer than ``timeout_s``.
        """
        code, out, err = self._run(Call(argv, stdin, timeout_s, env, cwd))
        return CommandResult(exit_code=code, stdout=text_of(out), stderr=text_of(err))

    def _run(self, call: Call) -> tuple[int, bytes, bytes]:
        """Run a program and return its exit status, stdout and stderr."""
        ...

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file at once: a reader sees the old or the new one. Raises BadInputError."""
        ...

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes; None: no file. Raises UnreadableFileError or RefusedError."""
        ...

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the files that exist, in one round trip; RefusedError as for ``read_file``."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at that path."""
        ...

    def make_folder(self, path: str, *, private: bool = False) -> None:
        """Make a folder, with those above it; a ``private`` one is its owner's only. Raises BadInputError."""
        ...

    def write_folder(self, path: str, files: Mapping[str, bytes]) -> None:
        """Make a folder with these files, all or none, unless it exists. Raises BadInputError."""
        ...

    def tail(self, path: str, offset: int) -> bytes:
        """Return a piece of the file from ``offset`` on; no bytes where the file does not exist yet."""
        return self._read(path, offset, self._piece_bytes) or b""

    def _read(self, path: str, offset: int, most: int) -> bytes | None: ...
