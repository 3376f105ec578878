"""Rules about requests to the scheduler: directives, limits of node and queue, files of the job."""

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from math import inf
from pathlib import PurePath

from hpclaunch.amounts import counted
from hpclaunch.lint.batch_script import BROKEN_SHEBANG, JOINED, Script, ends_script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import SRUN_OPTIONS
from hpclaunch.lint.lint_rule import RULES, Context, Edit, Severity, Violation, also_at, rule
from hpclaunch.scheduler import directive_reader
from hpclaunch.scheduler.directive_reader import Directive, RequestedResources, last_directive, whole_number
from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS
from hpclaunch.shell.shell_syntax import Command
from hpclaunch.site.schema import Directive as AdvisedDirective
from hpclaunch.site.schema import Node, Queue, SiteProfile
from hpclaunch.site.site_scheduler import About, cite, misfits
from hpclaunch.walltime import format_walltime

_NOT_JUDGED = re.compile(rf"(?i)(unlimited|infinite|-1)$|.*(\$|{JOINED.pattern})")
"""No limit, a variable, or a sign that is reported."""
# A short one is too similar to the first word of many comments.
_LONG_SENTINELS = [reader.sentinel for reader in DIRECTIVE_READERS if len(reader.sentinel) > 4]


@rule("gpus-conflict")
def gpus_conflict(context: Context) -> Iterator[Violation]:
    requested = context.requested
    yield from _total_and_per_node(requested)
    yield from _total_too_small(context)
    yield from _gres_and_per_node(context)
    per_node, per_task, ranks = requested.gpus_per_node, requested.gpus_per_task, requested.ranks_per_node
    if per_task and per_node and ranks and ranks * per_task.value != per_node.value:
        product = f"{per_task.text} x {counted(ranks, 'task')} per node is {ranks * per_task.value}"
        yield Violation(per_task.line, f"{product}, {per_node.text} requests {per_node.value}")


def _total_and_per_node(requested: RequestedResources) -> Iterator[Violation]:
    total, per_node = requested.gpus, requested.gpus_per_node
    one_node = 1 if requested.tasks is None else None
    nodes = requested.nodes.value if requested.nodes else one_node
    if not (total and per_node and nodes):
        return
    product = nodes * per_node.value
    if total.value != product:
        each = f"{per_node.text} x {counted(nodes, 'node')} for {product}"
        yield Violation(total.line, f"{total.text} requests {counted(total.value, 'GPU')} in total, {each}")
    else:
        yield Violation(total.line, f"{total.text} repeats {per_node.text}", severity="note")


def _total_too_small(context: Context) -> Iterator[Violation]:
    """Compare ``--gpus`` with the nodes, each of which must have one, and with ``--gpus-per-task``."""
    total, each, tasks = context.requested.gpus, context.requested.gpus_per_task, context.requested.tasks
    least = directive_reader.given_number(
        context.directives, "nodes", lambda text: whole_number(text.partition("-")[0])
    )
    if not total:
        return
    if least and 0 < total.value < least.value:
        yield Violation(total.line, f"{total.text}: fewer GPUs than nodes, {least.text}")
    elif each and tasks and total.value != each.value * tasks.value:
        product = f"{each.text} x {counted(tasks.value, 'task')} is {each.value * tasks.value}"
        yield Violation(total.line, f"{product}, {total.text} requests {total.value}")


def _gres_and_per_node(context: Context) -> Iterator[Violation]:
    """Compare ``--gres=gpu:4`` with ``--gpus-per-node``, which both count per node."""
    reader, per_node, gres = context.script.reader, context.requested.gpus_per_node, _gres(context)
    if reader is None or per_node is None or gres is None or per_node.line == gres.line:
        return
    count = reader.requested([gres]).gpus_per_node
    if count and count.value != per_node.value:
        message = f"{gres.text} requests {count.value} per node, {per_node.text} {per_node.value}"
        yield Violation(gres.line, message)
    elif count:
        yield Violation(gres.line, f"{gres.text} repeats {per_node.text}", severity="note")


def _gres(context: Context) -> Directive | None:
    """Return the directive ``--gres`` that requests GPUs."""
    listed = (one for one in context.directives if one.name == "gres" and "gpu" in (one.value or ""))
    return next(listed, None)


@rule("tasks-below-nodes")
def tasks_below_nodes(context: Context) -> Iterator[Violation]:
    tasks, nodes = context.requested.tasks, last_directive(context.directives, "nodes")
    count = whole_number(nodes.value) if nodes else None
    if not (tasks and nodes and count):
        return
    if 0 < tasks.value < count:
        message = f"{tasks.text} with {nodes.text}: the job gets {tasks.value} of {count} nodes"
        yield Violation(tasks.line, message)
    each = context.requested.tasks_per_node
    if each and tasks.value > count * each.value:
        message = f"{tasks.text}: {nodes.text} with {each.text} has place for fewer"
        yield Violation(tasks.line, message)


@rule("cpus-over-node")
def cpus_over_node(context: Context) -> Iterator[Violation]:
    topology, profile = context.node_topology, context.profile
    if topology is None or profile is None or not topology.cores:
        return
    threads = len(topology.usable)
    cores = context.cores_for_jobs
    limit = threads if _multithread(context) else cores
    has = _cores_of_node(profile, cores, reserved=len(topology.cores) - cores)
    counted = (threads, context.requested.cpus_per_task)
    for cpus, given, product in _cpus_requested(context.requested):
        if cpus > limit and (cpus, given) != counted:
            severity: Severity | None = "note" if cpus <= threads else None
            yield Violation(given.line, f"{product} = {cpus} CPUs per node; {has}", severity=severity)


def _cores_of_node(profile: SiteProfile, cores: int, reserved: int) -> str:
    source = cite(profile, profile.node.source if profile.node else None)
    others = f", {reserved} are reserved" if reserved else ""
    return f"a node of {profile.name} gives {cores} cores to jobs{others} ({source})"


def _multithread(context: Context) -> bool:
    """Tell whether the job counts hardware threads, not cores."""
    threads = context.requested.threads_per_core
    by_option = threads is not None and threads.value > 1
    by_hint = context.script.directive_value("hint") == "multithread"
    return by_option or by_hint or context.requested.cpus_per_node is not None


def _cpus_requested(requested: RequestedResources) -> Iterator[tuple[int, directive_reader.Given, str]]:
    """Yield (CPUs per node, the option that requests them, the product as text)."""
    ranks, each = requested.ranks_per_node, requested.cpus_per_task
    if each is not None:
        yield (ranks or 1) * each.value, each, f"{ranks or 1} tasks x {each.value} CPUs"
    elif ranks and (given := requested.tasks_per_node or requested.tasks):
        yield ranks, given, f"{ranks} tasks"
    if requested.cpus_per_node is not None:
        yield requested.cpus_per_node.value, requested.cpus_per_node, requested.cpus_per_node.text


@rule("chunk-cpus-missing")
def chunk_cpus_missing(context: Context) -> Iterator[Violation]:
    select, place = (last_directive(context.directives, name) for name in ("l:select", "l:place"))
    alone = context.owns_node or (place and "excl" in str(place.value))
    if select and not alone and re.search(TABLE["chunk_without_cpus"], str(select.value)):
        yield Violation(select.line, f"{select.text}: a chunk without ncpus has one CPU by default")


@rule("tasks-over-cpus-per-gpu")
def tasks_over_cpus_per_gpu(context: Context) -> Iterator[Violation]:
    requested = context.requested
    ranks, per_gpu, gpus = requested.ranks_per_node, requested.cpus_per_gpu, requested.gpus_of_node
    if ranks is None or per_gpu is None or gpus is None or context.owns_node:
        return
    needed = ranks * (requested.cpus_per_task.value if requested.cpus_per_task else 1)
    if needed > gpus * per_gpu.value:
        given = f"{per_gpu.text} x {counted(gpus, 'GPU')} gives {gpus * per_gpu.value}"
        line = (requested.tasks_per_node or requested.tasks or per_gpu).line
        yield Violation(line, f"{ranks} tasks need {needed} CPUs per node; {given}")


@rule("gpus-over-node")
def gpus_over_node(context: Context) -> Iterator[Violation]:
    profile, node = context.profile, context.node
    if profile is None or node is None or not node.gpus:
        return
    has, source = len(node.gpus), cite(profile, node.source)
    for count, given in _gpus_requested(context.requested):
        if count > has:
            message = f"{count} GPUs per node; a node of {profile.name} has {has} ({source})"
            yield Violation(given.line, message)


def _gpus_requested(requested: RequestedResources) -> Iterator[tuple[int, directive_reader.Given]]:
    """Yield (GPUs per node, the option that requests them) for each way to request them."""
    per_node, per_task, total = requested.gpus_per_node, requested.gpus_per_task, requested.gpus
    if per_node:
        yield per_node.value, per_node
    if per_task:
        yield (requested.ranks_per_node or 1) * per_task.value, per_task
    if total and requested.node_count and not per_node:
        yield -(-total.value // requested.node_count), total


def _over_limit(by_nodes: bool, context: Context) -> Iterator[Violation]:
    """Report what exceeds the limits of a queue: the nodes alone, or the walltime."""
    given = context.requested.nodes if by_nodes else context.requested.walltime_s
    for name, queue, about, why in _misfits(context):
        if given and (about == "nodes") is by_nodes:
            prefix = "" if by_nodes else "walltime: "
            source = f" ({cite(context.profile, queue.source)})" if context.profile else ""
            yield Violation(given.line, f"{queue.kind} {name}: {prefix}{why}{source}")


rule("walltime-over-limit")(partial(_over_limit, False))
rule("nodes-over-limit")(partial(_over_limit, True))


def _misfits(context: Context) -> Iterator[tuple[str, Queue, About, str]]:
    nodes, walltime = context.requested.nodes, context.requested.walltime_s
    for name, _, queue in context.queues:
        if queue is not None:
            found = misfits(
                queue,
                nodes.value if nodes and not _qos_limits(context, name, "max_nodes") else None,
                walltime.value if walltime and not _qos_limits(context, name, "max_walltime") else None,
            )
            yield from ((name, queue, about, why) for about, why in found)


def _qos_limits(context: Context, partition: str, limit: str) -> bool:
    """Tell whether a QOS of the job, made for this partition, states the limit itself.

    Its limit holds then: Slurm's flags PartitionMaxNodes and PartitionTimeLimit (man sacctmgr, 24.05).
    """
    queues = [queue for _, _, queue in context.queues if queue is not None]
    return any(queue.with_partition == partition and getattr(queue, limit) for queue in queues)


@rule("walltime-unreadable")
def walltime_unreadable(context: Context) -> Iterator[Violation]:
    found, walltime = context.directive("walltime"), context.requested.walltime_s
    value = str(found.value) if found and not found.one_dash else ""
    if found is None or re.fullmatch(TABLE["walltimes_elsewhere"], value):
        return
    if walltime is None:
        if not _NOT_JUDGED.match(value):
            yield Violation(found.line, f"{found.text}: not a time that {found.reader.kind} reads")
    elif not walltime.value and found.reader.refuses_zero_walltime:
        yield Violation(found.line, f"{found.text}: the walltime must be longer than {format_walltime(0)}")
    elif 0 < walltime.value < TABLE["shortest_s"]:
        yield Violation(found.line, f"{found.text}: these are {walltime.value} seconds", severity="note")


@rule("queue-unknown")
def queue_unknown(context: Context) -> Iterator[Violation]:
    profile = context.profile
    if profile is None or not profile.queues:
        return
    for name, line in _unknown_queues(context, profile):
        near = get_close_matches(name, profile.queues, n=1)
        meant = f"did you mean {near[0]}?" if near else f"known: {', '.join(profile.queues)}"
        yield Violation(line, f"{name} is not one of the queues in the profile of {profile.name}", meant)


def _unknown_queues(context: Context, profile: SiteProfile) -> Iterator[tuple[str, int]]:
    """Yield name and line of each queue that the profile does not know and that not every Slurm has."""
    default = {one.line for one in context.directives if one.role == "qos" and one.value == TABLE["qos"]}
    for names, line, queue in context.queues:
        for name in names.split(",") if queue is None else ():
            if name not in profile.queues and not (name == TABLE["qos"] and line in default):
                yield name, line


@rule("queue-without-gpus")
def queue_without_gpus(context: Context) -> Iterator[Violation]:
    requested = context.requested
    wants = requested.gpus or requested.gpus_per_node or requested.gpus_per_task
    for name, line, queue in context.queues:
        if queue is not None and not queue.gpus and wants and wants.value:
            yield Violation(line, f"{queue.kind} {name} has no GPUs, but line {wants.line} requests them")


@rule("directive-missing")
def directive_missing(context: Context) -> Iterator[Violation]:
    profile, reader = context.profile, context.script.reader
    if profile and reader and profile.scheduler.kind == reader.kind:
        yield from _missing(context, profile, reader)


def _missing(
    context: Context, profile: SiteProfile, reader: directive_reader.DirectiveReader
) -> Iterator[Violation]:
    """Report the account, and each directive of the profile, that is not given and needed."""
    role: directive_reader.Role = "project" if profile.account.option == "-P" else "account"
    if profile.account.required and context.script.directive(role) is None:
        yield _account_missing(profile, reader)
    for advised in profile.directives:
        given = all(context.script.has_option(one.name) for one in reader.read_text(advised.text))
        if not (given or _needless(context, advised)):
            severity: Severity | None = None if advised.required else "note"
            message = f"{advised.text} is missing: {advised.reason} ({cite(profile, advised.source)})"
            remedy = f"add #{reader.sentinel} {advised.text}"
            if others := advised.text.startswith("-C ") * (context.requested.gpus_of_node is None):
                severity, remedy = "note", f"{remedy}, or the constraint of other nodes"
            only = f"no GPU is requested, {profile.name} is known with GPU nodes only; " * others
            yield Violation(None, only + message, remedy, severity)


def _needless(context: Context, advised: AdvisedDirective) -> bool:
    """Tell whether an advice does not fit: other nodes, no spread over several, no NCCL."""
    if context.names_unknown and not advised.required:
        return True
    spread = not advised.required and "place=scatter" in advised.text
    nccl = None if advised.required else re.search("[NR]CCL", advised.reason)
    if spread:
        return context.requested.node_count == 1
    return nccl is not None and not re.search(TABLE["may_use_nccl"], context.script.text)


def _account_missing(profile: SiteProfile, reader: directive_reader.DirectiveReader) -> Violation:
    option = "-P " if profile.account.option == "-P" else reader.account_option
    line = f"#{reader.sentinel} {option}{profile.account.example or 'PROJECT'}"
    source = cite(profile, profile.account.source)
    message = f"no account is given, and {profile.name} requires one ({source})"
    if not reader.account_variable:
        return Violation(None, message, f"add {line}")
    remedy = f"add {line}, or set {reader.account_variable} in the shell that submits"
    return Violation(None, message, remedy, "warning")


@rule("filesystem-unknown")
def filesystem_unknown(context: Context) -> Iterator[Violation]:
    profile = context.profile
    advised = _file_systems_of(profile) if profile else None
    if profile is None or advised is None:
        return
    known = set(_names(advised.text.partition("filesystems=")[2]))
    for found in context.script.active_directives:
        unknown = set(_names(found.value or "")) - known if found.name.endswith("filesystems") else set()
        if unknown and "$" not in (found.value or ""):
            has = f"{profile.name} has {', '.join(sorted(known))} ({cite(profile, advised.source)})"
            yield Violation(found.line, f"{found.text}: {', '.join(sorted(unknown))} is not known; {has}")


def _file_systems_of(profile: SiteProfile) -> AdvisedDirective | None:
    return next((one for one in profile.directives if "filesystems=" in one.text), None)


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[:+]", text) if name]


@rule("directive-ignored")
def directive_ignored(context: Context) -> Iterator[Violation]:
    end = next((one.line for one in context.script.commands if ends_script(one)), inf)
    begin = _first_command_below(context)
    unread = (d for d in reversed(context.script.directives) if not d.active and begin < d.line < end)
    texts = {d.line: d.text for d in unread}
    for line in sorted(texts)[:1]:
        message = f"{texts[line]} comes after the first command and is ignored{also_at(sorted(texts))}"
        yield Violation(line, message)


def _first_command_below(context: Context) -> float:
    """Return the line of the first command below line 1, where that is a broken ``#!``; else 0."""
    kinds = [one.kind for one in RULES["shebang-missing"][0].versions]
    refused = context.kind in kinds and BROKEN_SHEBANG.match(context.script.text)
    return min((one.line for one in context.script.commands if one.line > 1), default=inf) if refused else 0


@rule("directive-unknown")
def directive_unknown(context: Context) -> Iterator[Violation]:
    reported = {one.line for one in context.script.active_directives if one.one_dash}
    for found in context.script.directives:
        letter = re.fullmatch(r"-\w", found.text)  # one of a word is enough
        if not (found.known or found.problem or (letter and found.line in reported)) and found.active:
            reported |= {found.line}
            yield from _unknown_option(found, context.script)
    yield from _misspelt_sentinels(context.script)


def _unknown_option(found: Directive, script: Script) -> Iterator[Violation]:
    """Report an option that no list has: an error where it is nearly a long one, or no plugin has it."""
    kind, known, name = found.reader.kind, found.reader.known_options, found.name.replace("_", "-")
    meant_by = TABLE["meant_options"].get(kind, {})
    near = [meant_by[name]] if name in meant_by else get_close_matches(found.name or "?", known, n=1)
    if near or found.line not in script.open_directives:
        of_srun = name in set(SRUN_OPTIONS) - known - meant_by.keys()
        meant = f"did you mean {found.reader.dashes}{near[0]}?" if near else None
        meant = "it is one of srun: write it behind srun" if of_srun else meant
        message = f"{found.text}: no such option of {found.reader.submit_command}"
        refused = re.match(TABLE["refused_options"].get(kind, "(?!)"), found.text)
        sure = (near and found.text.startswith("--")) or refused
        yield Violation(found.line, message, meant, "error" if sure else None)


def _is_switched_off(word: str) -> bool:
    """Tell whether a word is a sentinel, or one with further letters, as people switch a line off."""
    longer = [one for one in _LONG_SENTINELS if one in word.upper() and len(word) > len(one)]
    return bool(longer) or word in (*_LONG_SENTINELS, TABLE["no_sentinels"])


def _misspelt_sentinels(script: Script) -> Iterator[Violation]:
    """Find misspelt directives next to right ones; alone they may be those of another program."""
    for number, line in enumerate(script.text.split("\n") if script.active_directives else (), 1):
        match = re.match(r"#([A-Za-z]{5,8})[ \t]+--?[A-Za-z]", line)
        if match is None or _is_switched_off(match[1]):
            continue
        last = line.partition("#")[2].split(" #")[0].split()[-1]
        if match[1] == "sbatch" and re.search(r"^[$'\"]|\.", last):  # it shows how the job is submitted
            continue
        for sentinel in get_close_matches(match[1].upper(), _LONG_SENTINELS, n=1, cutoff=0.75):
            yield Violation(number, f"#{match[1]} is a comment, not a directive", f"write #{sentinel}")


@rule("directive-variable")
def directive_variable(context: Context) -> Iterator[Violation]:
    for found in context.script.active_directives:
        variable = re.search(TABLE["variables_in_directives"], re.sub("<%.*?%>", "", found.value or ""))
        row = TABLE["dollar_in_files"].get(f"{found.reader.kind} {found.role}", {"unless": ""})
        allowed = () if "says" in row else found.reader.dollar_options
        if variable and allowed is not None and found.name not in allowed:
            if variable[0].lstrip("${").startswith(f"{found.reader.sentinel}_"):  # the scheduler's own
                continue
            said = {} if re.search(row["unless"], context.script.text) else row
            message = f"{found.text}: {variable[0]} {said.get('says', 'is not expanded in a directive')}"
            yield Violation(found.line, message, severity=said.get("severity"))


@rule("output-folder-missing")
def output_folder_missing(context: Context) -> Iterator[Violation]:
    reader = context.script.reader
    folders = _output_folders(context.script)
    if reader is not None and reader.sentinel == "$":
        yield from _named_after_the_job(folders)
        return
    severity: Severity | None = "note" if reader and reader.sentinel == "PBS" else None
    for folder, found in folders.items():
        if "$" in folder or _exists(context, folder) or _makes_it_and_submits(context.script, folder):
            continue
        if "%" in folder:
            problem, remedy = "has a pattern in its name, and does not exist", None
        else:
            problem, remedy = "does not exist", f"mkdir -p {shlex.quote(folder)} before submitting"
        message = f"the output goes into the directory {folder}, which {problem}"
        yield Violation(found.line, message, remedy, severity)


@rule("array-output-shared")
def array_output_shared(context: Context) -> Iterator[Violation]:
    script = context.script
    differs = script.reader.array_file if script.reader else None
    if differs is None or not has_several_jobs(script) or script.has_option("open-mode"):
        return
    for found in filter(None, (script.directive("output"), script.directive("error"))):
        name = (found.value or "/dev/").replace("%%", "")
        shared = not re.match("/dev/|(?i:none)$", name) and not re.search(differs, name)
        if shared:  # sbatch takes none for /dev/null
            yield Violation(found.line, f"every job of the array empties {found.value} and writes into it")


def has_several_jobs(script: Script) -> bool:
    """Tell whether the script asks for an array of several jobs."""
    found = last_directive(script.active_directives, "array")
    array = re.fullmatch(r"(\d+)(?:-(\d+)\S*|,\S+)", (found and found.value) or "")
    return array is not None and array[1] != array[2]


def _named_after_the_job(folders: dict[str, Directive]) -> Iterator[Violation]:
    """Find folders of Grid Engine's output files with the job's number in their name: they cannot exist."""
    for folder, found in folders.items():
        if number := re.search(r"\$\{?(JOB_ID|TASK_ID)\b", folder):
            message = f"{folder} cannot exist before the job has its {number[1]}, and Grid Engine makes none"
            yield Violation(found.line, message, "leave the number of the job out of the folder", "error")


def _output_folders(script: Script) -> dict[str, Directive]:
    """Return the folders of the job's output files, each with the first directive that names it."""
    found: dict[str, Directive] = {}
    for directive in script.directives:
        folder = (directive.value or "").rpartition("/")[0]
        if directive.active and directive.role in ("output", "error") and folder:
            found.setdefault(folder, directive)
    return found


def _makes_it_and_submits(script: Script, folder: str) -> bool:
    """Tell whether the script makes a folder and then submits itself."""
    submit = script.reader.submit_command if script.reader else ""
    made = False
    for one in script.commands:
        made = made or (one.name == "mkdir" and _has_path(one, folder))
        parts = (part.text for word in one.words for part in word.parts)
        if made and _has_path(one, submit) and not {"0", "BASH_SOURCE"}.isdisjoint(parts):
            return True
    return False


def _has_path(command: Command, path: str) -> bool:
    return any(PurePath(word.visible) == PurePath(path) for word in command.words)


def _exists(context: Context, folder: str) -> bool:
    """Tell whether a folder exists; True also where that is not known: folders of another machine."""
    if "%" in folder.replace("%u", ""):
        return False
    if "%u" in folder:  # the user's name
        return True
    if folder.startswith("/"):
        above = PurePath(folder).parent  # one like /home, which every machine has, says nothing
        known = len(above.parts) > TABLE["as_everywhere"] and context.files.find(str(above)) is not None
        return not known or context.files.find(folder) is not None
    return context.script.directive("folder") is not None or context.files.find(folder) is not None


@rule("node-list-too-long")
def node_list_too_long(context: Context) -> Iterator[Violation]:
    hosts, nodes = last_directive(context.directives, "nodelist"), last_directive(context.directives, "nodes")
    if hosts is None or nodes is None:
        return
    most = re.fullmatch(r"(?:\d+-)?(\d{1,6})", nodes.value or "")
    count = sum(map(_hosts_of, re.findall(r"(?:\[[^\]]*\]|[^,])+", hosts.value or "")))
    if most and count > int(most[1]):
        message = f"{hosts.text} names {count} nodes, {nodes.text} allows {most[1]}"
        yield Violation(hosts.line, message)


def _hosts_of(item: str) -> int:
    """Count the hosts of an item such as ``a[1-3,7]`` of a list; 0: not known."""
    match = re.fullmatch(r"[\w.-]+(?:\[([\d,-]+)\])?", item)
    if match is None or match[1] is None:
        return int(match is not None)
    ends = re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", match[1])
    return sum(int(last or first) - int(first) + 1 for first, last in ends)


@rule("memory-over-node")
def memory_over_node(context: Context) -> Iterator[Violation]:
    profile, node = context.profile, context.node
    if profile is None or node is None or profile.scheduler.kind != context.kind:
        return
    limit = max(f"{node.memory_gib or 0}G", node.memory_request or "0", key=_size)
    has = f"a node of {profile.name} has {limit} ({cite(profile, node.source)})"
    surely = _is_for(context, node) and not re.search(TABLE["other_nodes"], context.script.text)
    for given, product, memory in _memory_requested(context) if surely else ():
        if 0 < _size(limit) < memory:
            yield Violation(given.line, f"{product}: {has}", f"ask for at most {limit} per node, or --mem=0")


def _memory_requested(context: Context) -> Iterator[tuple[Directive, str, float]]:
    """Yield the directive of Slurm that requests memory, its product as text, and the KiB per node."""
    requested = context.requested
    each = requested.cpus_per_task.value if requested.cpus_per_task else 1
    # All GPUs of a job may be on several nodes where it does not count these.
    gpus = requested.gpus_of_node if requested.gpus_per_node or requested.node_count else 1
    counts = {"mem": 1, "mem-per-cpu": (requested.ranks_per_node or 1) * each, "mem-per-gpu": gpus}
    # Each replaces the one before (Slurm's src/common/slurm_opt.c, arg_set_mem).
    for one in [one for one in context.directives if one.name in counts][-1:]:
        times = counts[one.name] or 1
        yield one, one.text + f" x {times}" * (times > 1), times * _size(one.value or "")


def _is_for(context: Context, node: Node) -> bool:
    """Tell whether the job surely runs on nodes of this kind: it asks for their GPUs, if they have some."""
    asked = context.requested.gpus_per_node or context.requested.gpus or context.requested.gpus_per_task
    if not node.gpus or asked is None:
        return not node.gpus
    kind = re.search(r"[=: ]([a-z][\w.-]*):\d", asked.text.replace("gres=gpu", ""))
    return bool(asked.value) and (kind is None or kind[1] == node.gpu_type)


def _size(text: str) -> float:
    """Return memory in KiB, in megabytes where it has no unit, as Slurm reads it; 0: no number."""
    size = re.fullmatch(r"(?i)(\d+(?:\.\d+)?)([KMGT]?)B?", text)
    return float(size[1]) * TABLE["memory_units"][size[2].upper() or "M"] if size else 0


@rule("memory-limit-below-request")
def memory_limit_below_request(context: Context) -> Iterator[Violation]:
    limit = last_directive(context.directives, "M")
    most = _kibibytes(r"(\S+)", limit)
    for one in context.directives if limit and most else ():
        least = _kibibytes(r"rusage\[[^\]]*\bmem=([^\]:,]+)", one) if one.name == "R" else None
        if limit and most and least and most < least:
            yield Violation(limit.line, f"{limit.text}: less than the job reserves, {one.text}")


@rule("java-heap-over-memory")
def java_heap_over_memory(context: Context) -> Iterator[Violation]:
    for _, text, memory in [*_memory_requested(context)][-1:]:
        for command in (one for one in context.script.commands if not one.depth):
            found = re.search(r"-Xmx(\d+[kmgtKMGT])\b", context.script.text[command.start : command.end])
            if found and 0 < memory <= _size(found[1]):
                message = f"{found[0]}: Java's heap alone may take all of {text}"
                yield Violation(command.line, message, None, None if memory < _size(found[1]) else "note")


def _kibibytes(form: str, directive: Directive | None) -> float | None:
    """Return the memory in a directive; None: it is not given, or without a unit, which the site sets."""
    found = re.search(form, (directive.value or "").strip("\"'")) if directive else None
    return _size(found[1]) if found and not found[1][-1:].isdigit() else None


@rule("line-endings")
def line_endings(context: Context) -> Iterator[Violation]:
    text = context.script.text
    ends = [match.start() for match in re.finditer(r"\r\n", text)]
    if ends:
        edits = tuple(Edit(at, at + 1, "") for at in ends)
        message = f"{len(ends)} lines end with CR LF, as on Windows"
        severity: Severity | None = "note" if context.script.is_filled_in else None  # a program reads it
        yield Violation(context.script.line_at(ends[0]), message, severity=severity, edits=edits)
