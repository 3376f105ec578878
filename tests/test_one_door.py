"""What depends on the kind of a scheduler is decided in ``hpclaunch/scheduler`` and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from hpclaunch.scheduler import registry
from tests.in_one_test import in_one_test
from tests.parsed import nodes

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hpclaunch"
NAMES = {*registry.KINDS, "lsf", "flux"}
# FILE:literal -> why it decides nothing about a scheduler.
EXCEPTIONS = {
    "check/io_facts.py:local": "a place in texts: the folder on the node",
    "lint/launch_lines.py:flux": "a word of a script: the program whose subcommand starts ranks",
    "shell/shell_reader.py:local": "the word of bash that declares a variable",
}


def deciding(among: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each scheduler's name that is compared, a case, a ``Literal`` or a key."""
    for node in among:
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Subscript) and _is_literal(node.value):
            parts = [node.slice]
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        elif isinstance(node, ast.Set):
            parts = list(node.elts)
        for part in parts:
            for leaf in _leaves(part):
                if isinstance(leaf, ast.Constant) and leaf.value in NAMES:
                    yield leaf.lineno, str(leaf.value)


def _is_literal(node: ast.AST) -> bool:
    """Whether this is ``Literal``, ``typing.Literal`` or the like."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.endswith("Literal")


def _leaves(part: ast.AST | None) -> Iterator[ast.AST]:
    """Yield a node, or the items of a tuple, list or set that is written out."""
    if isinstance(part, ast.Tuple | ast.List | ast.Set):
        yield from part.elts
    elif part is not None:
        yield part


@pytest.mark.xdist_group("syntax trees")
def test_no_name_of_a_scheduler_decides_anything_outside_of_its_room() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}": f"{path.relative_to(ROOT)}:{line}: {name!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "scheduler"
        for line, name in deciding(nodes(path))
    }
    assert [where for key, where in found.items() if key not in EXCEPTIONS] == []
    assert EXCEPTIONS.keys() <= found.keys(), "an exception that is not needed any more"


@in_one_test(
    "source",
    [
        "kind == 'slurm'",
        "'pbs' != kind",
        "kind in ('local', 'pbs')",
        "match kind:\n    case 'flux': pass",
        "Kind = Literal['slurm', 'pbs']",
        "TABLE = {'lsf': 1}",
        "NAMES = {'slurm', 'pbs'}",
    ],
)
def test_a_decision_is_found(source: str) -> None:
    assert list(deciding(ast.walk(ast.parse(source))))


@in_one_test("source", ["kind == 'srun'", "title = 'slurm'", "f('pbs')", "{'kind': 'slurm'}"])
def test_what_decides_nothing_is_not(source: str) -> None:
    assert list(deciding(ast.walk(ast.parse(source)))) == []


def test_the_registry_names_what_the_schedulers_have() -> None:
    schedulers = registry.schedulers()
    assert {each.kind for each in schedulers} == set(registry.KINDS)
    assert {launcher.name for each in schedulers for launcher in each.launchers} == set(registry.LAUNCHERS)
    assert {kind for each in schedulers for kind in each.queue_kinds} == set(registry.QUEUE_KINDS)
    assert [each.kind for each in schedulers if each.starts_at_once] == [registry.THIS_MACHINE]
