"""Which MPI a text names: a library's file name, its version line, or a word of a profile."""

import re

_FAMILIES = (
    (r"cray[ -]?mpich|libmpi_(cray|gnu|nvidia|amd|intel)", "Cray MPICH"),
    (r"intel\(r\) mpi|intel mpi|/impi/", "Intel MPI"),
    (r"mvapich", "MVAPICH"),
    (r"open ?mpi|libmpi(_cxx)?\.so\.40|ompi_", "Open MPI"),
    (r"mpich|libmpi(cxx)?\.so\.12", "MPICH"),
)
# One ABI since 2014 (MPICH ABI Compatibility Initiative): any of them runs a program linked with another.
_MPICH_ABI = {"MPICH", "Cray MPICH", "Intel MPI", "MVAPICH"}


def mpi_family(text: str) -> str | None:
    """Return Open MPI, MPICH, Cray MPICH, Intel MPI or MVAPICH; None: the text names none."""
    return next((name for pattern, name in _FAMILIES if re.search(pattern, text, re.IGNORECASE)), None)


def compatible(one: str, other: str) -> bool:
    """Return whether a program linked with one family runs with the library of another."""
    return one == other or {one, other} <= _MPICH_ABI


def linked_mpi(ldd: str) -> tuple[tuple[str, str], ...]:
    """Return (library, path or "not found") for each MPI library in the output of ``ldd``."""
    found = re.findall(r"^\s*(libmpi\S*\.so\S*) => (not found|\S+)", ldd, re.MULTILINE)
    return tuple((name, path) for name, path in found)
