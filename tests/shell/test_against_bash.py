"""The words that the reader sees are those that bash passes on, for scripts that nobody wrote.

A generated script sets variables and arrays in every way that the reader follows, and calls ``use``. Bash
runs it with ``use`` printing its words; the reader must have them, or, where several values are possible,
name them.
"""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.lint.shell_variables import Variables, read_variables
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Command
from tests.how_much import LONG, examples
from tests.in_one_test import in_one_test

NAMES = ("A", "B", "C")
PLAIN = st.text("ab1-=./:,", min_size=1, max_size=4).filter(lambda text: not re.match(r"[abAB]+\+?=", text))
TEXT = st.text("ab 1#;&|()<>*-\t", max_size=5)
CONTINUED = st.sampled_from(["\\\n", ""])


def quote_double(text: str) -> str:
    return re.sub(r'([\\"$`])', r"\\\1", text)


USED = st.sampled_from(
    [
        "$A",
        "${B}",
        "${C:-d e}",
        '${A:-"f g"}',
        "${B:+h}",
        "${B-i}",
        "${A:-$C}",
        "${C:+$A}",
        "${A:-}",
        "${B:-'j k'}",
    ]
)
IN_QUOTES = st.one_of(
    st.text("ab 1#;'()<>-\n", max_size=5), st.sampled_from(['\\"', "\\$A", "\\\\", "\\`", "\\n", "\\\n", "'"]),  # noqa: E501
    USED.filter(lambda text: "'" not in text),
)  # fmt: skip
PIECE = st.one_of(
    PLAIN,
    st.builds("'{}'".format, TEXT),
    st.builds('"{}"'.format, st.lists(IN_QUOTES, max_size=3).map("".join)),
    st.sampled_from(["\\ ", "\\'", '\\"', "\\;", "\\#", "\\\\", "$'a\\tb'", "$'\\''", '$"t"', "\\$A"]),
    USED,
)
WORD = st.lists(st.one_of(PIECE, CONTINUED), min_size=1, max_size=3).map("".join)
ITEM = st.one_of(PLAIN, st.builds("'{}'".format, TEXT), st.builds('"{}"'.format, TEXT.map(quote_double)))
LIST = st.sampled_from(['"${L[@]}"', "${L[@]}", 'x"${L[@]}"y', '"${L[0]}"', '"${L[@]}" z'])
SEPARATOR = st.sampled_from([" ", "  ", "\t", " \\\n  "])


@st.composite
def use(draw: st.DrawFn, words: st.SearchStrategy[str] = WORD) -> str:
    made = "use @@"
    for word in draw(st.lists(words, max_size=3)):
        made += draw(SEPARATOR) + word
    return made + draw(st.sampled_from(["", " # it's a comment", " ", ";"]))


VALUE = st.lists(PIECE, max_size=2).map("".join)
NAME = st.sampled_from(NAMES)
SET = st.one_of(
    st.builds("{}={}".format, NAME, VALUE),
    st.builds("{}+={}".format, NAME, VALUE),
    st.builds("export {}={}".format, NAME, st.builds('"{}"'.format, st.lists(IN_QUOTES, max_size=2).map("".join))),  # noqa: E501
    st.builds("L=({})".format, st.lists(ITEM, max_size=3).map("\n ".join)),
    st.builds("L+=({})".format, st.lists(ITEM, min_size=1, max_size=2).map(" ".join)),
)  # fmt: skip
SIMPLE = st.one_of(SET, SET, use(), use(LIST))
CONDITION = st.sampled_from(["yes", "no", "! no", "yes 1", "no && yes"])
INNER = st.lists(st.one_of(use(), st.builds("{}={}".format, NAME, VALUE)), min_size=1, max_size=2).map(
    "\n".join
)


def blocks(lines: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Compound commands around lines."""
    return st.one_of(
        st.builds("if {}; then\n{}\nfi".format, CONDITION, lines),
        st.builds("if {}; then\n{}\nelse\n{}\nfi".format, CONDITION, lines, lines),
        st.builds("if {}\nthen {}\nelif {}; then\n{}\nelse\n{}\nfi".format, CONDITION, lines, CONDITION, lines, lines),  # noqa: E501
        st.builds("case $A in a*|1)\n{}\n;;\n'b c') {}\n;;\n*)\n{}\n;; esac".format, lines, lines, lines),
        st.builds("for i in 1 2; do\n{}\ndone".format, lines),
        st.builds("{} && {}".format, CONDITION, SET),
        st.builds("{} || {}".format, CONDITION, SET),
        st.builds("( {}\n)".format, lines),
        st.builds("{{ {}\n}}".format, lines),
    )  # fmt: skip


GIVEN = st.one_of(
    st.builds("bash -c '{}'".format, INNER.filter(lambda text: "'" not in text)),
    st.builds(lambda text: f'command bash -c "{quote_double(text)}"', INNER),
    st.builds("bash <<'EOF'\n{}\nEOF".format, INNER),
)
LINES = st.lists(st.one_of(SIMPLE, SIMPLE, GIVEN), min_size=1, max_size=3).map("\n".join)
SCRIPT = st.lists(
    st.one_of(SIMPLE, SIMPLE, GIVEN, blocks(LINES), blocks(blocks(LINES))), min_size=1, max_size=6
)
HEAD = """yes() { return 0; }; no() { return 1; }
use() { printf '%s\\0' "$#" "$@"; }
export -f use
set -a -f
unset A B C
"""


def run_bash(script: str) -> list[list[str]]:
    """Return the words of each ``use`` that bash runs; bash must take the script."""
    answer = subprocess.run(
        ["bash", "-c", HEAD + script],
        capture_output=True,
        text=True,
        timeout=20,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert answer.stderr == "", (answer.stderr, script)
    parts, found = answer.stdout.split("\0")[:-1], list[list[str]]()
    while parts:
        count = int(parts[0])
        found.append(parts[1 : count + 1])
        parts = parts[count + 1 :]
    return found


def may_be(variables: Variables, command: Command, words: list[str]) -> bool:
    """Tell whether the reader says that a command may get these words; what it leaves open may be any."""
    read = variables.fields(command.words[1:])
    return read == words or any(re.search(r"\$[ABCL]", text) for text in read)


@pytest.mark.slow
@pytest.mark.timeout(3600 if LONG else 300)
@given(script=SCRIPT)
@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
def test_the_words_are_those_of_bash(script: list[str]) -> None:
    text = "\n".join(script) + "\n"
    for number in range(text.count("@@")):
        text = text.replace("@@", f"n{number}", 1)
    shell = read_shell("unset A B C\n" + text)
    variables = read_variables(shell)
    read = {one.words[1].text: one for one in variables.commands if one.name == "use"}
    for words in run_bash(text):
        command = read[words[0]]
        assert may_be(variables, command, words), (words, variables.fields(command.words[1:]))
        for word in command.words[1:]:
            check_values(variables, word.raw, command, words)


def check_values(variables: Variables, raw: str, command: Command, words: list[str]) -> None:
    """A word in quotes has one value, which must be among those that the reader names."""
    place = [word.raw for word in command.words[1:]].index(raw)
    single = all(re.fullmatch(r'"\$[ABC]"', word.raw) or word.text for word in command.words[1:])
    if single and raw.startswith('"$'):
        values = {one.text for one in variables.values(command.words[1 + place])}
        assert None in values or words[place] in values, (raw, words, values)


# What 5,000 generated scripts found, kept so that every run tries it.
@in_one_test(
    "script",
    [
        'C=\nuse @@ "${C:-d e} "',
        "L=('')\nuse @@ \"${L[@]}\"",
        "A=' y '\nuse @@ x$A'z' ${A}z",
        'L=(a \'b c\')\nM=()\nuse @@ x"${L[@]}"y ${L[@]} "${M[@]}"',
        "A=\nfor i in 1; do\nbash -c 'A=1'\n(A=2)\nuse @@ $A\ndone",
    ],
)
def test_the_words_of_scripts_that_were_read_wrong(script: str) -> None:
    shell = read_shell(script)
    variables = read_variables(shell)
    assert [variables.fields(one.words[1:]) for one in shell.commands if one.name == "use"] == run_bash(
        script
    )
