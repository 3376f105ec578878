"""The table of refusals: each case has a message and a hint, is used, and gets the values of its texts."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter
from typing import cast

import pytest

import hpclaunch.plan
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.package_data import package_table
from hpclaunch.plan.refusals import problem, refusal

TABLE: dict[str, dict[str, list[str]]] = package_table("plan/refusals.yaml")
CASES = [f"{subject}: {case}" for subject, cases in TABLE.items() for case in cases]


def calls() -> list[tuple[str, set[str], bool]]:
    """Case, names of values, and whether there are more of them, of each call."""
    found = []
    for path in Path(hpclaunch.plan.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if named and node.func.id in ("refusal", "problem"):  # type: ignore[attr-defined]
                call = cast("ast.Call", node)
                (case,) = (each.value for each in call.args if isinstance(each, ast.Constant))
                names = {word.arg for word in call.keywords if word.arg}
                found.append((str(case), names, any(word.arg is None for word in call.keywords)))
    return found


def names_in(case: str) -> set[str]:
    subject, _, key = case.partition(": ")
    texts = TABLE[subject][key]
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_each_case_is_used_and_each_call_has_its_case() -> None:
    assert {case for case, _, _ in calls()} == set(CASES)


@pytest.mark.parametrize(("case", "names", "more"), calls())
def test_a_call_gives_the_values_of_its_texts(case: str, names: set[str], more: bool) -> None:
    assert names <= names_in(case)
    assert more or names == names_in(case)


@pytest.mark.parametrize("case", CASES)
def test_each_case_has_a_message_and_a_hint(case: str) -> None:
    subject, _, key = case.partition(": ")
    message, hint = TABLE[subject][key]
    assert message
    assert hint


def test_a_rule_of_a_site_is_an_error_of_its_own() -> None:
    error = refusal("site: shared node", by="--no-exclusive", site="here", page="its page")
    assert isinstance(error, SiteRuleError)
    assert str(error).startswith("--no-exclusive gives the job parts of nodes; the CPU masks of here")
    assert type(refusal("command: none")) is BadInputError
    assert problem("torchrun: standalone", nodes=2).message.endswith("the job has 2: each would train alone")
