"""The table of known errors, in the words of the programs that write them."""

from __future__ import annotations

import os
import subprocess
from functools import cache, partial
from pathlib import Path

import yaml

from hpclaunch.failures.failed_ranks import FailedRank, failed_ranks, first_failed_rank
from hpclaunch.failures.known_errors import (
    OWN_ERROR,
    RANK_ENDED,
    KnownError,
    error_lines,
    error_of,
    known_errors,
    log_words,
)
from hpclaunch.failures.read_failure import FailureLog, verdict
from tests.in_one_test import in_one_test

_FILE = Path(__file__).parents[1] / "data" / "known_errors.yaml"
DATA = yaml.load(_FILE.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""Cause -> ``texts`` that real programs wrote, and ``harmless`` ones that look alike."""
TEXTS = [(cause, text) for cause, row in DATA.items() for text in row["texts"]]
OWN = "/env/lib/python3.11/multiprocessing/connection.py"
FILES = (f"/env/lib/python3.11/site-packages/torch/utils/data/x.py\n{OWN}", OWN)
"""Files of the frames of tracebacks, for the rows that must be in one."""
HARMLESS = [
    *((cause, text) for cause, row in DATA.items() for text in row.get("harmless", ())),
    *((OWN_ERROR, text) for text in ("epoch 1: loss 0.3", "no errors so far", "memory: 12 GB", "0 errors")),
]


@cache
def in_either(text: str) -> list[KnownError]:
    """The row of a line in a traceback, and, if it is none of tracebacks, that of the line alone."""
    outside = error_of(text)
    inside = [*map(partial(error_of, text), FILES)]
    return [error for error in (*inside, outside) if error and (error in inside or error.outside)]


@in_one_test("cause, text", TEXTS)
def test_an_error_is_recognised(cause: str, text: str) -> None:
    assert cause in {error.cause for error in in_either(text)}


def test_grep_finds_every_error() -> None:
    lines = [text.rstrip("\n") for _, text in TEXTS]
    words = ["grep", "-aE", "-e", error_lines()]
    found = subprocess.run(words, input="\n".join(lines), capture_output=True, text=True)
    assert found.stdout.rstrip("\n").split("\n") == lines


@in_one_test("cause, text", HARMLESS)
def test_a_harmless_line_is_not(cause: str, text: str) -> None:
    found = verdict(FailureLog(lines=("step 1", text, "step 2")))
    assert (found.error, found.lines) == (None, ())


@in_one_test(
    "message, cause",
    [
        ("ValueError: image 12.png not found in the index", OWN_ERROR),
        ("ValueError: command 'train' not found in registry", OWN_ERROR),
        ("ValueError: module encoder.layer not found", OWN_ERROR),
        ("subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.", OWN_ERROR),
        (
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=1): x",
            OWN_ERROR,
        ),
        ("google.api_core.exceptions.ResourceExhausted: 429 Quota exceeded for metric", "too many requests"),
    ],
)
def test_words_of_shells_and_launchers_are_other_ones_in_an_exception(message: str, cause: str) -> None:
    frames = (f'  File "/h/{name}", line 3, in f\n    g()' for name in ("a.py", "site-packages/x/y.py"))
    log = ("Traceback (most recent call last):", *"\n".join(frames).splitlines(), message)
    found = verdict(FailureLog(lines=log), failed=True)
    assert found.error is not None
    assert found.error.cause == cause


def texts_of(error: KnownError) -> list[str]:
    """The texts of a row, of those of its cause."""
    return [text for text in DATA[error.cause]["texts"] if error in in_either(text)]


def test_each_row_is_shown_by_two_texts() -> None:
    assert set(DATA) == {error.cause for error in known_errors()}
    assert [(error.cause, error.source) for error in known_errors() if len(set(texts_of(error))) < 2] == []


def test_each_row_says_where_it_is_from() -> None:
    assert [error.cause for error in known_errors() if not (error.holds and error.source)] == []


def test_there_are_140_rows_and_20_have_decoys() -> None:
    assert len(known_errors()) >= 140
    assert sum(bool(row.get("harmless")) for row in DATA.values()) >= 20


def test_rows_name_rows() -> None:
    rows = {error.cause for error in known_errors()}
    assert set().union(*(error.explains for error in known_errors())) <= rows
    assert {OWN_ERROR, RANK_ENDED} <= rows


def srun(node: str, words: str) -> str:
    return f"srun: error: {node}: task{words}\n"


@in_one_test(
    "log, rank, node, code",
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
        ["grep", "-aE", "-e", log_words("rank_lines").pattern], input=log, capture_output=True, text=True
    ).stdout
    assert failed_ranks(lines) == failed_ranks(log)


STEP_ABORTED = "srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"
ONE_CHOSE = srun("n1", " 0: Killed") + srun("n1", " 1: Exited with exit code 3") + srun("n2", "s 2-3: Killed")


@in_one_test(
    "log, rank",
    [
        (STEP_ABORTED + ONE_CHOSE, "1"), (STEP_ABORTED + srun("n1", "s 0-3: Killed"), "0-3"),
        (ONE_CHOSE, "0"),
        (srun("n1", " 0: Killed") + STEP_ABORTED + srun("n1", " 1: Exited with exit code 3"), "0"),
    ],
)  # fmt: skip
def test_a_step_that_ends_before_its_ranks_kills_all_but_the_one_that_aborted(log: str, rank: str) -> None:
    """MPI_Abort under srun --mpi=pmix of Slurm 22.05.8, Open MPI 5.0.11; else it may be memory."""
    assert (first_failed_rank(log) or FailedRank(None, None, None, "")).rank == rank
    words = ("solver: matrix is singular at row 17",)
    found = verdict(FailureLog(log, tuple(log.splitlines()), {"1": words}), failed=True, ranks=4)
    assert (found.rank == "1", found.lines == words) == (rank == "1", rank == "1")


def test_what_launchers_say_otherwise_names_no_rank() -> None:
    assert (
        first_failed_rank("srun: error: Unable to create step\nsrun: error: n1: task 0: odd words\n") is None
    )
    assert first_failed_rank(Path(__file__).read_text()) is None


def test_the_page_of_troubleshooting_has_the_table() -> None:
    """HPCLAUNCH_TEST_UPDATE_GOLDEN=1 writes it: what the log says, the error, the remedy, the source."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "troubleshooting.md"
    head, mark, _ = page.read_text().partition("change it there. -->\n\n")
    table = "| the log says | error | remedy | known for |\n|---|---|---|---|\n"
    for error in known_errors():
        said = "<br>".join(f"`` {text.strip()} ``" for text in texts_of(error)[:2])
        source = f"[{error.holds}]({error.source})" if error.source.startswith("https:") else error.holds
        cells = (said, error.cause, error.remedy or "read the lines above it", source)
        table += f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"
    if os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"):
        page.write_text(head + mark + table)
    assert page.read_text() == head + mark + table
