"""A batch script, read once: everything that rules need."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hpclaunch.lint.launch_lines import Launch, Option, read_launch
from hpclaunch.lint.script_language import Language, code_lines, language_of
from hpclaunch.lint.shell_variables import Expansion, Variables, read_variables
from hpclaunch.scheduler.directive_reader import (
    COMPONENT_SEPARATORS,
    Directive,
    DirectiveReader,
    Role,
    last_directive,
)
from hpclaunch.scheduler.directive_readers import read_directives, unread_directives
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Command, Shell, Word, without_beginning

_WRITTEN_BY = re.compile(r"^# Written by hpclaunch \S+ for ", re.MULTILINE)
_SHELL_SCRIPT = re.compile(r"#!\s*\S*/(env\s+)?(ba|k|z)?sh\b")


@dataclass(frozen=True, eq=False)
class Script:
    """One script; compared by identity, so that results about it can be cached."""

    text: str
    language: Language
    reader: DirectiveReader | None
    """That of the scheduler whose directives it has; None: it has no directives."""
    directives: tuple[Directive, ...]
    unread: tuple[tuple[int, str], ...]
    """Line and scheduler of each directive that no reader reads."""
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

    @cached_property
    def components(self) -> tuple[tuple[Directive, ...], ...]:
        """The active directives of each component of a heterogeneous job; one component where it is none."""
        found: list[list[Directive]] = [[]]
        for one in self.active_directives:
            if one.name in COMPONENT_SEPARATORS:
                found.append([])
            else:
                found[-1].append(one)
        return tuple(map(tuple, found))

    @cached_property
    def text_lines(self) -> frozenset[int]:
        """The lines that are not code of this script: here-documents and texts of several lines."""
        return _lines_of_texts(self.shell)

    @cached_property
    def written_scripts(self) -> tuple[tuple[int, str], ...]:
        """First line and text of each here-document that is a shell script itself."""
        bodies = [one for command in self.commands for one in command.redirects if one.body is not None]
        scripts = [(one.line + 1, (one.body or "").replace("\\$", "$")) for one in bodies]
        return tuple(one for one in scripts if _SHELL_SCRIPT.match(one[1]))

    @property
    def is_posix(self) -> bool:
        """Tell whether its commands are read as those of sh, bash, ksh or zsh."""
        return self.language not in ("python", "other", "csh")

    @property
    def language_name(self) -> str:
        """The language in words."""
        first = self.shebang.split()[-1:] or ["no shell script"]
        return "Python" if self.language == "python" else first[0].rpartition("/")[2]

    @cached_property
    def placeholder_lines(self) -> frozenset[int]:
        """The lines of directives in which something is left open for the user to fill in."""
        found = [one for one in self.directives if one.option.problem != "comment"]
        return frozenset(one.line for one in found if placeholder_in(one.text))

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
        """Return the launches that start ranks: those by a launcher, or Python's if there are none."""
        by_launcher = [launch for launch in self.launches if launch.by_launcher]
        return by_launcher or [launch for launch in self.launches if not _is_helper(launch)]

    def value(self, option: Option | None, *, meant: bool = False) -> Expansion:
        """Return the value of a launcher's option after expansion."""
        if option is None or option.value is None:
            return Expansion(None)
        expanded = self.variables.expand(value_word(option), meant=meant)
        texts = [expanded.text, *(self.variables.expand(word, meant=meant).text for word in option.broken)]
        known = [text for text in texts if text is not None]
        whole = "".join(known) if len(known) == len(texts) else None
        return Expansion(whole, expanded.unset, expanded.via)


def _is_helper(launch: Launch) -> bool:
    """Tell whether Python or a container is a tool of the script: in a pipe, a condition or a value."""
    command = launch.command
    return bool(command.piped_in or command.depth or command.condition or launch.trivial)


def value_word(option: Option) -> Word:
    """Return the value alone as a word: of ``--name=value`` the characters after the sign."""
    word = option.value
    assert word is not None  # noqa: S101
    return Word(word.raw, word.start, word.end, word.line, without_beginning(word.parts, option.prefix))


def written_by_hpclaunch(text: str) -> bool:
    """Tell whether hpclaunch has written a script."""
    return _WRITTEN_BY.search(text) is not None


def read_script(text: str) -> Script:
    """Read a script. Never raises."""
    language = language_of(text)
    is_shell = language not in ("python", "other")
    shell = read_shell(text if is_shell else "")
    not_code = _lines_of_texts(shell)
    code = _command_lines(text, shell) if is_shell else code_lines(text)
    directives = read_directives(text, code, not_code)
    if not is_shell:  # what looks like a directive further down may stand in a text of that language
        directives = tuple(one for one in directives if one.active)
    variables = read_variables(shell)
    return Script(
        text=text,
        language=language,
        reader=_reader_of(directives),
        directives=directives,
        unread=unread_directives(text, not_code),
        shell=shell,
        variables=variables,
        launches=tuple(_launches(shell.commands, variables)),
    )


def _launches(commands: Iterable[Command], variables: Variables) -> Iterator[Launch]:
    """Yield how each command starts programs; of ``bash -c TEXT`` without a launcher those in its text."""
    for command in commands:
        launch = read_launch(command, variables)
        if launch is not None:
            yield launch
        else:
            yield from _launches(command.inner, variables)


def _command_lines(text: str, shell: Shell) -> list[int]:
    """Return the lines of the commands; ``...`` alone stands for lines that a page leaves out."""
    return [
        command.line
        for command in shell.commands
        if (command.assignments or [word.raw for word in command.words] not in ([], ["..."]))
        and not text.startswith(("{%", "{#"), command.start)  # a line of a template's own language
    ]


def _reader_of(directives: Sequence[Directive]) -> DirectiveReader | None:
    """Return the reader of the first active directive, or of the first one where none is active."""
    first = next((one for one in directives if one.active), None) or next(iter(directives), None)
    return first.reader if first else None


def _lines_of_texts(shell: Shell) -> frozenset[int]:
    """Return the lines that are not code of this script: those of here-documents and of long texts."""
    lines: set[int] = set()
    for command in shell.commands:
        for redirect in command.redirects:
            if redirect.body is not None:
                first = redirect.line + 1
                lines |= set(range(first, first + redirect.body.count("\n") + 1))
        for word in command.words:
            lines |= set(range(word.line + 1, word.line + 1 + word.raw.count("\n")))
        for one in command.assignments:
            lines |= set(range(one.line + 1, one.line + 1 + (one.value.raw.count("\n") if one.value else 0)))
    return frozenset(lines)


# Placeholders of samples and templates: what a script leaves open is said once, and no rule takes it for a
# value.
_WORDS = (
    r"<[A-Za-z_][^<>\n=]*>",
    r"<<[^<>\n]*>>",
    r"\[[A-Za-z][A-Za-z _.-]*\]",
    r"\{\{(?!(?:id|name|jobid|size|tmpdir|env|taskid|nnodes)\b)[^{}\n]*\}\}",  # Flux has its own
    r"\{%[^{}\n]*%\}",
    r"%\([A-Za-z_]\w*\)[sdf]",
    r"@[A-Z][A-Z0-9_]*@",
    r"\b__\w+__",
    r"(?<![${])\{[a-z_]\w*\}(?!\})",
    r"\b\w*[xX]{4,}\w*\b",
    r"\bX{3}[a-z]\w*?X{3}\b",  # RELION's
    r"\b(?:nn|NN|g|p|ta|dd)[xXN]{3,}k?\b",
    r"\bHH:MM(:SS)?\b|\bhh:mm(:ss)?\b",
    r"\?{2,}",
    r"\.{3}",
    r"(?i:(?<![$\w])(?:your[-_ ]?(?:\w+[-_])?|my[-_])(?:project|account|allocation|budget|queue|partition"
    r"|email)\w*)",
    r"(?i:\bto[-_ ]be[-_ ](?:specified|filled)\b|\b(?:change|fill|replace)[-_]?me\b)",
    r"(?<![${\w])(?:PROJECT|PROJ|ACCOUNT|BUDGET|PARTITION|QUEUE|ALLOCATION|RESERVATION)(?:_?(?:ID|CODE|NAME|NUMBER))?\b",
)
_PLACEHOLDER = re.compile("|".join(_WORDS))


def placeholder_in(text: str) -> str | None:
    """Return the first placeholder in a value of a directive; None: it has none."""
    match = _PLACEHOLDER.search(text)
    return match[0] if match else None
