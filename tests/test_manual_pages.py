"""The manual pages and completion scripts in ``packaging/`` are those of the commands.

After a change of a command: HPCLAUNCH_TEST_UPDATE_GOLDEN=1 pytest tests/test_manual_pages.py; read the diff.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class
from click_man.core import generate_man_page

from hpclaunch import __version__
from hpclaunch.cli.main import COMMANDS, program
from tests.in_one_test import in_one_test

PACKAGING = Path(__file__).parents[1] / "packaging"
COMPLETIONS = {"bash": "hpclaunch.bash", "zsh": "_hpclaunch", "fish": "hpclaunch.fish"}
UPDATE = bool(os.environ.get("HPCLAUNCH_TEST_UPDATE_GOLDEN"))


def whole_program() -> click.Group:
    """The program with its commands loaded, each with its line in the list of commands."""
    whole = click.Group("hpclaunch", params=program.params, help=program.help)
    context = click.Context(program, info_name="hpclaunch")
    for name, line in COMMANDS.items():
        command = program.get_command(context, name)
        assert command is not None
        command.short_help = line.rstrip(".")
        whole.add_command(command, name)
    return whole


def manual_pages(context: click.Context) -> dict[str, str]:
    """File name -> text, of a command and of those below it."""
    help_text = (context.command.help or "").replace("\n", " ")
    context.command.short_help = context.command.short_help or help_text.partition(". ")[0].rstrip(".")
    page = generate_man_page(context, version=f"hpclaunch {__version__}", date=" ").replace("\b\n", "")
    page = re.sub(r"\\(?!f[BP]|-)", r"\\e", page)  # a backslash of the help; the rest is groff
    pages = {context.command_path.replace(" ", "-") + ".1": page}
    for name, command in getattr(context.command, "commands", {}).items():
        pages |= manual_pages(click.Context(command, info_name=name, parent=context))
    return pages


def completions() -> dict[str, str]:
    """File name -> script; the same as ``hpclaunch completion SHELL`` prints."""
    found = {}
    for shell, file in COMPLETIONS.items():
        completion = get_completion_class(shell)
        assert completion is not None
        found[file] = completion(program, {}, "hpclaunch", "_HPCLAUNCH_COMPLETE").source() + "\n"
    return found


PAGES = manual_pages(click.Context(whole_program(), info_name="hpclaunch"))
FILES = {f"man/{name}": text for name, text in PAGES.items()} | {
    f"completions/{name}": text for name, text in completions().items()
}


@in_one_test("name", FILES)
def test_the_file_is_that_of_the_commands(name: str) -> None:
    path = PACKAGING / name
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
    assert path.read_text() == FILES[name]


def test_no_page_is_left_of_a_command_that_is_gone() -> None:
    assert {path.name for path in (PACKAGING / "man").iterdir()} == set(PAGES)


@pytest.mark.slow
def test_man_reads_every_page_without_a_warning() -> None:
    for name in PAGES:
        done = subprocess.run(
            ["man", "--warnings", "--local-file", PACKAGING / "man" / name],
            capture_output=True,
            text=True,
            env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"},
        )
        assert (done.returncode, done.stderr) == (0, ""), name
