"""A long fuzz run of lint with atheris; not collected by pytest.

    python tests/fuzz_lint.py [-max_total_time=SECONDS] [other options of libFuzzer]

Needs the package ``atheris``. The first byte chooses the site, the rest is the script. Anything that is
raised, and any input that takes longer than ten seconds, ends the run and is saved.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["hpclaunch"]):
    from tests.lint.cases import SCRIPTS
    from tests.lint.test_fuzz import PROFILES, lint_and_fix


def one_input(data: bytes) -> None:
    """Lint one input for the site of its first byte."""
    if data:
        lint_and_fix(data[1:].decode("utf-8", "replace"), data[0])


def main() -> None:
    """Run libFuzzer, starting from the scripts of the tests, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(SCRIPTS):
            seed = bytes([number % len(PROFILES)]) + path.read_bytes()
            (Path(folder) / path.stem).write_bytes(seed)
        atheris.Setup([sys.argv[0], "-timeout=10", "-max_len=20000", *sys.argv[1:], folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
