"""A sweep of parameters on this machine: a job per combination, figures in a table, what failed named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.study.sweep import sweep, sweep_table

PROGRAM = """\
import sys
rate, batch = float(sys.argv[1]), int(sys.argv[2])
if rate > 1:
    sys.exit(3)
print("loss:", rate * batch)
"""


@pytest.mark.slow
def test_each_combination_is_a_job_with_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    command = (sys.executable, str(tmp_path / "train.py"), "{rate}", "{batch}")
    runs = sweep({"rate": (0.5, 2), "batch": (4, 8)}, command, r"loss: (\S+)", site="local")
    found = [(run.values["rate"], run.values["batch"], run.figure, run.state) for run in runs]
    assert found == [
        ("0.5", "4", 2.0, "done"),
        ("0.5", "8", 4.0, "done"),
        ("2", "4", None, "failed"),
        ("2", "8", None, "failed"),
    ]
    assert len({run.job for run in runs}) == 4
    lines = sweep_table(runs).splitlines()
    assert lines[0].split() == ["rate", "batch", "figure", "state", "job"]
    assert lines[1].split()[:4] == ["0.5", "4", "2", "done"]


def test_a_parameter_that_no_word_has_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"no word of the command has \{batch\}"):
        sweep({"batch": (1, 2)}, ("true",), r"x(\d)", site="local")
