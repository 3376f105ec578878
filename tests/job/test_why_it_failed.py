"""``hpclaunch status`` answers why: the rank that failed first, its node, exit code, the lines, a remedy."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.own_process import hpclaunch
from tests.testbed.cluster import Slurm

# Rank 1 fails; the other ranks are ended because of it, and their exit code is higher.
PROGRAM = """
trap 'kill $!; exit 143' TERM
if [ "$RANK" = 1 ]; then python3 -c 'import no_such_module'; exit 7; fi
sleep 600 & wait
"""


def ended(*words: str) -> dict[str, Any]:
    """Run a job to its end and return what ``status --json`` shows of it."""
    hpclaunch("submit", "--wait", *words)
    facts: dict[str, Any] = json.loads(hpclaunch("status", "--json").stdout)
    return facts


@pytest.fixture
def on_slurm(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return ("--site", "generic-slurm", "--time", "5m", "--mpi", "none", "--no-test-only")


@pytest.mark.slurm
def test_the_rank_that_failed_first_its_node_and_the_lines_of_its_error(on_slurm: tuple[str, ...]) -> None:
    facts = ended(*on_slurm, "--nodes", "2", "--partition", "standard", "--", "bash", "-c", PROGRAM)
    assert (facts["state"], facts["exit_code"]) == ("failed", 7)
    failure = facts["failure"]
    assert (failure["rank"], failure["exit_code"]) == ("1", 7)
    assert failure["node"] in ("n1", "n2", "n3", "n4")
    assert failure["cause"] == "Python module missing"
    assert failure["lines"] == ["ModuleNotFoundError: No module named 'no_such_module'"]
    assert "143" not in facts["reason"]
    assert (facts["queue"], facts["limit_s"], facts["restarts"]) == ("standard", 300, 0)
    assert facts["elapsed_s"] < 300
    assert os.path.exists(facts["log"])
    text = hpclaunch("status").stdout
    assert "state      failed, exit code 7\n" in text
    assert f"rank       1 on {failure['node']}, exit code 7\n" in text
    assert "in stderr  ModuleNotFoundError: No module named 'no_such_module'\n" in text
    assert "remedy     Python module missing: install it" in text
    assert " of 00:05:00\n" in text
    assert "queue      standard\n" in text


@pytest.mark.slurm
def test_the_words_of_a_rank_whose_launcher_drops_them(on_slurm: tuple[str, ...]) -> None:
    """With --error=none srun passes none of the ranks' stderr on."""
    dropped = ("--env", "SLURM_STDERRMODE=none", "--nodes", "2")
    facts = ended(*on_slurm, *dropped, "--", "bash", "-c", PROGRAM)
    assert "no_such_module" not in hpclaunch("logs").stdout
    failure = facts["failure"]
    assert (failure["rank"], failure["exit_code"], failure["stderr_rank"]) == ("1", 7, "1")
    assert (failure["cause"], failure["lines"]) == (
        "Python module missing",
        ["ModuleNotFoundError: No module named 'no_such_module'"],
    )
    words = hpclaunch("logs", "--rank", "1").stdout
    assert words.endswith("ModuleNotFoundError: No module named 'no_such_module'\n")


@pytest.mark.slurm
def test_the_words_of_each_job_of_an_array(on_slurm: tuple[str, ...]) -> None:
    program = 'echo "OSError: [Errno 122] Disk quota exceeded: $HPCLAUNCH_ARRAY_INDEX" >&2; exit 9'
    facts = ended(*on_slurm, "--array", "4-5", "--env", "SLURM_STDERRMODE=none", "--", "bash", "-c", program)
    failure = facts["failure"]
    assert (failure["lines"], failure["stderr_rank"]) == (
        ["OSError: [Errno 122] Disk quota exceeded: 4"],
        "0",
    )
    assert hpclaunch("logs", "--index", "5", "--rank", "0").stdout.endswith("exceeded: 5\n")


@pytest.mark.mpi
def test_the_same_on_this_machine(tmp_path: Path) -> None:
    facts = ended("--site", "local", "--tasks", "2", "--", "bash", "-c", PROGRAM)
    failure = facts["failure"]
    assert (failure["stderr_rank"], failure["stderr_lines"]) == ("1", 1)
    assert hpclaunch("fetch", "last", "--to", str(tmp_path)).returncode == 0
    assert "named 'no_such_module'\n" in (tmp_path / "stderr" / "1").read_text()
    assert not (tmp_path / "files").exists()
    assert (facts["state"], facts["exit_code"], failure["rank"], failure["exit_code"]) == (
        "failed",
        7,
        "1",
        7,
    )
    assert facts["elapsed_s"] < 300  # rank 0 would sleep for 600
    assert failure["cause"] == "Python module missing"
    assert facts["node_names"] == [failure["node"]]
    assert facts["binding"]["ok"]
    assert (facts["queue"], facts["limit_s"]) == (None, None)
    assert facts["machine"]["host"] == os.uname().nodename


@pytest.mark.mpi
def test_the_last_words_of_a_rank_that_is_restarted_are_those_of_its_last_run() -> None:
    program = """
if [ "$HPCLAUNCH_RESTART" = 0 ]; then echo "ModuleNotFoundError: No module named 'first_run'" >&2; exit 85; fi
printf 'no such optimizer: \\033[31mmuon\\n' >&2; exit 9
"""
    facts = ended("--site", "local", "--max-restarts", "1", "--time", "5m", "--", "bash", "-c", program)
    assert (facts["restarts"], facts["failure"]["cause"]) == (1, "the program's own error")
    assert facts["failure"]["lines"][0] == "no such optimizer: \x1b[31mmuon"
    assert "in stderr  no such optimizer: \\x1b[31mmuon\n" in hpclaunch("status").stdout


@pytest.mark.mpi
def test_an_exit_code_of_ones_own_is_shown_by_the_last_lines() -> None:
    facts = ended("--site", "local", "--", "bash", "-c", "echo 1; echo that was all; exit 9")
    assert (facts["exit_code"], facts["failure"]["cause"]) == (9, "the program's own error")
    assert facts["failure"]["lines"] == ["1", "that was all"]
    assert ended("--site", "local", "--", "true")["failure"] is None


@pytest.mark.slurm
def test_the_run_that_failed_counts_not_the_runs_before_it(on_slurm: tuple[str, ...]) -> None:
    program = """
if [ -z "${SLURM_RESTART_COUNT:-}" ]; then
  echo "ModuleNotFoundError: No module named 'first_run'"
  scontrol requeue "$SLURM_JOB_ID"; sleep 600
fi
echo 'OSError: [Errno 122] Disk quota exceeded'; exit 9
"""
    facts = ended(*on_slurm, "--", "bash", "-c", program)
    assert (facts["state"], facts["exit_code"]) == ("failed", 9)
    assert facts["failure"]["cause"] == "disk or quota full"
    assert "first_run" in hpclaunch("logs").stdout
