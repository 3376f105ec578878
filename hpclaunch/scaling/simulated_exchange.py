"""Results of a simulation of the allreduces between nodes, next to the closed form. Pure.

``allreduce_messages`` has the messages, ``remote/replay_messages.cpp`` replays them; the text that the second
reads is made here.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_constants
from hpclaunch.scaling.allreduce_messages import Link, Machine, allreduce_s
from hpclaunch.scaling.machine_speed import Parameter
from hpclaunch.site.schema import Network, SiteProfile
from hpclaunch.text_table import text_table

# Each node has one link, as fast as ``network_gb_s``. Nodes are numbered so that neighbours are near, and a
# job gets the first ones.

NetworkKind = Literal["fat-tree", "dragonfly", "torus", "loop"]

_USUAL = package_constants("scaling/constants.yaml", "networks")


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that the user sets."""

    network: NetworkKind | None = None
    nodes_per_group: int | None = None
    groups: int | None = None
    taper: float | None = None


class NetworkShape(msgspec.Struct, frozen=True, kw_only=True):
    """The network that is simulated."""

    kind: NetworkKind
    nodes: int
    layout: tuple[float, ...]
    origins: tuple[str, ...]


def network_shape(
    profile: SiteProfile, options: NetworkOptions, nodes: int, link_gb_s: float
) -> NetworkShape:
    """Return the network for jobs of up to ``nodes`` nodes. Raises BadInputError where it is not known."""
    known = profile.fabric.network
    kind, origin = _kind(profile, options.network)
    for name in ("nodes_per_group", "groups", "taper"):
        if getattr(options, name) is not None and name not in _USUAL.options[kind]:
            raise BadInputError.case(
                "simulate: no effect", name=name.replace("_", "-"), kind=kind, known=_names(kind)
            )
    if kind == "torus":
        return _torus(nodes, origin)
    if known and (kind == "loop" or (known.layout == "fat-tree") != (kind == "fat-tree")):
        known = None  # what the profile states of its groups belongs to its own layout
    origins = [origin]
    if kind == "loop":
        return _loop(nodes, options, origins)
    usual = float(_USUAL.leaf_nodes if kind == "fat-tree" else _USUAL.group_nodes)
    per_group = int(_stated("nodes per group", "nodes_per_group", options, known, usual, origins))
    taper = _stated("taper", "taper", options, known, 1.0, origins)
    groups = math.ceil(nodes / per_group)
    if kind == "fat-tree":
        layout = (groups, per_group, max(1, round(per_group / taper)))
        return _shape(kind, groups * per_group, layout, origins)
    count = profile.node.count if profile.node and profile.node.count else nodes
    by_count = math.ceil(count / per_group)
    why = f"{count:,} nodes by {per_group}"
    everywhere = _stated("groups", "groups", options, known, by_count, origins, why)
    everywhere = max(everywhere, groups)
    for at_switch in _USUAL.switch_nodes:
        switches = per_group // at_switch
        if per_group % at_switch == 0 and switches >= groups:
            between = link_gb_s * per_group / taper / max(1.0, everywhere - 1)
            origins.append(note_text("simulate: between groups", between=between))
            return _shape(kind, groups * per_group, (groups, switches, at_switch, between), origins)
    raise BadInputError.case("simulate: too many groups", nodes=nodes, groups=groups, per_group=per_group)


def _names(kind: NetworkKind) -> str:
    options = [f"--{name.replace('_', '-')}" for name in _USUAL.options[kind]]
    return ", ".join([*options, "--network-gb-s", "--network-latency-us"])


def _kind(profile: SiteProfile, stated: NetworkKind | None) -> tuple[NetworkKind, str]:
    if stated:
        return stated, f"{stated}: option --network"
    known = profile.fabric.network
    if known is None:
        raise BadInputError.case("simulate: no network", profile=profile)
    source = f", source {known.source}" if known.source else ""
    if known.layout == "dragonfly+":
        return "dragonfly", f"dragonfly+: profile{source}; simulated as a dragonfly"
    return known.layout, f"{known.layout}: profile{source}"


def _stated(
    what: str,
    key: str,
    options: NetworkOptions,
    known: Network | None,
    usual: float,
    origins: list[str],
    why: str = "assumed",
) -> float:
    """Return a figure from the options, the profile or what is usual, and add its origin."""
    option: float | None = getattr(options, key)
    profile: float | None = getattr(known, key) if known else None
    value, origin = usual, why
    if option is not None:
        value, origin = option, f"option --{key.replace('_', '-')}"
    elif profile is not None:
        value, origin = profile, "profile"
    origins.append(f"{value:g} {what}: {origin}" if what != "taper" else f"taper {value:g}: {origin}")
    return value


def _torus(nodes: int, origin: str) -> NetworkShape:
    """Return three sides of about the same length."""
    x = math.ceil(round(nodes ** (1 / 3), 9))
    y = math.ceil(round(math.sqrt(nodes / x), 9))
    z = math.ceil(nodes / (x * y))
    return _shape(
        "torus", x * y * z, (x, y, z), [origin, f"{x} x {y} x {z} nodes: the smallest that is about cubic"]
    )


def _loop(nodes: int, options: NetworkOptions, origins: list[str]) -> NetworkShape:
    """Return 2^q switches with 2^p nodes each."""
    per_switch = int(
        _stated("nodes per switch", "nodes_per_group", options, None, _USUAL.loop_nodes, origins)
    )
    if per_switch & (per_switch - 1):
        raise BadInputError("--nodes-per-group: a switch of the loop network has 2, 4, 8, ... nodes")
    switches = 1 << max(0, math.ceil(nodes / per_switch) - 1).bit_length()
    origins.append(f"{switches} switches, {_USUAL.width} links to those 1, 2, 4, ... away on both sides")
    return _shape("loop", switches * per_switch, (switches, per_switch, _USUAL.width), origins)


def _shape(kind: NetworkKind, nodes: int, layout: tuple[float, ...], origins: list[str]) -> NetworkShape:
    return NetworkShape(kind=kind, nodes=nodes, layout=layout, origins=tuple(origins))


ALLREDUCES = ("ring", "halving-doubling", "hierarchical")
"""Simulated: those of the bundled training that are for long arrays on many nodes."""
SWITCHED = ("near-first", "shifted")
"""Simulated, too, where the nodes of a switch are known: on the fat tree and the loop network."""
_BY_SWITCH = ("fat-tree", "loop")
CLOSED_ONLY = "pipelined"


class SimulatedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One allreduce of the gradients on one number of GPUs."""

    gpus: int
    nodes: int
    allreduce: str
    network: str
    bytes: int
    closed_form_s: float | None = None
    simulated_s: float | None = None
    messages: int | None = None
    network_bytes: int | None = None
    step_s: float | None = None
    remark: str | None = None

    @property
    def ratio(self) -> float | None:
        """Return the simulated time by that of the closed form."""
        if self.simulated_s is None or not self.closed_form_s:
            return None
        return self.simulated_s / self.closed_form_s


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """The results of ``predict --simulate``."""

    network: NetworkShape
    exchanges: tuple[SimulatedExchange, ...]


def closed_forms(
    allreduce: str, nodes: int, per_node: int, nbytes: int, parameters: dict[str, Parameter]
) -> tuple[float, float]:
    """Return the seconds within a node, which are not simulated (``hierarchical``), and those of all."""
    inside = Link(parameters["node_latency_s"].value, 1e-9 / parameters["node_gb_s"].value)
    between = Link(parameters["network_latency_s"].value, 1e-9 / parameters["network_gb_s"].value)
    # Additions take no time; what a rank reads and writes of other ranks of its node passes its link.
    machine = Machine(per_node, inside, between, 0.0, 2 * inside.s_per_byte)
    within = allreduce_s(allreduce, per_node, nbytes, machine) if allreduce == "hierarchical" else 0.0
    closed = allreduce_s(allreduce, nodes * per_node, nbytes, machine)
    if allreduce == "ring" and per_node > 1:  # each hop has messages of both kinds
        closed = max(
            closed, allreduce_s(allreduce, nodes * per_node, nbytes, replace(machine, between=inside))
        )
    return within, closed


def simulated_names(shape: NetworkShape) -> tuple[str, ...]:
    """Return the allreduces of a network, those of ``SWITCHED`` where it has switches with nodes."""
    return (*ALLREDUCES, *(SWITCHED if shape.kind in _BY_SWITCH else ()), CLOSED_ONLY)


def why_not_simulated(name: str, shape: NetworkShape, ranks: int, at_switch: int) -> str | None:
    """Return why an allreduce is not replayed; ``at_switch``: ranks of a switch. None: it can be."""
    if name == CLOSED_ONLY:
        return "closed form only"
    if name in SWITCHED and (ranks & (ranks - 1) or (at_switch & (at_switch - 1))):
        return "not simulated: ranks, and those of a switch, must be powers of two"
    return None


def replay_text(
    shape: NetworkShape, nodes: int, per_node: int, parameters: dict[str, Parameter], programs: str
) -> str:
    """Return what the replay reads: network, times, programs.

    Two links connect the nearest nodes: with the start-up their latency is ``network_latency_s``.
    """
    start_up = max(0.0, parameters["network_latency_s"].value - 2 * _USUAL.link_latency_s)
    times = (
        parameters["network_gb_s"].value,
        _USUAL.link_latency_s,
        start_up,
        parameters["node_latency_s"].value,
        parameters["node_gb_s"].value,
    )
    # A calibration may find that a link takes no time at all; C++ reads no "inf".
    first = " ".join([shape.kind, *(f"{min(number, _USUAL.fastest):.12g}" for number in shape.layout)])
    second = " ".join(
        [str(nodes), *(f"{min(number, _USUAL.fastest):.12g}" for number in times), str(per_node)]
    )
    return f"{first}\n{second}\n{programs}"


def simulation_text(simulation: Simulation, width: int | None = None) -> str:
    """Return the table and what the network consists of."""
    rows = [_row(one) for one in simulation.exchanges]
    header = ("GPUs", "nodes", "allreduce", "simulated s", "closed form s", "ratio", "messages", "step s")
    table = text_table(rows, header, width=width, drop=("messages", "step s", "nodes", "ratio"))
    lines = ["sum of the gradients between nodes, replayed in SimGrid:", "", table]
    lines += [
        f"{one.allreduce} on {one.gpus} GPUs: {one.remark}" for one in simulation.exchanges if one.remark
    ]
    if all(one.step_s is None for one in simulation.exchanges):
        lines.append("no steps: the exchanges are those of data parallelism; predict --strategy data as well")
    lines += _parting(simulation.exchanges)
    return "\n".join([*lines, "network: " + "; ".join(simulation.network.origins)])


def _row(one: SimulatedExchange) -> tuple[str, ...]:
    numbers = (one.simulated_s, one.closed_form_s, one.ratio, one.messages, one.step_s)
    formats = (".4g", ".4g", ".2f", ",", ".4g")
    cells = ("" if n is None else format(n, kind) for n, kind in zip(numbers, formats, strict=True))
    return (str(one.gpus), str(one.nodes), one.allreduce, *cells)


def _parting(exchanges: Sequence[SimulatedExchange]) -> list[str]:
    if any(one.network == "dragonfly" for one in exchanges):
        return [note_text("simulate: bound")]
    lines = []
    for name in dict.fromkeys(one.allreduce for one in exchanges):
        same = [one for one in exchanges if one.allreduce == name and one.ratio is not None]
        apart = [one for one in same if one.ratio and abs(one.ratio - 1) > _USUAL.parts]
        if apart:
            sizes = ", ".join(str(one.gpus) for one in apart)
            lines.append(note_text("simulate: differs", name=name, share=_USUAL.parts, sizes=sizes))
    return lines
