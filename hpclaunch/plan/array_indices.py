"""The indices of a job array: the text of --array, as sbatch and qsub know it."""

import re

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.scheduler_interface import Scheduler

_MAX_TASKS = 10_000
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")


_HINT = "write --array 0-9, 0-9:2 or 1,4,7, and 0-9%2 for two at once"


def array_indices(text: str, scheduler: Scheduler) -> tuple[int, ...]:
    """Return the indices of ``0-9``, ``0-9:2``, ``1,4,7`` (not for PBS), each with ``%N`` for N at once.

    Raises BadInputError for anything else, and for what the scheduler does not know.
    """
    ranges, percent, at_once = text.partition("%")
    hint = _HINT
    if percent and not re.fullmatch(r"0*[1-9][0-9]{0,8}", at_once):
        raise BadInputError(f"--array {text!r}: {at_once!r} tasks at once", hint)
    found: set[int] = set()
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise BadInputError(f"--array {text!r}: {part!r} is not a range of indices", hint)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step >= _MAX_TASKS:
            raise BadInputError(
                f"--array {text!r}: {part!r} is not a range of 1 to {_MAX_TASKS} indices", hint
            )
        found.update(range(first, last + 1, step))
    _check_rules(text, scheduler, found, is_list="," in ranges)
    return tuple(sorted(found))


def _check_rules(text: str, scheduler: Scheduler, indices: set[int], *, is_list: bool) -> None:
    rules = scheduler.arrays
    if rules is None:
        raise BadInputError(
            f"--array {text!r}: {scheduler.title} has no job arrays", "submit a job for each index"
        )
    if (is_list and not rules.lists) or len(indices) < rules.fewest_jobs:
        form = "indices" if rules.lists else "one range of at least two indices"
        raise BadInputError(f"--array {text!r}: {scheduler.title} takes {form}", _HINT)
    if min(indices) < rules.first_index:
        raise BadInputError(
            f"--array {text!r}: the indices of {scheduler.title} begin at {rules.first_index}", _HINT
        )
