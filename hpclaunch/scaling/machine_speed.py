"""A prediction's parameters with origins: options, the site's profile, data sheets, assumptions. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, text_beside
from hpclaunch.scaling.link_tests import LinkTest
from hpclaunch.scaling.measured_sizes import MeasuredSize
from hpclaunch.site.schema import Link, SiteProfile

Precision = Literal["fp32", "tf32", "bf16"]


class GpuSpeed(NamedTuple):
    """One kind of GPU, as jobs number them: on MI250X and on Max 1550 a half."""

    model: str
    """Regular expression for the profile's ``gpu_model``."""
    tflops: dict[Precision, float]
    """10^12 operations per second, without sparsity."""
    memory_gb_s: float
    source: str


SPEEDS: dict[str, Any] = json.loads(text_beside(__file__, "speeds.json"))
"""Data sheets, measured shares of them, and how often layers read or write."""


def gpu_speed(model: str | None) -> GpuSpeed | None:
    """Return the data sheet's figures for a profile's GPU; None: not in the table."""
    speeds = [GpuSpeed(**row) for row in SPEEDS["gpus"]]
    return next((speed for speed in speeds if re.search(rf"\b{speed.model}\b", model or "")), None)


_DOUBT = package_constants("scaling/constants.yaml", "speeds")

HIDDEN = 0.58
"""Deviation from 1 of the share of an exchange that shows, where between none and all of it does."""
_WORD = package_constants("scaling/forms.yaml", "machine_speed")


class Parameter(msgspec.Struct, frozen=True):
    """One figure with its origin."""

    name: str
    value: float
    unit: str
    origin: str
    uncertainty: float


def _share(model: str, precision: Precision) -> Parameter:
    row = next(one for one in SPEEDS["shares"] if one["gpu"] in (f"{model} {precision}", "any"))
    return Parameter("gpu_share", row["value"], "", row["origin"], row["uncertainty"])


class SpeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that the user sets."""

    tflops: float | None = None
    memory_gb_s: float | None = None
    node_gb_s: float | None = None
    node_latency_us: float | None = None
    network_gb_s: float | None = None
    network_latency_us: float | None = None
    contention: float | None = None
    overlap: float | None = None
    hidden_by_default: float = 0.0
    precision: Precision = "fp32"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """All parameters."""

    gpu_tflops: Parameter
    gpu_share: Parameter
    memory_gb_s: Parameter
    node_latency_s: Parameter
    node_gb_s: Parameter
    network_latency_s: Parameter
    network_gb_s: Parameter
    contention: Parameter
    overlap: Parameter
    growth: Parameter
    step_deviation_s: Parameter
    gpus_per_node: int | None
    room_gib: float | None
    cores: int | None = None

    def why_not_predicted(self, ranks: int) -> str | None:
        """Return why a job whose ranks share cores is not predicted; None: none do."""
        here = min(ranks, self.gpus_per_node or ranks)
        if self.cores is None or here <= self.cores:
            return None
        node = "" if self.gpus_per_node else " (all in one node: --gpus-per-node is not stated)"
        shared = f"{here} ranks share {counted(self.cores, 'core')}{node}"
        return f"{shared}: each step of an exchange waits for the scheduler, by times that no term has"

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters in their order."""
        values = (getattr(self, name) for name in self.__struct_fields__)
        return tuple(value for value in values if isinstance(value, Parameter))


def machine_of(
    profile: SiteProfile, options: SpeedOptions, gpus_per_node: int | None, cores_here: int | None = None
) -> Machine:
    """Return a site's parameters; ``cores_here``: if jobs run here. Raises BadInputError: unknown speed."""
    node, hidden = profile.node, options.hidden_by_default
    usual = Machine(
        **_gpu(profile, options),
        node_latency_s=_latency("node_latency_s"),
        node_gb_s=_node_bandwidth(profile),
        network_latency_s=_latency("network_latency_s"),
        network_gb_s=_network_bandwidth(profile),
        contention=Parameter("contention", 2.0, "", "HPDC 2021, arXiv 2104.09075: hybrids", 0.0),
        overlap=Parameter("overlap", hidden, "", _WORD.overlap[hidden > 0], 0.0),
        growth=Parameter("growth", 0.0, "", _WORD.no_growth, _DOUBT.growth),
        step_deviation_s=Parameter("step_deviation_s", 0.0, "s", _WORD.equally_fast, 0.0),
        gpus_per_node=gpus_per_node or (len(node.gpus) if node and node.gpus else None),
        room_gib=float(node.gpu_memory_gib) if node and node.gpu_memory_gib else None,
        cores=cores_here if node is None else None if node.gpus else node.cores,
    )
    stated = {}
    for option, (name, factor, uncertainty) in _DOUBT.options.items():
        if (value := getattr(options, option)) is not None:
            parameter: Parameter = getattr(usual, name)
            origin = f"option --{option.replace('_', '-')}"
            stated[name] = Parameter(name, value * factor, parameter.unit, origin, uncertainty)
    return msgspec.structs.replace(usual, **stated)


def with_step_deviation(machine: Machine, measured: Sequence[MeasuredSize]) -> Machine:
    """Return the machine with the deviation of the steps on one GPU, or rank, where that was measured."""
    known = [size.deviation_s for size in measured if size.size == 1 and size.deviation_s is not None]
    if not known:
        return machine
    deviation = msgspec.structs.replace(
        machine.step_deviation_s,
        value=known[0],
        origin="measured: steps of one GPU, or rank",
        uncertainty=_DOUBT.deviation,
    )
    return msgspec.structs.replace(machine, step_deviation_s=deviation)


def with_link_test(machine: Machine, test: LinkTest, file: str, message_bytes: float) -> Machine:
    """Return the machine with the link that the test used, at the size of the message."""
    inside = machine.gpus_per_node is None or test.ranks <= machine.gpus_per_node
    where = "node" if inside else "network"
    origin = f"measured: {test.program} on {test.ranks} GPUs, {file}"
    if test.fresh is not None:
        written = "each array newly written" if test.fresh else "one array again and again: without --fresh"
        origin += f", {written}"
    error = _DOUBT.same_array if test.fresh is False else _DOUBT.measured
    latency, bandwidth = f"{where}_latency_s", f"{where}_gb_s"
    at = f"{origin}, at {message_bytes / 1e6:,.4g} MB"
    changes = {
        latency: Parameter(latency, test.latency_s, "s", origin, error),
        bandwidth: Parameter(bandwidth, test.bandwidth_gb_s(message_bytes), "GB/s", at, error),
    }
    return msgspec.structs.replace(machine, **changes)


def _gpu(profile: SiteProfile, options: SpeedOptions) -> dict[str, Parameter]:
    model = profile.node.gpu_model if profile.node else None
    known = gpu_speed(model) or _NOT_LISTED
    peak, sheet = known.tflops.get(options.precision), f"data sheet: {known.source}"
    tflops = Parameter("gpu_tflops", peak or 0.0, "TFLOP/s", sheet, 0.0)
    share = _share(known.model, options.precision)
    if options.tflops is not None:
        tflops = Parameter("gpu_tflops", options.tflops, "TFLOP/s", "option --tflops", _DOUBT.stated)
        share = Parameter("gpu_share", 1.0, "", "--tflops is what training reaches", _DOUBT.stated)
    elif peak is None:
        what = f"of {model} in {options.precision}" if model else "of its processors"
        raise _not_known(profile, what, "--tflops T --memory-gb-s G")
    if known is _NOT_LISTED and options.memory_gb_s is None:
        raise _not_known(profile, "of the memory", "--memory-gb-s G")
    memory = Parameter("memory_gb_s", known.memory_gb_s, "GB/s", sheet, 0.0)
    return {"gpu_tflops": tflops, "gpu_share": share, "memory_gb_s": memory}


_NOT_LISTED = GpuSpeed("", {}, 0.0, "")


def _not_known(profile: SiteProfile, what: str, options: str) -> BadInputError:
    problem = f"site {profile.name}: the speed {what} is not known"
    return BadInputError(problem, f"state what one GPU, or rank, reaches: {options}")


def _latency(name: str) -> Parameter:
    origin = "assumed: the start-up of NCCL on ABCI, arXiv 2104.09075; NCCL's own tables have 3 to 14 us"
    return Parameter(name, 2e-5, "s", origin, _DOUBT.data_sheet)


def _linked(name: str, link: Link, what: str) -> Parameter:
    source = f", source {link.source}" if link.source else ""
    origin = f"profile: {link.kind or 'a link'}, {what}{source}"
    return Parameter(name, link.gb_s, "GB/s", origin, _DOUBT.data_sheet)


def _node_bandwidth(profile: SiteProfile) -> Parameter:
    if link := profile.links.gpu_gpu:
        return _linked("node_gb_s", link, "between two GPUs")
    origin = "assumed: the profile does not state the links of a node"
    return Parameter("node_gb_s", 50, "GB/s", origin, _DOUBT.data_sheet)


def _network_bandwidth(profile: SiteProfile) -> Parameter:
    """Return what was measured at the site, or is usual for its kind of network."""
    name, unit, fabric = "network_gb_s", "GB/s", profile.fabric
    between = [figure for figure in fabric.allreduce if figure.nodes > 1]
    if between:
        best = max(between, key=lambda figure: figure.message_bytes)
        source = f", source {best.source}" if best.source else ""
        origin = f"profile: bus bandwidth measured on {best.nodes} nodes{source}"
        return Parameter(name, best.bus_gb_s, unit, origin, _DOUBT.measured)
    if link := profile.links.nic:
        return _linked(name, link, "one NIC")
    value, kind = _WORD.usual_gb_s.get(fabric.kind, (12.5, "no figure for this network"))
    return Parameter(name, value, unit, f"assumed: {kind}", _DOUBT.data_sheet)


def node_sharing(
    gpus: int, machine: Machine, measured: Sequence[int], compute_share: float
) -> tuple[float, tuple[str, ...]]:
    """Return the relative deviation that sharing adds to a step of that many GPUs, or ranks, and remarks.

    ``measured``: sizes of the calibration, empty without; ``compute_share``: of the step.
    """
    per_node = machine.gpus_per_node
    here = min(gpus, per_node or gpus)
    most = max((min(size, per_node or size) for size in measured), default=here)
    if here <= most:
        return 0.0, ()
    why = "they share memory and power: measure a size that fills a node"
    remark = f"{here} in a node, but at most {most} when it was measured; {why}"
    return _DOUBT.neighbours * compute_share, (remark,)
