"""The user's ssh configuration, compared with what OpenSSH's own client makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.host.ssh_config import Address, Login, parse_address, read_config, resolve

CONFIG = """\
# a comment
IdentityFile ~/.ssh/first_%h_%r
Include parts/*.conf "with space"
Host lumi lu?i-x
  HostName=lumi.example.org
  User  someone
  Port 2222
Host *.inner !bad.inner
  ProxyJump me@lumi:2022,other
  IdentitiesOnly yes
Match host lumi.example.org
  ConnectTimeout 7
  UserKnownHostsFile ~/.ssh/known_%h "/etc/with space"
Host *
  User default
  ServerAliveInterval 99
"""
PARTS = {
    "parts/a.conf": "Host included\n  HostName included.example.org\n  ProxyCommand nc %h %p\n",
    "parts/b.conf": "  Port 4444\nHost last\n  Include deep\n  Port 5555\n",
    "deep": "  User deepest\n",
    "with space": "Host spaced\n  User spaced\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    (folder / "parts").mkdir(parents=True)
    (folder / "config").write_text(CONFIG)
    for name, text in PARTS.items():
        (folder / name).write_text(text)
    return folder


def look_up(destination: str) -> Login:
    return resolve(destination, read_config(system_config=Path("/nowhere")))


def openssh(folder: Path, *words: str) -> dict[str, str]:
    """What ``ssh -G`` says; it looks for Include below the user's real home, so paths are made absolute."""
    for path in (folder / "config", *(folder / name for name in PARTS)):
        text = path.read_text().replace("Include parts", f"Include {folder}/parts")
        text = text.replace('"with space"', f'"{folder}/with space"').replace(
            "Include deep", f"Include {folder}/deep"
        )
        path.write_text(text)
    done = subprocess.run(
        ["ssh", "-G", "-F", str(folder / "config"), *words], capture_output=True, text=True, check=True
    )
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())


@pytest.mark.sshd
@pytest.mark.parametrize(
    "alias", ["lumi", "luxi-x", "a.inner", "bad.inner", "included", "last", "spaced", "else"]
)
def test_settings_are_read_as_openssh_reads_them(folder: Path, alias: str) -> None:
    login, theirs = look_up(alias), openssh(folder, alias)
    ours = (login.hostname, str(login.port), login.user, ",".join(login.jumps), str(login.keepalive_s))
    names = ("hostname", "port", "user", "proxyjump", "serveraliveinterval")
    assert ours == tuple(theirs.get(name, "") for name in names)
    assert ("yes" if login.identities_only else "no") == theirs["identitiesonly"]
    assert (login.proxy_command or "none") == theirs.get("proxycommand", "none").replace(
        "%h", login.hostname
    ).replace("%p", str(login.port))
    assert login.connect_timeout_s == int(theirs["connecttimeout"].replace("none", "30"))


def test_the_destination_has_priority(folder: Path) -> None:
    login = look_up("me@lumi:99")
    assert (login.hostname, login.port, login.user) == ("lumi.example.org", 99, "me")
    assert login.identity_files == (f"{folder}/first_lumi.example.org_me",)
    assert login.user_known_hosts == (f"{folder}/known_lumi.example.org", "/etc/with space")
    assert look_up("me@included:77").proxy_command == "nc included.example.org 77"


def test_without_a_configuration_the_defaults_of_ssh_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    login = look_up("somebody@login.example.org")
    names = ("id_ed25519", "id_ecdsa", "id_rsa")
    assert login.identity_files == tuple(f"{tmp_path}/.ssh/{name}" for name in names)
    assert login.user_known_hosts[0] == f"{tmp_path}/.ssh/known_hosts"
    assert (login.port, login.jumps, login.agent, login.keepalive_s) == (22, (), "/agent", 15)


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
        ("Host a\nPort\n", "config:2: 'Port' is not a setting"),
        ("Include ~/.ssh/config\n", "16 files include one another"),
        ("Port many\n", "port 'many' is not a valid number"),
        ("Host 'a\n", "the ssh configuration of there"),
        ("HostName $(x)\n", "which is not a host"),
        ("UserKnownHostsFile 'a\n", "cannot be read"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused(folder: Path, text: str, words: str) -> None:
    (folder / "config").write_text(text)
    with pytest.raises(BadInputError) as caught:
        look_up("there")
    assert words in caught.value.message
