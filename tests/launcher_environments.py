"""What real launchers set in the environment of a rank (tests/data/launcher_environments.yaml).

    python3 launcher_environments.py LAUNCHER SITE

prints them as shell words with $rank, $local_rank, $size, $local_size and $node, for the fakes of launchers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

_FILE = Path(__file__).parent / "data" / "launcher_environments.yaml"


def environments(launcher: str | None = None) -> list[dict[str, Any]]:
    """All that is known of a launcher, or of all."""
    known = yaml.safe_load(_FILE.read_text())
    return [each for each in known if launcher in (None, each["launcher"])]


def name_of(environment: dict[str, Any]) -> str:
    """A name for a test."""
    return f"{environment['launcher']} of {environment['site']}"


def variables(environment: dict[str, Any], rank: int, *, nodes: int, each: int) -> dict[str, str]:
    """Return the variables of one rank of a job with ``each`` ranks on each of its nodes."""
    numbers = {"rank": rank, "local_rank": rank % each, "node": rank // each}
    sizes = {"size": nodes * each, "local_size": each}
    return {name: value.format(**numbers, **sizes) for name, value in environment["variables"].items()}


def shell_words(launcher: str, site: str) -> str:
    """Return them as assignments of a shell."""
    (found,) = (each for each in environments(launcher) if each["site"] == site)
    pairs = (f"{name}={value}" for name, value in found["variables"].items())
    return re.sub(r"{(\w+)}", r"$\1", " ".join(pairs))


if __name__ == "__main__":
    print(shell_words(*sys.argv[1:]))
