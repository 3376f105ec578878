"""Where ``ssh HOST`` works, ``--host HOST`` works: stock configurations, jump hosts, certificates."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from hpclaunch.errors import HpclaunchError, RefusedError
from hpclaunch.host.ssh import connect
from tests.host.ssh_client import configure, never, works
from tests.testbed.cluster import AT_HOME, Sshd

pytestmark = [
    pytest.mark.sshd,
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]
ROOT = Path(__file__).parents[2]
USER = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
PROGRAM = """
import sys
from hpclaunch.host.this_machine import open_host
with open_host(sys.argv[1]) as host:
    print(host.run(["echo", "works"]).stdout, end="")
"""

# What the packages install, without comments. Debian 12: read in openssh-client 1:9.2p1. Red Hat: the lines
# of the drop-in are those of public logs (ansible issue 72998 has CentOS 8's); its crypto policy, here in
# /etc/ssh, and the file of SLES 15 are written from memory: no copy of the packages was at hand.
STOCK = {
    "rhel9": {
        "ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n",
        "ssh_config.d/50-redhat.conf": "Match final all\n"
        "\tInclude /etc/ssh/openssh.config\n"
        "\tGSSAPIAuthentication yes\n"
        "\tForwardX11Trusted yes\n"
        "\tSendEnv LANG LC_CTYPE LC_NUMERIC LC_TIME LC_COLLATE LC_MONETARY LC_MESSAGES\n"
        "\tSendEnv LC_PAPER LC_NAME LC_ADDRESS LC_TELEPHONE LC_MEASUREMENT\n"
        "\tSendEnv LC_IDENTIFICATION LC_ALL LANGUAGE\n"
        "\tSendEnv XMODIFIERS\n",
        "openssh.config": "Ciphers aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,"
        "aes128-gcm@openssh.com,aes128-ctr\n"
        "MACs hmac-sha2-256-etm@openssh.com,hmac-sha1-etm@openssh.com,umac-128-etm@openssh.com,"
        "hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha1,umac-128@openssh.com,hmac-sha2-512\n"
        "KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
        "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256,"
        "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512\n"
        "PubkeyAcceptedAlgorithms ecdsa-sha2-nistp256,ecdsa-sha2-nistp256-cert-v01@openssh.com,"
        "ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-ed25519,ssh-ed25519-cert-v01@openssh.com,rsa-sha2-256,"
        "rsa-sha2-256-cert-v01@openssh.com,rsa-sha2-512,rsa-sha2-512-cert-v01@openssh.com\n"
        "CASignatureAlgorithms ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,ssh-ed25519,"
        "rsa-sha2-256,rsa-sha2-512\n"
        "RequiredRSASize 2048\n",
    },
    "debian12": {
        "ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n\nHost *\n    SendEnv LANG LC_*\n"
        "    HashKnownHosts yes\n    GSSAPIAuthentication yes\n",
    },
    "sles15": {
        "ssh_config": "Host *\n  ForwardX11Trusted yes\n  Protocol 2\n"
        "  SendEnv LANG LC_CTYPE LC_NUMERIC LC_TIME LC_COLLATE LC_MONETARY LC_MESSAGES\n"
        "  SendEnv LC_PAPER LC_NAME LC_ADDRESS LC_TELEPHONE LC_MEASUREMENT\n"
        "  SendEnv LC_IDENTIFICATION LC_ALL\n",
    },
}


@pytest.fixture(autouse=True)
def home(ssh_home: Path) -> Path:
    return ssh_home


def refusal(destination: str) -> HpclaunchError:
    with pytest.raises(HpclaunchError) as caught, connect(destination, ask=never):
        pass
    return caught.value


def keygen(*options: str | Path) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, options)], check=True)


def equip(home: Path, server: Sshd) -> None:
    """Give the person a key and a known host, where ssh looks for them."""
    (home / ".ssh" / "id_ed25519").write_text(server.key.read_text())
    (home / ".ssh" / "id_ed25519").chmod(0o600)
    (home / ".ssh" / "known_hosts").write_text(server.known_hosts.read_text())


def at_home(*words: str, etc: Path | str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ETC_SSH": str(etc)}
    command = [str(AT_HOME), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)


@pytest.mark.parametrize("distribution", STOCK)
def test_with_the_stock_configuration_and_the_persons_own_keys(
    plain_sshd: Sshd, home: Path, tmp_path: Path, distribution: str
) -> None:
    """The whole of it, with ~/.ssh and /etc/ssh where ssh itself looks for them."""
    etc = tmp_path / "etc"
    for name, text in STOCK[distribution].items():
        (etc / name).parent.mkdir(parents=True, exist_ok=True)
        (etc / name).write_text(text)
    equip(home, plain_sshd)
    place = f"HostName 127.0.0.1\n  Port {plain_sshd.port}\n"
    configure(home, f"Host cluster\n  {place}", f"Host nokey\n  IdentityFile none\n  {place}")
    theirs = at_home("ssh", "cluster", "echo", "works", etc=etc)
    ours = at_home(sys.executable, "-c", PROGRAM, "cluster", etc=etc)
    assert (theirs.stdout, ours.stdout, ours.stderr) == ("works\n", "works\n", "")
    assert "tried: nothing" in at_home(sys.executable, "-c", PROGRAM, "nokey", etc=etc).stderr


def test_without_ssh_the_persons_own_keys_are_used_and_it_is_said(plain_sshd: Sshd, home: Path) -> None:
    equip(home, plain_sshd)
    words = (sys.executable, "-c", PROGRAM, f"{USER}@127.0.0.1:{plain_sshd.port}")
    done = at_home("env", "PATH=/nowhere", *words)
    assert done.stdout == "works\n"
    assert done.stderr.startswith(
        "hpclaunch: there is no program ssh on PATH, so no ssh configuration is read"
    )


@pytest.fixture
def gssapi(start_sshd: Callable[..., Sshd]) -> Sshd:
    """A server that offers Kerberos, too; it has no keytab, so that nobody gets in by it."""
    return start_sshd(config="GSSAPIAuthentication yes")


def test_kerberos_is_named_only_where_nothing_else_worked(gssapi: Sshd, home: Path) -> None:
    kerberos = "Match final all\n  GSSAPIAuthentication yes"
    configure(home, gssapi.host_block("there"), kerberos)
    assert works("there")
    configure(home, gssapi.host_block("there").replace(str(gssapi.key), "none"), kerberos)
    error = refusal("there")
    assert error.exit_code == 4
    assert "the host accepts publickey, " in error.message
    assert "gssapi-with-mic; tried: nothing" in error.message
    assert "GSSAPIAuthentication (Kerberos) is a login that only ssh can do" in str(error)
    configure(home, gssapi.host_block("there").replace(str(gssapi.key), "none"), "GSSAPIAuthentication no")
    assert "GSSAPIAuthentication" not in str(refusal("there"))


def test_a_pkcs11_provider_is_named_only_where_nothing_else_worked(plain_sshd: Sshd, home: Path) -> None:
    provider = "PKCS11Provider /usr/lib/token.so"
    configure(home, plain_sshd.host_block("there", provider))
    assert works("there")
    configure(home, plain_sshd.host_block("there", provider).replace(str(plain_sshd.key), "none"))
    assert "PKCS11Provider is read by ssh only: ssh-add -s" in str(refusal("there"))


def test_a_security_key_in_a_file_is_said_to_need_an_agent(plain_sshd: Sshd, home: Path) -> None:
    """The file is as PROTOCOL.key and PROTOCOL.u2f describe it; ssh-keygen makes one with a device only."""

    def strings(*parts: bytes) -> bytes:
        return b"".join(struct.pack(">I", len(part)) + part for part in parts)

    public = strings(b"sk-ssh-ed25519@openssh.com", bytes(32), b"ssh:")
    private = struct.pack(">II", 7, 7) + public + b"\x01" + strings(b"handle", b"", b"")
    private += bytes(range(1, 1 + -len(private) % 8))
    text = (
        b"openssh-key-v1\0" + strings(b"none", b"none", b"") + struct.pack(">I", 1) + strings(public, private)
    )
    key = home / "id_sk"
    lines = b64encode(text).decode()
    key.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}\n-----END OPENSSH PRIVATE KEY-----\n")
    configure(home, plain_sshd.host_block("there").replace(str(plain_sshd.key), str(key)))
    assert f"{key} cannot be used: a security key works from an agent only: ssh-add {key}" in str(
        refusal("there")
    )
    configure(home, plain_sshd.host_block("there", f"IdentityFile {key}"))
    assert works("there")


@pytest.fixture
def certified(start_sshd: Callable[..., Sshd], home: Path) -> Sshd:
    """A server that trusts an authority and no key; the certificate of ``home/key`` is ``home/me-USER``."""
    keygen("-t", "ed25519", "-N", "", "-f", home / "ca")
    keygen("-t", "ed25519", "-N", "", "-f", home / "key")
    keygen("-s", home / "ca", "-I", "me", "-n", USER, home / "key.pub")
    (home / "key-cert.pub").rename(home / f"me-{USER}")
    return start_sshd(config=f"TrustedUserCAKeys {home}/ca.pub\nAuthorizedKeysFile none")


def test_a_certificate_of_any_name_is_shown(certified: Sshd, home: Path) -> None:
    block = certified.host_block("there").replace(str(certified.key), f"{home}/key")
    configure(home, block)
    assert "was refused" in refusal("there").message
    configure(home, block, f"CertificateFile {home}/me-%r\n")
    assert works("there")
    configure(home, block)
    (home / f"me-{USER}").rename(home / "key-cert.pub")
    assert works("there")


@pytest.mark.parametrize("place", ["file", "agent"])
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_goes_with_the_agents_key(
    certified: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: str
) -> None:
    (home / "key").unlink()
    keygen("-t", kind, "-N", "", "-f", home / "key")
    keygen("-s", home / "ca", "-I", "me", "-n", USER, home / "key.pub")
    if place == "file":
        (home / "key-cert.pub").rename(home / f"me-{USER}")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", f"{home}/agent"], stdout=subprocess.DEVNULL)
    try:
        while not (home / "agent").exists():
            pass
        monkeypatch.setenv("SSH_AUTH_SOCK", f"{home}/agent")
        subprocess.run(["ssh-add", "-q", f"{home}/key"], check=True, stderr=subprocess.DEVNULL)
        for file in home.glob("key*"):
            file.unlink()
        block = certified.host_block("there", "IdentitiesOnly no")
        named = f"CertificateFile {home}/me-%r" if place == "file" else ""
        configure(home, block.replace(str(certified.key), "none"), named)
        assert works("there")
    finally:
        agent.terminate()
        agent.wait()


def test_an_expired_certificate_does_not_hide_its_key(plain_sshd: Sshd, home: Path) -> None:
    keygen("-t", "ed25519", "-N", "", "-f", home / "ca")
    (home / "key").write_text(plain_sshd.key.read_text())
    (home / "key").chmod(0o600)
    (home / "key.pub").write_text((plain_sshd.folder / "id_ed25519.pub").read_text())
    validity = ("-V", "20200101:20200102")
    keygen("-s", home / "ca", "-I", "me", "-n", USER, *validity, home / "key.pub")
    configure(home, plain_sshd.host_block("there").replace(str(plain_sshd.key), f"{home}/key"))
    assert works("there")


def test_each_jump_host_has_its_own_configuration(
    plain_sshd: Sshd, start_sshd: Callable[..., Sshd], home: Path
) -> None:
    """Ports, keys and known hosts of three servers, one of them behind another by its own ProxyJump."""
    outer, inner = start_sshd(), start_sshd()
    configure(
        home,
        f"Match host there\n  ProxyJump {USER}@inner\n",
        outer.host_block("outer"),
        inner.host_block("inner", "ProxyJump outer", "ConnectTimeout 10s", "ServerAliveInterval 1m"),
        plain_sshd.host_block("there"),
    )
    assert works("there")
    for server in (outer, inner):
        assert (server.folder / "sshd.log").read_text().count("Accepted publickey") == 1


def test_a_circle_that_ssh_finds_is_its_error(plain_sshd: Sshd, home: Path) -> None:
    configure(home, "ProxyJump a\n", plain_sshd.host_block("there"))
    assert refusal("there").message == "ssh -G a: jumphost loop via a"


def test_algorithms_are_those_of_the_configuration_or_refused_by_name(
    plain_sshd: Sshd, start_sshd: Callable[..., Sshd], home: Path
) -> None:
    weak = start_sshd(config="Ciphers aes128-cbc")  # one that paramiko would take
    configure(home, weak.host_block("there"))
    assert "no ssh connection" in refusal("there").message
    configure(home, weak.host_block("there", "Ciphers +aes128-cbc"))
    assert works("there")
    configure(home, plain_sshd.host_block("there", "Ciphers chacha20-poly1305@openssh.com"))
    error = refusal("there")
    assert "there: Ciphers permits only chacha20-poly1305@openssh.com" in error.message
    assert error.exit_code == 4


def test_a_host_that_only_a_certificate_proves_is_refused_with_the_line(plain_sshd: Sshd, home: Path) -> None:
    known, listed = home / "known", plain_sshd.known_hosts.read_text()
    keygen("-t", "ed25519", "-N", "", "-f", home / "ca")
    authority = (home / "ca.pub").read_text()
    block = plain_sshd.host_block("there", f"UserKnownHostsFile {known}")
    configure(home, block)
    known.write_text(f"# hosts\n@cert-authority [127.0.0.*]:{plain_sshd.port} {authority}")
    error = refusal("there")
    assert isinstance(error, RefusedError)
    assert f"only ssh itself verifies a host by the @cert-authority of {known}:2" in error.message
    assert "$(ssh there cat /etc/ssh/ssh_host_ed25519_key.pub)" in str(error)
    known.write_text(f"@cert-authority *.elsewhere {authority}")
    assert "@cert-authority" not in str(refusal("there"))
    known.write_text(f"@cert-authority * {authority}{listed}")
    assert works("there")
    known.write_text("")
    configure(home, block, "KnownHostsCommand /bin/false\n")
    assert "only ssh itself verifies a host by KnownHostsCommand" in refusal("there").message


@pytest.mark.parametrize("form", ["text", "list"])
def test_revoked_host_keys_are_refused(plain_sshd: Sshd, home: Path, form: str) -> None:
    keygen("-t", "ed25519", "-N", "", "-f", home / "other")
    revoked, host_key = home / "revoked", plain_sshd.folder / "host_ed25519.pub"
    configure(home, plain_sshd.host_block("there", f"RevokedHostKeys {revoked}"))
    assert f"RevokedHostKeys {revoked} cannot be used" in refusal("there").message
    for key, is_revoked in ((home / "other.pub", False), (host_key, True)):
        revoked.write_text(key.read_text())
        if form == "list":
            keygen("-k", "-f", revoked, key)
        if is_revoked:
            assert f"{revoked} (RevokedHostKeys) revokes" in refusal("there").message
        else:
            assert works("there")


def test_no_host_is_taken_as_an_option(plain_sshd: Sshd, home: Path) -> None:
    configure(home, plain_sshd.host_block("there", f"ProxyJump -oProxyCommand=touch${{IFS}}{home}/bad"))
    assert refusal("there").exit_code == 3
    assert not (home / "bad").exists()
