"""A study as a document, a table for the terminal, Markdown and CSV. Pure."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from hpclaunch.json_document import document_of
from hpclaunch.package_data import package_constants
from hpclaunch.scaling import study_table
from hpclaunch.scaling.measured_sizes import Measurement
from hpclaunch.scaling.scaling_laws import Fit, FittedLaw, describe_fit, fitted_law
from hpclaunch.text_table import csv_row, text_table, without_empty


class Recommended(msgspec.Struct, frozen=True, kw_only=True):
    """The largest measured size with the requested efficiency, and what the work costs there."""

    efficiency: float
    nodes: int | None
    ranks: int
    gpus: int | None
    measured_efficiency: float
    step_s: float
    hours: float | None
    node_hours: float | None
    sentence: str


class PointFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Further facts of a size: POP's factors (pop-coe.eu), the cost of its jobs, and their proofs."""

    load_balance: float | None = None
    communication_efficiency: float | None = None
    cost: float | None = None
    jobs: tuple[str, ...] = ()
    binding: bool | None = None
    fingerprint: dict[str, str] = {}


class StudyDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output of ``scale --json``."""

    study: str
    kind: study_table.Kind
    points: tuple[study_table.Point, ...]
    fit: Fit | None
    recommended: Recommended | None
    failed: tuple[str, ...] = ()
    facts: dict[str, PointFacts] = {}


class StudyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request about the measured sizes."""

    name: str
    kind: study_table.Kind
    efficiency: float = 0.7
    steps: float | None = None
    work: float | None = None
    boundaries: study_table.Boundaries = study_table.Boundaries()
    seconds_of: str = "step"


def study_document(
    measurement: Measurement,
    request: StudyRequest,
    remarks: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
    not_comparable: frozenset[int] = frozenset(),
    facts: Mapping[int, PointFacts] = MappingProxyType({}),
) -> tuple[StudyDocument, FittedLaw | None]:
    """Return the document and the law to draw; ``remarks``: by size; ``not_comparable``: to no law fitted."""
    unit, kind = measurement.unit, request.kind
    points = tuple(
        msgspec.structs.replace(
            point,
            comparable=point.size not in not_comparable,
            remarks=(*remarks.get(point.size, ()), *point.remarks),
        )
        for point in study_table.study_points(measurement.sizes, kind, unit, request.boundaries, request.work)
    )
    law = fitted_law(points, kind)
    document = StudyDocument(
        study=request.name,
        kind=kind,
        points=points,
        fit=describe_fit(law, points, kind) if law else None,
        recommended=None if any(map(_to_the_second, points)) else _recommended(points, request),
        facts={str(size): fact for size, fact in facts.items() if fact != PointFacts()},
    )
    return document, law


def _recommended(points: Sequence[study_table.Point], request: StudyRequest) -> Recommended | None:
    """Return the largest comparable size with the efficiency, or a smaller one that is as fast as that."""
    first = points[0]
    good = [point for point in points if point.comparable and point.efficiency >= request.efficiency]
    if not good:
        return None
    best = _smallest_as_fast(good)
    seconds = best.step_s.median
    steps = request.steps
    if steps is not None and request.kind == "weak":
        steps = steps * first.size / best.size
    hours = None if steps is None else steps * seconds / 3600
    node_hours = hours * best.nodes if hours is not None and best.nodes else None
    known = {"hours": hours, "node_hours": node_hours, "step_s": seconds, "sentence": ""}
    shares = {"efficiency": request.efficiency, "measured_efficiency": best.efficiency}
    recommended = document_of(Recommended, best, **known, **shares)
    from hpclaunch.pages.render_page import render  # it loads jinja2

    words = {
        "unit": unit_name(points),
        "sizes": (best.size, good[-1].size),
        "unsure": _unsure(points, request.efficiency),
        "half": best.plus_minus,
        "more_than_linear": study_table.LIMIT.more_than_linear,
    }
    text = render("study_sentence.txt.j2", best=recommended, points=points, request=request, **words)
    return msgspec.structs.replace(recommended, sentence=" ".join(text.split()))


def _smallest_as_fast(points: Sequence[study_table.Point]) -> study_table.Point:
    """Return the smallest size than which the largest is faster by no more than their repeats differ."""
    largest = points[-1]
    halves = ((point, study_table.ratio_half(point.step_s, largest.step_s) or 0.0) for point in points)
    return next(point for point, half in halves if largest.speedup <= point.speedup * math.exp(half))


def _unsure(points: Sequence[study_table.Point], efficiency: float) -> list[str]:
    """Return the sizes whose efficiency has that one in its interval."""
    off = {point: abs(math.log(point.efficiency / efficiency)) for point in points if point.comparable}
    return [str(point.size) for point, one in off.items() if one < (point.plus_minus or 0.0)]


class ComparedSize(msgspec.Struct, frozen=True, kw_only=True):
    """One size in several studies, in their order."""

    size: int
    step_s: tuple[float | None, ...]
    relative: tuple[float | None, ...]


def compared(documents: Sequence[StudyDocument]) -> list[ComparedSize]:
    """Return each size that any of the studies has."""
    times = [{point.size: point.step_s.median for point in document.points} for document in documents]
    rows = []
    for size in sorted({size for study in times for size in study}):
        here = tuple(study.get(size) for study in times)
        relative = tuple(None if value is None or here[0] is None else value / here[0] for value in here)
        rows.append(ComparedSize(size=size, step_s=here, relative=relative))
    return rows


def unit_name(points: Sequence[study_table.Point]) -> str:
    """Return GPUs or ranks."""
    return study_table.UNIT_NAMES["gpus" if points[0].gpus is not None else "ranks"]


LIMIT = package_constants("scaling/constants.yaml", "columns")


def _with_error(value: float, relative: float | None, form: str) -> str:
    return f"{value:{form}}" + (f" +- {value * relative:.2g}" if relative else "")


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def columns(document: StudyDocument) -> tuple[list[str], list[list[str]]]:
    """Return header and rows without the columns that are empty."""
    rows: list[tuple[str, ...]] = [
        (
            _shown(point.nodes, "d"),
            str(point.size),
            _with_error(point.step_s.median, point.step_s.plus_minus, ".4g"),
            _shown(point.step_s.spread, ".2g"),
            _shown(point.throughput, ",.4g"),
            _with_error(point.speedup, point.plus_minus, ".2f"),
            _with_error(point.efficiency, point.plus_minus, ".3f"),
            _shown(point.karp_flatt, ".4f"),
            _shown(known.load_balance, ".3f"),
            _shown(known.communication_efficiency, ".3f"),
            _shown(known.cost, ".3g"),
            "; ".join((*([] if point.comparable else ["not comparable"]), *point.remarks)),
        )
        for point in document.points
        for known in (document.facts.get(str(point.size), PointFacts()),)
    ]
    header = [unit_name(document.points) if name == "size" else name for name in LIMIT.header]
    return without_empty(header, rows)


def as_text(document: StudyDocument, width: int | None = None) -> str:
    """Return the study for a terminal."""
    header, rows = columns(document)
    table = text_table(rows, header, width=width, drop=LIMIT.dropped)
    title = f"{document.study}: {document.kind} scaling"
    return "\n".join([title, "", table, "", *fit_lines(document), *advice_lines(document)])


def fit_lines(document: StudyDocument) -> list[str]:
    """Return the law, its parameters, what it predicts, and what makes it doubtful."""
    from hpclaunch.pages.render_page import render  # it loads jinja2

    unit = unit_name(document.points)
    return render("study_fit.txt.j2", fit=document.fit, unit=unit).splitlines()


def _to_the_second(point: study_table.Point) -> bool:
    return any(remark.endswith("known to the second only") for remark in point.remarks)


def advice_lines(document: StudyDocument) -> list[str]:
    """Return which sizes were not measured, and which to ask for."""
    best = document.recommended
    advice = best.sentence if best else "no measured size has the requested efficiency"
    if any(map(_to_the_second, document.points)):
        advice = "no recommendation: some times are known to the second only; print a figure (--metric)"
    return [line for text in (*document.failed, advice) for line in ("", text)]


def as_markdown(document: StudyDocument) -> str:
    """Return the study as a section of a proposal."""
    header, rows = columns(document)
    lines = [header, ["---:" if name != "remarks" else "---" for name in header], *rows]
    table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    title = f"## {document.study}: {document.kind} scaling"
    facts = "\n".join(f"    {line}" for line in fit_lines(document))
    return "\n".join([title, "", *table, "", facts, *advice_lines(document)])


def as_csv(document: StudyDocument) -> str:
    """Return the table with all its columns, numbers in full."""
    lines = [csv_row(LIMIT.csv)]
    for point in document.points:
        step = point.step_s
        values = (point.nodes, point.ranks, point.gpus, step.median, step.min, step.spread, point.throughput)
        more = (point.speedup, point.efficiency, point.karp_flatt, step.plus_minus, point.plus_minus)
        words = (document.kind, str(point.comparable).lower())
        remarks = "; ".join(point.remarks).replace('"', '""')
        lines.append(csv_row((*values, *more, *words, f'"{remarks}"')))
    return "\n".join(lines)


def repeats_csv(document: StudyDocument) -> str:
    """Return a line for each repeat, which ``scale import`` reads."""
    lines = ["nodes,ranks,gpus,repeat,seconds"]
    for point in document.points:
        size = (point.nodes, point.ranks, point.gpus)
        lines += [csv_row((*size, number, one)) for number, one in enumerate(point.step_s.seconds, 1)]
    return "\n".join(lines)
