"""``hpclaunch submit --host``: a laptop, a real sshd, and a real Slurm behind it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm, Sshd

pytestmark = pytest.mark.slurm


@pytest.fixture
def server(slurm: Slurm, start_sshd: Callable[..., Sshd], tmp_path: Path, ssh_home: Path) -> Sshd:
    """The sshd of a login node that this user reaches as ``login``."""
    there = tmp_path / "there it's"
    server = start_sshd(slurm, variables={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(there)})
    (ssh_home / ".ssh" / "config").write_text(server.host_block("login"))
    return server


@pytest.fixture
def login(server: Sshd, tmp_path: Path) -> Path:
    """That login node; returns where it keeps its jobs."""
    return tmp_path / "there it's" / "hpclaunch"


def connections(server: Sshd) -> int:
    return (server.folder / "sshd.log").read_text().count("Accepted publickey")


def test_a_sync_that_fails_is_a_failure_of_the_job(login: Path, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "link").symlink_to("/etc/passwd")
    words = (
        "--host",
        "login",
        "--sync",
        str(code),
        "--site",
        "generic-slurm",
        "--no-test-only",
        "--mpi",
        "none",
    )
    refused = hpclaunch("submit", *words, "--", "true")
    assert refused.returncode == 3
    assert "leads outside" in refused.stderr
    waited = hpclaunch("wait", "--json")
    assert (waited.returncode, json.loads(waited.stdout)["state"]) == (1, "failed")
    assert "nothing was submitted: " in waited.stderr
    assert " was failed already" in hpclaunch("cancel", "last").stdout
    assert " forgotten" in hpclaunch("forget", "last").stdout


# What a shell, a scheduler or a person's locale might change on the way.
HOSTILE = ["$(id)", "it's", 'a "b" `id` \\', "line\nbreak", "\u00fc \u65e5\u672c \U0001f600", "", "--json"]


def test_from_the_laptop_to_the_result_and_back(login: Path, server: Sshd, tmp_path: Path) -> None:
    code = tmp_path / "my code\n\u00fc"
    code.mkdir()
    (code / "say \u65e5 it's.py").write_text(
        "import json, os, sys\nprint('GOT', json.dumps([os.environ['SLURM_JOB_NAME'], *sys.argv[1:]]))\n"
    )
    name = 'it\'s "$(id)" \u65e5'
    words = ("--site", "generic-slurm", "--host", "login", "--sync", str(code), "--name", name, "--json")
    answer = hpclaunch("submit", *words, "--", sys.executable, "say \u65e5 it's.py", *HOSTILE)
    assert answer.returncode == 0, answer.stderr
    job = json.loads(answer.stdout)
    assert job["state"] == "queued"
    assert connections(server) == 1
    waited = hpclaunch("wait", job["id"], "--json")
    assert json.loads(waited.stdout)["state"] == "done", waited.stderr
    assert connections(server) == 2
    logs = hpclaunch("logs", job["id"]).stdout
    (line,) = (line for line in logs.splitlines() if line.startswith("GOT "))
    assert json.loads(line.partition(" ")[2]) == [name, *HOSTILE]
    status = json.loads(hpclaunch("status", job["id"], "--json").stdout)
    assert (status["state"], status["exit_code"]) == ("done", 0)
    assert (login / "jobs" / job["id"] / "job.sh").exists()
    assert (login / "jobs" / job["id"]).stat().st_mode & 0o777 == 0o700
    here = Path(os.environ["XDG_STATE_HOME"]) / "hpclaunch" / "jobs" / job["id"]
    assert [file.name for file in here.iterdir()] == ["record.json"]


def test_the_profiles_login_host_is_taken(login: Path, tmp_path: Path) -> None:
    assert hpclaunch("sites", "new", "ours", "--extends", "generic-slurm").returncode == 0
    (profile,) = Path(os.environ["XDG_CONFIG_HOME"]).rglob("ours.yaml")
    profile.write_text(profile.read_text() + "\nlogin:\n  hosts: [login]\n")
    words = ("--site", "ours", "--host", "site", "--mpi", "none", "--wait", "--json", "--", "true")
    answer = hpclaunch("submit", *words)
    assert answer.returncode == 0, answer.stderr
    job = json.loads(answer.stdout)["id"]
    assert (login / "jobs" / job / "exit_status").read_text() == "0\n"


CUT_SRUN = """\
#!/bin/bash
[ -z "$SLURM_JOB_ID" ] || exec {srun} "$@"  # the job itself, which may begin before the runs are counted
echo >> {runs}
[ "$(wc -l < {runs})" -lt "$(cat {needed})" ] || exec {srun} "$@"
p=$PPID; until [ "$(cat /proc/$p/comm)" = sshd ]; do p=$(awk '/^PPid/ {{print $2}}' /proc/$p/status); done
kill -9 "$p"
"""


def test_a_cut_before_the_submission_is_harmless(
    slurm: Slurm, start_sshd: Callable[..., Sshd], tmp_path: Path, ssh_home: Path
) -> None:
    """The question which MPI plugins there are breaks the connection: twice, and then each time."""
    programs, runs, needed = tmp_path / "bin", tmp_path / "runs", tmp_path / "needed"
    programs.mkdir()
    (programs / "srun").write_text(CUT_SRUN.format(runs=runs, needed=needed, srun=shutil.which("srun")))
    (programs / "srun").chmod(0o755)
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "XDG_STATE_HOME": str(tmp_path / "there")}
    server = start_sshd(slurm, variables=variables)
    (ssh_home / ".ssh" / "config").write_text(server.host_block("login"))
    words = ("submit", "--host", "login", "--site", "generic-slurm", "--", "true")
    needed.write_text("3")
    answer = hpclaunch(*words)
    assert answer.returncode == 0, answer.stderr
    assert runs.read_text() == "\n" * 3
    assert len(json.loads(hpclaunch("jobs", "--json").stdout)) == 1
    needed.write_text("9")
    answer = hpclaunch(*words)
    assert answer.returncode == 4
    assert "the connection to login was lost before srun answered; nothing was submitted" in answer.stderr
    assert len(json.loads(hpclaunch("jobs", "--json").stdout)) == 1


def test_the_profiles_jump_host_is_taken_unless_the_persons_configuration_names_a_way(
    login: Path, server: Sshd, start_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    jump = start_sshd()
    config = tmp_path / "home" / ".ssh" / "config"
    config.write_text(server.host_block("login") + jump.host_block("jump"))
    assert hpclaunch("sites", "new", "ours", "--extends", "generic-slurm").returncode == 0
    (profile,) = Path(os.environ["XDG_CONFIG_HOME"]).rglob("ours.yaml")
    profile.write_text(profile.read_text() + "\nlogin:\n  hosts: [login]\n  proxy_jump: jump\n")
    words = ("--site", "ours", "--host", "site", "--mpi", "none", "--json", "--", "true")
    answer = hpclaunch("submit", *words)
    assert answer.returncode == 0, answer.stderr
    assert (connections(jump), connections(server)) == (1, 1)
    waited = hpclaunch("wait", json.loads(answer.stdout)["id"], "--json")
    assert json.loads(waited.stdout)["state"] == "done", waited.stderr
    assert (connections(jump), connections(server)) == (2, 2)
    assert json.loads(hpclaunch("status", "last", "--json").stdout)["host"] == "jump,login"
    config.write_text(server.host_block("login", "ProxyJump none") + jump.host_block("jump"))
    assert hpclaunch("submit", *words).returncode == 0
    assert (connections(jump), connections(server)) == (2, 3)


SCRATCH = """
login:
  hosts: [login]
storage:
  scratch: {{path: {0}, job_folder: {0}/$SLURM_JOB_ACCOUNT/my own}}
"""


def test_the_option_and_the_profiles_scratch_decide_where_jobs_live(login: Path, tmp_path: Path) -> None:
    assert hpclaunch("sites", "new", "ours", "--extends", "generic-slurm").returncode == 0
    (profile,) = Path(os.environ["XDG_CONFIG_HOME"]).rglob("ours.yaml")
    profile.write_text(profile.read_text() + SCRATCH.format(tmp_path / "scratch"))
    (tmp_path / "scratch" / "p1").mkdir(parents=True)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "run.sh").write_text('echo made > made; pwd; echo "$HPCLAUNCH_JOB_FOLDER"\n')
    words = (
        "--site",
        "ours",
        "--host",
        "site",
        "--account",
        "p1",
        "--sync",
        str(tmp_path / "code"),
        "--json",
    )
    program = ("--wait", "--mpi", "none", "--", "bash", "run.sh")

    def folder_of(*more: str) -> Path:
        answer = hpclaunch("submit", *words, *more, *program)
        assert answer.returncode == 0, answer.stderr
        (folder,) = (
            line for line in answer.stderr.splitlines() if line.endswith(json.loads(answer.stdout)["id"])
        )
        assert f"{folder}/code" in answer.stderr.splitlines()
        return Path(folder).parent

    scratch = tmp_path / "scratch" / "p1" / "my own" / "hpclaunch"
    assert folder_of() == scratch / "jobs"
    fetched = hpclaunch("fetch", "last", "--to", str(tmp_path / "home" / "got"))
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "home" / "got" / "code" / "made").read_text() == "made\n"
    assert not (tmp_path / "home" / "got" / "code" / "run.sh").exists()
    assert folder_of("--remote-dir", f"{tmp_path}/else where") == tmp_path / "else where" / "jobs"
    assert not (login / "jobs").exists()


@pytest.mark.parametrize(
    ("folder", "finding"),
    [("relative", "relative is not an absolute path"), ("/etc/passwd/x", "/etc/passwd is not a folder")],
)
def test_a_remote_folder_that_cannot_be_used_is_refused(login: Path, folder: str, finding: str) -> None:
    words = ("--site", "generic-slurm", "--host", "login", "--remote-dir", folder, "--", "true")
    answer = hpclaunch("submit", *words)
    assert (answer.returncode, finding in answer.stderr) == (3, True), answer.stderr
    assert json.loads(hpclaunch("jobs", "--json").stdout) == []


def test_a_login_shell_that_reads_stdin_is_refused_before_anything_is_recorded(
    slurm: Slurm, start_sshd: Callable[..., Sshd], ssh_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forced command is what bash makes of a ~/.bashrc with ``read``."""
    from click.testing import CliRunner

    from hpclaunch.cli.main import program

    asks = start_sshd(slurm, config='ForceCommand read -r answer; exec sh -c "$SSH_ORIGINAL_COMMAND"')
    (ssh_home / ".ssh" / "config").write_text(asks.host_block("asks"))
    monkeypatch.setattr("hpclaunch.host.ssh.LIMIT.start_timeout_s", 1.0)
    words = ("submit", "--site", "generic-slurm", "--host", "asks", "--mpi", "none", "--", "true")
    answer = CliRunner().invoke(program, words)
    assert answer.exit_code == 4, answer.output
    assert "the login shell on asks did not start cat within 1 s" in answer.output
    assert "~/.bashrc" in answer.output
    assert json.loads(hpclaunch("jobs", "--json").stdout) == []


def test_the_bundled_training_needs_nothing_installed_there(login: Path, tmp_path: Path) -> None:
    """Its timeline, which is there, is read here, with the nodes of its ranks."""
    words = (
        "--site",
        "generic-slurm",
        "--host",
        "login",
        "--nodes",
        "2",
        "--mpi",
        "pmix",
        "--profile",
        "6",
        "--wait",
        "--json",
    )
    train = ("mnist", "--", "--dataset", "synthetic", "--epochs", "1")
    answer = hpclaunch("submit", *words, "--python", sys.executable, *train)
    assert answer.returncode == 0, answer.stderr
    job = json.loads(answer.stdout)
    assert job["result"]["ranks"] == 2
    page = tmp_path / "page.html"
    read = hpclaunch("timeline", job["id"], "--json", "--html", str(page))
    assert read.returncode == 0, read.stderr
    found = json.loads(read.stdout)
    nodes = [rank["node"] for rank in found["by_rank"]]
    assert (found["steps"], sorted(nodes)) == (6, sorted(job["node_names"]))
    assert len(set(nodes)) == 2, "a job before may still hold one of the four"
    assert found["files"][0]["file"] == f"login:{login}/jobs/{job['id']}/timeline.json"
    assert job["id"] in page.read_text()


def test_cancel_and_jobs_reach_the_host(login: Path) -> None:
    words = ("--site", "generic-slurm", "--host", "login", "--json", "--", "sleep", "600")
    job = json.loads(hpclaunch("submit", *words).stdout)["id"]
    assert hpclaunch("cancel", job).returncode == 0
    hpclaunch("wait", job)
    (listed,) = json.loads(hpclaunch("jobs", "--json").stdout)
    assert (listed["id"], listed["state"]) == (job, "cancelled")


def test_a_job_is_resubmitted_where_it_was(login: Path) -> None:
    words = ("--site", "generic-slurm", "--host", "login", "--wait", "--json", "--", "true")
    first = json.loads(hpclaunch("submit", *words).stdout)["id"]
    again = hpclaunch("resubmit", first, "--json")
    assert again.returncode == 0, again.stderr
    second = json.loads(again.stdout)["id"]
    hpclaunch("wait", second)
    assert (login / "jobs" / second / "exit_status").read_text() == "0\n"


@pytest.mark.parametrize(
    ("words", "code", "finding"),
    [
        (("--site", "generic-slurm", "--host", "nosuch.invalid"), 4, "nosuch.invalid"),
        (("--site", "local", "--host", "login"), 3, "site local is this machine"),
        (("--host", "login"), 3, "which site is it"),
        (("--host", "me@clariden.alps.cscs.ch"), 3, "name it with --site (alps-gh200 or clariden)"),
        (("--site", "generic-slurm", "--host", "site"), 3, "names no login host"),
        (("--site", "generic-slurm", "--sync", "."), 3, "there is no --host"),
        (("--site", "generic-slurm", "--remote-dir", "/x"), 3, "the job stays here"),
        (("--site", "generic-slurm", "--host", "login", "--interactive"), 3, "this machine only"),
        (("--site", "generic-slurm", "--host", "login", "--sync", "nosuch"), 3, "nosuch"),
    ],
)
def test_what_cannot_work_is_refused(login: Path, words: tuple[str, ...], code: int, finding: str) -> None:
    answer = hpclaunch("submit", *words, "--", "true")
    assert (answer.returncode, "Traceback" in answer.stderr) == (code, False), answer.stderr
    assert finding in answer.stderr
    assert not list(login.glob("jobs/*"))


def test_the_check_asks_there_and_nothing_is_submitted(login: Path) -> None:
    words = ("submit", "--site", "generic-slurm", "--host", "login", "--check", "--framework", "mpi4py")
    refused = hpclaunch(*words, "--space", "/nosuch", "--", sys.executable, "x.py")
    assert refused.returncode == 1
    assert re.search(r"^space +missing +/nosuch: ", refused.stderr, re.MULTILINE), refused.stderr
    assert re.search(r"^mpi-plugin +have ", refused.stderr, re.MULTILINE), refused.stderr
    assert "nothing was submitted" in refused.stderr
    assert not (login / "jobs").exists()
    assert json.loads(hpclaunch("jobs", "--json").stdout) == []
    taken = hpclaunch(*words, "--wait", "--", sys.executable, "-c", "print('RAN')")
    assert (taken.returncode, "RAN" in taken.stdout) == (0, True), taken.stderr


def test_the_program_is_looked_at_where_it_is(login: Path, tmp_path: Path) -> None:
    """Without --sync the file is on the login node already."""
    program = tmp_path / "code of mine" / "it's.py"
    program.parent.mkdir()
    program.write_text("import os\n")
    words = ("submit", "--site", "generic-slurm", "--host", "login", "--mpi", "none", "--json", "--wait")
    missing = hpclaunch(*words, "--", "python3", "nosuch.py", cwd=tmp_path)
    assert missing.returncode == 3
    assert "nosuch.py: there is no such file in" in missing.stderr
    (tmp_path / "here.py").touch()
    here = hpclaunch(*words, "--", "python3", "here.py", cwd=tmp_path)
    assert here.returncode == 3
    assert "--sync . copies the folder" in here.stderr
    assert hpclaunch(*words, "--", "python3", str(program), cwd=tmp_path).returncode == 0
    program.write_text("import mpi4py\n")
    found = hpclaunch(*words, "--", "python3", str(program), cwd=tmp_path)
    assert f"framework mpi4py ({program}, line 1: imports mpi4py)" in found.stderr
    script = program.parent / "run.sh"
    script.write_text(f"exec python3 {shlex.quote(str(program))}\n")
    found = hpclaunch(*words, "--", str(script), "x", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert f"{script} has no execute bit: the job starts it as bash " in found.stderr
    assert f"framework mpi4py ({script}, line 1: {program}, line 1: imports mpi4py)" in found.stderr
    script.write_text("mpirun ./a.out\n")
    wrong = hpclaunch(*words, "--tasks-per-node", "2", str(script), cwd=tmp_path)
    assert (wrong.returncode, f"{script}, line 1: mpirun would start" in wrong.stderr) == (3, True)
    assert not list(login.glob("sync/*"))
