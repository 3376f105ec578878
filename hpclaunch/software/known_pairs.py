"""Versions that go together: CUDA and GPUs, families of MPI, and what fails, of ``known_pairs.yaml``."""

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from hpclaunch.package_data import package_table

_TABLE = "software/known_pairs.yaml"


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``12.4.1`` -> (12, 4, 1), ``2.13.0+cpu`` -> (2, 13, 0)."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def cuda_addresses(cuda: str, arch: str) -> bool | None:
    """Return whether this CUDA version can build code for ``arch`` (sm_90); None: not known."""
    first, have = first_cuda(arch), version_numbers(cuda)
    return have[:2] >= version_numbers(first) if first and have else None


def first_cuda(arch: str) -> str | None:
    """Return the first CUDA version for an architecture, such as ``11.8``; None: not known."""
    first: dict[str, str] = package_table(_TABLE)["first_cuda"]
    return first.get(arch)


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
    what: str
    remedy: str
    source: str
    only: frozenset[str] = frozenset()
    certain: bool = True
    cured_by: tuple[str, str] | None = None

    @property
    def with_source(self) -> str:
        """Return the failure, with the source."""
        return f"{self.what} ({self.source})"


@cache
def known_pairs() -> tuple[BadPair, ...]:
    """Return the rows of the table."""
    return msgspec.convert(package_table(_TABLE)["pairs"], tuple[BadPair, ...])


def bad_pairs(
    versions: Mapping[str, str], features: frozenset[str], variables: Mapping[str, str]
) -> tuple[BadPair, ...]:
    """Return the known bad pairs of versions on a site; ``variables``: the job's, which may have the cure."""
    return tuple(
        pair
        for pair in known_pairs()
        if pair.only <= features
        and all(part in versions and r.holds(versions[part]) for part, r in pair.parts.items())
        and not (pair.cured_by and pair.cured_by[1] in variables.get(pair.cured_by[0], ""))
    )


def mpi_family(text: str) -> str | None:
    """Return Open MPI, MPICH, Cray MPICH, Intel MPI or MVAPICH; None: the text names none."""
    families = package_table(_TABLE)["mpi_families"].items()
    return next((name for name, pattern in families if re.search(pattern, text, re.IGNORECASE)), None)


def compatible(one: str, other: str) -> bool:
    """Return whether a program linked with one family runs with the library of another."""
    return one == other or {one, other}.issubset(package_table(_TABLE)["mpich_abi"])


def linked_mpi(ldd: str) -> tuple[tuple[str, str], ...]:
    """Return (library, path or "not found") for each MPI library in the output of ``ldd``."""
    found = re.findall(r"^\s*(libmpi\S*\.so\S*) => (not found|\S+)", ldd, re.MULTILINE)
    return tuple((name, path) for name, path in found)
