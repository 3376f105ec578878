"""A file where a program is expected: what is put in front of it, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.host.this_machine import LocalHost
from hpclaunch.job.find_out import look_on
from hpclaunch.plan.script_commands import FileFacts, start_file
from tests.in_one_test import in_one_test

PROGRAM = FileFacts(executable=True, head="#!/usr/bin/env python3\n")
PLAIN = FileFacts(head="echo\n")
FILES = {
    "train.py": PLAIN,
    "./train.py": PLAIN,
    "./go.py": PROGRAM,
    "go.py": PROGRAM,
    "./none.py": FileFacts(executable=True, head="import os\n"),
    "./windows.py": FileFacts(executable=True, head="#!/usr/bin/env python\r\n"),
    "run.sh": PLAIN,
    "./run.sh": FileFacts(executable=True, head="echo\n"),
    "fish.sh": FileFacts(head="#!/usr/bin/env -S zsh -f\n"),
    "./tool": FileFacts(head="#!/bin/sh -e\n"),
    "./env": FileFacts(head="#!/usr/bin/env -S uv run --script\n"),
    "./a.out": FileFacts(executable=True, head="\x7fELF"),
}


@in_one_test(
    "line, by_suffix, started",
    [
        ("train.py --lr 1", True, "python3 train.py --lr 1"),
        ("train.py --lr 1", False, "python3 train.py --lr 1"),
        ("./go.py", True, "python3 ./go.py"),
        ("./go.py", False, "./go.py"),
        ("go.py", False, "python3 go.py"),
        ("./none.py", False, "python3 ./none.py"),
        ("./windows.py", False, "python3 ./windows.py"),
        ("run.sh a", True, "bash run.sh a"),
        ("run.sh", False, "bash run.sh"),
        ("./run.sh", True, "bash ./run.sh"),
        ("./run.sh", False, "./run.sh"),
        ("fish.sh", True, "zsh fish.sh"),
        ("./tool x", False, "/bin/sh -e ./tool x"),
        ("./env", False, "uv run --script ./env"),
        ("./a.out", False, "./a.out"),
        ("nohup nice ./train.py", False, "nohup nice python3 ./train.py"),
        ("uv run train.py", False, "uv run train.py"),
        ("conda run -n x ./train.py", False, "conda run -n x python3 ./train.py"),
        ("conda run --cwd x ./train.py", False, "conda run --cwd x ./train.py"),
        ("not-there.py", False, "not-there.py"),
        ("not-there.py", True, "python3 not-there.py"),
        ("python train.py", False, "python train.py"),
        ("bash run.sh", False, "bash run.sh"),
    ],
)
def test_what_starts_a_file(line: str, by_suffix: bool, started: str) -> None:
    argv = tuple(line.split())
    found = start_file(argv, FILES.get, "python3", by_suffix=by_suffix)
    assert " ".join(found.argv) == started
    assert found.problem is None
    assert (found.note is not None) == (found.argv != argv and not by_suffix)


@in_one_test(
    "facts, message",
    [
        (FileFacts(head="data"), "has no execute bit, and neither a #! line nor a suffix"),
        (FileFacts(folder=True), "is a folder, no program"),
        (FileFacts(executable=True, head="#!/bin/bash\r\n"), "has the line ends of Windows (CRLF)"),
    ],
)
def test_what_nothing_can_start_is_refused(facts: FileFacts, message: str) -> None:
    found = start_file(("./it",), lambda _: facts, "python3", by_suffix=False)
    assert found.problem is not None
    assert f"./it {message}" in found.problem.message
    assert found.problem.hint
    assert found.argv == ("./it",)


@given(st.text(), st.text(), st.booleans(), st.booleans())
def test_what_is_started_once_stays(path: str, head: str, executable: bool, by_suffix: bool) -> None:
    facts = FileFacts(executable=executable, head=head)
    once = start_file((path, "x"), lambda _: facts, "python3", by_suffix=by_suffix)
    assert once.argv[-2:] == (path, "x")
    if once.argv[0] == "python3":
        assert start_file(once.argv, lambda _: facts, "python3", by_suffix=False).argv == once.argv


def test_the_kernel_agrees(tmp_path: Path) -> None:
    """What is left as it is starts, and what gets an interpreter does not start without it."""
    texts = {
        "a.py": "#!/usr/bin/env python3\n",
        "b.py": "print()\n",
        "c": "#!/bin/sh\r\n",
        "d": "#!/bin/sh\n",
    }
    for name, text in texts.items():
        for executable in (False, True):
            file = tmp_path / f"{executable}-{name}"
            file.write_text(text)
            file.chmod(0o755 if executable else 0o644)
            path = f"./{file.name}"
            look = look_on(LocalHost(), str(tmp_path))
            found = start_file((path,), look, "python3", by_suffix=False)
            try:
                starts = subprocess.run([path], cwd=tmp_path, capture_output=True).returncode == 0
            except OSError:
                starts = False
            assert starts == (found.argv == (path,) and found.problem is None), path
            if found.problem is None:
                assert subprocess.run(found.argv, cwd=tmp_path, capture_output=True).returncode == 0


def test_a_path_of_any_kind_is_looked_at(tmp_path: Path) -> None:
    look = look_on(LocalHost(), str(tmp_path))
    (tmp_path / "it's $x\n").write_bytes(b"#!\xff")
    os.mkfifo(tmp_path / "pipe")
    assert look("it's $x\n") is not None
    assert look("x" * 10**6) is None
    assert look("nosuch") is None
    folder = look(".")
    assert folder is not None
    assert folder.folder
    assert look("pipe") is None
