"""The ranks of a running job that hpclaunch did not submit, and what is wrong with their binding. Pure.

Two sources tell which GPU a rank has: the variables with which it started, and the device files that it holds
open. A number in a variable counts the GPUs of the node, of the job, or of the rank alone: where Slurm
constrains devices, each rank calls the first that it may use 0. SLURM_STEP_GPUS has Slurm's own numbers of
these (man srun; per task with ``--gpus-per-task`` and ``--gpu-bind``, 22.05.8). One open device file is a GPU
for certain; several are those that the runtime has looked at (CUDA and ROCr open all that they may).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, takewhile
from typing import NamedTuple

import msgspec

from hpclaunch.amounts import counted, grouped, listed
from hpclaunch.binding import dialects
from hpclaunch.binding.compute import bind
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.cpuset import format_cpu_list, to_mask
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.job.job_documents import VerifyDocument
from hpclaunch.job.record import NOT_JUDGED, RankReport, readable_cpus
from hpclaunch.json_document import document_of
from hpclaunch.observe.attached_nodes import AttachedNode, Process
from hpclaunch.package_data import package_constants
from hpclaunch.remote.look import GPU_VARIABLES, HELPERS, PAUSE_S, RANKS_OF, SHELLS, flux_id
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.topology.node_topology import Core, NodeTopology

_WORDS = package_constants("observe/words.yaml", "ranks")
_GPU_FILE = re.compile(r"/dev/(nvidia\d+|dri/renderD\d+)$")
_OF_ROCR = "ROCR_VISIBLE_DEVICES"
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
    given: str = ""

    @property
    def names(self) -> list[str]:
        """The names in the variable up to the first that hides all after it."""
        return _entries(self.text or "")

    @property
    def certain(self) -> frozenset[str]:
        """Those whose names mean the same GPUs in other steps, too."""
        return frozenset(one for one in self.own if not one.startswith(_OF_THE_JOB))


def gpus_of_ranks(
    ranks: Sequence[Sequence[Process]], node: AttachedNode, topology: NodeTopology | None, vendor: str | None
) -> list[SeenGpus]:
    """Return the GPUs of each rank of a step on a node; ``ranks``: the processes of each, the main first."""
    known = _Node(node, topology)
    mains = [processes[0] for processes in ranks]
    numbered = _numbered([one for one in mains if not _from_slurm(one)], vendor, len(known.addresses))
    seen = [known.seen(processes, vendor, numbered) for processes in ranks]
    wrong = sharing(seen)
    seen = [one._replace(verdict=GPU_SHARED) if n in wrong else one for n, one in enumerate(seen)]
    return [known.by_place(one, seen[:n], seen) for n, one in enumerate(seen)]


def sharing(seen: Sequence[SeenGpus]) -> set[int]:
    """Return which ranks of a node share GPUs for certain: those with equal sets choose by local rank."""
    users = Counter(one.own for one in seen)
    named = {one.own for one in seen if len(one.own) == len(one.names)}
    wrong = {one for one, other in permutations(named, 2) if one & other}
    wrong |= {own for own, count in users.items() if count > len(own) > 0}
    return {n for n, one in enumerate(seen) if one.own in wrong}


def _from_slurm(process: Process) -> list[int]:
    """Return Slurm's numbers of the GPUs that a rank was given; in the batch script these are the job's."""
    variables = process.variables
    step = "SLURM_STEP_ID" in variables
    text = variables.get("SLURM_STEP_GPUS" if step else "SLURM_JOB_GPUS", "")
    return [int(name) for name in text.split(",")] if re.fullmatch(r"\d+(,\d+)*", text) else []


def _numbered(mains: list[Process], vendor: str | None, count: int) -> str:
    """Return whose numbers the variables have: the node's, the job's, or each rank's own."""
    if not any(one.variables.keys() & _WORDS.from_slurm for one in mains):
        return "node"
    texts = {visible(one, vendor)[0] or "" for one in mains}
    if len(mains) > 1 and len(texts) == 1 and texts.pop().isdigit():
        return "rank"
    given = {one.variables.get("SLURM_GPUS_ON_NODE") for one in mains}
    return "node" if given == {str(count)} else "job"


def visible(process: Process, vendor: str | None) -> tuple[str | None, str]:
    """Return the list of GPUs that a program sees, None without one, and the variables that say so.

    HIP counts within the list of ROCr, and reads CUDA_VISIBLE_DEVICES where its own variable is not set (ROCm
    6.4: GPU isolation techniques, HIP environment variables). Slurm may set the variables of all vendors.
    """
    given = {name: process.variables[name] for name in GPU_VARIABLES if name in process.variables}
    used = [*[name for name in _WORDS.of_vendor[vendor] if name in given], *given][:1]
    if _OF_ROCR in given and used != [_OF_ROCR] and vendor != "nvidia":
        used = [_OF_ROCR, *used]
    texts = [given[name] for name in used]
    shown = " ".join(map("=".join, zip(used, texts, strict=True)))
    return (_chosen(*texts) if len(texts) > 1 else next(iter(texts), None)), shown


def _chosen(exposed: str, chosen: str) -> str:
    """Return the list that a list of numbers makes of another, up to the first that it has not."""
    names = dict(enumerate(_entries(exposed)))
    found = (names.get(int(name), "") if name.isdigit() else name for name in _entries(chosen))
    return ",".join(takewhile(bool, found))


def _entries(text: str) -> list[str]:
    """Return the names of a list up to the first that hides all after it."""
    return [name for name in takewhile(lambda name: name not in _WORDS.no_gpu, text.split(",")) if name]


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

    def seen(self, processes: Sequence[Process], vendor: str | None, numbered: str) -> SeenGpus:
        """Judge one rank, of which nothing is compared with other ranks yet."""
        text, shown = visible(processes[0], vendor)
        files = {file for one in processes for file in one.devices if _GPU_FILE.match(file)}
        opened = frozenset(self.node.devices.get(file, "") for file in files)
        if len(opened) == 1 and "" not in opened:  # the one GPU that it uses
            return SeenGpus(text, opened, self._numbers(opened), "ok", shown)
        if text is None:
            return SeenGpus(text, frozenset() if "" in opened else opened, (), "ok")
        return self._named(text, numbered, _from_slurm(processes[0]))._replace(given=shown)

    def by_place(self, one: SeenGpus, before: Sequence[SeenGpus], ranks: Sequence[SeenGpus]) -> SeenGpus:
        """Return a rank with the numbers that are its own: one by its place, where others have its set, too.

        Of the whole node's set, or one with more GPUs than ranks, or of three and more, none is known.
        """
        users = sum(other.own == one.own for other in ranks)
        if users < 2 or len(one.own) < 2:
            return one if len(one.numbers) < 3 else one._replace(numbers=())
        place = sum(other.own == one.own for other in before)
        chosen = users == len(one.own) == len(one.numbers) < len(self.address_of)
        return one._replace(numbers=one.numbers[place : place + 1] if chosen else ())

    def _named(self, text: str, numbered: str, given: list[int]) -> SeenGpus:
        found = [self._gpu(name, numbered, given) for name in _entries(text)] or [NO_SUCH_GPU]
        wrong = next((verdict for name, verdict in _UNKNOWN.items() if name in found), None)
        if wrong is not None:
            judged = self.addresses or given or (wrong == NOT_JUDGED and text.startswith(("GPU-", "MIG-")))
            return SeenGpus(text, frozenset(), (), wrong if judged else "ok")
        return SeenGpus(text, frozenset(found), self._numbers(found), "ok")

    def _gpu(self, name: str, numbered: str, given: list[int]) -> str:
        """Return which GPU a name is; `NO_SUCH_GPU`: the node has none such; empty: not known."""
        number = re.match(r"(\d{1,4})(\.\d+)?$", name)  # 1.0: a tile of an Intel GPU
        if number:
            named = self._of_slurm(int(number[1]), given) or self._by_number(int(number[1]), numbered)
            return named if named in _UNKNOWN else named + (number[2] or "")
        slices = {uuid: uuid for uuid in self.node.slices}
        own = {"MIG-": slices, "GPU-": self.gpus}.get(name[:4], {})
        known = [gpu for uuid, gpu in own.items() if uuid.lower().startswith(name.lower())]
        return known[0] if known else NO_SUCH_GPU * bool(own and own is not self.partial)

    def _of_slurm(self, number: int, given: list[int]) -> str:
        """Return which of the GPUs that Slurm gave a number means; empty: all of the node's, or not known.

        It counts these where Slurm constrains devices, else those of the node; where both can be, the
        number means the same for all with the same GPUs.
        """
        if not given or given == sorted(self.address_of):
            return ""
        counted = given[number] if number < len(given) else None
        if counted is None:
            return f"Slurm's GPU {number}" if number in given else NO_SUCH_GPU
        if counted == number or number not in given:
            return f"Slurm's GPU {counted}"
        return f"GPU {number} of Slurm's {','.join(map(str, given))}"

    def _by_number(self, number: int, numbered: str) -> str:
        if numbered == "rank":
            return ""
        if numbered == "job":
            return f"{_OF_THE_JOB}{number}"
        if not self.address_of:
            return f"GPU {number}"
        return self.address_of.get(number, NO_SUCH_GPU)

    def _numbers(self, found: Iterable[str]) -> tuple[int, ...]:
        """Return the numbers of GPUs in their order, of slices their GPUs'; none where one is not known."""
        own = dict.fromkeys(self.gpus.get(self.node.slices.get(name, ""), name) for name in found)
        numbers = [self.number_of.get(re.sub(r"(?<=\.\d)\.\d+$", "", name)) for name in own]
        known = tuple(number for number in numbers if number is not None)
        return known if len(known) == len(own) else ()


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


class Rank(NamedTuple):
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
        where = f"step {self.step}" if self.step[:1].isdigit() else self.step
        return f"{self.rank} of {where}" if self.step not in ("", "0") else str(self.rank)


_Place = tuple[str, int]  # host and pid
_Launch = tuple[str, str | None, int]
"""Step, names (None: it is a step of srun), and number of ranks."""


def _ranks_of(nodes: Sequence[AttachedNode]) -> list[Rank]:
    """Return the ranks of all steps and launches; without any, all processes of a node as one rank.

    Of each step, and of each launch outside of steps, the surest kind of ranks that any process has counts.
    """
    seen = [(node, one, kind) for node in nodes for one in node.processes for kind in _kind(one)]
    within = grouped((_within(one), kind) for _, one, kind in seen)
    found = [_alone(*each) for each in seen if each[2] == min(within[_within(each[1])])]
    return list(_named(_launches(found))) or _one_rank(nodes)


def _step(process: Process) -> str:
    return process.variables.get("SLURM_STEP_ID", "")


def _ids(process: Process, names: Sequence[str]) -> list[str]:
    return [flux_id(process.variables[name]) for name in names if name in process.variables]


def _within(process: Process) -> tuple[str, ...]:
    """Return the step, or the launch outside of steps, in which a process is."""
    step = _step(process)
    return (step,) if step else ("", *_ids(process, _WORDS.launch_ids))


def _kind(process: Process) -> list[int]:
    """Return the number in `RANKS_OF` of the surest kind of rank that a process is, if it is one."""
    if HELPERS.fullmatch(_name(process)) or _step(process) in _WORDS.no_steps:
        return []
    variables = process.variables
    kinds = [n for n, (needed, rank, *_) in enumerate(RANKS_OF) if {needed, rank} <= variables.keys()]
    return [n for n in kinds if whole_number(variables[RANKS_OF[n][1]]) is not None][:1]


def _alone(node: AttachedNode, process: Process, kind: int) -> tuple[_Launch, Rank]:
    """Return a process as a rank, and its launch; workers of Python are named by where they meet."""
    variables, (needed, rank, local, size) = process.variables, RANKS_OF[kind]
    number, place = (whole_number(variables.get(name)) or 0 for name in (rank, local))
    whole = whole_number(variables.get(size, variables.get("WORLD_SIZE")))
    one = Rank(node, _step(process), number, place, whole, [process])
    if needed == "SLURM_STEP_ID":
        return (one.step, None, 0), one
    meeting = _ids(process, _WORDS.meeting) if local == "LOCAL_RANK" else []
    names = meeting if len(meeting) > 1 else _ids(process, _WORDS.launch_ids) + meeting
    return (one.step, ":".join(names), whole or 0), one


def _launches(found: Sequence[tuple[_Launch, Rank]]) -> dict[tuple[object, ...], dict[int, Rank]]:
    """Put the processes of each rank together: those below its uppermost one.

    Where one rank has several of these, each is of another launch; so are those on several nodes.
    """
    above = {(one.host, one.main.pid): (one.host, one.main.parent) for _, one in found}
    who = {(one.host, one.main.pid): (launch, one.rank) for launch, one in found}
    tops = _uppermost(found, who, above)
    roots = grouped(((place[0], who[place]), place) for place in tops)
    launches: dict[tuple[object, ...], dict[int, Rank]] = {}
    for launch, one in found:
        n = _twin((one.host, one.main.pid), roots[one.host, (launch, one.rank)], above)
        while launches.get((*launch, n), {}).get(one.rank, one).host != one.host:
            n += 1
        number = 0 if launch[1] is None else n
        there = launches.setdefault((*launch, number), {}).setdefault(one.rank, one._replace(processes=[]))
        there.processes.append(one.main)
    return launches


def _uppermost(
    found: Sequence[tuple[_Launch, Rank]],
    who: Mapping[_Place, tuple[_Launch, int]],
    above: Mapping[_Place, _Place],
) -> list[_Place]:
    """Return the uppermost processes of ranks; a part of a rank's shell, without a program, is none."""
    tops = sorted(place for place in who if who.get(above[place]) != who[place])
    programs = ((one.host, one.main.pid) for _, one in found if not SHELLS.fullmatch(_name(one.main)))
    started = {_root(place, tops, above) for place in programs}
    return [place for place in tops if place in started] or tops


def _root(place: _Place, roots: Sequence[_Place], above: Mapping[_Place, _Place]) -> _Place:
    """Return the one of these processes that is above a process; without one, its last known parent."""
    while place not in roots and place in above:
        place = above[place]
    return place


def _twin(place: _Place, roots: Sequence[_Place], above: Mapping[_Place, _Place]) -> int:
    """Return which of the uppermost processes of its rank is above this one.

    One that has lost its parent is of the first rank that has not, as a daemon of its program.
    """
    place = _root(place, roots, above)
    if place not in roots:
        return 0
    started = sorted((above[one], one) for one in roots if above[one][1] != 1 or above[place][1] == 1)
    return started.index((above[place], place)) if len(started) else 0


def _named(launches: Mapping[tuple[object, ...], dict[int, Rank]]) -> Iterator[Rank]:
    """Yield all ranks; where a step has several launches, these have their names with it."""
    steps = grouped((str(step), (name or "", ranks)) for (step, name, *_), ranks in launches.items())
    for step in sorted(steps, key=lambda step: (whole_number(step) or 0, step)):
        names = [name for name, _ in steps[step]]
        for n, (name, ranks) in enumerate(steps[step]):
            number = "" if name and names.count(name) == 1 else f" {names[: n + 1].count(name)}"
            launch = f"{step}, launch {name}{number}".replace("launch  ", "launch ").removeprefix(", ")
            place = launch if len(names) > 1 else step
            yield from (ranks[rank]._replace(step=place) for rank in sorted(ranks))


def _beside(nodes: Sequence[AttachedNode], ranks: Sequence[Rank]) -> str:
    """Return in words which programs of the job are of no rank, nor started one; empty: none."""
    places = {(node.host, one.pid): one for node in nodes for one in node.processes}
    known = {(one.host, process.pid) for one in ranks for process in one.processes}
    while more := {(host, places[host, pid].parent) for host, pid in known & places.keys()} - known:
        known |= more
    other = sorted(places.keys() - known)
    programs = list(filter(None, (_words(host, places[host, pid]) for host, pid in other)))
    count = counted(len(programs), "process", "processes")
    return f"{count} of no rank, not judged: {listed(programs, 3)}" if programs else ""


def _words(host: str, process: Process) -> str:
    """Return a program in words; empty for a launcher, a shell, or one in a step of Slurm's own."""
    name = _name(process)
    if HELPERS.fullmatch(name) or SHELLS.fullmatch(name) or _step(process) in _WORDS.no_steps:
        return ""
    return f"{name} (pid {process.pid} of {host}, CPUs {process.cpus})"


def _one_rank(nodes: Sequence[AttachedNode]) -> list[Rank]:
    """Return a job without a launcher as one rank, with all of its processes."""
    for node in nodes:
        processes = [one for one in node.processes if not HELPERS.fullmatch(_name(one))]
        if processes:
            return [Rank(node, "", 0, 0, 1, processes)]
    return []


def _name(process: Process) -> str:
    return process.program[0].rpartition("/")[2] if process.program else ""


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
    ranks = _ranks_of(nodes)
    if not ranks:
        raise BadInputError.case("attach: nothing seen")
    problems: dict[str, str] = {}
    alone = len({one.step for one in ranks}) == 1
    by_place = sorted(ranks, key=lambda one: (one.local_rank, one.rank))
    together = grouped(((one.host, one.step), one) for one in by_place).values()
    vendor = profile.node.gpu_vendor if profile.node else None
    judged = [_NodeRanks(here, topology, problems, planned, alone=alone, vendor=vendor) for here in together]
    reports = {key: report for each in judged for key, report in each.reports().items()}
    _judge_steps(judged, reports, problems)
    finding, complete = _finding(reports, ranks)
    plan = judged[-1].plan
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
        note=_note(profile, judged[-1].described, _beside(nodes, ranks)),
    )


def _note(profile: SiteProfile, described: bool, beside_ranks: str) -> str | None:
    unknown = note_text("attach: not described", site=profile.name)
    return "; ".join(filter(None, (unknown * (not described), beside_ranks))) or None


def _rules(problems: Iterable[str]) -> tuple[str, ...]:
    from hpclaunch.lint.rules.binding_rules import RULE_OF_RANK  # few jobs need it

    return tuple(RULE_OF_RANK[problem] for problem in problems if problem in RULE_OF_RANK)


def _judge_steps(
    judged: list["_NodeRanks"], reports: dict[tuple[str, int], RankReport], problems: dict[str, str]
) -> None:
    """Find ranks that share GPUs, or CPUs, with a rank of another step on their node."""
    for pairs in grouped((one.host, (one, seen)) for each in judged for one, seen in each.pairs).values():
        wrong = sharing([seen._replace(own=seen.certain) for _, seen in pairs])
        held = [(one, _held(one, seen, shares=n in wrong)) for n, (one, seen) in enumerate(pairs)]
        owners = grouped((thing, one) for one, things in held for thing in things)
        for one, things in reversed(held):  # the later one takes what is taken
            _judge_shared(one, {thing: owners[thing] for thing in things}, reports, problems)


def _held(one: Rank, seen: SeenGpus, *, shares: bool) -> list[str | int]:
    return [*sorted(seen.certain if shares else ()), *sorted(one.cpus)]


def _judge_shared(
    one: Rank,
    owners: Mapping[str | int, Sequence[Rank]],
    reports: dict[tuple[str, int], RankReport],
    problems: dict[str, str],
) -> None:
    """Judge a rank whose GPUs and CPUs have these owners."""
    pairs = [(thing, other) for thing, users in owners.items() for other in reversed(users)]
    shared = {thing: other for thing, other in pairs if other.step != one.step}
    if not shared:
        return
    gpus, cpus = [thing for thing in shared if isinstance(thing, str)], one.cpus.intersection(shared)
    named = " and ".join([*gpus, *[f"CPUs {format_cpu_list(cpus)}"] * bool(cpus)])
    other = next(iter(shared.values()))
    case = "attach: of two launches" if "launch" in one.step else "attach: of two steps"
    verdict, report = GPU_SHARED if gpus else "shared", reports[one.step, one.rank]
    problems.setdefault(verdict, note_text(case, rank=one, named=named, host=one.host, other=other))
    if gpus or not report.wrong:
        reports[one.step, one.rank] = msgspec.structs.replace(report, verdict=verdict)


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
        ranks: list[Rank],
        topology: NodeTopology | None,
        problems: dict[str, str],
        planned: Mapping[int, str],
        *,
        alone: bool,
        vendor: str | None = None,
    ) -> None:
        """Take the ranks by place; ``problems``: name -> its first words; ``alone``: it is the only step."""
        self.ranks, self.topology, self.problems = ranks, topology, problems
        self.planned = planned if alone else {}
        self.described = bool(topology or self.planned)
        self.plan = _plan(topology, len(ranks)) if alone else None
        self.cpus = [one.cpus for one in ranks]
        processes = [[one.main, *one.processes] for one in ranks]
        self.gpus = gpus_of_ranks(processes, ranks[0].node, topology, vendor)
        self.pairs = list(zip(ranks, self.gpus, strict=True))
        self.verdicts: dict[int, str] = {}
        """By the rank's place; at first of those with something wrong."""

    def reports(self) -> dict[tuple[str, int], RankReport]:
        """Return the report of each rank, by step and rank."""
        if self.planned:
            self._judge_by_plan()
        else:
            self._judge_cores()
        for number, (one, seen) in enumerate(self.pairs):
            if seen.verdict in (GPU_SHARED, NO_SUCH_GPU):
                self.verdicts[number] = seen.verdict
                self._say_gpu(one, seen)
            elif number not in self.verdicts and (far := self._far_gpu(number)):
                self.verdicts[number] = "gpu-on-another-numa-node"
                self.problems.setdefault("wrong-gpu", note_text("attach: wrong-gpu", rank=one, **far))
        for number in range(len(self.ranks)):
            self.verdicts.setdefault(number, self._other_verdict(number))
        return {(one.step, one.rank): self._report(number) for number, one in enumerate(self.ranks)}

    def _say(self, problem: str, one: Rank, **values: object) -> None:
        self.problems.setdefault(problem, note_text(f"attach: {problem}", rank=one, host=one.host, **values))

    def _judge_by_plan(self) -> None:
        """Compare with the CPUs that the job's own plan gave each rank."""
        for number, one in enumerate(self.ranks):
            mine = self.planned.get(one.rank, "")
            if mine and not self.cpus[number] <= readable_cpus(mine):
                self.verdicts[number] = "cpus-differ"
                self._say("cpus-differ", one, here=format_cpu_list(self.cpus[number]), mine=mine)

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
        seen, gpus = self.gpus[number], self.topology.gpus if self.topology else ()
        sees_all = seen.verdict == "ok" and len(seen.own) in (0, len(gpus))
        return self.plan is not None and not seen.numbers and sees_all

    def _say_gpu(self, one: Rank, seen: SeenGpus) -> None:
        """Say which GPU a rank shares, or has not, and what would be right."""
        if seen.verdict == NO_SUCH_GPU:
            which = "job has no such" if seen.names else "variable hides each"
            return self._say(seen.verdict, one, value=seen.given, which=which)
        pairs = [pair for pair in self.pairs if pair[1].own & seen.own]
        users = {str(rank): gpus.own for rank, gpus in pairs if gpus.verdict == GPU_SHARED}
        shared = sorted(seen.own.intersection(*users.values()) or seen.own)
        words = {"ranks": listed(list(users)), "count": len(shared), "shared": ", ".join(shared)}
        return self._say(seen.verdict, one, value=seen.given or "no variable", **words)

    def _numa(self, number: int) -> set[int | None]:
        """Return the NUMA nodes of a rank's cores; None is in them where one is not known."""
        if self.topology is None:
            return {None}
        return {core.numa for core in self.topology.cores if self.cpus[number].intersection(core.cpus)}

    def _far_gpu(self, number: int) -> dict[str, object] | None:
        """Return which GPU that a rank sees is on another NUMA node than its cores; None: none is."""
        here = self._numa(number)
        for gpu in self.topology.gpus if self.topology and None not in here else ():
            if gpu.index in self.gpus[number].numbers and gpu.numa is not None and gpu.numa not in here:
                nodes = ",".join(map(str, sorted(node for node in here if node is not None)))
                return {"gpu": gpu.index, "numa": gpu.numa, "nodes": nodes}
        return None

    def _other_verdict(self, number: int) -> str:
        """Judge the memory policy, GPUs without a known name, and threads with too few CPUs."""
        one, cpus = self.ranks[number], self.cpus[number]
        found = [_memory_verdict(one.main.mems, self._numa(number)), self.gpus[number].verdict]
        if found[1] == NOT_JUDGED:
            self._say(NOT_JUDGED, one, text=self.gpus[number].text)
        wanted = whole_number(one.main.variables.get("OMP_NUM_THREADS", "").partition(",")[0]) or 0
        if cpus and max(wanted, one.running - 1) > len(cpus):  # one that runs may be a helper that polls
            found.append(MANY_THREADS)
            running = f"{one.running} threads that run, at two looks {PAUSE_S} s apart,"
            threads = f"{wanted} OpenMP threads" if wanted > len(cpus) else running
            self._say(MANY_THREADS, one, threads=threads, cpus=len(cpus))
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


def _details(one: Rank) -> RankDetails:
    threads = sum((Counter(process.threads) for process in one.working), Counter[str]())
    opened = tuple(sorted({device for process in one.working for device in process.devices}))
    counts = {"processes": len(one.working), "threads": sum(threads.values()), "thread_cpus": threads}
    whose = {"rank": one.rank, "step": one.step, "host": one.host}
    return document_of(RankDetails, one.main, devices=opened, **whose, **counts)


def _finding(reports: dict[tuple[str, int], RankReport], ranks: list[Rank]) -> tuple[str, bool]:
    """Return the finding in a sentence, and whether all ranks of the job were seen."""
    steps = grouped((one.step, one.size or 0) for one in ranks)
    size = sum(max(sizes) or len(sizes) for sizes in steps.values())
    missing = len(reports) < size
    words = _verdict([(one, reports[one.step, one.rank]) for one in ranks], " that were seen" * missing)
    kind = "launches" if any("launch" in step for step in steps) else "steps"
    words += f" ({len(steps)} {kind}: {', '.join(steps)})" * (len(steps) > 1)
    absent = sorted({*range(size * (len(steps) == 1))} - {one.rank for one in ranks})
    named = f", not {listed([*map(str, absent)])}" * bool(absent)
    return words + f"; {len(reports)} of {size} ranks were seen{named}" * missing, not missing


def _verdict(judged: list[tuple[Rank, RankReport]], seen: str) -> str:
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
