"""Lint refuses the values of options that a real sbatch refuses, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.lint.lint_script import find_faults
from tests.testbed.cluster import Slurm

VALUES = Path(__file__).parent.parent / "data" / "slurm" / "option_values.txt"
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
