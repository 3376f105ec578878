"""Getting to a host over a real sshd: host keys, logins, jump hosts, and every way that it fails."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError, HpclaunchError, RefusedError
from hpclaunch.host.ssh import connect
from tests.host.ssh_client import configure, never, works
from tests.testbed.cluster import Sshd

# An error in a thread would be a traceback on the user's terminal.
pytestmark = [
    pytest.mark.sshd,
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(ssh_home: Path) -> Path:
    return ssh_home


def refusal(destination: str, ask: Callable[[str, bool], str] = never) -> HpclaunchError:
    with pytest.raises(HpclaunchError) as caught, connect(destination, ask=ask):
        pass
    return caught.value


def keygen(path: Path, *options: str) -> Path:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", "", *options, "-f", str(path)]
    subprocess.run(words, check=True)
    return path


def fingerprint(file: Path) -> str:
    words = ["ssh-keygen", "-l", "-E", "sha256", "-f", str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[1]


# -- host keys


def test_an_unknown_key_is_refused_and_accepted_by_the_line_of_the_message(
    plain_sshd: Sshd, home: Path
) -> None:
    known = home / "my known hosts"
    configure(home, plain_sshd.host_block("new", f'UserKnownHostsFile "{known}"'))
    error = refusal("new")
    assert error.exit_code == 4
    name = f"[127.0.0.1]:{plain_sshd.port}"
    shown = fingerprint(plain_sshd.folder / "host_ed25519.pub")
    assert error.message == f"the host key of {name} is not known: ssh-ed25519 {shown}"
    assert not known.exists()
    line = next(line for line in str(error).splitlines() if "echo" in line)
    subprocess.run(["bash", "-c", line.strip()], check=True)
    assert known.read_text().startswith(name)
    assert works("new")


def test_no_setting_makes_an_unknown_key_a_known_one(plain_sshd: Sshd, home: Path) -> None:
    settings = ("StrictHostKeyChecking no", "UserKnownHostsFile none", "GlobalKnownHostsFile /dev/null")
    configure(home, plain_sshd.host_block("new", *settings))
    assert "is not known" in refusal("new").message


def test_a_changed_key_is_always_refused(plain_sshd: Sshd, home: Path) -> None:
    other = keygen(home / "other")
    known = home / ".ssh" / "known_hosts"
    kind, key = (home / "other.pub").read_text().split()[:2]
    known.write_text(f"# a comment\n\n[127.0.0.1]:{plain_sshd.port} {kind} {key}\n")
    configure(home, plain_sshd.host_block("there", f"UserKnownHostsFile {known}", "StrictHostKeyChecking no"))
    error = refusal("there")
    assert error.exit_code == 4
    assert "has changed" in error.message
    assert f"{known}:3 has ssh-ed25519 {fingerprint(other)}" in error.message
    assert f"shows ssh-ed25519 {fingerprint(plain_sshd.folder / 'host_ed25519.pub')}" in error.message
    assert "echo" not in str(error)


@pytest.mark.parametrize("kind", ["plain", "hashed", "pattern", "alias", "global", "second file"])
def test_every_form_of_a_known_host_is_known(plain_sshd: Sshd, home: Path, kind: str) -> None:
    known, listed = home / "known", plain_sshd.known_hosts.read_text()
    settings = [f"UserKnownHostsFile {known}"]
    if kind == "pattern":
        listed = listed.replace("127.0.0.1]", "127.0.*]").replace("[", "other,[")
    elif kind == "alias":
        listed = "the-cluster " + listed.split(" ", 1)[1]
        settings.append("HostKeyAlias the-cluster")
    elif kind == "global":
        settings = [f"UserKnownHostsFile {home}/none", f"GlobalKnownHostsFile {home}/none2 {known}"]
    elif kind == "second file":
        settings = [f"UserKnownHostsFile ~/none {known}"]
    known.write_text(listed)
    if kind == "hashed":
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=True, capture_output=True)
        assert known.read_text().startswith("|1|")
    configure(home, plain_sshd.host_block("there", *settings))
    assert works("there")


def test_a_revoked_key_is_refused_even_where_it_is_known(plain_sshd: Sshd, home: Path) -> None:
    listed = plain_sshd.known_hosts.read_text()
    known = home / "known"
    known.write_text(f"{listed}@revoked * {listed.split(' ', 1)[1]}")
    configure(home, plain_sshd.host_block("there", f"UserKnownHostsFile {known}"))
    assert f"{known}:2 revokes" in refusal("there").message


def test_the_known_type_of_key_is_requested(start_sshd: Callable[..., Sshd], home: Path) -> None:
    for kind, bits in (("ecdsa", "256"), ("rsa", "2048")):
        keygen(home / kind, "-t", kind, "-b", bits)
    server = start_sshd(config=f"HostKey {home}/ecdsa\nHostKey {home}/rsa")
    for kind in ("ecdsa", "rsa"):
        known = home / f"known-{kind}"
        known.write_text(f"[127.0.0.1]:{server.port} " + (home / f"{kind}.pub").read_text())
        configure(home, server.host_block("there", f"UserKnownHostsFile {known}"))
        assert works("there")


# -- logins


def test_a_wrong_key_is_refused_and_named(plain_sshd: Sshd, home: Path) -> None:
    wrong = keygen(home / "wrong")
    block = plain_sshd.host_block("there").replace(str(plain_sshd.key), str(wrong))
    configure(home, block)
    error = refusal("there")
    assert error.exit_code == 4
    assert "the login of" in error.message
    assert f"tried: {wrong}" in error.message
    assert "ssh -v there" in str(error)


def test_without_any_key_the_methods_of_the_host_are_named(plain_sshd: Sshd, home: Path) -> None:
    configure(home, plain_sshd.host_block("there").replace(str(plain_sshd.key), "none"))
    assert "the host accepts publickey; tried: nothing" in refusal("there").message


def test_a_damaged_key_does_not_stop_the_next_one(plain_sshd: Sshd, home: Path) -> None:
    (home / "damaged").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")
    configure(home, plain_sshd.host_block("there", f"IdentityFile {home}/damaged"))
    assert works("there")
    only = plain_sshd.host_block("there").replace(str(plain_sshd.key), f"{home}/damaged")
    configure(home, only)
    assert f"{home}/damaged cannot be used" in refusal("there").message


def test_a_key_with_a_passphrase_is_opened_by_the_third_answer(plain_sshd: Sshd, home: Path) -> None:
    key = home / "locked"
    key.write_text(plain_sshd.key.read_text())
    key.chmod(0o600)
    subprocess.run(
        ["ssh-keygen", "-q", "-a", "1", "-p", "-P", "", "-N", "secret", "-f", str(key)], check=True
    )
    configure(home, plain_sshd.host_block("there").replace(str(plain_sshd.key), str(key)))
    asked: list[tuple[str, bool]] = []

    def ask(prompt: str, echo: bool) -> str:
        asked.append((prompt, echo))
        return "secret" if len(asked) == 3 else "wrong"

    assert works("there", ask)
    assert asked == [(f"Passphrase of {key}: ", False)] * 3
    assert f"{key}: wrong passphrase" in refusal("there", lambda prompt, echo: "wrong").message


@pytest.fixture
def agent(plain_sshd: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An agent that holds another key and the server's, which is in no file any more; its socket."""
    sock = home / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL)
    while not sock.exists():
        pass
    environment = {**os.environ, "SSH_AUTH_SOCK": str(sock)}
    for key in (keygen(home / "other"), plain_sshd.key):
        subprocess.run(["ssh-add", "-q", str(key)], env=environment, check=True, stderr=subprocess.DEVNULL)
    yield sock
    process.terminate()
    process.wait()


@pytest.mark.parametrize("way", ["environment", "IdentityAgent"])
def test_the_agents_keys_are_used(
    agent: Path, plain_sshd: Sshd, home: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = plain_sshd.host_block("there").replace(str(plain_sshd.key), "none")
    block = block.replace("IdentitiesOnly yes", "IdentitiesOnly no")
    if way == "environment":
        monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    else:
        block += "  IdentityAgent ~/agent\n"
    configure(home, block)
    assert works("there")
    configure(home, block + "  IdentityAgent none\n", block)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere")
    if way == "environment":
        assert "tried: nothing" in refusal("there").message


def test_with_identities_only_the_agent_gives_the_key_that_is_named(
    agent: Path, plain_sshd: Sshd, home: Path
) -> None:
    public = home / "named.pub"
    public.write_text((plain_sshd.folder / "id_ed25519.pub").read_text())
    block = plain_sshd.host_block("there", "IdentityAgent ~/agent")
    configure(home, block.replace(str(plain_sshd.key), str(public)))
    assert works("there")
    configure(home, block.replace(str(plain_sshd.key), str(home / "absent")))
    assert "tried: nothing" in refusal("there").message


@pytest.fixture
def codes(start_sshd: Callable[..., Sshd], tmp_path: Path) -> tuple[Sshd, Path]:
    """A server that wants a key and then a one-time code, and the file of its codes, each good once."""
    if os.geteuid() != 0:
        pytest.fail("one-time codes are tested as root: the server has its own PAM service")
    good, check = tmp_path / "codes", tmp_path / "check"
    good.write_text("123456\n")
    check.write_text(
        f'#!/bin/bash\ncode=$(tr -d "\\0"); grep -qxF "$code" {good} && sed -i "/^$code$/d" {good}\n'
    )
    check.chmod(0o755)
    pam = (
        f"auth required pam_exec.so quiet expose_authtok {check}\n"
        "auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so"
    )
    config = (
        "UsePAM yes\nKbdInteractiveAuthentication yes\nPermitRootLogin yes\n"
        "AuthenticationMethods publickey,keyboard-interactive:pam"
    )
    return start_sshd(config=config, pam=pam), good


def test_a_one_time_code_is_asked_once_for_all_that_follows(
    codes: tuple[Sshd, Path], home: Path, tmp_path: Path
) -> None:
    server, good = codes
    configure(home, server.host_block("there"))
    asked: list[tuple[str, bool]] = []

    def ask(prompt: str, echo: bool) -> str:
        asked.append((prompt, echo))
        return "wrong" if len(asked) == 1 else "123456"

    with connect("there", ask=ask) as host:
        for i in range(3):
            host.write_file(f"{tmp_path}/{i}", b"x")
            assert host.run(["cat", f"{tmp_path}/{i}"]).stdout == "x"
    assert asked == [("(root@127.0.0.1) Password: ", False)] * 2
    assert good.read_text() == ""


def test_wrong_codes_are_refused(codes: tuple[Sshd, Path], home: Path) -> None:
    configure(home, codes[0].host_block("there"))
    message = refusal("there", lambda prompt, echo: "wrong").message
    assert "was refused" in message or "closed the connection during the login" in message


def test_without_a_terminal_a_question_is_an_error_that_says_so(codes: tuple[Sshd, Path], home: Path) -> None:
    configure(home, codes[0].host_block("there"))
    program = "from hpclaunch.host.ssh import connect\nwith connect('there'): pass"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        "RefusedError: the login asks '(root@127.0.0.1) Password:', and there is no terminal" in done.stderr
    )


def test_on_a_terminal_the_code_is_typed_unseen(codes: tuple[Sshd, Path], home: Path) -> None:
    configure(home, codes[0].host_block("there"))
    program = """
from hpclaunch.host.ssh import connect
with connect("there") as host:
    print(host.run(["echo", "in"]).stdout)
"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", program])
    seen = b""
    while b"Password: " not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"123456\n")
    while True:
        try:
            piece = os.read(terminal, 1000)
        except OSError:
            break
        seen += piece
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"in\r\n" in seen
    assert b"123456" not in seen


# -- the way there


def test_a_chain_of_jump_hosts(plain_sshd: Sshd, start_sshd: Callable[..., Sshd], home: Path) -> None:
    first, second = start_sshd(), start_sshd(config="AllowTcpForwarding yes")
    blocks = [first.host_block("one"), second.host_block("two", "ProxyJump one")]
    configure(home, *blocks, plain_sshd.host_block("there", "ProxyJump two"))
    assert works("there")
    for server in (first, second):
        log = (server.folder / "sshd.log").read_text()
        assert log.count("Accepted publickey") == 1
    configure(home, *blocks, plain_sshd.host_block("there", f"ProxyJump one,127.0.0.1:{second.port}"),
              second.host_block("127.0.0.1"))  # fmt: skip
    assert works("there")


def test_a_jump_hosts_key_is_verified_too(
    plain_sshd: Sshd, start_sshd: Callable[..., Sshd], home: Path
) -> None:
    jump = start_sshd()
    configure(home, jump.host_block("jump", f"UserKnownHostsFile {home}/none"),
              plain_sshd.host_block("there", "ProxyJump jump"))  # fmt: skip
    assert f"host key of [127.0.0.1]:{jump.port} is not known" in refusal("there").message


def test_a_jump_host_that_forwards_nothing_or_goes_in_a_circle_is_refused(
    plain_sshd: Sshd, start_sshd: Callable[..., Sshd], home: Path
) -> None:
    jump = start_sshd(config="AllowTcpForwarding no")
    configure(home, jump.host_block("jump"), plain_sshd.host_block("there", "ProxyJump jump"))
    assert "there cannot be reached through jump" in refusal("there").message
    configure(home, jump.host_block("a", "ProxyJump b"), jump.host_block("b", "ProxyJump a"))
    error = refusal("a")
    assert isinstance(error, BadInputError)
    assert "in a circle: a -> b -> a" in error.message


@pytest.fixture
def relay(home: Path) -> str:
    """A command between stdin, stdout and a port of this machine, until it has brought so many bytes."""
    program = home / "relay.py"
    program.write_text(
        "import os, socket, sys, threading\n"
        "sock = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "there = lambda: [sock.sendall(d) for d in iter(lambda: os.read(0, 65536), b'')]\n"
        "threading.Thread(target=there, daemon=True).start()\n"
        "left = int([*sys.argv, 1 << 60][2])\n"
        "for data in iter(lambda: sock.recv(65536), b''):\n"
        "    os.write(1, data[:left]); left -= len(data)\n"
        "    if left <= 0: os._exit(0)\n"
    )
    return f"{sys.executable} {program}"


def test_a_proxy_command_is_run_by_a_shell(plain_sshd: Sshd, home: Path, relay: str) -> None:
    block = plain_sshd.host_block("there").replace("HostName 127.0.0.1", "HostName inside.example.org")
    known = home / "known"
    known.write_text(plain_sshd.known_hosts.read_text().replace("127.0.0.1", "inside.example.org"))
    command = f"ProxyCommand {relay} %p 2>>{home}/%h"
    configure(home, block.replace("Host there\n", f"Host there\n  UserKnownHostsFile {known}\n  {command}\n"))
    assert works("there")
    assert (home / "inside.example.org").exists()


@pytest.mark.parametrize("sent_bytes", [0, 300, 1900])
def test_a_connection_that_is_cut_during_the_login_is_tried_three_times(
    plain_sshd: Sshd, home: Path, relay: str, sent_bytes: int
) -> None:
    """The cut comes before the greeting, within the exchange of keys, or as the first key is shown."""
    way, tries = home / "way", home / "tries"
    way.write_text(
        f"#!/bin/bash\necho >> {tries}\n"
        f'[ "$(wc -l < {tries})" -lt "$1" ] || exec {relay} {plain_sshd.port}\n'
        f"exec {relay} {plain_sshd.port} {sent_bytes}\n"
    )
    way.chmod(0o755)
    configure(home, plain_sshd.host_block("there", f"ProxyCommand {way} 3"))
    assert works("there")
    assert tries.read_text() == "\n" * 3
    configure(home, plain_sshd.host_block("there", f"ProxyCommand {way} 9"))
    assert refusal("there").message.endswith("; nothing was sent")
    assert tries.read_text() == "\n" * 6


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("HostName 127.0.0.1", "Port 1"), "there cannot be reached: 127.0.0.1 port 1: Connection refused"),
        (("HostName no-such-host.invalid",), "there cannot be reached: no-such-host.invalid port 22"),
        # The end of the command is the end of the connection, however long an answer may take.
        (("HostName 127.0.0.1", "ConnectTimeout 86400", "ProxyCommand exit 3"), "there: no ssh connection"),
    ],
)
def test_a_host_that_cannot_be_reached(home: Path, settings: tuple[str, ...], words: str) -> None:
    configure(home, "\n  ".join(["Host there", *settings]))
    error = refusal("there")
    assert isinstance(error, RefusedError)
    assert error.exit_code == 4
    assert words in error.message


def test_a_server_that_speaks_no_ssh(home: Path) -> None:
    configure(
        home, 'Host there\n  ProxyCommand sh -c "echo 220 mail.example.org ESMTP; cat"\n  ConnectTimeout 1'
    )
    assert "there: no ssh connection" in refusal("there").message


def test_without_paramiko_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    error = refusal("there")
    assert isinstance(error, RefusedError)
    assert "pip install paramiko" in str(error)


def test_paramiko_is_imported_only_for_a_connection() -> None:
    program = "import hpclaunch.host.ssh, hpclaunch.host.sync, sys; sys.exit('paramiko' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
