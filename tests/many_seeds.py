"""A check run for many seeds, on all cores: what long_lint and long_port have in common."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from functools import partial

Check = Callable[[int], bool]
_CHUNK = 100


def _outcome(check: Check, seed: int) -> tuple[int, bool, str]:
    """Return the seed, what the check said, and the error that it raised."""
    try:
        return seed, check(seed), ""
    except Exception as error:
        return seed, False, f"{type(error).__name__}: {str(error)[:200]}"


def run_many(check: Check, count: int) -> tuple[int, int]:
    """Run a check for the seeds up to ``count``; return for how many it was true, and for how many it failed.

    Each seed that fails is printed, and how far the run is after each tenth.
    """
    true = failed = 0
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        outcomes = pool.imap_unordered(partial(_outcome, check), range(count), _CHUNK)
        for done, (seed, said, error) in enumerate(outcomes, 1):
            true += said
            failed += bool(error)
            if error:
                print(f"seed {seed}: {error}", flush=True)
            if done % max(1, count // 10) == 0:
                print(f"{done} of {count}", file=sys.stderr, flush=True)
    return true, failed
