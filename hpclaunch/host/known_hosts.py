"""Known hosts (sshd(8)): the key that a host must show; any other key is refused. Text in, verdict out."""

import base64
import binascii
import hashlib
import hmac
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from hpclaunch.errors import RefusedError


class KnownKey(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a known_hosts file."""

    file: str
    line: int
    marker: str
    hosts: str
    type: str
    key: bytes


class ShownKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key that a host showed and proved to own."""

    name: str
    destination: str
    type: str
    key: bytes


def listed_name(hostname: str, port: int, alias: str | None = None) -> str:
    """Return the name under which a host is listed: ``host``, ``[host]:port``, or its HostKeyAlias."""
    if alias:
        return alias
    return hostname.lower() if port == 22 else f"[{hostname.lower()}]:{port}"


def fingerprint(key: bytes) -> str:
    """Return a key's SHA256 fingerprint as OpenSSH prints it."""
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def read_known_hosts(text: str, file: str) -> Iterator[KnownKey]:
    """Yield the keys of a known_hosts file; other lines are skipped, as ssh does."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        marker = words.pop(0) if words[0].startswith("@") else ""
        if len(words) < 3:
            continue
        try:
            key = base64.b64decode(words[2], validate=True)
        except binascii.Error:
            continue
        yield KnownKey(file=file, line=number, marker=marker, hosts=words[0], type=words[1], key=key)


def is_for(known: KnownKey, name: str) -> bool:
    """Return whether a line is for the host with that listed name."""
    if known.hosts.startswith("|"):
        try:
            _, version, salt, digest = known.hosts.split("|")
            expected = base64.b64decode(digest, validate=True)
            computed = hmac.new(base64.b64decode(salt, validate=True), name.encode(), hashlib.sha1).digest()
        except (ValueError, binascii.Error):
            return False
        return version == "1" and hmac.compare_digest(expected, computed)
    fits = False
    for pattern in known.hosts.lower().split(","):
        # The brackets of [host]:port are ordinary characters.
        if fnmatchcase(name.lower(), pattern.removeprefix("!").replace("[", "[[]")):
            if pattern.startswith("!"):
                return False
            fits = True
    return fits


def known_types(known: Iterable[KnownKey], name: str) -> list[str]:
    """Return the types of a host's known keys: the types to request from it."""
    return list(dict.fromkeys(k.type for k in _accepted(known, name)))


def _accepted(known: Iterable[KnownKey], name: str) -> list[KnownKey]:
    return [k for k in known if not k.marker and is_for(k, name)]


def _trust_of_ssh(known: Iterable[KnownKey], name: str, unusable: Collection[str]) -> str | None:
    """Return by what ssh itself may verify a host that has no known key, where there is something."""
    for k in known:
        if k.marker == "@cert-authority" and is_for(k, name):
            return f"the @cert-authority of {k.file}:{k.line}"
    return next((option for option in ("KnownHostsCommand", "VerifyHostKeyDNS") if option in unusable), None)


def check_host_key(
    shown: ShownKey, known: Sequence[KnownKey], file: str, unusable: Collection[str] = ()
) -> None:
    """Raise RefusedError unless the key that a host showed is one of its known keys.

    ``file``: the file that a new key would be added to; ``unusable``: options that are set and by which ssh,
    but not we, may know the key.
    """
    for k in known:
        if k.marker == "@revoked" and k.key == shown.key and is_for(k, shown.name):
            raise RefusedError.case("host key: revoked line", shown=shown, k=k, key=_words(shown))
    accepted = _accepted(known, shown.name)
    if any(k.key == shown.key for k in accepted):
        return
    if accepted:
        raise _changed(shown, accepted)
    trust = _trust_of_ssh(known, shown.name, unusable)
    if not trust:
        raise _unknown(shown, file)
    # Only ssh can verify it: let ssh fetch its key.
    kind = re.sub(r"ssh-|-sha2-nistp\d+", "", shown.type)
    keys = f"{shown.name} $({shown.destination} cat /etc/ssh/ssh_host_{kind}_key.pub)"
    echo = f'\n  echo "{keys}" >> {shlex.quote(file)}'
    raise RefusedError.case("host key: by ssh only", shown=shown, key=_words(shown), trust=trust, echo=echo)


def _words(key: ShownKey | KnownKey) -> str:
    return f"{key.type} {fingerprint(key.key)}"


def _changed(shown: ShownKey, known: Sequence[KnownKey]) -> RefusedError:
    listed = "; ".join(f"{k.file}:{k.line} has {_words(k)}" for k in known)
    files = list(dict.fromkeys(k.file for k in known))
    removal = " and ".join(f"ssh-keygen -R {shlex.quote(shown.name)} -f {shlex.quote(f)}" for f in files)
    return RefusedError.case("host key: changed", shown=shown, old=listed, key=_words(shown), removal=removal)


def _unknown(shown: ShownKey, file: str) -> RefusedError:
    line = f"{shown.name} {shown.type} {base64.b64encode(shown.key).decode()}"
    echo = f"\n  echo '{line}' >> {shlex.quote(file)}\n"
    return RefusedError.case("host key: not known", shown=shown, key=_words(shown), echo=echo)
