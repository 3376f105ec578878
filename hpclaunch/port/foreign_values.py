"""The values of words in a foreign script: as plain text, as numbers, or as shell text that the target reads.

What only the other machine knows, or only its run, has none of these and is never guessed.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from pathlib import PurePosixPath
from typing import Any

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.directive_reader import DirectiveReader, Fact
from hpclaunch.shell.arithmetic import bounds
from hpclaunch.shell.shell_reader import read_shell, words_in_braces
from hpclaunch.shell.shell_syntax import Assignment, Part, Word, text_part, variable_name, without_beginning

_MOST_STEPS = 400
IFS = " \t\n"
"""The characters at which bash splits, unless the script says others."""
_ALL_ITEMS = re.compile(r"\[([@*])\](?::\s*(\d+|\s-\d+|\(-\d+\))(?::\s*(\d+))?)?")
"""Of ``${NAME[@]}`` and of a part of its items, such as ``${NAME[@]:1:2}``."""
UNREADABLE = "FILL_IN_WORD"
"""Stands for a part of a word that is known at run time only and has no name."""
WORDS: dict[str, Any] = package_table("port/port_words.yaml")
ARGUMENT = re.compile(r"[1-9]\d*|[@*#]|OPTARG")
"""Variables that hold the arguments of the script."""


@dataclass(frozen=True)
class Value:
    """The meaning of a word."""

    plain: str | None
    shell: str | None
    missing: tuple[str, ...] = ()
    seen: str = ""
    named: str | None = None
    splits: bool = False
    origin: Word | None = None
    of_job: bool = False

    @property
    def known(self) -> bool:
        """Whether some text says it on the target."""
        return self.plain is not None or self.shell is not None

    @property
    def text(self) -> str:
        """The part of its text that can be read."""
        return self.plain if self.plain is not None else self.seen


def texts_of(words: Iterable[Value]) -> list[str]:
    """Return the parts of words that can be read."""
    return [word.text for word in words]


def option_pairs(words: Sequence[Value], *, computed: bool = True) -> list[tuple[str, str]]:
    """Return words as options: each with the next word, and those with a value in them.

    ``computed`` False: without the numbers that the job here has for variables of the scheduler.
    """
    read = [word if computed or not word.of_job else Value(None, None) for word in words]
    texts = [word.plain or word.shell or word.named or "" for word in read]
    return [*pairwise(texts), *((name, value) for name, _, value in (text.partition("=") for text in texts))]


@dataclass
class Values:
    """Reads words of one script."""

    script: Script
    words: DirectiveReader
    numbers: Mapping[Fact, int]
    target: Mapping[Fact, str] = field(default_factory=dict)
    there: Mapping[Fact, int] = field(default_factory=dict)
    node_file: Fact = "nodes"
    around: "tuple[Values, int] | None" = None
    own: bool = False
    in_ranks: bool = False
    launches: dict[int, Any] = field(default_factory=dict, init=False)  # of launcher_words.read_launch
    _steps: int = 0

    def value(self, word: Word) -> Value:
        """Return the value of a word, where it stands."""
        self._steps = 0
        return self._word(word, word.start)

    def named(self, name: str, offset: int) -> Value:
        """Return the value that a variable has at a place of the script."""
        self._steps = 0
        return self._variable(name, offset)

    def words_of(self, words: Iterable[Word]) -> list[Value]:
        """Return what some words become on a command line."""
        found: list[Value] = []
        for word in words:
            self._steps = 0
            found += [replace(value, origin=word) for value in self._words(word)]
        return found

    def _words(self, word: Word) -> list[Value]:
        """Return what a word becomes on a command line: bash splits what is not quoted."""
        if re.fullmatch(r"\"?\$(?:[@*]|\{[@*][^}]*\})\"?", word.raw):
            return []  # the arguments of the script itself
        words = words_in_braces(word, f"${{{UNREADABLE}}}")
        return [value for each in words for value in self._fields(each)]

    def _fields(self, word: Word) -> list[Value]:
        """Return what a word without braces becomes."""
        pieces = [*chain.from_iterable(self._pieces(part, word.start) for part in word.parts)]
        if pieces == [Value("", "")] and word.raw.startswith('"${') and "[@]" in word.raw:
            return []  # an array without items
        groups = groupby(pieces, key=lambda piece: piece is None)
        values = [_in_one([*filter(None, group)]) for ends, group in groups if not ends]
        quotes = re.search(r"[^\w./=:,@%+-]", word.visible)
        return [replace(one, splits=False) if quotes else one for one in values]

    def _pieces(self, part: Part, offset: int) -> list[Value | None]:
        """Return the values that a part of a word gives; None: one word ends there."""
        quoted = part.quoted or part.kind != "variable"
        items = self._items(part, offset) if part.operator.startswith("[@]") or not quoted else None
        if items is None and _ALL_ITEMS.fullmatch(part.operator) and not part.operator.startswith("[*]"):
            return [Value(None, None, (part.text,), named=f"${{{part.text}}}", splits=True)]
        found: list[Value | None] = []
        for one in [self._part(part, offset)] if items is None else items:
            found += (None, *([one] if quoted else self._split(one, offset)))
        return found[1:]

    def _split(self, value: Value, offset: int) -> list[Value | None]:
        """Return the words that bash makes of a value without quotes; None: one ends there."""
        text = value.plain if value.plain is not None else value.shell or value.named or ""
        signs = self._variable("IFS", offset).plain
        if signs is None or (signs != IFS and {*signs} & {*text}):
            return [Value(None, None, (UNREADABLE,))]
        shell = value.shell if value.plain is None else None
        if shell and re.search(r"^(?!.*\$\().*\$\{[^}]*\s", shell, re.DOTALL):
            # ${NAME:-a b} is split when it has its value
            return [replace(value, shell=None, named=shell, splits=True)]
        if signs != IFS or not (value.plain or re.search(r"^(?!.*\\).*\s", text, re.DOTALL)):
            return [] if value.plain == "" else [replace(value, splits=True)]
        return [None if one.isspace() else _piece(one, value) for one in _split_text(text)]

    def _items(self, part: Part, offset: int) -> list[Value] | None:
        """Return the items that ``${NAME[@]}`` and ``${NAME[@]:1:2}`` stand for; None: not known."""
        every, items = _ALL_ITEMS.fullmatch(part.operator), self._array(part.text, offset)
        if every is None or items is None or every[2] is None:
            return items if every else None
        first = int(every[2].strip(" \t()"))
        known = all(item.plain is not None for item in items)  # a pattern may be several items
        items = items[first:] if first >= -len(items) else []
        return items[: int(every[3]) if every[3] else None] if known else None

    def translated(self, text: str) -> str:
        """Return a text that a shell will read with the scheduler's variables as the target has them."""

        def value(match: re.Match[str]) -> str:
            fact = self.words.variables.get(match[1] or match[2])
            known: dict[Fact, object] = {**self.target, **self.numbers}
            return str(known.get(fact, match[0])) if fact else match[0]

        return re.sub(r"\\?\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", value, text)

    def _array(self, name: str, offset: int) -> list[Value] | None:
        """Return the items of an array, where the same assignments of it hold in any case."""
        if self.around and name not in self.script.variables.assignments:
            return self.around[0]._array(name, self.around[1])
        self._steps += 1
        live = self._live(name, offset)
        made = live[0] if len(live) == 1 else None
        if made is None or made.items is None or self._steps > _MOST_STEPS:
            return None
        if any(re.match(r"\[[^]]*\]\+?=", one.raw) for one in made.items):
            return None  # ([2]=c) names the places of its words
        items = self._array(name, made.offset) if made.append else []
        if items is None:
            return None
        words = (Word(one.raw, made.read_at, made.read_at, one.line, one.parts) for one in made.items)
        return [*items, *(each for word in words for each in self._words(word))]

    def _live(self, name: str, offset: int) -> list[Assignment | None]:
        """Return the assignments that may hold, without what a condition or a loop adds, and arguments."""
        live = self.script.variables.reaching_at(name, offset)
        live = [one for one in live if not (one and len(live) > 1 and adds_in_block(one))] or live
        return [one for one in live if not _by_argument(one)] or live

    def _word(self, word: Word, offset: int) -> Value:
        return _in_one([self._part(part, offset) for part in word.parts])

    def _part(self, part: Part, offset: int) -> Value:
        self._steps += 1
        if self._steps > _MOST_STEPS * 20:
            return Value(None, None)
        if part.kind == "text" and part.operator == "~":
            return self._variable("HOME", offset) if part.text == "~" else Value(None, f"$(echo {part.text})")
        if part.kind == "text":
            return _of_text(part)
        if part.kind == "variable":
            found = self._expansion(part, offset)
            return found if found.shell is not None or found.named else replace(found, named=_name_of(part))
        if part.kind == "arithmetic":
            return self._sum(part.text[3:-2], offset)
        return self._command(part.text, offset)

    def _sum(self, text: str, offset: int) -> Value:
        """Return the value of arithmetic; the ranks, where it makes them of nodes and of those on each."""
        found = _computed(self._arithmetic(text, offset))
        ranks, nodes = self.there.get("tasks", 0), self.there.get("nodes", 0)
        if not (ranks and nodes and "tasks" in self.numbers):
            return found
        for count in (1, 2):
            there = replace(self, numbers={**self.there, "nodes": count * nodes}, there={})
            if _computed(there._arithmetic(text, offset)).plain != str(count * ranks):
                return found
        return Value(*2 * (str(self.numbers["tasks"]),), of_job=True)

    def _expansion(self, part: Part, offset: int) -> Value:
        """Return ``$NAME`` and ``${NAME:-TEXT}``; other operators only change what is plain at run time."""
        if every := _ALL_ITEMS.fullmatch(part.operator):
            items = self._items(part, offset)
            signs = " " if every[1] == "@" else self._variable("IFS", offset).plain
            if items is None or signs is None:
                return Value(None, None, (part.text,))
            between = Value(signs[:1], _in_quotes(signs[:1]))
            return _in_one([piece for item in items for piece in (between, item)][1:])
        if not part.operator:
            return self._variable(part.text, offset)
        if part.operator.startswith("[") and (item := self._item(part, offset)):
            return item
        found = self._variable(part.text, offset)
        if part.text in WORDS["of one shell"] and found.shell is None:
            return found
        if (changed := _changed(found, part.operator)) is not None:
            return changed
        default = self._word(part.words[0], offset) if re.match(":?-", part.operator) and part.words else None
        fact = self.words.variables.get(part.text, part.text)
        of_job = found.shell and fact in WORDS["facts of each job"]
        if default is not None and (found.plain or of_job):
            return found
        if default is None or default.shell is None:
            return Value(None, None, (part.text,))
        if not variable_name(part.text):
            return default
        return Value(None, f"${{{part.text}:-{default.shell}}}")

    def _variable(self, name: str, offset: int) -> Value:
        self._steps += 1
        if name.startswith("HPCLAUNCH_"):
            return Value(None, f"${name}")
        live = self._live(name, offset)
        made = live[-1] if live else None
        if made is None and name == "IFS":
            return Value(IFS, IFS)
        if made is None and self.around and name in self.around[0].script.variables.assignments:
            return self.around[0].named(name, self.around[1])
        fact = self.words.variables.get(name)
        changes = re.search(WORDS["changed in arithmetic"].format(name=re.escape(name)), self.script.text)
        if name in WORDS["of one shell"]:
            return self._of_shell(name)
        if made is not None and self._steps < _MOST_STEPS and len(live) == 1 and not changes:
            return self._assigned(name, made)
        if made is None and fact is not None and (fact in self.numbers or fact in self.target):
            text = str(self.numbers.get(fact, self.target.get(fact)))
            return Value(None if "$" in text else text, text, of_job=True)
        if name in WORDS["of a job here, too"] and (made is None or name.startswith("MASTER_")):
            return self._of_shell(name)
        name = f"{UNREADABLE}_{name}" if re.fullmatch(r"[2-9]|\d\d+", name) else name
        return Value(None, None, (name,), named=f"${{{name}}}" if name.startswith(UNREADABLE) else None)

    def _of_shell(self, name: str) -> Value:
        """Return a variable that each shell sets: the batch script's is on the first node, and there once."""
        if not self.in_ranks and name in WORDS["of one shell"]:
            name = f"{UNREADABLE}_{name}"
            return Value(None, None, (name,), named=f"${{{name}}}")
        return Value(None, "$MASTER_ADDR" if name == "HOSTNAME" and not self.in_ranks else f"${name}")

    def _assigned(self, name: str, made: Assignment) -> Value:
        found = self._word(made.value, made.read_at) if made.value else Value(None, None, (name,))
        if made.append:
            before = self._variable(name, made.offset).plain
            if before is None or found.plain is None:
                return Value(None, None, (name,))
            return Value(before + found.plain, _in_quotes(before + found.plain))
        if not found.known and name in ("MASTER_ADDR", "MASTER_PORT"):
            return Value(None, f"${name}")
        named = re.fullmatch(rf"\$\{{{UNREADABLE}\w*\}}", found.named or "") is None
        return found if named else Value(None, None, (name,))

    def _item(self, part: Part, offset: int) -> Value | None:
        """Return ``${NAME[INDEX]}`` of an array whose items are known; None: it cannot be read."""
        index = re.sub(r"^\[\$\(\((.+)\)\)\]$", r"[\1]", part.operator)
        text = self._arithmetic(index[1:-1], offset)
        items = [item.plain or "" for item in self._array(part.text, offset) or []]
        if not text or not items or any(item.split() != [item] for item in items):
            return self._keyed(part, offset)
        number = _computed(text).plain
        if number is None:
            return Value(None, f'$(items=({shlex.join(items)}); echo "${{items[{text}]}}")')
        found = items[int(number)] if int(number) < len(items) else ""
        return Value(found, _in_quotes(found))

    def _keyed(self, part: Part, offset: int) -> Value | None:
        """Return ``${NAME[KEY]}`` of an array whose items name their keys; None: not known."""
        if self.around and part.text not in self.script.variables.assignments:
            return self.around[0]._keyed(part, self.around[1])
        live = self._live(part.text, offset)
        items = _by_keys(live[0]) if len(live) == 1 else {}
        index = read_shell(f": {part.operator[1:-1]}").commands[0].words[1:]
        key = self._word(index[0], offset).plain if len(index) == 1 else None
        return self._word(items[key], items[key].start) if key in items else None

    def _arithmetic(self, text: str, offset: int) -> str | None:
        """Return arithmetic with numbers, and for the index of an array the target's, in place of names."""
        values = {name: self._variable(name, offset) for name in re.findall(r"[A-Za-z_]\w*", text)}
        texts = {name: (one.plain or one.shell or "").strip() for name, one in values.items()}
        of_index = r"\d{1,9}|(\$\(\()?[\s\d()+*/%-]*\$HPCLAUNCH_ARRAY_INDEX[\s\d()+*/%-]*"
        read = len(text) <= 200 and re.fullmatch(r"[\w\s()+*/%${}-]+", text)
        if not read or not all(re.fullmatch(of_index, one) for one in texts.values()):
            return None
        return _filled(text.strip(), texts)

    def _command(self, text: str, offset: int) -> Value:
        """Return what a command in a substitution prints, for the few that many scripts have."""
        inside = text.removeprefix("$(").removesuffix(")").strip("`").strip().replace('"', "")
        if match := re.fullmatch(rf"({WORDS['parts of a path']}) (?:\$\{{?(\w+)\}}?|([\w./-]+))", inside):
            path = self._variable(match[2], offset).plain if match[2] else match[3]
            if path:
                pure = PurePosixPath(path)
                text = str(pure.parent) if match[1] == "dirname" else pure.name
                return Value(text, _in_quotes(text))
        for pattern, variable in WORDS["commands with a variable"].items():
            if re.fullmatch(pattern, inside):
                return self._of_shell(variable)
        fact = self._counted(inside)
        if fact is not None and (number := self.numbers.get(fact)) is not None:
            return Value(str(number), str(number), of_job=True)
        return Value(None, self.target.get("first node") if self._is_first_node(inside) else None)

    def _counted(self, inside: str) -> Fact | None:
        """Return what a pipe of commands counts: the lines of the scheduler's file of nodes, or GPUs."""
        for name, fact in self.words.variables.items():
            file = rf"\$(?:{name}|\{{{name}\}})"
            counts = (one.format(file=file) for one in WORDS["counts of a file"])
            if fact == "node file" and any(re.fullmatch(one, inside) for one in counts):
                return "nodes" if re.search(r"\buniq\b|sort -u", inside) else self.node_file
        return next((fact for fact, each in WORDS["counts of"].items() if re.fullmatch(each, inside)), None)

    def _is_first_node(self, inside: str) -> bool:
        """Tell whether a pipe of commands prints the first of the job's nodes."""
        sources = [name for name, fact in self.words.variables.items() if fact in ("node list", "node file")]
        names_one = any(re.search(rf"\$\{{?{name}\b", inside) for name in sources)
        return names_one and re.search(r"\bhead\b|\bsed -n '?1p", inside) is not None


def _by_keys(made: Assignment | None) -> dict[str | None, Word]:
    """Return the items of an array by the keys that all of them name: ``([a]=1 [b]=2)``; empty: not so."""
    found: dict[str | None, Word] = {}
    if made is None or made.append:
        return found
    for one in made.items or ():
        key = re.match(r"\[([^]$]+)\]=", one.visible)
        if key is None:
            return {}
        found[key[1]] = replace(one, start=made.read_at, parts=without_beginning(one.parts, key.end()))
    return found


def _filled(text: str, texts: Mapping[str, str]) -> str:
    """Return arithmetic with values for names: for one behind ``$`` as the text that it is (bash(1))."""
    whole = {name: one if re.fullmatch(r"\$?\w+", one) else f"({one})" for name, one in texts.items()}
    shown = {"": whole, "$": texts}
    return re.sub(r"(\$?)\{?([A-Za-z_]\w*)\}?", lambda name: shown[name[1]][name[2]], text)


def _computed(text: str | None) -> Value:
    """Return the value of arithmetic without names; what has a variable is computed on the target."""
    if text is None or "$" in text:
        return Value(None, text and f"$(({text}))")
    found = bounds(text)
    number = str(found[0]) if found else None
    return Value(number, number)


def _changed(value: Value, operator: str) -> Value | None:
    """Return the value of ``${NAME%END}``, ``${NAME##*/}``, ``${NAME//A/B}`` (bash(1)); None: not known."""
    match = re.fullmatch(r"(%%?|##?|//?(?![#%]))([\w.,:*?@+=/-]+)", operator)
    if match is None or value.plain is None:
        name = re.fullmatch(r"\$(\w+)", value.shell or "")  # which the target's shell has
        return Value(None, f"${{{name[1]}{operator}}}") if match and name else None
    sign, word = match.groups()
    old, _, new = word.partition("/") if sign[0] == "/" else (word, "", "")
    pattern = re.escape(old).replace(r"\*", ".*?" if sign == "#" else ".*").replace(r"\?", ".")
    ends = {"%": rf"\A(.*){pattern}\Z", "%%": rf"\A(.*?){pattern}\Z", "#": rf"\A(){pattern}"}
    whole = ends.get(sign.replace("##", "#"), f"(){pattern}")
    text = re.sub(whole, rf"\g<1>{new}", value.plain, count=sign == "/", flags=re.DOTALL)
    return Value(text, _in_quotes(text))


def adds_in_block(made: Assignment) -> bool:
    """Tell whether words are added to a variable in a condition or a loop: ``A+=b``, ``A="$A b"``."""
    inside = any(branch and block.kind not in ("function", "(", "sh") for block, branch in made.path)
    parts = [replace(part, quoted=False) for part in made.value.parts] if made.value else []
    return inside and (made.append or Part("variable", made.name) in parts)


def _by_argument(made: Assignment | None) -> bool:
    """Tell whether a variable is set to an argument of the script, of which a job has none."""
    parts = made.value.parts if made and made.value else ()
    return any(part.kind == "variable" and not part.words and ARGUMENT.fullmatch(part.text) for part in parts)


def _split_text(text: str) -> list[str]:
    """Return the words of a text and the blanks between them, of which those in ``$(...)`` end no word."""
    found: list[str] = []
    for one in re.findall(r"\s+|\S+", text):
        if found and "$(" in found[-1] and found[-1].count("(") > found[-1].count(")"):
            found[-1] += one
        else:
            found.append(one)
    return found


def _piece(text: str, value: Value) -> Value:
    """Return one of the words that bash makes of a value."""
    if value.plain is not None:
        return replace(_of_text(text_part(text)), of_job=value.of_job)
    outside = re.sub(r"\$\(.*\)", "", text)
    names = () if value.shell is not None else tuple(re.findall(r"\$\{(\w+)", outside))
    if not names:
        return Value(None if "$" in text else text, text, seen=re.sub(r"\$(\w+|\{[^}]*\}|\(.*\))", "", text))
    return Value(None, None, names, re.sub(r"\$\{[^}]*\}", "", text), text, splits=True)


def _name_of(part: Part) -> str | None:
    """Return a variable as it stands in the script."""
    if part.kind != "variable" or not variable_name(part.text) or re.search(r"[\s$`\\\"]", part.operator):
        return None
    begin = 1 if re.match(r"#($|\[)|!", part.operator) else 0
    return f"${{{part.operator[:begin]}{part.text}{part.operator[begin:]}}}"


def _joined(text: str, more: str) -> str:
    """Join two texts for the shell: ``$NAME`` before a letter becomes ``${NAME}``."""
    return (re.sub(r"(?<!\\)\$(\w+)$", r"${\1}", text) if re.match(r"\w", more) else text) + more


def _in_one(pieces: Iterable[Value]) -> Value:
    """Return one value of those that stand behind each other."""
    plain: str | None = ""
    shell: str | None = ""
    missing: list[str] = []
    seen = named = ""
    for piece in pieces:
        seen += piece.text
        plain = None if plain is None or piece.plain is None else plain + piece.plain
        shell = None if shell is None or piece.shell is None else _joined(shell, piece.shell)
        name = piece.shell if piece.shell is not None else piece.named
        named = _joined(named, name if name is not None else f"${{{UNREADABLE}}}")
        more = piece.missing if name is not None else (UNREADABLE,)
        missing += [each for each in more if each not in missing]
        if max(len(plain or ""), len(shell or "")) > TABLE["max_chars"]:
            return Value(None, None)
    splits, of_job = (any(getattr(piece, name) for piece in pieces) for name in ("splits", "of_job"))
    return Value(plain, shell, tuple(missing), seen, named, splits=splits, of_job=of_job)


def _of_text(part: Part) -> Value:
    """Return text of a word; a pattern stays outside of the quotes, where bash on the target reads it."""
    shell = _in_quotes(part.text)
    if not part.operator:
        return Value(part.text, shell)
    return Value(None, re.sub(r"([*?]+)", r'"\1"', shell), seen=part.text)


def _in_quotes(text: str) -> str:
    """Write plain text for the inside of double quotes."""
    return re.sub(r'([\\"`$])', r"\\\1", text)


def shell_word(value: Value) -> str | None:
    """Return a value as one word for bash; None: no text there says it."""
    if value.plain is not None:
        return shlex.quote(value.plain)
    return f'"{value.shell}"' if value.shell is not None else None
