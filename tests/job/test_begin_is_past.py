"""A time before which a job must not start, and that is past, keeps the job from nothing: it is noted."""

from __future__ import annotations

import datetime as dt

import pytest

from hpclaunch.job.prepare import SubmitMode, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.plan.settings import JobSettings


@pytest.mark.parametrize(
    ("hours", "host", "noted"),
    [(-1, None, True), (1, None, False), (-1, "login", False), (-27, "login", True)],
)
def test_a_beginning_that_is_past_is_noted(hours: int, host: str | None, noted: bool) -> None:
    """Another machine may be in another time zone."""
    begin = (dt.datetime.now() + dt.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")
    settings = JobSettings(command=("true",), site="generic-slurm", begin=begin, time="5m")
    job = prepare(read_layers(settings, None), SubmitMode(host=host)).asked
    assert (f"--begin {begin} is past: it does not keep the job from starting" in job.notes) == noted
