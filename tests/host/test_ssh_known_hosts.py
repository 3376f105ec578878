"""Known hosts files, line by line."""

from __future__ import annotations

import base64

import pytest

from hpclaunch.errors import RefusedError
from hpclaunch.host.known_hosts import (
    ShownKey,
    check_host_key,
    fingerprint,
    is_for,
    known_types,
    listed_name,
    read_known_hosts,
)
from tests.in_one_test import in_one_test

ONE, TWO = (base64.b64encode(text).decode() for text in (b"key one", b"key two"))
FILE = f"""\
# comment
host,*.example.org,!bad.example.org ssh-ed25519 {ONE} a comment
[host]:2222 ssh-rsa {TWO}
host ecdsa-sha2-nistp256 {TWO}
@cert-authority *.signed ssh-ed25519 {ONE}
@revoked host ssh-ed25519 {TWO}
damaged ssh-ed25519 //x
short
|1|bad|hash ssh-ed25519 {ONE}
"""
KNOWN = list(read_known_hosts(FILE, "file"))


def shown(name: str, key: bytes) -> ShownKey:
    return ShownKey(name=name, destination=name, type="ssh-ed25519", key=key)


def test_other_lines_are_skipped() -> None:
    assert [known.line for known in KNOWN] == [2, 3, 4, 5, 6, 9]


@in_one_test(
    "name, lines",
    [
        ("host", [2, 4, 6]),
        ("HOST", [2, 4, 6]),
        ("[host]:2222", [3]),
        ("a.example.org", [2]),
        ("bad.example.org", []),
        ("x.signed", [5]),
        ("[host]:22", []),
    ],
)
def test_patterns(name: str, lines: list[int]) -> None:
    assert [known.line for known in KNOWN if is_for(known, name)] == lines


def test_names_are_listed_as_openssh_lists_them() -> None:
    assert listed_name("Host", 22) == "host"
    assert listed_name("Host", 2222) == "[host]:2222"
    assert listed_name("host", 2222, "alias") == "alias"


def test_a_key_is_taken_refused_or_unknown() -> None:
    check_host_key(shown("host", b"key one"), KNOWN, "f")
    with pytest.raises(RefusedError, match="file:6 revokes"):
        check_host_key(shown("host", b"key two"), KNOWN, "f")
    with pytest.raises(RefusedError, match=r"has changed: file:2 .*; file:4 "):
        check_host_key(shown("host", b"key three"), KNOWN, "f")
    # The authority's key is not the host's key; a host that shows a key of another type has changed as well.
    with pytest.raises(RefusedError, match="is not known"):
        check_host_key(shown("x.signed", b"key one"), KNOWN, "f")
    with pytest.raises(RefusedError, match="has changed"):
        check_host_key(shown("[host]:2222", b"key one"), KNOWN, "f")


def test_the_types_to_request_are_those_of_the_hosts_own_lines() -> None:
    assert known_types(KNOWN, "host") == ["ssh-ed25519", "ecdsa-sha2-nistp256"]
    assert known_types(KNOWN, "x.signed") == []


def test_the_fingerprint_is_openssh_s() -> None:
    assert fingerprint(b"") == "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
