"""Tables of the commands: on terminals of each width, and as CSV."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from msgspec.structs import replace

from hpclaunch.cli.main import COMMANDS, program
from hpclaunch.job.record import BindingVerdict, LaterBinding, RankReport
from hpclaunch.job.store import Store
from hpclaunch.usage.report_documents import ReportDocument
from tests.in_process import hpclaunch_here
from tests.testbed.kit import new_record

DATA = Path(__file__).parents[1] / "data"


def on_terminal(columns: int, *words: str) -> str:
    """Return what a command prints on a terminal of that width, in this process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        try:
            while piece := os.read(ours, 1 << 16):
                shown.append(piece)
        except OSError:  # what Linux gives at the end of a terminal
            pass

    reader = threading.Thread(target=read)
    reader.start()
    before, sys.stdout = sys.stdout, os.fdopen(theirs, "w")
    try:
        program.main(["--color", "never", *words], prog_name="hpclaunch", standalone_mode=False)
    finally:
        sys.stdout.close()
        sys.stdout = before
        reader.join()
        os.close(ours)
    return b"".join(shown).decode().replace("\r\n", "\n")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return commands that print tables, with all that they need in the user's folders."""
    ranks = [
        RankReport(
            rank=rank, host="nid005017", local_rank=rank, cpus="49-55,113-119", planned="49-55,113-119",
            mems="0-7", gpus="0", bus="0000:c1:00.0", gpu_numa="3", verdict="ok" if rank else "cpus differ",
            later=(LaterBinding(cpus="0-63", name="python"),),
        )
        for rank in range(4)
    ]  # fmt: skip
    verdict = BindingVerdict(ok=False, finding="1 of 4 ranks did not get their binding", ranks=tuple(ranks))
    for name in ("a", "train", "long-name-" * 6):
        store = Store()
        record = new_record(store, "local", tmp_path, name)
        more = {"state": "failed", "exit_code": 1, "binding": verdict, "scheduler_id": "4711[1-9,20-80%4]"}
        more["created"] = "2026-01-02T03:04:05+00:00"  # its age in days stays the same during the test
        store.save(replace(record, **more))
    times = tmp_path / "times.csv"
    times.write_text("gpus,seconds\n8,4.0\n16,2.1\n16,2.2\n32,1.3\n64,1.1\n128,1.4\n")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --account=project_1\nsrun python train.py\n")
    report = msgspec.json.decode(
        (DATA / "on_gpu/fake-h100x2/report/report.json").read_bytes(), type=ReportDocument
    )
    monkeypatch.setattr("hpclaunch.job.refresh.binding_verdict", lambda *_: verdict)
    monkeypatch.setattr("hpclaunch.cli.report._of_ours_or_here", lambda _: report)
    return [
        ("jobs",),
        ("status", "train"),
        ("verify", "train"),
        ("sites", "list"),
        ("sites", "facts"),
        ("sites", "check", str(DATA / "probes/slurm-22.05.json")),
        ("topology", "--site", "lumi-g"),
        ("topology", "--site", "lumi-g", "--check-map", "49,57,17,25,1,9,33,41"),
        (
            "predict",
            "--site",
            "polaris",
            "--model",
            "resnet50",
            "--batch-per-worker",
            "64",
            "--gpus",
            "4,8,...,512",
        ),
        ("scale", "import", str(times), "--kind", "strong", "--gpus-per-node", "8"),
        ("timeline", str(DATA / "timelines/slow-rank1-input.json")),
        ("report", "last"),
        ("lint", str(script), "--site", "lumi-g"),
        ("lint", "--rules"),
        ("software", "show", "--site", "lumi-g"),
        ("lint", "--statistics", str(script), "--site", "lumi-g"),
        ("doctor",),
        ("docs",),
        ("submit", "--site", "lumi-g", "--account", "project_465000096", "--explain", "mnist"),
    ]


def too_long(text: str, columns: int) -> list[str]:
    """Return the lines that are too long, except those that end in a path or address, which stays whole."""
    lines = (line for line in text.splitlines() if len(line) > columns)
    return [line for line in lines if "/" not in line.split()[-1]]


@pytest.mark.slow
def test_each_table_fits_each_terminal_and_says_what_it_leaves_out(
    commands: list[tuple[str, ...]],
) -> None:
    """In a file or pipe, and with --wide, all columns are there."""
    narrower = 0
    for words in commands:
        whole = hpclaunch_here(*words).stdout
        for columns in (40, 52, 80, 120, 200):
            shown = on_terminal(columns, *words)
            assert too_long(shown, columns) == [], (words, columns)
            narrower += "not shown: " in shown
        if words[0] not in (
            "topology",
            "doctor",
            "docs",
            "submit",
        ):  # a terminal also gets a drawing; a version may change
            assert on_terminal(40, *words, "--wide") == whole, words
        assert "not shown: " not in whole
    assert narrower > 15


def test_headers_stand_above_their_columns(commands: list[tuple[str, ...]]) -> None:
    """A name longer than all others moves nothing."""
    for columns in (60, 80, 200):
        header, *rows = on_terminal(columns, "jobs").splitlines()
        at = header.index("STATE")
        states = [row[at:].split()[0] for row in rows if row.startswith("2")]
        assert states == ["failed"] * 3


@pytest.mark.slow
def test_a_table_as_csv_has_the_rows_of_the_document(commands: list[tuple[str, ...]]) -> None:
    for words in commands:
        if words[0] in ("scale", "docs") or "--statistics" in words:
            continue
        answer = hpclaunch_here(*words, "--csv").stdout
        document = json.loads(hpclaunch_here(*words, "--json").stdout)
        document = [document] if words[0] == "status" else document  # its table has one row
        tables = {"": document} if isinstance(document, list) else document
        found = [list(csv.DictReader(io.StringIO(part))) for part in answer.split("\n\n")]
        expected = {name: value for name, value in tables.items() if is_table(value)}
        assert all(found), (words, answer)
        named = {rows[0].get("table", ""): rows for rows in found}
        assert list(named) == list(expected), words
        for name, rows in named.items():
            objects = list(objects_in(expected[name]))
            assert len(rows) == len(objects), words
            for row, one in zip(rows, objects, strict=True):
                numbers = {key: value for key, value in one.items() if isinstance(value, int | float)}
                assert {key: json.loads(row[key]) for key in numbers} == numbers, words


def is_table(value: object) -> bool:
    return bool(list(objects_in(value)))


def objects_in(value: object) -> Iterator[dict[str, object]]:
    """Yield the objects of a list, and those of a mapping of objects or of lists of them."""
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, dict))
    elif isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()):
        yield from value.values()
    elif isinstance(value, dict) and all(isinstance(one, list) for one in value.values()):
        yield from (each for one in value.values() for each in objects_in(one))


def test_csv_and_json_exclude_each_other() -> None:
    answer = hpclaunch_here("jobs", "--json", "--csv")
    assert answer.returncode == 2
    assert "exclude each other" in answer.stderr


def test_csv_of_submit_is_that_of_explain() -> None:
    answer = hpclaunch_here("submit", "--site", "local", "--dry-run", "--csv", "mnist")
    assert answer.returncode == 2
    assert "--csv is for the table of --explain" in answer.stderr


def test_each_command_whose_table_json_has_knows_csv_and_wide() -> None:
    """A command without --json has no table, or one for people alone."""
    known = {}
    for name in COMMANDS:
        group = program.get_command(click.Context(program), name)
        assert group is not None
        for command in group.commands.values() if isinstance(group, click.Group) else [group]:
            known[f"{name} {command.name}"] = {word for each in command.params for word in each.opts}
    tables = {name for name, options in known.items() if "--wide" in options}
    assert {name for name in tables if "--csv" not in known[name]} == set()
    assert all("--json" in known[name] for name in tables)
    assert len(tables) > 15


def test_the_docs_show_a_table_as_it_is_at_each_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a wanted change: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes the tables again."""
    monkeypatch.chdir(tmp_path)
    Path("times.csv").write_text(
        "gpus,seconds\n8,4.0\n8,4.2\n16,2.1\n16,2.2\n32,1.2\n32,1.1\n64,0.66\n128,0.7\n"
    )
    page = Path(__file__).parents[2] / "docs" / "reference" / "tables.md"
    old = page.read_text()

    def shown(match: re.Match[str]) -> str:
        words = ("scale", "import", "times.csv", "--kind", "strong", "--gpus-per-node", "8")
        _, table, *_ = on_terminal(int(match[1]), *words).split("\n\n")
        return f"<!-- columns: {match[1]} -->\n```text\n{table}\n```"

    new = re.sub(r"<!-- columns: (\d+) -->\n```text\n.*?```", shown, old, flags=re.DOTALL)
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        page.write_text(new)
    assert re.findall(r"<!-- columns: (\d+)", new) == ["120", "80", "40"]
    assert new == (page.read_text() if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN") else old)
