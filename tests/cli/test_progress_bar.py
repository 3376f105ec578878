"""The bar below the output of a followed job."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from hpclaunch.cli._terminal import JobOutput, bar_line
from tests.in_one_test import in_one_test
from tests.train.live_terminal import TRAINING, check_live, run_on_terminal
from tests.train.mpirun import environment


def progress(**changed: Any) -> bytes:
    facts = {"label": "epoch 2/3", "share": 0.5, "figures": "12 images/s", "time": 1.0, **changed}
    return json.dumps(facts).encode()


@in_one_test("columns", [40, 80, 200])
def test_the_bar_takes_the_room_that_is_left(columns: int) -> None:
    line = bar_line(progress(), columns)
    assert line is not None
    assert len(line) == columns - 1
    assert line.startswith("epoch 2/3 [#")
    assert line.endswith("]  50%  12 images/s")


@in_one_test(
    "content",
    [
        b"",
        progress()[:-5],
        b"[]",
        progress(share=2),
        progress(share=None),
        progress(label="\x1b[2J"),
        b'{"label": "x"}',
        b"\xff",
    ],
)
def test_what_is_not_progress_is_not_shown(content: bytes) -> None:
    assert bar_line(content, 80) is None


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_output_takes_the_place_of_the_bar() -> None:
    terminal = Terminal()
    output = JobOutput(terminal, progress)
    output.forward(b"first\n")
    output.poll()
    output.poll()
    output.forward(b"second\n")
    output.clear()
    bar = f"\r{bar_line(progress(), 80)}"
    assert terminal.getvalue().decode() == f"first\n{bar}\r{' ' * 79}\rsecond\n"


def test_a_line_that_goes_on_is_not_overwritten() -> None:
    terminal = Terminal()
    output = JobOutput(terminal, progress)
    output.forward(b"a prompt: ")
    output.poll()
    assert terminal.getvalue() == b"a prompt: "


def test_without_a_terminal_there_is_only_the_output() -> None:
    stream = io.BytesIO()
    output = JobOutput(stream, lambda: pytest.fail("read for no terminal"))
    output.forward(b"first\n")
    output.poll()
    output.clear()
    assert stream.getvalue() == b"first\n"


@pytest.mark.mpi
def test_submit_shows_a_training_live() -> None:
    command = [sys.executable, "-m", "hpclaunch", "submit", "--site", "local", "--tasks", "2"]
    check_live(run_on_terminal([*command, "mnist", "--", *TRAINING[2:]], environment()))
