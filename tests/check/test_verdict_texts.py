"""The table of verdicts: each has a status, and a remedy where there is something to do."""

from __future__ import annotations

from typing import get_args

from hpclaunch.check.check_report import Status
from hpclaunch.package_data import package_table
from tests.in_one_test import in_one_test

TABLE: dict[str, dict[str, list[str]]] = package_table("check/verdicts.yaml")
CASES = [(check, case) for check, cases in TABLE.items() for case in cases]
# With a remedy though all is there, or without one where there is nothing to do here.
UNUSUAL = {
    *(("stripes", "read"), ("stripes", "not read"), ("clock", "not written"), ("mpi-plugin", "no srun")),
    *(("ranks", "no launcher"), ("gpu build", "not stated"), ("mpi-threads", "without MPI")),
    ("mpi-launch", "not started"),
}


@in_one_test("check, case", CASES)
def test_each_verdict_is_whole(check: str, case: str) -> None:
    status, _, *remedy = TABLE[check][case]
    assert status in get_args(Status)
    assert len(remedy) == (status != "have") or (check, case) in UNUSUAL
