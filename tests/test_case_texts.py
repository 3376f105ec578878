"""The tables of texts: each case is used, and its calls give the values of its texts, no others."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from hpclaunch.package_data import package_table
from tests.in_one_test import in_one_test
from tests.parsed import nodes

pytestmark = pytest.mark.xdist_group("syntax trees")  # which one worker makes for all

PACKAGE = Path(__file__).parents[1] / "hpclaunch"
# Table -> the functions that read a case of it, and the values that they give themselves; None: others, too.
READERS: dict[str, dict[str, set[str] | None]] = {
    "check/io_advice.yaml": {},
    "check/verdicts.yaml": {"verdict": {"name"}, "judged": None},
    "notes.yaml": {"note_text": set()},
    "refusals.yaml": {"case": set(), "problem": set()},
    "port/port_verdicts.yaml": {"says": {"here", "there"}, "task": set()},
    "site/profile_rules.yaml": {"_broken": set()},
    "timeline/timeline_verdicts.yaml": {
        "_verdict": set(),
        "_costs": {"ms", "noise"},
        "_late": {"late_steps", "steps", "how_late", "ms", "noise"},
    },
    "train/texts.json": {"of": set(), "text_of": set()},  # whose folder works alone, and so reads it itself
    "usage/next_request.yaml": {"_said": {"ask"}},
}
NO_VALUES = {"status"}
NAME_CASES = (
    "cases of problems",
    *("options of launchers", "tasks of owners", "cases of commands", "words of a machine"),
    *("lines without a command", "module folders"),
)
PARTS = {"text", "to", "why", "commands", "source", "to_do"}


@cache
def code(table: str) -> list[ast.AST]:
    """What the modules of a table's room are made of."""
    return [node for path in sorted((PACKAGE / table).parent.rglob("*.py")) for node in nodes(path)]


@cache
def words(table: str) -> set[object]:
    """The constants of that code, and the cases that the room's tables of words name."""
    table_of_words = package_table("port/port_words.yaml") if table.startswith("port/") else {}
    said = {case for row in NAME_CASES for case in table_of_words.get(row, {}).values()}
    return {node.value for node in code(table) if isinstance(node, ast.Constant)} | said


def rows(tree: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """The cases of a table, with what they say."""
    if isinstance(tree, dict) and not tree.keys() <= PARTS:
        for key, row in tree.items():
            yield from rows(row, f"{above}: {key}".removeprefix(": "))
    else:
        yield above, tree


def texts(row: Any) -> list[str]:
    """All texts of a row."""
    parts = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    return [row] if isinstance(row, str) else [text for part in parts for text in texts(part)]


def fields(row: Any) -> set[str]:
    """The names of the values in the texts of a row."""
    found = (name for text in texts(row) for _, name, _, _ in Formatter().parse(text) if name is not None)
    return {re.split(r"[.\[]", name)[0] for name in found}


CASES = {table: dict(rows(package_table(table))) for table in READERS}


def patterns(word: ast.expr) -> list[str]:
    """Regular expressions for the cases that a word of the code may name."""
    if isinstance(word, ast.IfExp):
        return patterns(word.body) + patterns(word.orelse)
    if isinstance(word, ast.JoinedStr):
        return ["".join(parts) for parts in itertools.product(*map(patterns, word.values))]
    if isinstance(word, ast.FormattedValue):
        return patterns(word.value)
    return [re.escape(str(word.value))] if isinstance(word, ast.Constant) else [".*"]


def calls(table: str) -> Iterator[tuple[ast.Call, str]]:
    for node in code(table):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in READERS[table]:
                yield node, name


def names_in(call: ast.Call) -> set[str]:
    return {word.arg for word in call.keywords if word.arg} - NO_VALUES


def test_these_are_all_tables_of_texts() -> None:
    asking = [path for path in PACKAGE.rglob("*.py") if "case_texts" in path.read_text()]
    a_table = re.compile(r'(?<!package_constants\()(?<!package_patterns\()"((?:\w+/)?\w+\.yaml)"')
    named = {table for path in asking for table in a_table.findall(path.read_text())}
    assert named | {"train/texts.json"} == set(READERS)


@in_one_test("table, case", [(table, case) for table, cases in CASES.items() for case in cases])
def test_each_case_is_used_and_says_something(table: str, case: str) -> None:
    pieces = [(case[:end], case[end:]) for end in range(1, len(case))]
    assert case in words(table) or any(words(table).issuperset(pair) for pair in pieces)
    assert all(text and "\n" not in text for text in texts(CASES[table][case]))


@in_one_test("table, call, reader", ((table, *call) for table in READERS for call in calls(table)))
def test_a_call_gives_the_values_of_its_texts(table: str, call: ast.Call, reader: str) -> None:
    by_itself, given = READERS[table][reader], names_in(call)
    named = [
        [fields(row) for case, row in CASES[table].items() if re.fullmatch(pattern, case)]
        for pattern in patterns(call.args[0])
    ]
    where = f"line {call.lineno}: {ast.unparse(call)}"
    assert all(named), where
    assert given <= set().union(*itertools.chain(*named)), where
    if by_itself is not None and all(word.arg for word in call.keywords):
        assert all(each[0] <= given | by_itself for each in named if len(each) == 1), where
