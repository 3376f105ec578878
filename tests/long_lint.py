"""Many damaged scripts: none stops lint. Not collected by pytest.

python -m tests.long_lint [COUNT]
"""

from __future__ import annotations

import sys

from tests.lint.cases import SCRIPTS
from tests.lint.test_fuzz import damaged, lint_and_fix


def main(count: int) -> None:
    """Lint this many damaged scripts; the number of a script that raises is its seed."""
    for seed in range(count):
        lint_and_fix(damaged(SCRIPTS[seed % len(SCRIPTS)], seed), seed)
    print(f"{count} damaged scripts linted")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
