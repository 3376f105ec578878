"""Check a hand-written list of CPU masks or CPU numbers against the node it is meant for."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.binding.binding_documents import Finding, ListDocument, ListedRank
from hpclaunch.binding.compute import bind
from hpclaunch.binding.node_binding import (
    BindingRequest,
    Locality,
    NodeBinding,
    Order,
    RankBinding,
    cpus_in_words,
    rank_table,
    share_gpus,
)
from hpclaunch.cpuset import CpuSet, format_cpu_list, parse_mask, to_mask
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_constants
from hpclaunch.topology.node_topology import Gpu, NodeTopology

Kind = Literal["mask", "map"]

_WORD = package_constants("binding/forms.json", "judge_masks")


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The binding that a list produces on the node, and its errors."""

    kind: Kind
    ranks: tuple[RankBinding, ...]
    findings: tuple[Finding, ...]
    plan: NodeBinding | None

    @property
    def right(self) -> bool:
        """Tell whether there are no errors."""
        return not self.findings


def judge(
    topology: NodeTopology, kind: Kind, text: str, *, tasks: int | None = None, order: Order = "gpu"
) -> Judgement:
    """Check ``0xfe,0xfe00`` (kind mask) or ``49,57`` (kind map) for the ranks of one node.

    ``tasks`` is the number of ranks where it is known; else each entry is one rank. The GPU of a rank is the
    one that ``order`` gives it. srun's prefixes (``--cpu-bind=mask_cpu:``) and multipliers (``0xf*4``) are
    read. A bad list raises no error: an entry that cannot be read is a finding. Raises BadInputError for
    ``tasks`` below 1.
    """
    if tasks is not None and tasks < 1:
        raise BadInputError(f"tasks_per_node is {tasks}", "it must be at least 1")
    findings: list[Finding] = []
    entries = _entries(kind, text, findings)
    _judge_count(len(entries), tasks, findings)
    plan, gpus = _plan(topology, len(entries), order)
    node = _Node(topology, gpus, plan, kind, Locality(topology))
    for rank, cpus in enumerate(entries):
        if cpus is not None:
            findings += _judge_rank(node, rank, cpus)
    findings += _judge_shared(node, entries)
    if findings and kind == "mask" and _looks_like_map(topology, text):
        message = "the entries look like CPU numbers, but masks are hexadecimal"
        findings.append(_of_list("unparsable", message, "check CPU numbers with --check-map"))
    ranks = tuple(_rank(node, rank, cpus or frozenset()) for rank, cpus in enumerate(entries))
    findings.sort(key=lambda finding: -1 if finding.rank is None else finding.rank)
    return Judgement(kind=kind, ranks=ranks, findings=tuple(findings), plan=plan)


def _of_list(problem: str, message: str, remedy: str) -> Finding:
    return Finding(rank=None, problem=problem, message=message, remedy=remedy)


@dataclass(frozen=True)
class _Node:
    """The node with the binding to compare with."""

    topology: NodeTopology
    gpus: list[tuple[Gpu, ...]]
    """GPUs of each rank."""
    plan: NodeBinding | None
    kind: Kind
    where: Locality

    def planned(self, rank: int) -> RankBinding | None:
        """Return what would be right for a rank; None where the node cannot hold that many ranks."""
        return self.plan.ranks[rank] if self.plan is not None else None

    def finding(self, rank: int, problem: str, message: str) -> Finding:
        """Build the finding about a rank, its remedy completed by the CPUs that would be right."""
        fix = note_text(f"list of CPUs: {problem}")
        if (planned := self.planned(rank)) is not None:
            right = {min(planned.cpus)} if self.kind == "map" else planned.cpus
            mask = "" if self.kind == "map" else f" ({to_mask(right)})"
            fix = f"{fix}: {cpus_in_words(right)}{mask} would be right"
        return Finding(rank=rank, problem=problem, message=message, remedy=fix)

    def is_near_any(self, gpus: tuple[Gpu, ...], cpus: Iterable[int]) -> bool:
        """Tell whether CPUs are near one of these GPUs."""
        return any(self.where.is_near(gpu, cpus) for gpu in gpus)


def _plan(
    topology: NodeTopology, count: int, order: Order
) -> tuple[NodeBinding | None, list[tuple[Gpu, ...]]]:
    if not count:
        return None, []
    request = BindingRequest(tasks_per_node=count, order=order)
    gpus = {gpu.index: gpu for gpu in topology.gpus}
    try:
        plan = bind(topology, request)
    except BadInputError:
        return None, share_gpus(topology.gpus, count, None) if order == "gpu" else [()] * count
    return plan, [tuple(gpus[index] for index in rank.gpus) for rank in plan.ranks]


def _entries(kind: Kind, text: str, findings: list[Finding]) -> list[CpuSet | None]:
    """Read the list; None is an entry that cannot be read."""
    body = text.strip().strip("'\"").strip()
    for prefix in (*_WORD.prefixes, "mask_cpu:", "map_cpu:"):
        body = body.removeprefix(prefix)
    if not body:
        findings.append(_of_list("empty", "the list is empty", "give one entry for each rank"))
        return []
    entries: list[CpuSet | None] = []
    named = 0
    for part in body.split(","):
        entry, star, times = part.strip().partition("*")
        try:
            count = _decimal(times, "multiplier") if star else 1
            cpus = _entry(kind, entry)
            if not 1 <= count <= _WORD.max_ranks - len(entries):
                raise BadInputError(f"multiplier {count} in {part.strip()!r}")
            named += len(cpus) * count
            if named > _WORD.max_named:
                raise BadInputError(f"more than {_WORD.max_named} CPUs are named in all")
        except BadInputError as error:
            message = f"{_short(part)!r} cannot be read: {_short(error.message, 120)}"
            where = len(entries)
            findings.append(
                Finding(rank=where, problem="unparsable", message=message, remedy=_WORD.right[kind])
            )
            entries.append(None)
        else:
            entries += [cpus] * count
    return entries


def _short(text: str, length: int = 40) -> str:
    return text if len(text) <= length else f"{text[:length]}..."


def _entry(kind: Kind, text: str) -> CpuSet:
    if kind == "mask":
        return parse_mask(text)
    if text.lower().startswith("0x"):  # map_cpu takes hexadecimal numbers too (man srun)
        if len(text) > 8 or set(text[2:].lower()) - set("0123456789abcdef") or not text[2:]:
            raise BadInputError(f"{text!r} is not a CPU number")
        return frozenset({int(text, 16)})
    return frozenset({_decimal(text, "CPU number")})


def _decimal(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise BadInputError(f"{text!r} is not a {what}")
    return int(text)


def _looks_like_map(topology: NodeTopology, text: str) -> bool:
    parts = [part.strip() for part in text.split(",")]
    numbers = all(part.isascii() and part.isdigit() and len(part) <= 5 for part in parts)
    return len(parts) > 1 and numbers and {int(part) for part in parts} <= topology.cpus


def _judge_count(entries: int, tasks: int | None, findings: list[Finding]) -> None:
    if tasks is None or not entries or entries == tasks:
        return
    if entries < tasks:
        message = f"{entries} entries for {tasks} ranks: Slurm starts over, rank {entries} gets rank 0's CPUs"
    else:
        message = f"{entries} entries for {counted(tasks, 'rank')}: the last {entries - tasks} are never used"
    findings.append(_of_list("count", message, f"give {tasks} entries, one for each rank"))


def _judge_rank(node: _Node, rank: int, cpus: CpuSet) -> Iterable[Finding]:
    if not cpus:
        yield node.finding(rank, "empty", "names no CPU")
        return
    where = node.where
    here = cpus & where.cpus
    if outside := cpus - where.cpus:
        said = f"{cpus_in_words(outside)}: not on this node, which has {format_cpu_list(where.cpus)}"
        yield node.finding(rank, "outside", said)
    if reserved := here & node.topology.reserved:
        said = f"{cpus_in_words(reserved)}: reserved for the system; a job that names a reserved core fails"
        yield node.finding(rank, "reserved", said)
    if denied := here - where.granted - node.topology.reserved:
        said = f"{cpus_in_words(denied)}: not granted, the job has {format_cpu_list(where.granted)}"
        yield node.finding(rank, "not-granted", said)
    if here:
        yield from _judge_crossing(node, rank, here)
        yield from _judge_gpu_distance(node, rank, here)


def _judge_crossing(node: _Node, rank: int, cpus: CpuSet) -> Iterable[Finding]:
    """Find a rank that lies on more NUMA nodes or in more L3 groups than it needs."""
    planned = node.planned(rank)
    numa, gpu_numa = node.where.numa(cpus), {gpu.numa for gpu in node.gpus[rank]} - {None}
    if len(numa) > max(len(planned.numa) if planned else 1, len(gpu_numa), 1):
        said = f"{cpus_in_words(cpus)} lie on NUMA nodes {format_cpu_list(numa)}"
        yield node.finding(rank, "crosses-numa", said)
        return
    groups = node.where.l3(cpus)
    if len(groups) > max(_groups_needed(node, cpus, groups), len(planned.l3) if planned else 1):
        said = f"{cpus_in_words(cpus)} lie in {len(groups)} L3 groups though fewer would hold them"
        yield node.finding(rank, "crosses-l3", said)


def _judge_gpu_distance(node: _Node, rank: int, cpus: CpuSet) -> Iterable[Finding]:
    """Find a rank that is near none of its GPUs, where a list could do better."""
    gpus, planned = node.gpus[rank], node.planned(rank)
    if not gpus or node.is_near_any(gpus, cpus):
        return
    if planned is not None and not node.is_near_any(gpus, planned.cpus):
        return  # no list could be right: the GPU's own cores cannot be had, or its place is unknown
    numa = format_cpu_list(node.where.numa(cpus)) or "?"
    places = "; ".join(_place(gpu) for gpu in gpus)
    said = f"{cpus_in_words(cpus)} (NUMA node {numa}): not near {places}"
    yield node.finding(rank, "wrong-gpu", said)


def _place(gpu: Gpu) -> str:
    near = f", nearest to {cpus_in_words(gpu.cpus)}" if gpu.cpus else ""
    return f"GPU {gpu.index} (NUMA node {'?' if gpu.numa is None else gpu.numa}{near})"


def _groups_needed(node: _Node, cpus: CpuSet, groups: tuple[int, ...]) -> int:
    """Return how many of these L3 groups are needed: in each NUMA node the largest ones first."""
    cores = node.topology.cores
    sizes: dict[int | None, Counter[int]] = {}
    for core in cores:
        if core.l3 in groups and node.where.usable.intersection(core.cpus):
            sizes.setdefault(core.numa, Counter())[core.l3] += 1
    needed = 0
    for numa, wanted in Counter(cores[at].numa for at in node.where.cores(cpus)).items():
        for _, size in sizes.get(numa, Counter[int]()).most_common():
            if wanted <= 0:
                break
            wanted -= size
            needed += 1
    return max(needed, 1)


def _judge_shared(node: _Node, entries: list[CpuSet | None]) -> Iterable[Finding]:
    owners: dict[int, int] = {}
    for rank, cpus in enumerate(entries):
        shared: dict[int, list[int]] = {}
        for core in node.where.cores(cpus or frozenset()):
            first = owners.setdefault(core, rank)
            if first != rank:
                shared.setdefault(first, []).append(node.topology.cores[core].cpus[0])
        for first, cores in shared.items():
            word = "core" if len(cores) == 1 else "cores"
            said = f"shares {word} {format_cpu_list(cores)} with rank {first}"
            yield node.finding(rank, "shared", said)


def _rank(node: _Node, rank: int, cpus: CpuSet) -> RankBinding:
    return RankBinding(
        local_rank=rank,
        cpus=tuple(sorted(cpus)),
        gpus=tuple(gpu.index for gpu in node.gpus[rank]),
        numa=node.where.numa(cpus),
        l3=node.where.l3(cpus),
    )


def report(judgement: Judgement, width: int | None = None) -> str:
    """Return the judgement for people: one line per rank, then each finding with its remedy."""
    wrong = {finding.rank for finding in judgement.findings}
    verdicts = ["WRONG" if rank.local_rank in wrong else "right" for rank in judgement.ranks]
    lines = [rank_table(judgement.ranks, "verdict", verdicts, width)]
    for finding in judgement.findings:
        who = "list" if finding.rank is None else f"rank {finding.rank}"
        lines += [f"{who}: {finding.message}", f"  {finding.remedy}"]
    if judgement.right:
        count = len(judgement.ranks)
        gpus = " near its GPU" if any(rank.gpus for rank in judgement.ranks) else ""
        lines.append(f"right: {count} rank{'s' * (count > 1)}, each on its own cores{gpus}")
    return "\n".join(lines)


def document(judgement: Judgement) -> ListDocument:
    """Return the judgement for JSON."""
    return ListDocument(
        right=judgement.right,
        kind=judgement.kind,
        ranks=tuple(
            ListedRank(cpu_list=format_cpu_list(rank.cpus), **msgspec.structs.asdict(rank))
            for rank in judgement.ranks
        ),
        findings=judgement.findings,
    )
