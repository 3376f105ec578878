"""The name of a host, and the settings of the user's ssh for it: ``ssh -G HOST`` prints them only.

OpenSSH 6.8 and later, see https://www.openssh.com/txt/release-6.8. Its lines are ``keyword value``, the
keyword in lower case. ssh follows its settings itself when it connects; here hpclaunch adds what they lack.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpclaunch.errors import BadInputError, RefusedError

_TIMEOUT_S = 60.0
"""For one ``ssh -G``: it runs the commands of ``Match exec`` and asks the DNS for canonical names."""
_CONNECT_TIMEOUT_S = 30
_KEEPALIVE_S = 15
"""Where ServerAliveInterval is 0, its default: what waits for a job must see that a connection is dead."""
_PORTS = range(1, 65536)

_PLACE = re.compile(
    r"\[(?P<bracketed>[^\[\]]+)\](?::(?P<port>[0-9]{1,5}))?"
    r"|(?P<name>[^:]+)(?::(?P<name_port>[0-9]{1,5}))?"
    r"|(?P<ipv6>(?:[0-9A-Fa-f.]*:){2}[0-9A-Fa-f:.]*(?:%\w+)?)"
)
# Hosts and users become words of ssh's command line and of hints: no special characters.
_HOSTNAME = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*\$?")

Found = Mapping[str, str]
"""Keywords in lower case, each with its first value, where that is not ``none``."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of ``[user@]host[:port]`` or ``ssh://[user@]host[:port]``."""

    host: str
    user: str | None = None
    port: int | None = None

    def words(self) -> list[str]:
        """Return the words of a command line of ssh that name the host, at its end."""
        user = ["-l", self.user] if self.user else []
        port = ["-p", str(self.port)] if self.port else []
        return [*user, *port, "--", self.host]


def parse_address(text: str) -> Address:
    """Read a destination; raises BadInputError for any other text."""
    destination = text.removeprefix("ssh://").rstrip("/") if text.startswith("ssh://") else text
    user, at, place = destination.rpartition("@")
    host, port = _host_and_port(place)
    user_is_valid = not at or _USER.fullmatch(user)
    if not (_HOSTNAME.fullmatch(host) and user_is_valid and int(port or 1) in _PORTS):
        raise BadInputError(
            f"{text!r} is not a host",
            "give a name of your ssh configuration, or user@host or user@host:port, with a port up to 65535",
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


def added_options(destination: str, config: Path | None, usual_jumps: Sequence[str] = ()) -> list[str]:
    """Return the options of ssh for what its configuration does not say about ``[user@]alias[:port]``.

    ``config``: the file to read instead of the user's and the system's, as ``ssh -F``; ``usual_jumps``: jump
    hosts where the configuration says nothing of how to get there. Raises BadInputError with ssh's own words
    for a configuration that it cannot read, and for jump hosts that lead in a circle.
    """
    address = parse_address(destination)
    found = _ask_ssh(address, ["-F", str(config)] if config else [])
    options: list[str] = []
    if found.get("serveraliveinterval", "0") == "0":
        options += ["-o", f"ServerAliveInterval={_KEEPALIVE_S}"]
    if "connecttimeout" not in found:
        options += ["-o", f"ConnectTimeout={_CONNECT_TIMEOUT_S}"]
    if "proxyjump" in found:
        _refuse_circle(found["proxyjump"], config, (destination,))
    elif usual_jumps and "proxycommand" not in found and not _goes_directly(address, config):
        options += ["-J", ",".join(usual_jumps)]
    return options


def _refuse_circle(jumps: str, config: Path | None, seen: tuple[str, ...]) -> None:
    """Raise BadInputError where the first jump host is reached through itself: ssh would never stop."""
    first, *_ = (part.strip() for part in jumps.split(","))
    address = parse_address(first)
    if first in seen:
        raise BadInputError(f"ProxyJump goes in a circle: {' -> '.join((*seen, first))}")
    found = _ask_ssh(address, ["-F", str(config)] if config else [])
    if "proxyjump" in found:
        _refuse_circle(found["proxyjump"], config, (*seen, first))


def _ask_ssh(address: Address, options: Sequence[str], stdin: str = "") -> Found:
    """Return what ``ssh -G`` prints; raises RefusedError where this machine has no ssh."""
    import subprocess  # only for another host

    command = ["ssh", "-G", "-T", *options, *address.words()]
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, errors="surrogateescape", timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(
            f"ssh -G {address.host} gave no answer within {_TIMEOUT_S:g} s",
            "a command of Match exec, or the DNS (CanonicalizeHostname), may not answer",
        ) from None
    except OSError as error:
        raise RefusedError(
            f"ssh cannot be run: {error.strerror}", "install OpenSSH's client: it makes the connection"
        ) from None
    if done.returncode != 0:
        words = "\n".join(line.rstrip() for line in done.stderr.splitlines() if line.strip())
        raise BadInputError(
            f"ssh -G {address.host}: {words or f'exit status {done.returncode}'}",
            "correct the ssh configuration, so that this command works (OpenSSH 6.8 or later)",
        )
    lines = (line.partition(" ") for line in reversed(done.stdout.splitlines()))
    return {keyword.lower(): value for keyword, _, value in lines if value.lower() != "none"}


def _goes_directly(address: Address, config: Path | None) -> bool:
    """Return whether the configuration says ``ProxyJump none``, for which ``ssh -G`` prints nothing.

    The first value counts: another one, after the whole configuration, is seen only where it has none.
    """
    files = [str(config)] if config else ["~/.ssh/config", "/etc/ssh/ssh_config"]
    lines = [*(f'Include "{file}"' for file in files), "Host *", "ProxyJump nowhere.invalid", ""]
    return "proxyjump" not in _ask_ssh(address, ["-F", "/dev/stdin"], stdin="\n".join(lines))
