"""Another machine as a host, over one ssh connection."""

from __future__ import annotations

import io
import os
import posixpath
import re
import secrets
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import (
    CutError,
    Host,
    NoAnswerError,
    NoConnectionError,
    UnreadableFileError,
    with_retry,
)
from hpclaunch.host.remote_shell import MARK, NO_FOLDER, NO_PROGRAM, RUNS, remote_command
from hpclaunch.host.ssh_auth import Ask, ask_on_terminal
from hpclaunch.host.ssh_config import split_route
from hpclaunch.host.ssh_link import Link, need_paramiko, open_link

if TYPE_CHECKING:
    from paramiko import Channel, SFTPClient, SFTPFile

T = TypeVar("T")

_PIECE_BYTES = 1 << 20
_REQUEST_BYTES = 32768  # every SFTP server answers a request of this size at once
_OPEN_TIMEOUT_S = 60.0
_START_TIMEOUT_S = 60.0
"""Time for the login shell there to start a command, or SFTP: its start-up files come first."""
_SFTP_SILENCE_S = 300.0
_SOON_S, _PAUSE_S = 5.0, 0.5
"""A connection that broke within the first time is tried again after the second."""
_MAX_ANSWER_BYTES = 256 << 20
"""Limit of the output of one command, and of one file that is read whole: they are kept in memory."""
# Absolute names, links followed, names from stdin with NUL between them: any number of files, any name.
_TAR_OF_FILES = ("tar", "-c", "-f", "-", "-P", "-h", "--hard-dereference", "--format=gnu", "--no-recursion",
                 "--null", "-T", "-")  # fmt: skip
_ABSENT = (": No such file or directory", ": Not a directory")


@contextmanager
def connect(host: str, *, config: Path | None = None, ask: Ask = ask_on_terminal) -> Iterator[SshHost]:
    """Connect to ``[user@]host[:port]``, where host may be an alias of the ssh configuration.

    ``JUMP,...,HOST`` names jump hosts for the case that the configuration names no way to HOST.

    ``config``: the ssh configuration to read instead of the user's and the system's; ``ask``: gets the
    answers to the questions of a login. Raises RefusedError where paramiko is missing, the host cannot be
    reached, its key is unknown or changed, or it refuses the login; BadInputError for a destination or
    configuration that cannot be used.
    """
    remote = SshHost(host, config=config, ask=ask)
    try:
        try:
            remote.connect()
        except NoConnectionError as error:
            error.message += "; nothing was sent"
            raise
        yield remote
    finally:
        remote.close()


def state_folder(host: Host) -> str:
    """Return the absolute folder on the host that holds job folders: ``$XDG_STATE_HOME/hpclaunch`` there.

    Raises RefusedError where the host does not answer with one.
    """
    place = (
        'case $XDG_STATE_HOME in /*) printf %s "$XDG_STATE_HOME";; *) printf %s "$HOME/.local/state";; esac'
    )
    answer = host.run(("sh", "-c", place))
    if answer.exit_code != 0 or not answer.stdout.startswith("/"):
        raise RefusedError(f"{host.name} does not answer where the home folder is: {answer.stderr.strip()}")
    return f"{answer.stdout}/hpclaunch"


class SshHost:
    """Commands and files of another machine; see Host.

    After a connection was lost, the next operation opens a new one. Reading and writing files is then
    repeated, since that does no harm; a command is not repeated: ``run`` raises NoAnswerError.
    """

    def __init__(self, destination: str, *, config: Path | None = None, ask: Ask = ask_on_terminal) -> None:
        """Read the destination, without connecting."""
        self._jumps, self.name = split_route(destination)
        need_paramiko()
        self._config, self._ask = config, ask
        self.repeats = False
        self._link: Link | None = None
        self._sftp_client: SFTPClient | None = None
        self._unfinished: list[bytes] = []
        """Temporary files that uploads over a lost connection left behind."""

    def connect(self) -> None:
        """Connect, unless there is a connection; a connection that breaks at once is tried three times."""
        for may_retry in (True, True, False):
            if self._link is not None and self._link.is_open():
                return
            self.close()
            begun = time.monotonic()
            try:
                self._link = open_link(self.name, self._config, self._ask, self._jumps)
            except NoConnectionError:
                if not may_retry or time.monotonic() - begun > _SOON_S:
                    raise
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the connection."""
        link, self._link, self._sftp_client = self._link, None, None
        if link is not None:
            link.close()

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> CommandResult:
        """Run a program there; NoAnswerError also where the connection is lost before the program ends."""

        def run() -> tuple[int, bytes, bytes]:
            return self._run(argv, stdin, timeout_s, env, cwd)

        code, out, err = with_retry(run) if self.repeats else run()
        return CommandResult(exit_code=code, stdout=_text(out), stderr=_text(err))

    def _run(
        self,
        argv: Sequence[str],
        stdin: bytes | None = None,
        timeout_s: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | None = None,
    ) -> tuple[int, bytes, bytes]:
        from paramiko import SSHException

        command = remote_command(argv, env, cwd)
        channel = self._session()
        try:
            with _closing_after(channel, _START_TIMEOUT_S):
                channel.exec_command(command)
            code, out, err = _Exchange(channel, stdin or b"", argv[0], self.name).finish(timeout_s)
        except (SSHException, EOFError, OSError) as error:
            raise self._no_answer(argv[0]) from error
        finally:
            with suppress(SSHException, EOFError, OSError):
                channel.close()
        if code < 0:
            raise self._no_answer(argv[0])
        return code, self._after_mark(argv[0], cwd, out, err), err

    def _no_answer(self, program: str) -> CutError:
        return CutError(f"the connection to {self.name} was lost before {program} answered")

    def _after_mark(self, program: str, cwd: str | None, out: bytes, err: bytes) -> bytes:
        """Return the program's output; raises RefusedError where it was not started."""
        after_mark = out.partition(MARK)[2]
        started, output = after_mark[:1], after_mark[1:]
        if started == RUNS:
            return output
        if started == NO_FOLDER:
            raise RefusedError(f"cannot run {program} in {cwd}: no such folder on {self.name}")
        if started == NO_PROGRAM:
            raise RefusedError(
                f"{program}: no such program on {self.name}",
                "a login by ssh without a terminal may have another PATH: set it in ~/.bashrc there",
            )
        answer = _text(err).strip() or _text(out).strip() or "nothing"
        raise RefusedError(f"{self.name} runs no commands for this login; its answer: {answer}")

    def _session(self) -> Channel:
        """Open a channel for one command; a lost connection is replaced, since no command was sent yet."""
        from paramiko import SSHException

        for may_retry in (True, True, False):
            self.connect()
            assert self._link is not None  # noqa: S101
            try:
                return self._link.transport.open_session(timeout=_OPEN_TIMEOUT_S)
            except (SSHException, EOFError, OSError) as error:
                open_still = self._link.is_open()
                if open_still or not may_retry:
                    kind = RefusedError if open_still else NoConnectionError
                    raise kind(f"{self.name} opens no session: {error}") from None
        raise AssertionError

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once: temporary name, fsync where the server can, rename."""

        def write(sftp: SFTPClient) -> None:
            folder, name = posixpath.split(path)
            temporary = os.fsencode(posixpath.join(folder, f".{name}.{secrets.token_hex(4)}"))
            self._unfinished.append(temporary)
            try:
                # Not pipelined: paramiko then ignores the server's answers to single requests.
                with sftp.open(temporary, "wbx") as file:
                    file.write(data)
                    file.flush()
                    file.chmod(mode)
                    _fsync(sftp, file)
                sftp.posix_rename(temporary, os.fsencode(path))
            except OSError:
                self._remove_unfinished(sftp)
                raise
            self._unfinished.remove(temporary)

        try:
            self._with_sftp(write)
        except OSError as error:
            raise BadInputError(f"{path}: cannot be written on {self.name}: {_reason(error)}") from None

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes; None: it does not exist."""

        def read(sftp: SFTPClient) -> bytes:
            with _open(sftp, path) as file:
                if (file.stat().st_size or 0) > _MAX_ANSWER_BYTES:
                    raise RefusedError(f"{path} on {self.name} has more than {_MAX_ANSWER_BYTES >> 20} MiB")
                file.prefetch()
                data = bytearray()  # paramiko's read(SIZE) copies all it has with each answer
                while len(data) < _MAX_ANSWER_BYTES and (piece := file.read(_REQUEST_BYTES)):
                    data += piece
                return bytes(data)

        return self._with_file(path, "read", read)

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the files that exist, all in one round trip."""
        if not paths:
            return {}
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        _, out, err = with_retry(lambda: self._run(_TAR_OF_FILES, stdin=names, env={"LC_ALL": "C"}))
        messages = _text(err)
        for line in messages.splitlines():
            if ": Cannot " in line and not line.endswith(_ABSENT):
                raise UnreadableFileError(f"{self.name}: {line.removeprefix('tar: ')}")
        try:
            found = _unpacked(out)
        except (tarfile.TarError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise RefusedError(
                f"{self.name}: tar gave no archive that can be read: {error}; {messages.strip()}"
            ) from None
        return {path: found[path] for path in paths if path in found}

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at that path."""
        return self._with_file(path, "checked", lambda sftp: sftp.stat(os.fsencode(path))) is not None

    def make_folder(self, path: str, *, private: bool = False) -> None:
        """Make a folder and those above it; a new ``private`` one is for its owner only."""
        mode = ("-m", "700") if private else ()
        answer = with_retry(lambda: self.run(("mkdir", "-p", *mode, "--", path)))
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot make this folder on {self.name}: {answer.stderr.strip()}")

    def tail(self, path: str, offset: int) -> bytes:
        """Return up to 1 MiB of the file from ``offset`` on; no bytes where it does not exist yet."""

        def read(sftp: SFTPClient) -> bytes:
            with _open(sftp, path) as file:
                end = min(file.stat().st_size or 0, offset + _PIECE_BYTES)
                starts = range(offset, end, _REQUEST_BYTES)
                return b"".join(file.readv([(at, min(_REQUEST_BYTES, end - at)) for at in starts]))

        return self._with_file(path, "read", read) or b""

    def _with_file(self, path: str, done: str, operation: Callable[[SFTPClient], T]) -> T | None:
        """Do something with a file; None where there is none. ``done``: what cannot be done, for messages."""
        try:
            return self._with_sftp(operation)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError(f"{path}: cannot be {done} on {self.name}: {_reason(error)}") from None

    def _with_sftp(self, operation: Callable[[SFTPClient], T]) -> T:
        """Do something with files; where the connection is lost, repeat it over a new one, twice.

        Raises OSError with the server's answer about the file, and RefusedError for everything else.
        """
        from paramiko import SFTPError, SSHException

        for may_retry in (True, True, False):
            try:
                return operation(self._sftp())
            except TimeoutError:
                starting = self._sftp_client is None
                self.close()
                raise NoAnswerError(
                    f"{self.name} gives no access to files: SFTP "
                    + (f"did not start within {_START_TIMEOUT_S:g} s" if starting else "gives no answer"),
                    f"a ~/.bashrc there that waits for input keeps it from starting: try sftp {self.name}",
                ) from None
            except (SSHException, SFTPError, EOFError, OSError) as error:
                if isinstance(error, OSError) and self._sftp_is_open():
                    raise
                kind = RefusedError if self._link and self._link.is_open() else NoConnectionError
                self.close()
                if not may_retry:
                    raise kind(
                        f"{self.name} gives no access to files: {error}", f"try sftp {self.name}"
                    ) from None
        raise AssertionError

    def _sftp_is_open(self) -> bool:
        sftp, link = self._sftp_client, self._link
        if sftp is None or link is None or not link.is_open():
            return False
        channel = sftp.get_channel()
        return channel is not None and not channel.closed

    def _sftp(self) -> SFTPClient:
        from paramiko import SFTPClient

        self.connect()
        assert self._link is not None  # noqa: S101
        if self._sftp_client is None:
            channel = self._sftp_channel()
            self._sftp_client = SFTPClient(channel)
            channel.settimeout(_SFTP_SILENCE_S)
            self._remove_unfinished(self._sftp_client)
        return self._sftp_client

    def _sftp_channel(self) -> Channel:
        """Open a channel with SFTP at its end; each answer has a time limit, the first one too."""
        channel = self._session()
        channel.settimeout(_START_TIMEOUT_S)
        with _closing_after(channel, _START_TIMEOUT_S):
            channel.invoke_subsystem("sftp")
        return channel

    def _remove_unfinished(self, sftp: SFTPClient) -> None:
        while self._unfinished:
            with suppress(FileNotFoundError):
                sftp.remove(self._unfinished[-1])
            self._unfinished.pop()


@contextmanager
def _closing_after(channel: Channel, limit_s: float) -> Iterator[None]:
    """Close the channel if the server has not answered a request by then; the request then fails."""
    timer = threading.Timer(limit_s, channel.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Exchange:
    """A command's stdin, stdout and stderr, each in its thread.

    The stdin is sent when the command has begun: the login shell's start-up files would read it otherwise.
    """

    def __init__(self, channel: Channel, stdin: bytes, program: str, host: str) -> None:
        self._channel, self._stdin = channel, stdin
        self._program, self._host = program, host
        self._out, self._err = bytearray(), bytearray()
        self._begun, self._full = threading.Event(), threading.Event()

    def finish(self, timeout_s: float | None) -> tuple[int, bytes, bytes]:
        """Return exit status (below 0: none came), stdout and stderr; raises NoAnswerError, RefusedError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        of_stderr = (self._channel.recv_stderr, self._err)
        readers = [
            threading.Thread(target=self._read_out, daemon=True),
            threading.Thread(target=self._read, args=of_stderr, daemon=True),
        ]
        for thread in (*readers, threading.Thread(target=self._write, daemon=True)):
            thread.start()

        def remaining_s() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        try:
            self._await_start(timeout_s)
            for reader in readers:
                reader.join(remaining_s())
                if reader.is_alive():
                    raise self._late(timeout_s)
            if self._full.is_set():
                size = f"{_MAX_ANSWER_BYTES >> 20} MiB"
                raise RefusedError(
                    f"{self._program} on {self._host} printed more than {size}, which is too much"
                )
            if not self._channel.status_event.wait(remaining_s()):
                raise self._late(timeout_s)  # the program closed its output and runs on
        finally:
            self._begun.set()  # nothing that waits for it may stay behind
        return self._channel.recv_exit_status(), bytes(self._out), bytes(self._err)

    def _late(self, timeout_s: float | None) -> NoAnswerError:
        return NoAnswerError(f"{self._program} gave no answer within {timeout_s:g} s on {self._host}")

    def _await_start(self, timeout_s: float | None) -> None:
        start_s = _START_TIMEOUT_S if timeout_s is None else min(timeout_s, _START_TIMEOUT_S)
        if self._begun.wait(start_s):
            return
        if start_s == timeout_s:
            raise self._late(timeout_s)
        raise NoAnswerError(
            f"the login shell on {self._host} did not start {self._program} within {_START_TIMEOUT_S:g} s",
            f"its start-up files (~/.bashrc) may wait for input: try ssh {self._host} true",
        )

    def _read_out(self) -> None:
        self._read(self._channel.recv, self._out)
        self._begun.set()  # nothing more will come

    def _read(self, receive: Callable[[int], bytes], kept: bytearray) -> None:
        with suppress(OSError, EOFError):
            while data := receive(1 << 16):
                if len(kept) + len(data) > _MAX_ANSWER_BYTES:
                    self._full.set()
                    self._channel.close()
                    break
                kept += data
                if kept is self._out and not self._begun.is_set() and MARK in kept:
                    self._begun.set()

    def _write(self) -> None:
        from paramiko import SSHException

        with suppress(OSError, EOFError, SSHException):  # a command need not read its stdin
            if self._stdin:
                self._begun.wait()
            for at in range(
                0, len(self._stdin), _PIECE_BYTES
            ):  # sendall copies the remainder for every packet
                self._channel.sendall(self._stdin[at : at + _PIECE_BYTES])
            self._channel.shutdown_write()


def _unpacked(archive_bytes: bytes) -> dict[str, bytes]:
    """Return the plain files of a tar archive by name; raises TarError, and others for a damaged header.

    The archive is not trusted: sparse files, whose size may be anything, and links are passed over, so the
    files are never larger than the archive.
    """
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive_bytes), mode="r:") as archive:
        for member in archive:
            plain = member.isreg() and not member.issparse() and member.size >= 0
            if plain and (content := archive.extractfile(member)):
                found[member.name] = content.read()
    return found


def _open(sftp: SFTPClient, path: str) -> SFTPFile:
    """Open a file for reading; a lost connection raises in the thread that reads, and only there."""
    file: Any = sftp.open(os.fsencode(path), "rb")
    # prefetch() and readv() send their requests in a thread of paramiko's that prints a traceback when the
    # connection is lost. That thread takes no hook, so its private method is wrapped here. Reading without
    # both does not help: each 32 KiB would then wait for one round trip.
    send_requests = file._prefetch_thread

    def send_requests_quietly(*arguments: Any) -> None:
        with suppress(EOFError, OSError):
            send_requests(*arguments)

    file._prefetch_thread = send_requests_quietly
    opened: SFTPFile = file
    return opened


def _fsync(sftp: SFTPClient, file: SFTPFile) -> None:
    """Make a file durable where the server knows OpenSSH's fsync extension; others cannot do it."""
    from paramiko.sftp import CMD_EXTENDED

    try:
        # The only way: of OpenSSH's extensions paramiko has a public method for posix-rename alone.
        sftp._request(CMD_EXTENDED, "fsync@openssh.com", file.handle)  # type: ignore[attr-defined]
    except OSError as error:
        # paramiko keeps only the text of SSH_FX_OP_UNSUPPORTED.
        if error.errno or not re.search("unsupported|not supported|not implemented", str(error), re.I):
            raise


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
