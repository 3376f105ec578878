"""The table of verdicts: what each case has."""

from __future__ import annotations

import pytest

from hpclaunch.package_data import package_table

TABLE: dict[str, dict[str, str]] = package_table("port/port_verdicts.yaml")


@pytest.mark.parametrize("case", TABLE)
def test_each_case_says_something(case: str) -> None:
    row = TABLE[case]
    assert row.keys() <= {"to", "why", "source", "to_do"}
    assert row.get("why") or row["to_do"]
