"""A sweep of parameters from Python: a job for each combination, and a table of what they printed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import msgspec

from hpclaunch.api import Job, JobHandle
from hpclaunch.errors import BadInputError
from hpclaunch.study.point_measure import read_metric
from hpclaunch.text_table import text_table


class SweepRun(msgspec.Struct, frozen=True, kw_only=True):
    """One combination, its job, and the figure that it printed; None: it failed or printed none."""

    values: dict[str, str]
    job: str
    state: str
    figure: float | None


def sweep(
    parameters: Mapping[str, Sequence[Any]], command: Sequence[str], metric: str, **settings: Any
) -> list[SweepRun]:
    """Run a job for each combination of the parameters, all submitted at once, and wait for them.

    ``{name}`` in a word of ``command`` stands for the value of a parameter; ``metric``: as in ``scale``;
    ``settings``: those of `hpclaunch.api.Job`. Raises as `Job.map`, and BadInputError for a parameter that
    no word has.
    """
    if missing := [name for name in parameters if not any(f"{{{name}}}" in word for word in command)]:
        raise BadInputError(f"sweep: no word of the command has {{{missing[0]}}}")
    combinations = [
        dict(zip(parameters, map(str, one), strict=True)) for one in product(*parameters.values())
    ]
    places = [{f"{{{name}}}": value for name, value in values.items()} for values in combinations]
    commands = [{"command": filled(command, one)} for one in places]
    handles = Job(command=list(command), **settings).map(commands)
    return [_ended(values, handle, metric) for values, handle in zip(combinations, handles, strict=True)]


def filled(command: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with each place, such as ``{nodes}``, replaced by its value."""
    words = tuple(command)
    for place, value in values.items():
        words = tuple(word.replace(place, value) for word in words)
    return words


def _ended(values: dict[str, str], handle: JobHandle, metric: str) -> SweepRun:
    state, figure = handle.wait().state, None
    if state == "done":
        with suppress(BadInputError):
            figure = read_metric(metric, handle.logs().decode(errors="replace"))
    return SweepRun(values=values, job=handle.id, state=state, figure=figure)


def sweep_table(runs: Sequence[SweepRun]) -> str:
    """Return the runs as text, in their order."""
    header = (*runs[0].values, "figure", "state", "job")
    rows = [
        (*run.values.values(), "" if run.figure is None else f"{run.figure:.6g}", run.state, run.job)
        for run in runs
    ]
    return text_table(rows, header)
