"""Another machine as a host: commands and files over a real sshd."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Call, NoAnswerError, only_reading
from hpclaunch.host.ssh import SshHost, _Exchange, connect, remote_command, state_folder
from tests.how_much import examples
from tests.testbed.cluster import Sshd

# An error in a thread would be a traceback on the user's terminal.
pytestmark = [
    pytest.mark.sshd,
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]

HOSTILE = [
    "$(echo x)",
    "a b",
    "'",
    '"',
    "`id`",
    "new\nline",
    "ü€",
    "",
    "*",
    "\\",
    "!!",
    "%s",
    "-n",
    "~",
    "\x7f\t",
]
# Names may have all of Unicode but NUL, which no argument can hold.
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@pytest.fixture(scope="module")
def host(plain_sshd: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost]:
    config = tmp_path_factory.mktemp("ssh") / "config"
    config.write_text(plain_sshd.host_block("there"))
    with connect("there", config=config) as host:
        yield host


def logins(server: Sshd) -> int:
    return (server.folder / "sshd.log").read_text().count("Accepted publickey")


def test_arguments_arrive_unchanged(host: SshHost) -> None:
    answer = host.run(["printf", "%s\\0", *HOSTILE])
    assert answer.stdout.split("\0")[:-1] == HOSTILE


@given(words=st.lists(WORDS, min_size=1, max_size=6), value=WORDS)
@settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_words_and_values_arrive_unchanged(host: SshHost, words: list[str], value: str) -> None:
    script = 'printf "%s\\0" "$VALUE" "$@"'
    answer = host.run(["bash", "-c", script, "bash", *words], env={"VALUE": value})
    assert answer.stdout.split("\0")[:-1] == [value, *words]


@given(name=WORDS.filter(lambda name: name and "/" not in name and name not in (".", "..")))
@settings(
    max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_path_is_reached_by_commands_and_files(host: SshHost, tmp_path: Path, name: str) -> None:
    folder = f"{tmp_path}/{name[:40]}"
    host.make_folder(folder)
    host.write_file(f"{folder}/{name}", name.encode())
    assert host.run(["cat", f"./{name}"], cwd=folder).stdout == name
    assert host.read_files([f"{folder}/{name}"]) == {f"{folder}/{name}": name.encode()}
    assert (Path(folder) / name).read_bytes() == name.encode()


def test_names_that_are_not_text_arrive_too(host: SshHost, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    host.write_file(path, b"x")
    assert host.run(["test", "-f", path]).exit_code == 0
    assert host.read_files([path]) == {path: b"x"}


def test_what_no_argument_can_hold_is_refused(host: SshHost) -> None:
    with pytest.raises(BadInputError, match="NUL"):
        host.run(["echo", "a\0b"])
    with pytest.raises(BadInputError, match="not a name of an environment variable"):
        host.run(["true"], env={"A;B": "x"})
    with pytest.raises(BadInputError, match="too many for one ssh command"):
        host.run(["true", "x" * 200_000])


def test_any_login_shell_reads_only_what_all_of_them_understand() -> None:
    command = remote_command(["printf", "%s", *HOSTILE], {"A": "'!"}, "/a b'\n$x")
    head, quoted, tail = command.partition("'")[0], command.split("'")[1], command.rpartition("'")[2]
    assert (head, tail, command.count("'")) == ("exec sh -c ", "", 2)
    assert set(quoted) <= set(
        'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:=,@+-\\"$()'
    )
    assert quoted.count("$") == 1


def test_exit_codes_and_signals_are_those_of_a_shell(host: SshHost) -> None:
    answer = host.run(["bash", "-c", "echo out; echo err >&2; exit 7"])
    assert (answer.exit_code, answer.stdout, answer.stderr) == (7, "out\n", "err\n")
    assert host.run(["bash", "-c", "kill -9 $$"]).exit_code == 137


def test_stdin_environment_and_folder(host: SshHost, tmp_path: Path) -> None:
    answer = host.run(
        ["bash", "-c", 'cat; echo "$ADDED $PWD"'], b"in ", env={"ADDED": "a"}, cwd=str(tmp_path)
    )
    assert answer.stdout == f"in a {tmp_path}\n"
    assert host.run(["sh", "-c", 'echo "${HOME-none}"'], env={"HOME": None}).stdout == "none\n"
    assert host.run(["cat"]).stdout == ""


def test_the_folder_for_jobs_is_the_users_there(
    host: SshHost, start_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    home = host.run(["sh", "-c", 'printf %s "$HOME"']).stdout
    assert state_folder(host) == f"{home}/.local/state/hpclaunch"
    server = start_sshd(variables={"XDG_STATE_HOME": f"{tmp_path}/a state"})
    (tmp_path / "config").write_text(server.host_block("other"))
    with connect("other", config=tmp_path / "config") as other:
        assert state_folder(other) == f"{tmp_path}/a state/hpclaunch"


def test_a_program_is_never_a_builtin_of_the_shell(host: SshHost) -> None:
    assert host.run(["echo", "a\\nb"]).stdout == "a\\nb\n"


def test_much_goes_both_ways_at_once(host: SshHost) -> None:
    data = b"0123456789abcdef" * 200_000
    answer = host.run(["tee", "/dev/stderr"], data)
    assert answer.stdout == answer.stderr == data.decode()
    assert host.run(["true"], data).exit_code == 0


def test_a_missing_program_or_folder_is_named(host: SshHost, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no-such-sbatch: no such program on there") as caught:
        host.run(["no-such-sbatch"])
    assert caught.value.exit_code == 4
    with pytest.raises(RefusedError, match="gone: no such folder on there"):
        host.run(["true"], cwd=f"{tmp_path}/gone")
    (tmp_path / "text").write_text("not a program")
    with pytest.raises(RefusedError, match="no such program"):
        host.run([f"{tmp_path}/text"])


def test_a_program_that_does_not_answer_is_left(host: SshHost) -> None:
    with pytest.raises(NoAnswerError, match="sleep gave no answer"):
        host.run(["sleep", "60"], timeout_s=0.2)
    with pytest.raises(NoAnswerError):
        host.run(["bash", "-c", "exec >&- 2>&-; sleep 60"], timeout_s=0.2)
    assert host.run(["echo", "works"]).stdout == "works\n"


def test_what_start_up_files_print_is_not_taken_for_output(
    start_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    server = start_sshd(config='ForceCommand echo Welcome; sh -c "$SSH_ORIGINAL_COMMAND"')
    (tmp_path / "config").write_text(server.host_block("chatty"))
    with connect("chatty", config=tmp_path / "config") as host:
        assert host.run(["echo", "1"]).stdout == "1\n"


def test_the_answer_of_an_account_that_runs_nothing_is_shown(
    start_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    server = start_sshd(config="ForceCommand echo this account is closed; exit 1")
    (tmp_path / "config").write_text(server.host_block("closed"))
    with connect("closed", config=tmp_path / "config") as host:
        with pytest.raises(RefusedError, match=r"runs no commands.*this account is closed"):
            host.run(["true"])
        with pytest.raises(RefusedError, match="runs no commands"):
            host.write_file(f"{tmp_path}/x", b"")


def test_a_file_is_written_whole_with_its_mode(host: SshHost, tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    host.write_file(str(path), b"one" * 100_000, mode=0o755)
    host.write_file(str(path), b"two", mode=0o700)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [p.name for p in tmp_path.iterdir()] == ["job.sh"]


def test_an_unwritable_place_says_so_and_leaves_nothing(host: SshHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in ("file/x", "folder"):
        with pytest.raises(BadInputError, match=f"{path}: cannot be written on there"):
            host.write_file(f"{tmp_path}/{path}", b"")
    with pytest.raises(BadInputError, match="cannot make this folder"):
        host.make_folder(f"{tmp_path}/file/x")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_reading_what_is_there_and_what_is_not(host: SshHost, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "big").write_bytes(bytes(range(256)) * 20_000)
    assert host.read_file(f"{tmp_path}/empty") == b""
    assert host.read_file(f"{tmp_path}/big") == (tmp_path / "big").read_bytes()
    assert host.read_file(f"{tmp_path}/x") is None
    assert host.tail(f"{tmp_path}/x", 0) == b""
    assert (host.exists(f"{tmp_path}/x"), host.exists(str(tmp_path))) == (False, True)
    with pytest.raises(RefusedError, match="cannot be read"):
        host.read_file(str(tmp_path))


def test_tail_goes_on_where_it_stopped(host: SshHost, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1_500_000 + b"end")
    got = b""
    while piece := host.tail(str(path), len(got)):
        got += piece
    assert got == path.read_bytes()


def test_many_files_are_one_command(host: SshHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []
    run = SshHost._run_once

    def counting(self: SshHost, call: Call) -> object:
        commands.append(call.argv[0])
        return run(self, call)

    monkeypatch.setattr(SshHost, "_run_once", counting)
    for i in range(100):
        (tmp_path / f"exit {i}\n'").write_text(str(i))
    os.link(tmp_path / "exit 0\n'", tmp_path / "again")
    (tmp_path / "link").symlink_to("again")
    (tmp_path / "folder").mkdir()
    paths = [f"{tmp_path}/exit {i}\n'" for i in range(200)]
    odd = [f"{tmp_path}/{name}" for name in ("again", "link", "folder", "again/x")]
    found = host.read_files([*paths, *odd, paths[0]])
    assert found == {path: str(i).encode() for i, path in enumerate(paths[:100])} | dict.fromkeys(
        odd[:2], b"0"
    )
    assert host.read_files([]) == {}
    assert commands == ["tar"]


def test_a_lost_connection_is_replaced_and_files_are_read(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("x")
    looks: list[Callable[[], bytes | None]] = [
        lambda: host.read_file(f"{tmp_path}/f"),
        lambda: host.read_files([f"{tmp_path}/f"])[f"{tmp_path}/f"],
        lambda: host.tail(f"{tmp_path}/f", 0),
        lambda: host.run(["cat", f"{tmp_path}/f"]).stdout.encode(),
    ]
    for look in looks:
        before = logins(plain_sshd)
        plain_sshd.break_connections()
        assert look() == b"x"
        assert logins(plain_sshd) == before + 1


def test_a_lost_connection_is_replaced_before_its_reader_has_seen_the_end(
    host: SshHost, plain_sshd: Sshd
) -> None:
    assert host.run(["echo", "one"]).stdout == "one\n"
    for _ in range(5):
        before = logins(plain_sshd)
        # As after a reset: writing fails at once, the thread that reads looks ten times a second.
        assert host._transport is not None
        host._transport.packetizer.close()
        assert host.run(["echo", "two"]).stdout == "two\n"
        assert logins(plain_sshd) == before + 1


def test_a_command_that_lost_its_connection_gives_no_answer_and_is_not_run_again(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"

    def cut() -> None:
        while not runs.exists():
            time.sleep(0.01)
        plain_sshd.break_connections()

    thread = threading.Thread(target=cut)
    thread.start()
    with pytest.raises(NoAnswerError, match="the connection to there was lost before bash answered"):
        host.run(["bash", "-c", f"echo run >> {runs}; sleep 60"])
    thread.join()
    assert host.run(["cat", str(runs)]).stdout == "run\n"


# A program that ends its own connection, until it has run as often as its second argument says.
CUTS = """
echo run >> "$1"; [ "$(wc -l < "$1")" -lt "$2" ] || { echo answer; exit; }
p=$PPID; until [ "$(cat /proc/$p/comm)" = sshd ]; do p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done
kill -9 "$p"
"""


def test_a_question_that_was_cut_is_asked_again_twice(host: SshHost, tmp_path: Path) -> None:
    question = ("bash", "-c", CUTS, "question", str(tmp_path / "runs"))
    with only_reading(host):
        assert host.run([*question, "3"]).stdout == "answer\n"
    with pytest.raises(NoAnswerError, match=r"lost before bash answered$"):
        host.run([*question, "5"])
    with (
        pytest.raises(NoAnswerError, match="lost before bash answered; nothing was submitted"),
        only_reading(host),
    ):
        host.run([*question, "9"])
    assert (tmp_path / "runs").read_text() == "run\n" * (3 + 1 + 3)


def test_a_connection_killed_during_an_upload_leaves_the_old_file_or_the_new(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path
) -> None:
    path, data = tmp_path / "file", os.urandom(60 << 20)
    path.write_text("old")
    host.exists(str(path))
    before, seen = logins(plain_sshd), list[bytes]()

    def cut() -> None:
        while not any(p.stat().st_size > 1 << 20 for p in tmp_path.glob(".file.*")):
            time.sleep(0.001)
        seen.append(path.read_bytes())
        plain_sshd.break_connections()

    thread = threading.Thread(target=cut)
    thread.start()
    host.write_file(str(path), data)
    thread.join()
    assert seen == [b"old"]
    assert logins(plain_sshd) == before + 1
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["file"]


def test_a_connection_killed_during_a_download_is_replaced(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path
) -> None:
    data = os.urandom(80 << 20)
    (tmp_path / "file").write_bytes(data)
    host.exists(str(tmp_path))
    before = logins(plain_sshd)
    cut = threading.Timer(0.3, plain_sshd.break_connections)
    cut.start()
    assert host.read_file(f"{tmp_path}/file") == data
    cut.join()
    assert host.exists(str(tmp_path))
    assert logins(plain_sshd) == before + 1


def test_an_exit_status_that_overtakes_the_output_is_not_the_end_of_it(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sshd sends the status when the program ends, and the output as the other side takes it."""
    data = os.urandom((2 << 20) + 30_000)  # more than paramiko's window by less than a pipe holds
    (tmp_path / "file").write_bytes(data)
    read_out = _Exchange._read_out
    cut: list[bool] = []

    def late(exchange: _Exchange) -> None:
        if not cut:
            cut.append(exchange._channel.status_event.wait(60))
            plain_sshd.break_connections()
            exchange._channel.get_transport().join(60)
        read_out(exchange)

    monkeypatch.setattr(_Exchange, "_read_out", late)
    assert host.read_file(f"{tmp_path}/file") == data
    assert cut == [True]


def test_a_host_that_is_gone_is_refused_and_the_file_is_the_old_one(
    start_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    server = start_sshd()
    (tmp_path / "config").write_text(server.host_block("brief"))
    (tmp_path / "file").write_text("old")
    with connect("brief", config=tmp_path / "config") as host:
        assert host.exists(f"{tmp_path}/file")
        server.break_connections(and_stop=True)
        with pytest.raises(RefusedError, match="brief cannot be reached") as caught:
            host.write_file(f"{tmp_path}/file", b"new")
        with pytest.raises(RefusedError, match="cannot be reached"):
            host.run(["true"])
    assert caught.value.exit_code == 4
    assert (tmp_path / "file").read_text() == "old"


# -- a remote shell that does not answer, and hostile answers


def test_start_up_files_that_wait_for_input_end_in_a_message(
    start_sshd: Callable[..., Sshd], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forced command is what bash makes of a ~/.bashrc with ``read``: that runs before any command."""
    server = start_sshd(config='ForceCommand read -r answer; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    (tmp_path / "config").write_text(server.host_block("asks"))
    monkeypatch.setattr("hpclaunch.host.ssh.LIMIT.start_timeout_s", 1.0)
    with connect("asks", config=tmp_path / "config") as host:
        assert host.run(["echo", "no input is needed"]).stdout == "no input is needed\n"
        with pytest.raises(
            NoAnswerError, match=r"login shell on asks did not start cat within 1 s"
        ) as caught:
            host.run(["cat"], stdin=b"the first line is not for the shell\n")
        assert caught.value.exit_code == 4
        assert "~/.bashrc" in (caught.value.hint or "")
        assert host.exists("/")
        with pytest.raises(NoAnswerError, match=r"did not start sh within 1 s"):
            host.write_file(f"{tmp_path}/f", b"x")
    assert not (tmp_path / "f").exists()


def test_a_connection_lost_while_stdin_is_sent_is_quiet(
    host: SshHost, plain_sshd: Sshd, tmp_path: Path
) -> None:
    for number in range(3):
        begun = tmp_path / str(number)

        def cut(begun: Path = begun) -> None:
            while not begun.exists():
                time.sleep(0.001)
            plain_sshd.break_connections()

        thread = threading.Thread(target=cut)
        thread.start()
        with pytest.raises(NoAnswerError):
            host.run(["sh", "-c", f"touch {begun}; sleep 60"], stdin=b"x" * (30 << 20))
        thread.join()


@pytest.fixture
def lying(start_sshd: Callable[..., Sshd], tmp_path: Path) -> Callable[[str], SshHost]:
    """A host whose tar is a fake: it prints what it is told to."""

    def start(text: str) -> SshHost:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "tar").write_text(f"#!/bin/sh\n# a fake tar\n{text}\n")
        (tmp_path / "bin" / "tar").chmod(0o755)
        server = start_sshd(variables={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
        (tmp_path / "config").write_text(server.host_block("lies"))
        return SshHost("lies", config=tmp_path / "config")

    return start


def member(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, headers: dict[str, str] | None = None
) -> bytes:
    out = io.BytesIO()
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname, info.pax_headers = len(data), kind, name, headers or {}
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


SPARSE = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "8000000000000", "GNU.sparse.numblocks": "1"}


@pytest.mark.parametrize(
    ("archive", "found"),
    [
        (member("/job/a", b"good"), {"/job/a": b"good"}),
        (member("/job/a", b"x", headers=SPARSE), {}),
        (member("/job/a", kind=tarfile.LNKTYPE), {}),
        (member("/job/a", kind=tarfile.SYMTYPE), {}),
        (member("/etc/passwd", b"other") + member("/job/a", b"y"), {}),
        (member("/job/a", b"good" * 1000)[:1024], None),
        (member("/job/a", b"x", headers={"GNU.sparse.map": "a,b", "GNU.sparse.size": "1"}), None),
        (member("/job/a", b"x", headers={"size": "-1"}), {}),
        (b"no archive at all" * 100, None),
    ],
    ids=[
        "good",
        "sparse",
        "link to itself",
        "symlink",
        "other names",
        "cut",
        "bad map",
        "size",
        "no archive",
    ],
)
def test_a_hostile_tar_is_refused_or_passed_over(
    archive: bytes, found: dict[str, bytes] | None, lying: Callable[[str], SshHost], tmp_path: Path
) -> None:
    (tmp_path / "archive").write_bytes(archive)
    host = lying(f"exec cat {tmp_path}/archive")
    try:
        if found is None:
            with pytest.raises(RefusedError, match="tar gave no archive that can be read"):
                host.read_files(["/job/a"])
        else:
            assert host.read_files(["/job/a"]) == found
    finally:
        host.close()


def test_an_answer_without_end_is_refused(
    lying: Callable[[str], SshHost], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hpclaunch.host.ssh.LIMIT.max_answer_bytes", 1 << 20)
    host = lying("exec yes")
    with pytest.raises(RefusedError, match="tar on lies printed more than 1 MiB"):
        host.read_files(["/job/a"])
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(RefusedError, match="has more than 1 MiB"):
        host.read_file(f"{tmp_path}/large")
    host.close()
