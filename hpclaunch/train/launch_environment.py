"""Facts about the launch that a process can read before MPI starts: rank and threads."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

_VARIABLES = json.loads(Path(__file__).with_name("launch_variables.json").read_text("utf-8"))


def launcher_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank that the launcher gave this process; None where none did."""
    return _first_number(_VARIABLES["rank"], environment)


def launcher_local_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """This process's number among those of its node; None where the launcher does not set it."""
    return _first_number(_VARIABLES["local rank"], environment)


def threads_per_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The threads that the environment allows numpy's BLAS; None: not specified."""
    return _first_number(_VARIABLES["threads"], environment)


def _first_number(names: list[str], environment: Mapping[str, str]) -> int | None:
    for name in names:
        value = environment.get(name, "").split(",")[0]
        if value.isdigit():
            return int(value)
    return None
