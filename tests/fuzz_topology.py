"""A long fuzz run of the topology readers with atheris; not collected by pytest.

    python tests/fuzz_topology.py [-max_total_time=SECONDS] [other options of libFuzzer]

Needs the package ``atheris``. The first byte chooses the reader, the rest is the text. Anything that is
raised other than BadInputError, and any input that takes longer than ten seconds, ends the run and is saved.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["hpclaunch"]):
    from hpclaunch.errors import BadInputError
    from hpclaunch.topology import amd_smi, hwloc, lscpu, numactl, nvidia_smi, rocm_smi
    from hpclaunch.topology.merge_sources import merge

READERS = [lscpu.read, rocm_smi.read, amd_smi.read, nvidia_smi.read, numactl.read, hwloc.read]
KINDS = ["lscpu", "rocm_smi", "amd_smi", "nvidia_smi", "numactl", "hwloc"]


def one_input(data: bytes) -> None:
    """Read one input with the reader of its first byte; it may be refused."""
    if not data:
        return
    with contextlib.suppress(BadInputError):
        merge([READERS[data[0] % len(READERS)](data[1:].decode("utf-8", "replace"), "fuzz")])


def write_seeds(folder: Path) -> None:
    """Start from valid output of every kind: random bytes alone seldom get past the first line."""
    from tests.topology.test_fuzz import VALID

    for number, kind in enumerate(KINDS):
        for place, text in enumerate(VALID[kind]):
            (folder / f"{kind}-{place}").write_bytes(bytes([number]) + text.encode())


def main() -> None:
    """Run libFuzzer on seeds in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_seeds(Path(folder))
        atheris.Setup([sys.argv[0], "-timeout=10", "-max_len=20000", *sys.argv[1:], folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
