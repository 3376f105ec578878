"""The record of a study: one JSON file in the user's state folder, written after each step.

Who is killed loses nothing: the names of a study's jobs follow from it, so the next call finds a job that was
submitted but not yet noted here. One process at a time may continue a study.
"""

import fcntl
import hashlib
import json
import math
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from hpclaunch.amounts import counted, grouped
from hpclaunch.atomic_file import write_file
from hpclaunch.errors import BadInputError, HpclaunchError, RefusedError
from hpclaunch.folders import user_state_folder
from hpclaunch.scaling.measured_sizes import MeasuredSize, Measurement, half_width
from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import PointFacts, StudyDocument, StudyRequest, study_document
from hpclaunch.scaling.study_table import Boundaries, Kind
from hpclaunch.usage.node_use import mean

_STUDY = "study.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}")


class StudyPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One repeat of one size."""

    size: int
    repeat: int
    job: str | None = None
    state: str = "planned"
    nodes: int = 0
    ranks: int = 0
    gpus: int | None = None
    seconds: float | None = None
    measured_by: str = ""
    cost: float | None = None
    node_hours: float | None = None
    fingerprint: dict[str, str] = {}
    binding: bool | None = None
    remark: str | None = None
    load_balance: float | None = None
    communication_efficiency: float | None = None


class StudyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A study."""

    schema: Literal[1] = 1
    name: str
    token: str
    kind: Kind
    by: Literal["nodes", "ranks"]
    settings: dict[str, Any]
    file: str | None = None
    is_program: bool
    is_file: bool = False
    workdir: str
    batch: int | None = None
    metric: str | None = None
    metric_is: Literal["rate", "seconds"] = "rate"
    stop_below: float = 0.0
    budget: float | None = None
    node_hours: float | None = None
    until: float | None = None
    points: tuple[StudyPoint, ...]
    stopped: str | None = None

    def job_name(self, point: StudyPoint) -> str:
        """Return the name of a point's job, which no other job has."""
        return f"{self.name}-{self.token}-{self.by[0]}{point.size}-{point.repeat}"

    def with_point(self, point: StudyPoint) -> "StudyFile":
        """Return the study with that point replaced."""
        same = (point.size, point.repeat)
        points = tuple(point if (p.size, p.repeat) == same else p for p in self.points)
        return msgspec.structs.replace(self, points=points)


def planned_points(sizes: tuple[int, ...], repeats: int) -> tuple[StudyPoint, ...]:
    """Return the points in turns of all sizes, so that drift of the machine does not become scaling."""
    return tuple(StudyPoint(size=size, repeat=n + 1) for n in range(repeats) for size in sorted(set(sizes)))


def with_more_points(study: StudyFile, points: tuple[StudyPoint, ...]) -> StudyFile:
    """Return the study with the points that it does not have yet."""
    have = {(point.size, point.repeat) for point in study.points}
    more = [point for point in points if (point.size, point.repeat) not in have]
    order = sorted((*study.points, *more), key=lambda point: (point.repeat, point.size))
    return msgspec.structs.replace(study, points=tuple(order))


_MOST_REPEATS = 30
"""Of a size; an interval that is not narrow then becomes so too slowly."""


def next_point(study: StudyFile) -> tuple[StudyFile, StudyPoint | None]:
    """Return the point to run: the next that is left, else a further repeat of the least known size.

    A size needs three repeats for an interval that means something.
    """
    left = [point for point in study.points if point.state not in ("measured", "failed")]
    if left or study.until is None:
        return study, left[0] if left else None
    repeats = Counter(point.size for point in study.points)
    width, size = max((_width(study, size), -size) for size in repeats)
    if width <= study.until:
        return study, None
    point = StudyPoint(size=-size, repeat=repeats[-size] + 1)
    return with_more_points(study, (point,)), point


def _width(study: StudyFile, size: int) -> float:
    """Return half the interval of a size; 0 where more repeats do not help, infinite before the third one."""
    same = [point.seconds for point in study.points if point.size == size]
    seconds = tuple(one for one in same if one is not None)
    if not seconds or len(same) >= _MOST_REPEATS:
        return 0.0
    return (half_width(MeasuredSize(size=size, seconds=seconds)) or 0.0) if len(seconds) > 2 else math.inf


def wanted_study(
    what: dict[str, Any], limits: dict[str, Any], name: str | None, points: tuple[StudyPoint, ...]
) -> StudyFile:
    """Return the study of these settings: the one that exists, with these points added, or a new one.

    ``what``: must be as in the study that exists; ``limits``: may differ. Raises BadInputError.
    """
    what = json.loads(json.dumps(what, sort_keys=True))  # as the file has it: no tuples
    named_by = {key: value for key, value in what.items() if key != "file" or value}
    digest = hashlib.sha256(f"{os.getcwd()}\n{json.dumps(named_by, sort_keys=True)}".encode()).hexdigest()
    name = name or f"study-{digest[:8]}"
    check_study_name(name)
    if not study_exists(name):
        made = {**what, **limits, "name": name, "token": secrets.token_hex(3), "workdir": os.getcwd()}
        return msgspec.convert({**made, "points": msgspec.to_builtins(points)}, StudyFile)
    study = load_study(name)
    known = msgspec.to_builtins(study)
    if different := [key for key, value in what.items() if known[key] != value]:
        raise BadInputError.case("study: exists", name=name, different=", ".join(different))
    return msgspec.structs.replace(with_more_points(study, points), **limits)


def studies_folder() -> Path:
    """Return the folder with a folder for each study."""
    return user_state_folder() / "studies"


def check_study_name(name: str) -> None:
    """Raise BadInputError for a name that cannot be a folder's and a job's."""
    if not _NAME.fullmatch(name):
        raise BadInputError.case("study: name", name=name)


def load_study(name: str) -> StudyFile:
    """Return a study. Raises BadInputError where there is none."""
    check_study_name(name)
    path = studies_folder() / name / _STUDY
    try:
        return msgspec.json.decode(path.read_bytes(), type=StudyFile)
    except FileNotFoundError:
        known = ", ".join(sorted(path.name for path in studies_folder().glob("*")))
        raise BadInputError(f"no study is named {name!r}", f"known are {known or 'none'}") from None
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: damaged: {error}", "remove its folder to start again") from None


def save_study(study: StudyFile) -> StudyFile:
    """Write the study; the older file stays whole if that fails. Return it."""
    folder = studies_folder() / study.name
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / _STUDY, msgspec.json.format(msgspec.json.encode(study)) + b"\n", 0o600)
    return study


def study_exists(name: str) -> bool:
    """Return whether a study has that name."""
    return (studies_folder() / name / _STUDY).exists()


@contextmanager
def locked_study(name: str) -> Iterator[None]:
    """Let one process at a time submit for a study. Raises RefusedError where another one does."""
    check_study_name(name)
    folder = studies_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a") as file:  # the lock ends with the process
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError.case("study: other process", name=name) from None
        yield


def report_of(
    study: StudyFile,
    efficiency: float = 0.7,
    steps: float | None = None,
    boundaries: Boundaries | None = None,
) -> tuple[StudyDocument, FittedLaw | None]:
    """Return document and law. Raises BadInputError: nothing measured; HpclaunchError: the jobs failed."""
    known = [point for point in study.points if point.seconds is not None]
    measured = sorted(known, key=lambda point: (point.size, point.repeat))
    if not measured:
        failed = [point for point in study.points if point.remark]
        why = f": {failed[0].remark}" if failed else ""
        message = f"the study {study.name} has measured nothing yet{why}"
        if any(point.nodes for point in failed):  # its job failed, rather than to print a figure
            raise HpclaunchError(message)
        raise BadInputError(message)
    by_gpus = all(point.gpus for point in measured)
    by_size = grouped((point.gpus or 0 if by_gpus else point.ranks, point) for point in measured)
    sizes = tuple(
        MeasuredSize(
            size=size,
            seconds=tuple(point.seconds or 0.0 for point in points),
            nodes=points[0].nodes or None,
            ranks=points[0].ranks,
        )
        for size, points in sorted(by_size.items())
    )
    remarks = {size: _remarks(points, measured[0]) for size, points in by_size.items()}
    odd = {size for size, points in by_size.items() if _differences(points, measured[0])}
    work, by_elapsed = None, measured[0].measured_by.startswith("elapsed")
    if study.batch is not None and not by_elapsed:  # the number of steps of a job is not known
        work = float(study.batch * (measured[0].ranks if study.kind == "weak" else 1))
    request = StudyRequest(
        name=study.name,
        kind=study.kind,
        efficiency=efficiency,
        steps=steps,
        work=work,
        boundaries=boundaries or Boundaries(),
        seconds_of="job, start-up included" if by_elapsed else "step",
    )
    measurement = Measurement(unit="gpus" if by_gpus else "ranks", sizes=sizes)
    facts = {size: _facts(points) for size, points in by_size.items()}
    document, law = study_document(measurement, request, remarks, frozenset(odd), facts)
    return msgspec.structs.replace(document, failed=tuple(_failures(study))), law


def _failures(study: StudyFile) -> Iterator[str]:
    """Yield a sentence for each size of which jobs measured nothing."""
    for size in sorted({point.size for point in study.points}):
        same = [point for point in study.points if point.size == size]
        if failed := [point for point in same if point.state == "failed"]:
            jobs = f"{len(failed)} of {counted(len(same), 'job')}"
            yield f"{counted(size, study.by[:-1])}: {jobs} measured nothing: {failed[0].remark}"


def _facts(points: list[StudyPoint]) -> PointFacts:
    checked = [point.binding for point in points if point.binding is not None]
    costs = [point.cost for point in points if point.cost is not None]
    return PointFacts(
        load_balance=mean(p.load_balance for p in points),
        communication_efficiency=mean(p.communication_efficiency for p in points),
        cost=sum(costs) if costs else None,
        jobs=tuple(point.job for point in points if point.job),
        binding=all(checked) if checked else None,
        fingerprint=points[0].fingerprint,
    )


def _remarks(points: list[StudyPoint], first: StudyPoint) -> tuple[str, ...]:
    found = [point.remark for point in points if point.remark]
    found += [f"measured by {how}" for how in sorted({p.measured_by for p in points} - {first.measured_by})]
    if points[0] is first and first.measured_by.startswith("elapsed"):
        found.append(f"measured by the {first.measured_by}")
    found += [
        f"not comparable with the smallest size: {name} differs" for name in _differences(points, first)
    ]
    return tuple(dict.fromkeys(found))


def _differences(points: list[StudyPoint], first: StudyPoint) -> list[str]:
    names = first.fingerprint
    return [name for name in names if any(point.fingerprint.get(name) != names[name] for point in points)]
