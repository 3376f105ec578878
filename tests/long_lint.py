"""Many damaged scripts: none stops lint. Not collected by pytest.

python -m tests.long_lint [COUNT]
"""

from __future__ import annotations

import sys

from tests.lint.cases import SCRIPTS
from tests.lint.test_fuzz import damaged, lint_and_fix
from tests.many_seeds import run_many


def lint_damaged(seed: int) -> bool:
    """Lint and fix one damaged script."""
    lint_and_fix(damaged(SCRIPTS[seed % len(SCRIPTS)], seed), seed)
    return True


def main(count: int) -> None:
    """Lint this many damaged scripts; the number of a script that fails is its seed."""
    linted, failed = run_many(lint_damaged, count)
    print(f"{linted} damaged scripts linted, {failed} failed")
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
