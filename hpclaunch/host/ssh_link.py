"""The connection to a host: socket, jump hosts, host key, login."""

import base64
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import Any

from paramiko import Channel, ProxyCommand, SSHException, Transport
from paramiko.ssh_exception import IncompatiblePeer

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host import known_hosts
from hpclaunch.host.host_interface import Ask, NoConnectionError
from hpclaunch.host.ssh_auth import ask_on_terminal, authenticate
from hpclaunch.host.ssh_config import Login, resolve
from hpclaunch.package_data import note_text

_DEAD_AFTER_S = 60
"""The connection counts as lost when data that were sent stay without an acknowledgement for this time."""
_MAX_JUMPS = 16
_TYPING_S = 300.0
"""Time for the user to answer the questions of a login."""
_PARAMIKO_NAMES = {
    "Ciphers": "ciphers",
    "MACs": "digests",
    "KexAlgorithms": "kex",
    "HostKeyAlgorithms": "key_types",
}

_RSA = ["rsa-sha2-512", "rsa-sha2-256"]  # signatures of the key type ssh-rsa, RFC 8332


def open_transport(
    destination: str, config: Path | None, ask: Ask | None, usual_jumps: Sequence[str], stack: ExitStack
) -> Transport:
    """Connect and log in; raises RefusedError, or BadInputError for a configuration that cannot be used.

    ``config`` and ``usual_jumps`` as for ``resolve``; ``ask``: None: on the terminal. The connection
    and those to jump hosts below it are closed with ``stack``. NoConnectionError: it is the network.
    """
    login = resolve(destination, config, usual_jumps)
    return _Way(config, ask or ask_on_terminal, stack).open(login, login.jumps, (destination,))


class _Way:
    """The connections to a host and to the jump hosts before it, which are closed with ``stack``."""

    def __init__(self, config: Path | None, ask: Ask, stack: ExitStack) -> None:
        self._config, self._ask, self._stack = config, ask, stack

    def open(self, login: Login, jumps: Sequence[str], seen: tuple[str, ...]) -> Transport:
        """Open the transport to a host through ``jumps``; ``seen``: the hosts since the destination."""
        sock: socket.socket | Channel | ProxyCommand
        if jumps:
            sock = self._behind(jumps, login, seen)
        elif login.proxy_command:
            sock = _by_command(login)
        else:
            sock = _direct(login)
        self._stack.callback(sock.close)
        transport = _handshake(sock, login)
        self._stack.callback(transport.close)
        _guarded(login, lambda: authenticate(transport, login, self._ask))
        transport.set_keepalive(login.keepalive_s)
        return transport

    def _behind(self, jumps: Sequence[str], login: Login, seen: tuple[str, ...]) -> Channel:
        """As in ssh, the last jump host is reached through those before it, else by its own configuration."""
        *before, last = jumps
        if last in seen or len(seen) == _MAX_JUMPS:
            raise BadInputError(f"ProxyJump goes in a circle: {' -> '.join((*seen, last))}")
        jump = resolve(last, self._config)
        through = self.open(jump, before or jump.jumps, (*seen, last))
        try:
            place, here = (login.hostname, login.port), ("127.0.0.1", 0)
            return through.open_channel("direct-tcpip", place, here, timeout=login.connect_timeout_s)
        except (SSHException, EOFError, OSError) as error:
            raise NoConnectionError.case(
                "ssh: not reached through a host", login=login, jump=last, error=error
            ) from None


def _guarded(login: Login, step: Callable[[], None]) -> None:
    """Do one step of connecting; raise RefusedError for algorithms, NoConnectionError for other errors."""
    try:
        step()
    except (SSHException, EOFError, OSError) as error:
        reason = str(error) or "the host closed the connection"
        kind = RefusedError if isinstance(error, IncompatiblePeer) else NoConnectionError
        raise kind(
            f"{login.destination}: no ssh connection: {reason}", f"try {_ssh_words(login, '-v')}"
        ) from None


def _direct(login: Login) -> socket.socket:
    try:
        sock = socket.create_connection((login.hostname, login.port), login.connect_timeout_s)
    except OSError as error:
        raise NoConnectionError.case("ssh: not reached", login=login, error=error.strerror or error) from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only; elsewhere the system's own limit holds
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER_S * 1000)
    return sock


def _by_command(login: Login) -> ProxyCommand:
    class Command(ProxyCommand):
        """One whose end is the end of the connection: paramiko 5.1 reads on until its time is over."""

        def recv(self, size: int) -> bytes:
            output: Any = self.process.stdout
            if not select([output], [], [], self.timeout)[0]:
                raise TimeoutError
            return os.read(output.fileno(), size)

    try:
        return Command(shlex.join(["sh", "-c", f"exec {login.proxy_command}"]))  # as ssh runs it
    except (OSError, ValueError) as error:
        raise RefusedError(note_text("ssh: ProxyCommand", login=login, error=error)) from None


def _handshake(sock: socket.socket | Channel | ProxyCommand, login: Login) -> Transport:
    transport = Transport(sock)
    transport.banner_timeout = login.connect_timeout_s
    transport.auth_timeout = _TYPING_S
    name = known_hosts.listed_name(login.hostname, login.port, login.host_key_alias)
    known: list[known_hosts.KnownKey] = []
    for file in (*login.user_known_hosts, *login.global_known_hosts):
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadInputError(f"{file}: cannot be read: {error.strerror}") from None
        known += known_hosts.read_known_hosts(text, file)
    try:
        _restrict(transport, login, known_hosts.known_types(known, name))
        _guarded(login, lambda: _agree(transport, login.connect_timeout_s))
        key = transport.get_remote_server_key()
        shown = known_hosts.ShownKey(
            name=name, destination=_ssh_words(login), type=key.get_name(), key=key.asbytes()
        )
        _refuse_revoked(shown, login)
        known_hosts.check_host_key(
            shown, known, (*login.user_known_hosts, "~/.ssh/known_hosts")[0], login.unusable
        )
    except BaseException:
        transport.close()
        raise
    return transport


def _agree(transport: Transport, timeout_s: float) -> None:
    transport.start_client(timeout=timeout_s)
    if not transport.initial_kex_done:  # paramiko does not raise when the time is over
        raise SSHException(f"no answer of an ssh server within {timeout_s:g} s")


def _ssh_words(login: Login, *options: str) -> str:
    """Return a command line of ssh for the destination; a ``host:port`` is an ``ssh://`` for it."""
    uri = "ssh://" if ":" in login.destination and not login.destination.startswith("ssh:") else ""
    return " ".join(["ssh", *options, uri + login.destination])


def _restrict(transport: Transport, login: Login, known: Sequence[str]) -> None:
    """Offer the host what the configuration permits, of host keys those of ``known`` types first."""
    options: Any = transport.get_security_options()
    for option, name in _PARAMIKO_NAMES.items():
        if option in login.algorithms:
            supported = getattr(options, name)
            permitted = login.algorithms[option]
            usable = [each for each in permitted if each in supported]
            if not usable:
                values = {"permitted": ", ".join(permitted), "supported": ", ".join(supported)}
                raise RefusedError.case("ssh: algorithms", login=login, option=option, **values)
            setattr(options, name, usable)
    algorithms = [name for kind in known for name in (_RSA if kind == "ssh-rsa" else [kind])]
    offered = list(options.key_types)
    options.key_types = sorted(offered, key=lambda name: [*algorithms, name].index(name))


def _refuse_revoked(shown: known_hosts.ShownKey, login: Login) -> None:
    """Raise RefusedError for a key that RevokedHostKeys lists, as text or as a key revocation list."""
    file, word = login.revoked_host_keys, base64.b64encode(shown.key)
    if file is None:
        return
    try:
        data = Path(file).read_bytes()
        revoked = _in_krl(file, shown.type, word) if data.startswith(b"SSHKRL\n") else word in data.split()
    except OSError as error:  # ssh refuses every host then
        raise RefusedError(f"RevokedHostKeys {file} cannot be used: {error.strerror}") from None
    if revoked:
        raise RefusedError.case("host key: revoked", shown=shown, file=file)


def _in_krl(file: str, kind: str, key: bytes) -> bool:
    """Ask ssh-keygen(1), KEY REVOCATION LISTS, since OpenSSH 6.2; a list that it cannot read revokes all."""
    command, line = ["ssh-keygen", "-Q", "-f", file, "/dev/stdin"], b"%s %s\n" % (kind.encode(), key)
    return subprocess.run(command, input=line, capture_output=True, check=False).returncode != 0
