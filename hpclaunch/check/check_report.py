"""Checks and their verdicts: what ``hpclaunch check`` prints, also with ``--json``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from hpclaunch.json_document import Document

Status = Literal["have", "missing", "unknown"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict."""

    name: str
    """What was checked: mpi, nccl, pytorch, mpi-plugin, ..."""
    status: Status
    """have: it is there and works; missing: it is not, or is wrong; unknown: the evidence does not decide."""
    evidence: str
    """The facts, in one or two sentences."""
    remedy: str = ""
    """What to do on this site; empty: nothing."""


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement: at least one check of ``names`` must be ``have``."""

    names: tuple[str, ...]
    """Names of checks; of several names one is enough."""
    reason: str
    """Where it comes from: ``--require``, the site, or the default."""

    def __str__(self) -> str:
        """Write it as ``--require`` takes it."""
        return "|".join(self.names)


class Report(Document, frozen=True, kw_only=True):
    """All verdicts of one run, and whether the requirements are met."""

    ok: bool
    """Whether all requirements are met."""
    checks: tuple[Check, ...]


class NotSubmittedDocument(Document, frozen=True, kw_only=True):
    """What ``submit --check`` prints where requirements are not met; the first keys are those of a job."""

    id: None = None
    state: Literal["not submitted"] = "not submitted"
    exit_code: None = None
    result: None = None
    check: Report


DOCUMENTS = {"check": Report, "not-submitted": NotSubmittedDocument}
"""Name of the schema -> its type."""


def make_report(checks: Iterable[Check], required: Iterable[Requirement]) -> Report:
    """Return the report: ``ok`` if every requirement is met."""
    listed = tuple(checks)
    there = {check.name for check in listed if check.status == "have"}
    return Report(ok=all(there.intersection(need.names) for need in required), checks=listed)


def unmet_requirements(found: Report, required: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return the requirements that are not met."""
    there = {check.name for check in found.checks if check.status == "have"}
    return tuple(need for need in required if not there.intersection(need.names))
