"""The site's rules, checked against a request before anything is submitted.

A request that the site would refuse, or worse, silently mangle, is a SiteRuleError that names the rule and
the page that states it.
"""

import datetime as dt
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError, SiteRuleError
from hpclaunch.package_data import package_constants
from hpclaunch.plan.request import JobRequest, Problem, problem
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.site.site_scheduler import cite, misfit, with_partition_limits
from hpclaunch.topology.node_topology import NodeTopology
from hpclaunch.walltime import format_walltime

if TYPE_CHECKING:
    from hpclaunch.scheduler.directive_reader import DirectiveOption, DirectiveReader


class QueueChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of a job: its name, what the profile knows of it, and why it was taken."""

    name: str | None
    queue: Queue | None
    reason: str
    problem: Problem | None = None

    @property
    def is_whole_node(self) -> bool:
        """Whether it gives whole nodes, as the profile says."""
        return self.queue is not None and self.queue.whole_node


def check_account(profile: SiteProfile, account: str | None) -> None:
    """Refuse a missing account where the site requires one, and one that does not look like the site's."""
    rule = profile.account
    example = f", such as {rule.example}" if rule.example else ""
    known = {"site": profile.name, "page": cite(profile, rule.source), "example": example}
    if account is None:
        if rule.required:
            raise SiteRuleError.case("site: no account", **known)
    elif rule.pattern and not re.fullmatch(rule.pattern, account):
        raise SiteRuleError.case("site: other account", account=account, pattern=rule.pattern, **known)


def choose_queue(profile: SiteProfile, named: str | None, nodes: int, walltime_s: int) -> QueueChoice:
    """Return the queue named, or the first of the profile's that fits.

    Left open, preemptable and by-request queues, QOS and queues without GPUs are passed over.
    Raises SiteRuleError when the named one does not fit, or none does.
    """
    if named is not None:
        return _named_queue(profile, named, nodes, walltime_s)
    if not profile.queues:
        return QueueChoice(name=None, queue=None, reason="the profile lists no queues: the site's default")
    why_not = []
    for name, queue in profile.queues.items():
        limits = with_partition_limits(profile, queue)
        problem = _only_when_named(queue) or misfit(limits, nodes, walltime_s)
        if problem is None:
            limit = f"up to {queue.max_nodes or 'any number of'} nodes, {queue.max_walltime or 'any time'}"
            return QueueChoice(name=name, queue=queue, reason=f"the first {queue.kind} that fits: {limit}")
        why_not.append(f"{name}: {problem}")
    values = {"nodes": counted(nodes, "node"), "time": format_walltime(walltime_s)}
    values |= {"reasons": "".join(f"\n    {each}" for each in why_not), "source": _queue_source(profile)}
    raise SiteRuleError.case("site: no queue", profile=profile, **values)


def _named_queue(profile: SiteProfile, named: str, nodes: int, walltime_s: int) -> QueueChoice:
    """Return the queue of a name, or of several with commas between (sbatch --partition)."""
    choice = QueueChoice(name=named, queue=None, reason="named in the request")
    if not profile.queues:
        return choice
    for name in named.split(","):
        queue = profile.queues.get(name)
        if queue is None:
            return msgspec.structs.replace(choice, problem=_unknown_queue(profile, name))
        problem = misfit(with_partition_limits(profile, queue), nodes, walltime_s)
        if not queue.gpus and profile.node is not None and profile.node.gpus:
            problem = "its nodes have no GPUs, and the profile describes the GPU nodes"
        if problem:
            known = {"kind": queue.kind, "site": profile.name, "page": cite(profile, queue.source)}
            raise SiteRuleError.case("site: queue", name=name, problem=problem, **known)
        choice = msgspec.structs.replace(choice, queue=choice.queue or queue)
    return choice


def _unknown_queue(profile: SiteProfile, name: str) -> Problem:
    from difflib import get_close_matches  # only messages need it

    meant = "".join(f"; did you mean {each}?" for each in get_close_matches(name, profile.queues, n=1))
    kinds = sorted({queue.kind for queue in profile.queues.values()})
    relation = "extends" if profile.status == "generic" else "part_of"
    own = f"{relation}: {profile.name}, queues: {{{name}: {{}}}}"
    listed = f"{profile.name} has the {' and '.join(kinds)}s {', '.join(profile.queues)}"
    return problem("partition: unknown", name=name, listed=listed, meant=meant, own=own)


def _only_when_named(queue: Queue) -> str | None:
    for flag, word in (
        (queue.by_request, "only after asking the site, so only when named"),
        (queue.preemptable, "jobs there may be ended any time, so only when named"),
        (not queue.gpus, "no GPUs"),
        (queue.kind == "qos" and not queue.automatic, "a QOS, so only when named"),
        (queue.automatic is False, "only when named"),
    ):
        if flag:
            return word
    return None


def _queue_source(profile: SiteProfile) -> str:
    sources = {queue.source for queue in profile.queues.values() if queue.source}
    return "; ".join(cite(profile, source) for source in sorted(sources)) or f"site profile {profile.name}"


def check_request(scheduler: Scheduler, request: JobRequest, queues: Mapping[str, Queue]) -> None:
    """Refuse what the scheduler, or the samples of the job, cannot have; ``queues``: the site's."""
    name = request.name
    if not re.fullmatch(scheduler.job_name_pattern, name) or not name.strip():
        raise BadInputError(f"--name {name!r} cannot stand in a batch script", scheduler.job_name_rule)
    check_directives(scheduler, request.directives, queues)
    check_abilities(scheduler, request)
    if not 1 <= request.sample <= 3600:  # in a job file; the option has these limits
        raise BadInputError.case("sample: interval", sample=request.sample)


def check_abilities(scheduler: Scheduler, request: JobRequest) -> None:
    """Refuse what the scheduler cannot do: dependencies, times of start, arrays, restarts, exclusions."""
    requested = {"--after": request.after, "--begin": request.begin, "--array": request.array}
    requested["--exclude"] = request.exclude
    if scheduler.starts_at_once and any(requested.values()):
        name = next(name for name, value in requested.items() if value)
        raise BadInputError.case("queue: none", name=name)
    if request.exclude and not scheduler.resubmit_without:
        raise BadInputError.case("exclude: cannot", exclude=",".join(request.exclude), scheduler=scheduler)
    begin_time(scheduler, request)
    if request.max_restarts and scheduler.no_restarts:
        raise BadInputError.case("max-restarts: cannot", no_restarts=scheduler.no_restarts)
    if request.array:
        array_indices(request.array, scheduler)
        if request.max_restarts:
            _check_array_restarts(scheduler, request)
    bad = [node for node in request.exclude if not re.fullmatch(r"[\w.\[\],-]+", node, re.ASCII)]
    if bad:
        raise BadInputError(f"--exclude: {bad[0]!r} is not a node name", "write names as sinfo shows them")


def begin_time(scheduler: Scheduler, request: JobRequest) -> dt.datetime | None:
    """Return the time before which the job must not start; raises BadInputError."""
    if request.begin is None:
        return None
    if scheduler.no_begin:
        raise BadInputError(f"--begin {request.begin}: {scheduler.title} {scheduler.no_begin}")
    if request.max_restarts and not scheduler.keeps_begin:
        raise BadInputError.case("begin: restarts", title=scheduler.title)
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", request.begin, re.ASCII):
            raise ValueError
        return dt.datetime.fromisoformat(request.begin)
    except ValueError:
        raise BadInputError.case("begin: no time", begin=request.begin) from None


def memory_request(profile: SiteProfile, scheduler: Scheduler, request: JobRequest) -> str | None:
    """Return what is requested as memory of each node, as the scheduler takes it; None: nothing.

    Raises BadInputError, and SiteRuleError for more than a node of the site has.
    """
    whole = profile.node.memory_request if profile.node else None
    if request.memory is None:
        return whole if request.exclusive else None
    given = f"--mem {request.memory}"
    if scheduler.memory_suffix is None:
        raise BadInputError(f"{given}: {scheduler.title} {scheduler.no_memory}", "leave it out")
    if request.memory == "0":
        everything = whole or scheduler.all_memory
        if not everything:
            raise BadInputError(
                f"{given}: {scheduler.title} has no word for all memory of a node", _WORD.amount
            )
        return everything
    wanted = kibibytes(request.memory)
    if not wanted:
        raise BadInputError(f"{given}: this is not an amount of memory with its unit", _WORD.amount)
    _check_memory(profile, given, wanted)
    return f"{request.memory.upper().removesuffix('B').removesuffix('I')}{scheduler.memory_suffix}"


def _check_memory(profile: SiteProfile, given: str, wanted: int) -> None:
    """Refuse more memory than a node of the site gives, as far as the profile says."""
    node = profile.node
    if node is None:
        return
    limit = node.memory_request or f"{node.memory_gib}G"
    most = kibibytes(limit)
    if most and wanted > most:
        gets = ": the job gets it" if node.memory_request else ""
        values = {"given": given, "limit": limit, "gets": gets, "source": cite(profile, node.source)}
        raise SiteRuleError.case("site: memory", profile=profile, **values)


_WORD = package_constants("plan/forms.json", "request_rules")


def kibibytes(text: str) -> int | None:
    """Return memory in KiB, ``64G``, ``64GB`` and ``64GiB`` alike, as schedulers count; None: it is none."""
    match = re.fullmatch(r"([1-9]\d{0,8})([KMGT])(?:I?B)?", text.upper(), re.ASCII)
    return int(match[1]) << 10 * "KMGT".index(match[2]) if match else None


def _check_array_restarts(scheduler: Scheduler, request: JobRequest) -> None:
    """Refuse restarts of an array's jobs where one cannot come back alone, or would disturb another."""
    if scheduler.arrays and scheduler.arrays.no_restarts:
        raise BadInputError.case("array: restarts", scheduler=scheduler)
    if request.command.bundled:
        raise BadInputError.case("array: mnist restarts")


def check_cores(
    profile: SiteProfile, topology: NodeTopology, request: JobRequest, tasks_per_node: int
) -> None:
    """Refuse more cores or GPUs on a node than the site gives to jobs."""
    cpus = topology.usable
    usable = sum(1 for core in topology.cores if cpus.issuperset(core.cpus))
    requested, ranks = tasks_per_node * (request.cpus_per_task or 1), counted(tasks_per_node, "rank")
    source = cite(profile, profile.node.source if profile.node else None)
    if requested > usable:
        reserved = len(topology.cores) - usable
        rule = f"{len(topology.cores)} cores less {reserved} that are reserved" if reserved else "all it has"
        asked = f"{counted(requested, 'core')} per node requested ({ranks} x {request.cpus_per_task or 1})"
        values = {"asked": asked, "usable": usable, "most": _at_most(usable, tasks_per_node)}
        raise SiteRuleError.case("site: cores", profile=profile, rule=rule, source=source, **values)
    gpus = tasks_per_node * (request.gpus_per_task or 0)
    if gpus > len(topology.gpus):
        asked = f"{counted(gpus, 'GPU')} per node requested ({ranks} x {request.gpus_per_task})"
        has = len(topology.gpus)
        raise SiteRuleError.case("site: GPUs", profile=profile, asked=asked, has=has, source=source)


def _at_most(cores: int, tasks_per_node: int) -> str:
    each = cores // tasks_per_node
    if not each:
        return f"at most {counted(cores, 'rank')} per node, with one core each"
    return f"at most {counted(each, 'core')} per rank with {counted(tasks_per_node, 'rank')} per node"


def check_whole_node(profile: SiteProfile, choice: QueueChoice, request: JobRequest) -> None:
    """Refuse CPU masks where the job does not own the node: they would name other people's CPUs."""
    shared = not request.exclusive and not choice.is_whole_node
    sharing = (text for text in request.directives if " ".join(text.split()[:1]) in _WORD.sharing)
    shared_by = "--no-exclusive" if shared else next(sharing, None)
    if shared_by and profile.binding.needs_whole_node:
        page = cite(profile, profile.binding.source)
        raise SiteRuleError.case("site: shared node", by=shared_by, site=profile.name, page=page)


def check_directives(
    scheduler: Scheduler, directives: Sequence[str], queues: Mapping[str, Queue] = MappingProxyType({})
) -> None:
    """Refuse extra directives that contradict the plan or are no single line; ``queues``: the profile's."""
    reader = scheduler.directive_reader() if directives else None  # loading it takes a while
    for text in directives:
        if not text.strip() or "\n" in text or "\r" in text:
            raise BadInputError(f"--directive {text!r} is not one line", "give one directive each time")
        if not text.startswith("-"):
            raise BadInputError(f"--directive {text!r} is not an option", "write it as --mail-type=END")
        try:
            shlex.split(text, comments=True)
        except ValueError:
            raise BadInputError.case("directive: quote", text=text) from None
        if reader:
            for instead in _instead(reader, text, queues):
                raise BadInputError.case("directive: contradicts", text=text, instead=instead)
            _check_spelling(reader, text)


def _instead(reader: "DirectiveReader", text: str, queues: Mapping[str, Queue]) -> Iterator[str]:
    """Yield what to use instead of options that the plan sets, such as a QOS where the profile lists them."""
    read = list(reader.read_text(text))
    for names, instead in reader.answers("owned").items():
        if any(_is_option(option, owned) for option in read for owned in re.findall(r"-[lW] \S+|\S+", names)):
            yield instead
    listed = [name for name, queue in queues.items() if queue.kind == "qos"]
    if listed and any(reader.roles.get(option.name) == "qos" for option in read):
        yield f"--partition, which takes the QOS {', '.join(listed)}"


def _check_spelling(reader: "DirectiveReader", text: str) -> None:
    """Refuse the misspelt name of an option. One that is like no other may be that of a site's plugin."""
    for option in reader.read_text(text):
        if not option.known and not option.problem:
            from difflib import get_close_matches  # only messages need it

            if near := get_close_matches(option.name, reader.known_options, n=1, cutoff=0.8):
                raise BadInputError.case(
                    "directive: unknown", text=text, reader=reader, name=option.name, near=near[0]
                )


def _is_option(option: "DirectiveOption", owned: str) -> bool:
    """Return whether an option is this one, as ``DirectiveReader.answers`` names it."""
    owned, _, part = owned.partition("=")  # --gres=gpu: of its values only those with gpu
    name, value = option.name, option.value or ""
    if part not in value:
        return False
    if owned.startswith("--"):  # GNU getopt and argparse take the beginning of a name
        return len(name) > 1 and owned[2:].startswith(name)
    if " " in owned:
        letter, resource = owned[1:].split()
        return name == f"{letter}:{resource}" or (
            name == letter and re.search(rf"(^|,){resource}=", value) is not None
        )
    return name == owned[1:]


def array_indices(text: str, scheduler: Scheduler) -> tuple[int, ...]:
    """Return the indices of ``0-9``, ``0-9:2``, ``1,4,7`` (not for PBS), each with ``%N`` for N at once.

    Raises BadInputError for anything else, and for what the scheduler does not know.
    """
    ranges, percent, at_once = text.partition("%")
    if percent and not re.fullmatch(r"0*[1-9][0-9]{0,8}", at_once):
        raise BadInputError.case("array: at once", text=text, at_once=at_once)
    found: set[int] = set()
    for part in ranges.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", part)
        if not match:
            raise BadInputError.case("array: no range", text=text, part=part)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or (last - first) // step >= _WORD.max_tasks:
            raise BadInputError.case("array: other range", text=text, part=part, most=_WORD.max_tasks)
        found.update(range(first, last + 1, step))
    _check_rules(text, scheduler, found, is_list="," in ranges)
    return tuple(sorted(found))


def _check_rules(text: str, scheduler: Scheduler, indices: set[int], *, is_list: bool) -> None:
    rules = scheduler.arrays
    if rules is None:
        raise BadInputError.case("array: cannot", text=text, title=scheduler.title)
    if "%" in text and not rules.limits:
        raise BadInputError.case("array: no limit", text=text, title=scheduler.title)
    if (is_list and not rules.lists) or len(indices) < rules.fewest_jobs:
        form = "indices" if rules.lists else "one range of at least two indices"
        raise BadInputError.case("array: other form", text=text, scheduler=scheduler, form=form)
    if min(indices) < rules.first_index:
        raise BadInputError.case("array: first index", text=text, scheduler=scheduler)
