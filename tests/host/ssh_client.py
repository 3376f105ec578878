"""Shared by the tests that connect to a server: a configuration, answers to ssh's questions, a login."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hpclaunch.host.ssh import connect


def configure(home: Path, *blocks: str) -> None:
    (home / ".ssh" / "config").write_text("\n".join(blocks))


def answer(home: Path, monkeypatch: pytest.MonkeyPatch, answers: Sequence[str]) -> Path:
    """Let ssh ask a program, not the terminal (ssh(1), SSH_ASKPASS); return the file of its questions."""
    (home / "answers").write_text("".join(f"{each}\n" for each in answers))
    (home / "ask").write_text(
        f'#!/bin/sh\necho "$1" >> {home}/asked\nhead -n 1 {home}/answers\nsed -i 1d {home}/answers\n'
    )
    (home / "ask").chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", f"{home}/ask")
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    return home / "asked"


def works(destination: str) -> bool:
    with connect(destination) as host:
        return host.run(["echo", "works"]).stdout == "works\n"
