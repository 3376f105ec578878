"""``hpclaunch doctor``: verdicts on programs that are here, absent, silent or broken, and on folders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpclaunch.scheduler.registry import schedulers
from tests.in_process import hpclaunch_here


def doctor(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it where only the programs in the folder are on PATH."""
    return hpclaunch_here("doctor", *words, environment={"PATH": str(folder), **variables})


def verdicts(folder: Path, code: int = 0, **variables: str) -> dict[str, dict[str, Any]]:
    done = doctor(folder, "--json", **variables)
    assert done.returncode == code, done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!{sys.executable}\nimport sys\n{text}\n")
    (folder / name).chmod(0o755)


def test_a_machine_without_scheduler_and_containers_is_in_order(tmp_path: Path) -> None:
    found = verdicts(tmp_path)
    assert found["python"]["status"] == "have"
    assert sys.executable in found["python"]["evidence"]
    assert found["scheduler"]["status"] == "missing"
    assert found["container"]["status"] == "missing"
    assert "apptainer" in found["container"]["evidence"]
    assert found["site"]["status"] == "have"
    shown = doctor(tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in shown if not line.startswith(" ")] == list(found)
    (remedy,) = (shown[at + 1] for at, line in enumerate(shown) if line.startswith("container"))
    assert remedy.split(None, 1) == ["->", found["container"]["remedy"]]


@pytest.mark.parametrize("one", [s for s in schedulers() if s.version_command], ids=lambda one: one.kind)
def test_the_schedulers_version_is_asked_and_nothing_is_submitted(one: Any, tmp_path: Path) -> None:
    """Each program takes only the words of its version; qsub alone would read a job from its input."""
    log = tmp_path / "called"
    program, *words = one.version_command
    note = f"open({str(log)!r}, 'a').write(repr([__file__.split('/')[-1], *sys.argv[1:]]) + '\\n')"
    for name in {one.submit_program, one.told_by} - {"", program}:
        put(tmp_path, name, f"{note}\nsys.exit(9)")
    put(tmp_path, program, f"{note}\nprint('its  release 1.2\\nmore')")
    found = verdicts(tmp_path)["scheduler"]
    assert (found["status"], found["evidence"]) == ("have", f"its release 1.2 ({tmp_path / program})")
    asked = [line for line in log.read_text().splitlines() if line.startswith(f"['{one.submit_program}'")]
    assert asked in ([], [str([program, *words])])


@pytest.mark.slow
def test_a_program_that_fails_and_one_that_hangs_are_unknown(tmp_path: Path) -> None:
    put(tmp_path, "sbatch", "sys.exit('sbatch: no configuration')")
    put(tmp_path, "apptainer", "import time; time.sleep(60)")
    found = verdicts(tmp_path)
    assert found["scheduler"]["status"] == "unknown"
    assert "sbatch: no configuration" in found["scheduler"]["evidence"]
    assert found["container"]["status"] == "unknown"
    assert "no answer within 10 s" in found["container"]["evidence"]
    assert found["site"]["status"] == "missing"


def test_a_folder_that_cannot_be_written_to_is_named_and_fails(tmp_path: Path) -> None:
    found = verdicts(tmp_path, 1, XDG_STATE_HOME="/dev/null/state")
    assert (found["state"]["status"], found["cache"]["status"]) == ("missing", "have")
    assert found["state"]["evidence"] == "/dev/null cannot be written to"
    assert "XDG_STATE_HOME" in found["state"]["remedy"]
