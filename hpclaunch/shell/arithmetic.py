"""Arithmetic of the shell on whole numbers, where a name stands for any number from 0 up."""

import ast
import operator
import warnings
from collections.abc import Callable

MAX_VALUE = 1 << 40
Bounds = tuple[int, int]
"""The lowest and the highest value of a number."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def bounds(text: str) -> Bounds | None:
    """Return the lowest and the highest value of an expression; None: it is not read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's reader about 10if and the like
            return _bounds(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, OverflowError):
        return None


def _bounds(node: ast.expr) -> Bounds | None:
    if isinstance(node, ast.Constant):
        return (node.value,) * 2 if type(node.value) is int and node.value < MAX_VALUE else None
    if isinstance(node, ast.Name):
        return 0, MAX_VALUE
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATORS:
        return None
    left, right = _bounds(node.left), _bounds(node.right)
    return _of_two(left, right, _OPERATORS[type(node.op)]) if left and right else None


def _of_two(left: Bounds, right: Bounds, compute: Callable[[int, int], int]) -> Bounds | None:
    exact = right[0] == right[1]
    if compute in (operator.floordiv, operator.mod) and min(*left, *right) < 0:
        return None  # bash rounds towards 0
    if compute is operator.add or (exact and (left[0] == left[1] or compute is operator.sub)):
        return compute(left[0], right[0]), compute(left[1], right[1])
    return (0, right[0] - 1) if compute is operator.mod and exact and right[0] > 0 else None
