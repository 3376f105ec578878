"""Walltimes as users write them: those of profiles, and all that sbatch reads for --time."""

from __future__ import annotations

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.slurm.slurm_directives import slurm_time_s
from hpclaunch.walltime import parse_time_limit_s, parse_walltime_s
from tests.in_one_test import in_one_test

# The forms of man sbatch, --time, in its order, and days alone (22.05.8).
SBATCH = [
    "90",
    "1",
    "90:30",
    "1:02:03",
    "01:02:03",
    "100:00:00",
    "1-",
    "1-2",
    "1-02",
    "1-2:3",
    "1-02:03",
    "1-02:03:04",
]


@in_one_test("text", SBATCH)
def test_all_forms_of_sbatch_are_read_as_sbatch_reads_them(text: str) -> None:
    assert parse_time_limit_s(text) == slurm_time_s(text)


@in_one_test("text, seconds", [("90", 5400), ("30m", 1800), ("1h30m", 5400), (" 2d ", 172800)])
def test_times_with_units_and_minutes(text: str, seconds: int) -> None:
    assert parse_time_limit_s(text) == seconds


@in_one_test(
    "text", ["", "0", "0:00", "1:99", "1:60:00", "-5", "5x", "1:2:3:4", "1-:2", "-", "1:2-", "\u0663"]
)
def test_others_are_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(BadInputError, match="bad --time"):
        parse_time_limit_s(text)


@pytest.mark.parametrize("text", ["90", "1:30"])
def test_a_profile_says_which_unit_it_means(text: str) -> None:
    with pytest.raises(BadInputError, match="bad walltime"):
        parse_walltime_s(text)
