"""What a host's name means: asked of OpenSSH's own client, with what it leaves to whoever asks."""

from __future__ import annotations

import getpass
import os
import pwd
import socket
import subprocess
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.ssh_config import Address, Login, parse_address, resolve

pytestmark = pytest.mark.sshd
HOME = pwd.getpwuid(os.getuid()).pw_dir  # where ssh finds it, whatever HOME is
HERE = socket.gethostname()


def look_up(tmp_path: Path, text: str, destination: str = "there") -> Login:
    config = tmp_path / "config"
    config.write_text(text)
    return resolve(destination, config)


SETTINGS = """\
IdentityFile ~/.ssh/first_%h_%r
Include {0}/parts/*.conf "{0}/with space"
Host lumi lu?i-x
  HostName=lumi.example.org
  User  someone
  Port 2222
Match originalhost inner exec "test -d {0}/parts"
  ProxyJump me@lumi:2022,10.0.0.1,[::1]:99
  IdentitiesOnly yes
Match originalhost inner exec "test -d {0}/nothing"
  User nobody
Match host lumi.example.org
  ConnectTimeout 10s
  ServerAliveInterval 1m
Match final all
  User default
  GSSAPIAuthentication yes
"""


def test_match_include_times_and_priorities_are_those_of_ssh(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.conf").write_text("Host included\n  ProxyCommand nc %h %p %r 100%%\n")
    (tmp_path / "with space").write_text("Host spaced\n  User spaced\n")
    text = SETTINGS.format(tmp_path)
    lumi, inner = look_up(tmp_path, text, "lumi"), look_up(tmp_path, text, "inner")
    assert (lumi.hostname, lumi.port, lumi.user) == ("lumi.example.org", 2222, "someone")
    assert (lumi.connect_timeout_s, lumi.keepalive_s) == (10, 60)
    assert lumi.unusable == ("GSSAPIAuthentication",)
    assert lumi.identity_files == (f"{HOME}/.ssh/first_lumi.example.org_someone",)
    assert (inner.user, inner.identities_only) == ("default", True)
    assert inner.jumps == ("me@lumi:2022", "10.0.0.1", "[::1]:99")
    assert look_up(tmp_path, text, "included").proxy_command == "nc included 22 default 100%"
    assert look_up(tmp_path, text, "spaced").user == "spaced"
    own = look_up(tmp_path, text, "me@lumi:99")
    assert (own.hostname, own.port, own.user) == ("lumi.example.org", 99, "me")
    assert own.identity_files == (f"{HOME}/.ssh/first_lumi.example.org_me",)


def test_tokens_that_ssh_leaves_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", "/my keys")
    login = look_up(
        tmp_path,
        "HostName there.example.org\nUser me\nPort 99\nHostKeyAlias alias\n"
        "IdentityFile %d/%h/%n/%p/%r/%k\nIdentityFile ~/%i/%u/%L/%l/%%h\nIdentityFile none\n"
        'CertificateFile "${KEYS}/%r-cert.pub"\n'
        'UserKnownHostsFile ~/known_%h "/my own/%n" /c\nGlobalKnownHostsFile none\n'
        "RevokedHostKeys ~/revoked\nIdentityAgent ~/%h\n",
    )
    user, short = getpass.getuser(), HERE.partition(".")[0]
    assert login.identity_files == (
        f"{HOME}/there.example.org/there/99/me/alias",
        f"{HOME}/{os.getuid()}/{user}/{short}/{HERE}/%h",
    )
    assert login.certificate_files == ("/my keys/me-cert.pub",)
    assert login.user_known_hosts == (f"{HOME}/known_there.example.org", "/my own/there", "/c")
    assert login.global_known_hosts == ()
    assert login.revoked_host_keys == f"{HOME}/revoked"
    assert login.agent == f"{HOME}/there.example.org"


@pytest.mark.parametrize(
    ("setting", "methods"),
    [
        ("", ("publickey", "keyboard-interactive", "password")),
        ("PubkeyAuthentication no", ("keyboard-interactive", "password")),
        ("KbdInteractiveAuthentication no", ("publickey", "password")),
        ("PreferredAuthentications gssapi-with-mic,password,publickey", ("password", "publickey")),
    ],
)
def test_the_ways_to_log_in_are_those_that_the_configuration_permits(
    tmp_path: Path, setting: str, methods: tuple[str, ...]
) -> None:
    assert look_up(tmp_path, setting).methods == methods


@pytest.mark.parametrize(
    ("setting", "agent"),
    [
        ("", "/agent"),
        ("IdentityAgent none", None),
        ("IdentityAgent $OTHER", "/other"),
        ("IdentityAgent /x", "/x"),
    ],
)
def test_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, agent: str | None) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    monkeypatch.setenv("OTHER", "/other")
    assert look_up(tmp_path, setting).agent == agent


def test_without_ssh_the_command_line_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    login = look_up(tmp_path, "User never\nProxyJump never\n", "somebody@LOGIN.example.org:99")
    assert (login.user, login.hostname, login.port) == ("somebody", "login.example.org", 99)
    assert login.identity_files == tuple(f"{HOME}/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ed25519"))
    assert login.user_known_hosts[0] == f"{HOME}/.ssh/known_hosts"
    assert (login.jumps, login.algorithms) == ((), {})


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
        ("IdentityFile %X\n", "identityfile '%X': '%X' is not supported"),
        ("ProxyCommand nc %C\n", "ProxyCommand 'nc %C': '%C' is not supported"),
        ("HostName $(x)\n", "not a host"),
        ("HostName a;b\n", "not a host"),
        ("User a;b\n", "not a host"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInputError) as caught:
        look_up(tmp_path, text)
    assert words.lower() in caught.value.message.lower()


def test_what_ssh_does_not_know_is_its_own_error(tmp_path: Path) -> None:
    """``Match localnetwork`` came with OpenSSH 9.4: what is older refuses it, what is newer looks."""
    text = "Match localnetwork 192.0.2.0/24\n  User intern\nMatch all\n  User outside\n"
    (tmp_path / "config").write_text(text)
    words = ["ssh", "-T", "-G", "-F", str(tmp_path / "config"), "there"]
    theirs = subprocess.run(words, capture_output=True, text=True, check=False)
    if theirs.returncode == 0:
        assert look_up(tmp_path, text).user == "outside"
        return
    with pytest.raises(BadInputError) as caught:
        look_up(tmp_path, text)
    assert caught.value.message == f"ssh -G there: {theirs.stderr.strip()}".replace("\r\n", "\n")
    assert "Unsupported Match attribute localnetwork" in caught.value.message


def test_an_option_that_nothing_here_can_do_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="ProxyUseFDPass is not supported"):
        look_up(tmp_path, "ProxyCommand nc -F %h %p\nProxyUseFDPass yes\n")
