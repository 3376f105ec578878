"""Ranges compared with measured curves: how often they hold, how wide they are, ours and three others.

    HPCLAUNCH_TEST_CAPTURES=shared/captures python benchmarks/ranges.py [--cases FILE]

A case: the first two or more sizes of a curve calibrate, a later one is predicted. Each curve counts as one,
its cases share that. With ours: a naive fit (a + b log2 p), Amdahl's law (a step
of growing work takes a + b p) and carrying on (the time of the largest measured size). What a range is
learned from is without the curve that is judged (leave one out), then without its source.
Curves: of the shared captures, and benchmarks/data/scaling_curves.json. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import pstdev
from typing import Any, NamedTuple

import msgspec

from hpclaunch.cli.predict import model_named
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import resource_dir
from hpclaunch.scaling.learned_range import Learned, Mixture, Place, StepRange, learned_range, naive_fit
from hpclaunch.scaling.machine_speed import SpeedOptions, machine_of
from hpclaunch.scaling.measured_sizes import MeasuredSize
from hpclaunch.scaling.model_table import Model
from hpclaunch.scaling.prediction import PredictRequest, predict_all
from hpclaunch.scaling.scaling_laws import estimate, fitted_law
from hpclaunch.scaling.study_table import Kind, study_points
from hpclaunch.site.load_profile import load_site

DISTANCES = ((1, 2), (2, 4), (4, math.inf))
"""Of the predicted size, in multiples of the largest measured one."""


class Curve(NamedTuple):
    """Measured seconds per step by number of GPUs."""

    name: str
    source: str
    kind: str
    """Of program: network and strategy."""
    seconds: dict[int, float]
    request: PredictRequest


class Case(NamedTuple):
    """One prediction that can be judged."""

    curve: str
    source: str
    kind: str
    weight: float
    sizes: tuple[int, ...]
    """Measured."""
    seconds: tuple[float, ...]
    gpus: int
    """Predicted."""
    measured: float
    value: float
    low: float
    high: float
    three: Mixture | None
    """None: one size was measured."""

    @property
    def mixture(self) -> Mixture:
        """Model, naive fit and carrying on."""
        assert self.three
        return self.three

    @property
    def distance(self) -> float:
        """The predicted size by the largest measured one."""
        return self.gpus / self.sizes[-1]


_TOKENS = 128
"""Of BERT, assumed: those of the first phase of its training. DLPerf's report does not state them."""


def network(name: str) -> Model | None:
    """A table of the package; None where there is none of that name."""
    try:
        return model_named(name, _TOKENS if name.startswith("bert") else None)
    except BadInputError:
        return None


def curve(
    name: str, source: str, strategy: Any, model: str, batch: int, speeds: dict[str, Any], seconds: Any
) -> Curve | None:
    """A curve, or None for a network that cannot be expressed."""
    table = network(model)
    if table is None:
        return None
    per_node = int(speeds.pop("gpus_per_node"))
    machine = machine_of(load_site("local"), SpeedOptions(**speeds), per_node)
    request = PredictRequest(
        model=table,
        machine=machine,
        batch=batch,
        gpus_per_worker=4,
        gpus=(1,),
        strategies=(strategy,),
    )
    kind = "transformer" if model.startswith(("bert", "gpt", "llama")) else "convolutions"
    times = {int(gpus): float(value) for gpus, value in seconds.items()}
    return Curve(name, source, f"{kind}, {strategy}", times, request)


V100 = {"tflops": 12.3, "memory_gb_s": 707, "node_gb_s": 40, "network_gb_s": 12.5}


def captured(folder: Path) -> list[Curve | None]:
    """The curves of the shared captures: ABCI, and public pages."""
    abci = json.loads((folder / "abci.json").read_text())
    found = []
    for strategy, networks in abci["s_per_iteration"].items():
        for short, times in networks.items():
            model = {"vgg": "vgg16", "resnet": "resnet50"}[short]
            seconds = {gpus: facts["min_s"] for gpus, facts in times.items()}
            machine = {**V100, "gpus_per_node": 4}
            batch = abci["images_per_worker"][short]
            found.append(curve(f"abci {model} {strategy}", "ABCI", strategy, model, batch, machine, seconds))
    speeds = {
        "V100": V100,
        "P100": {"tflops": 6.4, "memory_gb_s": 430, "node_gb_s": 20, "network_gb_s": 12.5},
        "K80": {"tflops": 2.6, "memory_gb_s": 144, "node_gb_s": 10, "network_gb_s": 1.25},
    }
    for one in json.loads((folder / "published.json").read_text())["curves"]:
        source = "DLPerf" if one["id"].startswith("dlperf") else "TensorFlow"
        machine = {**speeds[one["gpu"]], "gpus_per_node": one["gpus_per_node"]}
        found.append(
            curve(
                one["id"],
                source,
                "data",
                one["model"],
                one["batch"],
                machine,
                step_seconds(one, "images_per_s"),
            )
        )
    return found


def step_seconds(one: dict[str, Any], rates: str) -> dict[str, float]:
    """Seconds per step of a curve that states samples per second."""
    return {gpus: int(gpus) * one["batch"] / rate for gpus, rate in one[rates].items()}


def added() -> list[Curve | None]:
    """The curves that were read on public pages for this."""
    file = Path(__file__).parent / "data" / "scaling_curves.json"
    found = []
    for group in json.loads(file.read_text())["groups"]:
        for one in group["curves"]:
            machine = {**group["machine"], "gpus_per_node": group["gpus_per_node"]}
            seconds = step_seconds(one, "samples_per_s")
            source = group["name"]
            found.append(curve(one["id"], source, "data", one["model"], one["batch"], machine, seconds))
    return found


def cases_of(one: Curve, least: int = 2, most: int = 99) -> list[Case]:
    """All prefixes of ``least`` sizes and more, all later sizes."""
    sizes = sorted(one.seconds)
    pairs = [(known, gpus) for known in range(least, min(most + 1, len(sizes))) for gpus in sizes[known:]]
    found = []
    for known, gpus in pairs:
        measured = tuple(MeasuredSize(size=size, seconds=(one.seconds[size],)) for size in sizes[:known])
        request = msgspec.structs.replace(one.request, gpus=(gpus,), measured=measured)
        (point,) = predict_all(request).points
        step = point.step_s
        known_seconds = tuple(size.seconds[0] for size in measured)
        found.append(
            Case(
                *(one.name, one.source, one.kind, 1 / len(pairs)),
                *(tuple(sizes[:known]), known_seconds, gpus, one.seconds[gpus]),
                *(step.value, step.low, step.high, point.mixture),
            )
        )
    return found


def amdahl(case: Case) -> float:
    """a + b p by relative least squares: of a step whose work grows with p the law's serial part is b."""
    return naive_fit([2**size for size in case.sizes], case.seconds, 2**case.gpus)


def naive(case: Case) -> float:
    """a + b log2 p."""
    return case.mixture.naive


def carry_on(case: Case) -> float:
    """The time of the largest measured size."""
    return case.seconds[-1]


RIVALS: dict[str, Callable[[Case], float]] = {"naive fit": naive, "Amdahl": amdahl, "carry on": carry_on}


def deviation(case: Case, floor: float, apart: float) -> float:
    """The relative deviation of `hpclaunch.scaling.learned_range`."""
    return math.hypot(case.mixture.deviation, floor, apart * pstdev(case.mixture.logarithms()))


def rounded(value: Any) -> Any:
    """The same with four digits, so that the file changes only where what was learned does."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def best_mixture(known: Sequence[Case]) -> Place:
    """The shares of model, naive fit and carrying on, in tenths, with the least mean error."""
    total = sum(case.weight for case in known)
    facts = [(case.weight / total, math.log(case.measured), case.mixture.logarithms()) for case in known]
    tenths = [(a / 10, b / 10, (10 - a - b) / 10) for a in range(11) for b in range(11 - a)]

    def error(shares: tuple[float, float, float]) -> float:
        return math.fsum(w * abs(y - sum(map(operator.mul, shares, logs))) for w, y, logs in facts)

    one, two, three = (error(alone) for alone in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    best = min(tenths, key=lambda shares: (error(shares), -shares[0]))
    return Place(curves=len({case.curve for case in known}), errors=(one, two, three), shares=best)


def learn(known: Sequence[Case]) -> Learned:
    """What `learned_range.json` has: the mixture by place, the most likely deviation, its quantiles."""
    names = dict.fromkeys(case.mixture.place for case in known)
    places = {name: best_mixture([case for case in known if case.mixture.place == name]) for name in names}
    found = Learned(
        what="learned from published curves: benchmarks/ranges.py --learn",
        curves=len({case.curve for case in known}),
        sources=len({case.source for case in known}),
        predictions=len(known),
        **{"floor": 0.0, "apart": 0.0, "low": 0.0, "high": 0.0},
        places=places,
    )
    errors = [math.log(case.measured / learned_range(case.mixture, found).value) for case in known]
    weights, best = [case.weight for case in known], (math.inf, 0.0, 0.0)
    for floor in (0.002 * 1.5**n for n in range(10)):
        for apart in (0.1 * 1.25**n for n in range(20)):
            loss = 0.0
            for case, error in zip(known, errors, strict=True):
                wide = deviation(case, floor, apart)
                loss += case.weight * (math.log(wide) + 2.5 * math.log1p((error / wide) ** 2 / 4))
            best = min(best, (loss, floor, apart))
    _, floor, apart = best
    scaled = [error / deviation(case, floor, apart) for case, error in zip(known, errors, strict=True)]
    low, high = quantile(scaled, weights, 0.05), quantile(scaled, weights, 0.95)
    return msgspec.structs.replace(found, floor=floor, apart=apart, low=low, high=high)


class Judged(NamedTuple):
    """A case with a value and a range for it."""

    case: Case
    value: float
    low: float
    high: float


def quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """Where that share of the weights lies below."""
    order = sorted(zip(values, weights, strict=True))
    total, below = sum(weights), 0.0
    for value, weight in order:
        below += weight
        if below >= share * total:
            return value
    return order[-1][0]


def rival_range(value: Callable[[Case], float], known: Sequence[Case]) -> tuple[float, float, float, float]:
    """Floor and growth per doubling of the relative deviation, and its lower and upper quantiles of 5 %.

    The most likely ones by Student's t with 4 degrees of freedom, which single far misses do not rule.
    """
    facts = [(math.log2(c.distance), math.log(c.measured / value(c)), c.weight) for c in known]
    best = (math.inf, 0.0, 0.0)
    for floor in (0.01 * 1.3**n for n in range(14)):
        for slope in (0.0, *(0.005 * 1.5**n for n in range(12))):
            loss = 0.0
            for doublings, error, weight in facts:
                variance = floor**2 + (slope * doublings) ** 2
                loss += weight * (0.5 * math.log(variance) + 2.5 * math.log1p(error**2 / variance / 4))
            best = min(best, (loss, floor, slope))
    _, floor, slope = best
    scaled = [error / math.hypot(floor, slope * doublings) for doublings, error, _ in facts]
    weights = [weight for *_, weight in facts]
    return floor, slope, quantile(scaled, weights, 0.05), quantile(scaled, weights, 0.95)


def left_out(cases: Sequence[Case], value: Callable[[Case], float], by: str) -> list[Judged]:
    """Each case with the range that is learned without its ``curve`` or ``source``."""
    found = []
    for group in dict.fromkeys(getattr(case, by) for case in cases):
        known = [case for case in cases if getattr(case, by) != group]
        floor, slope, low, high = rival_range(value, known)
        for case in cases:
            if getattr(case, by) == group:
                wide, middle = math.hypot(floor, slope * math.log2(case.distance)), value(case)
                found.append(
                    Judged(case, middle, middle * math.exp(low * wide), middle * math.exp(high * wide))
                )
    return found


def ours_left_out(cases: Sequence[Case], by: str) -> list[Judged]:
    """Each case with the value and the range that are learned without its ``curve`` or ``source``."""
    found = []
    for group in dict.fromkeys(getattr(case, by) for case in cases):
        learned = learn([case for case in cases if getattr(case, by) != group])
        for case in cases:
            if getattr(case, by) == group:
                step = learned_range(case.mixture, learned)
                found.append(Judged(case, step.value, step.low, step.high))
    return found


def row(name: str, judged: Sequence[Judged], distance: tuple[float, float]) -> str:
    """One line of the table: hold rate, interval score, median width, error."""
    some = [one for one in judged if distance[0] < one.case.distance <= distance[1]]
    total = sum(one.case.weight for one in some)
    inside = [one for one in some if one.low <= one.case.measured <= one.high]
    hold = sum(one.case.weight for one in inside) / total
    score = error = 0.0
    for one in some:
        y, low, high = math.log(one.case.measured), math.log(one.low), math.log(one.high)
        outside = max(0.0, low - y) + max(0.0, y - high)
        score += one.case.weight * (high - low + 20 * outside) / total
        error += one.case.weight * abs(math.log(one.value) - y) / total
    width = quantile([one.high / one.low for one in some], [one.case.weight for one in some], 0.5)
    figures = f"{len(inside)} of {len(some)} | {hold:.0%} | {score:.2f} | {width:.2f} | {error:.1%}"
    span = (
        "all"
        if distance == (0, math.inf)
        else f"{distance[0]:g} to {distance[1]:g}"
        if distance[1] < math.inf
        else f"above {distance[0]:g}"
    )
    return f"| {name} | {span} | {figures} |"


def table(rows: dict[str, list[Judged]]) -> list[str]:
    """The lines of a table by distance."""
    lines = ["| | times as far | in range | hold rate | interval score | median width | error |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for low, high in ((0, math.inf), *DISTANCES):
        if any(low < one.case.distance <= high for judged in rows.values() for one in judged):
            lines += [row(name, judged, (low, high)) for name, judged in rows.items()]
    return lines


def main() -> None:
    """Predict, judge, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--learn", action="store_true", help="write hpclaunch/scaling/learned_range.json")
    options = parser.parse_args()
    place = os.environ.get("HPCLAUNCH_TEST_CAPTURES")
    if not place:
        sys.exit("state where the captures are: HPCLAUNCH_TEST_CAPTURES=FOLDER")
    every = [one for one in (*captured(Path(place) / "scaling"), *added()) if one]
    curves = [one for one in every if not one.kind.startswith("transformer")]
    cases = [case for one in curves for case in cases_of(one)]
    sources = len({one.source for one in curves})
    if options.learn:
        file = resource_dir("scaling") / "learned_range.json"
        file.write_bytes(
            msgspec.json.format(json.dumps(rounded(msgspec.to_builtins(learn(cases)))).encode()) + b"\n"
        )
        print(f"{file.name}: written")
        return
    print(f"{len(curves)} curves of {sources} sources, {len(cases)} predictions; ranges of 90 %")
    for by in ("curve", "source"):
        print(f"\nOne {by} left out at a time:\n")
        rows = {"ours": ours_left_out(cases, by)}
        rows |= {name: left_out(cases, value, by) for name, value in RIVALS.items()}
        print("\n".join(table(rows)), flush=True)
    print("\nOne measured size, as printed:\n")
    alone = [case for one in curves for case in cases_of(one, 1, 1)]
    print("\n".join(table({"ours": [Judged(case, case.value, case.low, case.high) for case in alone]})))
    print("\nTransformers, from which nothing was learned:\n")
    unseen = [case for one in every if one not in curves for case in cases_of(one)]
    judged = [Judged(case, *_ends(learned_range(case.mixture))) for case in unseen]
    print("\n".join(table({"ours": judged})))
    print("\nThe laws of `scale`, from three sizes on:\n")
    print("\n".join(table(laws(curves, Path(place) / "scaling"))))
    print("\nError by where the size lies, the model alone, naive fit, carrying on, and the mixture:\n")
    for name, one in learn(cases).places.items():
        shares = " + ".join(
            f"{share:.1f} {what}" for share, what in zip(one.shares, THREE, strict=True) if share
        )
        errors = " | ".join(f"{error:.1%}" for error in one.errors)
        print(f"| {name} | {one.curves} | {errors} | {shares} |")


def _ends(step: StepRange) -> tuple[float, float, float]:
    return step.value, step.low, step.high


def law_cases(name: str, seconds: dict[int, float], kind: Kind) -> list[Judged]:
    """The estimates of ``scale`` from the first three sizes or more of a curve for the later ones."""
    sizes = sorted(seconds)
    measured = [MeasuredSize(size=size, seconds=(seconds[size],)) for size in sizes]
    points = study_points(tuple(measured), kind, "gpus")
    pairs = [(known, size) for known in range(3, len(sizes)) for size in sizes[known:]]
    found = []
    for known, size in pairs:
        law = fitted_law(points[:known], kind)
        assert law
        one = estimate(law, points[:known], kind, size)
        facts = (1 / len(pairs), tuple(sizes[:known]), (), size, seconds[size])
        case = Case(name, name.split()[0], kind, *facts, one.step_s, one.low, one.high, None)
        found.append(Judged(case, one.step_s, one.low, one.high))
    return found


def laws(curves: Sequence[Curve], folder: Path) -> dict[str, list[Judged]]:
    """Those of all curves: weak ones, and the strong ones of the ALCF workshop."""
    found = [one for curve in curves for one in law_cases(curve.name, curve.seconds, "weak")]
    strong: list[Judged] = []
    for name, facts in json.loads((folder / "alcf.json").read_text()).items():
        times = {int(size): float(value) for size, value in facts["seconds"].items()}
        strong += law_cases(name, times, "strong")
    return {"weak": found, "strong (ALCF workshop)": strong}


THREE = ("model", "naive fit", "carrying on")


if __name__ == "__main__":
    main()
