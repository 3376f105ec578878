"""Attacks on real servers: ``python -m tests.attacks [--seed N] [NAME[=TRIALS]...]``, by default all of them.

Each prints one line: how many trials there were, in how many of them the attack hit, how many failures. The
exit status is 1 if there was one. No verdict rests on how fast the machine is.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.attacks import exactly_once, hostile_input
from tests.attacks.lab import Lab

ATTACKS: dict[Callable[[Lab, int], None], int] = {
    exactly_once.killed_submits: 250,
    exactly_once.cut_connections: 180,
    exactly_once.at_once: 30,
    exactly_once.full_disk: 40,
    exactly_once.shifted_clocks: 10,
    hostile_input.request_texts: 1527,
    hostile_input.profile_leaves: 900,
    hostile_input.damaged_records: 500,
    hostile_input.lying_programs: 60,
    hostile_input.escapes_in_logs: 80,
    hostile_input.yaml_bombs: 16,
    hostile_input.planted_templates: 5,
}


def run(attack: Callable[[Lab, int], None], trials: int, seed: int) -> bool:
    """Run one; whether there was no failure."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        lab = Lab(Path(scratch), seed)
        try:
            attack(lab, trials)
        finally:
            lab.close()
    took = f"seed {seed}, {time.monotonic() - start:.0f} s"
    counted = f"{lab.trials} trials, {lab.hits} hits, {len(lab.failures)} failures"
    print(f"{attack.__name__}: {counted} ({took})", flush=True)
    return not lab.failures


def main() -> int:
    """Run those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    names = {attack.__name__: attack for attack in ATTACKS}
    parser.add_argument("attack", nargs="*", help=f"NAME or NAME=TRIALS; names: {', '.join(names)}")
    options = parser.parse_args()
    wanted = [word.partition("=") for word in options.attack or names]
    if unknown := [name for name, _, _ in wanted if name not in names]:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(names)}")
    os.umask(0o022)
    right = [
        run(names[name], int(trials) if trials else ATTACKS[names[name]], options.seed)
        for name, _, trials in wanted
    ]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
