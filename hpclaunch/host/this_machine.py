"""This machine as a host, what tells it from others, and the host of a name."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hpclaunch.atomic_file import new_folder, write_file, write_files
from hpclaunch.errors import BadInputError, RefusedError, note_text
from hpclaunch.host.host_interface import Call, Host, NoAnswerError, UnreadableFileError


class LocalHost(Host):
    """Commands and files of this machine; see Host."""

    name = "this machine"
    repeats = False
    _piece_bytes = 1 << 20  # status files, scripts and results are small

    def _run(self, call: Call) -> tuple[int, bytes, bytes]:
        """Run a program in its own session, so that Ctrl-C reaches hpclaunch only and not, say, sbatch."""
        import subprocess  # commands that only read records do without it

        program, cwd, limit_s = call.argv[0], call.cwd, call.timeout_s
        if cwd is not None and not Path(cwd).is_dir():
            raise RefusedError(f"cannot run {program} in {cwd}: no such folder")
        try:
            done = subprocess.run(
                list(call.argv),
                input=call.stdin or b"",
                capture_output=True,
                timeout=limit_s,
                env=_environment(call.env) if call.env else None,
                cwd=cwd,
                start_new_session=True,
                check=False,
            )
        except FileNotFoundError:
            raise RefusedError.case("host: no program", program=program, name=self.name) from None
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"{program} gave no answer within {limit_s:g} s on {self.name}") from None
        except OSError as error:
            raise RefusedError(f"{program} cannot be run on {self.name}: {error.strerror}") from None
        return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout, done.stderr

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file at once, durably."""
        try:
            write_file(Path(path), data, mode)
        except OSError as error:
            raise BadInputError(f"{path}: cannot be written: {error.strerror}") from None

    def read_file(self, path: str) -> bytes | None:
        """Return a file's bytes; None: it does not exist."""
        return self._read(path, 0, -1)

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the files that exist."""
        found = ((path, self.read_file(path)) for path in paths)
        return {path: data for path, data in found if data is not None}

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists at that path."""
        return Path(path).exists()

    def make_folder(self, path: str, *, private: bool = False) -> None:
        """Make a folder and those above it."""
        try:
            Path(path).mkdir(0o700 if private else 0o777, parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"{path}: cannot make this folder: {error.strerror}") from None

    def write_folder(self, path: str, files: Mapping[str, bytes]) -> None:
        """Make a folder with these files at once, unless it exists."""
        try:
            if not Path(path).is_dir():
                with new_folder(Path(path)) as new:
                    write_files(new, files)
        except OSError as error:
            raise BadInputError(f"{path}: cannot make this folder: {error.strerror}") from None

    def _read(self, path: str, offset: int, most: int) -> bytes | None:
        try:
            with open(path, "rb", opener=open_at_once) as file:
                if offset:
                    file.seek(offset)  # not of a pipe, which cannot
                return file.read(most)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):  # the last: /proc/PID/stat
            return None
        except OSError as error:
            raise UnreadableFileError(f"{path}: cannot be read: {error.strerror}") from None


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for somebody who writes, should it be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**os.environ, **changes}.items() if value is not None}


class MachineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that must be equal for a process id to mean the same process; empty where it cannot be read.

    Machines that share a home differ in ``boot_id``, as does one machine after a restart. A container shares
    it, and often the host's name, but has its own numbers of processes (man 7 pid_namespaces).
    """

    host: str
    boot_id: str
    pid_namespace: str

    def sees_processes_of(self, other: "MachineIdentity | None") -> bool:
        """Return whether a process id there is the same process here; False where that is not certain."""
        return other == self and all((self.host, self.boot_id, self.pid_namespace))


def machine_identity() -> MachineIdentity:
    """Return the identity of the machine, or container, that this process runs in."""
    boot_id = pid_namespace = ""
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot_id = file.read().strip()
        pid_namespace = os.readlink("/proc/self/ns/pid")
    return MachineIdentity(host=os.uname().nodename, boot_id=boot_id, pid_namespace=pid_namespace)


@contextmanager
def open_host(name: str | None) -> Iterator[Host]:
    """Yield this machine for None, else ``[user@]host[:port]`` over one ssh connection.

    Raises RefusedError where the host cannot be reached, its key is unknown or changed, or it refuses.
    """
    if name is None:
        yield LocalHost()
        return
    import shutil  # few commands leave this machine

    from hpclaunch.host.ssh import connect

    if shutil.which("ssh") is None:
        print(f"hpclaunch: {note_text('ssh: no program')}", file=sys.stderr)
    with connect(name) as host:
        yield host
