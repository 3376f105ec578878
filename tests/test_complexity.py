"""Functions that compute and judge stay simple: a bound on their cyclomatic complexity.

Each function, method and lambda is counted alone; a nested one does not count for the function around it.
The count is 1, plus one for each if, elif, for, while, exception handler, ternary, match case and assert,
each ``for`` and each ``if`` of a comprehension, and each operand of ``and`` or ``or`` beyond the first. A
function that must exceed the bound carries a comment ``# complex: reason`` on one of its own lines.

Rooms that are older than the bound have functions above it. `ABOVE` holds how many and how complex the worst
is; neither may grow. After an improvement the row is lowered, so that it stays.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.in_one_test import in_one_test
from tests.parsed import nodes

PACKAGE = Path(__file__).parents[1] / "hpclaunch"
TOP = "hpclaunch"
"""The modules that stand in no room."""
LIMIT = 10
ABOVE = {
    TOP: (1, 13),
    "cli": (20, 23),
    "job": (15, 18),
    "observe": (5, 14),
    "plan": (15, 21),
    "port": (39, 26),
    "remote": (17, 21),
    "scaling": (14, 20),
    "scheduler": (9, 21),
    "site": (2, 11),
    "software": (3, 18),
    "study": (3, 27),
    "timeline": (16, 22),
    "train": (5, 12),
    "usage": (18, 33),
}
"""Room -> how many of its functions are above the limit without a reason, and the highest count of them.

A room that is not here has none.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.match_case,
    ast.Assert,
)
_REASON = re.compile(r"#.*\bcomplex: *\S")


def complexity(function: Function) -> int:
    """Return the cyclomatic complexity of one function, without the functions inside it."""
    body = function.body if isinstance(function.body, list) else [function.body]
    return 1 + sum(_weight(node) for statement in body for node in _own_nodes(statement))


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it; of a nested function only its decorators and defaults."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _FUNCTIONS):
            waiting += [node.args, *getattr(node, "decorator_list", [])]
        else:
            waiting += ast.iter_child_nodes(node)


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return int(isinstance(node, _BRANCHES))


def too_complex(source: str, among: Iterable[ast.AST] = ()) -> dict[str, int]:
    """Return ``name (line n)`` and the complexity of each function above the limit that gives no reason.

    ``among``: the nodes of the source where they are known.
    """
    functions = [node for node in among or ast.walk(ast.parse(source)) if isinstance(node, _FUNCTIONS)]
    excused = {_innermost(functions, line) for line in _lines_with_a_reason(source)}
    return {
        f"{getattr(function, 'name', 'lambda')} (line {function.lineno})": count
        for function in functions
        if (count := complexity(function)) > LIMIT and function not in excused
    }


def _lines_with_a_reason(source: str) -> list[int]:
    if "complex:" not in source:  # finding comments takes longer
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        token.start[0] for token in tokens if token.type == tokenize.COMMENT and _REASON.match(token.string)
    ]


def _innermost(functions: list[Function], line: int) -> Function | None:
    """Return the function that a line belongs to: of nested ones the last that begins before it."""
    around = [function for function in functions if function.lineno <= line <= (function.end_lineno or 0)]
    return max(around, key=lambda function: function.lineno, default=None)


def _room_of(path: Path) -> str:
    first, *deeper = path.relative_to(PACKAGE).parts
    return first if deeper else TOP


FILES: dict[str, list[Path]] = {}
for _path in sorted(PACKAGE.rglob("*.py")):
    FILES.setdefault(_room_of(_path), []).append(_path)


@pytest.mark.parametrize("room", FILES)
@pytest.mark.xdist_group("syntax trees")
def test_no_room_becomes_more_complex(room: str) -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}": count
        for path in FILES[room]
        for name, count in too_complex(path.read_text(), nodes(path)).items()
    }
    number, highest = ABOVE.get(room, (0, LIMIT))
    listing = "\n".join(f"{count} {name}" for name, count in sorted(found.items(), key=lambda item: -item[1]))
    assert len(found) <= number, f"{len(found)} functions of {room} are above {LIMIT}:\n{listing}"
    assert max(found.values(), default=0) <= highest, f"the worst of {room} was {highest}:\n{listing}"


def test_each_row_is_of_a_room() -> None:
    assert set(ABOVE) <= set(FILES)


COUNTED = [
    ("def f(): pass", 1),
    ("def f():\n if a: b\n elif c: d\n else: e", 3),
    ("def f():\n for a in b: c\n else: d", 2),
    ("async def f():\n async for a in b: c\n async with d: e", 2),
    ("def f():\n while a: b", 2),
    ("def f():\n try: a\n except B: c\n except D: e\n else: g\n finally: h", 3),
    ("def f(): return a and b and c or d", 4),
    ("def f(): return a if b else c", 2),
    ("def f(): return [a for b in c for d in e if g if h]", 5),
    ("def f(): return {a: b for c in d}, {e for g in h}, any(i for j in k)", 4),
    ("def f(a):\n match a:\n  case 1: b\n  case _ if c: d", 3),
    ("def f():\n assert a", 2),
    ("def f():\n with a: b\n return c", 1),
    ("def f(a=b or c): return a", 1),
    ("def f():\n if a:\n  def g():\n   if b: c\n   if d: e\n return g", 2),
    ("def f(): return sorted(a, key=lambda b: c if b else d)", 1),
    ("def f():\n class A:\n  b = c if d else e\n  def g(self): return h or i", 2),
]


@in_one_test("source, count", COUNTED)
def test_the_counter_counts(source: str, count: int) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    assert complexity(function) == count


def _ifs(count: int, *, name: str = "f", comment: str = "") -> str:
    return f"def {name}(a):{comment}\n" + " if a: b\n" * count


def test_a_function_above_the_limit_is_found_wherever_it_is_nested() -> None:
    assert too_complex(_ifs(LIMIT - 1)) == {}
    assert too_complex(_ifs(LIMIT)) == {"f (line 1)": LIMIT + 1}
    nested = "class A:\n def outer(self):\n  " + _ifs(LIMIT).replace("\n", "\n  ")
    assert too_complex(nested) == {"f (line 3)": LIMIT + 1}
    assert too_complex("f = lambda a: " + "a or " * LIMIT + "a") == {"lambda (line 1)": LIMIT + 1}


def test_a_reason_excuses_only_the_function_that_gives_it() -> None:
    source = _ifs(LIMIT, comment="  # complex: a parser of one grammar") + _ifs(LIMIT, name="g")
    assert too_complex(source) == {f"g (line {LIMIT + 2})": LIMIT + 1}
    assert too_complex(_ifs(LIMIT, comment="  # complex:")) != {}
    nested = _ifs(LIMIT) + " def g(): pass  # complex: of the inner function only\n"
    assert too_complex(nested) == {"f (line 1)": LIMIT + 1}
    assert too_complex(_ifs(LIMIT) + " '# complex: in a string'\n") != {}
