"""Lines that a centre or the user adds to the scripts of all jobs.

An overlay is a small template, ``templates/job.sh.j2`` in their folder, which extends the shipped ones block
by block. A file of shell lines, ``blocks/NAME.sh``, fills one of two blocks.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from typing import Any

import jinja2
from jinja2 import FunctionLoader, StrictUndefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hpclaunch.errors import BadInputError


def overlaid(
    texts: dict[str, str],
    overlays: Iterable[tuple[Path, str, str]],
    facts: Mapping[str, object],
    filters: Mapping[str, Callable[..., str]],
    **syntax: Any,
) -> dict[str, str]:
    """Return the texts of blocks, by name, with the overlays over them, sandboxed and strict about names.

    ``overlays``: file, text, and the comment that is put before the lines that it adds; the lowest one
    first. Raises BadInputError with the line of an overlay for what is wrong in it.
    """
    # An overlay extends each block alone. Where the lines of that begin and end is a NUL, as in no script.
    block = '{{% if _block == "{0}" %}}{{% block {0} %}}{{{{ _below }}}}{{% endblock %}}{{% endif %}}'
    below = "".join(map(block.format, texts))
    jinja = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: below),
        undefined=StrictUndefined,
        autoescape=False,  # a shell script, not HTML: the shquote filter quotes
        **syntax,
    )
    jinja.filters.update(filters)
    for path, text, mark in overlays:
        try:
            tree = jinja.parse(text, path.name, str(path))
            _check_overlay(tree, path, tuple(texts))
            code = jinja.compile(tree, path.name, str(path))
            script = jinja2.Template.from_code(jinja, code, jinja.make_globals(None))
            for name in {block.name for block in tree.find_all(nodes.Block)}:
                made = script.render(facts, _block=name, _below=f"\0{texts[name]}\0")
                texts = {**texts, name: _marked(made, mark)}
        except BadInputError:
            raise
        except Exception as error:
            frames = walk_tb(error.__traceback__)
            lines = [line for frame, line in frames if frame.f_code.co_filename == str(path)]
            line = error.lineno if isinstance(error, jinja2.TemplateSyntaxError) else lines[-1]
            hint = "hpclaunch's own templates show the names that there are: _job.sh.j2"
            raise BadInputError(f"{path}, line {line}: {error}", hint) from error
    return texts


def _check_overlay(tree: nodes.Template, path: Path, known: tuple[str, ...]) -> None:
    """Refuse an overlay that extends nothing, blocks that no template has, and text outside of blocks."""
    blocks = f"the blocks are {', '.join(known)}"
    first, *rest = [node for node in tree.body if not _is_blank(node)] or [nodes.Output([], lineno=1)]
    if not (isinstance(first, nodes.Extends) and first.template == nodes.Const(path.name)):
        begin = f'begin with {{% extends "{path.name}" %}}'
        raise BadInputError(f"{path}, line {first.lineno}: an overlay extends {path.name}", begin)
    for node in rest:
        if not isinstance(node, nodes.Block | nodes.Macro | nodes.Assign | nodes.AssignBlock):
            message = f"{path}, line {node.lineno}: this is in no block, so it has no effect"
            raise BadInputError(message, blocks)
    _check_names(tree, path, known, blocks)


def _check_names(tree: nodes.Template, path: Path, known: tuple[str, ...], blocks: str) -> None:
    for block in tree.find_all(nodes.Block):
        if block.name not in known:
            near = "".join(f"; did you mean {name}?" for name in get_close_matches(block.name, known, n=1))
            message = f"{path}, line {block.lineno}: no block has the name {block.name}{near}"
            raise BadInputError(message, blocks)


def _is_blank(node: nodes.Node) -> bool:
    parts = node.nodes if isinstance(node, nodes.Output) else [node]
    return all(isinstance(part, nodes.TemplateData) and not part.data.strip() for part in parts)


def _marked(text: str, mark: str) -> str:
    """Return the lines of a block, whole ones, with the mark before what is not from below (between NULs)."""
    marked = ""
    for number, part in enumerate(text.split("\0")):
        if number % 2:
            marked += part
            continue
        added = part.removeprefix("\n") if number else part  # below, the last line has ended
        marked += mark + added if added.strip() else added
    return marked if marked[-1:] in ("", "\n") else f"{marked}\n"
