"""A probe compared with a profile, fact by fact: right, wrong, new, or not seen.

The file of a probe has commands with their answers, from which facts are derived whenever it is read.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from hpclaunch.atomic_file import write_file
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.json_document import Document
from hpclaunch.package_data import package_table
from hpclaunch.plan.request_rules import kibibytes
from hpclaunch.plan.request_texts import looks_secret
from hpclaunch.scheduler.cluster_facts import ClusterFacts, NodeKind, QueueFacts
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.module_facts import loaded_modules
from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.walltime import parse_walltime_s


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one command."""

    command: str
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""

    @property
    def result(self) -> CommandResult | None:
        """The answer as parsers take it; None: there is none."""
        if self.exit_code is None:
            return None
        return CommandResult(exit_code=self.exit_code, stdout=self.stdout, stderr=self.stderr)


class ProbeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One probe of one machine."""

    format: Literal[1] = 1
    hpclaunch: str
    day: dt.date
    site: str
    scheduler: str
    origin: str = "measured"
    login: dict[str, Answer] = {}
    node: dict[str, Answer] = {}


def write_probe(path: Path, probe: ProbeFile) -> None:
    """Write the file, readable by its owner alone."""
    text = msgspec.json.format(msgspec.json.encode(probe), indent=1)
    write_file(path, text + b"\n", 0o600)


def read_probe(path: Path) -> ProbeFile:
    """Return a probe. Raises BadInputError with the file and the key that is wrong."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ProbeFile)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise BadInputError.case("probe: no probe", path=path, error=error) from None


_NAMES = package_table("probes/names.yaml")
_COMMON = re.compile(_NAMES["common"])
_STEM = re.compile(r"^(.*?)[\d\[].*$")


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Names that must not be in the file."""

    users: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()


def without_names(probe: ProbeFile, names: Names) -> ProbeFile:
    """Return the probe with other names, the same one for the same name everywhere."""
    short = [host.partition(".")[0] for host in names.hosts]
    whole = {
        **{home: "/home/user" for home in names.homes if home not in ("", "/", "/root")},
        **_numbered("user", names.users),
        **_numbered("project", names.accounts),
        **dict.fromkeys({host.partition(".")[2] for host in names.hosts} - {""}, "example.org"),
        **_numbered("host", [host for host in short if not _stem(host)]),
    }
    stems = _numbered("node", filter(None, map(_stem, short)), tail="x")
    words = [*_patterns(whole, "(?![A-Za-z0-9])"), *_patterns(stems, r"(?=[\d\[])")]
    words += [(re.compile(pattern), other) for pattern, other in _NAMES["addresses"]]
    return replace(
        probe,
        login={name: _cleaned(answer, words) for name, answer in probe.login.items()},
        node={name: _cleaned(answer, words) for name, answer in probe.node.items()},
    )


def without_secrets(text: str) -> str:
    """Return an answer without the values of variables whose names tell of a secret, such as SLURM_JWT."""
    return _VARIABLE.sub(lambda found: f"{found[1]}=..." if looks_secret(found[1]) else found[0], text)


_VARIABLE = re.compile(r"^(\w+)=.+$", re.MULTILINE)


def _cleaned(answer: Answer, words: list[tuple[re.Pattern[str], str]]) -> Answer:
    texts = {key: _clean(getattr(answer, key), words) for key in ("command", "stdout", "stderr")}
    return replace(answer, **texts)


def _clean(text: str, words: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, word in words:
        text = pattern.sub(word, text)
    return text


def _patterns(words: Mapping[str, str], behind: str) -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}{behind}", re.IGNORECASE), word)
        for name, word in sorted(words.items(), key=lambda pair: -len(pair[0]))
    ]


def _stem(host: str) -> str:
    """Return what stands before the number of a node's name, such as ``nid`` of ``nid001234``."""
    match = _STEM.match(host.partition(".")[0])
    return match[1] if match and not _COMMON.fullmatch(match[1]) else ""


def _numbered(kind: str, names: Iterable[str], tail: str = "") -> Mapping[str, str]:
    secret = [name for name in dict.fromkeys(names) if len(name) > 1 and not _COMMON.fullmatch(name)]
    return {name: f"{kind}{number}{tail}" for number, name in enumerate(sorted(secret), 1)}


Verdict = Literal["right", "wrong", "new", "not seen"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One fact."""

    key: str
    profile: Any
    measured: Any
    verdict: Verdict
    note: str = ""


class ProbeDocument(Document, frozen=True, kw_only=True):
    """A probe compared with a profile."""

    facts: tuple[Row, ...]


def cluster_of(probe: ProbeFile) -> ClusterFacts:
    """Return what the scheduler said; nothing where it did not answer. Raises RefusedError for an error."""
    scheduler = get_scheduler(probe.scheduler)
    answers = {name: probe.login[name].result for name in scheduler.facts_commands if name in probe.login}
    known = {name: answer for name, answer in answers.items() if answer is not None}
    return scheduler.parse_facts(known) if known else ClusterFacts()


def compare(probe: ProbeFile, profile: SiteProfile) -> tuple[Row, ...]:
    """Return a row for each fact of the profile that the probe can show, and for each that is new."""
    try:
        facts = cluster_of(probe)
    except RefusedError as error:
        told = [Row(key="queues", profile=None, measured=None, verdict="not seen", note=error.message)]
    else:
        told = [*_scheduler(facts, profile), *_queues(facts, profile), *_nodes(facts, profile)]
    return (*told, *_software(probe, profile), *_on_node(probe, profile))


def _matching_kind(facts: ClusterFacts, profile: SiteProfile) -> NodeKind | None:
    """Return the kind of the profile's node: in its queues, as many GPUs, the nearest number of cores."""
    node, named = profile.node, set(profile.queues)
    kinds = [kind for kind in facts.nodes if named & set(kind.queues)] or list(facts.nodes)

    def distance(kind: NodeKind) -> tuple[int, ...]:
        gpus = sum(each.count for each in kind.gpus if not each.are_slices)
        if node is None:  # that which a new profile would describe
            return (-gpus, -kind.nodes)
        return (abs(gpus - len(node.gpus)), abs((kind.cores or 0) - node.cores), -kind.nodes)

    return min(kinds, key=distance, default=None)


def _row(key: str, profile: Any, measured: Any, *, equal: bool | None = None, note: str = "") -> Row:
    if measured is None:
        verdict: Verdict = "not seen"
    elif profile is None:
        verdict = "new"
    else:
        verdict = "right" if (profile == measured if equal is None else equal) else "wrong"
    return Row(key=key, profile=profile, measured=measured, verdict=verdict, note=note)


def _scheduler(facts: ClusterFacts, profile: SiteProfile) -> Iterator[Row]:
    known, measured = profile.scheduler.version, facts.release
    yield _row("scheduler.version", known, measured, equal=f"{measured}.".startswith(f"{known}."))
    if facts.gpu_request:
        yield _row("scheduler.gpu_request", profile.scheduler.gpu_request, facts.gpu_request)
    if profile.binding.confined or facts.confines_cpus:  # it is false where a profile leaves it out
        yield _row("binding.confined", profile.binding.confined or None, facts.confines_cpus)


def _queues(facts: ClusterFacts, profile: SiteProfile) -> Iterator[Row]:
    measured = {queue.name: queue for queue in facts.queues}
    for name, queue in profile.queues.items():
        if queue.kind == "qos" or not measured:
            continue
        if name not in measured:
            yield _row(f"queues.{name}", name, "none", equal=False, note="no such queue takes jobs")
        else:
            yield from _queue(f"queues.{name}", queue, measured[name])
    for name in measured.keys() - profile.queues.keys():
        yield _row(f"queues.{name}", None, name)


def _queue(key: str, queue: Queue, found: QueueFacts) -> Iterator[Row]:
    limit = found.max_walltime
    equal = bool(limit and queue.max_walltime) and parse_walltime_s(
        queue.max_walltime or "0"
    ) == parse_walltime_s(limit or "0")
    yield _row(f"{key}.max_walltime", queue.max_walltime, limit, equal=equal)
    # A smaller limit of the profile may be that of a QOS, which the queue does not show.
    fewer = queue.max_nodes is not None and found.max_nodes is not None and queue.max_nodes <= found.max_nodes
    yield _row(f"{key}.max_nodes", queue.max_nodes, found.max_nodes, equal=fewer)
    yield _row(f"{key}.whole_node", queue.whole_node, found.whole_node or None, equal=queue.whole_node)


def _nodes(facts: ClusterFacts, profile: SiteProfile) -> Iterator[Row]:
    kind = _matching_kind(facts, profile)
    if kind is None:
        return
    known: dict[str, Any] = msgspec.to_builtins(profile.node) if profile.node else {}
    cores = known.get("cores")
    yield _row("node.cores", cores, kind.cores, equal=cores in (kind.cores, kind.usable_cores))
    # A profile leaves out what is usual.
    threads = known.get("threads_per_core", 1) if known else None
    yield _row("node.threads_per_core", threads, kind.threads_per_core)
    yield from _memory(known, kind)
    yield from _gpus(known, kind)
    count = known.get("count", 0)
    yield _row("node.count", count or None, kind.nodes, equal=abs(count - kind.nodes) * 10 <= kind.nodes)


def _memory(known: dict[str, Any], kind: NodeKind) -> Iterator[Row]:
    if not kind.memory_mib:
        return
    memory, there = known.get("memory_gib", 0), kind.memory_mib >> 10
    note = "to 15 %: a site names what is built in"
    yield _row("node.memory_gib", memory or None, there, equal=abs(memory - there) <= 0.15 * there, note=note)
    request = known.get("memory_request", "")
    if wanted := kibibytes(request):
        equal = wanted <= kind.memory_mib << 10
        yield _row("node.memory_request", request, f"{kind.memory_mib}M", equal=equal)


def _gpus(known: dict[str, Any], kind: NodeKind) -> Iterator[Row]:
    whole = [each for each in kind.gpus if not each.are_slices]
    count = len(known.get("gpus", ())) if known else None
    yield _row("node.gpus", count, sum(each.count for each in whole))
    if whole and whole[0].type:
        yield _row("node.gpu_type", known.get("gpu_type"), whole[0].type)


def _software(probe: ProbeFile, profile: SiteProfile) -> Iterator[Row]:
    if plugins := _words(probe.login.get("mpi plugins")):
        for name in filter(None, (profile.mpi.plugin, *profile.mpi.alternatives)):
            yield _row("mpi.plugin", name, " ".join(plugins), equal=name in plugins)
    yield from _modules(probe.login.get("modules"), profile)
    for name, storage in profile.storage.items():
        answer = probe.login.get(f"storage {name}", _NO_ANSWER)
        if answer.exit_code is not None:
            there = storage.path if answer.exit_code == 0 else "not there"
            yield _row(f"storage.{name}.path", storage.path, there)
    for key, answers in (("internet_on_login", probe.login), ("internet_on_compute", probe.node)):
        # Not reached: it may be the machine there that does not answer.
        reached = "reached" in answers.get("internet", _NO_ANSWER).stdout or None
        yield _row(key, getattr(profile, key), reached)


_NO_ANSWER = Answer(command="", exit_code=None)


def _modules(answer: Answer | None, profile: SiteProfile) -> Iterator[Row]:
    if answer is None or answer.exit_code != 0:
        return
    there = answer.stdout.split()
    for module in loaded_modules(profile):
        found = module.name if module.name in there else "not there"
        yield _row(f"{module.key} {module.name}", module.name, found)


def _words(answer: Answer | None) -> list[str]:
    """Return the plugins of ``srun --mpi=list``, which 22.05 prints to stderr."""
    text = f"{answer.stdout}\n{answer.stderr}" if answer else ""
    return [
        word
        for word in re.findall(r"[a-z][\w]*", text)
        if word not in ("mpi", "plugin", "types", "are", "srun")
    ]


def _on_node(probe: ProbeFile, profile: SiteProfile) -> Iterator[Row]:
    environment = probe.node.get("environment")
    if environment is not None:
        names = {line.partition("=")[0] for line in environment.stdout.splitlines()}
        launcher = site_launcher(profile)
        yield from _variables("rank", launcher.rank, names)
        yield from _variables("local rank", launcher.local_rank, names)
    if ranks := probe.node.get("two ranks"):
        found = re.search(r"^sum 2 of 2 ranks by .*$", ranks.stdout, re.MULTILINE)
        said = found[0] if found else (ranks.stdout.strip().splitlines() or ["nothing"])[-1]
        yield _row("two ranks", "sum 2 of 2 ranks", said[:60], equal=found is not None)
        network = re.search(r"Using network (\S+)", ranks.stdout)
        if network and profile.fabric.plugin:
            yield _row("fabric.plugin", profile.fabric.plugin.name, network[1], equal=network[1] != "Socket")


def _variables(key: str, text: str, names: set[str]) -> Iterator[Row]:
    """Compare the variables of a launcher's expression with those that a rank has: one of them is enough."""
    if needed := re.findall(r"\$\{?(\w+)", text):
        there = " ".join(name for name in needed if name in names)
        yield _row(
            f"scheduler.launcher, {key}", " or ".join(needed), there or "none of them", equal=bool(there)
        )
