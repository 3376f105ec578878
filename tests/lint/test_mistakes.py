"""Classical mistakes of which rules were made: each is found, and its right twin is not accused."""

import hashlib

import pytest
import yaml

from benchmarks.lint_mistakes import DATA, findings, grade

NOT_TOLD = {"015.slurm", "075.pbs", "099.sge", "107.pbs"}
"""Those of which lint says nothing yet."""


def test_the_mistakes_of_the_open_half_are_found() -> None:
    untold = set()
    for mistake in yaml.safe_load((DATA / "open.yaml").read_text()):
        path = DATA / "open" / mistake["script"]
        in_twin = findings(path.with_name(f"{path.stem}-ok{path.suffix}"))
        assert {one.rule for one in in_twin if one.severity != "note"} <= {"status-lost"}, path
        untold |= {path.name} if grade(mistake, findings(path), in_twin) == "not found" else set()
    assert untold == NOT_TOLD


@pytest.mark.parametrize("half", ["open", "kept"])
def test_each_mistake_has_its_script_and_twin_in_the_half_of_its_lot(half: str) -> None:
    rows = yaml.safe_load((DATA / f"{half}.yaml").read_text())
    names = {name for row in rows for name in (row["script"], row["script"].replace(".", "-ok."))}
    assert names == {path.name for path in (DATA / half).iterdir()}
    for row in rows:
        digest = hashlib.sha256(row["script"].partition(".")[0].encode()).hexdigest()
        assert row.get("author") == "b" or (int(digest[-1], 16) % 2 == 0) == (half == "kept")
