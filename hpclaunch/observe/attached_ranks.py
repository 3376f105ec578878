"""The ranks of a running job that hpclaunch did not submit, and what is wrong with their binding. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import CpuSet, format_cpu_list, to_mask
from hpclaunch.errors import BadInputError
from hpclaunch.job.binding_report import NOT_JUDGED, RankReport, readable_cpus
from hpclaunch.json_document import Document
from hpclaunch.observe.attached_gpus import GPU_SHARED, NO_SUCH_GPU, SeenGpus, gpus_of_ranks
from hpclaunch.observe.attached_nodes import AttachedNode, Process
from hpclaunch.plural import listed
from hpclaunch.remote.look import GPU_VARIABLES, HELPERS, RANKS_OF, SHELLS
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.site.schema import SiteProfile
from hpclaunch.topology.node_topology import Core, NodeTopology

_PROBLEMS = {
    "count": "another-number-of-ranks",
    "empty": "no-cpus",
    "wrong-gpu": "far-from-its-gpu",
}
"""Problem of a list of cores -> the verdict on a rank, where that has another name."""


class RankDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Further facts of a rank; the binding is in its report."""

    rank: int
    step: str
    host: str
    pid: int
    program: tuple[str, ...]
    processes: int
    threads: int
    thread_cpus: dict[str, int]
    devices: tuple[str, ...]
    variables: dict[str, str]


class AttachedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Findings in a job."""

    ok: bool
    finding: str
    """In a sentence."""
    ranks: tuple[RankReport, ...]
    """By step, and in a step by rank."""
    details: tuple[RankDetails, ...]
    """Of the same ranks, in the same order."""
    problems: tuple[str, ...]
    """Names of the problems: with a list of cores as `judge_masks` has them, `GPU_SHARED`, `MANY_THREADS`."""
    right: str | None
    """The launcher's option that would be right; None: the node is not known."""
    remedies: tuple[str, ...]
    """One sentence for each kind of problem."""


class AttachDocument(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings in a running job that hpclaunch did not submit."""

    id: str
    site: str
    ok: bool
    finding: str
    ranks: tuple[RankReport, ...]
    details: tuple[RankDetails, ...]
    right: str | None
    remedies: tuple[str, ...]
    rules: tuple[str, ...]
    note: str | None


DOCUMENTS = {"verify-attach": AttachDocument}
"""Name of the schema -> its type."""


class _Rank(NamedTuple):
    """The processes of one rank."""

    node: AttachedNode
    step: str
    rank: int
    local_rank: int
    size: int | None
    processes: list[Process]

    @property
    def host(self) -> str:
        """Name of its node."""
        return self.node.host

    @property
    def main(self) -> Process:
        """The process that works: the one with device files, else with the most CPU time."""
        return max(self.working, key=lambda one: (len(one.devices), one.ticks, one.pid))

    @property
    def working(self) -> list[Process]:
        """Its processes without the shells that only wait for one of them."""
        parents = {one.parent for one in self.processes}
        shells = [one for one in self.processes if one.pid in parents and SHELLS.fullmatch(_name(one))]
        return [one for one in self.processes if one not in shells]

    def __str__(self) -> str:
        return f"{self.rank} of step {self.step}" if self.step not in ("", "0") else str(self.rank)


def judge_attached(
    nodes: Sequence[AttachedNode], profile: SiteProfile, topology: NodeTopology | None
) -> AttachedVerdict:
    """Judge the binding of every rank for the node of the site; without one only what the ranks share."""
    ranks = _ranks(nodes)
    if not ranks:
        raise BadInputError(
            "no process of the job can be seen on its nodes", "run it as the user whose job it is"
        )
    reports: dict[tuple[str, int], RankReport] = {}
    problems: dict[str, str] = {}
    plan: NodeBinding | None = None
    together: dict[tuple[str, str], list[_Rank]] = {}
    for one in sorted(ranks, key=lambda one: (one.local_rank, one.rank)):
        together.setdefault((one.host, one.step), []).append(one)
    alone = len({step for _, step in together}) == 1
    for here in together.values():
        plan = _plan(topology, len(here)) if alone else None
        reports |= _judge_node(here, topology, plan, problems)
    if not alone:
        _judge_steps(ranks, reports, problems)
    finding, complete = _finding(reports, ranks)
    return AttachedVerdict(
        ok=complete and all(one.ok for one in reports.values()),
        finding=finding,
        ranks=tuple(reports[one.step, one.rank] for one in ranks),
        details=tuple(_details(one) for one in ranks),
        problems=tuple(problems),
        right=_option(profile, plan) if plan else None,
        remedies=tuple(dict.fromkeys(problems.values())),
    )


def _judge_steps(
    ranks: list[_Rank], reports: dict[tuple[str, int], RankReport], problems: dict[str, str]
) -> None:
    """Find ranks that have CPUs of a rank of an earlier step on their node."""
    owners: dict[tuple[str, int], _Rank] = {}
    for one in ranks:
        report = reports[one.step, one.rank]
        cpus = readable_cpus(report.cpus)
        others = {cpu: owners.setdefault((one.host, cpu), one) for cpu in sorted(cpus)}
        shared = [cpu for cpu, other in others.items() if other.step != one.step]
        if shared and not report.wrong:
            message = f"rank {one} shares CPUs {format_cpu_list(shared)} of {one.host}"
            message += f" with rank {others[shared[0]]}"
            problems.setdefault("shared", f"{message}; srun --exact gives each step its own")
            reports[one.step, one.rank] = msgspec.structs.replace(report, verdict="shared")


def _ranks(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return the ranks of the surest kind that any process has, of all steps."""
    processes = [(node, one) for node in nodes for one in node.processes if not _is_helper(one)]
    for needed, rank_name, local_name, size_name in RANKS_OF:
        found: dict[tuple[int, str, int], _Rank] = {}
        for node, process in processes:
            variables = process.variables
            rank, step = whole_number(variables.get(rank_name)), variables.get("SLURM_STEP_ID", "")
            if needed in variables and rank is not None and step not in _NO_STEPS:
                local = whole_number(variables.get(local_name)) or 0
                size = whole_number(variables.get(size_name, variables.get("WORLD_SIZE")))
                one = _Rank(node, step, rank, local, size, [])
                found.setdefault((whole_number(step) or 0, step, rank), one).processes.append(process)
        if found:
            return [found[key] for key in sorted(found)]
    return _one_rank(nodes)


_NO_STEPS = ("4294967290", "4294967291", "4294967292", "4294967293")
"""Numbers of Slurm's interactive, batch, extern and pending step: no ranks (slurm/slurm.h, 22.05)."""


def _one_rank(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return a job without a launcher as one rank, with all of its processes."""
    for node in nodes:
        processes = [one for one in node.processes if not _is_helper(one)]
        if processes:
            return [_Rank(node, "", 0, 0, 1, processes)]
    return []


def _is_helper(process: Process) -> bool:
    return HELPERS.fullmatch(_name(process)) is not None


def _name(process: Process) -> str:
    return process.program[0].rpartition("/")[2] if process.program else ""


def _plan(topology: NodeTopology | None, count: int) -> NodeBinding | None:
    if topology is None:
        return None
    try:
        return bind(topology, BindingRequest(tasks_per_node=count))
    except BadInputError:
        return None


def _judge_node(
    ranks: list[_Rank], topology: NodeTopology | None, plan: NodeBinding | None, problems: dict[str, str]
) -> dict[tuple[str, int], RankReport]:
    cpus = [readable_cpus(one.main.cpus) for one in ranks]
    gpus = gpus_of_ranks([[one.main, *one.processes] for one in ranks], ranks[0].node, topology)
    # Which GPU a rank would take by its place is only asked where it sees all, and no other step is there.
    by_place = [plan is not None and not one.numbers and one.verdict != NOT_JUDGED for one in gpus]
    verdicts = _core_verdicts(ranks, cpus, topology, by_place, problems)
    _gpu_verdicts(ranks, gpus, cpus, topology, verdicts, problems)
    for number, (one, seen) in enumerate(zip(ranks, gpus, strict=True)):
        verdicts.setdefault(number, _other_verdict(one, cpus[number], topology, seen, problems))
    planned = [format_cpu_list(plan.ranks[number].cpus) if plan else "" for number in range(len(ranks))]
    return {
        (one.step, one.rank): _report(one, verdicts[number], topology, gpus[number], planned[number])
        for number, one in enumerate(ranks)
    }


def _gpu_verdicts(
    ranks: list[_Rank],
    gpus: list[SeenGpus],
    cpus: list[CpuSet],
    topology: NodeTopology | None,
    verdicts: dict[int, str],
    problems: dict[str, str],
) -> None:
    """Add the verdicts on ranks that share a GPU, have none such, or a far one."""
    for number, (one, seen) in enumerate(zip(ranks, gpus, strict=True)):
        if seen.verdict in (GPU_SHARED, NO_SUCH_GPU):
            verdicts[number] = seen.verdict
            problems.setdefault(seen.verdict, _gpu_problem(one, seen, ranks, gpus))
        elif number not in verdicts and (far := _far_gpu(topology, cpus[number], seen.numbers)):
            verdicts[number] = "gpu-on-another-numa-node"
            problems.setdefault("wrong-gpu", f"rank {one}: {far}")


def _gpu_problem(one: _Rank, seen: SeenGpus, ranks: list[_Rank], gpus: list[SeenGpus]) -> str:
    """Return in a sentence which GPU a rank shares, or has not, and what would be right."""
    variable = next((name for name in GPU_VARIABLES if name in one.main.variables), "")
    value = f"{variable}={seen.text}" if variable else "no variable"
    if seen.verdict == NO_SUCH_GPU:
        return f"rank {one}: {value}, and no GPU of {one.host} has that name; give it one that the node has"
    users = [str(rank) for rank, other in zip(ranks, gpus, strict=True) if other.own == seen.own]
    named = ", ".join(sorted(seen.own))
    remedy = "start one rank per GPU, or give each the GPU of its local rank"
    return f"ranks {listed(users)} of {one.host} share {len(seen.own)} GPU ({named}; {value}): {remedy}"


def _core_verdicts(
    ranks: list[_Rank],
    cpus: list[CpuSet],
    topology: NodeTopology | None,
    by_place: list[bool],
    problems: dict[str, str],
) -> dict[int, str]:
    """Return the verdicts on ranks whose cores are wrong, by their place on the node."""
    node = topology or NodeTopology(
        cores=tuple(Core(cpus=(cpu,)) for cpu in sorted(frozenset().union(*cpus)))
    )
    masks = ",".join(to_mask(each) if each else "0x0" for each in cpus)
    verdicts: dict[int, str] = {}
    for found in judge(node, "mask", masks, tasks=len(ranks)).findings:
        if found.rank is None or (found.problem == "wrong-gpu" and not by_place[found.rank]):
            continue
        verdicts.setdefault(found.rank, _PROBLEMS.get(found.problem, found.problem))
        problems.setdefault(found.problem, f"rank {ranks[found.rank]}: {found.message}; {found.remedy}")
    return verdicts


def _other_verdict(
    one: _Rank, cpus: CpuSet, topology: NodeTopology | None, seen: SeenGpus, problems: dict[str, str]
) -> str:
    """Judge the memory policy, GPUs without a known name, and threads for which there are too few CPUs."""
    found = [_memory_verdict(one.main.mems, cpus, topology), seen.verdict]
    threads = one.main.variables.get("OMP_NUM_THREADS", "").partition(",")[0]
    if (wanted := whole_number(threads)) and cpus and wanted > len(cpus):
        found.append(MANY_THREADS)
        remedy = f"give it as many CPUs, or OMP_NUM_THREADS={len(cpus)}"
        problems.setdefault(
            MANY_THREADS, f"rank {one}: {wanted} OpenMP threads on {len(cpus)} CPUs; {remedy}"
        )
    return max(found, key=lambda each: (each != "ok") + (each not in ("ok", NOT_JUDGED)))


MANY_THREADS = "more-threads-than-cpus"


def _memory_verdict(mems: str, cpus: CpuSet, topology: NodeTopology | None) -> str:
    """Judge a memory policy: the nodes of a rank's cores, all of them where it binds, are right."""
    policy, _, text = mems.rpartition(":")
    here = {core.numa for core in topology.cores if cpus.intersection(core.cpus)} if topology else {None}
    nodes = readable_cpus(text)
    match policy.partition("=")[0]:
        case "":
            return "ok"
        case "bind" | "prefer-many" if None not in here:
            return "ok" if here <= nodes else _FOREIGN_MEMORY
        case "prefer" | "interleave" | "weighted-interleave" if None not in here:
            return "ok" if nodes <= here else _FOREIGN_MEMORY
    return NOT_JUDGED


_FOREIGN_MEMORY = "memory-on-another-numa-node"


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
    one: _Rank, verdict: str, topology: NodeTopology | None, seen: SeenGpus, planned: str
) -> RankReport:
    numa = {gpu.index: gpu.numa for gpu in topology.gpus} if topology else {}
    bus = {gpu.index: gpu.bus_id for gpu in topology.gpus} if topology else {}
    return RankReport(
        rank=one.rank,
        host=one.host,
        local_rank=one.local_rank,
        cpus=one.main.cpus,
        planned=planned,
        mems=re.sub("^bind.*:", "", one.main.mems),
        gpus=seen.text or "none",
        bus=",".join(bus.get(gpu) or "unknown" for gpu in seen.numbers),
        gpu_numa=",".join(
            str(numa.get(gpu)) if numa.get(gpu) is not None else "unknown" for gpu in seen.numbers
        ),
        verdict=verdict,
    )


def _details(one: _Rank) -> RankDetails:
    threads: dict[str, int] = {}
    for process in one.working:
        for cpus, count in process.threads.items():
            threads[cpus] = threads.get(cpus, 0) + count
    return RankDetails(
        rank=one.rank,
        step=one.step,
        host=one.host,
        pid=one.main.pid,
        program=one.main.program,
        processes=len(one.working),
        threads=sum(threads.values()),
        thread_cpus=threads,
        devices=tuple(sorted({device for process in one.working for device in process.devices})),
        variables=one.main.variables,
    )


def _finding(reports: dict[tuple[str, int], RankReport], ranks: list[_Rank]) -> tuple[str, bool]:
    """Return the finding in a sentence, and whether all ranks of the job were seen."""
    steps: dict[str, list[int]] = {}
    for one in ranks:
        steps.setdefault(one.step, []).append(one.size or 0)
    size = sum(max(sizes) or len(sizes) for sizes in steps.values())
    missing = len(reports) < size
    words = _verdict([(one, reports[one.step, one.rank]) for one in ranks], " that were seen" * missing)
    words += f" ({len(steps)} steps: {', '.join(steps)})" * (len(steps) > 1)
    return words + f"; {len(reports)} of {size} ranks were seen" * missing, not missing


def _verdict(judged: list[tuple[_Rank, RankReport]], seen: str) -> str:
    wrong = [f"{one} ({report.verdict})" for one, report in judged if report.wrong]
    if wrong:
        return f"{len(wrong)} of {len(judged)} ranks have a wrong binding: rank {listed(wrong)}"
    doubtful = [str(one) for one, report in judged if not report.ok]
    if doubtful:
        return f"{len(doubtful)} of {len(judged)} ranks could not be judged: rank {listed(doubtful)}"
    return f"all {len(judged)} ranks{seen} have a right binding"


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
