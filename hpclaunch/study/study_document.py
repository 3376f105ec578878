"""A study's points as the table, the fit and the recommendation of ``hpclaunch.scaling``."""

from hpclaunch.errors import BadInputError, HpclaunchError
from hpclaunch.scaling.measured_sizes import MeasuredSize, Measurement
from hpclaunch.scaling.scaling_laws import FittedLaw
from hpclaunch.scaling.study_report import PointFacts, StudyDocument, StudyRequest, study_document
from hpclaunch.scaling.study_table import Boundaries
from hpclaunch.study.study_file import StudyFile, StudyPoint


def report_of(
    study: StudyFile,
    efficiency: float = 0.7,
    steps: float | None = None,
    boundaries: Boundaries | None = None,
) -> tuple[StudyDocument, FittedLaw | None]:
    """Return the document and the law.

    Raises BadInputError where nothing is measured yet, HpclaunchError where the jobs failed.
    """
    measured = [point for point in study.points if point.seconds is not None]
    if not measured:
        failed = [point for point in study.points if point.remark]
        why = f": {failed[0].remark}" if failed else ""
        message = f"the study {study.name} has measured nothing yet{why}"
        if any(point.nodes for point in failed):  # its job failed, rather than to print a figure
            raise HpclaunchError(message)
        raise BadInputError(message)
    by_gpus = all(point.gpus for point in measured)
    by_size: dict[int, list[StudyPoint]] = {}
    for point in measured:
        by_size.setdefault(point.gpus or 0 if by_gpus else point.ranks, []).append(point)
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
    return study_document(measurement, request, remarks, frozenset(odd), facts)


def measurement_of(study: StudyFile) -> StudyDocument:
    """Return the document of what is measured so far."""
    return report_of(study)[0]


def _facts(points: list[StudyPoint]) -> PointFacts:
    checked = [point.binding for point in points if point.binding is not None]
    costs = [point.cost for point in points if point.cost is not None]
    return PointFacts(
        load_balance=_mean([p.load_balance for p in points]),
        communication_efficiency=_mean([p.communication_efficiency for p in points]),
        cost=sum(costs) if costs else None,
        jobs=tuple(point.job for point in points if point.job),
        binding=all(checked) if checked else None,
        fingerprint=points[0].fingerprint,
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


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
