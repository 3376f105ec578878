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


def test_a_cell_over_the_limit_moves_only_its_own_line() -> None:
    assert text_table([("abcdef", "x"), ("a", "y")], max_widths={0: 3}) == "abcdef  x\na    y"


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


def test_colours_do_not_move_columns() -> None:
    rows = [("1", "done", "x"), ("2", "failed", "y")]
    table = text_table(rows, colour=lambda row, n: "red" if row[n] == "failed" else None)
    assert table == "1  done    x\n2  \x1b[31mfailed\x1b[0m  y"
    assert table.replace("\x1b[31m", "").replace("\x1b[0m", "") == text_table(rows)
