"""The user's ssh configuration of a host: its address, the user who logs in, and the jump hosts.

Read by paramiko's SSHConfig, which knows Host, Match and the tokens, but not Include, which is read here.
See ssh_config(5).
"""

from __future__ import annotations

import getpass
import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError

SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_LISTS = ("userknownhostsfile", "globalknownhostsfile")
_SEPARATOR = "\x1f"
"""Between the files of a list of ``_LISTS``: their names may hold blanks."""
_DEFAULT_KNOWN_HOSTS = f"~/.ssh/known_hosts{_SEPARATOR}~/.ssh/known_hosts2"
_DEFAULT_GLOBAL_KNOWN_HOSTS = f"/etc/ssh/ssh_known_hosts{_SEPARATOR}/etc/ssh/ssh_known_hosts2"
_INCLUDE_DEPTH = 16  # as ssh's READCONF_MAX_DEPTH

_PORTS = range(1, 65536)

_LINE = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.+)")
_PLACE = re.compile(
    r"\[(?P<bracketed>[^\[\]]+)\](?::(?P<port>\d+))?"
    r"|(?P<name>[^:]+)(?::(?P<name_port>\d+))?"
    r"|(?P<ipv6>(?:[0-9A-Fa-f.]*:){2}[0-9A-Fa-f:.]*(?:%\w+)?)"
)
# Hosts and users become part of shell commands (ProxyCommand, hints of messages): no special characters.
_HOSTNAME = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*\$?")


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """Where to log in, as which user, and how to get there; all paths are absolute."""

    destination: str
    """Unchanged from the user: the host's name in messages."""
    hostname: str
    port: int
    user: str
    identity_files: tuple[str, ...]
    """Private keys to try; files that the configuration names may be missing."""
    identities_only: bool
    agent: str | None
    """Socket of the agent; None: no agent is used."""
    jumps: tuple[str, ...]
    """Jump hosts, in order."""
    proxy_command: str | None
    user_known_hosts: tuple[str, ...]
    global_known_hosts: tuple[str, ...]
    host_key_alias: str | None
    connect_timeout_s: float
    keepalive_s: int
    """0: no keepalive messages."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of ``[user@]host[:port]`` or ``ssh://[user@]host[:port]``."""

    host: str
    user: str | None = None
    port: int | None = None


def parse_address(text: str) -> Address:
    """Read a destination; raises BadInputError for any other text."""
    destination = text.removeprefix("ssh://").rstrip("/") if text.startswith("ssh://") else text
    user, at, place = destination.rpartition("@")
    host, port = _host_and_port(place)
    user_is_valid = not at or _USER.fullmatch(user)
    if not (_HOSTNAME.fullmatch(host) and user_is_valid and int(port or 1) in _PORTS):
        raise BadInputError(
            f"{text!r} is not a host",
            "give a name of your ssh configuration, or user@host or user@host:port",
        )
    return Address(host=host, user=user or None, port=int(port) if port else None)


def split_route(text: str) -> tuple[tuple[str, ...], str]:
    """Return jump hosts and destination of ``JUMP,...,DESTINATION``; raises BadInputError."""
    *jumps, destination = text.split(",")
    for each in (*jumps, destination):
        parse_address(each)
    return tuple(jumps), destination


def _host_and_port(place: str) -> tuple[str, str | None]:
    """Return the host, empty where the text has none, and the port, if there is one."""
    match = _PLACE.fullmatch(place)
    if match is None:
        return "", None
    return match["bracketed"] or match["name"] or match["ipv6"], match["port"] or match["name_port"]


def read_config(user_config: Path | None = None, system_config: Path = SYSTEM_CONFIG) -> tuple[str, ...]:
    """Return the lines of the user's configuration (``~/.ssh/config``), then of the system's.

    Included files are already in their places. Raises BadInputError with the file and the line that cannot be
    read.
    """
    files = (user_config or _ssh_folder() / "config", system_config)
    return tuple(line for path in files for line in ("Host *", *_lines(path, path.parent, "Host *", 0)))


def _ssh_folder() -> Path:
    return Path("~/.ssh").expanduser()


def _lines(path: Path, folder: Path, block: str, depth: int) -> Iterator[str]:
    """Yield a file's lines, with the lines of included files instead of Include.

    ``folder``: where relative names of included files are; ``block``: the Host or Match line that the file's
    first lines belong to; ``depth``: the number of files around this one.
    """
    for number, line in _settings(path):
        match = _LINE.match(line)
        if not match:
            raise BadInputError(f"{path}:{number}: {line!r} is not a setting", "see man ssh_config")
        key, value = match[1].lower(), match[2]
        if key in ("host", "match"):
            block = line
        if key == "include":
            if depth == _INCLUDE_DEPTH:
                raise BadInputError(f"{path}:{number}: {_INCLUDE_DEPTH} files include one another")
            for file in _included(value, folder):
                yield from _lines(file, folder, block, depth + 1)
                yield block  # the next lines belong to the block around the Include
        elif key in _LISTS:  # paramiko removes the quotes of such a list, so they are read here
            yield f"{key} {_SEPARATOR.join(_words(value))}"
        else:
            yield line


def _settings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a file's lines that are neither empty nor comments, each with its number; none for no file."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            yield number, line


def _included(value: str, folder: Path) -> Iterator[Path]:
    for pattern in _words(value):
        pattern = os.path.expanduser(pattern)
        yield from (Path(name) for name in sorted(glob.glob(os.path.join(folder, pattern))))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadInputError(f"ssh configuration: {text!r} cannot be read: {error}") from None


def resolve(destination: str, config: Sequence[str], usual_jumps: Sequence[str] = ()) -> Login:
    """Return the configuration of ``[user@]alias[:port]``; user and port of the destination go first.

    ``usual_jumps``: jump hosts where the configuration says nothing of how to get there. Raises BadInputError
    for a destination or a setting that cannot be used.
    """
    found = _look_up(parse_address(destination), config)
    hostname, user = found["hostname"], found.get("user") or getpass.getuser()
    if not _HOSTNAME.fullmatch(hostname) or not _USER.fullmatch(user):
        raise BadInputError(
            f"{destination}: the ssh configuration leads to {user}@{hostname}, which is not a host"
        )
    port, jump = _number(found, "port", 22), found.get("proxyjump")
    if jump is None:
        jump = "none" if "proxycommand" in found else ",".join(usual_jumps) or "none"
    tokens = {"%%": "%", "%d": str(Path.home()), "%u": getpass.getuser()}
    tokens |= {"%h": hostname, "%p": str(port), "%r": user}
    return Login(
        destination=destination,
        hostname=hostname,
        port=port,
        user=user,
        identity_files=_identity_files(found),
        identities_only=found.get("identitiesonly", "no").lower() == "yes",
        agent=_agent(found.get("identityagent", "SSH_AUTH_SOCK")),
        jumps=() if jump.lower() == "none" else tuple(part.strip() for part in jump.split(",")),
        proxy_command=found.get("proxycommand"),
        user_known_hosts=_files(found.get("userknownhostsfile", _DEFAULT_KNOWN_HOSTS), tokens),
        global_known_hosts=_files(found.get("globalknownhostsfile", _DEFAULT_GLOBAL_KNOWN_HOSTS), tokens),
        host_key_alias=found.get("hostkeyalias"),
        connect_timeout_s=_number(found, "connecttimeout", 30),
        keepalive_s=_number(found, "serveraliveinterval", 15),
    )


def _look_up(address: Address, config: Sequence[str]) -> dict[str, str]:
    """Return the settings for a host; those of the destination come first, so they have priority."""
    from paramiko import SSHConfig
    from paramiko.ssh_exception import SSHException

    own = [f"User {address.user}"] * bool(address.user) + [f"Port {address.port}"] * bool(address.port)
    try:
        found = SSHConfig.from_text("\n".join(["Host *", *own, *config])).lookup(address.host)
    except (SSHException, ValueError, KeyError) as error:
        raise BadInputError(f"the ssh configuration of {address.host}: {error}") from None
    # Of the settings used here only IdentityFile may have several values; None means ProxyCommand none.
    return {
        key: "\n".join(value) if isinstance(value, list) else str(value)
        for key, value in found.items()
        if value is not None
    }


def _number(found: Mapping[str, str], key: str, default: int) -> int:
    text = found.get(key, str(default))
    if text.lower() == "none" and key == "connecttimeout":
        return default
    if not text.isdigit() or (key == "port" and int(text) not in _PORTS):
        raise BadInputError(f"ssh configuration: {key} {text!r} is not a valid number")
    return int(text)


def _identity_files(found: Mapping[str, str]) -> tuple[str, ...]:
    if "identityfile" not in found:
        return tuple(str(_ssh_folder() / name) for name in _DEFAULT_KEYS)
    names = [name.strip('"') for name in found["identityfile"].split("\n")]
    return tuple(os.path.expanduser(name) for name in names if name.lower() != "none")


def _agent(setting: str) -> str | None:
    if setting.lower() == "none":
        return None
    if setting == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK")
    if setting.startswith("$"):
        return os.environ.get(setting.strip("${}"))
    return os.path.expanduser(setting)


def _files(setting: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    if setting.lower() == "none":
        return ()
    names = (re.sub("%.", lambda m: tokens.get(m[0], m[0]), name) for name in setting.split(_SEPARATOR))
    return tuple(os.path.expanduser(name) for name in names)
