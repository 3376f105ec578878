"""The ranks of a running job that hpclaunch did not submit, and what is wrong with their binding. Pure.

Two sources tell which GPU a rank has: the variable with which it started, and the device files that it holds
open. A number in the variable means the same GPU for all ranks of a node, but not where Slurm has given each
rank its own (``--gpus-per-task``, ``ConstrainDevices``: then each of them calls its own GPU 0), nor is it the
node's number where the job has a part of the GPUs. One open device file is a GPU for certain; several are
those that the runtime has looked at (CUDA and ROCr open all that they may).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

import msgspec

from hpclaunch.amounts import listed
from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import format_cpu_list, to_mask
from hpclaunch.errors import BadInputError
from hpclaunch.job.job_documents import VerifyDocument
from hpclaunch.job.record import NOT_JUDGED, RankReport, readable_cpus
from hpclaunch.json_document import document_of
from hpclaunch.observe.attached_nodes import AttachedNode, Process
from hpclaunch.package_data import package_constants
from hpclaunch.remote.look import GPU_VARIABLES, HELPERS, PAUSE_S, RANKS_OF, SHELLS
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.topology.node_topology import Core, NodeTopology

_WORDS = package_constants("observe/words.yaml", "ranks")
_GPU_FILE = re.compile(r"/dev/(nvidia\d+|dri/renderD\d+)$")
_OF_THE_JOB = "the job's GPU "  # whose number may mean another one in another step
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

    @property
    def certain(self) -> list[str]:
        """The GPU, where it is one, and the same for other steps, too."""
        return [one for one in self.own if len(self.own) == 1 and not one.startswith(_OF_THE_JOB)]


def gpus_of_ranks(
    ranks: Sequence[Sequence[Process]], node: AttachedNode, topology: NodeTopology | None
) -> list[SeenGpus]:
    """Return the GPUs of each rank of a step on a node; ``ranks``: each one's processes, the main first."""
    known = _Node(node, topology)
    mains = [processes[0] for processes in ranks]
    numbered = _numbered(mains, len(known.addresses))
    seen = [known.seen(processes, numbered) for processes in ranks]
    users, mixed = Counter(one.own for one in seen if one.own), _mixed(seen)
    shared = [one.own in mixed or users[one.own] > len(one.own) for one in seen]
    return [
        one._replace(verdict=GPU_SHARED) if wrong else one for one, wrong in zip(seen, shared, strict=True)
    ]


def _mixed(seen: list[SeenGpus]) -> set[frozenset[str]]:
    """Return the named sets of which another has a part: ranks with equal sets choose by local rank."""
    sets = {one.own for one in seen if one.own and len(one.own) == len((one.text or "").split(","))}
    return {own for own in sets if any(own & other for other in sets - {own})}


def _numbered(mains: list[Process], count: int) -> str:
    """Return whose numbers the variables have: the node's, the job's, or each rank's own."""
    if not any(one.variables.keys() & _WORDS.from_slurm for one in mains):
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
        self.gpus = self._addresses(node.gpus)
        self.addresses = set(self.address_of.values()) or set(self.gpus.values())
        self.partial = self.gpus if self.gpus.keys() & set(self.gpus.values()) else None

    def _addresses(self, gpus: Mapping[str, str]) -> dict[str, str]:
        """Return UUID -> PCI address; the UUID itself where a list is known to leave some of the GPUs out.

        nvidia-smi numbers those that its cgroup lets it see, so the numbers are the node's if it lists all.
        """
        whole = len(gpus) == len(self.address_of)
        numbers = {uuid: int(at[4:]) for uuid, at in gpus.items() if at.startswith("GPU ")}
        own = {uuid: self.address_of.get(number, uuid) if whole else uuid for uuid, number in numbers.items()}
        return {**gpus, **own}

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
        names = filter(None, takewhile(lambda name: name not in _WORDS.no_gpu, text.split(",")))
        found = [self._gpu(name, numbered) for name in names] or [NO_SUCH_GPU]
        wrong = next((verdict for name, verdict in _UNKNOWN.items() if name in found), None)
        if wrong is not None:
            judged = self.addresses or (wrong == NOT_JUDGED and text.startswith(("GPU-", "MIG-")))
            return SeenGpus(text, frozenset(), (), wrong if judged else "ok")
        return SeenGpus(text, frozenset(found), self._numbers(found), "ok")

    def _gpu(self, name: str, numbered: str) -> str:
        """Return which GPU a name is; `NO_SUCH_GPU`: the node has none such; empty: not known."""
        number = re.match(r"(\d{1,4})(\.\d+)?$", name)  # 1.0: a tile of an Intel GPU
        if number:
            return self._by_number(int(number[1]), number[2] or "", numbered)
        if name.startswith("MIG-"):
            own = {uuid: uuid for uuid in self.node.slices}
        elif name.startswith("GPU-"):
            own = self.gpus
        else:
            return ""
        known = [gpu for uuid, gpu in own.items() if uuid.lower().startswith(name.lower())]
        return known[0] if known else NO_SUCH_GPU * bool(own and own is not self.partial)

    def _by_number(self, number: int, tile: str, numbered: str) -> str:
        if numbered == "rank":
            return ""
        if numbered == "job":
            return f"{_OF_THE_JOB}{number}{tile}"
        if not self.address_of:
            return f"GPU {number}{tile}"
        return self.address_of[number] + tile if number in self.address_of else NO_SUCH_GPU

    def _numbers(self, found: Sequence[str] | frozenset[str]) -> tuple[int, ...]:
        """Return the numbers of one or two GPUs, of slices their GPUs'; none where one is not known."""
        own = {self.gpus.get(self.node.slices.get(name, ""), name) for name in found}
        numbers = [self.number_of.get(re.sub(r"(?<=\.\d)\.\d+$", "", name)) for name in sorted(own)]
        known = tuple(number for number in numbers if number is not None)
        return known if len(known) == len(own) <= 2 else ()


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


class AttachDocument(VerifyDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Findings in a running job that hpclaunch did not submit."""

    site: str
    details: tuple[RankDetails, ...]
    right: str | None
    remedies: tuple[str, ...]
    rules: tuple[str, ...]


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
    def cpus(self) -> frozenset[int]:
        """CPUs of its main process: OpenMP may have bound each thread to its own (OMP_PROC_BIND).

        A thread that may run on more CPUs than the main thread is a helper of a library, as ROCr's are.
        """
        main = self.main
        own, threads = readable_cpus(main.cpus), map(readable_cpus, main.threads)
        return own.union(*(cpus for cpus in threads if len(cpus) <= len(own)))

    @property
    def running(self) -> int:
        """Number of threads of its main process that run on its CPUs only, at two looks."""
        pairs = self.main.running.items()
        return sum(count for where, count in pairs if readable_cpus(where) <= self.cpus)

    @property
    def working(self) -> list[Process]:
        """Its processes without the shells that only wait for one of them."""
        parents = {one.parent for one in self.processes}
        shells = [one for one in self.processes if one.pid in parents and SHELLS.fullmatch(_name(one))]
        return [one for one in self.processes if one not in shells]

    def __str__(self) -> str:
        return f"{self.rank} of step {self.step}" if self.step not in ("", "0") else str(self.rank)


def judge_attached(
    job: str,
    nodes: Sequence[AttachedNode],
    profile: SiteProfile,
    topology: NodeTopology | None,
    planned: Mapping[int, str],
) -> AttachDocument:
    """Judge the binding of every rank for the node of the site, or by the CPUs that it was ``planned``.

    Without both only what the ranks share is judged.
    """
    ranks = _ranks(nodes)
    if not ranks:
        raise BadInputError.case("attach: nothing seen")
    problems: dict[str, str] = {}
    alone = len({one.step for one in ranks}) == 1
    judged = [_NodeRanks(here, topology, problems, planned, alone=alone) for here in _together(ranks)]
    reports = {key: report for each in judged for key, report in each.reports().items()}
    if not alone:
        _judge_steps(judged, ranks, reports, problems)
    finding, complete = _finding(reports, ranks)
    plan = judged[-1].plan
    unknown = f"the node of {profile.name} is not described: only what ranks share is judged"
    return AttachDocument(
        id=job,
        site=profile.name,
        ok=complete and all(one.ok for one in reports.values()),
        finding=finding,
        ranks=tuple(reports[one.step, one.rank] for one in ranks),
        details=tuple(_details(one) for one in ranks),
        right=_option(profile, plan) if plan else None,
        remedies=tuple(dict.fromkeys(problems.values())),
        rules=_rules(problems) if problems else (),
        note=None if judged[-1].described else unknown,
    )


def _together(ranks: list[_Rank]) -> Iterable[list[_Rank]]:
    """Return the ranks of each step on each node, in the order of their places."""
    together: dict[tuple[str, str], list[_Rank]] = {}
    for one in sorted(ranks, key=lambda one: (one.local_rank, one.rank)):
        together.setdefault((one.host, one.step), []).append(one)
    return together.values()


def _rules(problems: Iterable[str]) -> tuple[str, ...]:
    from hpclaunch.lint.rules.binding_rules import RULE_OF_RANK  # few jobs need it

    return tuple(RULE_OF_RANK[problem] for problem in problems if problem in RULE_OF_RANK)


def _judge_steps(
    judged: list["_NodeRanks"],
    ranks: list[_Rank],
    reports: dict[tuple[str, int], RankReport],
    problems: dict[str, str],
) -> None:
    """Find ranks that have the one GPU, or CPUs, of a rank of an earlier step on their node."""
    owners: dict[tuple[str, str | int], _Rank] = {}
    pairs = chain.from_iterable(zip(each.ranks, each.gpus, strict=True) for each in judged)
    gpus = {(one.step, one.rank): seen.certain for one, seen in pairs}
    for one in ranks:
        key = one.step, one.rank
        things: list[str | int] = [*gpus[key], *sorted(one.cpus)]
        others = {thing: owners.setdefault((one.host, thing), one) for thing in things}
        shared = {thing: other for thing, other in others.items() if other.step != one.step}
        if shared:
            gpu, cpus = {*gpus[key]}.intersection(shared), format_cpu_list(one.cpus.intersection(shared))
            named = " and ".join([*gpu, *[f"CPUs {cpus}"] * bool(cpus)])
            message = f"rank {one} shares {named} of {one.host} with rank {next(iter(shared.values()))}"
            verdict = GPU_SHARED if gpu else "shared"
            problems.setdefault(verdict, f"{message}; srun --exact gives each step its own")
            reports[key] = msgspec.structs.replace(reports[key], verdict=verdict)


def _ranks(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return the ranks of the surest kind that any process has, of all steps."""
    processes = [(node, one) for node in nodes for one in node.processes if not HELPERS.fullmatch(_name(one))]
    for needed, rank_name, local_name, size_name in RANKS_OF:
        found: dict[tuple[int, str, int], _Rank] = {}
        for node, process in processes:
            variables = process.variables
            rank, step = whole_number(variables.get(rank_name)), variables.get("SLURM_STEP_ID", "")
            if needed in variables and rank is not None and step not in _WORDS.no_steps:
                local = whole_number(variables.get(local_name)) or 0
                size = whole_number(variables.get(size_name, variables.get("WORLD_SIZE")))
                one = _Rank(node, step, rank, local, size, [])
                found.setdefault((whole_number(step) or 0, step, rank), one).processes.append(process)
        if found:
            return [found[key] for key in sorted(found)]
    return _one_rank(nodes)


def _one_rank(nodes: Sequence[AttachedNode]) -> list[_Rank]:
    """Return a job without a launcher as one rank, with all of its processes."""
    for node in nodes:
        processes = [one for one in node.processes if not HELPERS.fullmatch(_name(one))]
        if processes:
            return [_Rank(node, "", 0, 0, 1, processes)]
    return []


def _name(process: Process) -> str:
    return process.program[0].rpartition("/")[2] if process.program else ""


def _plan(topology: NodeTopology | None, count: int) -> NodeBinding | None:
    if topology is None:
        return None
    try:
        return bind(topology, BindingRequest(tasks_per_node=count))
    except BadInputError:
        return None


class _NodeRanks:
    """The ranks of one step on one node, and what is wrong with them."""

    def __init__(
        self,
        ranks: list[_Rank],
        topology: NodeTopology | None,
        problems: dict[str, str],
        planned: Mapping[int, str],
        *,
        alone: bool,
    ) -> None:
        """Take the ranks by place; ``problems``: name -> its first words; ``alone``: it is the only step."""
        self.ranks, self.topology, self.problems = ranks, topology, problems
        self.planned = planned if alone else {}
        self.described = bool(topology or self.planned)
        self.plan = _plan(topology, len(ranks)) if alone else None
        self.cpus = [one.cpus for one in ranks]
        self.gpus = gpus_of_ranks([[one.main, *one.processes] for one in ranks], ranks[0].node, topology)
        self.verdicts: dict[int, str] = {}
        """By the rank's place; at first of those with something wrong."""

    def reports(self) -> dict[tuple[str, int], RankReport]:
        """Return the report of each rank, by step and rank."""
        if self.planned:
            self._judge_by_plan()
        else:
            self._judge_cores()
        for number, (one, seen) in enumerate(zip(self.ranks, self.gpus, strict=True)):
            if seen.verdict in (GPU_SHARED, NO_SUCH_GPU):
                self.verdicts[number] = seen.verdict
                self.problems.setdefault(seen.verdict, self._gpu_problem(one, seen))
            elif number not in self.verdicts and (far := self._far_gpu(number)):
                self.verdicts[number] = "gpu-on-another-numa-node"
                self.problems.setdefault("wrong-gpu", f"rank {one}: {far}")
        for number in range(len(self.ranks)):
            self.verdicts.setdefault(number, self._other_verdict(number))
        return {(one.step, one.rank): self._report(number) for number, one in enumerate(self.ranks)}

    def _judge_by_plan(self) -> None:
        """Compare with the CPUs that the job's own plan gave each rank."""
        for number, one in enumerate(self.ranks):
            mine = self.planned.get(one.rank, "")
            if mine and not self.cpus[number] <= readable_cpus(mine):
                self.verdicts[number] = "cpus-differ"
                here = format_cpu_list(self.cpus[number])
                words = (
                    f"rank {one}: on CPUs {here}, and the job's plan gave it {mine}: its program or a library"
                )
                self.problems.setdefault("cpus-differ", f"{words} has bound it again")

    def _judge_cores(self) -> None:
        cores = tuple(Core(cpus=(cpu,)) for cpu in sorted(frozenset().union(*self.cpus)))
        masks = ",".join(to_mask(each) if each else "0x0" for each in self.cpus)
        node = self.topology or NodeTopology(cores=cores)
        for found in judge(node, "mask", masks, tasks=len(self.ranks)).findings:
            if found.rank is None or (found.problem == "wrong-gpu" and not self._by_place(found.rank)):
                continue
            self.verdicts.setdefault(found.rank, _WORDS.problems.get(found.problem, found.problem))
            words = f"rank {self.ranks[found.rank]}: {found.message}; {found.remedy}"
            self.problems.setdefault(found.problem, words)

    def _by_place(self, number: int) -> bool:
        """Whether a rank takes its GPU by its place: it sees all of them, and no other step is there."""
        seen = self.gpus[number]
        return self.plan is not None and not seen.numbers and seen.verdict != NOT_JUDGED

    def _gpu_problem(self, one: _Rank, seen: SeenGpus) -> str:
        """Return in a sentence which GPU a rank shares, or has not, and what would be right."""
        variable = next((name for name in GPU_VARIABLES if name in one.main.variables), "")
        value = f"{variable}={seen.text}" if variable else "no variable"
        if seen.verdict == GPU_SHARED:
            return self._sharing(one, seen, value)
        return f"rank {one}: {value}, and no GPU of {one.host} has that name; give it one that the node has"

    def _sharing(self, one: _Rank, seen: SeenGpus, value: str) -> str:
        pairs = [pair for pair in zip(self.ranks, self.gpus, strict=True) if pair[1].own & seen.own]
        users = {str(rank): gpus.own for rank, gpus in pairs if gpus.verdict == GPU_SHARED}
        shared = seen.own.intersection(*users.values()) or seen.own
        named = f"share {len(shared)} GPU ({', '.join(sorted(shared))}; {value})"
        remedy = "start one rank per GPU, or give each the GPU of its local rank"
        return f"ranks {listed(list(users))} of {one.host} {named}: {remedy}"

    def _numa(self, number: int) -> set[int | None]:
        """Return the NUMA nodes of a rank's cores; None is in them where one is not known."""
        if self.topology is None:
            return {None}
        return {core.numa for core in self.topology.cores if self.cpus[number].intersection(core.cpus)}

    def _far_gpu(self, number: int) -> str | None:
        """Return which GPU that a rank sees is on another NUMA node than its cores; None: none is."""
        here = self._numa(number)
        for gpu in self.topology.gpus if self.topology and None not in here else ():
            if gpu.index in self.gpus[number].numbers and gpu.numa is not None and gpu.numa not in here:
                nodes = ",".join(map(str, sorted(node for node in here if node is not None)))
                words = f"it sees GPU {gpu.index} of NUMA node {gpu.numa}"
                return f"{words}, and its cores are on NUMA node {nodes}"
        return None

    def _other_verdict(self, number: int) -> str:
        """Judge the memory policy, GPUs without a known name, and threads with too few CPUs."""
        one, cpus = self.ranks[number], self.cpus[number]
        found = [_memory_verdict(one.main.mems, self._numa(number)), self.gpus[number].verdict]
        if found[1] == NOT_JUDGED:
            words = f"rank {one}: nothing on {one.host} tells which GPU is {self.gpus[number].text}"
            self.problems.setdefault(NOT_JUDGED, words)
        wanted = whole_number(one.main.variables.get("OMP_NUM_THREADS", "").partition(",")[0]) or 0
        if cpus and max(wanted, one.running - 1) > len(cpus):  # one that runs may be a helper that polls
            found.append(MANY_THREADS)
            running = f"{one.running} threads that run, at two looks {PAUSE_S} s apart,"
            threads = f"{wanted} OpenMP threads" if wanted > len(cpus) else running
            words = f"rank {one}: {threads} on {len(cpus)} CPUs"
            remedy = f"give it as many CPUs, or OMP_NUM_THREADS={len(cpus)}"
            self.problems.setdefault(MANY_THREADS, f"{words}; {remedy}")
        return max(found, key=lambda each: (each != "ok") + (each not in ("ok", NOT_JUDGED)))

    def _site_plan(self, place: int) -> str:
        return format_cpu_list(self.plan.ranks[place].cpus) if self.plan else ""

    def _report(self, place: int) -> RankReport:
        one, seen = self.ranks[place], self.gpus[place]
        known = {gpu.index: gpu for gpu in self.topology.gpus} if self.topology else {}
        gpus = [known[number] for number in seen.numbers]
        return RankReport(
            rank=one.rank,
            host=one.host,
            local_rank=one.local_rank,
            cpus=format_cpu_list(self.cpus[place]),
            planned=self.planned.get(one.rank) or self._site_plan(place),
            mems=re.sub("^bind.*:", "", one.main.mems),
            gpus=seen.text or "none",
            bus=",".join(gpu.bus_id or "unknown" for gpu in gpus),
            gpu_numa=",".join("unknown" if gpu.numa is None else str(gpu.numa) for gpu in gpus),
            verdict=self.verdicts[place],
        )


MANY_THREADS = "more-threads-than-cpus"
_FOREIGN_MEMORY = "memory-on-another-numa-node"


def _memory_verdict(mems: str, here: set[int | None]) -> str:
    """Judge a memory policy: the nodes of a rank's cores, all of them where it binds, are right."""
    policy, _, text = mems.rpartition(":")
    nodes = readable_cpus(text)
    match policy.partition("=")[0]:
        case "":
            return "ok"
        case "bind" | "prefer-many" if None not in here:
            return "ok" if here <= nodes else _FOREIGN_MEMORY
        case "prefer" | "interleave" | "weighted-interleave" if None not in here:
            return "ok" if nodes <= here else _FOREIGN_MEMORY
    return NOT_JUDGED


def _details(one: _Rank) -> RankDetails:
    threads = sum((Counter(process.threads) for process in one.working), Counter[str]())
    opened = tuple(sorted({device for process in one.working for device in process.devices}))
    counts = {"processes": len(one.working), "threads": sum(threads.values()), "thread_cpus": threads}
    whose = {"rank": one.rank, "step": one.step, "host": one.host}
    return document_of(RankDetails, one.main, devices=opened, **whose, **counts)


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
    right = f"all {len(judged)} ranks{seen} have a right binding"
    return right if len(judged) > 1 else "the rank has a right binding"


def _option(profile: SiteProfile, plan: NodeBinding) -> str:
    """Return what would bind these ranks rightly, as the site's launcher takes it."""
    kinds = {
        "mask_cpu": lambda: f"srun --cpu-bind=mask_cpu:{dialects.mask_cpu(plan)}",
        "map_cpu": lambda: f"srun --cpu-bind=map_cpu:{dialects.map_cpu(plan)}",
        "list": lambda: f"mpiexec {dialects.pals(plan)}",
        "cores": lambda: f"{profile.scheduler.launcher} {site_launcher(profile).cores_option}",
    }
    usual = kinds.get(profile.binding.cpu)
    lists = " ".join(format_cpu_list(rank.cpus) for rank in plan.ranks)
    option = usual() if usual else f"taskset -c LIST, by local rank: {lists}"
    variable = profile.binding.gpu_visible_var
    gpus = ",".join(str(gpu) for rank in plan.ranks for gpu in rank.gpus)
    return option + (f"; {variable}={gpus}, all GPUs in the order of the ranks" if variable and gpus else "")
