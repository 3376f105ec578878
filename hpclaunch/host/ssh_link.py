"""The connection to a host: socket, jump hosts, host key, login.

The login: keys of the agent and of files, then questions on the terminal (passwords, one-time codes).
"""

import base64
import getpass
import os
import queue
import re
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from select import select
from typing import Any

from paramiko import (
    Agent,
    AuthenticationException,
    BadAuthenticationType,
    Channel,
    Message,
    PKey,
    ProxyCommand,
    SSHException,
    Transport,
)
from paramiko.pkey import PublicBlob
from paramiko.ssh_exception import IncompatiblePeer

from hpclaunch.errors import BadInputError, RefusedError, note_text
from hpclaunch.host import known_hosts
from hpclaunch.host.host_interface import Ask, NoConnectionError
from hpclaunch.host.ssh_config import Login, resolve
from hpclaunch.package_data import package_constants

_WORD = package_constants("host/forms.yaml", "ssh_link")
_SSH = package_constants("host/ssh_words.yaml", "link")


class Way:
    """The connections to a host and to the jump hosts before it, which are closed with ``stack``."""

    def __init__(self, config: Path | None, ask: Ask | None, stack: ExitStack) -> None:
        """Nothing is connected yet; ``config`` as for ``resolve``; ``ask``: None: on the terminal."""
        self._config, self._ask, self._stack = config, ask or ask_on_terminal, stack

    def open(self, login: Login, jumps: Sequence[str], seen: tuple[str, ...]) -> Transport:
        """Connect to a host through ``jumps`` and log in; ``seen``: the hosts since the destination.

        Raises RefusedError, or BadInputError for a configuration that cannot be used. NoConnectionError: it
        is the network.
        """
        sock: socket.socket | Channel | ProxyCommand
        if jumps:
            sock = self._behind(jumps, login, seen)
        elif login.proxy_command:
            sock = _by_command(login)
        else:
            try:
                sock = socket.create_connection((login.hostname, login.port), login.connect_timeout_s)
            except OSError as error:
                why = error.strerror or error
                raise NoConnectionError.case("ssh: not reached", login=login, error=why) from None
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only; elsewhere the system's own limit holds
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _WORD.dead_after_s * 1000)
        self._stack.callback(sock.close)
        transport = _handshake(sock, login)
        self._stack.callback(transport.close)
        _guarded(login, lambda: authenticate(transport, login, self._ask))
        transport.set_keepalive(login.keepalive_s)
        return transport

    def _behind(self, jumps: Sequence[str], login: Login, seen: tuple[str, ...]) -> Channel:
        """As in ssh, the last jump host is reached through those before it, else by its own configuration."""
        *before, last = jumps
        if last in seen or len(seen) == _WORD.max_jumps:
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
        words = _ssh_words(login, "-v")
        raise kind.case("ssh: not connected", login=login, reason=reason, words=words) from None


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
    transport.auth_timeout = _WORD.typing_s
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
    for option, name in _SSH.paramiko_names.items():
        if option in login.algorithms:
            supported = getattr(options, name)
            permitted = login.algorithms[option]
            usable = [each for each in permitted if each in supported]
            if not usable:
                values = {"permitted": ", ".join(permitted), "supported": ", ".join(supported)}
                raise RefusedError.case("ssh: algorithms", login=login, option=option, **values)
            setattr(options, name, usable)
    algorithms = [name for kind in known for name in (_WORD.rsa if kind == "ssh-rsa" else [kind])]
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


def ask_on_terminal(prompt: str, echo: bool) -> str:
    """Ask on the terminal, wherever stdin and stdout lead; raises RefusedError where there is no terminal."""
    try:
        with open("/dev/tty", "r+b", buffering=0):
            pass
    except OSError:
        raise RefusedError.case("ssh: no terminal", prompt=prompt.strip()) from None
    if not echo:
        return getpass.getpass(prompt)
    with open("/dev/tty", "w") as out, open("/dev/tty") as answers:
        out.write(prompt)
        out.flush()
        return answers.readline().rstrip("\n")


def authenticate(transport: Transport, login: Login, ask: Ask) -> None:
    """Log in by the methods that the host accepts, in several steps where it requires them.

    Raises RefusedError with the methods and keys that were tried, and with the options by which only ssh may
    log in; NoConnectionError where the connection was lost before anything was asked.
    """
    attempt = _Attempt(transport, login, ask)
    offered = attempt.offered()
    while not transport.is_authenticated():
        method = next((m for m in attempt.methods if m in offered), None)
        if method is None:
            remedies = "".join(
                f"{option} {why}; "
                for name, option, why in _SSH.only_ssh
                if name in offered and option in login.unusable
            )
            values = {"accepts": ", ".join(offered), "tried": ", ".join(attempt.tried) or "nothing"}
            raise RefusedError.case("ssh: login", login=login, remedies=remedies, **values)
        offered = attempt.methods.pop(method)() or offered


class _Attempt:
    """One login. Each method returns the methods of the next step; empty: none is needed, or it failed."""

    def __init__(self, transport: Transport, login: Login, ask: Ask) -> None:
        self.tried: list[str] = []
        methods: dict[str, Callable[[], Sequence[str]]] = {
            "publickey": self._by_key,
            "keyboard-interactive": partial(self._in_tries, "questions", self._by_questions),
            "password": partial(self._in_tries, "password", self._by_password),
        }
        self.methods = {name: methods[name] for name in login.methods}
        self._transport, self._login, self._ask = transport, login, ask

    def offered(self) -> Sequence[str]:
        """Return the methods that the host accepts, from its answer to a login without proof."""
        try:
            return self._transport.auth_none(self._login.user)
        except BadAuthenticationType as refusal:
            return refusal.allowed_types

    def _by_key(self) -> Sequence[str]:
        beside = (f"{file}-cert.pub" for file in self._login.identity_files)
        files = (*self._login.certificate_files, *beside)
        certificates = [blob for file in files if (blob := _public_blob(file))]
        with _agent(self._login) as agent_keys:
            for name, load in _keys(self._login, agent_keys, certificates, self._ask):
                self.tried.append(name)
                try:
                    key = load()
                except RefusedError as error:  # a key that cannot be read does not stop the other keys
                    self.tried[-1] = error.message
                    continue
                if (next_methods := self._offer(key, _certificates_of(key, certificates))) is not None:
                    return next_methods
        return ()

    def _offer(self, key: Any, certificates: Sequence[PublicBlob]) -> Sequence[str] | None:
        """Log in by a key, with each of its certificates and then without; None: all were refused."""
        for key.public_blob in (*certificates, None):
            try:
                methods: Sequence[str] = self._transport.auth_publickey(self._login.user, key)
                return methods
            except AuthenticationException:
                self._must_be_connected()
            except SSHException as error:  # an agent that does not sign, a key type that is refused
                self._must_be_connected()
                self.tried[-1] += f" ({error})"
        return None

    def _in_tries(self, name: str, log_in: Callable[[], Sequence[str]]) -> Sequence[str]:
        for _ in range(_WORD.tries):
            self.tried.append(name)
            try:
                return log_in()
            except AuthenticationException:
                self._must_be_connected()
        return ()

    def _by_questions(self) -> Sequence[str]:
        """Answer the host's questions; they arrive in paramiko's thread and are asked in this one."""
        questions: queue.Queue[list[tuple[str, bool]] | None] = queue.Queue()
        answers: queue.Queue[list[str]] = queue.Queue()
        ended: list[Sequence[str] | Exception] = []

        def handler(title: str, instructions: str, fields: list[tuple[str, bool]]) -> list[str]:
            heading = "".join(f"{text}\n" for text in (title, instructions) if text)
            questions.put([(heading + prompt, echo) for prompt, echo in fields])
            return answers.get()

        def log_in() -> None:
            try:
                ended.append(self._transport.auth_interactive(self._login.user, handler))
            except Exception as error:
                ended.append(error)
            questions.put(None)

        threading.Thread(target=log_in, daemon=True).start()
        try:
            while (fields := questions.get()) is not None:
                answers.put([self._ask(self._prompt(prompt), echo) for prompt, echo in fields])
        except BaseException:
            self._transport.close()
            raise
        if isinstance(ended[0], Exception):
            raise ended[0]
        return ended[0]

    def _by_password(self) -> Sequence[str]:
        password = self._ask(self._prompt("Password: "), False)
        return self._transport.auth_password(self._login.user, password, fallback=False)

    def _must_be_connected(self) -> None:
        """Raise where the connection is closed: by the host, or, at the first key, perhaps by the network."""
        if self._transport.is_active():
            return
        first = len(self.tried) == 1 and self.tried[0] not in ("questions", "password")
        raise (NoConnectionError if first else RefusedError).case("ssh: closed", login=self._login)

    def _prompt(self, prompt: str) -> str:
        return f"({self._login.user}@{self._login.hostname}) {prompt}"


@contextmanager
def _agent(login: Login) -> Iterator[list[PKey]]:
    """Give the keys of the agent, none where there is no agent."""
    before = os.environ.get("SSH_AUTH_SOCK")
    try:
        # The only way to give paramiko an IdentityAgent: Agent() reads the variable and takes no argument.
        os.environ["SSH_AUTH_SOCK"] = login.agent or ""
        try:
            agent = Agent() if login.agent else None
        except (SSHException, OSError):
            agent = None
    finally:
        if before is None:
            del os.environ["SSH_AUTH_SOCK"]
        else:
            os.environ["SSH_AUTH_SOCK"] = before
    try:
        yield list(agent.get_keys()) if agent else []
    finally:
        if agent:
            agent.close()


def _certificates_of(key: Any, certificates: Sequence[PublicBlob]) -> list[PublicBlob]:
    """Return the certificates of a key: those in files, or the one that an agent's key itself is."""
    if key.get_name().endswith("-cert-v01@openssh.com"):
        return [PublicBlob(key.get_name(), key.blob)]
    return [each for each in certificates if _certifies(each, key)]


def _certifies(certificate: PublicBlob, key: PKey) -> bool:
    """Return whether a certificate is for a key: it has its type, a nonce, and then what the key's blob has.

    See OpenSSH's PROTOCOL.certkeys, which holds for all versions since 6.5.
    """
    certificate_part, key_part = Message(certificate.key_blob), Message(key.asbytes())
    kind, _, own_kind = certificate_part.get_string(), certificate_part.get_string(), key_part.get_string()
    return kind.startswith(own_kind) and certificate_part.get_remainder().startswith(key_part.get_remainder())


def _keys(
    login: Login, agent_keys: Sequence[PKey], certificates: Sequence[PublicBlob], ask: Ask
) -> Iterator[tuple[str, Callable[[], PKey]]]:
    """Yield name and reader of each key in ssh's order: the configured ones of the agent, its rest, files."""
    blobs = {file: _public_key(file) for file in login.identity_files}
    named = {*blobs.values(), *(each.key_blob for each in certificates)}

    def is_named(key: PKey) -> bool:
        return key.asbytes() in named or any(_certifies(each, key) for each in certificates)

    for key in sorted(agent_keys, key=is_named, reverse=True):
        if is_named(key) or not login.identities_only:
            yield f"{key.get_name()} of the agent", partial(lambda same: same, key)
    in_agent = {key.asbytes() for key in agent_keys}
    for file, blob in blobs.items():
        if blob not in in_agent and _is_private_key(file):
            yield file, partial(_load, file, ask)


def _is_private_key(file: str) -> bool:
    return os.path.isfile(file) and not file.endswith(".pub")


def _public_key(file: str) -> bytes | None:
    """Return the public key that belongs to an identity file, without opening the private one."""
    blob = _public_blob(file) or _public_blob(f"{file}.pub")
    return blob.key_blob if blob else None


def _public_blob(file: str) -> PublicBlob | None:
    try:
        return PublicBlob.from_string(Path(file).read_text())
    except (OSError, ValueError):
        return None


def _load(file: str, ask: Ask) -> PKey:
    """Return a private key, after its passphrase if it has one; raises RefusedError: it cannot be read."""
    for attempt in range(_WORD.tries + 1):
        passphrase = ask(f"Passphrase of {file}: ", False) if attempt else None
        try:
            # The type stub requires text, the code behind it bytes.
            return PKey.from_path(file, passphrase.encode() if passphrase else None)  # type: ignore[arg-type]
        except TypeError:  # the cryptography library, for an encrypted key without a passphrase
            continue
        except Exception as error:
            if not attempt:
                raise RefusedError(f"{file} cannot be used: {_reason(file, error)}") from None
    raise RefusedError(f"{file}: wrong passphrase")


def _reason(file: str, error: Exception) -> str:
    """Return why a private key cannot be loaded; the public part of OpenSSH's format tells a security key."""
    body = "".join(line for line in Path(file).read_text(errors="replace").split("\n") if "-----" not in line)
    with suppress(ValueError):
        if re.search(rb"sk-[a-z0-9-]+@openssh\.com", base64.b64decode(body)):
            return f"a security key works from an agent only: ssh-add {file}"
    return str(error)
