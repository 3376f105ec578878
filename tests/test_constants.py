"""The tables of constants: a module reads each constant of its part, and no other one."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.package_data import package_table
from tests.parsed import nodes

pytestmark = pytest.mark.xdist_group("syntax trees")  # which one worker makes for all

PACKAGE = Path(__file__).parents[1] / "hpclaunch"


def read_by(path: Path) -> dict[tuple[str, str], set[str]]:
    """Return the parts that a module takes, by file and name, and the constants that it reads of each."""
    parts: dict[str, tuple[str, str]] = {}
    before: dict[str, str] = {}
    for node in nodes(path):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Name(id="package_constants" | "package_patterns" as reader),
                    args=[ast.Constant(value=str(file)), ast.Constant(value=str(part))],
                ),
            ):
                parts[name] = file, part
                before[name] = "forms." if reader == "package_patterns" else ""
    found: dict[tuple[str, str], set[str]] = {part: set() for part in parts.values()}
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in parts:
            found[parts[node.value.id]].add(before[node.value.id] + node.attr)
    return found


def stated_in(part: dict[str, Any]) -> set[str]:
    """Return the names of a part, those of its patterns behind ``forms.``."""
    return {name for name in part if name != "forms"} | {f"forms.{name}" for name in part.get("forms", ())}


def test_a_module_reads_each_constant_of_its_part() -> None:
    read = {part: names for path in PACKAGE.rglob("*.py") for part, names in read_by(path).items()}
    files = {file for file, _ in read}
    assert files
    stated = {
        (file, part): stated_in(package_table(file)[part])
        for file in files
        for part in package_table(file)
        if part != "about"
    }
    assert stated == read
