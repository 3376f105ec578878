"""Sizes that stand in a program's files: accelerate's configuration file, the Trainer of Lightning. Pure."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hpclaunch.plan.program import parsed_program, python_target
from hpclaunch.plan.script_commands import ReadText, script_commands
from hpclaunch.plan.worker_launchers import ACCELERATE, IN_SCRIPT, TORCHRUN, find_launcher

if TYPE_CHECKING:
    from hpclaunch.site.yaml_tree import Tree

DEFAULT_FILE = "~/.cache/huggingface/accelerate/default_config.yaml"
"""Which accelerate reads where its command names none (accelerate 1.15, commands/config/config_args.py)."""
TRAINER = "trainer."
"""Keys of what a Trainer says begin with it."""


def launcher_config(argv: tuple[str, ...], read: ReadText) -> dict[str, str]:
    """Return what the files of a command say: those of accelerate's file and of the program's Trainer.

    Keys of sections have the section's name and a dot before them. Raises BadInputError for a file of
    accelerate that is not YAML.
    """
    found = find_launcher(argv)
    values: dict[str, str] = {}
    if found and found.launcher is ACCELERATE and "--cpu" not in found.options:
        file = found.options.get("--config_file", DEFAULT_FILE)
        text = read(file)
        if text is not None:
            from hpclaunch.site.yaml_tree import parse_tree  # loads YAML, which few jobs need

            values = {"file": file, **dict(_flat(parse_tree(text, file)))}
    return {**values, **dict(_trainer(argv, read)), **dict(_in_script(argv, read))}


def _in_script(argv: tuple[str, ...], read: ReadText) -> Iterator[tuple[str, str]]:
    """Yield the only launcher of workers in the script that a command starts, and where it stands.

    Only of torchrun, which takes from the environment what its options leave open.
    """
    found = [command for command in script_commands(argv, read) if find_launcher(command.words)]
    if len(found) == 1 and (started := find_launcher(found[0].words)) and started.launcher is TORCHRUN:
        yield IN_SCRIPT, shlex.join(found[0].words)
        yield f"{IN_SCRIPT}.where", found[0].where


def _flat(tree: Tree, before: str = "") -> Iterator[tuple[str, str]]:
    if not isinstance(tree.value, Mapping):
        return
    for key, each in tree.value.items():
        if isinstance(each.value, Mapping):
            yield from _flat(each, f"{key}.")
        elif each.value is not None and not isinstance(each.value, list):
            yield before + key, str(each.value)


def _trainer(argv: tuple[str, ...], read: ReadText) -> Iterator[tuple[str, str]]:
    """Yield the whole numbers that the program's first Trainer or Fabric is given as such."""
    target = python_target(argv)
    text = (read(target.file) if target and target.file else None) or ""
    call = _trainer_call(text)
    if target is None or call is None:
        return
    yield TRAINER + "where", f"{target.file}, line {call.lineno}"
    for word in call.keywords:
        yield from ((f"{TRAINER}{word.arg}", each) for each in _size(word))


def _trainer_call(text: str) -> ast.Call | None:
    nodes = ast.walk(parsed_program(text)) if "lightning" in text else ()
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return next((call for call in calls if _last(call.func) in ("Trainer", "Fabric")), None)


def _size(word: ast.keyword) -> Iterator[str]:
    value = word.value.value if isinstance(word.value, ast.Constant) else None
    if word.arg in ("devices", "num_nodes") and type(value) is int and value > 0:
        yield str(value)


def _last(name: ast.expr) -> str:
    return name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
