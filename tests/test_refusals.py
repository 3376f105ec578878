"""The table of refusals: each case has a message and a hint."""

from __future__ import annotations

import ast
from pathlib import Path

from hpclaunch import errors
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.package_data import package_table
from hpclaunch.plan.request import problem
from tests.in_one_test import in_one_test
from tests.parsed import nodes

TABLE: dict[str, dict[str, list[str]]] = package_table("refusals.yaml")


@in_one_test("subject, case", [(subject, case) for subject in TABLE for case in TABLE[subject]])
def test_each_case_has_a_message_and_a_hint(subject: str, case: str) -> None:
    message, hint = TABLE[subject][case]
    assert message
    assert hint


def test_a_rule_of_a_site_is_an_error_of_its_own() -> None:
    for path in Path(errors.__file__).parent.rglob("*.py"):
        for node in nodes(path):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "case"
            ):
                about_site = ast.unparse(node.args[0]).startswith("'site: ")
                assert about_site == (ast.unparse(node.func.value) == "SiteRuleError"), ast.unparse(node)
    error = SiteRuleError.case("site: shared node", by="--no-exclusive", site="here", page="its page")
    assert isinstance(error, SiteRuleError)
    assert str(error).startswith("--no-exclusive gives the job parts of nodes; the CPU masks of here")
    assert type(BadInputError.case("command: none")) is BadInputError
    assert problem("torchrun: standalone", nodes=2).message.endswith("the job has 2: each would train alone")
