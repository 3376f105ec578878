"""Wrong inputs of all kinds get a right answer, and odd but right ones are not refused.

``tests/data/wrong_inputs/README.md`` says how a case is written and judged; ``benchmarks/wrong_inputs.py``
counts them by half.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.wrong_inputs import HALVES, Answer, Case, Place, faults, make_place, read_cases, run_case
from tests.in_one_test import in_one_test

CASES = read_cases()
NAMED = {case.name: case for case in CASES}
KNOWN = {
    "init-program-missing": "init writes the job file all the same, and says that the program is not there",
    "train-batch-huge": "a batch of more images than there are is cut to them",
    "deepspeed-config-broken": "the file is read when the job starts",
    "file-nodes-nothing": "a key without a value is one that is left out",
}
"""Cases that are misjudged, each with what is not right yet."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("wrong"))


def starts_a_process(case: Case) -> bool:
    return "python" not in case.given and case.words()[0] == "python"


@pytest.mark.slow
@in_one_test("name", [case.name for case in CASES if not starts_a_process(case)])
def test_a_wrong_input_gets_a_right_answer(name: str, place: Place, tmp_path: Path) -> None:
    gets_a_right_answer(NAMED[name], place, tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in CASES if starts_a_process(case)])
def test_a_wrong_input_of_a_process_gets_a_right_answer(name: str, place: Place, tmp_path: Path) -> None:
    gets_a_right_answer(NAMED[name], place, tmp_path / name)


def gets_a_right_answer(case: Case, place: Place, folder: Path) -> None:
    folder.mkdir()
    answer = run_case(case, folder, place)
    found = faults(case, answer)
    assert bool(found) == (case.name in KNOWN), f"{found}\n{answer.err}"
    assert "internal fault" not in found
    assert "traceback" not in found


def test_few_of_many_are_misjudged() -> None:
    wrong = [case for case in CASES if not case.right]
    assert len(wrong) >= 200
    assert KNOWN.keys() <= {case.name for case in wrong}
    assert len(KNOWN) <= len(wrong) * 0.02
    assert len(CASES) - len(wrong) >= 30
    assert {case.half for case in wrong} == set(HALVES)


def _judged(answer: Answer, **given: object) -> list[str]:
    return faults(Case("a", {"run": "jobs", **given}), answer)


def test_the_judge_finds_each_fault() -> None:
    """A judge that finds nothing would pass everything."""
    refused = Answer(3, "", "hpclaunch: job.yaml:2: unknown key 'node'; did you mean 'nodes'?")
    says = ["job.yaml:2", "nodes"]
    assert _judged(refused, says=says) == []
    assert _judged(refused, says=["job.yaml:3"]) == ["does not say 'job.yaml:3'"]
    assert _judged(refused, says=["line 2|:2"]) == []
    assert _judged(refused, says=[["nowhere", "way"]]) == ["does not say ['nowhere', 'way']"]
    assert _judged(refused, says=says, exit=2) == ["exit status 3, not 2"]
    assert _judged(refused, says=says, never=["node"]) == ["says 'node'"]
    assert _judged(refused, says=[], right=True) == ["refused with exit status 3"]
    assert _judged(Answer(0, "job.yaml:2 nodes", ""), says=says) == ["exit status 0, not 3"]
    assert _judged(Answer(3, "job.yaml:2 nodes", ""), says=says)[0] == "does not say 'job.yaml:2'"
    assert _judged(Answer(1, "", "Traceback (most recent call last):"), says=[]) == ["traceback"]
    assert _judged(Answer(1, "", "hpclaunch: internal error: KeyError"), says=[]) == ["internal fault"]
