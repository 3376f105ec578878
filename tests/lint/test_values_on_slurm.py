"""Lint refuses the values of options that a real sbatch refuses, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.lint.batch_script import read_script
from hpclaunch.lint.lint_rule import Finding
from hpclaunch.lint.lint_script import find_faults
from tests.testbed.cluster import Slurm

VALUES = Path(__file__).parent.parent / "data" / "slurm" / "option_values.txt"
TIMES = """
2 2:3 2:3:4 2-3 2-3:4 2-3:4:5 2- 99:99:99 1-99:99 0 unlimited INFINITE -1
2: :2 2:: 2:3: 2:3:4: 2:3:4:5 2-: 2-3: 2-:3 2-3:4: 2-3:4:5:6 2--3 2-3-4 2:3-4 -2:3 1.5 2h infinit +5
"""
_ABOUT_THE_MACHINE = "node configuration is not available"


def _is_refused_by_sbatch(slurm: Slurm, option: str) -> bool:
    answer = slurm.run("sbatch", "--test-only", option, "--wrap", "true")
    said = answer.stdout + answer.stderr
    return "to start at" not in said and _ABOUT_THE_MACHINE not in said


def _is_refused_by_lint(option: str) -> bool:
    found = find_faults(f'#!/bin/bash\n#SBATCH "{option}"\n./app\n')
    return any(one.rule == "option-value-refused" and one.line == 2 for one in found)


@pytest.mark.slurm
def test_lint_judges_values_as_sbatch_does(slurm: Slurm) -> None:
    options = VALUES.read_text().splitlines()
    refused = [option for option in options if _is_refused_by_sbatch(slurm, option)]
    assert [option for option in options if _is_refused_by_lint(option)] == refused
    assert 0 < len(refused) < len(options)


@pytest.mark.slurm
def test_lint_reads_times_as_sbatch_does(slurm: Slurm) -> None:
    answers = {
        time: slurm.run("sbatch", "--test-only", f"--time={time}", "--wrap", "true") for time in TIMES.split()
    }
    refused = [time for time, one in answers.items() if "Invalid --time" in one.stdout + one.stderr]
    found = {time: find_faults(f"#!/bin/bash\n#SBATCH --time={time}\n./app\n") for time in answers}
    unread = [time for time, some in found.items() if ("walltime-unreadable", "error") in _rules(some)]
    assert unread == refused
    assert 0 < len(refused) < len(answers)


@pytest.mark.slurm
def test_comments_in_words_are_read_as_sbatch_reads_them(slurm: Slurm, tmp_path: Path) -> None:
    for option in ("-J a#b", '-J "a#b"', "-J a\\#b", "--job-name=a# b", "-J 'a # b' # c"):
        script = tmp_path / "job.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH {option}\ntrue\n")
        number = slurm.run("sbatch", "--hold", "--parsable", str(script)).stdout.strip()
        shown = slurm.run("scontrol", "show", "job", "--oneliner", number).stdout
        name = read_script(script.read_text()).active_directives[-1].value
        assert f"JobName={name} UserId" in shown, option


def _rules(found: tuple[Finding, ...]) -> set[tuple[str, str]]:
    return {(one.rule, one.severity) for one in found}
