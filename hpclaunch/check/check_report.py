"""Checks and their verdicts: what ``hpclaunch check`` prints and what scripts read from ``--json``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Status = Literal["have", "missing", "unknown"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict."""

    name: str
    """What was looked at: mpi, nccl, pytorch, mpi-plugin, ..."""
    status: Status
    """have: it is there and works; missing: it is not, or is wrong; unknown: the evidence does not decide."""
    evidence: str
    """What was seen, in one sentence or two."""
    remedy: str = ""
    """What to do about it here; empty where nothing is to be done."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """What must hold: one check of ``names`` at least must be ``have``."""

    names: tuple[str, ...]
    """Names of checks; several: any one of them will do."""
    reason: str
    """Who wants it: ``--require``, the site, or the default."""

    def __str__(self) -> str:
        """Write it as ``--require`` takes it."""
        return "|".join(self.names)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts of one run, and whether what is required holds."""

    ok: bool
    checks: tuple[Check, ...]


def make_report(checks: Iterable[Check], required: Iterable[Requirement]) -> Report:
    """Return the report: ``ok`` when every requirement has a check that is ``have``."""
    listed = tuple(checks)
    there = {check.name for check in listed if check.status == "have"}
    return Report(ok=all(there.intersection(need.names) for need in required), checks=listed)


def unmet_requirements(found: Report, required: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return the requirements that do not hold."""
    there = {check.name for check in found.checks if check.status == "have"}
    return tuple(need for need in required if not there.intersection(need.names))
