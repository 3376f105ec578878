"""Run ``hpclaunch check`` as a program and read its answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch.check.check_report import Report
from tests.in_process import hpclaunch_here

DATA = Path(__file__).parents[1] / "data" / "horovod"


def run_check_command(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run the command; ``extra`` goes into its environment."""
    return hpclaunch_here("check", *words, environment=extra)


def check_json(*words: str, **extra: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the document on stdout."""
    done = run_check_command("--json", *words, **extra)
    assert done.returncode in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    msgspec.convert(document, Report)
    assert document["ok"] == (done.returncode == 0)
    return done.returncode, document


def names_by_status(document: dict[str, Any]) -> dict[str, set[str]]:
    """Return the names of the checks under each status."""
    found: dict[str, set[str]] = {"have": set(), "missing": set(), "unknown": set()}
    for each in document["checks"]:
        found[each["status"]].add(each["name"])
    return found


def one(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the only check of a name."""
    (found,) = [each for each in document["checks"] if each["name"] == name]
    return dict(found)
