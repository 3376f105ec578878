"""The last look at a port: what of the script is lost, and what stays and may belong to another machine."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, dropwhile
from typing import Any

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.lint.launch_lines import LAUNCHERS
from hpclaunch.plan.request_rules import array_indices
from hpclaunch.port.foreign_values import ARGUMENT, WORDS, Value, adds_in_block, option_pairs, texts_of
from hpclaunch.port.job_sizes import fit_queue, usable_cores
from hpclaunch.port.line_report import Judged, all_set, at_lines, task, undecided
from hpclaunch.port.port_body import leaves, names_in_launch, set_at, used_names
from hpclaunch.port.port_directives import asks_for_gpus, least_memory, words_of_nodes
from hpclaunch.port.port_state import Port, gpus_of, number, numbers_asked
from hpclaunch.port.port_variables import fits, is_other_size
from hpclaunch.port.ported_command import FILL_IN
from hpclaunch.scheduler.directive_readers import READERS
from hpclaunch.shell.shell_syntax import Word


def open_points(port: Port, settings: Mapping[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    """Yield what the user has to check or to decide, given the keys of the job file and all verdicts."""
    for check in (_gpus, _added, _nodes, _counts, _starters, _home, _arguments, _script_file, _unread_sizes):
        yield from check(port)
    yield from _cores(port)
    for check_all in (_other_sizes, _defaults, _folders, _foreign_words):
        yield from check_all(port, settings)
    yield from _index(port, settings, judged)
    yield from _outputs(port, {line for lines in undecided(judged).values() for line in lines})


def open_lines(port: Port, judged: Sequence[Judged], named: Collection[str]) -> Iterator[str]:
    """Yield the undecided lines, with those that set what they read, but those that a task names."""
    carried = {line for one in judged if one.verdict.sets or one.verdict.to_do for line in one.lines}
    carried.update(*undecided(judged).values())
    for why, lines in _by_reason(port, judged).items():
        if not any(why in said or why.startswith(said.removeprefix("nodes: ")) for said in named):
            read = set_at(port, lines) - carried
            yield f"{at_lines(lines)}: {why}" + (f" (what it reads: {at_lines(read)})" if read else "")


def _by_reason(port: Port, judged: Sequence[Judged]) -> dict[str, list[int]]:
    """Return what the user decides -> its lines; a condition counts where its line has nothing else."""
    found = undecided(judged)
    condition = port.says("condition").why.removeprefix("undecided: ")
    others = set(chain.from_iterable(lines for why, lines in found.items() if why != condition))
    found[condition] = [line for line in found.get(condition, ()) if line not in others]
    return {why: lines for why, lines in found.items() if lines}


def _defaults(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the variables with a default that the command reads, but those that hpclaunch sets."""
    own = {*WORDS["set for ranks"], *WORDS["of a job here, too"], port.target.binding.gpu_visible_var}
    own |= {"OMP_NUM_THREADS"} if usable_cores(port.target) else set()
    found = dict.fromkeys(re.findall(r"\$\{(\w+):?-", " ".join(settings["command"])))
    if names := [name for name in found if f"{{{name}" in port.script.text and name not in own]:
        yield task("defaults", line=port.launch_line, names=", ".join(names))


def _cores(port: Port) -> Iterator[str]:
    """Compare the cores of a rank without GPUs; a number on the own machine may count hardware threads."""
    cores = (usable_cores(port.target) or 0) // (port.sizes.tasks_per_node or 1)
    own = port.same_machine or port.source_sizes.gpus  # those of a rank with GPUs are its share of the node
    if not own and 0 < cores < (there := port.source_sizes.cpus_per_rank or 0):
        yield task("fewer cores", there=there, here=cores)


def read_by_programs(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:  # complex: five facts
    """Yield facts for a program that port does not read: what it may look for, and what it has here."""
    index, sizes, found = port.names_of("array index"), port.sizes, port.command
    by = port.launch.launcher if port.launch and not found.inner else ""
    names = WORDS["ranks of launchers"].get(by, []) if sizes.nodes != 1 or sizes.tasks_per_node != 1 else []
    own = re.findall(r"[A-Z]\w+", port.launcher.rank)
    alike = {*names} <= {*own} or (port.same_scheduler and {*own} & {*names})
    own += [] if settings.get("framework") == "none" else WORDS["set for each rank"]
    # A rank has the share of its GPUs, the process of a node of Ray all cores.
    of_node = settings.get("framework") == "ray"
    gpus = 0 if of_node else gpus_of(port.target) // (sizes.gpus_per_task or 1)
    cores = (usable_cores(port.target) or 0) // max(gpus, sizes.tasks_per_node or 1)
    there = _cores_there(port)
    read = re.fullmatch(f"{WORDS['read by another']}|[^/]*", found.program)
    idle = gpus_of(port.target) and not port.source_sizes.gpus
    other = ", ".join(name for name, one in port.target.queues.items() if not one.gpus and name != "xfer")
    cases = {
        "machine not known": port.source is None,
        "no launch line": port.launch is None or port.alone,
        "index unread": "array" in settings and not (port.same_scheduler or _reading(port, index)),
        "ranks by name": not alike,
        "fewer cores by a GPU": port.source_sizes.gpus and 0 < cores < there,
        "built here": not (read or found.image or port.same_machine),
        "GPUs not requested": idle and not other,
        "GPUs not requested, other nodes": idle and other,
    }
    texts = {"index": ", ".join(index), "names": ", ".join(names), "own": ", ".join(own), "other": other}
    counts = {"there": there, "cores": cores, "gpus": gpus_of(port.target)}
    yield from (task(case, port=port, **texts, **counts) for case, holds in cases.items() if holds)
    yield from _idle_gpus(port, settings.get("array"))


def _idle_gpus(port: Port, array: str | None) -> Iterator[str]:
    """Yield that the job reserves more GPUs than its ranks have, and which queue gives parts of nodes."""
    known, gpus = port.sizes.known, gpus_of(port.target)
    used, nodes = known.get("tasks_per_node", 0) * known.get("gpus_per_task", 0), known.get("nodes", 1)
    if not 0 < used < gpus:
        return
    shared = {name: one for name, one in port.target.queues.items() if one.gpus and not one.whole_node}
    target = msgspec.structs.replace(port.target, queues=shared)
    queue = fit_queue(target, nodes, number(port.requested.walltime_s))
    case = "part" if port.target.binding.cpu == "at_start" else "own part"  # plan.layout.node_share
    case = case if queue.name and queue.nodes is None and not queue.walltime_why else "no part"
    times = f", in each of its {len(array_indices(array, port.scheduler))} jobs" if array else ""
    texts = {"used": used * nodes, "reserved": gpus * nodes, "times": times, "queue": queue.name}
    yield task(f"idle GPUs, {case}", here=port.here, **texts)


def _cores_there(port: Port) -> int:
    """Return the cores that a rank has in the script, also where they are requested by GPU or by node."""
    asked, sizes = port.requested, port.source_sizes
    nodes, plain = sizes.nodes or 1, port.launch is None or not port.launch.by_launcher
    of_gpus = (number(asked.cpus_per_gpu) or 0) * (sizes.gpus or 0) // nodes
    of_node = 0 if port.same_machine else number(asked.cpus_per_node) or 0
    slots = asked.all_tasks // nodes if plain else 0  # a launcher starts ranks in them
    return sizes.cpus_per_rank or max(of_gpus, of_node, slots) * nodes // (sizes.ranks or 1)


def _reading(port: Port, names: Collection[str]) -> list[int]:
    """Return the lines that have one of these names."""
    is_read = re.compile(rf"\b({'|'.join(names) or '(?!)'})\b")
    lines = {at: line for at, line in port.content_lines.items() if not re.fullmatch(WORDS["shows"], line)}
    return [at for at, line in lines.items() if is_read.search(line)]


def _home(port: Port) -> Iterator[str]:
    """Yield that jobs of PBS and Grid Engine begin in the home folder, if no line leaves it."""
    moved = "folder" in port.subjects or any(one.name in ("cd", "pushd") for one in port.script.commands)
    begins = port.script.reader is not None and port.script.reader.starts_at_home
    if begins and not moved and not port.values.own:
        yield "folder: no line leaves the home folder, where such a job begins: submit it where it belongs"


def _folders(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that read the folder they run in, where a line of the script goes to another one."""
    folders = {"PWD", *port.names_of("folder")}
    moves = [one.line for one in port.script.commands if leaves(port, one)]
    reads = [ref.line for ref in port.script.shell.refs if ref.name in folders]
    reads += [one.line for one in port.script.commands if one.name == "pwd"]
    if moves and reads and re.search(r"\$\{?PWD\b", str(settings)):
        yield task("folder moved", at=at_lines(reads), moves=at_lines(moves))


def _outputs(port: Port, named: Collection[int]) -> Iterator[str]:
    """Yield the files of the launch's output that lines read which are the user's, or that hold data."""
    lines = re.sub(WORDS["output"], "", port.script.text).split("\n")  # a line that writes a file reads none
    for line, file in _output_files(port):
        begin = re.match(r"[^%$]{2,}", file.rpartition("/")[2])
        name, whole = begin[0] if begin else file, re.sub(r"\$\{?\w+\}?|%\w", "", file.rpartition("/")[2])
        later = [at for at in named if at > (port.launch_line or 0) and name in lines[at - 1]]
        data = WORDS["data of a directive" if lines[line - 1].startswith("#") else "data"]
        if what := f"which {at_lines(later)} reads" if later else _kind_of_output(port, file, whole, data):
            yield task("output in a file", line=line, file=file, what=what, here=port.here)


def _kind_of_output(port: Port, file: str, name: str, data: str) -> str:
    """Return what a file of the launch's output holds; empty: it may be a log."""
    if port.written is not None and re.search(WORDS["of each rank"], file):
        return "one for each rank"
    return "which looks like data" if re.fullmatch(data, name) else ""


def _output_files(port: Port) -> Iterator[tuple[int, str]]:
    """Yield the files to which launcher, shell and directives write the launch's output, with their lines."""
    for part in port.parts:
        launch, text = part.launch, part.script.text
        if launch is not None and launch.program:
            options = text[launch.command.start : launch.program[0].start]
            behind = text[launch.program[-1].end :].partition("\n")[0]
            files = re.findall(WORDS["output"], options + behind)
            targets = (one.target for one in launch.command.redirects)
            by_value = {one.raw.strip("\"'"): str(part.values.value(one).named) for one in targets}
            every = dict.fromkeys([*files, *map(by_value.get, files, files)])
            yield from ((launch.line + part.before, file) for file in every)
    for one in port.script.active_directives if port.launch else ():
        yield from ((one.line, file) for file in re.findall(WORDS["output"], one.text))


def _foreign_words(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of other GPUs, of other schedulers, and of what hpclaunch's script sets up itself."""
    node, texts = port.target.node, _texts(port, settings)
    own = {getattr(node, "gpu_vendor", None), port.target.scheduler.kind}
    others = {owner: pattern for owner, pattern in WORDS["belongs to"].items() if owner not in own}
    found = (
        (at, word, by) for at in texts for by in others for word in re.findall(others[by], texts[at], re.M)
    )
    for where, word, owner in dict.fromkeys(found):
        if word in port.command.settled or _is_right(port, texts[where], word, owner):
            continue
        read = re.search(rf"\$\{{?{re.escape(word)}\b", texts[where])
        case, line = "variable of the scheduler" if read else "foreign word", port.launch_line
        case = WORDS["tasks of owners"].get(owner, case)
        yield task(case, where=where, word=word, owner=owner, line=line, here=port.here)


def _is_right(port: Port, text: str, word: str, owner: str) -> bool:
    """Tell whether a text only reads a variable with a default, or sets one of hpclaunch's as that may be."""
    name, ours = re.escape(word), owner == "hpclaunch's script here"
    default = rf"\$\{{{name}:?-"
    right = re.findall(rf"\$\{{?{name}\b" if ours else default, text)
    right += re.findall(rf"\b{name}=(?=\"?{default})", text)
    threads = re.findall(rf"\b{name}=(\d+)(?![^\s\"';&|)])", text) if ours and "_NUM_THREADS" in word else []
    right += [number for number in threads if fits(port, Value(number, number))]
    return 0 < len(re.findall(rf"\b{name}\b", text)) == len(right)


def _texts(port: Port, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return where in the job file which words stand; what the user fills in is named elsewhere."""
    command = settings["command"]
    text = " ".join(command[2 * (command[:2] == ("bash", "-c")) :])
    env = {name: _without_paths(port, name, value) for name, value in settings.get("env", {}).items()}
    filled = "|".join(name for name, value in env.items() if FILL_IN in value) or "(?!)"
    found = {f"env {name}": value for name, value in env.items() if FILL_IN not in value}
    return {"command": re.sub(rf"(?m)^[ \t(]+|\$\{{?({filled})\b", "", text), **found}


def _without_paths(port: Port, name: str, value: str) -> str:
    """Return a variable with its value, without the paths that have to be other ones here."""
    rest = value
    for path in dict.fromkeys(re.split(r"[\s:=,;'\"]+", "" if port.same_machine else value)):
        rest = rest.replace(path, "") if re.fullmatch(WORDS["path of one machine"], path) else rest
    return f"{name} {rest}" if rest == value or rest.strip(" :,;") else ""


def _unread_sizes(port: Port) -> Iterator[str]:
    """Yield the directives whose number is not read, and the words of others that are lost."""
    read = {one.line for one in msgspec.structs.astuple(port.requested) if one}
    for one in () if port.same_machine else port.script.components[0]:
        subject, at = port.words.options.get(one.name), at_lines([one.line])
        if subject in WORDS["numbers"] and one.line not in read:
            yield task("number unread", at=at, text=one.text)
        if subject in WORDS["sizes with words"] and (lost := _lost_words(port, (one.value or "").lower())):
            words = ", ".join(lost).replace("ompthreads", "ompthreads (set OMP_NUM_THREADS in env)")
            yield task("lost words", at=at, words=words, text=one.text, here=port.here)


def _lost_words(port: Port, value: str) -> list[str]:
    """Return the words of a directive that are neither about sizes nor true of each node here."""
    node, ranks = port.target.node, port.sizes.tasks_per_node or 1
    known = [port.there, *words_of_nodes(port)]
    value = re.sub(r"\bsystem=\w+", "", value)  # ALCF's name of the machine
    asked, memory = re.findall(r"\bmem=(\d+)gb?\b", value), least_memory(node) if node else None
    chunks = -(-ranks // (number(port.requested.tasks_per_node) or 1))
    if asked and memory and max(map(int, asked)) * chunks <= memory:
        known.append("mem")
    models = [WORDS["kinds of nodes"]] * bool(gpus_of(port.target))
    said = re.compile("|".join([WORDS["about sizes"], *models, *map(re.escape, known)]))
    kinds = {re.sub(r"^(\w+=)?\d+:", "", chunk) for chunk in value.split("+")}  # of nodes, for PBS
    lost = [word for word in re.findall(WORDS["piece"], value) if not said.fullmatch(word)]
    return ["+"] * (len(kinds) > 1) + lost


def _nodes(port: Port) -> Iterator[str]:
    """Compare the nodes of the launch with the requested ones, and the GPUs and ranks of both jobs."""
    asked, used = port.requested.node_count, port.source_sizes.nodes
    ranks, here = port.source_sizes.ranks, port.sizes
    if port.launch and asked and used and used < asked:
        yield f"nodes: the script requests {asked}, line {port.launch.line} starts ranks on {used}: set nodes"
    if "not the same number of GPUs" in here.said:
        yield f"GPUs: {here.said}"
    if ranks and used and ranks < used:
        started = counted(ranks, "rank")
        yield f"nodes: the script requests {used} and starts {started}: set nodes and tasks_per_node"
    if here.nodes and here.nodes > 2 * here.least_nodes and here.tasks_per_node:
        yield f"nodes: {here.said}: so few on a node, since each node gets the same number: set nodes"
    said = any(text.startswith("ranks: ") for text in port.command.to_do)
    if here.tasks_per_node is None and not port.starts_ray and not said:
        at = f" (line {port.launch_line})" if port.launch else ""
        yield f"ranks: {here.said}: set nodes and tasks_per_node{at}"


def _added(port: Port) -> Iterator[str]:
    """Yield the lines that add words to the command in a condition or a loop."""
    assigned = port.script.variables.assignments
    added = [one.line for name in used_names(port) for one in assigned.get(name, ()) if adds_in_block(one)]
    if lines := [line for line in added if line < (port.launch_line or 0)]:
        yield task("words added", at=at_lines(lines))


def _counts(port: Port) -> Iterator[str]:
    """Yield the variables of the program that hold another number of tasks than it has."""
    ranks, nodes = port.source_sizes.ranks, port.source_sizes.nodes or 1
    started = {"tasks": ranks, "tasks per node": -(-ranks // nodes) if ranks else None}
    asked = numbers_asked(port.script, port.requested, port.source)
    for name in sorted(names_in_launch(port)[1] & port.words.variables.keys()):
        fact = port.words.variables[name]
        if fact in started and asked.get(fact) != started[fact] and not port.command.inner:
            there = asked.get(fact)
            yield task("other count", name=name, there=there, line=port.launch_line, here=port.sizes_text)


def _other_sizes(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments that are sizes of the job, by their names."""
    given = "OMP_NUM_THREADS" in {*port.script.variables.assignments, *settings.get("env", ())}
    line, gpus = port.launch_line, gpus_of(port.target)
    words = port.command.words
    written = option_pairs(words, computed=False)
    for name, value in ((name, value) for name, value in option_pairs(words) if value.isdigit()):
        if re.fullmatch(WORDS["options of threads"], name) and not given:
            yield task("other threads", name=name, value=value, line=line)
        if re.fullmatch(WORDS["ranks of a node"], name) and 0 < gpus < int(value):
            yield task("wider than a node", name=name, value=value, line=line, gpus=gpus)
        if is_other_size(port, name, value, of_job=(name, value) not in written):
            what = f"command: {name} {value} of line {line}"
            yield task("other size", what=what, there=port.there, here=port.sizes_text)


def _starters(port: Port) -> Iterator[str]:
    """Yield the arguments that name what starts processes, or are options of it."""
    others = {*LAUNCHERS, *READERS, *WORDS["names of launchers"]}
    others -= {port.target.scheduler.kind, port.launcher.name}
    given = option_pairs(port.command.words)
    if names := [name for name in dict(given) if re.fullmatch(WORDS["option of a launcher"], name)]:
        yield task("option of a launcher", names=", ".join(names), line=port.launch_line)
    for name, value in given:
        if name.startswith("-") and value in others:
            yield task("names a launcher", name=name, value=value, line=port.launch_line, here=port.here)


def lines_by_index(port: Port) -> list[int]:
    """Return the lines that read the index of an array."""
    return _reading(port, port.names_of("array index"))


def _index(port: Port, settings: Mapping[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    """Yield that a job without an array reads an index, or that values which follow from it are filled in."""
    lines = lines_by_index(port)
    read = "$HPCLAUNCH_ARRAY_INDEX" in str(settings["command"]).replace("{", "")
    if lines and read and "array" not in settings:
        yield f"array: line {format_cpu_list(lines)} reads an index, and no line requests an array: set array"
    named = {line for _, line in all_set(judged).get("fill_in", ())} if "array" in settings else set()
    if not named.intersection(lines) and lines and FILL_IN in str(settings.get("env")):
        yield task("by the index", at=at_lines(lines), array=settings.get("array", "to request"))


def _gpus(port: Port) -> Iterator[str]:
    """Compare the ranks of a node with its GPUs, and the GPUs requested with the lines that speak of some."""
    gpus = gpus_of(port.target)
    per_node, source = port.sizes.tasks_per_node, port.source_sizes
    hint = re.compile(WORDS["speaks of GPUs"])
    hints = [n for n, line in port.content_lines.items() if hint.search(line.partition("# ")[0])]
    asked = any(asks_for_gpus(port, one) for one in port.script.active_directives)  # which has a task
    if gpus and per_node and per_node > gpus:
        if source.gpus is None and (hints or not _of_cores(port)):
            yield task("shared GPUs, unsaid", per_node=per_node, gpus=gpus)
        elif source.gpus and not (source.ranks and source.ranks > source.gpus):  # there, too
            yield task("shared GPUs", per_node=per_node, gpus=gpus)
    elif hints and gpus and source.gpus is None and not asked and per_node != gpus:
        yield f"GPUs: {at_lines(hints)} speak of some, and no number can be read: set gpus_per_task"


def _of_cores(port: Port) -> bool:
    """Tell whether the ranks are more than a node of any machine has GPUs, or one for each core requested."""
    ranks, nodes = port.source_sizes.ranks or 0, port.source_sizes.nodes or 0
    alone = port.script.kind in WORDS["one core each"] or any(
        "ppn=" in one.text for one in port.script.directives
    )
    alone = alone and "exclusive" not in port.subjects and (number(port.requested.cpus_per_task) or 1) == 1
    slots = numbers_asked(port.script, port.requested, None).get("tasks")
    return 0 < WORDS["most GPUs"] * nodes < ranks or (alone and slots == ranks)


def _arguments_in(word: Word) -> Iterator[str]:
    """Yield the arguments of the script that a word reads outside of single quotes."""
    for part in word.parts:
        source = f"${part.text}" if part.kind == "variable" else part.text
        match = re.search(r"\$(?:\{(?:[@*]|\d+)[^}]*\}|[@*\d])", source)
        if match and part.kind != "text":
            yield match[0]


def _arguments(port: Port) -> Iterator[str]:
    """Yield the words of the launch that stand for arguments of the script, and the lines that read some."""
    inside = port.command.inside_at
    own = inside is not None and inside.in_launch and not inside.expands  # a text has its own arguments
    for word in chain.from_iterable(one.launch.program for one in port.parts[: 2 - own] if one.launch):
        yield from (task("arguments", shown=shown) for shown in _arguments_in(word))
    functions = [range(one.start, one.end) for one in port.script.commands if one.function]  # have their own
    functions += [range(word.start, word.end) for word in (port.launch.program if port.launch else ())]
    read = (ref for ref in port.script.shell.refs if ARGUMENT.fullmatch(ref.name))
    if lines := {ref.line for ref in read if not any(ref.offset in part for part in functions)}:
        yield task("arguments read", at=at_lines(lines))


def _script_file(port: Port) -> Iterator[str]:
    """Yield that the command starts a script, which may read variables of the other machine."""
    words = texts_of(port.command.words)
    if words and re.fullmatch(r"(.*/)?(ba)?sh", words[0]):
        words = list(dropwhile(lambda word: word.startswith("-"), words[1:]))
    if words and re.fullmatch(r".*\.(sh|bash|job|slurm)", words[0]):
        where = f" of line {port.launch_line}" if port.launch else ""
        yield task("script started", script=words[0], where=where, there=port.there)
