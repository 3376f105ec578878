"""A batch script, read once: everything that rules need."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

from hpclaunch.lint.known_variables import SHOWS, TABLE
from hpclaunch.lint.launch_lines import Launch, Option, read_launch
from hpclaunch.lint.shell_variables import Expansion, Variables, read_variables
from hpclaunch.scheduler import directive_reader
from hpclaunch.scheduler.directive_readers import SUBMIT_COMMANDS, read_directives, unread_directives
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Command, Ref, Shell, Word, without_beginning

Language = Literal["bash", "sh", "ksh", "zsh", "csh", "python", "other"]
"""bash, sh, ksh, zsh: read as a shell script. csh: csh or tcsh, of which only the lines that start programs
and set variables are read. python and other: only the directives are read."""

_SHELLS: dict[str, Language] = TABLE["shells"]
_OF_TOOLS = re.compile(TABLE["texts_of_tools"])
_OPEN_WORD = re.compile("|".join(TABLE["open_words"]))
_PLACEHOLDER = re.compile("|".join([*TABLE["placeholders"], *TABLE["open_words"]]))
_FIELD = re.compile(r"(?<![${\w])\{[A-Za-z_][\w.]*\}(?![}\w])")
_NOT_COMMENTS = re.compile(r"(?m)(?<=\n)(?!#).+")
_OVERRIDE = re.compile(TABLE["override"])
_COUNTS = TABLE["counts"].split()
_OF_A_PROGRAM = re.compile("|".join(TABLE["filled_in_by_programs"]))
BROKEN_SHEBANG = re.compile(r"(?!#!)[^\w\n]*((?:usr/)?bin/[^\n]*)")
JOINED = re.compile("[\u00a0\u2000-\u200b\u3000\ufeff](-|#|$)")
"""A sign like a blank in a word: that is reported, and not the value."""


def language_of(text: str) -> Language:
    """Return the language of a script; without a ``#!`` line it is bash unless it begins like another one."""
    first = text.partition("\n")[0].strip()
    given = re.match(TABLE["interpreter"], text)
    # Grid Engine passes over the ``#!`` line by default (man queue_conf 8.1, shell_start_mode).
    if given and (given[1] == "$" or not first.startswith("#!")):
        return _by_interpreter(given[2])
    if first.startswith("#!"):
        return _by_interpreter(first[2:])
    code = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    forms: dict[Language, str] = TABLE["first_lines"]
    return next((name for name, form in forms.items() if re.match(form, code)), "bash")


def _by_interpreter(words: str) -> Language:
    """Return the language of the program that a ``#!`` line names; a template's placeholder is a shell."""
    names = [word.rpartition("/")[2] for word in words.split()]
    names = [name for name in names if name not in ("", "env") and not re.search("^-|=", name)]
    name = names[0] if names else "bash"
    if re.match(r"(python|pypy|ipython)[\d.]*$", name):
        return "python"
    return _SHELLS.get(name, "bash" if name.startswith(("@", "{", "<", "$")) else "other")


def code_lines(text: str) -> list[int]:
    """Return the lines of code of a script in another language."""
    lines = enumerate(text.split("\n"), 1)
    return [number for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


@dataclass(frozen=True, eq=False)
class Script:
    """One script; compared by identity, so that results about it can be cached."""

    text: str
    language: Language
    reader: directive_reader.DirectiveReader | None
    """That of the scheduler whose directives it has; None: it has no directives."""
    directives: tuple[directive_reader.Directive, ...]
    unread: tuple[tuple[int, str], ...]
    """Line and scheduler of each directive that no reader reads."""
    shell: Shell
    variables: Variables
    launches: tuple[Launch, ...]
    behind: dict[int, str]
    """The lines behind its end, which its shell does not read; `text` has blanks for them."""

    @property
    def kind(self) -> str | None:
        """The scheduler whose directives it has; None: it has no directives."""
        return self.reader.kind if self.reader else None

    @cached_property
    def active_directives(self) -> tuple[directive_reader.Directive, ...]:
        """The directives that its scheduler reads: those before the first command."""
        return tuple(one for one in self.directives if one.active and one.reader is self.reader)

    @cached_property
    def kind_of_pbs(self) -> tuple[str, str]:
        """The PBS that alone reads the directives, and the variables that only the other one sets."""
        given = "\n".join(one.text for one in self.active_directives)
        rows = [row for row in TABLE["kinds_of"].get(self.kind, ()) if re.search(row["directives"], given)]
        return (rows[0]["name"], rows[0]["lacks"]) if len(rows) == 1 else ("", "(?!)")

    @cached_property
    def components(self) -> tuple[tuple[directive_reader.Directive, ...], ...]:
        """The active directives of each component of a heterogeneous job; one component where it is none."""
        found: list[list[directive_reader.Directive]] = [[]]
        for one in self.active_directives:
            if one.name in directive_reader.COMPONENT_SEPARATORS:
                found.append([])
            else:
                found[-1].append(one)
        return tuple(map(tuple, found))

    @cached_property
    def text_lines(self) -> frozenset[int]:
        """The lines that are not code of this script: here-documents and texts of several lines."""
        return _lines_of_texts(self.shell)

    @cached_property
    def written_scripts(self) -> "tuple[tuple[Script, bool], ...]":
        """The here-documents that are shell scripts, or submitted, at their lines; True: none replaces $."""
        found = list[tuple[Script, bool]]()
        for command, one in ((each, one) for each in self.commands for one in each.redirects):
            tabs = {"<<-": r"(?m)^\t+"}.get(one.operator, "(?!)")
            body = re.sub(tabs, "", one.body or "")
            if re.match(TABLE["shell_scripts"], body) or (body and command.name in SUBMIT_COMMANDS):
                # A variable alone in a line may hold directives.
                body = body if one.is_quoted else re.sub(r"(?m)^\$\{?\w+\}?$", "#", body).replace("\\$", "$")
                found.append((read_script("\n" * one.line + body), one.is_quoted))
        return tuple(found)

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
    def open_directives(self) -> dict[int, str]:
        """Line and text of the directives in which something is left open for the user to fill in."""
        made = {one.line for one in self.directives if re.search(TABLE["written_by_python"], one.text)}
        found = [one for one in self.directives if one.problem != "comment" and one.line not in made]
        fields = _counts_by_name(found)
        return {one.line: one.text for one in reversed(found) if one in fields or placeholder_in(one.text)}

    @cached_property
    def open_words(self) -> dict[int, str]:
        """Line and text of what its commands leave open, but for what they print."""
        found = dict(reversed(self.shell.placeholders))
        shown = {one.line for one in self.commands if one.name in ("echo", "printf", "mktemp")}
        for number, line in enumerate(self._lines_of_code if self.is_posix else (), 1):
            code = "" if number in shown else line
            match = _OPEN_WORD.search(_OF_TOOLS.sub("", code))
            if match and f"</{match[0][1:]}" not in self.text:  # no tag
                found.setdefault(number, match[0])
        return found | self._fields_of_format()

    @cached_property
    def _lines_of_code(self) -> list[str]:
        """Its lines without comments."""
        return [re.split(r"(?:^|\s)#", line, maxsplit=1)[0] for line in self.text.split("\n")]

    def _fields_of_format(self) -> dict[int, str]:
        """Return the fields of a text that a program formats, as Snakemake does; one is a command."""
        lines = self._lines_of_code
        whole = any(_FIELD.fullmatch(one.words[0].raw) for one in self.commands if one.words)
        fields = enumerate(map(_FIELD.search, lines) if whole else (), 1)
        broken = dict.fromkeys(line for line, text in self.shell.misplaced if text == "(")
        in_brackets = [(line, re.search(TABLE["names_in_brackets"], lines[line - 1])) for line in broken]
        return {line: found[0] for line, found in (*fields, *in_brackets) if found}

    @cached_property
    def is_filled_in(self) -> bool:
        """Whether a program fills something in before the script is submitted."""
        texts = (*self.open_words.values(), *self.open_directives.values())
        return any(map(_OF_A_PROGRAM.search, texts))

    def is_override(self, command: Command) -> bool:
        """Tell whether ``NAME.NAME=VALUE``, as Hydra reads it, stands below a program or another one."""
        above = (one for one in reversed(self.commands) if one.start < command.start and not one.depth)
        texts = (" ".join(word.raw for word in one.words[:2]) for one in above)
        program = next((text for text in texts if not _OVERRIDE.match(text)), "")
        return program.split(" ")[0] not in {"", *SHOWS} and not re.match(r"[\w.-]+ ?=", program)

    def directive(self, role: directive_reader.Role) -> directive_reader.Directive | None:
        """Return the last active directive of a role; the last one holds."""
        return next((one for one in reversed(self.active_directives) if one.role == role), None)

    def directive_value(self, role: directive_reader.Role) -> str:
        """Return the value of the last active directive of a role; empty where there is none."""
        found = self.directive(role)
        return found.value or "" if found else ""

    def has_option(self, name: str) -> bool:
        """Tell whether an active directive gives the option of this name."""
        return directive_reader.last_directive(self.active_directives, name) is not None

    @property
    def commands(self) -> list[Command]:
        """All commands in the order of the text."""
        return self.shell.commands

    @property
    def shebang(self) -> str:
        """The words after ``#!``; empty where there is none."""
        first = self.text.partition("\n")[0].rstrip("\r")
        return first[2:].strip(" \t") if first.startswith("#!") else ""

    def on_from(self, letter: str, name: str) -> float:
        """Return where ``set`` turns an option of the shell on; infinite where nothing does."""
        given = re.compile(rf"set .*-(\w*{letter}\w*|\w*o {name})( |$)")
        texts = ((one.start, " ".join(word.visible for word in one.words)) for one in self.commands)
        on = [start for start, text in texts if given.match(text)]
        return -1 if re.search(rf"\s-\w*{letter}", self.shebang) else min(on, default=inf)

    def steps(self) -> list[Launch]:
        """Return the launches that start ranks: those by a launcher, or Python's if there are none."""
        by_launcher = [launch for launch in self.launches if launch.by_launcher]
        others = (one for one in self.launches if not (one.command.depth or one.command.condition))
        return by_launcher or [one for one in others if not (one.command.piped_in or one.trivial)]

    def number(self, launch: Launch, *names: str) -> int | None:
        """Return the number that an option of a launch gives; None: not given, or not known."""
        return directive_reader.whole_number(self.value(launch.option(*names)).text)

    @cached_property
    def input_from(self) -> float:
        """Where ``exec < FILE`` gives the commands behind it their input; infinite: nowhere."""
        opens = (one for one in self.commands if one.has_input and (one.name, len(one.words)) == ("exec", 1))
        here = (one for one in opens if not one.depth and "(" not in (block.kind for block, _ in one.path))
        return next((float(one.start) for one in here), inf)

    @cached_property
    def first_uses(self) -> dict[str, Ref]:
        """The first use of each variable."""
        return {ref.name: ref for ref in reversed(self.shell.refs)}

    @cached_property
    def unguarded_uses(self) -> dict[str, Ref]:
        """The first use of each variable that does not handle the unset case."""
        return {ref.name: ref for ref in reversed(self.shell.refs) if not ref.guarded}

    def unset_uses(self, longer_than: int) -> Iterator[Ref]:
        """Yield the first use of each variable that nothing sets, of those with such long names."""
        long = (ref for name, ref in reversed(self.unguarded_uses.items()) if len(name) > longer_than)
        return (ref for ref in long if not self.variables.is_set(ref.name))

    def uses_after(self, offset: int) -> set[str]:
        """Return the variables that are used after a place in the text."""
        return {ref.name for ref in self.shell.refs if ref.offset > offset}

    def line_at(self, offset: int) -> int:
        """Return the line of a place in the text, from 1."""
        return self.text.count("\n", 0, offset) + 1

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


def _counts_by_name(directives: Iterable[directive_reader.Directive]) -> list[directive_reader.Directive]:
    """Return counts that are names, as in ``--nodes=Nnode --ntasks=Ntask`` of a template; one is a slip."""
    counts = (one for one in directives if one.name in _COUNTS)
    named = [
        one for one in counts if re.fullmatch(r"(?!(?i:unlimited|infinite))[A-Za-z]\w*", one.value or "")
    ]
    return named if len(named) > 1 else []


def written_by_hpclaunch(text: str) -> bool:
    """Tell whether hpclaunch has written a script."""
    return re.search(TABLE["written_by_us"], text) is not None


def read_script(text: str) -> Script:
    """Read a script. Never raises."""
    language = language_of(text)
    is_shell = language not in ("python", "other")
    whole = text
    text, shell = _up_to_end(text) if is_shell else (text, read_shell(""))
    not_code = _lines_of_texts(shell)
    code = _command_lines(shell) if is_shell else code_lines(text)
    directives = read_directives(text, code, not_code)
    if not is_shell:  # what looks like a directive further down may stand in a text of that language
        directives = tuple(one for one in directives if one.active)
    variables = read_variables(shell)
    variables.provided |= _passed(directives)
    launches = tuple(_launches(shell.commands, variables))
    return Script(
        text=text,
        language=language,
        reader=_reader_of(directives, launches),
        directives=directives,
        unread=unread_directives(text, not_code),
        shell=shell,
        variables=variables,
        launches=launches,
        behind=_behind(whole, text),
    )


def _reader_of(
    directives: Sequence[directive_reader.Directive], launches: Iterable[Launch]
) -> directive_reader.DirectiveReader | None:
    """Return the reader of the first directives; of those of several schedulers a launcher decides."""
    foreign = " ".join(TABLE["foreign_launchers"].get(one.launcher, "") for one in launches).split()
    active = [one.reader for one in directives if one.active] or [one.reader for one in directives]
    return next((one for one in active if one.kind not in foreign), next(iter(active), None))


def _up_to_end(text: str) -> tuple[str, Shell]:
    """Return a script with blanks for what its shell does not read, behind its end, and its commands."""
    shell = _read(text)
    last = next(filter(ends_script, shell.commands), None)
    if last is None or not _NOT_COMMENTS.search(text, last.end):
        return text, shell
    text = text[: last.end] + _NOT_COMMENTS.sub(lambda one: " " * len(one[0]), text[last.end :])
    return text, _read(text)


def _read(text: str) -> Shell:
    """Read a script, without commands and variables of the program that reads a template's tags."""
    shell, tags = read_shell(text), [range(*tag.span()) for tag in re.finditer(TABLE["tags"], text)]
    shell.commands = [one for one in shell.commands if not any(one.start in tag for tag in tags)]
    shell.refs = [one for one in shell.refs if not any(one.offset in tag for tag in tags)]
    return shell


def _behind(whole: str, text: str) -> dict[int, str]:
    """Return the lines of a script for which its text has blanks."""
    lines = enumerate(zip(whole.split("\n"), text.split("\n"), strict=True), 1)
    return {at: line.rstrip("\r") for at, (line, read) in lines if line.strip() and not read.strip()}


def ends_script(command: Command) -> bool:
    """Tell whether the script surely ends here: by ``exit``, or ``exec PROGRAM`` without a here-document."""
    chained = {command.before, command.after} & {"|", "|&", "&", "&&", "||"}
    inside = command.path or command.depth or command.function
    goes_on = any(one.body is not None for one in command.redirects) or len(command.words) < 2
    ends = command.name == "exit" or (command.name == "exec" and not goes_on)
    return ends and not (chained or inside)


def _passed(directives: Iterable[directive_reader.Directive]) -> set[str]:
    """Return the variables that directives take from the submission or set: ``-v A,B=1``, ``--export``."""
    given = (one for one in directives if one.active and one.reader.options.get(one.name) == "export")
    return {name for one in given for name in re.findall(r"(?:^|[\s,\"'])([A-Za-z_]\w*)", one.value or "")}


def _launches(commands: Iterable[Command], variables: Variables) -> Iterator[Launch]:
    """Yield how each command starts programs; of ``bash -c TEXT`` without a launcher those in its text."""
    for command in commands:
        launch = read_launch(command, variables)
        if launch is not None:
            yield launch
        elif command.name == "eval":
            yield from _launches(_evaluated(command, variables), variables)
        else:
            yield from _launches(command.inner, variables)


def _evaluated(command: Command, variables: Variables) -> Iterator[Command]:
    """Yield the commands that ``eval`` runs, as far as their text is known, at its place."""
    text = " ".join(variables.fields(command.words[1:])).replace("?", "$?")  # what is not known
    found = [one for one in read_shell(text).commands if one.words and not one.depth]
    for one in found:
        words = [Word(word.raw, -1, -1, command.line, word.parts) for word in one.words]
        after = one.after or command.after
        piped = one.piped_out or command.piped_out
        yield replace(command, words=words, piped_in=one.piped_in, piped_out=piped, after=after)


def _command_lines(shell: Shell) -> list[int]:
    """Return the lines of the commands; ``...`` alone stands for lines that a page leaves out."""
    return [
        command.line
        for command in shell.commands
        if command.assignments or [word.raw for word in command.words] not in ([], ["..."])
    ]


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


def placeholder_in(text: str) -> str | None:
    """Return the first placeholder in a value of a directive; None: it has none."""
    match = _PLACEHOLDER.search(text)
    return match[0] if match else None
