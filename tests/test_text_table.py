"""Tables for a terminal."""

from __future__ import annotations

import pytest

from hpclaunch.text_table import text_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert text_table([("1", "ok"), ("10", "wrong")], ("rank", "verdict")) == (
        "rank  verdict\n"  #
        "1     ok\n"
        "10    wrong"
    )


def test_no_line_ends_in_blanks() -> None:
    assert text_table([("a", "b", ""), ("", "c", "long")]) == "a  b\n   c  long"


def test_without_rows_there_is_the_header_or_nothing() -> None:
    assert text_table([], ("ID", "NAME")) == "ID  NAME"
    assert text_table([]) == ""


def test_rows_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        text_table([("a", "b"), ("a",)])


def test_the_widest_column_is_wrapped_on_words_where_the_terminal_is_narrow() -> None:
    rows = [
        ("space", "missing", "/a/very/long/path/of/a/folder: there is no such folder"),
        ("gpus", "have", "8"),
    ]
    table = text_table(rows, width=44).split("\n")
    assert table == [
        "space  missing  /a/very/long/path/of/a/folder:",
        "                there is no such folder",
        "gpus   have     8",
    ]
    assert text_table(rows, width=200) == text_table(rows)


ROWS = [("20261125-075501-abcd", "a-name-of-sixty-letters-" * 3, "lumi-g", "failed", "7d")]
HEADER = ("ID", "NAME", "SITE", "STATE", "AGE")


def test_columns_are_left_out_in_their_order_before_others_become_unreadable() -> None:
    left = []
    for width in range(40, 121):
        lines = text_table(ROWS, HEADER, width=width, drop=("AGE", "SITE")).split("\n")
        assert max(map(len, lines)) <= width
        assert "20261125-075501-abcd" in lines[1]
        said = [line for line in lines if line.startswith("not shown: ")]
        left.append(said[0].partition("(")[0] if said else "")
    assert list(dict.fromkeys(left)) == ["not shown: SITE, AGE ", "not shown: AGE ", ""]


def test_a_path_at_the_end_stays_whole_and_other_words_are_broken() -> None:
    path = "/pfs/lustrep1/projappl/project_465000001/train/out.log"
    assert text_table([("log", path)], width=30) == f"log  {path}"
    assert text_table([("cpus", "0-7,16-23,64-71,80-87,96-103")], width=22) == (
        "cpus  0-7,16-23,64-71,\n      80-87,96-103"
    )


def test_colours_do_not_move_columns() -> None:
    rows = [("1", "done", "x"), ("2", "failed", "y")]
    table = text_table(rows, colour=lambda row, n: "red" if row[n] == "failed" else None)
    assert table == "1  done    x\n2  \x1b[31mfailed\x1b[0m  y"
    assert table.replace("\x1b[31m", "").replace("\x1b[0m", "") == text_table(rows)
