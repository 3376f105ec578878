"""The values of words in a foreign script: as plain text, as numbers, or as shell text that the target reads.

What only the other machine knows, or only its run, has none of these and is never guessed.
"""

import ast
import operator
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.shell_variables import MAX_CHARS
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.directive_reader import DirectiveReader, Fact
from hpclaunch.shell.shell_syntax import Assignment, Part, Word, text_part, variable_name

_MOST_STEPS = 400
UNREADABLE = "FILL_IN_WORD"
"""Stands for a part of a word that is known at run time only and has no name."""
WORDS: dict[str, Any] = package_table("port/port_words.yaml")
ARGUMENT = re.compile(r"[1-9]\d*|[@*#]|OPTARG")
"""Variables that hold the arguments of the script."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class Value:
    """The meaning of a word."""

    plain: str | None
    """Its text; None: it is known at run time only."""
    shell: str | None
    """The same in double quotes for bash on the target, without the quotes; None: no text there says it."""
    missing: tuple[str, ...] = ()
    """Variables whose value is not known here."""
    seen: str = ""
    """The part of the text that does not depend on the run."""
    named: str | None = None
    """As ``shell``, where variables that are not known here stand by their names."""
    splits: bool = False
    """It is not quoted, so bash makes several words of it."""
    origin: Word | None = None
    """The script's word that it comes from; None: it stands for none."""

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


def option_pairs(words: Sequence[Value]) -> list[tuple[str, str]]:
    """Return words as options: each with the next word, and those with a value in them."""
    texts = [word.plain or word.shell or word.named or "" for word in words]
    return [*pairwise(texts), *((name, value) for name, _, value in (text.partition("=") for text in texts))]


@dataclass
class Values:
    """Reads words of one script."""

    script: Script
    words: DirectiveReader
    numbers: Mapping[Fact, int]
    """The numbers that the script requests, where they are known."""
    target: Mapping[Fact, str] = field(default_factory=dict)
    """Facts of a job -> the shell text for it on the target, in double quotes."""
    node_file: Fact = "nodes"
    """What the scheduler's file of nodes has a line for: each node, or each task."""
    around: "tuple[Values, int] | None" = None
    """Of a script inside another one: that one's values, and where in it the inner script starts."""
    own: bool = False
    """hpclaunch wrote the script."""
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
            items = self.split(word)
            found += [replace(item, origin=word) for item in ([self.value(word)] if items is None else items)]
        return found

    def split(self, word: Word) -> list[Value] | None:
        """Return what a word becomes on a command line: bash splits what is not quoted. None: not known."""
        if re.fullmatch(r"\"?\$(?:[@*]|\{[@*][^}]*\})\"?", word.raw):
            return []  # the arguments of the script itself
        if _array_name(word):
            return self._items_of(word)
        if re.fullmatch(WORDS["list in braces"], word.raw):
            home = [part for part in word.parts if part.operator == "~"]  # read behind the braces
            at = sum(len(part.text) for part in home)
            made = (replace(word, parts=(*home, text_part(text[at:]))) for text in _in_braces(word.raw))
            return [self._word(each, word.start) for each in made]
        value = self.value(word)
        unquoted = '"' not in word.raw and any(part.kind == "variable" for part in word.parts)
        if unquoted and value.plain is not None:
            return [_of_text(text_part(text)) for text in value.plain.split()]
        if unquoted and value.shell and re.search(r"^(?!.*(\\|\$\()).*\s", value.shell, re.DOTALL):
            if re.search(r"\$\{[^}]*\s", value.shell):  # ${NAME:-a b} is split when it has its value
                return [Value(None, None, value.missing, value.seen, value.shell, splits=True)]
            return [Value(None if "$" in text else text, text) for text in value.shell.split()]
        if unquoted and value.shell is None and value.named and re.search(r"\s", value.named):
            return [_piece(text) for text in value.named.split()]
        return [replace(value, splits=unquoted)]

    def _items_of(self, word: Word) -> list[Value] | None:
        """Return what a word that expands to all items of an array becomes; bash splits it without quotes."""
        items = self._array(_array_name(word), word.start)
        if items is None or '"' in word.raw or any(item.plain is None for item in items):
            return items
        return [_of_text(text_part(text)) for item in items for text in item.text.split()]

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
        live = self.script.variables.reaching_at(name, offset)
        made = live[0] if len(live) == 1 else None
        if made is None or made.items is None or self._steps > _MOST_STEPS:
            return None
        items = self._array(name, made.offset) if made.append else []
        if items is None:
            return None
        words = (Word(one.raw, made.read_at, made.read_at, one.line, one.parts) for one in made.items)
        return [*items, *(each for word in words for each in self.split(word) or [])] or None

    def _word(self, word: Word, offset: int) -> Value:
        plain: str | None = ""
        shell: str | None = ""
        missing: list[str] = []
        seen = ""
        named = ""
        for part in word.parts:
            piece = self._part(part, offset)
            seen += piece.text
            plain = None if plain is None or piece.plain is None else plain + piece.plain
            shell = None if shell is None or piece.shell is None else _joined(shell, piece.shell)
            name = piece.shell if piece.shell is not None else piece.named or _name_of(part)
            named = _joined(named, name if name is not None else f"${{{UNREADABLE}}}")
            more = piece.missing if name is not None else (UNREADABLE,)
            missing += [each for each in more if each not in missing]
            if max(len(plain or ""), len(shell or "")) > MAX_CHARS:
                return Value(None, None)
        return Value(plain, shell, tuple(missing), seen, named)

    def _part(self, part: Part, offset: int) -> Value:
        self._steps += 1
        if self._steps > _MOST_STEPS * 20:
            return Value(None, None)
        if part.kind == "text" and part.operator == "~":
            return self._variable("HOME", offset) if part.text == "~" else Value(None, f"$(echo {part.text})")
        if part.kind == "text":
            return _of_text(part)
        if part.kind == "variable":
            return self._expansion(part, offset)
        if part.kind == "arithmetic":
            return _computed(self._arithmetic(part.text[3:-2], offset))
        return self._command(part.text, offset)

    def _expansion(self, part: Part, offset: int) -> Value:
        """Return ``$NAME`` and ``${NAME:-TEXT}``; other operators only change what is plain at run time."""
        if part.operator in ("[@]", "[*]"):
            items = self._array(part.text, offset) or []
            if not items or any(item.plain is None for item in items):
                return Value(None, None, (part.text,))
            text = " ".join(texts_of(items))
            return Value(text, _in_quotes(text))
        if not part.operator:
            return self._variable(part.text, offset)
        if part.operator.startswith("[") and (item := self._item(part, offset)):
            return item
        found = self._variable(part.text, offset)
        default = self._word(part.words[0], offset) if re.match(":?-", part.operator) and part.words else None
        of_job = found.shell and self.words.variables.get(part.text) in WORDS["facts of each job"]
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
        live = self.script.variables.reaching_at(name, offset)
        live = [one for one in live if not _by_argument(one)] or live
        made = live[-1] if live else None
        if made is None and self.around and name in self.around[0].script.variables.assignments:
            return self.around[0].named(name, self.around[1])
        fact = self.words.variables.get(name)
        changes = re.search(WORDS["changed in arithmetic"].format(name=re.escape(name)), self.script.text)
        if made is not None and self._steps < _MOST_STEPS and len(live) == 1 and not changes:
            return self._assigned(name, made)
        if made is None and fact is not None and (fact in self.numbers or fact in self.target):
            number = self.numbers.get(fact)
            return Value(None, self.target[fact]) if number is None else Value(str(number), str(number))
        if name in WORDS["of a job here, too"] and (made is None or name.startswith("MASTER_")):
            return Value(None, f"${name}")
        name = f"{UNREADABLE}_{name}" if re.fullmatch(r"[2-9]|\d\d+", name) else name
        return Value(None, None, (name,), named=f"${{{name}}}" if name.startswith(UNREADABLE) else None)

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
            return None
        number = _computed(text).plain
        if number is None:
            return Value(None, f'$(items=({shlex.join(items)}); echo "${{items[{text}]}}")')
        found = items[int(number)] if int(number) < len(items) else ""
        return Value(found, _in_quotes(found))

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
                return Value(None, variable)
        fact = self._counted(inside)
        if fact is not None and (number := self.numbers.get(fact)) is not None:
            return Value(str(number), str(number))
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
        return names_one and re.search(r"\bhead\b|\bsed -n\b", inside) is not None


def _in_braces(text: str) -> list[str]:
    """Return the words that bash makes of ``a{1,2}b`` and ``a{1..3}b``."""
    before, _, rest = text.partition("{")
    inside, _, behind = rest.partition("}")
    first, dots, last = inside.partition("..")
    items = inside.split(",")
    if dots and "," not in inside:
        step = 1 if int(first) <= int(last) else -1
        padded = any(re.match(r"0\d", end) for end in (first, last))
        width = max(len(first), len(last)) if padded else 1
        items = [f"{number:0{width}d}" for number in range(int(first), int(last) + step, step)]
    return [f"{before}{item}{behind}" for item in items]


def _filled(text: str, texts: Mapping[str, str]) -> str:
    """Return arithmetic with values for names: for one behind ``$`` as the text that it is (bash(1))."""
    whole = {name: one if re.fullmatch(r"\$?\w+", one) else f"({one})" for name, one in texts.items()}
    shown = {"": whole, "$": texts}
    return re.sub(r"(\$?)\{?([A-Za-z_]\w*)\}?", lambda name: shown[name[1]][name[2]], text)


def _computed(text: str | None) -> Value:
    """Return the value of arithmetic without names; what has a variable is computed on the target."""
    if text is None or "$" in text:
        return Value(None, text and f"$(({text}))")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's reader about 10if and the like
            number = _evaluated(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, OverflowError):
        number = None
    return Value(None, None) if number is None else Value(str(number), str(number))


def _evaluated(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value if node.value < 10**9 else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluated(node.left), _evaluated(node.right)
        return None if left is None or right is None else _OPERATORS[type(node.op)](left, right)
    return None


def _by_argument(made: Assignment | None) -> bool:
    """Tell whether a variable is set to an argument of the script, of which a job has none."""
    parts = made.value.parts if made and made.value else ()
    return any(part.kind == "variable" and not part.words and ARGUMENT.fullmatch(part.text) for part in parts)


def _piece(text: str) -> Value:
    """Return one of the words that bash makes of a value with variables that are not known here."""
    names = tuple(re.findall(r"\$\{(\w+)", text))
    if not names:
        return Value(None if "$" in text else text, text)
    return Value(None, None, names, re.sub(r"\$\{[^}]*\}", "", text), text, splits=True)


def _name_of(part: Part) -> str | None:
    """Return a variable as it stands in the script."""
    if part.kind != "variable" or not variable_name(part.text) or re.search(r"[\s$`\\\"]", part.operator):
        return None
    return f"${{{part.text}{part.operator}}}"


def _joined(text: str, more: str) -> str:
    """Join two texts for the shell: ``$NAME`` before a letter becomes ``${NAME}``."""
    return (re.sub(r"(?<!\\)\$(\w+)$", r"${\1}", text) if re.match(r"\w", more) else text) + more


def _of_text(part: Part) -> Value:
    """Return text of a word; a pattern stays outside of the quotes, where bash on the target reads it."""
    shell = _in_quotes(part.text)
    if not part.operator:
        return Value(part.text, shell)
    return Value(None, re.sub(r"([*?]+)", r'"\1"', shell), seen=part.text)


def _in_quotes(text: str) -> str:
    """Write plain text for the inside of double quotes."""
    return re.sub(r'([\\"`$])', r"\\\1", text)


def _array_name(word: Word) -> str:
    """Return the array that a word expands to all items of, empty for any other word."""
    parts = [part for part in word.parts if part.kind != "text" or part.text]
    whole = len(parts) == 1 and parts[0].kind == "variable" and parts[0].operator in ("[@]", "[*]")
    return parts[0].text if whole else ""


def shell_word(value: Value) -> str | None:
    """Return a value as one word for bash; None: no text there says it."""
    if value.plain is not None:
        return shlex.quote(value.plain)
    return f'"{value.shell}"' if value.shell is not None else None
