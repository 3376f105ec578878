"""A shipped template of scripts as a program of Python, which needs no Jinja to run.

The script and each block is a function. Names are those of the program: one that is missing ends it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

from jinja2 import Environment, nodes
from jinja2.compiler import operators
from jinja2.exceptions import SecurityError, TemplateSyntaxError

from hpclaunch.package_data import text_beside

_FORMS: dict[str, str] = json.loads(text_beside(__file__, "template_forms.json"))
"""Jinja's node -> how it is written in Python, of its fields; a shipped template uses no others."""
_WORDS = {**operators, "none": "None"}
"""Jinja's names of operators and tests -> Python's; all other names are the same."""


def translated(name: str, texts: Mapping[str, str], **syntax: Any) -> CodeType:
    """Return the program of a template, which defines ``script()`` and ``block_NAME()`` of each block.

    ``texts``: its own, and that of the only one it may extend. Raises Jinja's errors, also for what has no
    form in Python.
    """
    jinja = Environment(**syntax)  # noqa: S701 - a shell script, not HTML
    own = jinja.parse(texts[name], name)
    parents = [jinja.parse(texts[each.template.as_const()]) for each in own.find_all(nodes.Extends)]
    bodies = {"script": (parents or [own])[0].body}
    for tree in (*parents, own):  # what it extends first
        bodies |= {f"block_{block.name}": block.body for block in tree.find_all(nodes.Block)}
    lines: list[str] = []
    for function, body in bodies.items():
        lines += [f"def {function}():", "    _out = []", *_suite(body), "    return ''.join(_out)"]
    return compile("\n".join(lines), f"templates/{name}", "exec")


def _suite(body: Iterable[nodes.Node]) -> Iterator[str]:
    yield "    pass"
    for node in body:
        yield from ("    " + line for line in _statement(node))


def _statement(node: nodes.Node) -> Iterator[str]:
    if not isinstance(node, nodes.If):
        yield _python(node)
        if isinstance(node, nodes.For):
            yield from _suite(node.body)
        return
    for word, branch in (("if", node), *(("elif", each) for each in node.elif_)):
        yield f"{word} {_python(branch.test)}:"
        yield from _suite(branch.body)
    yield "else:"
    yield from _suite(node.else_)


def _python(node: object) -> str:
    """Return a node, or a list of them, as Python; a name as it is, or as Python has it."""
    if isinstance(node, list):
        return ", ".join(map(_python, node))
    if isinstance(node, nodes.Const | nodes.TemplateData):
        return repr(node.as_const())
    if isinstance(node, nodes.Node):
        return _formed(node)
    return "" if node is None else _WORDS.get(str(node), str(node))


def _formed(node: nodes.Node) -> str:
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        raise SecurityError(f"line {node.lineno}: {node.attr} is not for templates")
    form = _FORMS.get(type(node).__name__, "")
    fields = {name: value for name, value in node.iter_fields() if name not in ("body", "ctx")}
    if not form or any(value and f"{{{name}}}" not in form for name, value in fields.items()):
        raise TemplateSyntaxError(f"no shipped template may use this: {node}", node.lineno)
    return form.format_map({name: _python(value) for name, value in fields.items()})
