"""Logging in: keys of the agent and of files, then questions on the terminal (passwords, one-time codes)."""

from __future__ import annotations

import getpass
import os
import queue
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hpclaunch.errors import RefusedError
from hpclaunch.host.ssh_config import Login

if TYPE_CHECKING:
    from paramiko import PKey, Transport

Ask = Callable[[str, bool], str]
"""Asks the user: prompt, whether the answer may be visible. Raises RefusedError where that is impossible."""

_TRIES = 3  # ssh's NumberOfPasswordPrompts


def ask_on_terminal(prompt: str, echo: bool) -> str:
    """Ask on the terminal, wherever stdin and stdout lead; raises RefusedError where there is no terminal."""
    try:
        with open("/dev/tty", "r+b", buffering=0):
            pass
    except OSError:
        raise RefusedError(
            f"the login asks {prompt.strip()!r}, and there is no terminal for the answer",
            "log in with a key (ssh-add), or run the command in a terminal",
        ) from None
    if not echo:
        return getpass.getpass(prompt)
    with open("/dev/tty", "w") as out, open("/dev/tty") as answers:
        out.write(prompt)
        out.flush()
        return answers.readline().rstrip("\n")


def authenticate(transport: Transport, login: Login, ask: Ask) -> None:
    """Log in by the methods that the host accepts, in several steps where it requires them.

    Raises RefusedError with the methods and keys that were tried.
    """
    attempt = _Attempt(transport, login, ask)
    offered = attempt.offered()
    while not transport.is_authenticated():
        method = next((m for m in attempt.methods if m in offered), None)
        if method is None:
            raise RefusedError(
                f"{login.destination}: the login of {login.user} was refused "
                f"(the host accepts {', '.join(offered)}; tried: {', '.join(attempt.tried) or 'nothing'})",
                "check the user's name and which keys the host knows: ssh -v " + login.destination,
            )
        offered = attempt.methods.pop(method)() or offered


class _Attempt:
    """One login. Each method returns the methods of the next step; empty: none is needed, or it failed."""

    def __init__(self, transport: Transport, login: Login, ask: Ask) -> None:
        self.tried: list[str] = []
        self.methods: dict[str, Callable[[], Sequence[str]]] = {
            "publickey": self._by_key,
            "keyboard-interactive": self._by_questions,
            "password": self._by_password,
        }
        self._transport, self._login, self._ask = transport, login, ask

    def offered(self) -> Sequence[str]:
        """Return the methods that the host accepts, from its answer to a login without proof."""
        from paramiko import BadAuthenticationType

        try:
            return self._transport.auth_none(self._login.user)
        except BadAuthenticationType as refusal:
            return refusal.allowed_types

    def _by_key(self) -> Sequence[str]:
        from paramiko import AuthenticationException, SSHException

        with _agent(self._login) as agent_keys:
            for name, load in _keys(self._login, agent_keys, self._ask):
                self.tried.append(name)
                try:
                    return self._transport.auth_publickey(self._login.user, load())
                except RefusedError as error:  # a key that cannot be read does not stop the other keys
                    self.tried[-1] = error.message
                except AuthenticationException:
                    _must_be_connected(self._transport)
                except SSHException as error:  # an agent that does not sign, a key type that is refused
                    _must_be_connected(self._transport)
                    self.tried[-1] += f" ({error})"
        return ()

    def _by_questions(self) -> Sequence[str]:
        """Answer the host's questions; they arrive in paramiko's thread and are asked in this one."""
        from paramiko import AuthenticationException

        for _ in range(_TRIES):
            self.tried.append("questions")
            try:
                return self._one_round()
            except AuthenticationException:
                _must_be_connected(self._transport)
        return ()

    def _one_round(self) -> Sequence[str]:
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
        from paramiko import AuthenticationException

        for _ in range(_TRIES):
            self.tried.append("password")
            password = self._ask(self._prompt("Password: "), False)
            try:
                return self._transport.auth_password(self._login.user, password, fallback=False)
            except AuthenticationException:
                _must_be_connected(self._transport)
        return ()

    def _prompt(self, prompt: str) -> str:
        return f"({self._login.user}@{self._login.hostname}) {prompt}"


def _must_be_connected(transport: Transport) -> None:
    """Raise RefusedError where the host closed the connection: more attempts would only confuse."""
    if not transport.is_active():
        raise RefusedError(
            "the host closed the connection during the login, perhaps after too many attempts",
            "name the right key: IdentityFile and IdentitiesOnly yes in ~/.ssh/config",
        )


@contextmanager
def _agent(login: Login) -> Iterator[list[PKey]]:
    """Give the keys of the agent, none where there is no agent."""
    from paramiko import Agent, SSHException

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


def _keys(login: Login, agent_keys: Sequence[PKey], ask: Ask) -> Iterator[tuple[str, Callable[[], PKey]]]:
    """Yield the keys in ssh's order, each with its name for messages and a function that returns the key.

    First those of the agent that the configuration names, then the agent's other keys, then those in files.
    """
    public_blobs = {file: _public_blob(file) for file in login.identity_files}
    for key in _ordered(agent_keys, public_blobs.values(), login.identities_only):
        yield f"{key.get_name()} of the agent", partial(_same, key)
    in_agent = {key.asbytes() for key in agent_keys}
    for file, blob in public_blobs.items():
        if blob not in in_agent and _is_private_key(file):
            yield file, partial(_load, file, ask)


def _ordered(keys: Sequence[PKey], named_blobs: Collection[bytes | None], only_named: bool) -> list[PKey]:
    named = [key for key in keys if key.asbytes() in named_blobs]
    unnamed = [key for key in keys if key not in named]
    return named if only_named else [*named, *unnamed]


def _same(key: PKey) -> PKey:
    return key


def _is_private_key(file: str) -> bool:
    return os.path.isfile(file) and not file.endswith(".pub")


def _public_blob(file: str) -> bytes | None:
    """Return the public key that belongs to an identity file, without opening the private one."""
    from paramiko.pkey import PublicBlob

    for candidate in (file, f"{file}.pub"):
        try:
            return PublicBlob.from_string(Path(candidate).read_text()).key_blob
        except (OSError, ValueError):
            continue
    return None


def _load(file: str, ask: Ask) -> PKey:
    """Return a private key, with its certificate where there is one.

    Asks for its passphrase where it has one; raises RefusedError where it cannot be read.
    """
    from paramiko import PKey

    for attempt in range(_TRIES + 1):
        passphrase = ask(f"Passphrase of {file}: ", False) if attempt else None
        try:
            # The type stub requires text, the code behind it bytes.
            return PKey.from_path(file, passphrase.encode() if passphrase else None)  # type: ignore[arg-type]
        except TypeError:  # the cryptography library, for an encrypted key without a passphrase
            continue
        except Exception as error:
            if not attempt:
                raise RefusedError(f"{file} cannot be used: {error}") from None
    raise RefusedError(f"{file}: wrong passphrase")
