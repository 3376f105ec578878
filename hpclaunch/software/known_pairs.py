"""Versions that are known to fail together, as data with sources, and the function that finds them."""

from collections.abc import Mapping

import msgspec

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
        """What fails, with the source."""
        return f"{self.what} ({self.source})"


BAD_PAIRS = (
    BadPair(
        parts={"horovod": Range(below=(0, 29)), "keras": Range(at_least=(3,))},
        cured_by=("TF_USE_LEGACY_KERAS", "1"),
        what="Horovod up to 0.28 supports Keras 2 only; with Keras 3 its optimizers and callbacks fail",
        remedy="use TensorFlow up to 2.15, or install tf_keras and set TF_USE_LEGACY_KERAS=1",
        source="https://github.com/horovod/horovod/blob/v0.28.1/horovod/_keras/__init__.py",
    ),
    BadPair(
        parts={"horovod": Range(below=(0, 29)), "tensorflow": Range(at_least=(2, 13))},
        what="Horovod 0.28 was tested with TensorFlow up to 2.12",
        certain=False,
        remedy="use TensorFlow 2.12, or run the allreduce test and a short training before a long one",
        source="https://github.com/horovod/horovod/blob/v0.28.1/.github/workflows/ci.yaml",
    ),
    BadPair(
        parts={"mpi-linked": Range(below=(5,)), "mpi-runtime": Range(at_least=(5,))},
        what="Horovod was linked with the C++ bindings of Open MPI 4 (libmpi_cxx), which Open MPI 5 does not"
        " have",
        remedy="load the Open MPI 4 that it was built with, or rebuild Horovod with Open MPI 5",
        source="https://docs.open-mpi.org/en/v5.0.x/release-notes/changelog/v5.0.x.html",
    ),
    BadPair(
        parts={"nccl": Range(at_least=(2, 27, 3))},
        only=frozenset({"slingshot-11", "sm_90"}),
        cured_by=("NCCL_PROTO", "^LL128"),
        what="NCCL from 2.27.3 on gives wrong sums on GH200 with Slingshot through its protocol LL128",
        remedy="export NCCL_PROTO=^LL128 (the site profile sets it), and run --allreduce-test",
        source="https://github.com/NVIDIA/nccl/issues/2001",
    ),
)


def bad_pairs(
    versions: Mapping[str, str], features: frozenset[str], variables: Mapping[str, str]
) -> tuple[BadPair, ...]:
    """Return the known bad pairs among these versions, on a site with these features.

    ``variables``: the job's environment, which may have the cure.
    """
    return tuple(
        pair
        for pair in BAD_PAIRS
        if pair.only <= features
        and all(part in versions and r.holds(versions[part]) for part, r in pair.parts.items())
        and not (pair.cured_by and pair.cured_by[1] in variables.get(pair.cured_by[0], ""))
    )
