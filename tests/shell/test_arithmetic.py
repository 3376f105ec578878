"""Whole numbers are computed as bash computes them, or not at all."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.shell.arithmetic import MAX_VALUE, bounds
from tests.how_much import examples
from tests.in_one_test import in_one_test

NUMBERS = st.integers(0, 20).map(str)
TERMS = st.recursive(
    NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/%"), inner).map("({0[0]}{0[1]}{0[2]})".format),
)


@given(TERMS)
@settings(max_examples=examples(60), deadline=None)
def test_an_expression_has_the_value_of_bash(text: str) -> None:
    found = bounds(text)
    if found is not None:
        of_bash = subprocess.run(
            ["bash", "-c", f"echo $(({text}))"], capture_output=True, text=True, check=True
        )
        assert found == (int(of_bash.stdout),) * 2


@in_one_test(
    "text, value",
    [
        ("7/2", (3, 3)),
        ("(3-10)/4", None),  # -1 in bash, -2 in Python
        ("(3-10)%4", None),
        ("10/0", None),
        ("010", None),
        ("10000 + x % 1000", (10000, 10999)),
        ("x", (0, MAX_VALUE)),
    ],
)
def test_an_expression_has_these_bounds(text: str, value: tuple[int, int] | None) -> None:
    assert bounds(text) == value
