"""The table of verdicts: each case is used, and gets the values of its texts."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import hpclaunch.port
from hpclaunch.package_data import package_table

TABLE: dict[str, dict[str, str]] = package_table("port/port_verdicts.yaml")
SOURCES = [path.read_text("utf-8") for path in sorted(Path(hpclaunch.port.__file__).parent.glob("*.py"))]


def test_each_case_is_used() -> None:
    code = "\n".join(SOURCES)
    texts = {each.value for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Constant)}
    stems = {case for case in TABLE if case.partition(",")[0] in texts}
    assert {case for case in TABLE if case not in texts and case not in stems} == set()


def test_a_call_gives_the_values_of_its_texts() -> None:
    for node in (each for text in SOURCES for each in ast.walk(ast.parse(text))):
        if not (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "says"
        ):
            continue
        case = node.args[0]
        if isinstance(case, ast.Constant):
            fields = {
                name for text in TABLE[str(case.value)].values() for _, name, _, _ in Formatter().parse(text)
            }
            assert {word.arg for word in node.keywords} == fields - {None, "here", "there"}, case.value


def test_each_case_says_something() -> None:
    for case, row in TABLE.items():
        assert row.keys() <= {"to", "why", "source", "to_do"}, case
        assert "\n" not in row["why"], case
