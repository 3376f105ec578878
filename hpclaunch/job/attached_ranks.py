"""The ranks of a running job that hpclaunch did not submit, and what is wrong with their binding. Pure."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import CpuSet, format_cpu_list, parse_cpu_list, to_mask
from hpclaunch.errors import BadInputError
from hpclaunch.job.attached_nodes import AttachedNode, Process
from hpclaunch.job.binding_report import NOT_JUDGED, RankReport
from hpclaunch.remote.look import GPU_VARIABLES, HELPERS, RANKS_OF
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.node_topology import Core, NodeTopology

_PROBLEMS = {
    "count": "another-number-of-ranks",
    "empty": "no-cpus",
    "wrong-gpu": "far-from-its-gpu",
}
"""Problem of a list of cores -> the verdict on a rank, where that has another name."""


class RankDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What else a rank has; the binding is in its report."""

    rank: int
    host: str
    pid: int
    program: tuple[str, ...]
    """The first words of its command line."""
    processes: int
    """Processes of the rank, itself counted."""
    threads: int
    """Threads of all of them."""
    thread_cpus: dict[str, int]
    """CPU list -> threads that may run there."""
    devices: tuple[str, ...]
    """Device files of GPUs and network cards that it holds open."""
    variables: dict[str, str]
    """Variables about GPUs, threads and network cards, as they were at its start."""


class AttachedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a job."""

    ok: bool
    finding: str
    """In a sentence."""
    ranks: tuple[RankReport, ...]
    details: tuple[RankDetails, ...]
    problems: tuple[str, ...]
    """Names of the problems with a list of cores, as `judge_masks` has them."""
    right: str | None
    """The launcher's option that would be right; None: the node is not known."""
    remedies: tuple[str, ...]
    """One sentence for each kind of problem."""


class _Rank(NamedTuple):
    """The processes of one rank."""

    host: str
    rank: int
    local_rank: int
    size: int | None
    gpus: Mapping[str, str]
    """As the node's."""
    processes: list[Process]

    @property
    def main(self) -> Process:
        """The process that works: the one with device files, else with the most CPU time."""
        return max(self.processes, key=lambda one: (len(one.devices), one.ticks, one.pid))


def judge_attached(
    nodes: Sequence[AttachedNode], profile: SiteProfile, topology: NodeTopology | None
) -> AttachedVerdict:
    """Judge the binding of every rank for the node of the site; without one only what the ranks share."""
    ranks = _ranks(nodes)
    if not ranks:
        raise BadInputError(
            "no process of the job can be seen on its nodes", "run it as the user whose job it is"
        )
    reports: list[RankReport] = []
    problems: dict[str, str] = {}
    plan: NodeBinding | None = None
    for host in dict.fromkeys(one.host for one in ranks):
        here = sorted((one for one in ranks if one.host == host), key=lambda one: (one.local_rank, one.rank))
        plan = _plan(topology, len(here))
        reports += _judge_node(here, topology, plan, problems)
    reports.sort(key=lambda one: one.rank)
    finding, complete = _finding(reports, ranks)
    return AttachedVerdict(
        ok=complete and all(one.ok for one in reports),
        finding=finding,
        ranks=tuple(reports),
        details=tuple(_details(one) for one in ranks),
        problems=tuple(problems),
        right=_option(profile, plan) if plan else None,
        remedies=tuple(dict.fromkeys(problems.values())),
    )


def _ranks(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return the ranks of the surest kind that any process has; of several steps that with the most ranks."""
    for needed, rank_name, local_name, size_name in RANKS_OF:
        steps: dict[str, dict[int, _Rank]] = {}
        for node in nodes:
            for process in node.processes:
                variables = process.variables
                rank, local = _number(variables.get(rank_name)), _number(variables.get(local_name))
                if needed not in variables or rank is None or _is_helper(process):
                    continue
                step = steps.setdefault(variables.get("SLURM_STEP_ID", ""), {})
                size = _number(variables.get(size_name, variables.get("WORLD_SIZE")))
                found = step.setdefault(rank, _Rank(node.host, rank, local or 0, size, node.gpus, []))
                found.processes.append(process)
        if steps:
            most = max(steps.values(), key=len)
            return [most[rank] for rank in sorted(most)]
    return _one_rank(nodes)


def _one_rank(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return a job without a launcher as one rank, with all of its processes."""
    for node in nodes:
        processes = [one for one in node.processes if not _is_helper(one)]
        if processes:
            return [_Rank(node.host, 0, 0, 1, node.gpus, processes)]
    return []


def _is_helper(process: Process) -> bool:
    name = process.program[0].rpartition("/")[2] if process.program else ""
    return HELPERS.fullmatch(name) is not None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 8 else None


def _plan(topology: NodeTopology | None, count: int) -> NodeBinding | None:
    if topology is None:
        return None
    try:
        return bind(topology, BindingRequest(tasks_per_node=count))
    except BadInputError:
        return None


def _cpus(text: str) -> CpuSet:
    try:
        return frozenset(parse_cpu_list(text))
    except BadInputError:
        return frozenset()


def _judge_node(
    ranks: list[_Rank], topology: NodeTopology | None, plan: NodeBinding | None, problems: dict[str, str]
) -> list[RankReport]:
    """Return the reports of one node's ranks, in the order of their local ranks."""
    cpus = [_cpus(one.main.cpus) for one in ranks]
    chosen = [_visible(one, topology) for one in ranks]
    verdicts = _core_verdicts(ranks, cpus, topology, chosen, problems)
    for number, one in enumerate(ranks):
        if number not in verdicts and (far := _far_gpu(topology, cpus[number], chosen[number])):
            verdicts[number] = "gpu-on-another-numa-node"
            problems.setdefault("wrong-gpu", f"rank {one.rank}: {far}")
        verdicts.setdefault(number, _other_verdict(one, cpus[number], topology))
    return [_report(one, verdicts[number], number, topology, plan) for number, one in enumerate(ranks)]


def _core_verdicts(
    ranks: list[_Rank],
    cpus: list[CpuSet],
    topology: NodeTopology | None,
    chosen: list[tuple[int, ...]],
    problems: dict[str, str],
) -> dict[int, str]:
    """Return the verdicts on ranks whose cores are wrong, by their place on the node."""
    node = topology or NodeTopology(
        cores=tuple(Core(cpus=(cpu,)) for cpu in sorted(frozenset().union(*cpus)))
    )
    masks = ",".join(to_mask(each) if each else "0x0" for each in cpus)
    verdicts: dict[int, str] = {}
    for found in judge(node, "mask", masks, tasks=len(ranks)).findings:
        if found.rank is None or (found.problem == "wrong-gpu" and chosen[found.rank]):
            continue
        verdicts.setdefault(found.rank, _PROBLEMS.get(found.problem, found.problem))
        problems.setdefault(found.problem, f"rank {ranks[found.rank].rank}: {found.message}; {found.remedy}")
    return verdicts


def _other_verdict(one: _Rank, cpus: CpuSet, topology: NodeTopology | None) -> str:
    """Judge what is not about cores: the memory policy, and GPUs that are hidden or have no known name."""
    found = (_memory_verdict(one.main.mems, cpus, topology), _gpu_verdict(one, topology))
    return max(found, key=lambda each: (each != "ok") + (each not in ("ok", NOT_JUDGED)))


def _visible(one: _Rank, topology: NodeTopology | None) -> tuple[int, ...]:
    """Return the GPUs that a rank sees by its variable, where that are not simply all of the node."""
    known = [number for number in _numbers_of_gpus(one, topology) if number is not None]
    named = _gpu_names(one.main)
    return tuple(known) if len(known) == len(named) and len(known) <= 2 else ()


def _numbers_of_gpus(one: _Rank, topology: NodeTopology | None) -> list[int | None]:
    """Return the number of each GPU that the variable names; None: it is not known."""
    by_address = {gpu.bus_id: gpu.index for gpu in topology.gpus if gpu.bus_id} if topology else {}
    return [
        _number(name) if name.isdigit() else by_address.get(_address(name, one.gpus))
        for name in _gpu_names(one.main)
    ]


def _gpu_names(process: Process) -> list[str]:
    """Return the GPUs that the variable names: those from -1 on are hidden, as CUDA and ROCr read it."""
    names = _gpu_variable(process).split(",")
    return [name for name in takewhile(lambda name: name not in _NO_GPU, names) if name]


_NO_GPU = ("-1", "NoDevFiles")
"""What hides GPUs; NoDevFiles is Slurm's."""


def _address(name: str, gpus: Mapping[str, str]) -> str:
    """Return the PCI address of a GPU that is named by its UUID or the start of one; empty: not known."""
    return next((gpus[uuid] for uuid in gpus if name.startswith("GPU-") and uuid.startswith(name)), "")


def _gpu_verdict(one: _Rank, topology: NodeTopology | None) -> str:
    if None in _numbers_of_gpus(one, topology):
        return NOT_JUDGED
    hidden = not _gpu_names(one.main) and _gpu_variable(one.main)
    return "no-such-gpu" if hidden and topology and topology.gpus else "ok"


def _memory_verdict(mems: str, cpus: CpuSet, topology: NodeTopology | None) -> str:
    """Judge a memory policy: the nodes of a rank's cores, all of them where it binds, are right."""
    policy, _, text = mems.rpartition(":")
    here = {core.numa for core in topology.cores if cpus.intersection(core.cpus)} if topology else {None}
    nodes = _cpus(text)
    match policy.partition("=")[0]:
        case "":
            return "ok"
        case "bind" | "prefer-many" if None not in here:
            return "ok" if here <= nodes else _FOREIGN_MEMORY
        case "prefer" | "interleave" | "weighted-interleave" if None not in here:
            return "ok" if nodes <= here else _FOREIGN_MEMORY
    return NOT_JUDGED


_FOREIGN_MEMORY = "memory-on-another-numa-node"


def _gpu_variable(process: Process) -> str:
    return next((process.variables[name] for name in GPU_VARIABLES if name in process.variables), "")


def _far_gpu(topology: NodeTopology | None, cpus: CpuSet, gpus: Iterable[int]) -> str | None:
    """Return which GPU that a rank sees is on another NUMA node than its cores; None: none is."""
    if topology is None:
        return None
    here = {core.numa for core in topology.cores if cpus.intersection(core.cpus)}
    for gpu in topology.gpus:
        if gpu.index in gpus and gpu.numa is not None and None not in here and gpu.numa not in here:
            nodes = ",".join(map(str, sorted(node for node in here if node is not None)))
            return f"it sees GPU {gpu.index} of NUMA node {gpu.numa}, and its cores are on NUMA node {nodes}"
    return None


def _report(
    one: _Rank, verdict: str, number: int, topology: NodeTopology | None, plan: NodeBinding | None
) -> RankReport:
    gpus = _visible(one, topology)
    numa = {gpu.index: gpu.numa for gpu in topology.gpus} if topology else {}
    bus = {gpu.index: gpu.bus_id for gpu in topology.gpus} if topology else {}
    return RankReport(
        rank=one.rank,
        host=one.host,
        local_rank=one.local_rank,
        cpus=one.main.cpus,
        planned=format_cpu_list(plan.ranks[number].cpus) if plan else "",
        mems=re.sub("^bind.*:", "", one.main.mems),
        gpus=_gpu_variable(one.main) or "none",
        bus=",".join(bus.get(gpu) or "unknown" for gpu in gpus),
        gpu_numa=",".join(str(numa.get(gpu)) if numa.get(gpu) is not None else "unknown" for gpu in gpus),
        verdict=verdict,
    )


def _details(one: _Rank) -> RankDetails:
    threads: dict[str, int] = {}
    for process in one.processes:
        for cpus, count in process.threads.items():
            threads[cpus] = threads.get(cpus, 0) + count
    return RankDetails(
        rank=one.rank,
        host=one.host,
        pid=one.main.pid,
        program=one.main.program,
        processes=len(one.processes),
        threads=sum(threads.values()),
        thread_cpus=threads,
        devices=tuple(sorted({device for process in one.processes for device in process.devices})),
        variables=one.main.variables,
    )


def _finding(reports: list[RankReport], ranks: list[_Rank]) -> tuple[str, bool]:
    """Return the finding in a sentence, and whether all ranks of the job were seen."""
    size = max((one.size for one in ranks if one.size), default=len(ranks))
    missing = len(reports) < size
    wrong = [f"{one.rank} ({one.verdict})" for one in reports if one.wrong]
    doubtful = [str(one.rank) for one in reports if not one.ok]
    if wrong:
        words = f"{len(wrong)} of {len(reports)} ranks have a wrong binding: rank {_first(wrong)}"
    elif doubtful:
        words = f"{len(doubtful)} of {len(reports)} ranks could not be judged: rank {_first(doubtful)}"
    else:
        words = f"all {len(reports)} ranks{' that were seen' * missing} have a right binding"
    return words + f"; {len(reports)} of {size} ranks were seen" * missing, not missing


def _first(names: list[str]) -> str:
    return ", ".join(names[:8]) + ", ..." * (len(names) > 8)


def _option(profile: SiteProfile, plan: NodeBinding) -> str:
    """Return what would bind these ranks rightly, as the site's launcher takes it."""
    kinds = {
        "mask_cpu": lambda: f"srun --cpu-bind=mask_cpu:{dialects.mask_cpu(plan)}",
        "map_cpu": lambda: f"srun --cpu-bind=map_cpu:{dialects.map_cpu(plan)}",
        "list": lambda: f"mpiexec {dialects.pals(plan)}",
    }
    usual = kinds.get(profile.binding.cpu)
    lists = " ".join(format_cpu_list(rank.cpus) for rank in plan.ranks)
    option = usual() if usual else f"taskset -c LIST, by local rank: {lists}"
    variable = profile.binding.gpu_visible_var
    gpus = ",".join(str(gpu) for rank in plan.ranks for gpu in rank.gpus)
    return option + (f"; {variable}={gpus}, all GPUs in the order of the ranks" if variable and gpus else "")
