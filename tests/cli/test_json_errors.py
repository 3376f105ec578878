"""What was requested as JSON fails as JSON: one document on stdout, the message for people on stderr."""

from __future__ import annotations

import json

import pytest

from tests.in_one_test import in_one_test
from tests.in_process import hpclaunch_here


@in_one_test(
    "words, kind, code, message",
    [
        (("status", "nosuch", "--json"), "bad input", 3, "no job 'nosuch'"),
        (("submit", "--site", "nosuch", "--json", "--", "true"), "bad input", 3, "no site is named 'nosuch'"),
        (("submit", "--json", "--nodez", "1", "--", "true"), "usage", 2, "No such option '--nodez'"),
        (("submit", "--json", "--site", "generic-slurm", "--host", "nosuch.invalid", "--", "true"),
         "refused", 4, "nosuch.invalid"),
    ],
)  # fmt: skip
def test_the_error_is_the_document(
    words: tuple[str, ...], kind: str, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpclaunch.host.ssh.LIMIT.pause_s", 0)
    answer = hpclaunch_here(*words)
    assert answer.returncode == code
    error = json.loads(answer.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == (kind, code)
    assert message in error["message"]
    assert set(error) == {"kind", "message", "hint", "exit_code"}
    assert message in answer.stderr


@pytest.mark.parametrize(
    "words", [("status", "nosuch"), ("submit", "--site", "nosuch", "--", "true", "--json")]
)
def test_without_the_option_there_is_no_document(words: tuple[str, ...]) -> None:
    """After ``--`` the option is the program's."""
    answer = hpclaunch_here(*words)
    assert (answer.returncode, answer.stdout) == (3, "")
