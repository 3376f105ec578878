"""The table of known errors, in the words of the programs that write them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hpclaunch.job.failed_ranks import RANK_LINES, failed_ranks, first_failed_rank
from hpclaunch.job.known_errors import ERROR_LINES, KNOWN_ERRORS, recognise

DATA = Path(__file__).parents[1] / "data" / "known_errors.tsv"
LINES = {line: cause for cause, line in (row.split("\t") for row in DATA.read_text().splitlines())}
HARMLESS = ("epoch 1: loss 0.3", "no errors so far", "Saved the file exec.txt", "memory: 12 GB", "0 errors")


@pytest.mark.parametrize("line", LINES)
def test_an_error_is_recognised_here_and_by_grep(line: str) -> None:
    error, shown = recognise(["noise", line, "more noise"])
    assert error is not None
    assert (error.cause, shown) == (LINES[line], (line.strip(),))
    found = subprocess.run(["grep", "-aE", "-e", ERROR_LINES], input=line, capture_output=True, text=True)
    assert found.stdout.strip() == line.strip()


@pytest.mark.parametrize("line", HARMLESS)
def test_a_harmless_line_is_not(line: str) -> None:
    assert recognise([line]) == (None, ())


def test_each_row_of_the_table_is_tried() -> None:
    assert {error.cause for error in KNOWN_ERRORS} - set(LINES.values()) == {"segmentation fault"}


def test_the_cause_comes_before_what_follows_from_it() -> None:
    lines = ["RuntimeError: NCCL error: remote process exited", "ModuleNotFoundError: No module named 'x'"]
    error, shown = recognise([*lines, lines[1]])
    assert error is not None
    assert (error.cause, shown) == ("Python module missing", (lines[1],))


def srun(node: str, words: str) -> str:
    return f"srun: error: {node}: task{words}\n"


@pytest.mark.parametrize(
    ("log", "rank", "node", "code"),
    [
        (srun("n2", " 1: Terminated") + srun("n1", " 0: Exited with exit code 5"), "0",
         "n1", 5),
        (srun("n1", "s 0-3,7: Exited with exit code 1"), "0-3,7", "n1", 1),
        (srun("n1", " 2: Segmentation fault (core dumped)"), "2", "n1", 139),
        (srun("n1", " 2: Exited with exit code 143") + srun("n1", " 0: Killed"), "0", "n1",
         137),
        (srun("n1", " 0: Terminated"), "0", "n1", 143),
        ("   Process name: [prterun-vm-13861@1,1]\n   Exit code:    7\n", "1", None, 7),
        ("  Process name: [[25027,1],3]\n  Exit code:    7\n", "3", None, 7),
        ("prterun noticed that process rank 1 with PID 139 on node vm exited on\nsignal 9 (Killed).\n", "1",
         "vm", 137),
        ("=   PID 3145 RUNNING AT vm\n=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING:"
         " Killed (signal 9)\n", None, "vm", 137),
        ("x3008c0s13b0n0.hsn.cm: rank 3 exited with code 7\n", "3", "x3008c0s13b0n0.hsn.cm", 7),
        ("x3008c0s13b0n0.hsn.cm: rank 3 died from signal 15\nx1: rank 1 exited with code 2\n", "1", "x1", 2),
    ],
)  # fmt: skip
def test_the_rank_that_failed_first(log: str, rank: str | None, node: str | None, code: int) -> None:
    found = first_failed_rank(log)
    assert found is not None
    assert (found.rank, found.node, found.exit_code) == (rank, node, code)
    lines = subprocess.run(
        ["grep", "-aE", "-e", RANK_LINES], input=log, capture_output=True, text=True
    ).stdout
    assert failed_ranks(lines) == failed_ranks(log)


def test_what_launchers_say_otherwise_names_no_rank() -> None:
    assert (
        first_failed_rank("srun: error: Unable to create step\nsrun: error: n1: task 0: odd words\n") is None
    )
    assert first_failed_rank(Path(__file__).read_text()) is None


def test_the_page_of_troubleshooting_has_the_table() -> None:
    """HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes it: what the log says, the error, the remedy."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "troubleshooting.md"
    head, mark, _ = page.read_text().partition("change it there. -->\n\n")
    table = "| the log says | error | remedy |\n|---|---|---|\n"
    for error in KNOWN_ERRORS:
        shown = [line for line, cause in LINES.items() if cause == error.cause] or [
            error.pattern.split("|")[0]
        ]
        said = "<br>".join(f"`` {line.strip()} ``".replace("|", "\\|") for line in shown[:2])
        table += f"| {said} | {error.cause} | {error.remedy or 'read the lines above it'} |\n"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        page.write_text(head + mark + table)
    assert page.read_text() == head + mark + table
