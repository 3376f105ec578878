"""Predictions: step time with a range, memory and limits of each strategy and size, ranked. Pure."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice, pairwise
from statistics import NormalDist, median

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_constants
from hpclaunch.scaling import strategy_costs
from hpclaunch.scaling.calibration import TERMS, Calibration, calibrate, not_calibrated
from hpclaunch.scaling.grid_cost import exchange_bytes, exchanges, grid_cost, grid_stages
from hpclaunch.scaling.learned_range import Mixture, StepRange, learned_range, naive_fit, place_of
from hpclaunch.scaling.machine_speed import HIDDEN, Machine, Parameter, node_sharing
from hpclaunch.scaling.measured_sizes import MeasuredSize, deviation_of_repeats
from hpclaunch.scaling.memory_need import MemoryNeed, MemoryOptions, memory_need, what_would_fit
from hpclaunch.scaling.model_table import Layer, Model
from hpclaunch.scaling.simulated_exchange import Simulation
from hpclaunch.scaling.strategy_costs import HYBRIDS, Division, Strategy, groups_of, main_layers, most_gpus

LIMIT = package_constants("scaling/constants.yaml", "predictions")


class PredictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a prediction."""

    model: Model
    machine: Machine
    batch: int
    gpus_per_worker: int
    gpus: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    memory: MemoryOptions = MemoryOptions()
    segments: int = 8
    accumulate: int = 1
    tensor: int = 1
    pipeline: int = 1
    measured: tuple[MeasuredSize, ...] = ()
    samples: int | None = None
    node_hour: float | None = None
    cost_unit: str | None = None


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
    mixture: Mixture | None = None


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
    points: list[PredictedPoint] = []
    impossible: list[Impossible] = []
    report, parameters = None, request.machine.parameters()
    for number, strategy in enumerate(request.strategies):
        calibration = not_calibrated(_uncertainties(strategy, request.machine))
        if number == 0 and request.measured:
            calibration, report = _calibrated(strategy, request)
            parameters = _calibrated_parameters(request.machine, calibration, report)
        for gpus in request.gpus:
            why = why_impossible(strategy, gpus, request)
            if why:
                impossible.append(Impossible(strategy=strategy, gpus=gpus, why=why))
            else:
                points.append(_point(strategy, gpus, request, calibration))
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


def _uncertainties(
    strategy: Strategy, machine: Machine, terms: Sequence[Sequence[float]] = (), seconds: Sequence[float] = ()
) -> list[float]:
    """Return the relative uncertainty of each of ``TERMS`` before any calibration, or that of these."""
    whole = strategy in ("serial", "data", "pipeline", "3d")
    compute = max(machine.gpu_share.uncertainty, 0.0 if whole else LIMIT.divided_layers)
    links = (machine.node_latency_s, machine.node_gb_s, machine.network_latency_s, machine.network_gb_s)
    alone = _measured_alone(machine) if terms else []
    wide = [math.hypot(link.uncertainty, HIDDEN * (link.name in alone)) for link in links]
    # The growth is a share of the computation: of the measured one, whatever its origin promises.
    level = min((one / sum(size[:-1]) for size, one in zip(terms, seconds, strict=True)), default=1.0)
    return [compute, *wide, machine.step_deviation_s.uncertainty, level * machine.growth.uncertainty]


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


def why_impossible(strategy: Strategy, gpus: int, request: PredictRequest) -> str | None:
    """Return why the strategy cannot use that many GPUs; None: it can."""
    if shared := request.machine.why_not_predicted(gpus):
        return shared
    if strategy in ("data", "3d") and request.batch % request.accumulate:
        return f"{counted(request.batch, 'sample')} are not {request.accumulate} equal micro-batches"
    why = None
    if strategy == "3d":
        why = _no_grid(gpus, request)
    elif strategy in HYBRIDS:
        why = _no_hybrid(strategy, gpus, request)
    most = most_of(strategy, request)
    return why or (f"it can use at most {counted(most, 'GPU')}" if gpus > most else None)


def _no_hybrid(strategy: Strategy, gpus: int, request: PredictRequest) -> str | None:
    """Return why the GPUs are no workers of a hybrid; None: they are."""
    p2 = request.gpus_per_worker
    if gpus % p2 or gpus < p2:
        return f"{gpus} GPUs are not workers of {p2}"
    inner: Strategy = "filter" if strategy == "data+filter" else "spatial"
    least = most_gpus(inner, main_layers(request.model), request.batch)
    return f"a worker can use at most {counted(least, 'GPU')}" if p2 > least else None


def _no_grid(gpus: int, request: PredictRequest) -> str | None:
    """Return why the GPUs are no tensor x pipeline x data grid; None: they are."""
    size = request.tensor * request.pipeline
    if gpus % size:
        return f"{gpus} GPUs are not workers of {request.tensor} x {request.pipeline}"
    if request.tensor > 1 and not request.model.can_be_tensor_parallel:
        return "which layers tensor parallelism divides is known of models with a transformer only"
    most = len(grid_stages(request.model.layers, request.pipeline))
    return f"the model has {most} stages at most" if most < request.pipeline else None


def most_of(strategy: Strategy, request: PredictRequest) -> int:
    """Return the most GPUs that the strategy can use: no more workers than an epoch has batches."""
    workers = request.samples // request.batch if request.samples else 1 << 40
    if strategy in ("data", "3d"):
        return workers * (request.tensor * request.pipeline if strategy == "3d" else 1)
    most = most_gpus(strategy, main_layers(request.model), request.batch)
    return workers * request.gpus_per_worker if strategy in HYBRIDS else most


def terms_of(strategy: Strategy, gpus: int, request: PredictRequest) -> tuple[float, ...]:
    """Return the seconds of each of ``TERMS`` in a step, by the parameters' origins."""
    machine, options = request.machine, request.memory
    division = division_of(strategy, gpus, request)
    if strategy == "3d":
        return _grid_terms(division, request)
    cost = strategy_costs.step_cost(strategy, _costs(request), division)
    node, network = [0.0, 0.0], [0.0, 0.0]
    inner_size = gpus if strategy in strategy_costs.WHOLE_WORKERS else division.p2
    phi = machine.contention.value if strategy in HYBRIDS else 1.0
    shown = (1.0 - machine.overlap.value) * exchanges(options, division.segments)
    for traffic, size, slower, width, share in (
        (cost.inner, inner_size, 1.0, options.saved_bytes, 1.0),
        (cost.outer, gpus, phi, exchange_bytes(options), shown),
    ):
        target = node if machine.gpus_per_node is None or size <= machine.gpus_per_node else network
        target[0] += share * traffic.messages
        target[1] += share * traffic.elements * width * (slower if target is network else 1.0)
    waits = gpus if strategy == "data" else 0
    return _terms(request, cost.compute_s + cost.update_s, node, network, gpus, waits)


def _terms(
    request: PredictRequest,
    compute_s: float,
    node: Sequence[float],
    network: Sequence[float],
    gpus: int,
    waits: int,
) -> tuple[float, ...]:
    """Return the seconds of each of ``TERMS``; ``node``, ``network``: messages, bytes; ``waits``: of GPUs."""
    machine, smallest = request.machine, request.measured[0].size if request.measured else 1
    # Blom's approximation (1958, Statistical Estimates and Transformed Beta-Variables), at most 5 % off, of
    # how many standard deviations the largest of that many normal values is above the mean.
    slowest = NormalDist().inv_cdf((waits - 0.375) / (waits + 0.25)) if waits else 0.0
    return (
        compute_s,
        node[0] * machine.node_latency_s.value,
        node[1] / (machine.node_gb_s.value * 1e9),
        network[0] * machine.network_latency_s.value,
        network[1] / (machine.network_gb_s.value * 1e9),
        machine.step_deviation_s.value * slowest,
        compute_s * max(0.0, math.log2(gpus / smallest)),
    )


def _grid_terms(division: Division, request: PredictRequest) -> tuple[float, ...]:
    """Return the seconds of each of ``TERMS`` in a step of 3d."""
    machine = request.machine
    cost = grid_cost(grid_stages(request.model.layers, division.pipeline), division, request.memory, machine)
    node, network = list(cost.node), list(cost.network)
    target = node if machine.gpus_per_node is None or division.p <= machine.gpus_per_node else network
    for place, amount in enumerate(cost.gradients):
        target[place] += (1.0 - machine.overlap.value) * amount
    return _terms(request, cost.compute_s, node, network, division.p, division.p)


def _costs(request: PredictRequest) -> list[strategy_costs.LayerCost]:
    options = request.memory
    micro = max(1.0, request.batch / request.accumulate)
    costs = strategy_costs.layer_costs(
        groups_of(request.model), request.machine, micro, options.slots, options.saved_bytes
    )
    if options.recompute == "full":  # the forward pass is done again before the backward pass
        costs = [cost._replace(bw=cost.bw + cost.fw) for cost in costs]
    return costs


def _point(
    strategy: Strategy, gpus: int, request: PredictRequest, calibration: Calibration
) -> PredictedPoint:
    terms = terms_of(strategy, gpus, request)
    model = calibration.seconds(terms)
    compute = calibration.factors[0] * terms[0] / model
    step, mixture, remarks = _step(gpus, request, calibration, terms, compute)
    seconds = step.value
    division = division_of(strategy, gpus, request)
    need = partial(_need, strategy, gpus, request)
    here = need(request.batch, request.memory)
    room = request.machine.room_gib
    fits = None if room is None else here.total <= room
    epoch = None if request.samples is None else math.ceil(request.samples / division.batch) * seconds
    if (batch := int(division.batch)) > _LARGEST_BATCH and request.samples == _IMAGENET:
        read = f"{_LARGEST_BATCH:,} images to 75.08 % (Yamazaki et al. 2019, ResNet-50)"
        remarks = (*remarks, f"{batch:,} images per step: no paper read trained ImageNet beyond {read}")
    return PredictedPoint(
        strategy=strategy,
        gpus=gpus,
        step_s=step,
        compute_s=compute * seconds,
        communication_s=(1 - compute) * seconds,
        waiting_s=calibration.factors[_WAITING] * terms[_WAITING],
        memory_gib=here.total,
        fits=fits,
        most_gpus=most_of(strategy, request),
        batch=batch,
        samples_per_s=division.batch / seconds,
        epoch_s=epoch,
        cost_per_epoch=_cost(gpus, epoch, request),
        memory=here,
        remedies=() if fits or room is None else what_would_fit(need, request.batch, request.memory, room),
        remarks=remarks,
        mixture=mixture,
    )


_IMAGENET, _LARGEST_BATCH = 1281167, 81920


_WAITING = [*TERMS].index("waiting")


def _step(
    gpus: int, request: PredictRequest, calibration: Calibration, terms: Sequence[float], compute: float
) -> tuple[StepRange, Mixture | None, tuple[str, ...]]:
    """Return the seconds, what they are mixed of, and remarks; ``compute``: its share of the model's step."""
    known = request.measured if calibration.errors else ()
    sizes, seconds = [size.size for size in known], [median(size.seconds) for size in known]
    model, deviation = calibration.seconds(terms), calibration.deviation(terms)
    deviation = math.hypot(deviation, deviation_of_repeats(known))
    shared, remarks = node_sharing(gpus, request.machine, sizes, compute)
    largest = max(sizes, default=gpus)
    if gpus > LIMIT.far * largest:
        far = f"{gpus} GPUs are {gpus / largest:.3g} times the largest measured size, {largest}"
        remarks = (*remarks, far)
    if len(sizes) < 2:
        wide = 1 + LIMIT.range * math.hypot(deviation, LIMIT.known_error, shared)
        return StepRange(value=model, low=model / wide, high=model * wide), None, remarks
    mixture = Mixture(
        model=model,
        naive=naive_fit(sizes, seconds, gpus),
        carry_on=seconds[-1],
        place=place_of(gpus, largest, request.machine.gpus_per_node),
        deviation=deviation,
    )
    return learned_range(mixture), mixture, remarks


def _need(
    strategy: Strategy, gpus: int, request: PredictRequest, batch: int, options: MemoryOptions
) -> MemoryNeed:
    other = msgspec.structs.replace(request, batch=batch)
    division = division_of(strategy, gpus, other)
    stages: Sequence[Sequence[Layer]] = [request.model.layers]
    if strategy == "3d":
        stages = grid_stages(request.model.layers, request.pipeline)
    if strategy == "pipeline":
        left = iter(groups_of(request.model))
        parts = strategy_costs.balanced_stages(_costs(other), gpus)
        stages = [list(chain.from_iterable(islice(left, len(part)))) for part in parts]
    return memory_need(strategy, stages, division, options)


def _cost(gpus: int, epoch_s: float | None, request: PredictRequest) -> float | None:
    per_node = request.machine.gpus_per_node
    if epoch_s is None or request.node_hour is None or per_node is None:
        return None
    return math.ceil(gpus / per_node) * epoch_s / 3600 * request.node_hour


def _calibrated(strategy: Strategy, request: PredictRequest) -> tuple[Calibration, CalibrationReport]:
    for size in request.measured:
        if why := why_impossible(strategy, size.size, request):
            raise BadInputError(f"--calibrate: {size.size} GPUs in {strategy}: {why}")
    terms = [terms_of(strategy, size.size, request) for size in request.measured]
    seconds = [median(size.seconds) for size in request.measured]
    uncertainties = _uncertainties(strategy, request.machine, terms, seconds)
    found = calibrate(terms, seconds, uncertainties, deviation_of_repeats(request.measured))
    errors = {str(size.size): error for size, error in zip(request.measured, found.errors, strict=True)}
    remarks = [
        f"{gpus} GPUs were measured {error:+.0%} of what the model gives: this size does not fit"
        for gpus, error in errors.items()
        if abs(error) > LIMIT.does_not_fit
    ]
    remarks += _implausible(found, terms, seconds, request)
    remarks += [note_text("predict: one size")] * (len(seconds) == 1)
    remarks += [note_text("predict: one strategy", strategy=strategy)] * (len(request.strategies) > 1)
    return found, CalibrationReport(strategy=strategy, errors=errors, remarks=tuple(remarks))


def _implausible(
    found: Calibration, terms: Sequence[Sequence[float]], seconds: Sequence[float], request: PredictRequest
) -> list[str]:
    """Return what is odd about the repeats, and about the measured level as a whole."""
    differences = [(size.size, max(size.seconds) / min(size.seconds)) for size in request.measured]
    remarks = [
        f"the repeats of {size} GPUs differ by a factor of {times:.3g}: a wider range"
        for size, times in differences
        if times > LIMIT.repeats
    ]
    machine = request.machine
    batch = counted(request.batch, "sample")
    doubt = f"are these seconds per step, of {request.model.name} with {batch} per worker?"
    times = min(measured / sum(size[:-1]) for size, measured in zip(terms, seconds, strict=True))
    if times > LIMIT.other_unit:
        remarks.append(f"the measured sizes took at least {times:,.0f} times what the origins give: {doubt}")
    share = _divided(machine.gpu_share.value, found.factors[0])
    if machine.gpu_tflops.origin.startswith("data sheet") and found.determined[0] and share > 1:
        faster = f"the measured sizes are {share:,.3g} times as fast as the data sheet of the GPU allows"
        remarks.append(f"{faster}: {doubt} Or is it another --precision?")
    return remarks


def _measured_alone(machine: Machine) -> list[str]:
    """Return the links measured alone: what a training shows less of them, the computation hides."""
    links = (machine.node_gb_s, machine.network_gb_s)
    return [] if machine.overlap.value else [one.name for one in links if one.origin.startswith("measured")]


def _calibrated_parameters(
    machine: Machine, calibration: Calibration, report: CalibrationReport
) -> tuple[Parameter, ...]:
    """Return the parameters with those changed that the measured sizes determine."""
    found = zip(TERMS, calibration.factors, calibration.determined, strict=True)
    seen = len(TERMS) - (len(report.errors) == 1)  # one time shows no growth, the last term
    changed = {TERMS[term]: factor for term, factor, known in list(found)[:seen] if known}
    alone = [changed.pop(name) for name in _measured_alone(machine) if name in changed]
    values = {name: _changed(getattr(machine, name), factor) for name, factor in changed.items()}
    if "growth" in values:
        values["growth"] = changed["growth"] / calibration.factors[0]
    if alone:
        values["overlap"] = max(0.0, 1 - min(alone))
    method = f"calibrated: {report.strategy} on {', '.join(report.errors)} GPUs"
    for name, value in values.items():
        one: Parameter = getattr(machine, name)
        changes = {"value": value, "origin": f"{method} (before: {one.origin})"}
        machine = msgspec.structs.replace(machine, **{name: msgspec.structs.replace(one, **changes)})
    return machine.parameters()


def _changed(one: Parameter, factor: float) -> float:
    return one.value * factor if one.unit == "s" else _divided(one.value, factor)


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
        order, pairs = rank({point.strategy: _per_sample(point) for point in here})
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
