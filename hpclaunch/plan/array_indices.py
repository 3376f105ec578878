"""The indices of a job array: the text of --array, as sbatch and qsub know it."""

from __future__ import annotations

import re

from hpclaunch.errors import BadInputError

_MAX_TASKS = 10_000
_RANGE = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?")


def array_indices(text: str, scheduler: str) -> tuple[int, ...]:
    """Return the indices of ``0-9``, ``0-9:2``, ``1,4,7`` (not for PBS), each with ``%N`` for N at once.

    Raises BadInputError for anything else, and for what the scheduler does not know.
    """
    ranges, percent, at_once = text.partition("%")
    hint = "write --array 0-9, 0-9:2 or 1,4,7, and 0-9%2 for two at once"
    if percent and not (at_once.isdigit() and int(at_once) > 0):
        raise BadInputError(f"--array {text!r}: {at_once!r} tasks at once", hint)
    found: set[int] = set()
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise BadInputError(f"--array {text!r}: {part!r} is no range of indices", hint)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step >= _MAX_TASKS:
            raise BadInputError(f"--array {text!r}: {part!r} is no range of 1 to {_MAX_TASKS} indices", hint)
        found.update(range(first, last + 1, step))
    if scheduler == "pbs" and ("," in ranges or len(found) < 2):
        raise BadInputError(f"--array {text!r}: PBS takes one range of at least two indices", hint)
    return tuple(sorted(found))
