"""The table of verdicts: each case is used, and gets the values of its texts."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter
from typing import cast

import pytest

import hpclaunch.port
from hpclaunch.package_data import package_table

TABLE: dict[str, dict[str, str]] = package_table("port/port_verdicts.yaml")
SOURCES = [path.read_text("utf-8") for path in sorted(Path(hpclaunch.port.__file__).parent.glob("*.py"))]


def test_each_case_is_used() -> None:
    code = "\n".join(SOURCES)
    texts = {each.value for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Constant)}
    stems = {case for case in TABLE if case.partition(",")[0] in texts}
    assert {case for case in TABLE if case not in texts and case not in stems} == set()


def _name(function: ast.Attribute | ast.Name) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id


def calls() -> list[ast.Call]:
    """The calls that name a case by a plain string."""
    every = (node for text in SOURCES for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    named = [
        one for one in every if getattr(one.func, "attr", getattr(one.func, "id", "")) in ("says", "task")
    ]
    return [one for one in named if isinstance(one.args[0], ast.Constant)]


@pytest.mark.parametrize("call", calls(), ids=lambda call: str(call.args[0].value))
def test_a_call_gives_the_values_of_its_texts(call: ast.Call) -> None:
    row = TABLE[str(cast("ast.Constant", call.args[0]).value)]
    fields = {name for text in row.values() for _, name, _, _ in Formatter().parse(text) if name}
    by_itself = {"here", "there"} if isinstance(call.func, ast.Attribute) else set()
    assert {word.arg for word in call.keywords} == fields - by_itself


@pytest.mark.parametrize("case", TABLE)
def test_each_case_says_something(case: str) -> None:
    row = TABLE[case]
    assert row.keys() <= {"to", "why", "source", "to_do"}
    assert row.get("why") or row["to_do"]
    assert not any("\n" in text for text in row.values())
