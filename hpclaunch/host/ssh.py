"""Another machine as a host, over one ssh connection; words and paths arrive in its shell unchanged.

The user's login shell there may be bash, zsh, csh or fish: it only reads characters that mean the same to all
of them, and starts ``sh``, which does the work.
"""

from __future__ import annotations

import io
import logging
import os
import posixpath
import re
import secrets
import shlex
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError, note_text
from hpclaunch.host import host_interface
from hpclaunch.host.host_interface import Call, Host, NoAnswerError, NoConnectionError, text_of, with_retry
from hpclaunch.host.ssh_config import resolve, split_route
from hpclaunch.package_data import package_constants, shell_words

if TYPE_CHECKING:
    from paramiko import Channel, Transport

LIMIT = package_constants("host/ssh_words.yaml", "limits")


@contextmanager
def connect(
    host: str, *, config: Path | None = None, ask: host_interface.Ask | None = None
) -> Iterator[SshHost]:
    """Connect to ``[user@]host[:port]``, where host may be an alias of the ssh configuration.

    ``JUMP,...,HOST`` names jump hosts for the case that the configuration names no way to HOST.

    ``config``: the ssh configuration to read instead of the user's and the system's; ``ask``: gets the
    answers to the questions of a login; None: on the terminal. Raises RefusedError where paramiko is missing,
    the host cannot be reached, its key is unknown or changed, or it refuses the login; BadInputError for a
    destination or configuration that cannot be used.
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
    """Return the host's absolute ``$XDG_STATE_HOME/hpclaunch``, with jobs' folders. Raises RefusedError."""
    place = (
        'case $XDG_STATE_HOME in /*) printf %s "$XDG_STATE_HOME";; *) printf %s "$HOME/.local/state";; esac'
    )
    answer = host.run(("sh", "-c", place))
    if answer.exit_code != 0 or not answer.stdout.startswith("/"):
        raise RefusedError(f"{host.name} does not answer where the home folder is: {answer.stderr.strip()}")
    return f"{answer.stdout}/hpclaunch"


class SshHost(Host):
    """Commands and files of another machine; see Host.

    After a connection was lost, the next operation opens a new one. Reading and writing files is then
    repeated, since that does no harm; a command is not repeated: ``run`` raises NoAnswerError.
    """

    def __init__(
        self, destination: str, *, config: Path | None = None, ask: host_interface.Ask | None = None
    ) -> None:
        """Read the destination, without connecting."""
        self._jumps, self.name = split_route(destination)
        try:
            import paramiko  # noqa: F401
        except ImportError:
            raise RefusedError.case("ssh: without paramiko") from None
        # Without a handler Python prints paramiko's log messages, some with tracebacks.
        logging.getLogger("paramiko").addHandler(logging.NullHandler())
        self._config, self._ask = config, ask
        self.repeats = False
        self._transport: Transport | None = None
        self._below = ExitStack()
        """The connection and those to its jump hosts."""

    def connect(self) -> None:
        """Connect, unless there is a connection; a connection that breaks at once is tried three times."""
        from hpclaunch.host.ssh_link import Way  # it loads paramiko

        for may_retry in (True, True, False):
            if self._transport is not None and self._transport.is_active():
                return
            self.close()
            begun = time.monotonic()
            try:
                login = resolve(self.name, self._config, self._jumps)
                way = Way(self._config, self._ask, self._below)
                self._transport = way.open(login, login.jumps, (self.name,))
            except NoConnectionError:
                if not may_retry or time.monotonic() - begun > LIMIT.soon_s:
                    raise
                time.sleep(LIMIT.pause_s)

    def close(self) -> None:
        """Close the connection."""
        self._transport = None
        self._below.close()

    def _run(self, call: Call) -> tuple[int, bytes, bytes]:
        """Run a program there; NoAnswerError also where the connection is lost before the program ends."""
        return with_retry(partial(self._run_once, call)) if self.repeats else self._run_once(call)

    def _run_once(self, call: Call) -> tuple[int, bytes, bytes]:
        from paramiko import SSHException

        program = call.argv[0]
        command = remote_command(call.argv, call.env, call.cwd)
        channel = self._session()
        try:
            with _closing_after(channel, LIMIT.start_timeout_s):
                channel.exec_command(command)
            exchange = _Exchange(channel, call.stdin or b"", program, self.name)
            code, out, err = exchange.finish(call.timeout_s)
        except (SSHException, EOFError, OSError) as error:
            raise self._no_answer(program) from error
        finally:
            with suppress(SSHException, EOFError, OSError):
                channel.close()
        if code < 0:
            raise self._no_answer(program)
        return code, self._after_mark(program, call.cwd, out, err), err

    def _no_answer(self, program: str) -> host_interface.CutError:
        return host_interface.CutError(f"the connection to {self.name} was lost before {program} answered")

    def _after_mark(self, program: str, cwd: str | None, out: bytes, err: bytes) -> bytes:
        """Return the program's output; raises RefusedError where it was not started."""
        after_mark = out.partition(MARK)[2]
        started, output = after_mark[:1], after_mark[1:]
        if started == RUNS:
            return output
        if started == NO_FOLDER:
            raise RefusedError(f"cannot run {program} in {cwd}: no such folder on {self.name}")
        if started == NO_PROGRAM:
            raise RefusedError.case("ssh: no program", program=program, name=self.name)
        answer = text_of(err).strip() or text_of(out).strip() or "nothing"
        raise RefusedError(f"{self.name} runs no commands for this login; its answer: {answer}")

    def _session(self) -> Channel:
        """Open a channel for one command; a lost connection is replaced, since no command was sent yet."""
        from paramiko import SSHException

        for may_retry in (True, True, False):
            self.connect()
            assert self._transport is not None  # noqa: S101
            try:
                return self._transport.open_session(timeout=LIMIT.open_timeout_s)
            except (SSHException, EOFError, OSError) as error:
                # A write that fails tells of the end before paramiko's thread, which reads, has seen it.
                open_still = isinstance(error, SSHException) and self._transport.is_active()
                if open_still or not may_retry:
                    kind = RefusedError if open_still else NoConnectionError
                    raise kind(f"{self.name} opens no session: {error}") from None
                self.close()
        raise AssertionError

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once: temporary name, fsync where the file system can, rename."""
        folder, name = posixpath.split(path)

        def write() -> CommandResult:
            temporary = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}")
            words = (temporary, path, f"{mode:o}", str(len(data)))
            program = shell_words(__file__, "ssh.sh", "write_file")
            return self.run((*program, *words), data, LIMIT.file_timeout_s, LIMIT.in_c)

        answer = with_retry(write)
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot be written on {self.name}: {answer.stderr.strip()}")

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes; None: it does not exist."""
        data = self._read(path, 0, LIMIT.max_answer_bytes + 1)
        if data and len(data) > LIMIT.max_answer_bytes:
            raise RefusedError(f"{path} on {self.name} has more than {LIMIT.max_answer_bytes >> 20} MiB")
        return data

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the files that exist, all in one round trip."""
        if not paths:
            return {}
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        _, out, err = with_retry(partial(self._run_once, Call(LIMIT.tar_of_files, names, env=LIMIT.in_c)))
        messages = text_of(err).strip()
        for line in messages.splitlines():
            if ": Cannot " in line and not line.endswith(tuple(LIMIT.absent)):
                raise host_interface.UnreadableFileError(f"{self.name}: {line.removeprefix('tar: ')}")
        try:
            found = _unpacked(out)
        except (tarfile.TarError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise RefusedError(note_text("ssh: bad archive", host=self, error=error, said=messages)) from None
        return {path: found[path] for path in paths if path in found}

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at that path."""
        return self._of_file(path, "checked", "stat", "-L", "-c", "there", "--", path) is not None

    def make_folder(self, path: str, *, private: bool = False) -> None:
        """Make a folder and those above it; a new ``private`` one is for its owner only."""
        mode = ("-m", "700") if private else ()
        self._make(path, ("mkdir", "-p", *mode, "--", path))

    def write_folder(self, path: str, files: Mapping[str, bytes]) -> None:
        """Make a folder with these files in one round trip, unless it exists: temporary name, rename."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name, data in files.items():
                member = tarfile.TarInfo(f"./{name}")
                member.mode, member.size, member.mtime = 0o644, len(data), int(time.time())
                archive.addfile(member, io.BytesIO(data))
        words = (*shell_words(__file__, "sync.sh", "unpack", "bash"), path)
        self._make(path, words, buffer.getvalue())

    def _make(self, path: str, words: Sequence[str], stdin: bytes | None = None) -> None:
        answer = with_retry(lambda: self.run(words, stdin))
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot make this folder on {self.name}: {answer.stderr.strip()}")

    def _read(self, path: str, offset: int, most: int) -> bytes | None:
        """Return the bytes of a file from ``offset`` on, of a pipe none; None where there is no file."""
        flags = "iflag=fullblock,skip_bytes,count_bytes,nonblock"
        place = (f"if={path}", f"skip={offset}", f"count={most}")
        return self._of_file(path, "read", "dd", *place, "bs=1M", flags, "status=none")

    def _of_file(self, path: str, done: str, *words: str) -> bytes | None:
        """Return what a program prints of a file; None: there is none. ``done``: for messages."""
        call = Call(words, None, LIMIT.file_timeout_s, LIMIT.in_c)
        code, out, err = with_retry(partial(self._run_once, call))
        reason = text_of(err).strip()
        if code == 0:
            return out
        if reason.endswith(tuple(LIMIT.absent)):
            return None
        raise host_interface.UnreadableFileError(f"{path}: cannot be {done} on {self.name}: {reason}")


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
                size = f"{LIMIT.max_answer_bytes >> 20} MiB"
                raise RefusedError(note_text("ssh: much", program=self._program, host=self._host, size=size))
            if not self._channel.status_event.wait(remaining_s()):
                raise self._late(timeout_s)  # the program closed its output and runs on
        finally:
            self._begun.set()  # nothing that waits for it may stay behind
        code = -1 if self._is_cut() else self._channel.recv_exit_status()
        return code, bytes(self._out), bytes(self._err)

    def _is_cut(self) -> bool:
        """Tell whether the connection was lost before the end of the output: the status may overtake it."""
        link = self._channel.get_transport()
        if not self._channel.eof_received:  # RFC 4254, 5.3: a server should send it, and need not
            link.join(LIMIT.end_s)
        return not (self._channel.eof_received or link.is_active())

    def _late(self, timeout_s: float | None) -> NoAnswerError:
        return NoAnswerError(f"{self._program} gave no answer within {timeout_s:g} s on {self._host}")

    def _await_start(self, timeout_s: float | None) -> None:
        start_s = LIMIT.start_timeout_s if timeout_s is None else min(timeout_s, LIMIT.start_timeout_s)
        if self._begun.wait(start_s):
            return
        if start_s == timeout_s:
            raise self._late(timeout_s)
        raise NoAnswerError.case(
            "ssh: no shell", host=self._host, program=self._program, s=LIMIT.start_timeout_s
        )

    def _read_out(self) -> None:
        self._read(self._channel.recv, self._out)
        self._begun.set()  # nothing more will come

    def _read(self, receive: Callable[[int], bytes], kept: bytearray) -> None:
        with suppress(OSError, EOFError):
            while data := receive(1 << 16):
                # Other programs print before the mark.
                if len(kept) + len(data) > LIMIT.max_answer_bytes + LIMIT.send_bytes:
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
            # sendall copies the rest for every packet.
            for at in range(0, len(self._stdin), LIMIT.send_bytes):
                self._channel.sendall(self._stdin[at : at + LIMIT.send_bytes])
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


MARK = b"\x02hpclaunch\x03"
"""Printed before the program's own output: the user's start-up files may print anything before it."""
RUNS, NO_FOLDER, NO_PROGRAM = b"r", b"f", b"p"
"""The byte after the mark: the program was started, or why it was not."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:=,@+-")


def remote_command(
    argv: Sequence[str], env: Mapping[str, str | None] | None = None, cwd: str | None = None
) -> str:
    """Return a command line that prints ``MARK``, one byte and the program's output, with its exit status.

    The exit status is 128+N where signal N ended the program. Raises BadInputError for a NUL byte, for a bad
    name of a variable and for arguments that are too long together.
    """
    steps = [f"printf '{_octal(MARK)}'"]
    if cwd is not None:
        steps.append(f"cd {_quote(cwd if cwd.startswith('/') else './' + cwd)} || {_stop(NO_FOLDER)}")
    for name, value in (env or {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise BadInputError(f"{name!r} is not a name of an environment variable")
        steps.append(f"unset {name}" if value is None else f"export {name}={_quote(value)}")
    steps.append(f"{_is_program(argv[0])} || {_stop(NO_PROGRAM)}")
    steps.append(f"printf {RUNS.decode()}")
    # exec: the program itself, never a builtin of that name; in a subshell: a signal gives 128+N.
    steps.append(f"(exec {' '.join(_quote(word) for word in argv)})")
    steps.append("exit $?")
    command = f"""exec sh -c 'eval "$(printf "{_octal(os.fsencode("; ".join(steps)))}")"'"""
    if len(command) > LIMIT.max_bytes:
        raise BadInputError(f"{argv[0]}: {len(command)} bytes of arguments are too many for one ssh command")
    return command


def _is_program(name: str) -> str:
    """Return a shell test that succeeds where the program exists."""
    program = _quote(name)
    return f"[ -f {program} ] && [ -x {program} ]" if "/" in name else f"command -v {program} >/dev/null"


def _stop(reason: bytes) -> str:
    return f"{{ printf {reason.decode()}; exit 1; }}"


def _quote(text: str) -> str:
    if "\0" in text:
        raise BadInputError(f"{text!r}: no argument may hold a NUL byte")
    return shlex.quote(text)


def _octal(data: bytes) -> str:
    r"""Write bytes for printf: plain characters unchanged, all others as ``\ooo``."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)
