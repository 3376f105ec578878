"""Versions that are known to fail together, of ``known_pairs.yaml``, and the function that finds them."""

from collections.abc import Mapping
from functools import cache

import msgspec

from hpclaunch.package_data import package_table
from hpclaunch.software.gpu_arch import version_numbers


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Versions from ``at_least`` on and below ``below``; None: no bound."""

    at_least: tuple[int, ...] | None = None
    below: tuple[int, ...] | None = None

    def holds(self, version: str) -> bool:
        """Return whether a version is in the range; one that cannot be read is not."""
        numbers = version_numbers(version)
        if not numbers:
            return False
        above = self.at_least is None or numbers[: len(self.at_least)] >= self.at_least
        return above and (self.below is None or numbers[: len(self.below)] < self.below)


class BadPair(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of several parts that fail together."""

    parts: dict[str, Range]
    """Part (horovod, torch, tensorflow, keras, mpi-linked, mpi-runtime, nccl) -> its versions."""
    what: str
    remedy: str
    source: str
    only: frozenset[str] = frozenset()
    """Features that the site must have: its fabric's kind, its GPU's architecture."""
    certain: bool = True
    """False: they were never tested together, so it is not known whether they fail."""
    cured_by: tuple[str, str] | None = None
    """(variable, part of its value) that makes the pair harmless."""

    @property
    def with_source(self) -> str:
        """Return the failure, with the source."""
        return f"{self.what} ({self.source})"


@cache
def known_pairs() -> tuple[BadPair, ...]:
    """Return the rows of the table."""
    return msgspec.convert(package_table("software/known_pairs.yaml"), tuple[BadPair, ...])


def bad_pairs(
    versions: Mapping[str, str], features: frozenset[str], variables: Mapping[str, str]
) -> tuple[BadPair, ...]:
    """Return the known bad pairs among these versions, on a site with these features.

    ``variables``: the job's environment, which may have the cure.
    """
    return tuple(
        pair
        for pair in known_pairs()
        if pair.only <= features
        and all(part in versions and r.holds(versions[part]) for part, r in pair.parts.items())
        and not (pair.cured_by and pair.cured_by[1] in variables.get(pair.cured_by[0], ""))
    )
