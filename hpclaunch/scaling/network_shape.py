"""The network of a simulation: from the site's profile or from options, with the origin of each figure. Pure.

Each node has one link, as fast as ``network_gb_s``. Nodes are numbered so that neighbours are near, and a job
gets the first ones.
"""

import math
from typing import Literal

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.site.schema import Network, SiteProfile

NetworkKind = Literal["fat-tree", "dragonfly", "torus"]

_LEAF_NODES = 32
"""Nodes of a leaf switch of a fat tree where they are not known: half the ports of a switch of 64."""
_GROUP_NODES = 128
"""Nodes of a group of a dragonfly where they are not known: those of LUMI-G."""
_SWITCH_NODES = (4, 2, 1)
"""Nodes of a switch of a dragonfly, the first number that divides a group: a group needs as many switches as
there are groups."""
LINK_LATENCY_S = 1e-7
"""Of each link and its switch; ABCI's switches take 90 to 400 ns (arXiv 2104.09075)."""


_FIGURES: dict[NetworkKind, tuple[str, ...]] = {
    "fat-tree": ("nodes_per_group", "taper"),
    "dragonfly": ("nodes_per_group", "groups", "taper"),
    "torus": (),
}
"""Kind -> the options that describe it."""


class NetworkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user states."""

    network: NetworkKind | None = None
    nodes_per_group: int | None = None
    """Of a group of the dragonfly, of a leaf switch of the fat tree."""
    groups: int | None = None
    """Of the dragonfly; more groups share the links of a group among them."""
    taper: float | None = None
    """How many times less a group can send to other groups than its nodes can."""


class NetworkShape(msgspec.Struct, frozen=True, kw_only=True):
    """The network that is simulated."""

    kind: NetworkKind
    nodes: int
    """At least those of the largest job."""
    layout: tuple[float, ...]
    """fat-tree: leaf switches, nodes of each, links up of each; dragonfly: groups with nodes of the job,
    switches of each, nodes of a switch, GB/s between two groups; torus: nodes along each side."""
    origins: tuple[str, ...]
    """Each figure, and where it comes from."""


def network_shape(
    profile: SiteProfile, options: NetworkOptions, nodes: int, link_gb_s: float
) -> NetworkShape:
    """Return the network for jobs of up to ``nodes`` nodes. Raises BadInputError where it is not known."""
    known = profile.fabric.network
    kind, origin = _kind(profile, options.network)
    for name in ("nodes_per_group", "groups", "taper"):
        if getattr(options, name) is not None and name not in _FIGURES[kind]:
            raise BadInputError(
                f"--{name.replace('_', '-')} has no effect on a {kind}", f"its figures are {_names(kind)}"
            )
    if kind == "torus":
        return _torus(nodes, origin)
    if known and (known.layout == "fat-tree") != (kind == "fat-tree"):
        known = None  # what the profile states of its groups belongs to its own layout
    origins = [origin]
    usual = float(_LEAF_NODES if kind == "fat-tree" else _GROUP_NODES)
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
    for at_switch in _SWITCH_NODES:
        switches = per_group // at_switch
        if per_group % at_switch == 0 and switches >= groups:
            between = link_gb_s * per_group / taper / max(1.0, everywhere - 1)
            origins.append(
                f"{between:.4g} GB/s between two groups: what a group can send, divided among them"
            )
            return _shape(kind, groups * per_group, (groups, switches, at_switch, between), origins)
    raise BadInputError(
        f"--simulate: {nodes} nodes are {groups} groups of {per_group}; SimGrid's dragonfly has at most as "
        "many groups as a group has switches",
        "simulate fewer nodes, or state larger groups: --nodes-per-group N",
    )


def _names(kind: NetworkKind) -> str:
    options = [f"--{name.replace('_', '-')}" for name in _FIGURES[kind]]
    return ", ".join([*options, "--network-gb-s", "--network-latency-us"])


def _kind(profile: SiteProfile, stated: NetworkKind | None) -> tuple[NetworkKind, str]:
    """Return the kind of network and its origin."""
    if stated:
        return stated, f"{stated}: option --network"
    known = profile.fabric.network
    if known is None:
        raise BadInputError(
            f"--simulate: the profile of {profile.name} does not state how its nodes are connected",
            "state it: --network fat-tree, --network dragonfly or --network torus",
        )
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


def _shape(kind: NetworkKind, nodes: int, layout: tuple[float, ...], origins: list[str]) -> NetworkShape:
    return NetworkShape(kind=kind, nodes=nodes, layout=layout, origins=tuple(origins))
