"""DDP and Horovod on two nodes of a real Slurm with faults put in: each is named, none in balanced runs.

HPCLAUNCH_TEST_HOROVOD names the virtual environment (tests/horovod/build.sh torch). ``.ci/long faults``
repeats these runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.testbed.cluster import Slurm
from tests.timeline.faults import FAULTS, Fault, diagnosis, mistake

FORMS = {"ddp": ["kineto", "kineto"], "horovod": ["horovod"]}
CHOSEN = [fault for fault in FAULTS if fault.program in FORMS and fault.what != "balanced, response cache"]


@pytest.mark.slurm
@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: fault.name)
def test_a_program_that_knows_nothing_of_its_profile(fault: Fault, slurm: Slurm, tmp_path: Path) -> None:
    environment = {**os.environ, "SLURM_CONF": str(slurm.conf)}
    found = diagnosis(fault, tmp_path, environment)
    if fault.what == "balanced" and mistake(fault, found):
        # The rule allows a false name in one file of a hundred (docs/explanation/timelines.md), not in both.
        (tmp_path / "again").mkdir()
        found = diagnosis(fault, tmp_path / "again", environment)
    assert mistake(fault, found) == ""
    assert [file["format"] for file in found["files"]] == FORMS[fault.program]
    assert found["ranks"] == 2
    assert abs(found["steps"] - fault.steps) <= (fault.program == "horovod")  # it starts and ends in a thread
    assert "start" not in [verdict["kind"] for verdict in found["verdicts"]]
    if fault.what == "2000 small tensors":
        assert found["tensors_per_step"] == 2000
