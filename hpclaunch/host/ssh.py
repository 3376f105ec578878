"""Another machine as a host, over one connection of the user's own ssh.

A master (ssh_config(5), ControlMaster) logs in, with ssh's own questions on the terminal, and goes to the
background; each command is a session of its connection. So host keys, logins, certificates and jump hosts
are those of ssh. Files are read and written by commands, too.
"""

from __future__ import annotations

import io
import math
import os
import posixpath
import re
import secrets
import selectors
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

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
from hpclaunch.host.remote_shell import GO, MARK, NO_FOLDER, NO_PROGRAM, RUNS, remote_command
from hpclaunch.host.ssh_config import added_options, parse_address, split_route

_PIECE_BYTES = 16 << 20
_READ_BYTES = 1 << 16
_START_TIMEOUT_S = 60.0
"""Time for the login shell there to start a command: its start-up files come first."""
_SOON_S, _PAUSE_S = 5.0, 0.5
"""A connection that broke within the first time is tried again after the second."""
# Waits until its stdin ends, as it also does when hpclaunch is killed. $0: the master's socket.
_END_MASTER = """
read -r _; ssh -F /dev/null -S "$0" -O exit master > /dev/null 2>&1; rm -rf -- "${0%/*}"
"""
_MAX_ANSWER_BYTES = 256 << 20
"""The most that one command may print, or one file that is read whole may hold: it is kept in memory."""
_LONGEST_PLACE = 60
"""A socket's name may have 104 bytes (108 on Linux), of which ssh appends 17 while it makes the socket."""
# Absolute names, links followed, names from stdin with NUL between them: any number of files, any name.
_TAR_OF_FILES = ("tar", "-c", "-f", "-", "-P", "-h", "--hard-dereference", "--format=gnu", "--no-recursion",
                 "--null", "-T", "-")  # fmt: skip
_ABSENT = (": No such file or directory", ": No such file", ": Not a directory")
# $1: a temporary name; $2: the file; $3: its mode; $4: its size, so that an upload that was cut is not taken.
_WRITE = """
trap 'rm -f -- "$1"' EXIT; umask 077
dd of="$1" bs=65536 conv=excl,fsync status=none || exit 1
[ "$(wc -c < "$1")" -eq "$4" ] && chmod "$3" -- "$1" && mv -fT -- "$1" "$2"
"""
# $1: the first byte, from 1 on; $2: how many; $3: the file.
_TAIL = """exec 3< "$3" && tail -c "+$1" <&3 | head -c "$2" """
_IN_ENGLISH = {"LC_ALL": "C"}
_NEVER = ("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no")
_REFUSED = re.compile(
    r"Permission denied|Host key verification failed|[Tt]oo many authentication failures|Unable to negotiate"
    r"|[Rr]evoked|[Bb]ad (configuration|owner)"
)
"""Words of ssh for what another try does not change."""


@contextmanager
def connect(host: str, *, config: Path | None = None) -> Iterator[SshHost]:
    """Connect to ``[user@]host[:port]``, where host may be an alias of the ssh configuration.

    ``JUMP,...,HOST`` names jump hosts for the case that the configuration names no way to HOST.

    ``config``: the ssh configuration to read instead of the user's and the system's. Raises RefusedError
    where ssh is missing, the host cannot be reached, its key is unknown or changed, or it refuses the login;
    BadInputError for a destination or configuration that cannot be used.
    """
    remote = SshHost(host, config=config)
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
    repeated, since that does no harm; a command that was begun is not: ``run`` raises NoAnswerError.
    """

    def __init__(self, destination: str, *, config: Path | None = None) -> None:
        """Read the destination, without connecting."""
        self._jumps, self.name = split_route(destination)
        self._config = config
        self.repeats = False
        self._socket: str | None = None
        self._end: subprocess.Popen[bytes] | None = None
        """Ends the master when its stdin ends."""

    def connect(self) -> None:
        """Connect, unless there is a connection; a connection that breaks at once is tried three times."""
        for may_retry in (True, True, False):
            if self._is_open():
                return
            self.close()
            begun = time.monotonic()
            try:
                self._log_in()
            except NoConnectionError:
                self.close()
                if not may_retry or time.monotonic() - begun > _SOON_S:
                    raise
                time.sleep(_PAUSE_S)

    def _log_in(self) -> None:
        """Start a master, which asks the user on the terminal; it returns when the login is complete."""
        added = added_options(self.name, self._config, self._jumps)
        self._socket = f"{_short_folder()}/s"
        self._end = subprocess.Popen(
            ("sh", "-c", _END_MASTER, self._socket), stdin=subprocess.PIPE, start_new_session=True
        )
        # Without ControlPersist: with it, ssh throws away the messages of jump hosts.
        settings = ("StrictHostKeyChecking=yes", "ControlPersist=no", "RemoteCommand=none", *_NEVER)
        file = ["-F", str(self._config)] if self._config else []
        options = [*file, *(word for setting in settings for word in ("-o", setting)), *added]
        with tempfile.TemporaryFile() as said:
            # -f: to the background and another session, where Ctrl-C does not reach it.
            words = ["ssh", "-f", "-N", "-T", "-M", "-S", self._socket, *options]
            code = subprocess.call(
                [*words, *parse_address(self.name).words()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            if code != 0:
                said.seek(0)
                raise self._not_logged_in(_text(said.read()))

    def _not_logged_in(self, said: str) -> RefusedError:
        lines = (line.strip(" @") for line in said.splitlines())  # ssh frames a warning with @
        words = " ".join(line for line in lines if line) or "ssh gives no reason"
        try_it = f"try ssh -v {self.name}"
        if "Host key verification failed" in said or "REMOTE HOST IDENTIFICATION" in said:
            return RefusedError(
                f"{self.name}: the key of the host is not the one of your known hosts: {words}",
                f"connect once with ssh {self.name}, and compare the fingerprint that it shows with the one "
                "that the site publishes. Where a known key has changed, another machine may be between you "
                "and the host",
            )
        if _REFUSED.search(said):
            return RefusedError(f"{self.name}: the login was refused: {words}", try_it)
        return NoConnectionError(
            f"{self.name} cannot be reached: {words}",
            f"check the name, the network and, where the site needs one, the VPN or ProxyJump; {try_it}",
        )

    def _is_open(self) -> bool:
        """Return whether there is a connection, as far as is known: a master removes its socket."""
        return self._socket is not None and os.path.exists(self._socket)

    def close(self) -> None:
        """Close the connection."""
        end, self._end, self._socket = self._end, None, None
        if end is not None:
            end.communicate()

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
        """Return exit status, stdout and stderr; over a new connection where none of it had begun there."""
        command = remote_command(argv, env, cwd)
        for may_retry in (True, True, False):
            self.connect()
            try:
                out, err = self._session(argv[0], command, stdin or b"", timeout_s)
                return self._answer(argv[0], cwd, out, err)
            except _NotBegun as error:
                self.close()
                if not may_retry:
                    raise NoConnectionError(f"{self.name} opens no session: {error}") from None
        raise AssertionError

    def _session(
        self, program: str, command: str, stdin: bytes, timeout_s: float | None
    ) -> tuple[bytes, bytes]:
        """Return stdout and stderr of one session; a master that is gone is not replaced by the session."""
        words = ["ssh", "-F", "/dev/null", "-S", str(self._socket), "-T", "-o", "ProxyCommand=false"]
        process = subprocess.Popen(
            [*words, "session", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            return _Exchange(process, GO + stdin).finish(timeout_s)
        except _Timeout:
            raise NoAnswerError(f"{program} gave no answer within {timeout_s:g} s on {self.name}") from None
        except _NotStarted:
            raise NoAnswerError(
                f"the login shell on {self.name} did not start {program} within {_START_TIMEOUT_S:g} s",
                f"its start-up files (~/.bashrc) may wait for input: try ssh {self.name} true",
            ) from None
        except _TooMuch:
            raise RefusedError(
                f"{program} on {self.name} printed more than {_MAX_ANSWER_BYTES >> 20} MiB, which is too much"
            ) from None
        finally:
            process.kill()
            process.wait()

    def _answer(self, program: str, cwd: str | None, out: bytes, err: bytes) -> tuple[int, bytes, bytes]:
        """Return exit status, output and errors of the program; RefusedError where it was not started."""
        started, after_mark = out.partition(MARK)[2][:1], out.partition(MARK)[2][1:]
        if started == RUNS:
            output, end, code = after_mark.rpartition(MARK)
            if not end or not code.endswith(b"\n"):
                raise CutError(f"the connection to {self.name} was lost before {program} answered")
            return int(code), output, err
        if started == NO_FOLDER:
            raise RefusedError(f"cannot run {program} in {cwd}: no such folder on {self.name}")
        if started == NO_PROGRAM:
            raise RefusedError(
                f"{program}: no such program on {self.name}",
                "a login by ssh without a terminal may have another PATH: set it in ~/.bashrc there",
            )
        if MARK in out:
            raise CutError(f"the connection to {self.name} was lost before {program} answered")
        answer = _text(err).strip() or _text(out).strip() or "nothing"
        raise RefusedError(f"{self.name} runs no commands for this login; its answer: {answer}")

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once: temporary name, fsync, rename."""

        def write() -> CommandResult:
            folder, name = posixpath.split(path)
            temporary = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}")
            words = (temporary, path, f"{mode:o}", str(len(data)))
            return self.run(("sh", "-c", _WRITE, "hpclaunch-write", *words), stdin=data, env=_IN_ENGLISH)

        answer = with_retry(write)
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot be written on {self.name}: {_reason(answer.stderr)}")

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes; None: it does not exist."""
        return self._read(path, ("cat", "--", path))

    def _read(self, path: str, command: Sequence[str]) -> bytes | None:
        """Return the output of a command that reads a file; None: the file does not exist."""
        code, out, err = with_retry(lambda: self._run(command, env=_IN_ENGLISH))
        messages = _text(err).strip()
        if code != 0 and messages.endswith(_ABSENT):
            return None
        if code != 0:
            raise UnreadableFileError(f"{path}: cannot be read on {self.name}: {_reason(messages)}")
        return out

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the files that exist, all in one round trip."""
        if not paths:
            return {}
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        _, out, err = with_retry(lambda: self._run(_TAR_OF_FILES, stdin=names, env=_IN_ENGLISH))
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
        return self._read(path, ("ls", "-d", "-L", "--", path)) is not None

    def make_folder(self, path: str, *, private: bool = False) -> None:
        """Make a folder and those above it; a new ``private`` one is for its owner only."""
        mode = ("-m", "700") if private else ()
        answer = with_retry(lambda: self.run(("mkdir", "-p", *mode, "--", path)))
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot make this folder on {self.name}: {answer.stderr.strip()}")

    def tail(self, path: str, offset: int) -> bytes:
        """Return up to 16 MiB of the file from ``offset`` on; no bytes where it does not exist yet."""
        words = (str(offset + 1), str(_PIECE_BYTES), path)
        return self._read(path, ("sh", "-c", _TAIL, "hpclaunch-tail", *words)) or b""


class _NotBegun(Exception):
    """The session ended before the line that lets the command begin was sent."""


class _Timeout(Exception):
    """The time for an answer is over."""


class _NotStarted(Exception):
    """The login shell did not get to the command."""


class _TooMuch(Exception):
    """The command prints more than is kept in memory."""


class _Exchange:
    """The stdin, stdout and stderr of a session.

    The stdin is sent when the mark has come: the login shell's start-up files would read it otherwise, and
    until then it is certain that the command has not begun.
    """

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: S101, PT018
        self._process, self._stdin, self._rest = process, process.stdin, memoryview(stdin)
        self._out, self._err = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        for pipe, read in ((process.stdout, self._out), (process.stderr, self._err)):
            self._selector.register(pipe, selectors.EVENT_READ, read)
        os.set_blocking(self._stdin.fileno(), False)

    def finish(self, timeout_s: float | None) -> tuple[bytes, bytes]:
        """Return stdout and stderr."""
        now = time.monotonic()
        deadline = math.inf if timeout_s is None else now + timeout_s
        start_by, begun = now + _START_TIMEOUT_S, False
        with self._selector:
            while self._selector.get_map():
                self._step(min(deadline, start_by))
                if not begun and MARK in self._out:
                    begun, start_by = True, math.inf
                    self._selector.register(self._stdin, selectors.EVENT_WRITE)
                if time.monotonic() >= deadline:
                    raise _Timeout
                if time.monotonic() >= start_by:
                    raise _NotStarted
        self._stdin.close()
        return self._outcome(begun, deadline)

    def _outcome(self, begun: bool, deadline: float) -> tuple[bytes, bytes]:
        remaining_s = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
        try:
            code = self._process.wait(remaining_s)  # the program may have closed its output and run on
        except subprocess.TimeoutExpired:
            raise _Timeout from None
        if not begun and code == 255:
            raise _NotBegun(_text(bytes(self._err)).strip() or "the connection was lost")
        return bytes(self._out), bytes(self._err)

    def _step(self, until: float) -> None:
        """Wait until a pipe is ready, and read from it or write to it."""
        left_s = None if math.isinf(until) else max(0.0, until - time.monotonic())
        for key, _ in self._selector.select(left_s):
            pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
            over = self._write() if pipe is self._stdin else self._read(pipe, key.data)
            if over:
                self._selector.unregister(pipe)
                pipe.close()

    def _read(self, pipe: IO[bytes], buffer: bytearray) -> bool:
        """Read what is there; True: it was the end."""
        data = os.read(pipe.fileno(), _READ_BYTES)
        buffer += data
        if len(buffer) > _MAX_ANSWER_BYTES:
            raise _TooMuch
        return not data

    def _write(self) -> bool:
        """Write as much as the pipe takes; True: that was all, or the reader has ended."""
        try:
            self._rest = self._rest[os.write(self._stdin.fileno(), self._rest[:_READ_BYTES]) :]
        except BrokenPipeError:
            return True
        return not self._rest


def _short_folder() -> str:
    """Make the folder of a master's socket, in /tmp where the usual place has too long a name for sockets."""
    place = tempfile.gettempdir()
    return tempfile.mkdtemp(
        prefix="hpclaunch-",
        dir=place if len(os.fsencode(place)) < _LONGEST_PLACE else "/tmp",  # noqa: S108
    )


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


def _reason(messages: str) -> str:
    """Return the reason in the last line of a program's messages."""
    return messages.strip().rpartition("\n")[2].rpartition(": ")[2] or "no reason was given"


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
