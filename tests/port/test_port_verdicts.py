"""The table of verdicts: what each case has."""

from __future__ import annotations

from hpclaunch.package_data import package_table
from tests.in_one_test import in_one_test

TABLE: dict[str, dict[str, str]] = package_table("port/port_verdicts.yaml")


@in_one_test("case", TABLE)
def test_each_case_says_something(case: str) -> None:
    row = TABLE[case]
    assert row.keys() <= {"to", "why", "source", "to_do"}
    assert row.get("why") or row["to_do"]
