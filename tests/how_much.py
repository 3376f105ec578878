"""How much is tried: what the whole run does, less in the inner loop, more where HPCLAUNCH_TEST_LONG=1."""

from __future__ import annotations

import os

LONG = os.environ.get("HPCLAUNCH_TEST_LONG") == "1"
INNER_LOOP = False
"""Whether the slow tests are left out; ``tests/conftest.py`` sets it before any test module is imported."""


def examples(usual: int) -> int:
    """The number of examples that hypothesis draws for a test."""
    if LONG:
        return 10 * usual
    return max(min(usual, 10), usual // 4) if INNER_LOOP else usual
