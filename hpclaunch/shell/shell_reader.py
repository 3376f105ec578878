"""Read shell text, without running it and without checking its syntax.

A script that bash would refuse is read as far as possible, and no text raises. The grammar is bash's
(man bash, SHELL GRAMMAR, QUOTING, EXPANSION, REDIRECTION).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.shell import shell_syntax
from hpclaunch.shell.braces import in_braces
from hpclaunch.shell.shell_syntax import ASSIGNMENT, Block, Command, Part, Path, Redirect, Ref, Shell, Word

MAX_DEPTH = 40
"""Levels of nested substitutions that are read, deeper ones are plain text; and of blocks that count."""

_WORD = package_constants("shell/forms.json", "reader")
_FORM = package_patterns("shell/forms.json", "reader")
_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_META = frozenset(" \t\r\n;&|<>()")
_PLAIN = {'"': re.compile(r'[^"\\$`]+'), "}": re.compile(r"[^}\"'\\$`]+")}
"""The end of a text in quotes or braces -> the characters in it without a meaning."""
_ESCAPE = {"": re.compile(r"\\"), '"': re.compile(r'\\[$`"\\\n]'), "'": re.compile(r"(?!)")}
"""The quote around a text -> a backslash in it that quotes the next character."""
_ANSI_LETTERS = dict(zip("ntrabfveE", "\n\t\r\a\b\f\v\x1b\x1b", strict=True))
_COMMENT = {False: re.compile(r"[^\n]*"), True: re.compile(r"(?:[^`\\\n]|\\[^\n]?)*")}
"""Whether backquotes are around it -> a comment: the closing one ends it, too (tried with bash 5.2)."""
_OPERATOR = re.compile("|".join(map(re.escape, _WORD.operators)))
_REDIRECT = re.compile(r"(\d*|\{\w+\})(" + "|".join(map(re.escape, _WORD.redirects)) + ")")
_OPENING = frozenset({"if", "while", "until", "for", "select", "case", "{"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_LEADING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time", "coproc"})


def read_shell(text: str) -> Shell:
    """Read a script, and the scripts that it gives to other shells. Never raises."""
    newlines = [match.start() for match in re.finditer("\n", text)]
    shell = _read(text, range(len(text) + 1), newlines, (), 0)
    shell.template = bool(shell.placeholders or re.search(r"\{%|<%|%\([a-z_]+\)[sd]", text))
    return shell


def words_in_braces(word: Word, too_many: str) -> list[Word]:
    """Return the words that bash makes of one by its braces; ``too_many``: a text for those."""
    texts = in_braces(word.raw, too_many)
    readers = [_Reader(text, [word.start] * (len(text) + 1), [], ()) for text in texts if text]
    again = [replace(word, raw=one.text, parts=one.word(array=False).parts) for one in readers]
    return [word] if texts == [word.raw] else again


def _read(text: str, offsets: Sequence[int], newlines: list[int], path: Path, level: int) -> Shell:
    """Read a script; ``offsets``: where each of its characters stands in the whole text."""
    reader = _Reader(text, offsets, newlines, path)
    reader.read_list("")
    reader.shell.commands.sort(key=lambda command: command.start)
    for command in reader.shell.commands if level < _WORD.max_level else ():
        given = _given_to_shell(command)
        if given is not None:
            inside = (*command.path, (Block("sh" if _is_quoted(command, given[1][0]) else "("), 1))
            command.inner = _read(*given, newlines, inside, level + 1).commands
    return reader.shell


def _is_quoted(command: Command, start: int) -> bool:
    """Tell whether the text for another shell that begins at a place is left to that shell as it stands."""
    words = [word.raw for word in command.words if word.start < start <= word.end]
    documents = [one for one in command.redirects if one.body is not None and one.start == start]
    in_quotes = any(re.fullmatch("'[^']*'", raw) for raw in words)
    return in_quotes or any(one.is_quoted for one in documents)


def _given_to_shell(command: Command) -> tuple[str, Sequence[int]] | None:
    """Return the script that a command gives to another shell, with the place of each character."""
    names = [word.visible.rpartition("/")[2] for word in command.words]
    at = next((at for at, name in enumerate(names) if name in _SHELLS), len(names))
    options = list(takewhile(_FORM.shell_option.fullmatch, names[at + 1 :]))
    for number, name in enumerate(options, at + 2):
        if re.fullmatch(r"-\w*c\w*", name):
            text = [word for word in command.words[number : number + 1] if word.start >= 0]
            return unquoted(text[0].raw, text[0].start) if text else None
    return _here_document(command) if at + 1 + len(options) == len(names) else None


def _here_document(command: Command) -> tuple[str, Sequence[int]] | None:
    """Return the text of a command's here-document, with the place of each character."""
    for one in command.redirects:
        if one.body is not None:
            return unquoted(one.body, one.start, plain=one.is_quoted, quote="" if one.is_quoted else '"')
    return None


def unquoted(raw: str, start: int, *, plain: bool = False, quote: str = "") -> tuple[str, Sequence[int]]:
    """Remove the quotes of a word as the outer shell does, and say where each character that is left stands.

    Expansions stay as they are: the inner shell's ``$NAME`` has the value of the outer one's. ``plain``: the
    text has no quotes; ``quote``: those around it, as of a here-document, which needs none itself.
    """
    kept = list(range(len(raw))) if plain else _kept(raw, quote)
    return "".join(raw[one] for one in kept), [*(start + one for one in kept), start + len(raw)]


def _kept(raw: str, quote: str) -> list[int]:
    """Return the positions of the characters that are left without the quotes."""
    kept: list[int] = []
    body, at = quote, 0
    while at < len(raw):
        if _ESCAPE[body].match(raw, at):
            at += 1
            kept += [] if raw[at : at + 1] == "\n" else [at]
        elif quote or raw[at] not in (body or "'\""):
            kept.append(at)
        else:
            body = "" if body else raw[at]
        at += 1
    return [one for one in kept if one < len(raw)]


class _Reader:
    """One pass over the text; ``at`` only moves forward."""

    state: "_ListState | None" = None

    def __init__(self, text: str, offsets: Sequence[int], newlines: list[int], path: Path) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self._backquotes = 0
        self.shell = Shell()
        self.place, self._newlines = offsets, newlines
        self.path = path
        """The blocks around the list of commands that is read."""
        self._heredocs: list[tuple[Command, Redirect]] = []

    def place_of(self, offset: int) -> int:
        """Return where a character stands in the outer text; behind a quote that is not closed, its end."""
        return self.place[min(offset, len(self.text))]

    def line_of(self, offset: int) -> int:
        return bisect_right(self._newlines, self.place_of(offset) - 1) + 1

    def word_at(self, start: int, parts: list[Part]) -> Word:
        """Return the word from ``start`` to here, at its place in the whole text."""
        raw = self.text[start : self.at]
        out: list[Part] = []
        for part in parts:
            if (
                part.kind == "text"
                and out
                and out[-1].kind == "text"
                and not part.operator + out[-1].operator
            ):
                out[-1] = Part("text", out[-1].text + part.text)
            else:
                out.append(part)
        return Word(raw, self.place_of(start), self.place_of(self.at), self.line_of(start), tuple(out))

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    # ---- commands

    def read_list(self, closing: str, before: str = "") -> None:
        """Read commands up to the end of the text or to ``closing`` (``)`` or a backquote), and skip it.

        ``before`` is a pipe if something writes to the first command.
        """
        state = _ListState(self, closing, before)
        outer, self.state = self.state, state
        while self.at < len(self.text):
            if self.skip_blanks():
                continue
            if closing == "`" and self.peek() == "`":
                self.at += 1
                break
            if state.take():
                break
        else:
            self._note_open_end(state, closing)
        state.end_command("")
        self.state = outer

    def _note_open_end(self, state: "_ListState", closing: str) -> None:
        """Note a compound command, test or substitution that is open where the text ends."""
        if state.blocks:
            self._note_open(state.blocks[-1].block.kind, state.blocks[-1].start)
        elif state.command and state.command.name == "[[" and state.command.words[-1].raw != "]]":
            self._note_open("[[", state.command.start)
        elif closing == ")":
            self._note_open("$(", self.at)

    def skip_blanks(self) -> bool:
        """Skip blanks, continued lines and a comment; tell whether there was any."""
        start = self.at
        while self.at < len(self.text):
            if self.peek() in _WORD.blanks:
                self.at += 1
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek(3) == "\\\r\n":
                self.at += 3
            elif self.peek() == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\r\n;&|()`"):
                comment = _COMMENT[self._backquotes > 0].match(self.text, self.at)
                self.at = comment.end() if comment else len(self.text)
            else:
                break
        return self.at > start

    def operator(self) -> str:
        match = _OPERATOR.match(self.text, self.at)
        return match[0] if match else ""

    def at_redirect(self) -> re.Match[str] | None:
        """Return the redirection here; ``<(...)`` is a word."""
        match = _REDIRECT.match(self.text, self.at)
        word = match is not None and not match[1] and self.text.startswith(("<(", ">("), match.start(2))
        return None if word else match

    def redirect(self, command: Command) -> bool:
        """Read a redirection if there is one here; tell whether there was one."""
        match = self.at_redirect()
        if match is None:
            return False
        line = self.line_of(self.at)
        self.at = match.end()
        self.skip_blanks()
        if self.at < len(self.text) and (self.peek() not in _META or self.peek(2) in ("<(", ">(")):
            target = self.word()
        else:
            self.shell.misplaced.append((line, "newline" if self.peek() in ("\n", "") else self.peek()))
            target = self.word_at(self.at, [])
        found = Redirect(match[1], match[2], target, line)
        if match[2] in ("<<", "<<-"):
            self._heredocs.append((command, found))
        else:
            command.redirects.append(found)
        return True

    def read_heredocs(self) -> None:
        """Read the bodies that begin at this line; ``at`` is after the newline."""
        for command, redirect in self._heredocs:
            delimiter, start = redirect.target.visible, self.at
            end = len(self.text)
            while self.at < len(self.text):
                newline = self.text.find("\n", self.at)
                stop = len(self.text) if newline < 0 else newline
                line = self.text[self.at : stop].rstrip("\r")
                line_start, self.at = self.at, min(stop + 1, len(self.text))
                length = self._length_of_end(line, redirect)
                if length is not None:
                    end, self.at = line_start, self.at if length == len(line) else line_start + length
                    break
            else:
                open_ones = [] if self.depth else self.shell.misplaced
                open_ones.append((redirect.line, f"end of the file: << {delimiter} is not closed"))
            body = self.text[start:end]
            place = self.place[start]
            command.redirects.append(
                Redirect(redirect.fd, redirect.operator, redirect.target, redirect.line, body, place)
            )
            if redirect.is_quoted:
                self.shell.quoted_texts.append(body)
            else:
                for match in re.finditer(r"(?<!\\)\$(?:\{[#!]?)?([A-Za-z_]\w*)(:?[-=+?])?", body, re.ASCII):
                    self._ref(match[1], start + match.start(), guarded=bool(match[2]))
        self._heredocs = []

    def _length_of_end(self, line: str, redirect: Redirect) -> int | None:
        """Return the length of a line's beginning that ends a body; None: nothing of it does."""
        delimiter = redirect.target.visible
        shown = line.lstrip("\t") if redirect.operator == "<<-" else line
        behind = shown[len(delimiter) :] if shown.startswith(delimiter) else None
        # make_here_document of bash 5.2: inside $( the closing ) may stand behind the delimiter.
        ends = behind == "" or (self.depth and behind and ")" in behind)
        return len(line) - len(behind) if ends and behind is not None else None

    # ---- words

    def word(self, array: bool = True) -> Word:
        """Read the word here; there is no blank and no operator."""
        start, parts = self.at, list[Part]()
        if self.peek(2) in ("<(", ">("):
            parts.append(self._substitution(2, ")"))
        while self.at < len(self.text):
            char = self.peek()
            if char == "(" and array and ASSIGNMENT.fullmatch(self.text[start : self.at]):
                parts.append(self._array())
                break
            if char in _META or self._ends_substitution(char):
                break
            if not self._home(self.text[start : self.at], parts):
                self._piece(parts)
        if self.at == start:  # a character without a meaning here: skip it
            self.at += 1
            parts.append(Part("text", self.text[start]))
        return self.word_at(start, parts)

    def _home(self, before: str, parts: list[Part]) -> bool:
        """Read a home folder here, where bash reads one behind this beginning of a word."""
        begins = (
            not before or ASSIGNMENT.fullmatch(before) or (before[-1] == ":" and ASSIGNMENT.match(before))
        )
        match = _FORM.home.match(self.text, self.at) if begins else None
        if match:
            parts.append(Part("text", match[0], "~"))
            self.at = match.end()
        return match is not None

    def word_of(self, text: str) -> Word:
        """Read this text here as a word, whatever its characters mean."""
        start = self.at
        self.at += len(text)
        rest = () if self.peek() in _META or self.at >= len(self.text) else self.word(array=False).parts
        return self.word_at(start, [Part("text", text), *rest])

    def _ends_substitution(self, char: str) -> bool:
        return char == "`" and self._backquotes > 0

    def _piece(self, parts: list[Part]) -> None:
        char = self.peek()
        if char == "'":
            self._single(parts)
        elif char == '"':
            start = self.at
            self.at += 1
            parts.append(Part("text", ""))
            self._up_to('"', parts, quoted=True)
            if self.at > len(self.text):
                self._note_open('"', start)
        elif char == "\\":
            if self.peek(2) not in ("\\\n", "\\"):
                parts.append(Part("text", self.text[self.at + 1]))
            self.at += 2
        elif char in "$`":
            self._dollar(parts, quoted=False)
        else:
            end = self.at + 1
            while end < len(self.text) and self.text[end] not in "'\"\\$`~" and self.text[end] not in _META:
                end += 1
            parts.append(shell_syntax.text_part(self.text[self.at : end]))
            self.at = end

    def _single(self, parts: list[Part]) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self._note_open("'", self.at)
            end = len(self.text)
        body = self.text[self.at + 1 : end]
        self.shell.quoted_texts.append(body)
        parts.append(Part("text", body))
        self.at = end + 1

    def _note_open(self, sign: str, start: int) -> None:
        """Note what is still open where the text ends."""
        self.shell.misplaced.append((self.line_of(start), f"end of the file: {sign} is not closed"))

    def _up_to(self, closing: str, parts: list[Part], *, quoted: bool) -> None:
        """Read the rest of ``"..."``, or of ``${NAME...}``, in which quotes begin and end again."""
        while self.at < len(self.text) and self.peek() != closing:
            char = self.peek()
            if self._ends_substitution(char):
                return
            if char in ('"' if quoted else "\"'\\$`"):
                self._piece(parts)
            elif char == "\\":
                self._escaped_in_double(parts)
            elif char in "$`":
                self._dollar(parts, quoted=True)
            else:
                plain = _PLAIN[closing].match(self.text, self.at)
                end = plain.end() if plain else self.at + 1
                parts.append(Part("text", self.text[self.at : end]))
                self.at = end
        self.at += 1

    def _escaped_in_double(self, parts: list[Part]) -> None:
        """Read a backslash inside double quotes and the character that it may quote."""
        pair = self.peek(2)
        self.at += 2
        if pair[1:] in ("$", "`", '"', "\\"):
            parts.append(Part("text", pair[1:]))
        elif pair[1:] != "\n":
            parts.append(Part("text", pair))

    def _dollar(self, parts: list[Part], *, quoted: bool) -> None:
        """Read an expansion; ``at`` is at its dollar or backquote."""
        if self.peek() == "`":
            parts.append(self._substitution(1, "`", quoted=quoted))
        elif self.text.startswith(("$((", "$["), self.at):
            parts.append(self._arithmetic())
        elif self.peek(2) == "$(":
            parts.append(self._substitution(2, ")", quoted=quoted))
        elif self.peek(2) == "${":
            parts.append(self._parameter(quoted=quoted))
        elif not quoted and (ansi := _FORM.ansi.match(self.text, self.at)):
            body = _FORM.ansi_escape.sub(_ansi_escape, ansi[1])
            self.shell.quoted_texts.append(body)
            parts.append(Part("text", body))
            self.at = ansi.end()
        elif self.peek(2) in ("$'", '$"') and not quoted:
            self.at += 1
            self._piece(parts)
        elif match := _FORM.variable.match(self.text, self.at):
            self._ref(match[1], self.at, guarded=False)
            parts.append(Part("variable", match[1], "", quoted))
            self.at = match.end()
        else:
            parts.append(Part("text", "$"))
            self.at += 1

    def _ref(self, name: str, offset: int, *, guarded: bool) -> None:
        self.shell.refs.append(Ref(name, self.place[offset], self.line_of(offset), guarded))

    def _substitution(self, opening: int, closing: str, *, quoted: bool = False) -> Part:
        start = self.at
        self.at += opening
        if self.depth >= MAX_DEPTH:
            return Part("text", self.text[start : self.at])
        self.depth += 1
        waiting, self._heredocs = self._heredocs, []
        before, self._backquotes = self._backquotes, int(closing == "`")
        path, self.path = self.path, (*(self.state.path if self.state else self.path), (Block("("), 1))
        self.read_list(closing, "|" if self.text.startswith(">(", start) else "")
        if closing == "`" and "`" not in self.text[start + 1 :]:
            self._note_open("`", start)
        self._backquotes, self._heredocs, self.path = before, waiting, path
        self.depth -= 1
        return Part("command", self.text[start : self.at], "", quoted)

    def _arithmetic(self) -> Part:
        start, old = self.at, _FORM.old_arithmetic.match(self.text, self.at)
        self.at += 2 if old else 3
        self.skip_arithmetic(old.end() - 1 if old else len(self.text))
        text = self.text[start : self.at]
        return Part("arithmetic", f"$(({text[2:-1]}))" if old else text)

    def skip_arithmetic(self, end: int) -> None:
        """Skip an arithmetic expression up to its ``))`` or ``end``, and note the variables in it."""
        start, nesting = self.at, 0
        while self.at < end:
            char = self.peek()
            if char == "(":
                nesting += 1
            elif char == ")":
                if nesting == 0:
                    break
                nesting -= 1
            self.at += 1
        for match in re.finditer(r"(?<![\w#])[A-Za-z_]\w*", self.text[start : self.at], re.ASCII):
            self._ref(match[0], start + match.start(), guarded=self.text[start + match.start() - 1] != "$")
        self.at += 2 if self.peek(2) == "))" else 1

    def _parameter(self, *, quoted: bool) -> Part:
        """Read ``${...}``."""
        start = self.at
        self.at += 2
        match = _FORM.parameter.match(self.text, self.at)
        if match is None or self.depth >= MAX_DEPTH:
            return Part("text", "${")
        self.at = match.end()
        operator_at = self.at
        sign = _FORM.substitute.match(self.text, self.at)
        self.at += len(sign[0]) if sign else 0
        word_at, inner = self.at, list[Part]()
        self.depth += 1
        if sign and not quoted:
            self._home("", inner)
        self._up_to("}", inner, quoted=quoted)
        self.depth -= 1
        operator = match[1] + match[3] + self.text[operator_at : max(operator_at, self.at - 1)]
        guarded = bool(re.match(r"[:]?[-=+?]", operator)) or match[1] == "!"
        self._ref(match[2], start, guarded=guarded)
        words = (self.word_at(word_at, inner),) if sign else ()
        return Part("variable", match[2], operator, quoted, words)

    def _array(self) -> Part:
        """Read ``(a b c)`` after ``NAME=``."""
        start, items = self.at, list[Word]()
        self.at += 1
        while self.at < len(self.text) and self.peek() != ")":
            if not self.skip_blanks():
                if self.peek() in "\n;&|<>(":
                    self.at += 1
                else:
                    items.append(self.word(array=False))
        self.at += 1
        return Part("array", self.text[start : self.at], words=tuple(items))


def _ansi_escape(match: re.Match[str]) -> str:
    """Return what an escape of ``$'...'`` stands for; bytes are read as UTF-8, as a terminal would."""
    if match[1]:
        return bytes.fromhex("".join(f"{text:0>2}" for text in match[1].split("\\x")[1:])).decode(
            errors="replace"
        )
    if match[2] or match[3]:
        number = int(match[2] or match[3], 16)
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "?"
    if match[4]:
        return chr(int(match[4], 8) & 255)
    return _ANSI_LETTERS.get(match[5], match[5])


@dataclass
class _Open:
    """A compound command that is open."""

    block: Block
    commands: int
    """Commands before it."""
    path: Path
    """The blocks around it."""
    chain: tuple[Block, int] | None
    """The chain of ``&&`` and ``||`` that it is in."""
    start: int
    """Where it begins, about."""
    body: int = -1
    """Where the commands behind its last ``then``, ``else`` or ``do`` begin."""


class _ListState:
    """The state while one list of commands is read: open blocks and the current command."""

    def __init__(self, reader: _Reader, closing: str, before: str) -> None:
        self.reader, self.closing = reader, closing
        self.command: Command | None = None
        self.before = before
        self.around = reader.path
        self.blocks: list[_Open] = []
        self.chain: tuple[Block, int] | None = None
        self.condition = False
        self.patterns = False  # inside case ... in: patterns up to the next ")"
        self.functions = 0

    @property
    def path(self) -> Path:
        """The blocks around the command that is read."""
        last = self.blocks[-1] if self.blocks else None
        path = (*last.path[:MAX_DEPTH], (last.block, last.block.branches)) if last else self.around
        return (*path, self.chain) if self.chain else path

    def _open(self, kind: str, branch: int = 0) -> None:
        block = Block(kind, branch)
        self.blocks.append(_Open(block, len(self._commands), self.path, self.chain, self.reader.at - 1))
        self.chain = None

    def _next_branch(self, word: str = "") -> None:
        if word in ("elif", "else"):
            self._check_body(self.blocks[-1] if self.blocks else None, word)
        if self.blocks:
            self.blocks[-1].body = self.reader.at if word in ("then", "else", "do") else -1
            self.blocks[-1].block.exhaustive |= word == "else"
            self.blocks[-1].block.branches += 1

    def _check_body(self, opened: _Open | None, word: str) -> None:
        """Note a word that ends a body which is missing, or has no command, as bash and dash refuse it."""
        at = self.reader.at
        body = self.reader.text[opened.body : at - len(word)] if opened and opened.body >= 0 else "a command"
        lacks = opened is None or opened.block.lacks_body(word)
        if lacks or re.fullmatch(r"(?:\s|#[^\n]*\n)*", body):
            said = f"{word}: it ends nothing"
            if opened:
                missing = ("then" if opened.block.kind == "if" else "do") if lacks else "command"
                line = self.reader.line_of(opened.start)
                said = f"{word}: {opened.block.kind} of line {line} has no {missing}"
            self.reader.shell.misplaced.append((self.reader.line_of(at - 1), said))

    def take(self) -> bool:
        """Take one token; tell whether it closed the list."""
        reader = self.reader
        if self.patterns:
            self._take_pattern()
            return False
        if self._in_test():
            return False
        if placeholder := _FORM.placeholder.match(reader.text, reader.at):
            reader.shell.placeholders.append((reader.line_of(reader.at), placeholder[0]))
            self._add(reader.word_of(placeholder[0]))
            return False
        operator = reader.operator()
        if operator and not re.match(r"&>", reader.peek(2)):
            return self._take_operator(operator)
        if reader.at_redirect():
            reader.redirect(self._current(reader.place[reader.at], reader.line_of(reader.at)))
        else:
            at_start = self._is_empty()
            word = self.reader.word()
            if not (at_start and self._keyword(word)):
                self._add(word)
        return False

    def _is_empty(self) -> bool:
        """Tell whether no word of a command was read yet."""
        return self.command is None or not (self.command.words or self.command.assignments)

    def _take_pattern(self) -> None:
        """Skip a part of the patterns of ``case``; ``)`` ends them, esac the whole."""
        reader = self.reader
        operator = reader.operator()
        if not operator:
            pattern = reader.word().raw
            if pattern == "esac":
                self._close("esac")
            elif pattern == "*" and self.blocks:
                self.blocks[-1].block.exhaustive = True
            return
        reader.at += len(operator)
        if operator == "\n":
            reader.read_heredocs()
        self.patterns = operator != ")"
        if not self.patterns:
            self._next_branch()

    def _in_test(self) -> bool:
        """Read a word inside ``[[ ]]``, where operators are words; tell whether there was one."""
        reader, command = self.reader, self.command
        if command is None or command.name != "[[" or command.words[-1].raw == "]]":
            return False
        if reader.peek() == "\n":
            reader.at += 1
        elif reader.peek() in "<>()&|;":
            at = reader.at
            reader.at += 1
            command.words.append(reader.word_at(at, [Part("text", reader.text[at])]))
        else:
            command.words.append(reader.word(array=False))
        return True

    def _current(self, start: int, line: int) -> Command:
        if self.command is None:
            self.command = Command(
                line=line,
                start=start,
                before=self.before,
                piped_in=self.before in _WORD.pipes,
                depth=self.reader.depth,
                block=len(self.blocks),
                condition=self.condition,
                function=any(block.kind == "function" for block, _ in self.path[len(self.around) :]),
                path=self.path,
            )
        return self.command

    def _add(self, word: Word) -> None:
        command = self._current(word.start, word.line)
        match = ASSIGNMENT.match(word.raw)
        if match and not command.words:
            command.assignments.append(shell_syntax.assignment_in(word, path=command.path))
        elif command.name in DECLARING and not any(part.kind == "array" for part in word.parts):
            command.words += words_in_braces(word, word.raw)  # as of each argument, not of NAME=value alone
        else:
            command.words.append(word)
        command.end = word.end
        if word.raw == "in" and len(command.words) == 3 and command.words[0].raw == "case":
            self.end_command("in")
            self.patterns = True

    def _keyword(self, word: Word) -> bool:
        """Take a reserved word; tell whether it was one that is not a command itself."""
        raw = word.raw
        if raw in _OPENING:
            functions = self.functions
            self.functions = 0
            self._open("function" if raw == "{" and functions else raw)
        if raw in ("then", "elif", "else", "do"):
            self._next_branch(raw)
        if raw in ("if", "elif", "while", "until"):
            self.condition = True
        elif raw in ("then", "do", "else"):
            self.condition = False
        if raw in _CLOSING:
            self._close(raw)
            return True
        if raw == "function":
            self._take_function_name()
            return True
        return raw in _LEADING

    def _take_function_name(self) -> None:
        reader = self.reader
        reader.skip_blanks()
        if reader.peek() not in _META and reader.at < len(reader.text):
            reader.word(array=False)
        self.functions = 1

    @property
    def _commands(self) -> list[Command]:
        return self.reader.shell.commands

    def _close(self, word: str) -> None:
        """Close a compound command; the next operator decides where its output goes."""
        self.patterns = self.condition = False
        reader, opened = self.reader, self.blocks.pop() if self.blocks else None
        self._check_body(opened, word)
        first = opened.commands if opened else len(self._commands)
        self.chain = opened.chain if opened else None
        reader.skip_blanks()
        holder = Command(line=reader.line_of(reader.at), start=reader.at, depth=reader.depth)
        while reader.redirect(holder):
            reader.skip_blanks()
        self._goes_with(self._commands[first:], reader.operator() in _WORD.pipes, holder.redirects)
        self.before = word

    def _goes_with(self, inside: list[Command], piped: bool, redirects: list[Redirect]) -> None:
        """Give the commands in a block what follows its end.

        Not of deeper blocks, or a script of brackets alone would take the square of its length.
        """
        followed = (piped or redirects) and len(self.blocks) < MAX_DEPTH
        for command in inside if followed else ():
            if command.depth == self.reader.depth:
                command.piped_out = command.piped_out or piped
                command.redirects += redirects

    def _take_operator(self, operator: str) -> bool:
        reader = self.reader
        if operator == "(":
            self._open_parenthesis()
            return False
        reader.at += len(operator)
        if operator == ")":
            return self._close_parenthesis()
        if operator == "\n" and self.command and [self.command.name, len(self.command.words)] == ["case", 2]:
            return False
        self.end_command(operator)
        if operator in (";;", ";&", ";;&"):
            self.patterns = True
        if operator == "\n":
            reader.read_heredocs()
        return False

    def _open_parenthesis(self) -> None:
        reader, words = self.reader, self.command.words if self.command else []
        parentheses = _FORM.parentheses.match(reader.text, reader.at) if len(words) == 1 else None
        if reader.peek(2) == "((" and (self._is_empty() or (words and words[0].visible == "for")):
            reader.at += 2
            reader.skip_arithmetic(len(reader.text))
            self.command = self.command if words else None
        elif parentheses:  # NAME (): a function
            reader.at = parentheses.end()
            self.command, self.functions = None, 1
        else:
            self._note_parenthesis(words)
            reader.at += 1
            self.end_command("(")
            self._open("(", 1)

    def _note_parenthesis(self, words: list[Word]) -> None:
        """Note a parenthesis among words; not behind a foreign letter, a template's sign, or in a pattern."""
        reader = self.reader
        if words and reader.text[reader.at - 1].isascii() and "extglob" not in reader.text:
            reader.shell.misplaced.append((reader.line_of(reader.at), "("))

    def _close_parenthesis(self) -> bool:
        self.end_command(")")
        if any(one.block.kind == "(" for one in self.blocks):
            while self.blocks and self.blocks[-1].block.kind != "(":
                self.blocks.pop()
            self._close(")")
            return False
        if self.closing != ")":
            self.reader.shell.misplaced.append((self.reader.line_of(self.reader.at - 1), ")"))
        return self.closing == ")"

    def end_command(self, operator: str) -> None:
        """Finish the current command; ``operator`` comes after it."""
        command, self.command = self.command, None
        if command is not None:
            command.after = operator
            command.piped_out = operator in _WORD.pipes
            command.end = command.end or self.reader.place_of(self.reader.at)
            self._commands.append(command)
            if command.name == "exit" and command.path:
                command.path[-1][0].left_by.add(command.path[-1][1])
        if command is not None or operator not in ("\n", "(") or self.before not in ("|", "|&", "&&", "||"):
            self.before = operator
            self._go_on_chain(operator)

    def _go_on_chain(self, operator: str) -> None:
        """Note that what follows runs only after a success (``&&``) or a failure (``||``)."""
        if operator in ("&&", "||"):
            block = self.chain[0] if self.chain else Block("&&", 2, exhaustive=True)
            self.chain = (block, 2 if operator == "||" else self.chain[1] if self.chain else 1)
        elif operator in (";", "\n", "&", "", ";;", ";&", ";;&", ")"):
            self.chain = None
