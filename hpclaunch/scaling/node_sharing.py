"""What ranks of a node share, which no formula has: cores, and memory, caches and power. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from hpclaunch.plural import counted
from hpclaunch.scaling.machine_speed import Machine

_SHARED_CORES = 0.5
"""Relative deviation where ranks share cores: a rank of an exchange waits until the scheduler gives a core to
its neighbour. Four ranks on two cores took 0.9 and 1.15 times the formulas (docs/explanation/measured.md),
and up to 1.8 times in earlier runs."""
_NEIGHBOURS = 0.15
"""Relative deviation of the computation where a node has more GPUs, or ranks, at work than any measured size
had. On ABCI VGG16 took 1.13 times the model on the 4 GPUs of a node (public logs of arXiv 2104.09075), the
bundled training 1.2 times on two cores (docs/explanation/measured.md)."""


class Sharing(NamedTuple):
    """What sharing adds to the uncertainty of a step."""

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
