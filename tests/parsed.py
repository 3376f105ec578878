"""The syntax trees of the package, parsed once for all tests of a process that read them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a Python file; not to be changed. The collector never looks through it: it stays."""
    gc.disable()
    tree = ast.parse(path.read_text(), str(path))
    gc.freeze()
    gc.enable()
    return tree


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of that tree, as ``ast.walk`` yields them."""
    return tuple(ast.walk(parsed(path)))
