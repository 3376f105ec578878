"""The programs that fail and say what happens: each is whole, and its labels are of the usual vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.in_one_test import in_one_test

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = sorted((DATA / "failed_programs").glob("*/*/case.yaml"))
CAUSES = {
    line.partition("|")[0].strip() for line in (DATA / "failures" / "causes.txt").read_text().splitlines()
}


def case(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text()))


@in_one_test("path", PROGRAMS)
def test_a_program_says_how_it_is_started_and_what_happens(path: Path) -> None:
    said = case(path)
    assert said["kind"] in ("failed", "healthy")
    assert said["framework"] in ("torch", "mpi4py", "horovod", "jax", "none")
    assert 2 <= said["tasks"] <= 6
    assert any((path.parent / str(word)).is_file() for word in said["command"])
    if said["kind"] == "failed":
        expect = said["expect"]
        assert {expect["cause"], *(expect.get("also") or ())} <= CAUSES
        assert all(0 <= int(rank) < said["tasks"] for rank in expect["rank"])


def test_both_halves_have_programs_of_each_first_author() -> None:
    halves = {(path.parts[-3], path.parts[-2][0]) for path in PROGRAMS}
    assert {(half, author) for half in ("open", "kept") for author in "abc"} <= halves
