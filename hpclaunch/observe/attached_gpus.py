"""The GPUs of each rank of a running job: those that it sees, shares or has not. Pure.

Two sources tell which GPU a rank has: the variable with which it started, and the device files that it holds
open. A number in the variable means the same GPU for all ranks of a node, but not where Slurm has given each
rank its own (``--gpus-per-task``, ``ConstrainDevices``: then each of them calls its own GPU 0), nor is it the
node's number where the job has a part of the GPUs. One open device file is a GPU for certain; several are
those that the runtime has looked at (CUDA and ROCr open all that they may).
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from hpclaunch.job.binding_report import NOT_JUDGED
from hpclaunch.observe.attached_nodes import AttachedNode, Process
from hpclaunch.remote.look import GPU_VARIABLES
from hpclaunch.topology.node_topology import NodeTopology

_NO_GPU = ("-1", "NoDevFiles")
"""Entries that hide GPUs, with all after it, as CUDA and ROCr read it; NoDevFiles is Slurm's."""
_FROM_SLURM = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE"}
_GPU_FILE = re.compile(r"/dev/(nvidia\d+|dri/renderD\d+)$")
NO_SUCH_GPU = "no-such-gpu"
GPU_SHARED = "gpu-shared"
_UNKNOWN = {NO_SUCH_GPU: NO_SUCH_GPU, "": NOT_JUDGED}
"""The result of `_Node` where a name names none of the GPUs -> the verdict."""


class SeenGpus(NamedTuple):
    """The GPUs of one rank, where they are known."""

    text: str | None
    own: frozenset[str]
    numbers: tuple[int, ...]
    verdict: str


def gpus_of_ranks(
    ranks: Sequence[Sequence[Process]], node: AttachedNode, topology: NodeTopology | None
) -> list[SeenGpus]:
    """Return the GPUs of each rank of a step on a node; ``ranks``: each one's processes, the main first."""
    known = _Node(node, topology)
    mains = [processes[0] for processes in ranks]
    numbered = _numbered(mains, len(known.addresses))
    seen = [known.seen(processes, numbered) for processes in ranks]
    users = Counter(one.own for one in seen if one.own)
    return [one._replace(verdict=GPU_SHARED) if users[one.own] > len(one.own) else one for one in seen]


def _numbered(mains: list[Process], count: int) -> str:
    """Return whose numbers the variables have: the node's, the job's, or each rank's own."""
    if not any(one.variables.keys() & _FROM_SLURM for one in mains):
        return "node"
    texts = {_gpu_variable(one) or "" for one in mains}
    if len(mains) > 1 and len(texts) == 1 and texts.pop().isdigit():
        return "rank"
    given = {one.variables.get("SLURM_GPUS_ON_NODE") for one in mains}
    return "node" if given == {str(count)} else "job"


def _gpu_variable(process: Process) -> str | None:
    return next((process.variables[name] for name in GPU_VARIABLES if name in process.variables), None)


class _Node:
    """The GPUs of a node: from its own answer, and from the description of the site's node."""

    def __init__(self, node: AttachedNode, topology: NodeTopology | None) -> None:
        self.node = node
        gpus = topology.gpus if topology else ()
        self.address_of = {gpu.index: gpu.bus_id or f"GPU {gpu.index}" for gpu in gpus}
        self.number_of = {address: number for number, address in self.address_of.items()}
        self.addresses = set(self.address_of.values()) or set(node.gpus.values())

    def seen(self, processes: Sequence[Process], numbered: str) -> SeenGpus:
        """Judge one rank, of which nothing is compared with other ranks yet."""
        text = _gpu_variable(processes[0])
        files = {file for one in processes for file in one.devices if _GPU_FILE.match(file)}
        opened = frozenset(self.node.devices.get(file, "") for file in files)
        if len(opened) == 1 and "" not in opened:  # the one GPU that it uses
            return SeenGpus(text, opened, self._numbers(opened), "ok")
        if text is None:
            return SeenGpus(text, frozenset() if "" in opened else opened, (), "ok")
        return self._named(text, numbered)

    def _named(self, text: str, numbered: str) -> SeenGpus:
        names = filter(None, takewhile(lambda name: name not in _NO_GPU, text.split(",")))
        found = [self._gpu(name, numbered) for name in names] or [NO_SUCH_GPU]
        wrong = next((verdict for name, verdict in _UNKNOWN.items() if name in found), None)
        if wrong is not None:
            return SeenGpus(text, frozenset(), (), wrong if self.addresses else "ok")
        return SeenGpus(text, frozenset(found), self._numbers(found), "ok")

    def _gpu(self, name: str, numbered: str) -> str:
        """Return which GPU a name is; `NO_SUCH_GPU`: the node has none such; empty: not known."""
        number = re.match(r"(\d{1,4})(\.\d+)?$", name)  # 1.0: a tile of an Intel GPU
        if number:
            return self._by_number(int(number[1]), number[2] or "", numbered)
        if name.startswith("MIG-"):
            own = {uuid: uuid for uuid in self.node.slices}
        elif name.startswith("GPU-"):
            own = self.node.gpus
        else:
            return ""
        known = [gpu for uuid, gpu in own.items() if uuid.lower().startswith(name.lower())]
        return known[0] if known else NO_SUCH_GPU * bool(own)

    def _by_number(self, number: int, tile: str, numbered: str) -> str:
        if numbered == "rank":
            return ""
        if numbered == "job":
            return f"the job's GPU {number}{tile}"
        if not self.address_of:
            return f"GPU {number}{tile}"
        return self.address_of[number] + tile if number in self.address_of else NO_SUCH_GPU

    def _numbers(self, found: Sequence[str] | frozenset[str]) -> tuple[int, ...]:
        """Return the numbers of one or two GPUs, of slices their GPUs'; none where one is not known."""
        own = {self.node.gpus.get(self.node.slices.get(name, ""), name) for name in found}
        numbers = [self.number_of.get(re.sub(r"(?<=\.\d)\.\d+$", "", name)) for name in sorted(own)]
        known = tuple(number for number in numbers if number is not None)
        return known if len(known) == len(own) <= 2 else ()
