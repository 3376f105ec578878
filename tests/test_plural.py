"""Numbers with their nouns."""

from __future__ import annotations

from hpclaunch.amounts import amount_of, counted, listed
from tests.in_one_test import in_one_test


@in_one_test(
    "said, expected",
    [
        (counted(1, "node"), "1 node"),
        (counted(0, "node"), "0 nodes"),
        (counted(2, "node"), "2 nodes"),
        (counted(2, "entry", "entries"), "2 entries"),
        (counted(1, "entry", "entries"), "1 entry"),
        (counted(12345, "file", spec=","), "12,345 files"),
        (amount_of(1.0, "node-hours"), "1 node-hour"),
        (amount_of(0.99999, "node-hours"), "1 node-hour"),
        (amount_of(1, "SBU", "g"), "1 SBU"),
        (amount_of(1.5, "ABCI points"), "1.5 ABCI points"),
    ],
)
def test_a_number_with_its_noun(said: str, expected: str) -> None:
    assert said == expected


def test_only_the_first_of_many_names_are_listed() -> None:
    assert listed(["n1"]) == "n1"
    assert listed(["n1", "n2"], 2) == "n1, n2"
    assert listed(["n1", "n2", "n3"], 2) == "n1, n2, ..."
    assert listed([]) == ""
