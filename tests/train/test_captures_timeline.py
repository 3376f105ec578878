"""Our timelines beside recorded ones of Horovod."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.train.mpirun import train, write_digits

TIMELINES = Path(os.environ["HPCLAUNCH_TEST_CAPTURES"]) / "horovod" / "timelines"
# What Horovod cannot show: it does not compute.
OURS = {"INPUT", "FORWARD", "BACKWARD", "UPDATE", "EVALUATION"}


def shapes(path: Path) -> set[tuple[str, frozenset[str], frozenset[str]]]:
    """The kinds of events: phase, keys, and keys of the arguments."""
    events: list[dict[str, Any]] = json.loads(path.read_text())
    return {(event["ph"], frozenset(event), frozenset(event.get("args", {}))) for event in events}


def phases(path: Path) -> set[str]:
    return {event["name"] for event in json.loads(path.read_text()) if event["ph"] == "B"}


@pytest.mark.mpi
def test_events_have_the_form_and_the_names_of_horovods(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "timeline.json", TIMELINES / "mpi-np2.json"
    digits = write_digits(tmp_path / "digits", 301, 50)
    train(2, "--data", digits, "--epochs", "1", "--allreduce", "mpi", "--timeline", ours)
    assert shapes(ours) <= shapes(theirs)
    assert phases(ours) - OURS <= phases(theirs)
    assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "MPI_ALLREDUCE"} <= phases(ours)
