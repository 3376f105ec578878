"""Predictions: step time with a range, memory and limits of each strategy and size, and their ranking.

Pure.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from statistics import NormalDist, median

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.plural import counted
from hpclaunch.scaling.calibration import TERMS, Calibration, calibrate, not_calibrated
from hpclaunch.scaling.grid_cost import exchange_bytes, exchanges, grid_cost, grid_stages
from hpclaunch.scaling.machine_speed import Machine, Parameter, node_sharing
from hpclaunch.scaling.measured_sizes import MeasuredSize
from hpclaunch.scaling.memory_need import MemoryNeed, MemoryOptions, memory_need, what_would_fit
from hpclaunch.scaling.model_table import Layer, Model, ModelTable
from hpclaunch.scaling.simulated_exchange import Simulation
from hpclaunch.scaling.strategy_costs import (
    HYBRIDS,
    WHOLE_WORKERS,
    Division,
    LayerCost,
    Strategy,
    balanced_stages,
    groups_of,
    layer_costs,
    most_gpus,
    step_cost,
)

KNOWN_ERROR = 0.05
"""Relative deviation that is in measurements themselves: on ABCI medians of epochs differ from minima by 0.4
to 14 %, 5 % on average beyond one node (public logs of arXiv 2104.09075)."""
_RANGE = 2.0
"""Standard deviations of the printed range."""
_DIVIDED_LAYERS = 5.0
"""Relative uncertainty of the computation where layers are divided: splitting and joining tensors takes time
that no operation counts (the paper's Table VIII has three times the projected computation in the hybrids,
seven times with filters, seventy times with channels)."""
_DOES_NOT_FIT = 0.1
"""Relative error from which a measured size is named."""
_OTHER_UNIT = 100.0
"""Times of what the origins give, from which a measured size may be in another unit than seconds."""


class PredictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a prediction."""

    model: Model
    machine: Machine
    batch: int
    """Samples per worker and step."""
    gpus_per_worker: int
    """P2 of the hybrids."""
    gpus: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    memory: MemoryOptions = MemoryOptions()
    segments: int = 8
    accumulate: int = 1
    """Micro-batches of a worker's step, in data and 3d."""
    tensor: int = 1
    pipeline: int = 1
    measured: tuple[MeasuredSize, ...] = ()
    """Small sizes of the first strategy, in seconds per step."""
    samples: int | None = None
    """Samples of an epoch."""
    node_hour: float | None = None
    """The site's charge for one node and one hour."""
    cost_unit: str | None = None


class StepRange(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds with their range."""

    value: float
    low: float
    high: float


class PredictedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy on one number of GPUs."""

    strategy: Strategy
    gpus: int
    step_s: StepRange
    compute_s: float
    communication_s: float
    waiting_s: float
    memory_gib: float
    fits: bool | None
    most_gpus: int
    batch: int
    samples_per_s: float
    epoch_s: float | None
    cost_per_epoch: float | None
    memory: MemoryNeed
    remedies: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Impossible(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy that cannot use this many GPUs."""

    strategy: Strategy
    gpus: int
    why: str


class CalibrationReport(msgspec.Struct, frozen=True, kw_only=True):
    """How well the measured sizes fit."""

    strategy: Strategy
    errors: dict[str, float]
    remarks: tuple[str, ...]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The output of ``predict --json``."""

    points: tuple[PredictedPoint, ...]
    ranking: dict[str, tuple[str, ...]]
    parameters: tuple[Parameter, ...]
    not_told_apart: dict[str, tuple[tuple[str, str], ...]]
    impossible: tuple[Impossible, ...]
    calibration: CalibrationReport | None
    model: str
    cost_unit: str | None
    simulation: Simulation | None = None


def predict_all(request: PredictRequest) -> Prediction:
    """Return the prediction. Raises BadInputError where a measured size cannot be one of the strategy."""
    groups = groups_of(request.model)
    points: list[PredictedPoint] = []
    impossible: list[Impossible] = []
    report, parameters = None, request.machine.parameters()
    for number, strategy in enumerate(request.strategies):
        calibration = not_calibrated(_uncertainties(strategy, request.machine))
        if number == 0 and request.measured:
            calibration, report = _calibrated(strategy, groups, request)
            parameters = _calibrated_parameters(parameters, calibration, report)
        for gpus in request.gpus:
            why = why_impossible(strategy, gpus, groups, request)
            if why:
                impossible.append(Impossible(strategy=strategy, gpus=gpus, why=why))
            else:
                points.append(_point(strategy, gpus, groups, request, calibration))
    ranking, ties = rank_points(points)
    return Prediction(
        points=tuple(points),
        ranking=ranking,
        parameters=parameters,
        not_told_apart=ties,
        impossible=tuple(impossible),
        calibration=report,
        model=request.model.name,
        cost_unit=request.cost_unit,
    )


def _uncertainties(strategy: Strategy, machine: Machine) -> list[float]:
    """Return the relative uncertainty of each of ``TERMS`` before any calibration."""
    whole = strategy in ("serial", "data", "pipeline", "3d")
    compute = max(machine.gpu_share.uncertainty, 0.0 if whole else _DIVIDED_LAYERS)
    links = (machine.node_latency_s, machine.node_gb_s, machine.network_latency_s, machine.network_gb_s)
    return [compute, *(link.uncertainty for link in links), machine.step_deviation_s.uncertainty]


def division_of(strategy: Strategy, gpus: int, request: PredictRequest) -> Division:
    """Return how that many GPUs divide a step."""
    p2 = request.gpus_per_worker
    if strategy in ("data", "3d"):
        tensor, pipeline = (request.tensor, request.pipeline) if strategy == "3d" else (1, 1)
        batch = request.batch * (gpus // (tensor * pipeline))
        return Division(batch, gpus, 1, request.accumulate, tensor, pipeline)
    workers = gpus // p2 if strategy in HYBRIDS else 1
    segments = max(1, min(request.segments, request.batch))
    return Division(request.batch * workers, gpus, p2 if strategy in HYBRIDS else 1, segments)


def why_impossible(
    strategy: Strategy, gpus: int, groups: Sequence[tuple[Layer, ...]], request: PredictRequest
) -> str | None:
    """Return why the strategy cannot use that many GPUs; None: it can."""
    most = most_of(strategy, groups, request)
    p2 = request.gpus_per_worker
    if strategy == "3d" and (why := _no_grid(gpus, request)):
        return why
    if request.batch % request.accumulate and strategy in ("data", "3d"):
        return f"{counted(request.batch, 'sample')} are not {request.accumulate} equal micro-batches"
    if strategy in HYBRIDS and (gpus % p2 or gpus < p2):
        return f"{gpus} GPUs are not workers of {p2}"
    if strategy in HYBRIDS:
        inner: Strategy = "filter" if strategy == "data+filter" else "spatial"
        least = most_gpus(inner, _sizes(groups), request.batch)
        if p2 > least:
            return f"a worker can use at most {counted(least, 'GPU')}"
    return f"it can use at most {counted(most, 'GPU')}" if gpus > most else None


def _no_grid(gpus: int, request: PredictRequest) -> str | None:
    """Return why the GPUs are no tensor x pipeline x data grid; None: they are."""
    size = request.tensor * request.pipeline
    if gpus % size:
        return f"{gpus} GPUs are not workers of {request.tensor} x {request.pipeline}"
    if request.tensor > 1 and not request.model.can_be_tensor_parallel:
        return "which layers tensor parallelism divides is known of models with a transformer only"
    most = len(grid_stages(request.model.layers, request.pipeline))
    return f"the model has {most} stages at most" if most < request.pipeline else None


def _sizes(groups: Sequence[tuple[Layer, ...]]) -> list[LayerCost]:
    """Return the groups with their sizes only."""
    main = [next((layer for layer in group if layer.weighted), group[0]) for group in groups]
    return [
        LayerCost(x.x, x.y, x.weights, 0, 0, 0, filters=x.filters, channels=x.channels, area=x.area)
        for x in main
    ]


def most_of(strategy: Strategy, groups: Sequence[tuple[Layer, ...]], request: PredictRequest) -> int:
    """Return the most GPUs that the strategy can use: no more workers than an epoch has batches."""
    workers = request.samples // request.batch if request.samples else 1 << 40
    if strategy in ("data", "3d"):
        return workers * (request.tensor * request.pipeline if strategy == "3d" else 1)
    most = most_gpus(strategy, _sizes(groups), request.batch)
    return workers * request.gpus_per_worker if strategy in HYBRIDS else most


def terms_of(
    strategy: Strategy, gpus: int, groups: Sequence[tuple[Layer, ...]], request: PredictRequest
) -> tuple[float, ...]:
    """Return the seconds of each of ``TERMS`` in a step, by the parameters' origins."""
    machine, options = request.machine, request.memory
    division = division_of(strategy, gpus, request)
    if strategy == "3d":
        return _grid_terms(division, request)
    cost = step_cost(strategy, _costs(groups, request), division)
    node, network = [0.0, 0.0], [0.0, 0.0]
    inner_size = gpus if strategy in WHOLE_WORKERS else division.p2
    phi = machine.contention.value if strategy in HYBRIDS else 1.0
    shown = (1.0 - machine.overlap.value) * exchanges(options, division.segments)
    for traffic, size, slower, width, share in (
        (cost.inner, inner_size, 1.0, options.saved_bytes, 1.0),
        (cost.outer, gpus, phi, exchange_bytes(options), shown),
    ):
        target = node if machine.gpus_per_node is None or size <= machine.gpus_per_node else network
        target[0] += share * traffic.messages
        target[1] += share * traffic.elements * width * (slower if target is network else 1.0)
    return (
        (cost.compute_s + cost.update_s) * machine.ranks_per_core(gpus),
        node[0] * machine.node_latency_s.value,
        node[1] / (machine.node_gb_s.value * 1e9),
        network[0] * machine.network_latency_s.value,
        network[1] / (machine.network_gb_s.value * 1e9),
        machine.step_deviation_s.value * slowest_of(gpus) if strategy == "data" else 0.0,
    )


def _grid_terms(division: Division, request: PredictRequest) -> tuple[float, ...]:
    """Return the seconds of each of ``TERMS`` in a step of 3d."""
    machine = request.machine
    cost = grid_cost(grid_stages(request.model.layers, division.pipeline), division, request.memory, machine)
    node, network = list(cost.node), list(cost.network)
    target = node if machine.gpus_per_node is None or division.p <= machine.gpus_per_node else network
    for place, amount in enumerate(cost.gradients):
        target[place] += (1.0 - machine.overlap.value) * amount
    return (
        cost.compute_s * machine.ranks_per_core(division.p),
        node[0] * machine.node_latency_s.value,
        node[1] / (machine.node_gb_s.value * 1e9),
        network[0] * machine.network_latency_s.value,
        network[1] / (machine.network_gb_s.value * 1e9),
        machine.step_deviation_s.value * slowest_of(division.p),
    )


def slowest_of(count: int) -> float:
    """Return by how many standard deviations the largest of that many normal values is above the mean.

    Blom's approximation of the expectation (1958, Statistical Estimates and Transformed Beta-Variables), at
    most 5 % off.
    """
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def _costs(groups: Sequence[tuple[Layer, ...]], request: PredictRequest) -> list[LayerCost]:
    options = request.memory
    micro = max(1.0, request.batch / request.accumulate)
    costs = layer_costs(groups, request.machine, micro, options.slots, options.saved_bytes)
    if options.recompute == "full":  # the forward pass is done again before the backward pass
        costs = [cost._replace(bw=cost.bw + cost.fw) for cost in costs]
    return costs


def _point(
    strategy: Strategy,
    gpus: int,
    groups: Sequence[tuple[Layer, ...]],
    request: PredictRequest,
    calibration: Calibration,
) -> PredictedPoint:
    terms = terms_of(strategy, gpus, groups, request)
    seconds = calibration.seconds(terms)
    compute = calibration.factors[0] * terms[0]
    measured = [size.size for size in request.measured] if calibration.errors else []
    shared = node_sharing(gpus, request.machine, measured, compute / seconds)
    deviation = math.hypot(calibration.deviation(terms), KNOWN_ERROR, calibration.noise, shared.deviation)
    division = division_of(strategy, gpus, request)
    need = partial(_need, strategy, gpus, groups, request)
    here = need(request.batch, request.memory)
    room = request.machine.room_gib
    fits = None if room is None else here.total <= room
    epoch = None if request.samples is None else math.ceil(request.samples / division.batch) * seconds
    return PredictedPoint(
        strategy=strategy,
        gpus=gpus,
        step_s=StepRange(
            value=seconds, low=seconds / (1 + _RANGE * deviation), high=seconds * (1 + _RANGE * deviation)
        ),
        compute_s=compute,
        communication_s=seconds - compute,
        waiting_s=calibration.factors[-1] * terms[-1],
        memory_gib=here.total,
        fits=fits,
        most_gpus=most_of(strategy, groups, request),
        batch=int(division.batch),
        samples_per_s=division.batch / seconds,
        epoch_s=epoch,
        cost_per_epoch=_cost(gpus, epoch, request),
        memory=here,
        remedies=() if fits or room is None else what_would_fit(need, request.batch, request.memory, room),
        remarks=(*shared.remarks, *_beyond(int(division.batch), request)),
    )


_IMAGENET, _LARGEST_BATCH = 1281167, 81920


def _beyond(batch: int, request: PredictRequest) -> tuple[str, ...]:
    """Return a remark where a batch of ImageNet is larger than any that was trained to a good accuracy."""
    if batch <= _LARGEST_BATCH or request.samples != _IMAGENET:
        return ()
    read = f"{_LARGEST_BATCH:,} images to 75.08 % (Yamazaki et al. 2019, ResNet-50)"
    return (f"{batch:,} images per step: no paper read trained ImageNet beyond {read}",)


def _need(
    strategy: Strategy,
    gpus: int,
    groups: Sequence[tuple[Layer, ...]],
    request: PredictRequest,
    batch: int,
    options: MemoryOptions,
) -> MemoryNeed:
    other = msgspec.structs.replace(request, batch=batch)
    division = division_of(strategy, gpus, other)
    stages: list[list[Layer]] = [[layer for group in groups for layer in group]]
    if strategy == "3d":
        stages = grid_stages(request.model.layers, request.pipeline)
    if strategy == "pipeline":
        stages, start = [], 0
        for stage in balanced_stages(_costs(groups, other), gpus):
            some = groups[start : start + len(stage)]
            stages.append([layer for group in some for layer in group])
            start += len(stage)
    return memory_need(strategy, stages, division, options)


def _cost(gpus: int, epoch_s: float | None, request: PredictRequest) -> float | None:
    per_node = request.machine.gpus_per_node
    if epoch_s is None or request.node_hour is None or per_node is None:
        return None
    return math.ceil(gpus / per_node) * epoch_s / 3600 * request.node_hour


def _calibrated(
    strategy: Strategy, groups: Sequence[tuple[Layer, ...]], request: PredictRequest
) -> tuple[Calibration, CalibrationReport]:
    """Return the factors of the measured sizes and how well they fit."""
    for size in request.measured:
        if why := why_impossible(strategy, size.size, groups, request):
            raise BadInputError(f"--calibrate: {size.size} GPUs in {strategy}: {why}")
    terms = [terms_of(strategy, size.size, groups, request) for size in request.measured]
    seconds = [median(size.seconds) for size in request.measured]
    found = calibrate(terms, seconds, _uncertainties(strategy, request.machine))
    errors = {str(size.size): error for size, error in zip(request.measured, found.errors, strict=True)}
    remarks = [
        f"{gpus} GPUs were measured {error:+.0%} of what the model gives: this size does not fit"
        for gpus, error in errors.items()
        if abs(error) > _DOES_NOT_FIT
    ]
    remarks += _implausible(found, terms, seconds, request)
    return found, CalibrationReport(strategy=strategy, errors=errors, remarks=tuple(remarks))


def _implausible(
    found: Calibration, terms: Sequence[Sequence[float]], seconds: Sequence[float], request: PredictRequest
) -> list[str]:
    """Return what is odd about the measured level as a whole."""
    machine, remarks = request.machine, []
    batch = counted(request.batch, "sample")
    doubt = f"are these seconds per step, of {request.model.name} with {batch} per worker?"
    times = min(measured / sum(size) for size, measured in zip(terms, seconds, strict=True))
    if times > _OTHER_UNIT:
        remarks.append(f"the measured sizes took at least {times:,.0f} times what the origins give: {doubt}")
    share = _divided(machine.gpu_share.value, found.factors[0])
    if machine.gpu_tflops.origin.startswith("data sheet") and found.determined[0] and share > 1:
        faster = f"the measured sizes are {share:,.3g} times as fast as the data sheet of the GPU allows"
        remarks.append(f"{faster}: {doubt} Or is it another --precision?")
    return remarks


_CALIBRATED_BY = dict(
    zip(
        TERMS,
        ("gpu_share", "node_latency_s", "node_gb_s", "network_latency_s", "network_gb_s", "step_deviation_s"),
        strict=True,
    )
)
"""Term -> the parameter that its factor changes."""


def _calibrated_parameters(
    parameters: Sequence[Parameter], calibration: Calibration, report: CalibrationReport
) -> tuple[Parameter, ...]:
    """Return the parameters with those changed that the measured sizes determine."""
    found = zip(TERMS, calibration.factors, calibration.determined, strict=True)
    changed = {_CALIBRATED_BY[term]: factor for term, factor, known in found if known}
    method = f"calibrated: {report.strategy} on {', '.join(report.errors)} GPUs"
    shown = []
    for one in parameters:
        if (factor := changed.get(one.name)) is not None:
            value = one.value * factor if one.unit == "s" else _divided(one.value, factor)
            one = msgspec.structs.replace(one, value=value, origin=f"{method} (before: {one.origin})")
        shown.append(one)
    return tuple(shown)


def _divided(value: float, factor: float) -> float:
    return value / factor if factor else math.inf


def rank_points(
    points: Sequence[PredictedPoint],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[tuple[str, str], ...]]]:
    """Return, by number of GPUs, the strategies that fit in their order, and neighbours not told apart."""
    ranking: dict[str, tuple[str, ...]] = {}
    ties: dict[str, tuple[tuple[str, str], ...]] = {}
    for gpus in dict.fromkeys(point.gpus for point in points):
        here = [point for point in points if point.gpus == gpus and point.fits is not False]
        ranges = {point.strategy: _per_sample(point) for point in here}
        order, pairs = rank(ranges)
        ranking[str(gpus)] = order
        if pairs:
            ties[str(gpus)] = pairs
    return ranking, ties


def _per_sample(point: PredictedPoint) -> StepRange:
    step, batch = point.step_s, point.batch
    return StepRange(value=step.value / batch, low=step.low / batch, high=step.high / batch)


def rank(ranges: dict[Strategy, StepRange]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the names by value, the least first, and the neighbours whose ranges overlap."""
    order = sorted(ranges, key=lambda name: ranges[name].value)
    pairs = [(one, other) for one, other in pairwise(order) if ranges[other].low <= ranges[one].high]
    return tuple(order), tuple(pairs)


DOCUMENTS = {"predict": Prediction, "predict-model": ModelTable}
"""Name -> the type of a document that ``predict`` prints, and of the file that it reads."""
