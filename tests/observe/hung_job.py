"""Jobs that hang, for tests: submit one, wait until its ranks hang, look into it, end it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RANKS = Path(__file__).with_name("hanging_ranks.py")
LINES = {
    line.rpartition("HERE: ")[2]: f"{RANKS.name}:{number}"
    for number, line in enumerate(RANKS.read_text().splitlines(), 1)
    if "# HERE: " in line
}
"""Place in the program -> FILE:LINE."""


class HungJob:
    """A job whose ranks hang; ``faults``: those of its ranks, in order."""

    def __init__(self, folder: Path, *faults: str, environment: Mapping[str, str] = os.environ) -> None:
        self.folder, self.faults, self.environment = folder, faults, dict(environment)
        os.mkfifo(folder / "data.fifo")
        self.id = ""

    def submit(self, *words: str) -> None:
        """Submit it with these options and wait until each of its ranks stands where it hangs."""
        program = (sys.executable, str(RANKS), str(self.folder / "data.fifo"), *self.faults)
        self.id = json.loads(self.hpclaunch("submit", "--json", *words, "--no-wait", "--", *program))["id"]
        while len(list(self.folder.glob("hangs.*")) + list(self.folder.glob("became.*"))) < len(self.faults):
            assert json.loads(self.hpclaunch("status", self.id, "--json"))["state"] in ("queued", "running")
            time.sleep(0.1)
        time.sleep(1.0)  # from the mark to the place it hangs in

    def hpclaunch(self, *words: str, code: int = 0) -> str:
        line = [sys.executable, "-m", "hpclaunch", *words]
        answer = subprocess.run(line, capture_output=True, text=True, env=self.environment, cwd=self.folder)
        assert answer.returncode == code, answer.stdout + answer.stderr
        return answer.stdout

    def stacks(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.hpclaunch("stacks", self.id, "--json"))
        return found

    def end(self) -> None:
        if self.id:
            self.hpclaunch("cancel", self.id)
