"""The bytes of a batch script that a command gets: a file, or standard input."""

import sys
from pathlib import Path

from hpclaunch.errors import BadInputError

_MAX_BYTES = 4 << 20  # Slurm takes no larger script by default (man slurm.conf, max_script_size)


def read_script_file(script: str) -> bytes:
    """Return the script's bytes, of ``-`` standard input; raise BadInputError where it cannot be read."""
    try:
        if script == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(script).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInputError(f"{script}: cannot be read: {reason}", "give a batch script") from None
    if len(data) > _MAX_BYTES:
        raise BadInputError(f"{script}: larger than {_MAX_BYTES} bytes", "give a batch script")
    return data
