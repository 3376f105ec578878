"""Measured times by number of GPUs or ranks: reading them from CSV text. Pure."""

import csv
import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants

Unit = Literal["gpus", "ranks"]
LIMIT = package_constants("scaling/constants.yaml", "measured")
RATES = tuple(f"{what}{per}" for what in ("images", "samples", "tokens") for per in ("/s", "_per_second"))
"""Columns with the work of a second in place of seconds."""


class MeasuredSize(msgspec.Struct, frozen=True, kw_only=True):
    """All repeats of one size."""

    size: int
    seconds: tuple[float, ...]
    nodes: int | None = None
    ranks: int | None = None
    deviation_s: float | None = None


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a CSV file, by size."""

    unit: Unit
    kind: str | None = None
    sizes: tuple[MeasuredSize, ...]
    column: str = "seconds"


def read_measurement(text: str, file: str, seconds_columns: tuple[str, ...] = ("seconds",)) -> Measurement:
    """Read lines of ``gpus`` or ``ranks``, perhaps ``nodes`` and ``deviation_s``, and seconds.

    A size may be repeated. What a study's table marks as not comparable is left out. ``seconds_columns``: the
    first of these that the file has is read; more columns are ignored. Empty lines and those that begin with
    # are comments. Raises BadInputError with the line.
    """
    lines = [
        (n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and line.strip()[0] != "#"
    ]
    if not lines:
        raise BadInputError(f"{file}: empty", f"the first line names the columns: gpus,{seconds_columns[0]}")
    head, *rows = [
        (n, [cell.strip() for cell in cells]) for (n, _), cells in zip(lines, _cells(lines), strict=True)
    ]
    names = [name.lower().lstrip("\ufeff") for name in head[1]]
    for number, cells in rows:
        if len(cells) != len(names):
            found = f"{len(cells)} values, but {len(names)} columns: {', '.join(names)}"
            raise BadInputError(f"{file}:{number}: {found}")
    table = [(f"{file}:{number}", dict(zip(names, cells, strict=True))) for number, cells in rows]
    table = [(where, row) for where, row in table if row.get("comparable") != "false"]
    column = _seconds_column(names, f"{file}:{head[0]}", seconds_columns)
    unit = _unit(names, [row for _, row in table], f"{file}:{head[0]}")
    times: dict[int, list[float]] = {}
    nodes: dict[int, int] = {}
    deviations: dict[int, list[float]] = {}
    for where, row in table:
        size = _count(row[unit], where, unit)
        times.setdefault(size, []).append(_time(row[column], where, column))
        if row.get("nodes"):
            nodes[size] = _count(row["nodes"], where, "nodes")
        if row.get("deviation_s"):
            deviations.setdefault(size, []).append(_time(row["deviation_s"], where, "deviation_s"))
    if not times:
        raise BadInputError(f"{file}: no measured size below the line of columns")
    sizes = (
        MeasuredSize(
            size=n,
            seconds=tuple(times[n]),
            nodes=nodes.get(n),
            deviation_s=median(deviations[n]) if n in deviations else None,
        )
        for n in sorted(times)
    )
    kind = table[0][1].get("kind")
    return Measurement(unit=unit, kind=kind, sizes=tuple(sizes), column=column)


def deviation_of_repeats(sizes: Sequence[MeasuredSize]) -> float:
    """Return the relative standard deviation of the repeats, of all sizes together; 0 without repeats.

    From three repeats on by the median deviation, which one that was disturbed does not change.
    """
    squares = []
    for size in sizes:
        logs = [math.log(one) for one in size.seconds]
        if len(logs) > 1:
            middle = median(logs)
            usual = median(abs(log - middle) for log in logs)
            # Of two the deviation from their middle is that of the pair by the square root of two.
            squares.append((1.4826 if len(logs) > 2 else math.sqrt(2)) * usual)
    return math.sqrt(sum(one**2 for one in squares) / len(squares)) if squares else 0.0


def student(freedom: int) -> float:
    """Return the two-sided 90 % quantile of Student's t."""
    return LIMIT.student_90[freedom - 1] if freedom <= len(LIMIT.student_90) else 1.64


def half_width(size: MeasuredSize) -> float | None:
    """Return half the 90 % interval of the median of a size's repeats, relative; None: measured once."""
    count = len(size.seconds)
    if count < 2:
        return None
    return student(count - 1) * deviation_of_repeats((size,)) / math.sqrt(count)


def seconds_of_rates(rates: Measurement, work: float, *, weak: bool) -> Measurement:
    """Return the seconds of a step in place of rates. ``work``: that of a step at the smallest size."""
    first = rates.sizes[0].size
    steps = {each.size: work * (each.size / first if weak else 1) for each in rates.sizes}
    sizes = (
        replace(each, seconds=tuple(steps[each.size] / rate for rate in each.seconds)) for each in rates.sizes
    )
    return replace(rates, sizes=tuple(sizes))


def _cells(lines: list[tuple[int, str]]) -> list[list[str]]:
    """Split at commas; in files that have none, at semicolons or tabs."""
    separator = next((mark for mark in (",", ";", "\t") if mark in lines[0][1]), ",")
    return [next(csv.reader([line], delimiter=separator)) for _, line in lines]


def _seconds_column(names: list[str], where: str, wanted: tuple[str, ...]) -> str:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadInputError(f"{where}: the column {min(twice)} appears twice")
    for name in wanted:
        if name in names:
            return name
    found = ", ".join(names)
    raise BadInputError(f"{where}: no column {wanted[0]!r} among {found}", f"write gpus,{wanted[0]}")


def _unit(names: list[str], rows: list[dict[str, str]], where: str) -> Unit:
    """Return gpus, or ranks where the column of GPUs is missing or empty."""
    units: tuple[Unit, Unit] = ("gpus", "ranks")
    have = [unit for unit in units if unit in names]
    if not have:
        raise BadInputError(f"{where}: no column 'gpus' or 'ranks' among {', '.join(names)}")
    filled = [unit for unit in have if any(row[unit] for row in rows)]
    return (filled or have)[0]


def _count(text: str, where: str, name: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= LIMIT.most:
        raise BadInputError(f"{where}: {name} is {text!r}; it must be a whole number from 1 to {LIMIT.most}")
    return number


def _time(text: str, where: str, name: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise BadInputError(f"{where}: {name} is {text!r}; it must be a number above 0")
    if not LIMIT.shortest_s <= seconds <= LIMIT.longest_s:
        bounds = f"from {LIMIT.shortest_s:g} to {LIMIT.longest_s:g}"
        raise BadInputError(f"{where}: {name} is {text!r}; it must be a number {bounds}")
    return seconds
