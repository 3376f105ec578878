"""Whose words a log has, and who ended first, by what the ranks of a job have left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hpclaunch.failures.failed_ranks import failed_ranks
from hpclaunch.failures.known_errors import log_words
from hpclaunch.failures.read_failure import FailureLog, Verdict, verdict
from tests.in_one_test import in_one_test

TIMED_OUT = "RuntimeError: Timed out waiting 1800000ms for recv operation to complete"


def trace(words: str) -> tuple[str, ...]:
    return ("Traceback (most recent call last):", '  File "/h/a.py", line 3, in <module>', "    run()", words)


def ended(*ends: tuple[int, int]) -> str:
    return "\n".join(f"hpclaunch: task rank {rank} on host n1 failed (Exit {code})" for rank, code in ends)


def found(lines: tuple[str, ...], ends: str, **streams: Any) -> Verdict:
    failed = "\n".join(line for line in ends.splitlines() if "(Exit 0)" not in line)
    return verdict(FailureLog(failed, lines, ends=ends, **streams), failed=True, ranks=4)


def test_an_error_that_one_rank_printed_to_stdout_is_its_own_also_where_others_end_first() -> None:
    said = ("step 3", "cannot read shard 17: ValueError: negative length")
    waits = {str(rank): trace(TIMED_OUT) for rank in (0, 1, 3)}
    lines = (*said, *waits["0"], *waits["1"], *waits["3"])
    verdict = found(lines, ended((1, 1), (0, 143), (3, 143)), stderr=waits, stdout={"2": said})
    assert verdict.rank == "2"
    assert verdict.lines == ("cannot read shard 17: ValueError: negative length",)


def test_the_words_of_one_rank_that_stand_in_a_line_with_those_of_another_count_once() -> None:
    own = "expert 2: RuntimeError: Error(s) in loading state_dict for Expert: size mismatch for up.weight"
    waits = {str(rank): trace(TIMED_OUT) for rank in (0, 1, 3)}
    lines = (f"expert 0: restored{own}", "", *waits["0"], *waits["1"], *waits["3"])
    stdout = {"2": (own,), "0": ("expert 0: restored",)}
    verdict = found(lines, ended((1, 1), (0, 143), (3, 143)), stderr=waits, stdout=stdout)
    assert (verdict.rank, verdict.lines) == ("2", (own,))


@in_one_test("code", [152, 139, 3])
def test_the_rank_that_ended_first_without_a_word_is_at_fault(code: int) -> None:
    words = {str(rank): trace("EOFError") for rank in (0, 1, 3)}
    lines = (*words["0"], *words["1"], *words["3"])
    assert found(lines, ended((2, code), (3, 1), (0, 1), (1, 1)), stderr=words).rank == "2"


def test_the_first_to_end_is_not_at_fault_where_it_writes_of_another_rank() -> None:
    words = {
        "1": trace("RuntimeError: Connection closed by peer [10.0.0.1]:4711"),
        "2": trace("KeyError: 'age'"),
    }
    assert found((*words["1"], *words["2"]), ended((1, 1), (2, 1)), stderr=words).rank == "2"


def test_the_first_to_end_has_words_of_its_own_that_lead_to_another_ones_error() -> None:
    refused = (
        "cannot register granule 20: [Errno 111] Connection refused",
        "giving up: the catalogue is gone",
    )
    words = {"2": refused, "0": trace("ZeroDivisionError: division by zero")}
    assert found((*words["0"], *refused), ended((2, 111), (1, 111), (0, 1)), stderr=words).rank == "0"


def test_a_rank_that_was_done_before_all_others_lost_it_has_left_early() -> None:
    lost = {str(rank): trace("RuntimeError: Connection closed by peer [10.0.0.1]:4711") for rank in (0, 2)}
    ends = ended((1, 0), (2, 1), (0, 143), (3, 143))
    lines = ("rank 1: all shards done, bye", *lost["0"], *lost["2"])
    verdict = found(lines, ends, stderr=lost, stdout={"1": ("rank 1: all shards done, bye",)})
    assert verdict.rank == "1"
    assert verdict.lines == ("rank 1: all shards done, bye",)


def test_ranks_that_were_done_are_not_at_fault_where_a_later_one_has_its_own_error() -> None:
    words = trace("OSError: [Errno 28] No space left on device")
    ends = ended((1, 0), (2, 0), (3, 0), (0, 1))
    assert found(words, ends, stderr={"0": words}).rank == "0"


def test_the_last_words_of_a_rank_may_name_another_one() -> None:
    said = ("ocean[0] FATAL step 0: no halo from rank 3 within 12 s, aborting the whole model",)
    assert found(said, ended((0, 75), (2, 75)), stderr={"0": said}).rank == "3"


def test_a_closed_connection_to_a_process_follows_from_its_end() -> None:
    lost = (
        "Traceback (most recent call last):",
        '  File "/h/worker.py", line 23, in take',
        '  File "/usr/lib/python3.11/multiprocessing/connection.py", line 399, in _recv',
        "EOFError",
    )
    words = {str(rank): lost for rank in (1, 2, 3)}
    queue = {"0": ("I owner: queue is empty, work done",)}
    verdict = found(
        (*queue["0"], *lost, *lost, *lost), ended((0, 0), (2, 1), (3, 1)), stderr=words, stdout=queue
    )
    assert (verdict.rank, verdict.lines) == ("0", queue["0"])


@in_one_test(
    "code, words", [(3, "exited with exit code 3"), (137, "Killed"), (255, "exited with exit code 255")]
)
def test_an_end_is_in_the_words_of_srun(code: int, words: str) -> None:
    assert [end.words for end in failed_ranks(ended((1, code)))] == [words]


def test_a_labelled_error_of_the_log_counts_besides_its_copy_in_stderr() -> None:
    """After that, in a message of many lines, the rank seems to go on."""
    case = yaml.safe_load((Path(__file__).parents[1] / "data/failures/open/weights-only.yaml").read_text())
    stderr = {str(rank): tuple(words.splitlines()) for rank, words in case["stderr"].items()}
    lines = tuple(case["log"].splitlines())
    log = FailureLog("\n".join(filter(log_words("rank_lines").search, lines)), lines, stderr)
    told = verdict(log, failed=True, ranks=case["ranks"])
    assert (told.rank, told.candidates, told.error and told.error.cause) == (None, "0-1", "weights only")
