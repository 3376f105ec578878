"""A prediction as text. Pure."""

from collections.abc import Sequence

from hpclaunch.pages.render_page import render
from hpclaunch.scaling.learned_range import place_text
from hpclaunch.scaling.prediction import PredictedPoint, Prediction
from hpclaunch.scaling.simulated_exchange import simulation_text
from hpclaunch.text_table import text_table, without_empty

_HEADER = ("GPUs", "strategy", "step s", "range", "compute", "communic.", "GiB", "fits", "at most", "epoch")
_DROPPED = ("at most", "epoch", "communic.", "compute", "GiB", "range")


def as_text(prediction: Prediction, width: int | None = None) -> str:
    """Return the table, the ranking and the parameters with their origins."""
    points = sorted(prediction.points, key=lambda point: point.gpus)
    rows = [(p.name, f"{p.value:.4g}", p.unit, p.origin) for p in prediction.parameters]
    return render(
        "prediction.txt.j2",
        prediction=prediction,
        points=points,
        strategies=list(dict.fromkeys(point.strategy for point in points)),
        table=_table(points, prediction, width),
        remarks=dict.fromkeys(remark for point in points for remark in point.remarks),
        simulation=simulation_text(prediction.simulation, width) if prediction.simulation else "",
        parameters=text_table(rows, ("parameter", "value", "", "origin"), width=width),
    ).rstrip("\n")


def _table(points: Sequence[PredictedPoint], prediction: Prediction, width: int | None) -> list[str]:
    if not points:
        return []
    places = dict.fromkeys(point.mixture.place for point in points if point.mixture)
    price = f"{prediction.cost_unit} per epoch"
    header, rows = without_empty([*_HEADER, price, *_MIXTURE], list(map(_row, points)), _HEADER)
    table = text_table(rows, header, width=width, drop=(*_MIXTURE, *_DROPPED, price))
    return [table, *map(place_text, places)]


_MIXTURE = ("model", "naive fit", "carry on")


def _row(point: PredictedPoint) -> tuple[str, ...]:
    step = point.step_s
    fits = {True: "yes", False: "NO", None: "?"}[point.fits]
    three = (point.mixture.model, point.mixture.naive, point.mixture.carry_on) if point.mixture else ()
    return (
        str(point.gpus),
        point.strategy,
        f"{step.value:.4g}",
        f"{step.low:.4g} to {step.high:.4g}",
        f"{point.compute_s:.4g}",
        f"{point.communication_s:.4g}",
        f"{point.memory_gib:.1f}",
        fits,
        "" if point.most_gpus >= 1 << 40 else str(point.most_gpus),
        _time(point.epoch_s),
        "" if point.cost_per_epoch is None else f"{point.cost_per_epoch:.3g}",
        *([f"{value:.4g}" for value in three] or [""] * len(_MIXTURE)),
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
