"""Words and phrases that are not used: they are hard to read for someone whose first language is not English.

``CHECKED`` names the files. Of Python files the string literals, docstrings and comments are checked, of
templates, profiles and pages the whole text; in addition the help of the commands.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from hpclaunch.cli.main import COMMANDS, program
from tests.in_one_test import in_one_test
from tests.parsed import nodes

ROOT = Path(__file__).parents[1]
CLI = ROOT / "hpclaunch" / "cli"

# Files and folders; of a folder all Python files, pages, templates and profiles.
CHECKED = (
    *("hpclaunch", "templates", "site_profiles", "docs"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
)


class NotUsed(NamedTuple):
    """A phrase, what to write instead, and a sentence that has it."""

    pattern: str
    instead: str
    example: str


COUNT = r"(?:\d[\d,.]*|one|two|three|four|six|eight|twelve|several|many|\{[^}]*\})"
# What may stand between a number and "a node", where that means "one node".
JOINS = "is|are|was|has|to|of|in|on|at|for|from|with|by|as|and|or|if|when|that|which|makes|gives|names|takes"
UNIT = r"(?:node|rank|core|GPU|job|task|host|step|second|file|line|scheduler|site|run|round)"

NOT_USED = (
    NotUsed(r"what (?:became|is known|becomes) of", "the state of", "Say what became of JOB"),
    NotUsed(r"sa(?:y|ys|id) of\b", "reports about", "what the scheduler says of a job"),
    NotUsed(r"wish(?:es|ed)?", "options, requests, settings", "inherits none of that one's wishes"),
    NotUsed(r"whom|blam(?:e|es|ed|ing)", "the cause, the rank that failed first", "the nodes that it blames"),
    NotUsed(r"is none of", "is not one of", "tight is none of warn, strict, off"),
    NotUsed(r"(?<!there )is no (?!longer\b)\w+", "is not a", "--nosuch is no option of srun"),
    NotUsed(r"leads? nowhere", "does not work here", "easybuild: leads nowhere"),
    NotUsed(r"anew", "again, from scratch, new", "the profile is read anew"),
    NotUsed(r"besides?", "next to, with, in addition to", "beside what was planned"),
    NotUsed(rf"{COUNT} (?:(?!(?:{JOINS})\b)[\w-]+ )?an? {UNIT}", "per node, per rank", "one process a node"),
    NotUsed(
        r"(?:hold|holds|held)(?: [\w'-]+){0,4} against", "compare with, check against", "held against it"
    ),
    NotUsed(r"(?:keep|kept) back", "residual", "what was kept back"),
    NotUsed(r"kept(?: [\w'-]+){0,4} cache", "cached", "kept in the user's cache"),
    NotUsed(r"so many|ever (?:less|more) often", "this many, rarely", "how often it may be so many"),
    NotUsed(r"for its sake|in the words of", "for it, as NAME writes", "in the words of Slurm"),
    NotUsed(r"of (?:its|their|your) own", "its own, automatically", "each rank has a folder of its own"),
    NotUsed(
        r"tak(?:e|es|ing) over (?:its|the|a job's) (?:exit )?status", "exit with", "take over its exit status"
    ),
    NotUsed(r"ha(?:s|d|ve) (?:the|a) say", "decides", "the site has the say"),
    NotUsed(r"no word why|without a word", "gives no reason, silently", "may vanish without a word"),
    NotUsed(r"end(?:s|ed)? (?:badly|well)", "failed, succeeded", "when these jobs have ended well"),
    NotUsed(r"nobody", "it is not known, not requested, none", "None: nobody said"),
    NotUsed(r"(?:nodes?|cores?|GPUs?|ranks?) asked", "requested", "64 cores asked"),
    NotUsed(r"(?:unless|if|when|where) asked", "requested", "wait if asked, report"),
    NotUsed(r"in the place of", "instead of", "in the place of the profile's"),
    NotUsed(r"wherefrom|whence|thereof|whoever", "where from, of it, who", "the end thereof"),
    NotUsed(
        r"(?:a|any) person(?:'s)?|the others|the rest of them",
        "the user; the other ranks",
        "what a person asked",
    ),
    NotUsed(r"by (?:itself|themselves)", "alone, automatically", "it comes back by itself"),
    NotUsed(r"as (?:it|they) (?:is|are|was|were) given", "unchanged", "the value as it was given"),
    NotUsed(r"for ever|no more(?=[.,;:]|$)|till", "forever, no longer, until", "it does not wait for ever"),
    NotUsed(r"told(?! apart)", "signalled, notified", "the ranks are told to checkpoint"),
    NotUsed(r"looks? at (?:each |every |the )?nodes?|is looked at", "check", "Look at each node before"),
)

USED = (
    "there is no job yet, and it is no longer waiting",
    "one process per node; no more than 2 at once; a node of two GPUs",
    "one is a rank, 2 to a node, and the job is a job",
    "its own folder; it checks against the limits; untold",
)


# Whether any of them is in a text, found out at once: almost no text has one. To search a text in small
# letters takes less than half of the time of a search that ignores the case.
_ANY = re.compile(rf"\b(?:{'|'.join(f'(?:{phrase.pattern.lower()})' for phrase in NOT_USED)})\b")


def any_not_used(text: str) -> bool:
    """Whether any of ``NOT_USED`` stands in a text."""
    return _ANY.search(text.lower()) is not None


def misused(text: str) -> list[str]:
    """What of ``NOT_USED`` stands in a text, each with what to write instead."""
    found: list[str] = []
    for phrase in NOT_USED if any_not_used(text) else ():
        for match in re.finditer(rf"\b(?:{phrase.pattern})\b", text, re.IGNORECASE):
            found.append(
                f"{match[0]!r} -> {phrase.instead}: ...{text[max(0, match.start() - 30) : match.end() + 30]}"
            )
    return found


def python_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each string literal, f-strings whole, and of comments."""
    in_others: set[ast.AST] = set()
    for node in nodes(path):
        if isinstance(node, ast.JoinedStr) and node not in in_others:
            in_others.update(ast.walk(node))
            parts = (part.value if isinstance(part, ast.Constant) else "{x}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in in_others:
            yield node.lineno, node.value
    yield from python_comments(path)


def python_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each comment, in files with any of the words: finding comments takes longer."""
    if not any_not_used(" ".join(path.read_text().split())):
        return
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def page_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each paragraph, without marks of comments."""
    line = 1
    for paragraph in path.read_text().split("\n\n"):
        yield line, re.sub(r"(?m)^\s*(?:#|>|{#-?)\s*", "", paragraph)
        line += paragraph.count("\n") + 2


def checked_files() -> list[Path]:
    """The files that are named in ``CHECKED``, or lie in a folder that is."""
    found = []
    for name in CHECKED:
        path = ROOT / name
        assert path.exists(), f"CHECKED names {name}, which is not there"
        found += sorted(path.rglob("*")) if path.is_dir() else [path]
    return [path for path in found if path.suffix in (".py", ".md", ".j2", ".yaml")]


FILES = checked_files()


@in_one_test("path", FILES)
@pytest.mark.xdist_group("syntax trees")
def test_texts_are_in_plain_words(path: Path) -> None:
    texts = python_texts(path) if path.suffix == ".py" else page_texts(path)
    found = [f"{line}: {what}" for line, text in texts for what in misused(" ".join(text.split()))]
    assert found == []


def help_texts(command: click.Command) -> Iterator[str]:
    """Yield the help of a command, of its options and of its subcommands."""
    yield command.help or ""
    yield from (option.help or "" for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            if subcommand := command.get_command(click.Context(command), name):
                yield from help_texts(subcommand)


@in_one_test("name", [name for name in COMMANDS if CLI / f"{name}.py" in FILES])
def test_the_help_is_in_plain_words(name: str) -> None:
    command = program.get_command(click.Context(program), name)
    assert command is not None
    texts = [COMMANDS[name], *help_texts(command)]
    assert [what for text in texts for what in misused(" ".join(text.split()))] == []


@in_one_test("phrase", NOT_USED)
def test_each_pattern_finds_its_example(phrase: NotUsed) -> None:
    assert any(f"-> {phrase.instead}: " in what for what in misused(phrase.example))


@in_one_test("text", USED)
def test_plain_texts_pass(text: str) -> None:
    assert misused(text) == []


def test_texts_of_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        '"""A # docstring."""\n\nx = f"é#{1 + 1} ranks a " "node"  # a # comment anew\ny = 1, b"by#tes"\n'
    )
    assert sorted(python_texts(file)) == [
        (1, "A # docstring."),
        (3, "# a # comment anew"),
        (3, "é#{x} ranks a node"),
    ]


# Openers that say nothing of the thing itself: "What one rank gets." is "The CPUs of one rank."
OPENER = re.compile(r"(?:what|who|of (?:these|those)|as far as|that which)\b", re.IGNORECASE)
MOST_OPENERS = 1 / 1000


def first_sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, first sentence) of each docstring, those of fields and constants included."""
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, re.split(r"(?<=[.:])\s", " ".join(text.split()))[0]


@pytest.mark.xdist_group("syntax trees")
def test_first_sentences_begin_with_the_name_of_the_thing() -> None:
    modules = [path for path in FILES if path.suffix == ".py"]
    found = [(path.name, *one) for path in modules for one in first_sentences(path)]
    helps = [COMMANDS[name] for name in COMMANDS] + list(help_texts(program))
    found += [("help", 0, text) for text in helps]
    openers = [one for one in found if OPENER.match(one[2])]
    assert len(openers) <= MOST_OPENERS * len(found), openers


def test_openers_are_found() -> None:
    assert [bool(OPENER.match(text)) for text in ("What a rank gets.", "Whatever it is.", "The rank.")] == [
        True,
        False,
        False,
    ]
