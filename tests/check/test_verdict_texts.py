"""The table of verdicts: each has a status and texts, and a rule that gives it."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import hpclaunch.check
from hpclaunch.check.check_report import Status
from hpclaunch.package_data import package_table

TABLE: dict[str, dict[str, list[str]]] = package_table("check/verdicts.yaml")
CASES = [(check, case) for check, cases in TABLE.items() for case in cases]
# With a remedy though all is there, or without one where there is nothing to do here.
UNUSUAL = {
    *(("stripes", "read"), ("stripes", "not read"), ("clock", "not written"), ("mpi-plugin", "no srun")),
    *(("ranks", "no launcher"), ("gpu build", "not stated"), ("mpi-threads", "without MPI")),
    ("mpi-launch", "not started"),
}
SOURCES = "".join(path.read_text("utf-8") for path in Path(hpclaunch.check.__file__).parent.glob("*.py"))


@pytest.mark.parametrize(("check", "case"), CASES)
def test_each_verdict_is_whole_and_used(check: str, case: str) -> None:
    status, evidence, *remedy = TABLE[check][case]
    assert status in get_args(Status)
    assert len(remedy) == (status != "have") or (check, case) in UNUSUAL
    assert all(field is None or field.isidentifier() for _, field, _, _ in Formatter().parse(evidence))
    assert f'"{check}: ' in SOURCES
    assert case in SOURCES
