"""The words that bash makes of braces are those that the reader makes, for words that nobody wrote.

Without ``{}``, commas in quotes and dots that make no sequence, for which bash 5.2 has rules of its own.
"""

from __future__ import annotations

import subprocess

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpclaunch.shell.braces import in_braces
from tests.how_much import examples
from tests.in_one_test import in_one_test

PIECES = st.sampled_from(
    [*"{}{}{},,,ab1", "{1..3}", "{03..1}", "{a..c}", "'x y'", '"a b"', "\\{", "${X}", "$(y z)"]
)
WORDS = st.lists(PIECES, min_size=1, max_size=9).map("".join).filter(lambda raw: "{}" not in raw)


def of_bash(raw: str) -> list[str]:
    """The words of bash, whose expansions are kept from being read by quotes in place of their signs."""
    shown = raw.replace("$(y z)", "'(y z)'").replace("${X}", "'{X}'")
    text = f"printf '%s\\n' {shown}"
    found = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout
    return found.removesuffix("\n").split("\n")


def of_reader(raw: str) -> list[str]:
    """The words of the reader, without their quotes as bash takes them off."""
    texts = [
        text.replace("$(y z)", "'(y z)'").replace("${X}", "'{X}'") for text in in_braces(raw, "TOO MANY")
    ]
    quoted = [text for text in texts if text]
    text = f"printf '%s\\n' {' '.join(quoted)}"
    found = subprocess.run(["bash", "+B", "-c", text], capture_output=True, text=True, check=True).stdout
    return found.removesuffix("\n").split("\n")


@given(WORDS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_words_with_braces_are_those_of_bash(raw: str) -> None:
    assert of_reader(raw) == of_bash(raw)


@in_one_test(
    "raw, words",
    [
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{a,b{1,2}}", ["a", "b1", "b2"]),
        ("{a..e..2}", ["a", "c", "e"]),
        ("{08..12..2}", ["08", "10", "12"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{1..3..0}", ["1", "2", "3"]),
        ("{x{1,2}}", ["{x1}", "{x2}"]),
        ("$X/{a,b}", ["$X/a", "$X/b"]),
        ("{a}", ["{a}"]),
        ("{a},b}", ["a}", "b"]),
        ("{a..3}", ["{a..3}"]),
        ("${A:-{a,b}}", ["${A:-{a,b}}"]),
        ("'{a,b}'", ["'{a,b}'"]),
        ("a,b}", ["a,b}"]),
        ("{1..1000}{1,2}", ["TOO MANY"]),
        ("{1..999999999}", ["TOO MANY"]),
        ("{a," * 41, ["TOO MANY"]),
    ],
)
def test_braces(raw: str, words: list[str]) -> None:
    assert in_braces(raw, "TOO MANY") == words
