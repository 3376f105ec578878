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
from hpclaunch.host.host_interface import Host, NoAnswerError
from hpclaunch.host.remote_shell import MARK, NO_FOLDER, NO_PROGRAM, RUNS, remote_command
from hpclaunch.host.ssh_auth import Ask, ask_on_terminal
from hpclaunch.host.ssh_config import parse_address, read_config
from hpclaunch.host.ssh_link import Link, need_paramiko, open_link

if TYPE_CHECKING:
    from paramiko import Channel, SFTPClient, SFTPFile

T = TypeVar("T")

_PIECE_BYTES = 1 << 20
_REQUEST_BYTES = 32768  # what every SFTP server answers at once
_OPEN_TIMEOUT_S = 60.0
# Absolute names kept, links followed, names from stdin with NUL between: any number of files, any name.
_TAR_OF_FILES = ("tar", "-c", "-f", "-", "-P", "-h", "--hard-dereference", "--format=gnu", "--no-recursion",
                 "--null", "-T", "-")  # fmt: skip


@contextmanager
def connect(host: str, *, config: Path | None = None, ask: Ask = ask_on_terminal) -> Iterator[SshHost]:
    """Connect to ``[user@]host[:port]``, where host may be an alias of the ssh configuration.

    ``config``: the user's ssh configuration, by default ``~/.ssh/config``; ``ask``: who answers the questions
    of a login. Raises RefusedError where paramiko is missing, the host cannot be reached, its key is unknown
    or changed, or it refuses the login; BadInputError for a destination or configuration that cannot be used.
    """
    remote = SshHost(host, config=config, ask=ask)
    try:
        remote.connect()
        yield remote
    finally:
        remote.close()


def state_folder(host: Host) -> str:
    """Return the absolute folder on the host that takes job folders: ``$XDG_STATE_HOME/hpclaunch`` there.

    Raises RefusedError where the host does not say.
    """
    place = (
        'case $XDG_STATE_HOME in /*) printf %s "$XDG_STATE_HOME";; *) printf %s "$HOME/.local/state";; esac'
    )
    answer = host.run(("sh", "-c", place))
    if answer.exit_code != 0 or not answer.stdout.startswith("/"):
        raise RefusedError(f"{host.name} does not say where its home is: {answer.stderr.strip()}")
    return f"{answer.stdout}/hpclaunch"


class SshHost:
    """Commands and files of another machine; see Host.

    A connection that broke is opened anew for the next operation. What may be done twice with the same
    outcome (reading and writing of files) is then done again; a command is not: ``run`` raises NoAnswerError.
    """

    def __init__(self, destination: str, *, config: Path | None = None, ask: Ask = ask_on_terminal) -> None:
        """Read the configuration; connect nowhere yet."""
        parse_address(destination)
        need_paramiko()
        self.name = destination
        self._config, self._ask = read_config(config), ask
        self._link: Link | None = None
        self._sftp_client: SFTPClient | None = None
        self._unfinished: list[bytes] = []
        """Temporary files of uploads that a broken connection left behind."""

    def connect(self) -> None:
        """Connect, if there is no connection."""
        if self._link is None or not self._link.is_open():
            self.close()
            self._link = open_link(self.name, self._config, self._ask)

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
        """Run a program there; NoAnswerError also where the connection breaks before it has answered."""
        code, out, err = self._run(argv, stdin, timeout_s, env, cwd)
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
            channel.exec_command(command)
            code, out, err = _exchange(channel, stdin or b"", timeout_s)
        except _Timeout:
            raise NoAnswerError(f"{argv[0]} gave no answer within {timeout_s:g} s on {self.name}") from None
        except (SSHException, EOFError, OSError) as error:
            raise self._no_answer(argv[0]) from error
        finally:
            with suppress(SSHException, EOFError, OSError):
                channel.close()
        if code < 0:
            raise self._no_answer(argv[0])
        return code, self._after_mark(argv[0], cwd, out, err), err

    def _no_answer(self, program: str) -> NoAnswerError:
        return NoAnswerError(f"the connection to {self.name} broke before {program} had answered")

    def _after_mark(self, program: str, cwd: str | None, out: bytes, err: bytes) -> bytes:
        """Return what the program printed; raises RefusedError where it was not even started."""
        rest = out.partition(MARK)[2]
        sign = rest[:1]
        if sign == RUNS:
            return rest[1:]
        if sign == NO_FOLDER:
            raise RefusedError(f"cannot run {program} in {cwd}: no such folder on {self.name}")
        if sign == NO_PROGRAM:
            raise RefusedError(
                f"{program}: no such program on {self.name}",
                "a login by ssh without a terminal may have another PATH: set it in ~/.bashrc there",
            )
        said = _text(err).strip() or _text(out).strip() or "nothing"
        raise RefusedError(f"{self.name} runs no commands for this login; it says: {said}")

    def _session(self) -> Channel:
        """Open a channel for one command; nothing was asked for yet, so a dead connection is replaced."""
        from paramiko import SSHException

        for again in (True, False):
            self.connect()
            assert self._link is not None  # noqa: S101
            try:
                return self._link.transport.open_session(timeout=_OPEN_TIMEOUT_S)
            except (SSHException, EOFError, OSError) as error:
                if self._link.is_open() or not again:
                    raise RefusedError(f"{self.name} gives no session: {error}") from None
        raise AssertionError

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once: temporary name, fsync where the server can, rename."""

        def write(sftp: SFTPClient) -> None:
            folder, name = posixpath.split(path)
            temporary = os.fsencode(posixpath.join(folder, f".{name}.{secrets.token_hex(4)}"))
            self._unfinished.append(temporary)
            try:
                # Not pipelined: paramiko then passes over what the server says of single pieces.
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
            self._files(write)
        except OSError as error:
            raise BadInputError(f"{path}: cannot be written on {self.name}: {_why(error)}") from None

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes, or None where there is no such file."""

        def read(sftp: SFTPClient) -> bytes:
            with _open(sftp, path) as file:
                file.prefetch()
                return file.read()

        try:
            return self._files(read)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError(f"{path}: cannot be read on {self.name}: {_why(error)}") from None

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of those files that exist, all in one round trip."""
        if not paths:
            return {}
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        _, out, err = self._again(lambda: self._run(_TAR_OF_FILES, stdin=names, env={"LC_ALL": "C"}))
        for line in _text(err).splitlines():
            if ": Cannot " in line and not line.endswith(
                (": No such file or directory", ": Not a directory")
            ):
                raise RefusedError(f"{self.name}: {line.removeprefix('tar: ')}")
        found: dict[str, bytes] = {}
        try:
            with tarfile.open(fileobj=io.BytesIO(out), mode="r:") as archive:
                for member in archive:
                    if content := archive.extractfile(member):
                        found[member.name] = content.read()
        except tarfile.TarError as error:
            raise RefusedError(f"{self.name}: tar gave no archive: {error}; {_text(err).strip()}") from None
        return {path: found[path] for path in paths if path in found}

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""
        try:
            self._files(lambda sftp: sftp.stat(os.fsencode(path)))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise RefusedError(f"{path}: cannot be looked at on {self.name}: {_why(error)}") from None
        return True

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        answer = self._again(lambda: self.run(("mkdir", "-p", "--", path)))
        if answer.exit_code != 0:
            raise BadInputError(f"{path}: cannot make this folder on {self.name}: {answer.stderr.strip()}")

    def tail(self, path: str, offset: int) -> bytes:
        """Return up to 1 MiB of the file from ``offset`` on; nothing where it does not exist yet."""

        def read(sftp: SFTPClient) -> bytes:
            with _open(sftp, path) as file:
                end = min(file.stat().st_size or 0, offset + _PIECE_BYTES)
                starts = range(offset, end, _REQUEST_BYTES)
                return b"".join(file.readv([(at, min(_REQUEST_BYTES, end - at)) for at in starts]))

        try:
            return self._files(read)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise RefusedError(f"{path}: cannot be read on {self.name}: {_why(error)}") from None

    def _files(self, act: Callable[[SFTPClient], T]) -> T:
        """Do something with files, and once more over a new connection where the first one broke.

        Raises OSError with what the server says of the file, and RefusedError for all else.
        """
        from paramiko import SFTPError, SSHException

        for again in (True, False):
            try:
                return act(self._sftp())
            except (SSHException, SFTPError, EOFError, OSError) as error:
                if isinstance(error, OSError) and self._sftp_lives():
                    raise
                self.close()
                if not again:
                    raise RefusedError(
                        f"{self.name} gives no access to files: {error}", f"try sftp {self.name}"
                    ) from None
        raise AssertionError

    def _sftp_lives(self) -> bool:
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
            self._sftp_client = SFTPClient.from_transport(self._link.transport)
            assert self._sftp_client is not None  # noqa: S101
            self._remove_unfinished(self._sftp_client)
        return self._sftp_client

    def _remove_unfinished(self, sftp: SFTPClient) -> None:
        while self._unfinished:
            with suppress(FileNotFoundError):
                sftp.remove(self._unfinished[-1])
            self._unfinished.pop()

    def _again(self, act: Callable[[], T]) -> T:
        """Do something harmless, and once more where the connection broke."""
        try:
            return act()
        except NoAnswerError:
            return act()


class _Timeout(Exception):
    """The time for an answer is over."""


def _exchange(channel: Channel, stdin: bytes, timeout_s: float | None) -> tuple[int, bytes, bytes]:
    """Give a command its stdin and return its exit status (below 0: none came) and what it printed."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    printed: dict[str, list[bytes]] = {"out": [], "err": []}

    def read(name: str, receive: Callable[[int], bytes]) -> None:
        with suppress(OSError):
            while data := receive(1 << 16):
                printed[name].append(data)

    def write() -> None:
        with suppress(OSError):  # a command need not read its stdin
            for at in range(0, len(stdin), _PIECE_BYTES):  # sendall copies what is left again and again
                channel.sendall(stdin[at : at + _PIECE_BYTES])
            channel.shutdown_write()

    workers = [
        threading.Thread(target=read, args=("out", channel.recv), daemon=True),
        threading.Thread(target=read, args=("err", channel.recv_stderr), daemon=True),
        threading.Thread(target=write, daemon=True),
    ]
    for worker in workers:
        worker.start()
    for worker in workers[:2]:
        worker.join(None if until is None else max(0.0, until - time.monotonic()))
        if worker.is_alive():
            raise _Timeout
    if not channel.status_event.wait(None if until is None else max(0.0, until - time.monotonic())):
        raise _Timeout  # it closed its output and goes on
    return channel.recv_exit_status(), b"".join(printed["out"]), b"".join(printed["err"])


def _open(sftp: SFTPClient, path: str) -> SFTPFile:
    """Open a file for reading; a lost connection raises in the thread that reads, and only there."""
    file: Any = sftp.open(os.fsencode(path), "rb")
    # prefetch() and readv() send their requests in a thread of paramiko's that prints a traceback when the
    # connection is lost. That thread takes no hook, so its private method is wrapped here. Reading without
    # both is no way out: each 32 KiB would then wait for one round trip.
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


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
