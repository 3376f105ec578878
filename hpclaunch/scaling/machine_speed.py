"""The parameters of a prediction with their origins: options, the site's profile, data sheets, assumptions.

Pure.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_table
from hpclaunch.plural import counted
from hpclaunch.scaling.link_tests import LinkTest
from hpclaunch.scaling.measured_sizes import MeasuredSize
from hpclaunch.site.schema import Link, SiteProfile

Precision = Literal["fp32", "tf32", "bf16"]


_STATED = 0.1
"""Relative uncertainty of a value that the user states."""
_MEASURED = 0.3
_SAME_ARRAY = 1.0
"""Of a test on this processor that sums one array again and again: its memory is then in the caches of the
ranks. Summing arrays that were just written takes 1.3 to 3 times as long (docs/explanation/measured.md)."""
_DATA_SHEET = 1.0
"""Relative uncertainty of a link's speed: programs reach a third of the data sheet, or all of it."""


_EQUALLY_FAST = "not measured: all GPUs are taken to be equally fast in every step"
_DEVIATION = 1.0
"""Delays that all ranks have at the same moment make none of them wait; rare long ones are not normal."""


class Parameter(msgspec.Struct, frozen=True):
    """One figure with its origin."""

    name: str
    value: float
    unit: str
    origin: str
    uncertainty: float
    """Relative standard deviation."""


class GpuSpeed(msgspec.Struct, frozen=True):
    """The data sheet of one kind of GPU, and what was measured of it, as ``gpu_speeds.yaml`` explains."""

    model: str
    """Regular expression for the profile's ``gpu_model``."""
    tflops: dict[Precision, float]
    memory_gb_s: float
    source: str
    measured: dict[Precision, Parameter] = {}


def gpu_speed(model: str | None) -> GpuSpeed | None:
    """Return the row of a profile's GPU; None: it is not in the table."""
    known = msgspec.convert(package_table("scaling/gpu_speeds.yaml"), tuple[GpuSpeed, ...])
    return next((speed for speed in known if re.search(rf"\b{speed.model}\b", model or "")), None)


ASSUMED_SHARE = Parameter(
    "gpu_share", 0.6, "", "assumed: half to three quarters of the data sheet is usual", 0.35
)


class SpeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that the user sets."""

    tflops: float | None = None
    """Speed of one GPU, or rank."""
    memory_gb_s: float | None = None
    node_gb_s: float | None = None
    node_latency_us: float | None = None
    network_gb_s: float | None = None
    network_latency_us: float | None = None
    contention: float | None = None
    overlap: float = 0.0
    precision: Precision = "fp32"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """All parameters."""

    gpu_tflops: Parameter
    gpu_share: Parameter
    """Share of ``gpu_tflops`` and ``memory_gb_s`` that training reaches."""
    memory_gb_s: Parameter
    node_latency_s: Parameter
    node_gb_s: Parameter
    network_latency_s: Parameter
    network_gb_s: Parameter
    contention: Parameter
    """phi: by what the exchange between the workers of a hybrid is slowed down by those next to it."""
    overlap: Parameter
    """Share of the exchange of gradients that the computation hides."""
    step_deviation_s: Parameter
    """Standard deviation of single steps on one GPU: the slowest of all sets the pace."""
    gpus_per_node: int | None
    """None: one node."""
    room_gib: float | None
    """Memory of one GPU; None: unknown."""
    cores: int | None = None
    """Of a node whose ranks compute on them; None: they compute on GPUs, or unknown."""

    def ranks_per_core(self, gpus: int) -> float:
        """Return how many ranks share a core, 1 where none do; ``gpus``: GPUs, or ranks, of the job."""
        return max(1.0, min(gpus, self.gpus_per_node or gpus) / self.cores) if self.cores else 1.0

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters in their order."""
        values = (getattr(self, name) for name in self.__struct_fields__)
        return tuple(value for value in values if isinstance(value, Parameter))


def machine_of(
    profile: SiteProfile, options: SpeedOptions, gpus_per_node: int | None, cores_here: int | None = None
) -> Machine:
    """Return the parameters of a site; ``cores_here``: of this machine, where jobs run on it.

    Raises BadInputError where a speed is not known from anywhere.
    """
    node = profile.node
    per_node = gpus_per_node or (len(node.gpus) if node and node.gpus else None)
    hidden = "option --overlap" if options.overlap else "assumed: the exchange follows the computation"
    contention = Parameter("contention", 2.0, "", "HPDC 2021, arXiv 2104.09075: hybrids", 0.0)
    if options.contention is not None:
        contention = Parameter("contention", options.contention, "", "option --contention", 0.0)
    tflops, share, memory = _gpu(profile, options)
    return Machine(
        gpu_tflops=tflops,
        gpu_share=share,
        memory_gb_s=memory,
        node_latency_s=_latency("node_latency_s", options.node_latency_us, 2e-5),
        node_gb_s=_node_bandwidth(profile, options),
        network_latency_s=_latency("network_latency_s", options.network_latency_us, 2e-5),
        network_gb_s=_network_bandwidth(profile, options),
        contention=contention,
        overlap=Parameter("overlap", options.overlap, "", hidden, 0.0),
        step_deviation_s=Parameter("step_deviation_s", 0.0, "s", _EQUALLY_FAST, 0.0),
        gpus_per_node=per_node,
        room_gib=float(node.gpu_memory_gib) if node and node.gpu_memory_gib else None,
        cores=cores_here if node is None else None if node.gpus else node.cores,
    )


def with_step_deviation(machine: Machine, measured: Sequence[MeasuredSize]) -> Machine:
    """Return the machine with the deviation of the steps on one GPU, or rank, where that was measured."""
    known = [size.deviation_s for size in measured if size.size == 1 and size.deviation_s is not None]
    if not known:
        return machine
    deviation = msgspec.structs.replace(
        machine.step_deviation_s,
        value=known[0],
        origin="measured: steps of one GPU, or rank",
        uncertainty=_DEVIATION,
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
    error = _SAME_ARRAY if test.fresh is False else _MEASURED
    latency, bandwidth = f"{where}_latency_s", f"{where}_gb_s"
    at = f"{origin}, at {message_bytes / 1e6:,.4g} MB"
    changes = {
        latency: Parameter(latency, test.latency_s, "s", origin, error),
        bandwidth: Parameter(bandwidth, test.bandwidth_gb_s(message_bytes), "GB/s", at, error),
    }
    return msgspec.structs.replace(machine, **changes)


def _stated(name: str, value: float, unit: str, option: str) -> Parameter:
    return Parameter(name, value, unit, f"option {option}", _STATED)


def _gpu(profile: SiteProfile, options: SpeedOptions) -> tuple[Parameter, Parameter, Parameter]:
    """Return speed, share and memory bandwidth of one GPU."""
    model = profile.node.gpu_model if profile.node else None
    known = gpu_speed(model)
    peak = known.tflops.get(options.precision) if known else None
    share = (known.measured if known else {}).get(options.precision, ASSUMED_SHARE)
    if options.tflops is not None:
        tflops = _stated("gpu_tflops", options.tflops, "TFLOP/s", "--tflops")
        share = Parameter("gpu_share", 1.0, "", "--tflops is what training reaches", _STATED)
    elif known is None or peak is None:
        what = f"of {model} in {options.precision}" if model else "of its processors"
        raise BadInputError(
            f"site {profile.name}: the speed {what} is not known",
            "state what one GPU, or rank, reaches: --tflops T --memory-gb-s G",
        )
    else:
        tflops = Parameter("gpu_tflops", peak, "TFLOP/s", f"data sheet: {known.source}", 0.0)
    if options.memory_gb_s is not None:
        memory = _stated("memory_gb_s", options.memory_gb_s, "GB/s", "--memory-gb-s")
    elif known is None:
        raise BadInputError(
            f"site {profile.name}: the speed of the memory is not known",
            "state what one GPU, or rank, reaches: --memory-gb-s G",
        )
    else:
        origin = f"data sheet: {known.source}"
        memory = Parameter("memory_gb_s", known.memory_gb_s, "GB/s", origin, 0.0)
    return tflops, share, memory


def _latency(name: str, option_us: float | None, usual_s: float) -> Parameter:
    if option_us is not None:
        return _stated(name, option_us * 1e-6, "s", f"--{name.removesuffix('_s').replace('_', '-')}-us")
    origin = "assumed: the start-up of NCCL on ABCI, arXiv 2104.09075; NCCL's own tables have 3 to 14 us"
    return Parameter(name, usual_s, "s", origin, _DATA_SHEET)


def _linked(name: str, link: Link, what: str) -> Parameter:
    source = f", source {link.source}" if link.source else ""
    origin = f"profile: {link.kind or 'a link'}, {what}{source}"
    return Parameter(name, link.gb_s, "GB/s", origin, _DATA_SHEET)


def _node_bandwidth(profile: SiteProfile, options: SpeedOptions) -> Parameter:
    """Return the bandwidth between GPUs of a node: stated, the profile's link, or assumed."""
    if options.node_gb_s is not None:
        return _stated("node_gb_s", options.node_gb_s, "GB/s", "--node-gb-s")
    if link := profile.links.gpu_gpu:
        return _linked("node_gb_s", link, "between two GPUs")
    origin = "assumed: the profile does not state the links of a node"
    return Parameter("node_gb_s", 50, "GB/s", origin, _DATA_SHEET)


_USUAL_GB_S = {"slingshot-11": (25.0, "200 Gbit/s per card"), "infiniband": (12.5, "EDR, 100 Gbit/s")}


def _network_bandwidth(profile: SiteProfile, options: SpeedOptions) -> Parameter:
    """Return the bandwidth between nodes: stated, measured at the site, or usual for its kind."""
    name, unit, fabric = "network_gb_s", "GB/s", profile.fabric
    if options.network_gb_s is not None:
        return _stated(name, options.network_gb_s, unit, "--network-gb-s")
    between = [figure for figure in fabric.allreduce if figure.nodes > 1]
    if between:
        best = max(between, key=lambda figure: figure.message_bytes)
        source = f", source {best.source}" if best.source else ""
        origin = f"profile: bus bandwidth measured on {best.nodes} nodes{source}"
        return Parameter(name, best.bus_gb_s, unit, origin, _MEASURED)
    if link := profile.links.nic:
        return _linked(name, link, "one NIC")
    value, kind = _USUAL_GB_S.get(fabric.kind, (12.5, "no figure for this network"))
    return Parameter(name, value, unit, f"assumed: {kind}", _DATA_SHEET)


_SHARED_CORES = 0.5
"""Relative deviation where ranks share cores: a rank of an exchange waits until the scheduler gives a core to
its neighbour. Four ranks on two cores took 0.9 and 1.15 times the formulas (docs/explanation/measured.md),
and up to 1.8 times in earlier runs."""
_NEIGHBOURS = 0.15
"""Relative deviation of the computation where a node has more GPUs, or ranks, at work than any measured size
had. On ABCI VGG16 took 1.13 times the model on the 4 GPUs of a node (public logs of arXiv 2104.09075), the
bundled training 1.2 times on two cores (docs/explanation/measured.md)."""


class Sharing(NamedTuple):
    """The uncertainty of a step that sharing adds."""

    deviation: float = 0.0
    """Relative, of the step."""
    remarks: tuple[str, ...] = ()


def node_sharing(gpus: int, machine: Machine, measured: Sequence[int], compute_share: float) -> Sharing:
    """Return what is unknown of a job on that many GPUs, or ranks.

    ``measured``: sizes of the calibration, empty without; ``compute_share``: of the step.
    """
    per_node = machine.gpus_per_node
    here = min(gpus, per_node or gpus)
    times = machine.ranks_per_core(gpus)
    if times > 1:
        node = "" if per_node else " (all in one node: --gpus-per-node is not stated)"
        shared = f"{here} ranks share {counted(machine.cores or 0, 'core')}{node}"
        return Sharing(_SHARED_CORES, (f"{shared}: computing takes {times:.3g} times as long",))
    most = max((min(size, per_node or size) for size in measured), default=here)
    if here <= most:
        return Sharing()
    why = "they share memory and power: measure a size that fills a node"
    remark = f"{here} in a node, but at most {most} when it was measured; {why}"
    return Sharing(_NEIGHBOURS * compute_share, (remark,))
