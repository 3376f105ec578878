"""The program as a whole: errors of the system, closed pipes, exit codes, the words before and after --."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest
from msgspec.structs import replace

from hpclaunch.cli import main
from hpclaunch.job.store import Store
from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here
from tests.own_process import hpclaunch
from tests.scripts import bare
from tests.testbed.kit import new_record

HPCLAUNCH = (sys.executable, "-m", "hpclaunch")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sites", "list"), ("--help",), ("submit", "--help")])
def test_a_full_disk_is_one_line(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*HPCLAUNCH, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "hpclaunch: the output or a file: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", ["sites list", "--help", "submit --site generic-slurm --dry-run -- true"])
def test_a_closed_output_is_one_line(words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m hpclaunch {words} >&-"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "hpclaunch: the output or a file: Bad file descriptor"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_error_output_changes_nothing() -> None:
    line = f"{sys.executable} -m hpclaunch sites show nosuch 2>&- <&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


@pytest.mark.slow
def test_a_folder_that_was_removed_is_named(tmp_path: Path) -> None:
    line = f"rmdir {tmp_path}/gone; {sys.executable} -m hpclaunch submit --site local -- true"
    (tmp_path / "gone").mkdir()
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path / "gone")
    assert done.returncode == 3
    assert done.stderr == "hpclaunch: the folder that you are in has been removed: go to another one\n"


@pytest.mark.parametrize(
    ("file", "why"), [(".", "Is a directory"), ("/nosuch/x.html", "No such file or directory")]
)
def test_a_page_that_cannot_be_written_is_bad_input(file: str, why: str, tmp_path: Path) -> None:
    store = Store()
    record = replace(new_record(store, "local", tmp_path), state="done")
    store.save(record)
    done = hpclaunch_here("report", record.id, "--html", file, folder=tmp_path)
    assert (done.returncode, done.stderr) == (3, f"hpclaunch: {file}: cannot be written: {why}\n")


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    line = f"{sys.executable} -m hpclaunch sites list | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


CTRL_C_AT = """
import sys
module, sys.argv[1:] = sys.argv[1], ["jobs"]
class Finder:
    def find_spec(name, *_):
        if name == module:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder)
sys.modules.pop(module, None)
from hpclaunch.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["typing", "re", "click", "hpclaunch.cli.main", "hpclaunch.cli.jobs", "hpclaunch.api", "msgspec"],
)
def test_ctrl_c_while_modules_are_loaded_shows_no_traceback(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", CTRL_C_AT, module], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_debug_shows_the_traceback_and_keeps_the_exit_code() -> None:
    done = hpclaunch_here("--debug", "sites", "show", "nosuch")
    assert done.returncode == 3
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-2].startswith("hpclaunch: no site is named 'nosuch'")
    assert "Traceback" not in hpclaunch_here("sites", "show", "nosuch").stderr


def test_a_program_called_mnist_is_a_program() -> None:
    words = ("submit", "--site", "generic-slurm", "--dry-run")
    assert hpclaunch_here(*words, "--", "mnist", "--foo").stdout.endswith("  mnist --foo\n")
    assert "-m hpclaunch.train --foo" in hpclaunch_here(*words, "mnist", "--", "--foo").stdout


@in_one_test(
    "words, hint",
    [
        (
            ("mnist", "--epochs", "3"),
            "of the training come after --: hpclaunch submit mnist -- --epochs",
        ),
        (
            ("python", "x.py", "--lr", "1"),
            "and its options come after --: hpclaunch submit -- --lr",
        ),
        (("python",), "put a command after -- (hpclaunch submit -- python)"),
        (("--node", "3"), "--nodes"),
    ],
)
def test_options_in_the_wrong_place_are_explained(words: tuple[str, ...], hint: str) -> None:
    done = hpclaunch_here("submit", *words)
    assert done.returncode == 2
    assert hint in " ".join(done.stderr.split())


@pytest.mark.mpi
def test_a_job_is_repeated_from_another_folder_with_other_options(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "my.yaml").write_text("schema: 1\nname: my\nextends: local\n")
    (here / "job.yaml").write_text("env: {A: '1', B: '1'}\ntasks: 2\n")
    words = ("submit", "--site", "my.yaml", "--file", "job.yaml", "--json", "--", "true")
    first = hpclaunch(*words, cwd=here)
    assert first.returncode == 0, first.stderr
    job = json.loads(first.stdout)["id"]
    usual = hpclaunch("resubmit", job, "--dry-run", cwd=there)
    assert usual.returncode == 0, usual.stderr
    assert "x 2 ranks = 2 ranks" in usual.stdout
    other = hpclaunch(
        "resubmit", job, "--dry-run", "--tasks", "3", "--env", "B=2", "--name", "new", cwd=there
    )
    assert other.returncode == 0, other.stderr
    assert "x 3 ranks = 3 ranks" in other.stdout
    assert {"export A=1", "export B=2"} <= set(bare(other.stdout).split("\n"))
    shown = [line.split() for line in other.stderr.splitlines()]
    assert ["tasks", "3", "command", "line"] in shown
    assert ["name", "new", "command", "line"] in shown
    assert ["env", "B", "2", "command", "line"] in shown
    refused = hpclaunch("resubmit", job, "--account", "p1", cwd=there)
    assert refused.returncode == 3
    assert "--account has no effect" in refused.stderr


OFFERED = """
schema: 1
name: my
extends: local
sources: {page: {url: 'https://example.org/', checked: 2026-11-20}}
software:
  offers:
    torch: {environment: {path: [/opt/torch/bin]}, env: {OF_THE_SITE: '1'}, source: page}
"""


@pytest.mark.mpi
def test_a_repeated_job_keeps_the_software_of_the_site(tmp_path: Path) -> None:
    """Also where the profile offers it no more."""
    profile = tmp_path / "my.yaml"
    profile.write_text(OFFERED)
    words = ("submit", "--site", "my.yaml", "--software", "torch", "--env", "MINE=2", "--json", "--", "true")
    first = hpclaunch(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    job = json.loads(first.stdout)["id"]
    lines = {'export PATH="/opt/torch/bin":"$PATH"', "export OF_THE_SITE=1", "export MINE=2"}
    kept = hpclaunch("resubmit", job, "--dry-run", cwd=tmp_path)
    assert lines <= set(bare(kept.stdout).split("\n")), kept.stdout + kept.stderr
    assert ["software", "torch", "job", job] in [line.split() for line in kept.stderr.splitlines()]
    assert "software of the site" in kept.stdout
    profile.write_text(OFFERED.partition("sources:")[0])
    gone = hpclaunch("resubmit", job, "--dry-run", cwd=tmp_path)
    assert lines <= set(bare(gone.stdout).split("\n")), gone.stdout + gone.stderr


def test_the_version_and_the_short_options_of_sbatch() -> None:
    assert hpclaunch_here("-V").stdout == hpclaunch_here("--version").stdout
    words = (
        "-N",
        "2",
        "-n",
        "4",
        "-A",
        "p1",
        "-p",
        "gpu",
        "-t",
        "90",
        "-J",
        "try",
        "--dry-run",
        "--",
        "true",
    )
    shown = hpclaunch_here("submit", "--site", "generic-slurm", *words)
    lines = bare(shown.stdout).splitlines()
    options = {line.removeprefix("#SBATCH ") for line in lines if "#SBATCH" in line}
    wanted = {"--nodes=2", "--ntasks-per-node=2", "--account=p1", "--partition=gpu", "--job-name=try"}
    assert {*wanted, "--time=01:30:00"} <= options
    assert "--time 90 is 01:30:00: minutes" in shown.stderr
    assert "Default: 30 minutes" in " ".join(hpclaunch_here("submit", "--help-all").stdout.split())


@in_one_test(
    "words, code, hint",
    [
        (("submti",), 2, "did you mean hpclaunch submit?"),
        (("JOBS",), 2, "did you mean hpclaunch jobs?"),
        (("xyz",), 2, "hpclaunch --help lists the commands"),
        (("version",), 2, "did you mean hpclaunch -V?"),
        (("Queue",), 2, "did you mean hpclaunch jobs?"),
        (("submit", "--site", "LUMI-G", "--", "a"), 3, "did you mean 'lumi-g'?"),
        (("submit", "--site", "lumig", "--", "a"), 3, "did you mean 'lumi-g'?"),
        (("submit", "--framework", "pytorch", "--", "a"), 3, "Did you mean torch?"),
    ],
)
def test_a_name_that_is_nearly_right_is_offered(words: tuple[str, ...], code: int, hint: str) -> None:
    done = hpclaunch_here(*words)
    assert done.returncode == code
    assert hint in " ".join(done.stderr.split())


TABLE: dict[str, dict[str, str]] = json.loads((Path(main.__file__).parent / "commands.json").read_text())


@in_one_test("word", TABLE["meant"])
def test_a_word_that_people_try_is_answered_with_words_that_work(word: str) -> None:
    """What is offered is a command, with options and values that it takes."""
    assert word not in main.COMMANDS
    meant = TABLE["meant"][word].split()
    context = click.Context(main.program, info_name="hpclaunch")
    if meant[0].startswith("-"):
        assert hpclaunch_here(*meant).returncode == 0
        return
    found = main.program.get_command(context, meant[0])
    assert found is not None, meant
    for part in meant[1:]:
        if isinstance(found, click.Group):
            found = found.commands[part]
        else:
            options = [name for option in found.get_params(context) for name in option.opts]
            assert part in options or (meant[0], part) == ("submit", "mnist"), meant


def test_words_that_people_try_include_those_that_were_tried() -> None:
    assert {"run", "launch", "queue", "kill", "version", "help", "ls"} <= set(TABLE["meant"])


def test_the_help_lists_commands_in_groups_and_leaves_some_out() -> None:
    shown = hpclaunch_here("--help").stdout
    titles = ["Start", "Follow", "Understand", "Prepare"]
    assert [line for line in shown.splitlines() if line.rstrip(":") in titles] == [f"{t}:" for t in titles]
    listed = set(re.findall(r"^  ([a-z]+)  ", shown, re.MULTILINE))
    assert listed == set(main.COMMANDS) - {"forget", "completion"}


@in_one_test(
    "words", [("forget", "--help"), ("completion", "bash"), ("env", "plan", "--help"), ("env", "--help")]
)
def test_commands_that_are_not_listed_and_former_names_work(words: tuple[str, ...]) -> None:
    assert hpclaunch_here(*words).returncode == 0


@pytest.mark.parametrize("command", ["submit", "resubmit"])
def test_the_help_is_short_and_help_all_has_every_option(command: str) -> None:
    short, whole = (
        hpclaunch_here(command, words, environment={"COLUMNS": "80"}).stdout
        for words in ("--help", "--help-all")
    )
    assert len(short.splitlines()) <= 40
    context = click.Context(main.program, info_name="hpclaunch")
    found = main.program.get_command(context, command)
    assert found is not None
    names = [
        opt for one in found.params if isinstance(one, click.Option) and not one.hidden for opt in one.opts
    ]
    assert [name for name in names if name not in whole] == []
    assert "--sample" in whole
    assert "--sample" not in short
    assert "--help-all" in short
    assert set(main.TABLE["short help"][command]) <= {one.name for one in found.params}


def test_a_dry_run_that_would_be_refused_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    """The script is shown either way."""
    words = ("submit", "--site", "generic-slurm", "--dry-run", "--framework", "torch")
    usual = hpclaunch_here(*words, "--", "python", "no.py", folder=tmp_path)
    strict = hpclaunch_here(*words, "--strict", "--", "python", "no.py", folder=tmp_path)
    document = hpclaunch_here(*words, "--strict", "--json", "--", "python", "no.py", folder=tmp_path)
    assert (usual.returncode, strict.returncode, document.returncode) == (0, 3, 3)
    assert "submitting this job is refused: " in strict.stderr
    assert strict.stdout == usual.stdout
    assert "#SBATCH" in strict.stdout
    assert json.loads(document.stdout)["problems"]
    (tmp_path / "yes.py").write_text("")
    accepted = (*words, "--software", "none", "--gpus-per-task", "0", "--strict", "--", "python", "yes.py")
    assert hpclaunch_here(*accepted, folder=tmp_path).returncode == 0
    assert hpclaunch_here("submit", "--site", "local", "--strict", "--", "true").returncode == 2


def test_a_framework_is_named_in_any_case() -> None:
    words = ("submit", "--site", "generic-slurm", "--framework", "Torch", "--dry-run", "--", "true")
    assert "LOCAL_WORLD_SIZE" in hpclaunch_here(*words).stdout


def on_terminal(columns: int, *words: str, **variables: str) -> str:
    """Run hpclaunch with its output on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", **variables}
    with subprocess.Popen([*HPCLAUNCH, *words], stdout=theirs, env=environment) as program:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # what Linux gives at the end of a terminal
                break
            if not piece:
                break
            shown += piece
        assert program.wait() == 0
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_tables_know_the_width_of_the_terminal() -> None:
    wide, narrow = hpclaunch("sites", "list").stdout, on_terminal(60, "sites", "list")
    assert max(map(len, wide.splitlines())) > 80
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.split() == wide.split()


@pytest.mark.slow
def test_states_have_a_colour_where_it_is_wanted(tmp_path: Path) -> None:
    store = Store()
    record = new_record(store, "local", tmp_path)
    store.save(replace(record, state="failed", exit_code=1))
    red = "\x1b[31mfailed\x1b[0m"
    assert red in on_terminal(200, "jobs")
    assert "\x1b[31mfailed, exit code 1\x1b[0m" in on_terminal(200, "status", record.id)
    assert red in hpclaunch("--color", "always", "jobs").stdout
    for shown in (
        on_terminal(200, "jobs", NO_COLOR="1"),
        on_terminal(200, "jobs", TERM="dumb"),
        on_terminal(200, "--color", "never", "jobs"),
        hpclaunch("jobs").stdout,
    ):
        assert "failed" in shown
        assert "\x1b" not in shown


def test_the_mixtures_that_are_refused_name_parameters_of_their_commands() -> None:
    table = json.loads((Path(str(main.__file__)).parent / "options.json").read_text())
    for name, mixtures in table["mixtures"].items():
        command = main.program.get_command(click.Context(main.program), name)
        assert command is not None
        named = {param.name for param in command.params}
        for words in mixtures:
            one, joint, other = words.split()
            assert {one, other} <= named, (name, words)
            assert joint in ("with", "without")
