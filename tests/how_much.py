"""How much is tried: what every run does, or more where HPCLAUNCH_TEST_LONG=1 (.ci/long)."""

from __future__ import annotations

import os

LONG = os.environ.get("HPCLAUNCH_TEST_LONG") == "1"


def examples(usual: int) -> int:
    """The number of examples that hypothesis draws for a test."""
    return 10 * usual if LONG else usual
