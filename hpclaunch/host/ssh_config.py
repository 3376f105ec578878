"""Meaning of a host's name: its address, the user who logs in, keys and jump hosts, as ``ssh -G`` says it.

``ssh -G HOST`` prints all settings that ssh would use, and connects to nothing: OpenSSH 6.8 and later, see
https://www.openssh.com/txt/release-6.8. So Host, Match, Include, CanonicalizeHostname and times mean what
they mean to the user's own ssh, whatever its version. Its lines are ``keyword value``, the keyword in lower
case. OpenSSH 9.2 leaves ``~`` and tokens in IdentityFile, CertificateFile, RevokedHostKeys and ProxyCommand,
and has expanded those of UserKnownHostsFile and IdentityAgent; other versions may leave a ``~`` there, too.
"""

import getpass
import os
import pwd
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.package_data import package_constants, package_patterns

_WORD = package_constants("host/forms.yaml", "ssh_config")
_FORM = package_patterns("host/forms.yaml", "ssh_config")
_SSH = package_constants("host/ssh_words.yaml", "config")
_DEFAULTS: Mapping[str, list[str]] = _SSH.defaults
_PORTS = range(1, 65536)


Found = Mapping[str, list[str]]
"""Keywords in lower case, each with its values."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """Where to log in, as which user, and how to get there; all paths are absolute."""

    destination: str
    hostname: str
    port: int
    user: str
    identity_files: tuple[str, ...]
    certificate_files: tuple[str, ...]
    identities_only: bool
    agent: str | None
    methods: tuple[str, ...]
    unusable: tuple[str, ...]
    jumps: tuple[str, ...]
    proxy_command: str | None
    user_known_hosts: tuple[str, ...]
    global_known_hosts: tuple[str, ...]
    revoked_host_keys: str | None
    host_key_alias: str | None
    algorithms: Mapping[str, tuple[str, ...]]
    connect_timeout_s: int
    keepalive_s: int


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
    user_is_valid = not at or _FORM.user.fullmatch(user)
    if not (_FORM.hostname.fullmatch(host) and user_is_valid and int(port or 1) in _PORTS):
        raise BadInputError.case("ssh: no host", text=text)
    return Address(host=host, user=user or None, port=int(port) if port else None)


def split_route(text: str) -> tuple[tuple[str, ...], str]:
    """Return jump hosts and destination of ``JUMP,...,DESTINATION``; raises BadInputError."""
    *jumps, destination = text.split(",")
    for each in (*jumps, destination):
        parse_address(each)
    return tuple(jumps), destination


def _host_and_port(place: str) -> tuple[str, str | None]:
    """Return the host, empty where the text has none, and the port, if there is one."""
    match = _FORM.place.fullmatch(place)
    if match is None:
        return "", None
    return match["bracketed"] or match["name"] or match["ipv6"], match["port"] or match["name_port"]


def resolve(destination: str, config: Path | None, usual_jumps: Sequence[str] = ()) -> Login:
    """Return what ssh knows of ``[user@]alias[:port]``; user and port of the destination go first.

    ``config``: the file to read instead of the user's and the system's, as ``ssh -F``; ``usual_jumps``: jump
    hosts where the configuration says nothing of how to get there. Raises BadInputError with ssh's own words
    for a configuration that it cannot read, and for a setting that cannot be used.
    """
    address = parse_address(destination)
    found = _ask_ssh(address, ["-F", str(config)] if config else [])
    hostname, port, user = _place(destination, address, found)
    tokens = _tokens(address.host, hostname, port, user, _one(found, "hostkeyalias"))
    jumps, proxy_command = _jumps(found, tokens), _proxy_command(destination, found, tokens)
    if usual_jumps and not (jumps or proxy_command or _goes_directly(address, config)):
        jumps = tuple(usual_jumps)
    return Login(
        destination=destination,
        hostname=hostname,
        port=port,
        user=user,
        identity_files=_files(found, "identityfile", tokens),
        certificate_files=_files(found, "certificatefile", tokens),
        identities_only=_is_on(found, "identitiesonly"),
        agent=_agent(found),
        methods=_methods(found),
        unusable=tuple(name for name in _SSH.unusable if _is_on(found, name.lower())),
        jumps=jumps,
        proxy_command=proxy_command,
        user_known_hosts=_known_hosts_files(found, "userknownhostsfile"),
        global_known_hosts=_known_hosts_files(found, "globalknownhostsfile"),
        revoked_host_keys=next(iter(_files(found, "revokedhostkeys", tokens)), None),
        host_key_alias=_one(found, "hostkeyalias"),
        algorithms=_algorithms(found),
        connect_timeout_s=_number(found, "connecttimeout", _WORD.connect_timeout_s),
        keepalive_s=_number(found, "serveraliveinterval", _WORD.keepalive_s),
    )


def _ask_ssh(address: Address, options: Sequence[str], stdin: str = "") -> Found:
    """Return what ``ssh -G`` prints; the defaults where this machine has no ssh."""
    import subprocess  # only for another host

    own = ["-l", address.user] if address.user else []
    own += ["-p", str(address.port)] if address.port else []
    command = ["ssh", "-G", "-T", *options, *own, "--", address.host]
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_WORD.timeout_s,
        )
    except FileNotFoundError:
        return _DEFAULTS
    except subprocess.TimeoutExpired:
        raise RefusedError.case(
            "ssh: configuration too slow", address=address, limit_s=_WORD.timeout_s
        ) from None
    except OSError as error:
        raise RefusedError(f"ssh cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        words = "\n".join(map(str.rstrip, filter(str.strip, done.stderr.splitlines())))
        raise BadInputError.case(
            "ssh: configuration", address=address, words=words or f"exit status {done.returncode}"
        )
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        keyword, _, value = line.partition(" ")
        found.setdefault(keyword.lower(), []).append(value)
    return found


def _place(destination: str, address: Address, found: Found) -> tuple[str, int, str]:
    hostname = _one(found, "hostname") or address.host.lower()
    user = _one(found, "user") or address.user or getpass.getuser()
    port = _number(found, "port", address.port or 22)
    if not (_FORM.hostname.fullmatch(hostname) and _FORM.user.fullmatch(user) and port in _PORTS):
        raise BadInputError.case("ssh: not a host", at=destination, user=user, hostname=hostname, port=port)
    return hostname, port, user


def _goes_directly(address: Address, config: Path | None) -> bool:
    """Return whether the configuration says ``ProxyJump none``, for which ``ssh -G`` prints nothing.

    The first value counts: another one, after the whole configuration, is seen only where it has none.
    """
    files = [str(config)] if config else ["~/.ssh/config", "/etc/ssh/ssh_config"]
    lines = [*(f'Include "{file}"' for file in files), "Host *", "ProxyJump nowhere.invalid", ""]
    found = _ask_ssh(address, ["-F", "/dev/stdin"], stdin="\n".join(lines))
    return found is not _DEFAULTS and "proxyjump" not in found


def _one(found: Found, keyword: str) -> str | None:
    """Return the first value; None: there is none, or it is ``none``."""
    value = found[keyword][0].strip() if keyword in found else "none"
    return None if value.lower() == "none" else value


def _is_on(found: Found, keyword: str, default: str = "no") -> bool:
    """Return whether an option is set and not ``no``, which some versions write as ``false``."""
    return (_one(found, keyword) or default) not in ("no", "false")


def _number(found: Found, keyword: str, default: int) -> int:
    """Return a number, the default for ``none`` and 0."""
    text = _one(found, keyword) or "0"
    if not text.isdecimal():
        raise BadInputError(f"ssh configuration: {keyword} {text!r} is not a number")
    return int(text) or default


def _proxy_command(destination: str, found: Found, tokens: Mapping[str, str]) -> str | None:
    command = _one(found, "proxycommand")
    if command and _is_on(found, "proxyusefdpass"):
        raise RefusedError.case("ssh: ProxyUseFDPass", destination=destination)
    return _expanded(command, tokens, "ProxyCommand") if command else None


def _jumps(found: Found, tokens: Mapping[str, str]) -> tuple[str, ...]:
    text = _one(found, "proxyjump")
    if text is None:
        return ()
    jumps = tuple(part.strip() for part in _expanded(text, tokens, "ProxyJump").split(","))
    for jump in jumps:
        parse_address(jump)
    return jumps


def _methods(found: Found) -> tuple[str, ...]:
    usual = [
        method
        for method, options in _SSH.methods.items()
        if all(_is_on(found, option, default="yes") for option in options)
    ]
    preferred = _one(found, "preferredauthentications")
    return tuple(each for each in preferred.split(",") if each in usual) if preferred else tuple(usual)


def _algorithms(found: Found) -> dict[str, tuple[str, ...]]:
    """Return the lists that are complete; one that changes ssh's own, as by ``+``, is of an old ssh."""
    texts = {name: _one(found, name.lower()) for name in _SSH.algorithms}
    return {name: tuple(text.split(",")) for name, text in texts.items() if text and text[0] not in "+-^"}


def _home() -> str:
    """Return the home folder as ssh finds it: that of the user database, whatever HOME is."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


def _tokens(name: str, hostname: str, port: int, user: str, alias: str | None) -> dict[str, str]:
    """Return ssh_config(5), TOKENS, but %C and %j, which differ between versions."""
    here = socket.gethostname()
    tokens = {"%": "%", "d": _home(), "h": hostname, "i": str(os.getuid()), "k": alias or name, "n": name}
    return tokens | {
        "L": here.partition(".")[0],
        "l": here,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }


def _expanded(text: str, tokens: Mapping[str, str], option: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in tokens:
            raise BadInputError(f"ssh configuration: {option} {text!r}: {match[0]!r} is not supported")
        return tokens[match[1]]

    return re.sub("%(.?)", value, text)


def _files(found: Found, keyword: str, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files of a keyword with one file per line."""
    names = (name.strip().strip('"') for name in found.get(keyword, []))
    return tuple(_path(_expanded(name, tokens, keyword)) for name in names if name.lower() != "none")


def _path(name: str) -> str:
    """Expand ``~`` as ssh does, and ``${NAME}``, which OpenSSH knows since 8.4."""
    name = re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], match[0]), name)
    return _home() + name[1:] if name == "~" or name.startswith("~/") else os.path.expanduser(name)


def _agent(found: Found) -> str | None:
    """Return the agent's socket: IdentityAgent is a path, ``SSH_AUTH_SOCK``, or a variable as ``$NAME``."""
    setting = found.get("identityagent", ["SSH_AUTH_SOCK"])[0]
    if setting.lower() == "none":
        return None
    if setting == "SSH_AUTH_SOCK" or re.fullmatch(r"\$\w+", setting):
        return os.environ.get(setting.removeprefix("$"))
    return _path(setting)


def _known_hosts_files(found: Found, keyword: str) -> tuple[str, ...]:
    """Return the files of one line. ``ssh -G`` writes no quotes: each begins with ``/`` or ``~``."""
    text = _one(found, keyword)
    return () if text is None else tuple(map(_path, re.split(r" +(?=[/~])", text.strip())))
