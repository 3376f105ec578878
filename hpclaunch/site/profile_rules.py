"""The rules between values of a profile, beyond their types."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from hpclaunch.cpuset import MAX_CPU, CpuSet, format_cpu_list, parse_cpu_list
from hpclaunch.errors import BadInputError, case_texts
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.scheduler.job_header import PLAIN_WORD
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.registry import get_scheduler, schedulers
from hpclaunch.site import schema
from hpclaunch.site.yaml_tree import KeyPath
from hpclaunch.walltime import parse_walltime_s

Broken = tuple[KeyPath, str, str]
"""Key path, what was found, what would be right."""

_WORD = package_constants("site/forms.json", "profile_rules")
_FORM = package_patterns("site/forms.json", "profile_rules")
_NESTED = (msgspec.Struct, dict, tuple)


def broken_rules(profile: schema.SiteProfile | schema.NodeKind) -> Iterator[Broken]:
    """Yield every rule that the profile or node kind breaks."""
    for path, part in structs_of(profile, ()):
        source = getattr(part, "source", None)
        if source is not None and source not in profile.sources:
            from difflib import get_close_matches  # only messages need it

            near = get_close_matches(source, profile.sources, n=1)
            right = f"did you mean {near[0]!r}?" if near else "add it to sources: with url and checked"
            yield (*path, "source"), f"source {source!r} is not in sources", right
        for inner, text in _own_texts(part):
            yield from _one_line((*path, *inner), text)
        rule = _RULES.get(type(part))
        for inner, found, right in rule(part, profile) if rule else ():
            yield (*path, *inner), found, right
        if isinstance(part, schema.EnvVar):
            yield from _variable(path, str(path[-1]))
        if isinstance(part, schema.Queue):
            yield from _plain(path, str(path[-1]))


def _broken(case: str, path: KeyPath, **values: object) -> Broken:
    """Return a rule of ``profile_rules.yaml`` that is broken at a key, with these values in its texts."""
    found, right = case_texts("site/profile_rules.yaml", case, **values)
    return path, found, right


def _own_texts(part: msgspec.Struct) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts of a struct, not those of structs inside of it; prose may have several lines."""
    for name in part.__struct_fields__:
        value = getattr(part, name)
        if name in _WORD.prose:
            continue
        if isinstance(value, str):
            yield (name,), value
        elif isinstance(value, dict):
            yield from (((name, key), key) for key in value)
            yield from (((name, key), item) for key, item in value.items() if isinstance(item, str))
        elif isinstance(value, tuple):
            yield from (((name, number), item) for number, item in enumerate(value) if isinstance(item, str))


def structs_of(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, msgspec.Struct]]:
    """Yield every struct in a value, the outer ones first, with its key path."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, msgspec.Struct):
        yield path, value
        items = [(name, getattr(value, name)) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        items = value.items()
    elif isinstance(value, tuple):
        items = enumerate(value)
    for key, item in items:
        if isinstance(item, _NESTED):
            yield from structs_of(item, (*path, key))


def _launcher(profile: schema.SiteProfile) -> Launcher | None:
    return get_scheduler(profile.scheduler.kind).launcher(profile.scheduler.launcher)


def _scheduler(part: schema.Scheduler, _: schema.SiteProfile) -> Iterator[Broken]:
    scheduler = get_scheduler(part.kind)
    fitting = [launcher.name for launcher in scheduler.launchers]
    if part.launcher not in fitting:
        yield _broken("scheduler: launcher", ("launcher",), part=part, fitting=" or ".join(fitting))
    if part.select and not scheduler.has_select:
        yield _broken("scheduler: select", ("select",), part=part)
    if part.select and not PLAIN_WORD.fullmatch(part.select):
        yield ("select",), f"select is {part.select!r}", "write resource=value, several with a colon between"


def _profile(part: schema.SiteProfile, _: schema.SiteProfile) -> Iterator[Broken]:
    if (part.status == "historic") != (part.retired is not None):
        retired = "missing" if part.retired is None else "set"
        yield _broken("profile: status", ("status",), part=part, retired=retired)
    for number, directive in enumerate(part.directives):
        if not directive.text.startswith("-"):
            yield ("directives", number, "text"), f"{directive.text!r} is not an option", "write it as --nice"


def _detect(part: schema.Detect, _: schema.SiteProfile) -> Iterator[Broken]:
    for field in ("hostnames", "hostnames_unique", "gpu_models", "modules"):
        for number, pattern in enumerate(getattr(part, field)):
            yield from _regex((field, number), pattern)
    for name, pattern in part.env.items():
        yield from _variable(("env", name), name)
        yield from _regex(("env", name), pattern)


def _account(part: schema.Account, _: schema.SiteProfile) -> Iterator[Broken]:
    if part.pattern is None:
        return
    bad = list(_regex(("pattern",), part.pattern))
    yield from bad
    if not bad and part.example is not None and not re.fullmatch(part.pattern, part.example):
        yield ("example",), f"example {part.example!r} does not match the pattern", "correct one of the two"


def _queue(part: schema.Queue, profile: schema.SiteProfile) -> Iterator[Broken]:
    kinds = get_scheduler(profile.scheduler.kind).queue_kinds
    if part.kind not in kinds:
        right = " or ".join(kinds) or "left out: there are no queues"
        yield _broken("queue: kind", ("kind",), part=part, profile=profile, right=right)
    yield from _span(("max_nodes",), "nodes", part.min_nodes, part.max_nodes)
    shortest = yield from _walltime(("min_walltime",), part.min_walltime)
    longest = yield from _walltime(("max_walltime",), part.max_walltime)
    if shortest and longest:
        yield from _span(("max_walltime",), "seconds", shortest, longest)
    if part.with_partition is not None:
        if part.kind != "qos":
            yield ("with_partition",), f"with_partition on a {part.kind}", "leave it out: it is for a QOS"
        elif getattr(profile.queues.get(part.with_partition), "kind", None) != "partition":
            yield _broken("queue: with_partition", ("with_partition",), part=part)
    names = [route.name for route in part.routes]
    yield from _repeated(("routes",), "route", names)


def _route(part: schema.Route, _: schema.SiteProfile) -> Iterator[Broken]:
    yield from _span(("max_nodes",), "nodes", part.min_nodes, part.max_nodes)
    yield from _walltime(("max_walltime",), part.max_walltime)


def _binding(part: schema.Binding, profile: schema.SiteProfile) -> Iterator[Broken]:
    launcher = _launcher(profile)
    if launcher is not None and part.cpu not in (*launcher.cpu_bindings, *_WORD.any_launcher):
        owner = next(
            each.name
            for scheduler in schedulers()
            for each in scheduler.launchers
            if part.cpu in each.cpu_bindings
        )
        right = " or ".join([*launcher.cpu_bindings, *_WORD.any_launcher])
        yield _broken("binding: launcher", ("cpu",), part=part, owner=owner, launcher=launcher, right=right)
    if part.gpu_visible_var is not None:
        yield from _variable(("gpu_visible_var",), part.gpu_visible_var)
    if profile.node is not None and not profile.node.numa and part.cpu not in ("cores", "at_start", "none"):
        yield _broken("binding: no NUMA nodes", ("cpu",), part=part)
    yield from _cores_for(part, profile.node)


def _cores_for(part: schema.Binding, node: schema.Node | None) -> Iterator[Broken]:
    """Yield what is wrong with the cores of ranks: each of them once, and all of them in the node."""
    for framework, each in part.cores_for.items():
        taken: CpuSet = frozenset()
        for number, cores in enumerate(map(parse_cpu_list, each.cores)):
            path = ("cores_for", framework, "cores", number)
            if node is None or max(cores, default=0) >= node.cores:
                yield path, f"{each.cores[number]}: not cores of the node", "name those of node.cores"
            if again := taken & cores:
                yield path, f"cores {format_cpu_list(again)} belong to a rank before", "name each once"
            taken |= cores


def _mpi(part: schema.Mpi, profile: schema.SiteProfile) -> Iterator[Broken]:
    launcher = _launcher(profile)
    if part.plugin is not None and not (launcher and launcher.plugin_list):
        yield _broken("mpi: plugin", ("plugin",), part=part, profile=profile)
    if part.plugin is not None and part.plugin_open:
        yield ("plugin_open",), f"plugin_open is true and plugin is {part.plugin!r}", "keep one of the two"
    for field, names in (("plugin", [part.plugin]), ("alternatives", list(part.alternatives))):
        for name in names:
            if name is not None and not re.fullmatch(r"\w+", name, re.ASCII):
                yield (field,), f"{name!r} is not a name of a plugin", "write it as srun --mpi=list prints it"


def _software(part: schema.Software, _: schema.SiteProfile) -> Iterator[Broken]:
    if not part.python or part.python.startswith(("%", "-")):  # %1: a job of bash
        yield ("python",), f"{part.python!r} is not a program", "give its name or path"
    for goal in part.offers.keys() & part.lacks.keys():
        yield ("lacks", goal), f"{goal} is in offers, too", "keep one of the two"
    loads = " ".join([step.text for step in part.setup] + [repr(offer) for offer in part.offers.values()])
    for name in part.fallbacks:
        if name not in loads:
            yield _broken("software: fallback", ("fallbacks", name), name=name)


def _container(part: schema.Container, _: schema.SiteProfile) -> Iterator[Broken]:
    for index, bind in enumerate(part.binds):
        if "," in bind:
            yield ("binds", index), f"{bind!r} has a comma, which separates binds", "list each bind apart"
    for name in part.annotations:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            yield ("annotations", name), f"{name!r} is not a key of TOML", "use letters, digits, _ . and -"


class _Cores(NamedTuple):
    """The lists of cores in a node, read."""

    numa: dict[int, CpuSet]
    l3_groups: list[CpuSet]
    reserved: CpuSet
    near_gpus: list[CpuSet | None]


def _node(part: schema.Node, _: schema.SiteProfile) -> Iterator[Broken]:
    if part.memory_request is not None:
        yield from _plain(("memory_request",), part.memory_request)
    if part.cores * part.threads_per_core > MAX_CPU + 1:
        yield _broken("node: too many CPUs", ("cores",), part=part, most=MAX_CPU + 1)
        return
    if part.cores % part.sockets:
        yield _broken("node: sockets", ("sockets",), part=part)
    try:
        cores = _read_cores(part)
    except BadInputError as error:
        yield (), error.message, error.hint or "write it as 0-3,8"
        return
    inside = frozenset(range(part.cores))
    yield from _repeated(("numa",), "NUMA node", [domain.id for domain in part.numa])
    yield from _disjoint("numa", cores.numa.values(), inside)
    if part.numa and (missing := inside.difference(*cores.numa.values())):
        yield _broken("node: no NUMA node", ("numa",), cores=format_cpu_list(missing), last=part.cores - 1)
    yield from _disjoint("l3_groups", cores.l3_groups, inside)
    if outside := cores.reserved - inside:
        cores_text = format_cpu_list(outside)
        yield _broken("node: reserved", ("reserved_cores",), cores=cores_text, last=part.cores - 1)
    yield from _gpus(part, cores)
    yield from _nics(part, cores.numa)


def _read_cores(part: schema.Node) -> _Cores:
    return _Cores(
        numa={domain.id: parse_cpu_list(domain.cores) for domain in part.numa},
        l3_groups=[parse_cpu_list(group) for group in part.l3_groups],
        reserved=parse_cpu_list(part.reserved_cores),
        near_gpus=[None if gpu.cores is None else parse_cpu_list(gpu.cores) for gpu in part.gpus],
    )


def _gpus(part: schema.Node, cores: _Cores) -> Iterator[Broken]:
    nics = sorted({nic.name for nic in part.nics})
    for number, gpu in enumerate(part.gpus):
        yield from _gpu_cores(number, gpu, cores)
        if gpu.nic is not None and gpu.nic not in nics:
            named = ", ".join(nics) or "none"
            yield _broken("GPU: NIC", ("gpus", number, "nic"), number=number, gpu=gpu, named=named)
    yield from _repeated(("gpus",), "bus_id", [gpu.bus_id for gpu in part.gpus if gpu.bus_id])


def _gpu_cores(number: int, gpu: schema.SiteGpu, cores: _Cores) -> Iterator[Broken]:
    near = cores.near_gpus[number]
    if gpu.numa is None:
        if near is not None:
            yield _broken("GPU: no NUMA node", ("gpus", number, "cores"), number=number, gpu=gpu)
        return
    numa_cores = cores.numa.get(gpu.numa)
    if numa_cores is None:
        known = sorted(cores.numa)
        yield _broken("GPU: NUMA node", ("gpus", number, "numa"), number=number, gpu=gpu, known=known)
    elif near is not None and not (near and near <= numa_cores):
        found = f"GPU {number} is near cores {gpu.cores or 'none'}"
        right = f"NUMA node {gpu.numa} has cores {format_cpu_list(numa_cores) or 'none'}"
        yield ("gpus", number, "cores"), found, right


def _nics(part: schema.Node, domains: dict[int, CpuSet]) -> Iterator[Broken]:
    yield from _repeated(("nics",), "NIC", [nic.name for nic in part.nics])
    for number, nic in enumerate(part.nics):
        if nic.numa is not None and nic.numa not in domains:
            yield _broken("NIC: NUMA node", ("nics", number, "numa"), nic=nic, known=sorted(domains))


def _disjoint(field: str, groups: Iterable[CpuSet], inside: CpuSet) -> Iterator[Broken]:
    seen: set[int] = set()
    for number, group in enumerate(groups):
        path: KeyPath = (field, number)
        if outside := group - inside:
            yield _broken("node: outside", path, cores=format_cpu_list(outside), last=len(inside) - 1)
        if twice := group & seen:
            yield path, f"cores {format_cpu_list(twice)} are in {field} twice", "each core has one place"
        if not group and field == "l3_groups":
            yield path, "an L3 group without cores", "leave it out"
        seen |= group


def _repeated(path: KeyPath, word: str, values: list[Any]) -> Iterator[Broken]:
    for value in sorted({value for value in values if values.count(value) > 1}):
        yield path, f"{word} {value} appears {values.count(value)} times", "list each one once"


def _span(path: KeyPath, unit: str, least: int, most: int | None) -> Iterator[Broken]:
    if most is not None and least > most:
        yield path, f"at least {least} {unit} and at most {most}", "the minimum may not exceed the maximum"


def _walltime(path: KeyPath, text: str | None) -> Any:
    """Yield a problem where the walltime is bad; return its seconds (None: not given, or bad)."""
    if text is None:
        return None
    try:
        return parse_walltime_s(text)
    except BadInputError as error:
        yield path, f"{path[-1]}: {error.message}", error.hint or ""
        return None


def _regex(path: KeyPath, pattern: str) -> Iterator[Broken]:
    try:
        re.compile(pattern)
    except re.error as error:
        yield path, f"{path[0]}: {pattern!r} is not a regular expression: {error}", "see Python's re"


def _variable(path: KeyPath, name: str) -> Iterator[Broken]:
    if not _FORM.variable.fullmatch(name):
        yield path, f"{name!r} is not a name of an environment variable", "use letters, digits and _"


def _one_line(path: KeyPath, text: str) -> Iterator[Broken]:
    if re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", text):
        yield path, f"{path[-1]!s} holds a line break or control character", "write it in one line"
    elif len(text) > _WORD.max_text:
        yield path, f"{path[-1]!s} has {len(text)} characters", f"at most {_WORD.max_text} are possible"


def _plain(path: KeyPath, text: str) -> Iterator[Broken]:
    """Yield names that a scheduler could not read in a directive."""
    if not PLAIN_WORD.fullmatch(text):
        yield _broken("directive: no plain text", path, text=text[:60])


def _links(part: schema.Links, profile: schema.SiteProfile | schema.NodeKind) -> Iterator[Broken]:
    named = len(profile.node.nics) if profile.node else 0
    if named and part.nic and part.nic.per_node not in (None, named):
        yield _broken("links: NICs", ("nic", "per_node"), per_node=part.nic.per_node, named=named)


_RULES: dict[type, Callable[[Any, Any], Iterator[Broken]]] = {
    schema.SiteProfile: _profile,
    schema.Scheduler: _scheduler,
    schema.Detect: _detect,
    schema.Account: _account,
    schema.Queue: _queue,
    schema.Route: _route,
    schema.Links: _links,
    schema.Binding: _binding,
    schema.Mpi: _mpi,
    schema.EasyBuild: lambda part, _: _variable(("prefix_variable",), part.prefix_variable),
    schema.Software: _software,
    schema.Container: _container,
    schema.Node: _node,
}
