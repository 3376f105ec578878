"""What a simulation of the allreduces between nodes found, next to the closed form. Pure.

``hpclaunch.train.message_record`` notes the messages, ``remote/replay_messages.cpp`` replays them; the text
that the second reads is made here.
"""

from collections.abc import Sequence

import msgspec

from hpclaunch.scaling.machine_speed import Parameter
from hpclaunch.scaling.network_shape import LINK_LATENCY_S, NetworkShape
from hpclaunch.text_table import text_table

ALLREDUCES = ("ring", "halving-doubling", "hierarchical")
"""Simulated: those of the bundled training that are for long arrays on many nodes."""
_FASTEST = 1e9
"""GB/s of a link that takes no time."""
_PARTS = 0.1
"""Relative difference that is named."""


class MessageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The first line that ``message_record`` prints."""

    messages: int
    network_messages: int
    counted_bytes: int
    network_bytes: int
    inside_s: float
    closed_form_s: float


class SimulatedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One allreduce of the gradients on one number of GPUs."""

    gpus: int
    nodes: int
    allreduce: str
    network: str
    bytes: int
    """Of the gradients."""
    closed_form_s: float | None
    """By latency and bandwidth, no node shares its link; None: ``remark`` has the reason."""
    simulated_s: float | None
    """None as well: not simulated."""
    messages: int | None
    """Between nodes."""
    network_bytes: int | None
    """Between nodes, of all messages."""
    step_s: float | None
    """A step of ``data`` with this exchange; None: ``data`` is not predicted here."""
    remark: str | None = None

    @property
    def ratio(self) -> float | None:
        """Return the simulated time by that of the closed form."""
        return (
            None
            if self.simulated_s is None or not self.closed_form_s
            else self.simulated_s / self.closed_form_s
        )


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """What ``predict --simulate`` adds."""

    network: NetworkShape
    exchanges: tuple[SimulatedExchange, ...]


def replay_text(shape: NetworkShape, nodes: int, parameters: dict[str, Parameter], programs: str) -> str:
    """Return what the replay reads: network, times, programs.

    Two links connect the nearest nodes: with the start-up their latency is ``network_latency_s``.
    """
    start_up = max(0.0, parameters["network_latency_s"].value - 2 * LINK_LATENCY_S)
    times = (
        parameters["network_gb_s"].value,
        LINK_LATENCY_S,
        start_up,
        parameters["node_latency_s"].value,
        parameters["node_gb_s"].value,
    )
    # A calibration may find that a link takes no time at all; C++ reads no "inf".
    first = " ".join([shape.kind, *(f"{min(number, _FASTEST):.12g}" for number in shape.layout)])
    second = " ".join([str(nodes), *(f"{min(number, _FASTEST):.12g}" for number in times)])
    return f"{first}\n{second}\n{programs}"


def simulation_text(simulation: Simulation) -> str:
    """Return the table and what the network consists of."""
    rows = [_row(one) for one in simulation.exchanges]
    header = ("GPUs", "nodes", "allreduce", "simulated s", "closed form s", "ratio", "messages", "step s")
    lines = ["sum of the gradients between nodes, replayed in SimGrid:", "", text_table(rows, header)]
    lines += [
        f"{one.allreduce} on {one.gpus} GPUs: {one.remark}" for one in simulation.exchanges if one.remark
    ]
    lines += _parting(simulation.exchanges)
    return "\n".join([*lines, "network: " + "; ".join(simulation.network.origins)])


def _row(one: SimulatedExchange) -> tuple[str, ...]:
    numbers = (one.simulated_s, one.closed_form_s, one.ratio, one.messages, one.step_s)
    formats = (".4g", ".4g", ".2f", ",", ".4g")
    cells = ("" if n is None else format(n, kind) for n, kind in zip(numbers, formats, strict=True))
    return (str(one.gpus), str(one.nodes), one.allreduce, *cells)


def _parting(exchanges: Sequence[SimulatedExchange]) -> list[str]:
    """Return, of each allreduce, where it and the closed form differ."""
    lines = []
    for name in dict.fromkeys(one.allreduce for one in exchanges):
        same = [one for one in exchanges if one.allreduce == name and one.ratio is not None]
        apart = [one for one in same if one.ratio and abs(one.ratio - 1) > _PARTS]
        if apart:
            sizes = ", ".join(str(one.gpus) for one in apart)
            lines.append(
                f"{name}: simulated and closed form differ by more than {_PARTS:.0%} on {sizes} GPUs"
            )
    return lines
