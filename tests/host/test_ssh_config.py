"""The name of a host, and what hpclaunch adds to the settings of the user's ssh."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.ssh_config import Address, added_options, parse_address

pytestmark = pytest.mark.sshd

USUAL = ("-o", "ServerAliveInterval=15", "-o", "ConnectTimeout=30")
CONFIGURATION = """\
Host far
  ServerAliveInterval 1m
  ConnectTimeout 10s
Host behind
  ProxyJump me@first:2022,second
Host command
  ProxyCommand nc %h %p
Host open
  ProxyJump none
Match final all
  User default
"""


def added(tmp_path: Path, text: str, destination: str, *jumps: str) -> tuple[str, ...]:
    (tmp_path / "config").write_text(text)
    return tuple(added_options(destination, tmp_path / "config", jumps))


@pytest.mark.parametrize(
    ("destination", "options"),
    [
        ("me@there:99", (*USUAL, "-J", "jump,other")),
        ("far", ("-J", "jump,other")),
        ("behind", USUAL),
        ("command", USUAL),
        ("open", USUAL),
    ],
)
def test_only_what_the_configuration_does_not_say_is_added(
    tmp_path: Path, destination: str, options: tuple[str, ...]
) -> None:
    assert added(tmp_path, CONFIGURATION, destination, "jump", "other") == options


def test_without_ssh_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="ssh cannot be run: No such file") as caught:
        added(tmp_path, "", "there")
    assert "install OpenSSH" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("login", Address(host="login")),
        ("me@login.example.org", Address(host="login.example.org", user="me")),
        ("me@a:22", Address(host="a", user="me", port=22)),
        ("ssh://me@a:22/", Address(host="a", user="me", port=22)),
        ("[::1]:2222", Address(host="::1", port=2222)),
        ("me@fe80::1%eth0", Address(host="fe80::1%eth0", user="me")),
        ("a@b.org@login", Address(host="login", user="a@b.org")),
    ],
)
def test_destinations(text: str, address: Address) -> None:
    assert parse_address(text) == address


NO_DESTINATIONS = ("", "@", "-oProxyCommand=x", "a b", "$(x)", "a;b", "me@", "@a", "a:0", "a:65536", "a:x",
                   "a:b", "-l@a", "a'b", "ssh://", "x`y`@a")  # fmt: skip


@pytest.mark.parametrize("text", NO_DESTINATIONS)
def test_what_is_not_a_destination_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="is not a host"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Host a\nPort\n", "config line 2: no argument"),
        ("Nonsense yes\n", "config: line 1: Bad configuration option: nonsense"),
        ("Match tagged\n", "config line 1: Bad Match condition"),
        ("ProxyJump a;b\n", "'a;b' is not a host"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        added(tmp_path, text, "there")
    assert words.lower() in caught.value.message.lower()


def test_an_error_of_the_configuration_is_in_the_words_of_ssh(tmp_path: Path) -> None:
    """``Match localnetwork`` came with OpenSSH 9.4: what is older refuses it, what is newer looks."""
    text = "Match localnetwork 192.0.2.0/24\n  User intern\n"
    (tmp_path / "config").write_text(text)
    words = ["ssh", "-T", "-G", "-F", str(tmp_path / "config"), "there"]
    theirs = subprocess.run(words, capture_output=True, text=True, check=False)
    if theirs.returncode == 0:
        assert added(tmp_path, text, "there") == USUAL
        return
    with pytest.raises(BadInputError) as caught:
        added(tmp_path, text, "there")
    assert caught.value.message == f"ssh -G there: {theirs.stderr.strip()}".replace("\r\n", "\n")
    assert "Unsupported Match attribute localnetwork" in caught.value.message
