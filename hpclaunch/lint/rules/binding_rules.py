"""Rules about the binding of ranks to CPUs: masks, maps, --cpus-per-task, --hint."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from hpclaunch.amounts import counted
from hpclaunch.binding.binding_documents import Finding as Judged
from hpclaunch.binding.judge_masks import Judgement, judge
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.bind_lists import (
    BindList,
    bind_lists,
    bind_option,
    is_list,
    judge_list,
    launch_ranks_per_node,
    mismatches,
    unset_in_lists,
    unused_assignments,
)
from hpclaunch.lint.known_variables import SYSTEM, TABLE
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import Context, Edit, Severity, Violation, rule
from hpclaunch.lint.program_words import line_of, program_words
from hpclaunch.lint.rules.module_rules import ever_loaded
from hpclaunch.lint.shell_variables import Variables
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.shell.launcher_options import LIST_OPTIONS
from hpclaunch.shell.shell_syntax import Assignment, Word

_BLANK = r"[ \t\r\n]+"


@rule("mask-undefined-variable")
def mask_undefined_variable(context: Context) -> Iterator[Violation]:
    script = context.script
    misnamed = mismatches(script)
    severity: Severity | None = "warning" if script.variables.sources_others else None
    for name, refs in unset_in_lists(script).items():
        literal = re.fullmatch(r"[0-9a-fA-F]{1,4}", name)
        if name in misnamed or (script.variables.sources_unknown and not literal):
            continue
        remedy = f"write the digits: {name} instead of ${{{name}}}" if literal else f"set {name} before"
        for line in sorted({ref.line for ref in refs}):
            message = f"variable ${{{name}}} in a bind list is undefined, so it is empty"
            yield Violation(line, message, remedy, severity)


@rule("variable-name-mismatch")
def variable_name_mismatch(context: Context) -> Iterator[Violation]:
    in_lists = unset_in_lists(context.script)
    for name, (ref, one) in mismatches(context.script).items():
        message = f"${name} is never set, so it is empty; {one.name}, set on line {one.line}, is never used"
        severity: Severity | None = "error" if name in in_lists else None
        rest = name.removeprefix(one.name)
        meant = f"{{{one.name}}}{rest}" if rest.startswith("_") and rest != name else one.name
        yield Violation(ref.line, message, f"use ${meant} here, or set {name} there", severity)
    variables = context.script.variables
    for one, other in () if variables.sources_unknown else _set_from_themselves(variables):
        message = f"{one.name} is set from itself, so it is empty; {other.name}, set on line {other.line}, "
        yield Violation(one.line, f"{message}is never used", f"write {one.name}=${other.name}")


def _set_from_themselves(variables: Variables) -> Iterator[tuple[Assignment, Assignment]]:
    """Yield ``export A=$A`` where nothing else sets A, with an unused variable that differs in case only."""
    folded = {name.casefold(): made[-1] for name, made in variables.assignments.items()}
    folded |= {one.name.casefold(): one for one in unused_assignments(variables)}
    for name, made in variables.assignments.items():
        other = folded[name.casefold()]
        own = all(one.value and one.value.raw.strip('"') in (f"${name}", f"${{{name}}}") for one in made)
        used = other.exported or other.name in {name, *variables.used}  # programs read http_proxy
        if own and not used and name not in SYSTEM:
            yield made[0], other


@rule("bind-list-blanks")
def bind_list_blanks(context: Context) -> Iterator[Violation]:
    for launch in context.script.launches:
        yield from _blanks_in_option(launch)
    for assignments in context.script.variables.assignments.values():
        for one in assignments:
            if one.value is not None and is_list(one) and re.search(_BLANK, one.value.visible):
                yield _inside_quotes(one.line, one.value)
    yield from _unquoted_assignments(context.script)


def _blanks_in_option(launch: Launch) -> Iterator[Violation]:
    option = launch.option(*LIST_OPTIONS)
    if option is None or option.value is None:
        return
    if option.broken:
        words = (option.value, *option.broken)
        edits = () if words[0].start < 0 else (Edit(words[0].start, words[-1].end, _raw(words)),)
        whole = "".join(word.visible for word in words)
        read = f"{launch.name} reads {words[0].visible!r} of {whole!r}"
        message = f"the bind list is broken by spaces: {read}"
        yield Violation(option.line, message, TABLE["one_word"], edits=edits)
    elif re.search(_BLANK, option.value.visible):
        yield _inside_quotes(option.line, option.value)


def _raw(words: Iterable[Word]) -> str:
    return "".join(word.raw for word in words)


def _inside_quotes(line: int, word: Word) -> Violation:
    kinds = {part.kind for part in word.parts}
    plain = word.start >= 0 and "\\" not in word.raw and kinds <= {"text", "variable"}
    edits = (Edit(word.start, word.end, re.sub(_BLANK, "", word.raw)),) if plain else ()
    return Violation(line, f"the bind list {word.visible!r} has spaces in it", TABLE["one_word"], edits=edits)


def _unquoted_assignments(script: Script) -> Iterator[Violation]:
    """Find ``MASK=0xfe, 0xfe00``: the shell takes the rest of the list for a command."""
    for command in script.commands:
        if len(command.assignments) != 1 or not command.words:
            continue
        one, value = command.assignments[0], command.assignments[0].value
        if value is None or not is_list(one) or not value.visible.endswith(","):
            continue
        if all(re.fullmatch(TABLE["list_piece"], word.visible) for word in command.words):
            edit = Edit(value.start, command.words[-1].end, value.raw + _raw(command.words))
            shown = command.words[0].visible
            message = f"the bind list in {one.name} is broken by spaces: the shell runs {shown!r}"
            yield Violation(one.line, message, TABLE["one_word"], edits=(edit,))


def _judged(problem: str, context: Context) -> Iterator[Violation]:
    """Report one problem of each list, for all its ranks in one message."""
    for entry in bind_lists(context):
        judged = judge_list(context, entry)
        findings = _findings(problem, context, judged)
        if findings and not _is_wanted(problem, context, entry, judged):
            spare = problem == "count" and _spare(entry, judged)
            one = spare and entry.ranks == 1 and not context.requested.ranks_per_node  # srun's default
            remedy = f"request --ntasks-per-node={len(judged.ranks)}" if one else findings[0].remedy
            severity: Severity | None = "note" if spare and not one else None
            yield Violation(entry.line, _joined(findings), remedy, severity)


def _findings(problem: str, context: Context, judged: Judgement) -> list[Judged]:
    """Return the findings of one problem; a GPU on the same NUMA node is near."""
    findings = [one for one in judged.findings if one.problem == problem]
    if problem == "wrong-gpu":
        return [one for one in findings if not _in_one_numa_node(context, judged, one)]
    return findings


def _in_one_numa_node(context: Context, judged: Judgement, one: Judged) -> bool:
    """Tell whether a rank's CPUs and its GPU are on one NUMA node: the data then crosses nothing."""
    if one.rank is None or context.node_topology is None:
        return False
    rank = judged.ranks[one.rank]
    return any(gpu.numa in rank.numa for gpu in context.node_topology.gpus if gpu.index in rank.gpus)


def _spare(entry: BindList, judged: Judgement) -> bool:
    """Tell whether the list only has more entries than there are ranks: the rest is not used."""
    return entry.ranks is not None and len(judged.ranks) > entry.ranks


def _is_wanted(problem: str, context: Context, entry: BindList, judged: Judgement) -> bool:
    """Tell whether what looks like a fault is wanted: pools of cores, GPUs chosen by the script."""
    if problem == "wrong-gpu":
        return _gpus_chosen(context, entry)
    if problem in ("shared", "count"):
        return not _spare(entry, judged) and _is_pool(entry, judged)
    return False


def _is_pool(entry: BindList, judged: Judgement) -> bool:
    """Tell whether ranks share cores on purpose: all entries as often, each with a CPU or more per rank."""
    count = len(judged.ranks)
    if not count:
        return False
    owners = Counter(judged.ranks[rank % count].cpus for rank in range(entry.ranks or count))
    names = [cpu for cpus in owners for cpu in cpus]
    apart = len(names) == len(set(names)) and len(set(owners.values())) == 1 and max(owners.values()) > 1
    return apart and all(len(cpus) >= ranks for cpus, ranks in owners.items())


def _joined(findings: list[Judged]) -> str:
    shown = [one.message if one.rank is None else f"rank {one.rank}: {one.message}" for one in findings[:3]]
    more = f"; and {len(findings) - 3} more ranks" if len(findings) > 3 else ""
    return f"the bind list: {'; '.join(shown)}{more}"


def _gpus_chosen(context: Context, entry: BindList) -> bool:
    """Tell whether the script itself assigns GPUs to ranks, so that it is not known which GPU is far."""
    script = context.script
    if context.node_topology is None or any(launch.option("gpu-bind") for launch in script.launches):
        return True
    given = context.requested.gpus_per_node
    if given is not None and 0 < given.value < len(context.node_topology.gpus):
        return True  # some of a node's GPUs: it is not known which ones
    chosen = re.findall(r"(?:VISIBLE_DEVICES|ZE_AFFINITY_MASK)=(.*)", script.text)
    if chosen:  # GPU N for local rank N is the order that the list is judged by
        return not all(re.search(TABLE["by_local_rank"], value) for value in chosen)
    by_numa = judge(context.node_topology, entry.kind, entry.text, tasks=entry.ranks, order="numa")
    far = any(one.problem == "wrong-gpu" for one in by_numa.findings)
    return not far and any(map(_starts_wrapper, script.launches))


def _starts_wrapper(launch: Launch) -> bool:
    """Tell whether a launch starts a script that may select GPUs: by its name, or as a shell script."""
    first = "".join(word.visible for word in launch.program[:1])
    return re.search(r"gpu|affinity|select|bind|wrap|\.sh$|^(ba)?sh$", first) is not None


RULE_OF_PROBLEM: dict[str, str] = TABLE["of_bind_lists"]
"""Problem of a list of cores, as ``judge`` names it -> the rule that explains it."""
RULE_OF_RANK = RULE_OF_PROBLEM | TABLE["of_ranks"]
"""The same of all problems of a running job's ranks."""

for _problem, _rule_id in RULE_OF_PROBLEM.items():
    rule(_rule_id)(partial(_judged, _problem))


@rule("cpus-per-task-differs")
def cpus_per_task_differs(context: Context) -> Iterator[Violation]:
    given = context.requested.cpus_per_task
    if given is None or given.value < 2:
        return
    for entry in bind_lists(context):
        sizes = [len(rank.cpus) for rank in judge_list(context, entry).ranks if rank.cpus]
        smallest = min(sizes, default=given.value)
        if smallest < given.value:
            got = "one CPU" if smallest == 1 else f"{smallest} CPUs"
            wants = f"--cpus-per-task={given.value} requests {given.value}"
            elsewhere = f" (line {given.line})" if given.line != entry.line else ""
            message = f"{TABLE['binder'][entry.kind]} binds each rank to {got}, though {wants}{elsewhere}"
            yield Violation(entry.line, message)


@rule("cpus-per-task-not-passed")
def cpus_per_task_not_passed(context: Context) -> Iterator[Violation]:
    given, script = context.requested.cpus_per_task, context.script
    if given is None or given.value < 2:
        return
    exports = [one.offset for one in script.variables.all_assignments("SRUN_CPUS_PER_TASK")]
    for launch in script.launches:
        exported = any(offset < launch.command.end for offset in exports)
        if launch.launcher == "srun" and not launch.trivial and not (exported or _has_cpus(script, launch)):
            message = f"--cpus-per-task={given.value} (line {given.line}) does not reach this srun"
            yield Violation(launch.line, message)
            return


@rule("threads-over-cpus")
def threads_over_cpus(context: Context) -> Iterator[Violation]:
    script = context.script
    yield from _threads_on_one_core(context)
    assigned = script.variables.all_assignments("OMP_NUM_THREADS")
    of_one = any(one in script.variables.prefixed for one in assigned)  # NAME=value COMMAND
    if len(assigned) != 1 or assigned[0].value is None or any(map(_has_own_cpus, script.launches)):
        return
    text, given = assigned[0].value.raw.strip("\"'${}"), context.requested.cpus_per_task
    number = re.fullmatch("[0-9]{1,4}", str(script.variables.expand(assigned[0].value).text))
    if not number and not of_one:
        yield from _threads_of_node(context, assigned[0].line, text)
    elif number and given and int(number[0]) > given.value:
        message = f"OMP_NUM_THREADS={int(number[0])}, and --cpus-per-task={given.value} (line {given.line})"
        yield Violation(assigned[0].line, message)


def cpus_of_job(context: Context) -> int:
    """Return the CPUs of a job of one node; 0: not known, as where each GPU brings some (DefCpuPerGPU)."""
    whole = context.owns_node or any(one.role == "exclusive" for one in context.directives)
    return 0 if whole else _cpus_requested(context.requested)


def _cpus_requested(requested: RequestedResources) -> int:
    each, tasks = requested.cpus_per_task, requested.tasks or requested.tasks_per_node
    of_gpus = requested.cpus_per_gpu or (requested.gpus_of_node and not each)
    if of_gpus or requested.node_count not in (None, 1):
        return 0
    if requested.cpus_per_node:
        return requested.cpus_per_node.value
    return requested.all_tasks * (each.value if each else 1) if each or tasks else 0


def _threads_of_node(context: Context, line: int, variable: str) -> Iterator[Violation]:
    """Report a variable that gives each of several tasks as many threads as their node has CPUs."""
    script = context.script
    own = re.search(TABLE["places_ranks"], script.text) or variable in script.variables.assignments
    started = [one for one in script.launches if one.launcher in ("srun", "mpiexec") and not own]
    ranks = [launch_ranks_per_node(context, one) or 1 for one in started if not one.trivial]
    if variable in TABLE["cpus_of_node"] and max(ranks, default=1) > 1:
        yield Violation(line, f"OMP_NUM_THREADS is all CPUs of a node, for each of {max(ranks)} tasks on it")


def _threads_on_one_core(context: Context) -> Iterator[Violation]:
    """Report an mpirun that binds each rank to one core, with several threads."""
    script, modules, threads = context.script, " ".join(ever_loaded(context.script)), _fewest_threads(context)
    for launch in script.launches if threads > 1 else ():
        text = " ".join(script.variables.fields(launch.command.words))
        forms = {"form": text, "modules": modules, "set": script.text}
        binds = (row for row in TABLE["one_core"] if all(re.search(row[part], forms[part]) for part in forms))
        for row in islice(binds, launch.launcher == "mpiexec"):
            yield Violation(launch.line, f"{row['says']}, for {threads} threads", row["write"])


def _fewest_threads(context: Context) -> int:
    """Return the lowest number that the script gives OMP_NUM_THREADS; 1: one is not known."""
    words = [one.value for one in context.script.variables.all_assignments("OMP_NUM_THREADS")]
    return min((context.number(word.raw.strip("\"'")) or 1 for word in words if word), default=1)


@rule("workers-over-cpus")
def workers_over_cpus(context: Context) -> Iterator[Violation]:
    if any(one.role == "exclusive" for one in context.directives):
        return
    # Where a job has whole nodes only srun binds a program to the CPUs of its tasks.
    for launch in (one for one in context.script.launches if not context.owns_node or one.launcher == "srun"):
        given = re.search(TABLE["workers_option"], " ".join(program_words(context.script, launch)))
        cpus = _cpus_of_process(context.requested, launch)
        if given and cpus and int(given[1]) > cpus:
            message = f"{given[0].strip()}: a process gets {counted(cpus, 'CPU')}"
            yield Violation(line_of(context.script, launch, given[0].strip()), message)


def _cpus_of_process(requested: RequestedResources, launch: Launch) -> int | None:
    """Return the CPUs that a process gets: of a rank its own, of the script itself all on the node."""
    ranks, gpus, each = requested.ranks_per_node or 1, requested.gpus_of_node, requested.cpus_per_task
    per_gpu = requested.cpus_per_gpu
    if _has_own_cpus(launch) or launch.launcher not in ("srun", "python"):
        return None
    on_node = each.value * ranks if each else per_gpu.value * gpus if per_gpu and gpus else None
    return on_node and (on_node // ranks if launch.launcher == "srun" else on_node)


def _has_own_cpus(launch: Launch) -> bool:
    """Tell whether a launch has other CPUs per task than the job's."""
    option = launch.option("cpus-per-task", "c")
    return option is not None and (option.value is None or "SLURM_CPUS_PER_TASK" not in option.value.raw)


def _has_cpus(script: Script, launch: Launch) -> bool:
    """Tell whether an srun has a number of CPUs, or an explicit binding."""
    option = bind_option(launch)
    variable = option is not None and option.value is not None and len(option.value.parts) > 1
    by_binding = variable or re.search("mask_cpu|map_cpu|none", script.value(option).text or "")
    return bool(by_binding) or launch.option("cpus-per-task", "cpus-per-gpu") is not None


@rule("hint-with-cpu-bind")
def hint_with_cpu_bind(context: Context) -> Iterator[Violation]:
    script = context.script
    job_hint = script.directive("hint")
    for launch in script.launches:
        value = script.value(bind_option(launch), meant=True).text or ""
        if launch.launcher != "srun" or not re.search(r"(mask|map)_cpu", value):
            continue
        own = launch.option("hint")
        if own is not None or job_hint is not None:
            line = own.line if own else launch.line
            yield Violation(line, "the hint has no effect on this srun: its list binds the ranks")
            return
