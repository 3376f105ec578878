"""The launch of a foreign script: which one the job is for, its sizes, and what its words become."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from hpclaunch.lint.known_variables import FILE_SYSTEMS, SYSTEM
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.port import port_directives, ported_command
from hpclaunch.port.foreign_values import WORDS, Value, shell_word, texts_of
from hpclaunch.port.job_sizes import SourceSizes
from hpclaunch.port.launcher_words import LaunchOption, read_launch
from hpclaunch.port.line_report import KEPT, Judged, Verdict, task
from hpclaunch.port.own_script import own_gpus
from hpclaunch.port.port_body import last_program, leaves, only_prints, sole_program, starts_several
from hpclaunch.port.port_state import Port, decided, gpus_of, number
from hpclaunch.port.port_variables import fill_in, gpu_aware_verdict, paths_here, port_variable
from hpclaunch.port.ported_command import PortedCommand, by_name, inner_launcher, port_command, shell_text_at
from hpclaunch.port.written_script import Written, find_written, here_document, read_written, text_of_shell
from hpclaunch.shell.launcher_options import LAUNCHER_OPTIONS, Size
from hpclaunch.shell.shell_syntax import Part, Redirect, Word, variable_name


def launches_of(port: Port) -> list[Launch]:
    """Return the launches that may be the job's: not those that only print information."""
    steps = [one for one in port.script.steps() if one.command.depth == 0]
    starts = [one for one in steps if not only_prints(one)]
    if not starts:  # srun hostname, and then python train.py
        alone = [one for one in port.script.launches if not (one.command.depth or one.command.piped_in)]
        starts = [one for one in alone if not only_prints(one)]
    if not starts and last_program(port) is None:
        read = [one for one in port.script.steps() if one.command.depth and not only_prints(one)]
        starts = [one for one in read or steps if one.by_launcher]  # OUT=$(srun ./a)
    return [launch for launch in starts if launch.program or launch.launcher != "python"]


def main_launch(port: Port) -> Launch | None:
    """Return the launch with the most ranks; of equals the first of Python, or the first; None: no launch."""
    found = launches_of(port)
    # Scripts of earlier versions have launches of hpclaunch's programs, too.
    found = [one for one in found if read_launch(one, port.values).shell] or found
    spans = {id(one): port.script.text[one.command.start : one.command.end] for one in found}
    trains = {at for at, text in spans.items() if re.search(WORDS["starts Python"], text)}  # others may copy
    return max(found, key=lambda one: (source_sizes(port, one).ranks or 0, id(one) in trains), default=None)


def source_sizes(port: Port, launch: Launch | None) -> SourceSizes:
    """Return what the directives request and a launch starts, as far as the script says it."""
    requested = port.requested
    given = read_launch(launch, port.values).sizes if launch is not None else {}
    nodes = (not port.starts_ray and given.get("nodes")) or requested.node_count
    ranks = _rank_count(port, launch, given, nodes)
    per_node = given.get("tasks per node") or number(requested.tasks_per_node)
    if nodes is None and ranks is not None and per_node:
        nodes = -(-ranks // per_node)
    gpus = _gpu_count(port, given, nodes, ranks)
    cpus = given.get("cpus") or number(requested.cpus_per_task)
    return SourceSizes(nodes=nodes, ranks=ranks, gpus=gpus, cpus_per_rank=cpus or None)


def _rank_count(port: Port, launch: Launch | None, given: dict[Size, int], nodes: int | None) -> int | None:
    """Return the ranks: by the launch, else by the directives; a program without a launcher is one rank."""
    if port.starts_ray:
        return None
    if "tasks" in given:
        return given["tasks"]
    if launch and "tasks per node" in given:
        if port.requested.tasks and launch.launcher == "srun":
            return port.requested.tasks.value  # sbatch's -n counts before (Slurm 22.05.8)
        if nodes:
            return given["tasks per node"] * nodes
    if fixed := _of_launcher(port, launch, nodes):
        return fixed[0]
    return _ranks_requested(port, launch, nodes)


def _of_launcher(port: Port, launch: Launch | None, nodes: int | None) -> tuple[int | None] | None:
    """Return the ranks where a launcher decides alone; None: it starts what the directives request."""
    if launch is None:
        return None if starts_several(port, nodes or 1) else (1,)
    if not launch.by_launcher:
        return (1,)
    if launch.launcher in WORDS["read elsewhere"]:
        return (nodes,)
    unread = read_launch(launch, port.values).asked.keys() & {"tasks", "tasks per node"}
    if unread or (launch.options and launch.launcher not in LAUNCHER_OPTIONS):
        return (None,)
    return (1,) if launch.launcher == "aprun" else None  # man aprun, -n


def _ranks_requested(port: Port, launch: Launch | None, nodes: int | None) -> int | None:
    """Return the ranks by the directives."""
    requested = port.requested
    if requested.tasks:
        return requested.tasks.value
    per_part = WORDS["ranks per part"]
    if any(map(port.script.has_option, per_part)) or (launch and launch.option(*per_part)):
        return None
    if requested.tasks_per_node:
        return requested.tasks_per_node.value * (nodes or 1)
    # srun starts one task on each node, of which a job has one where it requests no number of nodes, tasks or
    # GPUs (man sbatch, -N); how many mpiexec starts depends on the MPI of the machine
    if launch is None or not (launch.launcher == "srun" or port.values.own):
        return None
    return nodes or (None if requested.gpus else 1)


def _gpu_count(port: Port, given: dict[Size, int], nodes: int | None, ranks: int | None) -> int | None:
    """Return the GPUs of the job; 0: its machine has none; None: the script does not say."""
    requested, source = port.requested, port.source
    per_node = given.get("gpus per node") or number(requested.gpus_per_node)
    per_task = given.get("gpus per task") or number(requested.gpus_per_task)
    if port.values.own and (own := own_gpus(port.script.text)):
        return own * (nodes or 1)
    if "gpus" in given:
        return given["gpus"]
    if per_node is not None:
        return per_node * (nodes or 1)
    if per_task is not None and ranks:
        return per_task * ranks
    if requested.gpus:
        return requested.gpus.value
    if source is not None and source.node is not None:
        reader = port.script.reader
        queue = source.queues.get(port.script.directive_value("queue"))
        with_gpus = reader and queue and queue.whole_node and not reader.requests_gpus
        whole = with_gpus or source.scheduler.select is not None or source.scheduler.launcher == "jsrun"
        if not source.node.gpus:
            return 0
        return len(source.node.gpus) * nodes if whole and nodes else None
    return None


def read_command(port: Port, launch: Launch | None) -> PortedCommand:
    """Return the command of a launch, and with it the script that the launch starts and this script holds."""
    words = [] if launch is None else read_launch(launch, port.values).program
    found = _in_folder(port, launch, port_command(words, port.here))
    programs = [word for word in found.words if word.plain not in ("bash", "sh")]
    place = find_written(port, programs[0]) if len(programs) == 1 else None
    if place is None and launch is not None:
        found, place = _with_text_fed(found, launch)
        at = shell_text_at(found.words)
        word = None if at is None else found.words[at].origin
        text = text_of_shell(launch.command, word, port.values) if word in launch.command.words else None
        place = place or text
    if place is None:
        return found
    inner = read_written(port, place, in_ranks=launch is not None and launch.by_launcher)
    if inner is None:
        return found
    for name in place.pasted:
        found = found.but(to_do=task("pasted value", line=place.line, name=name))
    inner = replace(inner, launch=sole_program(inner) if place.in_launch else main_launch(inner))
    if inner.launch is not None:
        return _with_inside(port, found, inner, place)
    return _with_text_kept(port, found, inner, place) if place.in_launch else found


def _in_folder(port: Port, launch: Launch | None, found: PortedCommand) -> PortedCommand:
    """Return the command with its path, where lines put a program without one into the job's folder.

    A compiler without ``-o`` puts a.out there.
    """
    by_mpi = launch is not None and launch.launcher == "mpiexec" and found.image is None
    name = found.words[0].plain or ""
    made = re.compile(WORDS["puts a file"].format(name=re.escape(name)))
    lines = (" ".join(word.raw for word in one.words) for one in port.script.commands)
    there = name == "a.out" or any(map(made.fullmatch, lines))
    if not (by_mpi and there and re.fullmatch(r"\w[\w.+-]*", name)):
        return found
    said = f"mpirun looks for {name} in the folder of the job, too, and the shell that starts a rank does not"
    return ported_command.with_word(found, 0, Value(f"./{name}", f"./{name}")).but(said=said)


def _with_inside(port: Port, found: PortedCommand, inner: Port, place: Written) -> PortedCommand:
    """Return the command with the program of the script inside."""
    assert inner.launch is not None  # noqa: S101
    own = port_command(read_launch(inner.launch, inner.values).program, port.here)
    inner = replace(inner, command=own, in_container=found.image is not None)
    fields = ("words", "framework", "inner", "workers", "workers_of_job", "nodes")
    taken = {name: getattr(own, name) for name in fields}
    said = "" if place.in_launch else f"the program of the file that line {place.command.line} writes"
    found = replace(found, inside=inner, inside_at=place, to_do=(*found.to_do, *own.to_do), **taken)
    return found.but(said=said)


def _with_text_fed(found: PortedCommand, launch: Launch) -> tuple[PortedCommand, Written | None]:
    """Return ``bash -c`` for a shell that reads a here-document, and that as a script in the script."""
    bodies = [one for one in launch.command.redirects if one.body is not None and one.fd in ("", "0")]
    shown = " ".join(word.plain or "?" for word in found.words)
    if not bodies or not re.fullmatch(r"(\S*/)?(ba)?sh( -[sl]+| -)*", shown):
        return found, None
    words = (found.words[0], Value("-c", "-c"), Value(None, None))
    return found.but(words=words), here_document(launch.command, bodies[-1], in_launch=True)


def _with_text_kept(port: Port, found: PortedCommand, inner: Port, place: Written) -> PortedCommand:
    """Return the command with a text of several programs or conditions; a shell in each rank reads it."""
    text, line = inner.values.translated(inner.script.text), place.line
    names = {ref.name for ref in inner.script.shell.refs} - set(inner.script.variables.assignments)
    for name in sorted(names & set(port.script.variables.assignments)):
        if inner.values.named(name, 0).plain is None and name not in port.script.variables.exported:
            found = found.but(to_do=task("computed variable", line=line, name=name))
    found = found.but(settled=_moves(inner))
    for command in inner.script.commands:
        words = inner.values.words_of(command.words)
        started, _ = inner_launcher(tuple(texts_of(words)))
        in_text = port_command(words, port.here)
        if in_text.image:
            start = " ".join(shell_word(one) or by_name(one) for one in words[: -len(in_text.words)])
            at = {"line": line + command.line - 1, "start": start, "image": in_text.image, "here": port.here}
            found = found.but(settled=(*found.settled, command.name), to_do=task("container stays", **at))
        if started:
            workers, of_job = ported_command.workers_of(started)
            kept = started.launcher.name
            text = _with_numbers_of(port, started, text)
            to_do = task("launcher stays", line=line + command.line - 1, kept=kept, here=port.here)
            found = found.but(kept=kept, workers=workers, workers_of_job=of_job, to_do=to_do)
    return found.but(words=(*found.words[:-1], Value(text, None, _unknown_in(port, inner))))


def _unknown_in(port: Port, inner: Port) -> tuple[str, ...]:
    """Return the variables of a text that no line sets, nor a job here; none where a file may set them."""
    own = {*WORDS["set for ranks"], *SYSTEM - FILE_SYSTEMS, *port.words.variables}
    own |= {*inner.script.variables.assignments, *port.script.variables.assignments}
    read = (ref.name for ref in inner.script.shell.refs if not ref.guarded and ref.name not in own)
    theirs = ("_VISIBLE_DEVICES$", *WORDS["belongs to"].values())  # of which result_check tells
    names = (
        one for one in dict.fromkeys(read) if not any(re.search(each, f"${one}", re.M) for each in theirs)
    )
    unknown = (one for one in names if inner.values.named(one, 0).missing == (one,))
    return () if inner.script.variables.sources_unknown else tuple(filter(variable_name, unknown))


def _moves(inner: Port) -> tuple[str, ...]:
    """Return cd as a word that is right, unless a line of a text leaves the folder of the job."""
    moves = [one for one in inner.script.commands if one.name == "cd"]
    return () if any(one.depth or leaves(inner, one) for one in moves) else ("cd",)


def _with_numbers_of(port: Port, started: Started, text: str) -> str:
    """Return a text with the workers per node and the nodes that the job has here."""
    row = started.launcher
    numbers = {row.nodes: port.sizes.nodes, **dict.fromkeys(row.workers, port.sizes.tasks_per_node)}
    for name, count in numbers.items():
        if name and count:
            spelt = re.escape(name).replace("_", "[_-]")
            text = re.sub(rf"(?<!\S)({spelt}[= ]\s*)[^\s;&|]+", rf"\g<1>{count}", text)
    return text


def written_command(port: Port, given: Mapping[str, Any]) -> Verdict:
    """Return the command with what goes with it, once all variables are known; ``given``: other keys set."""
    found = port.command
    stdin, to_do = _stdin(port)
    verdict = KEPT.setting(
        command=ported_command.command_words(found, given.get("exports", ()), stdin)
    ).doing(*to_do)
    if "name" not in given:
        words = [text for word in found.words if (text := word.plain or word.shell)]
        pieces = (text for word in words for text in word.split())
        file = next((text for text in pieces if text.endswith(".py")), words[0] if words else "")
        verdict = verdict.setting(name=port.job_name(PurePosixPath(file).stem))
    if found.image:
        verdict = verdict.setting(container=found.image)
    verdict = _with_framework(port, verdict, given)
    binds = (*found.binds, *given.get("container_bind", ())) if found.image else ()
    bound = [":".join(bind.split(":")[:2]).rpartition(":")[2].rstrip("/") for bind in binds]
    texts = [word.plain or word.shell or "" for word in found.words]
    tasks = (text for word in texts for text in paths_here(port, "command", word, bound))
    return verdict.doing(*dict.fromkeys(tasks))


def _with_framework(port: Port, verdict: Verdict, given: Mapping[str, Any]) -> Verdict:
    """Return the verdict with the framework, by which hpclaunch shows GPUs and sets variables."""
    found, gpus, per_node = port.command, gpus_of(port.target), port.sizes.known.get("tasks_per_node", 1)
    framework = "ray" if port.starts_ray else found.framework
    framework = "none" if found.inner and 0 < gpus < per_node else framework
    if framework:
        return verdict.setting(framework=framework)
    if not gpus or per_node == 1 or not ("own_gpus" in given or _shows_own_gpus(port)):
        return verdict
    read = re.fullmatch(WORDS["read by another"], found.program)
    return verdict.doing(task("own GPUs alone")) if read else verdict.setting(framework="none")


def _shows_own_gpus(port: Port) -> bool:
    """Tell whether the launch shows each rank no GPUs but its own, from number 0 on."""
    if port.launch is None:
        return False
    read = read_launch(port.launch, port.values)
    every: list[Any] = [*port.script.active_directives, *read.options]
    given = "".join(f"--{one.name}={one.value} " for one in every)
    by_wrapper = any(re.fullmatch(WORDS["binder of GPUs"], text) for text in texts_of(read.program))
    pattern = WORDS["own GPUs alone"].get(port.launch.launcher, "(?!)")
    return by_wrapper or re.fullmatch(pattern, given) is not None


def filled_in(port: Port, known: Collection[str]) -> Iterator[Judged]:
    """Yield the variables that the command needs and no line sets; ``known``: those that a line sets."""
    lines = [port.launch.line] if port.launch else [1]
    for word in port.command.words:
        by_name = word.missing if word.named or word.plain else (ported_command.placeholder(word),)
        for name in by_name if word.missing or not word.known else ():
            if name not in known:
                yield Judged((), fill_in(port, name, lines))


def _stdin(port: Port) -> tuple[str | None, list[str]]:
    """Return the file that the launch reads, as a word for the shell, and what the user must do about it."""
    word, to_do = None, list[str]()
    for part in port.parts if port.launch else ():
        if part.launch is None:
            continue
        command, at = part.launch.command, f"command: line {part.launch.line + part.before}"
        to_do += [f"{at} reads what another command prints: write it to a file"] if command.piped_in else []
        inputs = (one for one in command.redirects if one.operator.startswith("<") and one.fd in ("", "0"))
        word, more = next((_read_from(part, one, at) for one in inputs), (word, []))
        to_do += more
    return word, to_do


def _read_from(port: Port, redirect: Redirect, at: str) -> tuple[str | None, list[str]]:
    raw, line = redirect.target.raw, redirect.line
    if f"<{raw}>" in port.script.text.split("\n")[line - 1]:
        return None, [f"command: <{raw}> of line {line} is a placeholder: fill it in"]
    if redirect.operator == "<":
        word = shell_word(port.values.value(redirect.target))
        return word, [] if word else [f"{at} reads {raw}, which is known at run time only"]
    of_shell = port.written is not None or port.command.words[-1].plain is None
    return None, [] if of_shell else [f"{at} gives the program a text as stdin: write it to a file"]


def judge_words(port: Port) -> Iterator[Judged]:
    """Judge the options, the words and the redirections of the launch, each on its line."""
    launch = port.launch
    if launch is None:
        return
    lines = port.lines_of(launch.command)
    for line, verdict in _each_word(port, launch):
        if line != launch.line or verdict != KEPT:
            yield Judged([line if line in lines else launch.line], verdict)
    yield from _variables_of(port, launch)
    for redirect in launch.command.redirects:
        if not redirect.operator.startswith("<"):
            shown = f"{redirect.fd}{redirect.operator}{redirect.target.raw}"
            yield Judged([redirect.line], port.says("log", text=shown))


def _variables_of(port: Port, launch: Launch) -> Iterator[Judged]:
    """Judge the variables that are set for the launch alone."""
    made: dict[str, tuple[Part, ...]] = {}  # bash sets A before it reads B, in A=1 B=$A srun
    for one in launch.command.assignments:
        word = one.value or Word("", one.offset, one.offset, one.line, (Part("command", ""),))
        made[one.name] = tuple(chain.from_iterable(_as_made(part, made) for part in word.parts))
        value = port.values.value(replace(word, parts=made[one.name]))
        yield Judged([one.line], port_variable(port, one.name, value))


def _as_made(part: Part, made: Mapping[str, tuple[Part, ...]]) -> tuple[Part, ...]:
    """Return a part of a word, or for a variable that one of these assignments sets, the parts of that."""
    if part.kind != "variable" or part.text not in made:
        return (part,)
    return (Part("command", part.text),) if part.operator else made[part.text]


def _each_word(port: Port, launch: Launch) -> Iterator[tuple[int, Verdict]]:
    """Yield the line and the verdict of each option and each word of a launch."""
    read = read_launch(launch, port.values)
    for option in read.options:
        yield option.line, _option_verdict(port, launch, option)
    stays = _by_word(port.command.words if port.written is None else ())
    for start, (word, _) in _by_word([*read.shell, *read.program]).items():
        kept = stays.get(start)
        yield word.line, _word_verdict(port, *kept) if kept else _taken_off(port, launch, word)
    for word, _ in _by_word(read.others).values():
        yield word.line, port.says("several programs", line=launch.line + port.before)


def _by_word(values: Iterable[Value]) -> dict[int, tuple[Word, list[Value]]]:
    """Return the words of the script, by their offsets, each with its values on a command line."""
    found: dict[int, tuple[Word, list[Value]]] = {}
    for one in values:
        if one.origin is not None:
            found.setdefault(one.origin.start, (one.origin, []))[1].append(one)
    return found


def judge_start(port: Port, command: Sequence[str], known: set[int]) -> Iterator[Judged]:
    """Judge the first line of the launch, and those of its lines that nothing is known of.

    The lines of a script inside of the launch are judged one by one.
    """
    if port.launch is None:
        return
    lines = set(port.lines_of(port.launch.command)) - known
    if port.written is not None and port.command.inside_at.in_launch:
        first, text = port.command.inside_at.line, port.command.inside_at.text.rstrip()
        lines -= {*range(first, first + text.count("\n") + 1)}
    yield Judged(sorted({port.launch.line, *lines}), _first_verdict(port, port.launch, command))


def _first_verdict(port: Port, launch: Launch, command: Sequence[str]) -> Verdict:
    how = "the script has no launch line: its last program is taken"
    said = [how if port.alone else f"{port.here} starts ranks by {port.launcher.name}", *port.command.said]
    to_do = [] if not launch.command.depth else [task("output read", line=launch.line + port.before)]
    read = read_launch(launch, port.values)
    if not read.asked:
        said.append(port.sizes.said)
    holds = {"line": launch.line + port.before, "launcher": launch.launcher}
    to_do += [task("options unread", name=word.raw, **holds) for word in launch.unread]
    inside = decided(launch.command) or launch.command.before == "||"
    if inside and not port.values.own:
        said.append("it stands in a block of the shell, and the job file starts it once, in any case")
        to_do.append(task("started in a block", line=launch.line + port.before))
    if read.before:
        to_do.append(task("before the launcher", text=read.before, line=launch.line + port.before))
    source = port.cited(port.target.scheduler.source)
    return Verdict("changed", f"command: {' '.join(command)}", "; ".join(said), source).doing(*to_do)


def _word_verdict(port: Port, word: Word, values: list[Value]) -> Verdict:
    """Return the verdict on a word of the command."""
    if all(value.plain is not None for value in values) and word.text is not None:
        same = port.same_machine or f"${word.text}" in (port.launcher.rank, port.launcher.local_rank)
        cases = WORDS["words of a machine"].items() if not same else ()
        there = (case for pattern, case in cases if re.fullmatch(pattern, word.text))
        return KEPT.doing(*(task(case, line=word.line, word=word.text, here=port.here) for case in there))
    texts = [shell_word(value) or by_name(value) for value in values]
    said = port.says("word", texts=" ".join(texts) or "in the command", raw=word.raw)
    facts = {part.text: port.words.variables.get(part.text) for part in word.parts if part.kind == "variable"}
    of_rank = [name for name, fact in facts.items() if fact in ("rank", "local rank", "node rank")]
    if not of_rank or port.values.around or port.before:
        return said
    return said.doing(task("rank given", line=word.line, name=of_rank[0]))


def _taken_off(port: Port, launch: Launch, word: Word) -> Verdict:
    """Return the verdict on a word that is not one of the command: a container's, or another launcher's."""
    inner, image = port.command.inner if port.written is None else "", port.command.image
    names = re.compile(rf"(.*/)?{re.escape(inner)}|torch\.distributed\.(run|launch)")
    if inner and any(names.fullmatch(one.visible) and one.start <= word.start for one in launch.program):
        return port.says("word of inner", inner=inner)
    return port_directives.in_container(port, image) if image else port.says("word taken off")


def _option_verdict(port: Port, launch: Launch, option: LaunchOption) -> Verdict:
    known = LAUNCHER_OPTIONS.get(launch.launcher)
    text = f"{launch.launcher}'s {option.name}"
    if re.fullmatch(WORDS["GPU-aware MPI"], f"{option.name}={option.value}"):
        return gpu_aware_verdict(port, f"{text} {option.value}")
    if known is None:
        return port.says("other launcher", text=text)
    if sizes := option.sizes(launch.launcher):
        unread = None in sizes.values() and sizes.keys() <= {"gpus", "gpus per node", "gpus per task"}
        case = "size unread" if unread else "sizes"
        return port.says(case, text=text, sizes=port.sizes_text, said=port.sizes.said)
    about = known.about.get(option.name, "")
    if option.name in WORDS["ends all ranks"] and option.value == "0":
        return port.says("no setting", text=text)
    if handler := _OPTIONS.get(about):
        return handler(port, text, option)
    return port.says(WORDS["options of launchers"].get(about or option.name, "no setting"), text=text)


def _environment(port: Port, text: str, option: LaunchOption) -> Verdict:
    """Turn ``--export=ALL,A=b``, ``--env A=b``, ``-e A=b`` into variables of the job."""
    if option.value is None:
        return port.says("option, run time", text=text)
    ends = "=" if "=" in option.value and option.name != "export" else "[=,]|$"  # -x A=1,2 has one value
    return port_directives.exported(port, option.value, "environment option", ends)


def _nodes(port: Port, text: str, option: LaunchOption) -> Verdict:
    some = port.source_sizes.nodes != 1 and not re.fullmatch(WORDS["files of nodes"], option.name)
    return port.says("nodes chosen" if some else "nodes by name", text=text)


_OPTIONS: dict[str, Callable[[Port, str, LaunchOption], Verdict]] = {
    "binding": lambda port, text, option: port_directives.binding_verdict(port, text),
    "fabric": lambda port, text, option: port_directives.fabric_verdict(port, text),
    "environment": _environment,
    "container": lambda port, text, one: port_directives.container_option(port, one.name, one.value, text),
    "nodes by name": _nodes,
}
