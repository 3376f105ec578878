"""Checks and their verdicts: what ``hpclaunch check`` prints, also with ``--json``."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from hpclaunch.errors import case_texts
from hpclaunch.json_document import Document

_WHOLES = ("environment", "python", "horovod", "imports")
Status = Literal["have", "missing", "unknown"]


class AllreduceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times that the allreduce test measured, for ``predict --network-test``."""

    ranks: int
    seconds: dict[str, float]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict."""

    name: str
    status: Status
    evidence: str
    remedy: str = ""
    instead: tuple[str, ...] = ()
    times: AllreduceTimes | None = None


def plain(status: Status, name: str, evidence: str, remedy: str = "") -> Check:
    """Return a verdict whose texts are in no table."""
    return Check(name=name, status=status, evidence=evidence, remedy=remedy)


def verdict(case: str, name: str | None = None, status: Status | None = None, **values: object) -> Check:
    """Return the verdict ``CHECK: CASE`` of ``verdicts.yaml``; ``name``, ``status``: if not the table's."""
    usual, evidence, *remedy = case_texts("check/verdicts.yaml", case, name=name, **values)
    return plain(status or usual, name or case.partition(": ")[0], evidence, "".join(remedy))


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement: at least one check of ``names`` must be ``have``."""

    names: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Write it as ``--require`` takes it."""
        return "|".join(self.names)


class Report(Document, frozen=True, kw_only=True):
    """All verdicts of one run, and whether the requirements are met."""

    ok: bool
    checks: tuple[Check, ...]


class NotSubmittedDocument(Document, frozen=True, kw_only=True):
    """The output of ``submit --check`` where requirements are not met; the first keys are those of a job."""

    id: None = None
    state: Literal["not submitted"] = "not submitted"
    exit_code: None = None
    result: None = None
    check: Report


def make_report(checks: Iterable[Check], required: Iterable[Requirement]) -> Report:
    """Return the report: ``ok`` if every requirement is met."""
    listed = tuple(checks)
    there = {check.name for check in listed if check.status == "have"}
    return Report(ok=all(there.intersection(need.names) for need in required), checks=listed)


def unmet_requirements(found: Report, required: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return the unmet requirements; a missing environment, Python or Horovod stands for all its parts."""
    unmet = [need for need in required if not _has(found, need.names, ("have",))]
    whole = next((name for name in _WHOLES if _has(found, (name,), ("missing", "unknown"))), None)
    parts = [need for need in unmet if not _has(found, need.names, ("missing", "unknown"))]
    return _as_one(whole, parts, unmet) if whole and parts else tuple(unmet)


def _as_one(whole: str, parts: list[Requirement], unmet: list[Requirement]) -> tuple[Requirement, ...]:
    reason = "; ".join(dict.fromkeys(need.reason for need in parts))
    rest = (need for need in unmet if need not in parts and need.names != (whole,))
    return (Requirement(names=(whole,), reason=reason), *rest)


def _has(found: Report, names: tuple[str, ...], status: tuple[Status, ...]) -> bool:
    return any(check.name in names and check.status in status for check in found.checks)
