"""A batch script, read once: everything that rules need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hpclaunch.lint.launch_lines import Launch, Option, read_launch
from hpclaunch.lint.shell_reader import read_shell
from hpclaunch.lint.shell_syntax import Command, Shell, Word, without_beginning
from hpclaunch.lint.shell_variables import Expansion, Variables, read_variables
from hpclaunch.scheduler.directive_reader import Directive, DirectiveReader, Role, last_directive
from hpclaunch.scheduler.directive_readers import read_directives


@dataclass(frozen=True, eq=False)
class Script:
    """One script; compared by identity, so that results about it can be cached."""

    text: str
    reader: DirectiveReader | None
    """That of the scheduler whose directives it has; None: it has no directives."""
    directives: tuple[Directive, ...]
    shell: Shell
    variables: Variables
    launches: tuple[Launch, ...]

    @property
    def kind(self) -> str | None:
        """The scheduler whose directives it has; None: it has no directives."""
        return self.reader.kind if self.reader else None

    @cached_property
    def active_directives(self) -> tuple[Directive, ...]:
        """The directives that its scheduler reads: those before the first command."""
        return tuple(one for one in self.directives if one.active and one.reader is self.reader)

    def directive(self, role: Role) -> Directive | None:
        """Return the last active directive of a role; the last one holds."""
        return next((one for one in reversed(self.active_directives) if one.role == role), None)

    def directive_value(self, role: Role) -> str:
        """Return the value of the last active directive of a role; empty where there is none."""
        found = self.directive(role)
        return found.value or "" if found else ""

    def has_option(self, name: str) -> bool:
        """Tell whether an active directive gives the option of this name."""
        return last_directive(self.active_directives, name) is not None

    @property
    def commands(self) -> list[Command]:
        """All commands in the order of the text."""
        return self.shell.commands

    @property
    def shebang(self) -> str:
        """The words after ``#!``; empty where there is none."""
        first = self.text.partition("\n")[0].rstrip("\r")
        return first[2:].strip() if first.startswith("#!") else ""

    def steps(self) -> list[Launch]:
        """Return the launches that start ranks: those by a launcher, or all if there are none."""
        by_launcher = [launch for launch in self.launches if launch.launcher != "python"]
        return by_launcher or list(self.launches)

    def value(self, option: Option | None, *, meant: bool = False) -> Expansion:
        """Return the value of a launcher's option after expansion."""
        if option is None or option.value is None:
            return Expansion(None)
        expanded = self.variables.expand(value_word(option), meant=meant)
        texts = [expanded.text, *(self.variables.expand(word, meant=meant).text for word in option.broken)]
        known = [text for text in texts if text is not None]
        whole = "".join(known) if len(known) == len(texts) else None
        return Expansion(whole, expanded.unset, expanded.via)


def value_word(option: Option) -> Word:
    """Return the value alone as a word: of ``--name=value`` the characters after the sign."""
    word = option.value
    assert word is not None  # noqa: S101
    return Word(word.raw, word.start, word.end, word.line, without_beginning(word.parts, option.prefix))


def read_script(text: str) -> Script:
    """Read a script. Never raises."""
    shell = read_shell(text)
    lines = [command.line for command in shell.commands if command.words or command.assignments]
    directives = read_directives(text, lines[0] if lines else None, _heredoc_lines(shell))
    launches = [read_launch(command) for command in shell.commands]
    return Script(
        text=text,
        reader=_reader_of(directives),
        directives=directives,
        shell=shell,
        variables=read_variables(shell),
        launches=tuple(launch for launch in launches if launch is not None),
    )


def _reader_of(directives: Sequence[Directive]) -> DirectiveReader | None:
    """Return the reader of the first active directive, or of the first one where none is active."""
    first = next((one for one in directives if one.active), None) or next(iter(directives), None)
    return first.reader if first else None


def _heredoc_lines(shell: Shell) -> frozenset[int]:
    """Return the lines that are not code of this script."""
    lines: set[int] = set()
    for command in shell.commands:
        for redirect in command.redirects:
            if redirect.body is not None:
                first = redirect.line + 1
                lines |= set(range(first, first + len(re.findall("\n", redirect.body)) + 1))
    return frozenset(lines)
