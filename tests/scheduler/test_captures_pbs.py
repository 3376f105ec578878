"""Every recorded output of PBS is read without a crash, and ids, states and refusals come out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import RefusedError
from hpclaunch.scheduler.pbs import SCHEDULER as PBS
from tests.in_one_test import in_one_test

CAPTURES = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "pbs"


@in_one_test("folder", sorted(p for p in CAPTURES.iterdir() if p.is_dir()))
def test_capture(folder: Path) -> None:
    words = (folder / "cmd").read_text(errors="replace").split()
    texts = {part: (folder / part).read_bytes().decode(errors="replace") for part in ("stdout", "stderr")}
    answer = CommandResult(exit_code=int((folder / "rc").read_text()), **texts)
    if folder.name == "qsub-version":
        assert "23.06.06" in answer.stdout
    elif (
        words[0] == "qsub" and answer.exit_code == 0 and answer.stdout.strip() and "block" not in folder.name
    ):
        assert PBS.parse_submit(answer).endswith(".pbshost")
    elif words[0] == "qsub" and answer.exit_code not in (0, 3):
        with pytest.raises(RefusedError):
            PBS.parse_submit(answer)
    elif words[0] == "qstat" and "-f" in words and "Q" not in words[1] and "B" not in words[1]:
        jobs = [line.split('"')[1] for line in answer.stdout.splitlines() if line.startswith('\t\t"')]
        jobs += [line[8:] for line in answer.stdout.splitlines() if line.startswith("Job Id: ")]
        if answer.exit_code == 255 or "dsv" in words:  # a form that is never asked for is no answer
            with pytest.raises(RefusedError):
                PBS.parse_status("text" if "dsv" in words else "json", jobs, answer)
        else:
            known = PBS.parse_status("json" if "json" in words else "text", jobs, answer)
            assert set(known) == set(jobs)
