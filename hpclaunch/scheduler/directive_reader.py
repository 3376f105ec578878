"""Reading the directives of batch scripts: the types, what one scheduler's reader has, and the ways in which
submit commands read the words of a line."""

import re
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from hpclaunch.package_data import package_table, text_beside

Role = Literal[
    "account",
    "error",
    "exclusive",
    "export",
    "folder",
    "hint",
    "output",
    "project",
    "qos",
    "queue",
    "select",
    "walltime",
]
"""The purpose of an option; each scheduler has its own names."""

Subject = Literal[
    "account", "after", "array", "begin", "binding", "carried", "constraint", "container", "cpus",
    "exclusive", "export", "fabric", "folder", "gpus", "gpus per node", "gpus per task", "interactive",
    "left out", "mail events", "mail user", "memory", "module", "name", "node list", "nodes", "nothing",
    "output", "qos", "queue", "rendezvous", "requeue", "reservation", "select", "signal", "site", "tasks",
    "tasks per node", "walltime", "wrap",
]  # fmt: skip
"""The subject of an option. carried: only this scheduler has it, on any machine; site: it names something of
one machine; nothing: the target's script does without it."""

Fact = Literal[
    "array index", "first node", "folder", "gpus per node", "job", "job name", "local rank", "node file",
    "node list", "node rank", "nodes", "rank", "tasks", "tasks per node", "cpus per task",
]  # fmt: skip
"""The content of a variable of the scheduler."""

MailEvent = Literal["begin", "end", "fail"]


class After(NamedTuple):
    """The jobs that a job waits for."""

    ids: tuple[str, ...]
    any_end: bool


Problem = Literal["stray", "comment", "equals", "empty"]
"""Mistakes in the form of an option. stray: a word that is neither option nor value. comment: one in a line
of a scheduler that has none. equals: ``-n=4``, whose value is then ``=4``. empty: its value is missing."""

DASH = re.compile("[\u2010-\u2015\u2212\ufe63\uff0d]")
"""A dash of a text, which begins no option."""
COMPONENT_SEPARATORS = ("hetjob", "packjob")
"""Slurm's words between the components of a heterogeneous job; their options have no other name."""


class DirectiveOption(msgspec.Struct, frozen=True):
    """One option of a directive line."""

    name: str
    value: str | None
    text: str
    known: bool = True
    problem: Problem | None = None


class Directive(DirectiveOption, frozen=True, kw_only=True):
    """One option of a directive line, with its place in a script."""

    reader: "DirectiveReader"
    line: int
    active: bool

    @property
    def role(self) -> Role | None:
        """Return the purpose of the option; None: it has no role."""
        return self.reader.roles.get(self.name)

    @property
    def one_dash(self) -> bool:
        """Tell whether a long option of Slurm or Flux has only one dash."""
        match = re.match(r"-([a-z][a-z-]+)(?=[= ]|$)", self.text)
        return match is not None and self.reader.dashes == "--" and match[1] in self.reader.known_options


class Given(NamedTuple):
    """A number that a directive gives, and its place."""

    value: int
    line: int
    text: str


class RequestedResources(msgspec.Struct, frozen=True, kw_only=True):
    """The request in the directives of a job; None: not requested, or not readable as a number."""

    nodes: Given | None = None
    tasks: Given | None = None
    tasks_per_node: Given | None = None
    cpus_per_task: Given | None = None
    cpus_per_node: Given | None = None
    cpus_per_gpu: Given | None = None
    gpus: Given | None = None
    gpus_per_node: Given | None = None
    gpus_per_task: Given | None = None
    threads_per_core: Given | None = None
    walltime_s: Given | None = None

    @property
    def node_count(self) -> int | None:
        """Nodes; None: not requested, or none."""
        return self.nodes.value or None if self.nodes else None

    @property
    def all_tasks(self) -> int:
        """Tasks of the whole job, as far as requested; 1 where none are."""
        if self.tasks:
            return self.tasks.value
        return (self.node_count or 1) * (self.ranks_per_node or 1)

    @property
    def ranks_per_node(self) -> int | None:
        """Ranks per node: requested as such, or computed from all tasks and the nodes."""
        if self.tasks_per_node:
            return self.tasks_per_node.value
        if self.tasks and self.node_count:
            return -(-self.tasks.value // self.node_count)
        return None

    @property
    def gpus_of_node(self) -> int | None:
        """GPUs of a node: requested as such, by task, or computed from all GPUs and the nodes."""
        if self.gpus_per_node:
            return self.gpus_per_node.value
        if self.gpus_per_task:
            return self.gpus_per_task.value * (self.ranks_per_node or 1)
        return -(-self.gpus.value // (self.node_count or 1)) if self.gpus else None


class DirectiveReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads batch scripts for one scheduler: their directives, and the meaning of options and variables."""

    kind: str = ""
    sentinel: str = ""
    line_start: str = ""
    read_in: Literal["before first command", "lines at top", "from the first on", "whole script"] = (
        "before first command"
    )
    submit_command: str = ""
    read: Callable[[Sequence[str]], Iterable[DirectiveOption]] = lambda words: ()
    requested: Callable[[Sequence[Directive]], RequestedResources] = lambda directives: RequestedResources()
    account_option: str = ""
    account_variable: str = ""
    requests_gpus: bool = True
    known_options: frozenset[str] = frozenset()
    dollar_options: Sequence[str] | None = None
    array_file: str | None = None
    refuses_zero_walltime: bool = False
    retired: str = ""
    comments: bool = True
    comment_in_words: bool = False
    indented: bool = False
    continued: bool = False
    starts_at_home: bool = False
    file_of_slots: bool = False
    dashes: str = "--"
    read_array: Callable[[str], str | None] = lambda text: text or None
    array_form: str = "{}"
    read_name: Callable[[str], str] = lambda text: text

    @staticmethod
    def facts(kind: str) -> dict[str, Any]:
        """Return the fields that are data: ``directives`` of ``KIND/scheduler.json``."""
        data = msgspec.json.decode(text_beside(__file__, f"{kind}/scheduler.json"))
        return {"kind": kind, "submit_command": data["submit_program"], **data["directives"]}

    @property
    def roles(self) -> Mapping[str, Role]:
        """Its options that have a role, each with it."""
        return word_table(self.kind, "roles")

    @property
    def options(self) -> Mapping[str, Subject]:
        """Its options, each with its subject."""
        return word_table(self.kind, "options")

    @property
    def variables(self) -> Mapping[str, Fact]:
        """The variables of its jobs, each with the fact that it holds."""
        return word_table(self.kind, "variables")

    def answers(self, part: Literal["owned", "at_site"]) -> Mapping[str, str]:
        """Return options that the plan sets (separated by blanks) -> the option of ``submit`` instead, or
        subject -> the answer at a site with this scheduler where no option is about it."""
        return _table(self.kind, part)

    def read_after(self, text: str) -> After | None:
        """Return the jobs that must end first; None: a job file has no word for their kinds of end."""
        form = _table(self.kind, "after")
        ids = re.findall(form["id"], text) if form and re.fullmatch(form["form"], text.strip()) else None
        return None if ids is None else After(tuple(ids), re.search(form["any end"], text) is not None)

    def read_mail(self, name: str, value: str) -> dict[str, set[MailEvent]]:
        """Return the words of an option for mail, each with its events: none, where it means another one."""
        of_event: dict[MailEvent, str] = _table(self.kind, "mail")
        words = re.findall(_table(self.kind, "mail form").get("word", r"\S+"), value or name)
        return {
            word: {event for event, names in of_event.items() if {word, word.upper()} & {*names.split()}}
            for word in words
        }

    def write_mail(self, events: set[MailEvent], user: str | None) -> tuple[str, ...]:
        """Write the options that send mail, without the sentinel; none: they are not known."""
        form, of_event = _table(self.kind, "mail form"), _table(self.kind, "mail")
        words = [names.split()[0] for event, names in of_event.items() if event in events]
        options = form["events"].format(form["between"].join(words)).split("\n") if words else []
        return (*options, *([form["user"].format(user)] if user and form else []))

    def shown(self, name: str) -> str:
        """Return an option as it is typed."""
        return f"-l {name[2:]}=" if name.startswith("l:") else f"{self.dashes}{name}"

    def read_text(self, text: str) -> Iterator[DirectiveOption]:
        """Yield the options of a directive line's text after the sentinel."""
        text = re.sub(_PLACEHOLDER, lambda match: re.sub(r"\s+", "_", match[0]), text)
        text = re.sub(rf"(?<!\S)--?(?={DASH.pattern})", "", text)
        plain, hash_sign, comment = _without_comment(text, self.comment_in_words)
        yield from self.read(_split(plain))
        if hash_sign and not self.comments:
            yield DirectiveOption("", None, f"#{comment}".strip(), known=False, problem="comment")


def _table(kind: str, part: str) -> dict[Any, str]:
    table: dict[Any, str] = package_table(f"scheduler/{kind}/words.yaml").get(part, {}) if kind else {}
    return table


@cache
def word_table(kind: str, part: str) -> dict[str, Any]:
    """Return a part of ``KIND/words.yaml``: name of an option or a variable -> what it is about."""
    return {name: about for about, names in _table(kind, part).items() for name in names.split()}


# Escaped signs, texts in quotes, and what may be a comment or a field.
_PIECES = re.compile(r"""\\.|"[^"]*"?|'[^']*'?|#+\w*#*""")
# A placeholder of several words, such as <your project> or [budget code], is one word.
_PLACEHOLDER = r"<%[^\n]*?%>|\$\{ [^{}\n]*\}|<[A-Za-z][^<>\n]*>|\[[A-Za-z][^\[\]\n]*\]|\{\{[^{}\n]*\}\}"


def _without_comment(text: str, in_words: bool) -> tuple[str, str, str]:
    """Split at the ``#`` that begins a comment: behind a blank (or in a word), not in quotes, no field."""
    for found in _PIECES.finditer(text):
        at = found.start()
        begins = in_words or at == 0 or text[at - 1].isspace()
        if found[0][0] == "#" and begins and not _is_field(text, at):
            return text[:at], "#", text[at + 1 :]
    return text, "", ""


def _is_field(text: str, at: int) -> bool:
    """Tell whether a program is to fill in what is here: ``##NAME##``, or ``#NAME#`` behind an option."""
    behind = re.search(r"((^|\s)-\S+\s+|=)$", text[:at]) is not None
    return re.match(r"##+\w+##" + r"|#[A-Z][A-Z0-9_]+#(?!\w)|###+_?[A-Za-z]" * behind, text[at:]) is not None


def _split(text: str) -> list[str]:
    """Split like the shell; a quote without its partner does not stop it."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def name_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set of names."""
    return frozenset(text.split())


def last_directive(directives: Iterable[Directive], name: str) -> Directive | None:
    """Return the last directive with this option name; the last one holds."""
    found = [directive for directive in directives if directive.name == name]
    return found[-1] if found else None


def whole_number(text: str | None) -> int | None:
    """Read a count of up to nine digits; None for any other text."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def highest_number(text: str) -> int | None:
    """Read ``8``, ``4,8`` or ``2-4``; the higher number counts against limits."""
    return whole_number(re.split("[-,]", text)[-1])


def given_number(
    directives: Iterable[Directive], name: str, read: Callable[[str], int | None] = whole_number
) -> Given | None:
    """Return the number that the last directive with this option name gives; None: no directive or number."""
    found = last_directive(directives, name)
    value = read(found.value or "") if found else None
    return Given(value, found.line, found.text) if found and value is not None else None


class GnuOptions(msgspec.Struct, frozen=True):
    """Options as getopt_long and argparse read them: ``--nodes=2``, ``--nod 2``, ``-N2``, ``-N 2``."""

    letters: Mapping[str, str]
    flags: frozenset[str]
    valued: frozenset[str]
    aliases: Mapping[str, str] = {}
    separators: tuple[str, ...] = ()
    equals_is_value: bool = False

    def read(self, words: Sequence[str]) -> Iterator[DirectiveOption]:
        """Yield the options of the words; never raises."""
        rest = deque(words)
        while rest:
            word = rest.popleft()
            if word.startswith("--") and len(word) > 2:
                yield self._long(word, rest)
            elif word.startswith("-") and len(word) > 1:
                yield from self._short(word, rest)
            elif word in self.separators:
                yield DirectiveOption(word, None, word)
            else:
                yield DirectiveOption("", None, word, known=False, problem="stray")

    def _long(self, word: str, rest: deque[str]) -> DirectiveOption:
        """Read ``--nodes=2`` or ``--nodes 2``; a value in a separate word is taken from ``rest``."""
        given, equals, value = word[2:].partition("=")
        name = self._full_name(given)
        if not equals and name in self.valued:
            return _with_value(name, word, "", rest)
        return DirectiveOption(name or given, value if equals else None, word, known=name is not None)

    def _full_name(self, given: str) -> str | None:
        """Return the option that ``given`` is taken for: an unambiguous beginning is enough."""
        known = self.flags | self.valued
        if given in known or given in self.aliases:
            return self.aliases.get(given, given)
        longer = {self.aliases.get(name, name) for name in (*known, *self.aliases) if name.startswith(given)}
        return longer.pop() if len(longer) == 1 else None

    def _short(self, word: str, rest: deque[str]) -> Iterator[DirectiveOption]:
        """Read ``-N2``, ``-N 2`` and flags run together, ``-vH``."""
        letters = word[1:]
        while letters:
            name = self.letters.get(letters[0])
            if name is not None and name not in self.flags:
                option = _with_value(name, word, letters[1:].removeprefix("="), rest)
                wrong = self.equals_is_value and letters[1:2] == "="
                yield replace(option, problem="equals") if wrong else option
                return
            yield DirectiveOption(name or letters[0], None, f"-{letters[0]}", known=name is not None)
            letters = letters[1:]


def gnu_facts(kind: str, **more: Any) -> dict[str, Any]:
    """Return the facts of a reader of such options, ``KIND/options.json``; ``more``: their other fields."""
    options = msgspec.json.decode(text_beside(__file__, f"{kind}/options.json"), type=GnuOptions)
    known = options.flags | options.valued
    return {**DirectiveReader.facts(kind), "read": replace(options, **more).read, "known_options": known}


def _with_value(name: str, word: str, value: str, rest: deque[str]) -> DirectiveOption:
    if value or not rest:
        return DirectiveOption(name, value or None, word, problem=None if value else "empty")
    value = rest.popleft()
    return DirectiveOption(name, value, f"{word} {value}")


def word_counts(kind: str) -> dict[str, int]:
    """Return the options of ``lsf/options.json``, each with how many words follow it."""
    rows = msgspec.json.decode(text_beside(__file__, f"{kind}/options.json"), type=dict[int, list[str]])
    return {name: count for count, names in rows.items() for name in names}


def word_options(
    words: Sequence[str], values: Mapping[str, int], joined: Sequence[str] = ()
) -> Iterator[DirectiveOption]:
    """Yield options that are whole words after one dash, as those of bsub and of Grid Engine: ``-nnodes 2``.

    ``values``: name -> how many words follow it. What follows an unknown option is taken for its value.
    ``joined``: the options to which a value may be joined, ``-n4``. Never raises.
    """
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if len(word) > 1 and word.startswith("-"):
            yield word_option(word, rest, values, joined)
        else:
            yield DirectiveOption("", None, word, known=False, problem="stray")


def word_option(
    word: str, rest: deque[str], values: Mapping[str, int], joined: Sequence[str] = ()
) -> DirectiveOption:
    """Return an option with its value, which is taken from the words behind it."""
    name = word[1:]
    behind = [*takewhile(lambda one: not one.startswith("-"), rest)]
    behind = [rest.popleft() for _ in range(min(values.get(name, len(behind)), len(rest)))]
    shorter = [one for one in joined if name.startswith(one)]
    own = name if name in values else max(shorter, key=len, default=name)
    value = name[len(own) :] or " ".join(behind)
    problem: Problem | None = "empty" if values.get(name) and not value else None
    return DirectiveOption(own, value or None, " ".join([word, *behind]), own in values, problem)
