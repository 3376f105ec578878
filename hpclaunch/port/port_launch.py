"""The launch of a foreign script: which one the job is for, its sizes, and what its words become."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from hpclaunch.lint.launch_lines import Launch
from hpclaunch.plan.worker_launchers import Started
from hpclaunch.port.foreign_values import Value, Values, shell_word
from hpclaunch.port.job_sizes import SourceSizes
from hpclaunch.port.launcher_words import (
    LaunchOption,
    Piece,
    read_options,
    words_of,
)
from hpclaunch.port.line_report import KEPT, Verdict, left_out
from hpclaunch.port.own_script import own_gpus
from hpclaunch.port.port_body import PRINTS, last_program, sole_program
from hpclaunch.port.port_directives import binding_verdict, container_verdict, exported, fabric_verdict
from hpclaunch.port.port_state import JOB_FILE, SCRIPT_OF_HPCLAUNCH, Port, gpus_of, is_path
from hpclaunch.port.port_variables import fill_in, port_variable
from hpclaunch.port.ported_command import (
    PortedCommand,
    by_name,
    command_words,
    image_name,
    inner_launcher,
    placeholder,
    port_command,
    shell_text_at,
    with_binds,
    workers_of,
)
from hpclaunch.port.written_script import Written, find_written, read_written, text_fed, text_of_shell
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.shell.launcher_options import LAUNCHER_OPTIONS, Size
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Word
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.container_runtimes import RUNTIMES

_PROGRAM_OF_HPCLAUNCH = ["bash", "-c", "", "rank"]
"""How the words of a launch by hpclaunch's own script begin; the third is the text of a rank's shell."""


def launches_of(port: Port) -> list[Launch]:
    """Return the launches that may be the job's: not those that only print information."""
    steps = [one for one in port.script.steps() if one.command.depth == 0]
    starts = [one for one in steps if not _only_prints(one)] or [one for one in steps if one.by_launcher]
    return [launch for launch in starts if launch.program or launch.launcher != "python"]


def _only_prints(launch: Launch) -> bool:
    """Tell whether a launch only prints information; a shell's text counts by all that is in it."""
    words = [word.visible for word in launch.program]
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh") and re.fullmatch(r"-\w*c", words[1]):
        commands = [one for one in read_shell(words[2]).commands if one.words]
        return all(one.name.rpartition("/")[2] in PRINTS for one in commands)
    name = words[0].rpartition("/")[2] if words else ""
    in_container = name in RUNTIMES and "ldd" in words  # it shows the libraries of the program that follows
    return launch.trivial or in_container or name in PRINTS


def main_launch(port: Port, values: Values) -> Launch | None:
    """Return the launch with the most ranks, the first of equals; None: the script has none."""
    found = launches_of(port)
    # Scripts of earlier versions have launches of hpclaunch's programs, too.
    found = [one for one in found if port.own and _starts_ranks(one, values)] or found
    return max(found, key=lambda launch: source_sizes(port, values, launch).ranks or 0, default=None)


def program_of(port: Port, launch: Launch, values: Values) -> list[Piece]:
    """Return the words of a launch's program; not those by which hpclaunch's script starts a rank."""
    program = read_options(launch, values).program
    program = program[4:] if port.own and _starts_ranks(launch, values) else program
    return program[: _end_of_first(launch, program)]


def _starts_ranks(launch: Launch, values: Values) -> bool:
    """Tell whether hpclaunch's own script starts the job's ranks by a launch."""
    words = [piece.word.text or "" for piece in read_options(launch, values).program[:4]]
    return words == _PROGRAM_OF_HPCLAUNCH


def _end_of_first(launch: Launch, program: list[Piece]) -> int:
    """Return where the first of several programs ends: ``mpiexec -n 1 ./a : -n 2 ./b``."""
    several = launch.launcher in ("srun", "mpiexec", "aprun")
    colons = [at for at, piece in enumerate(program) if several and piece.word.raw == ":"]
    return colons[0] if colons else len(program)


# --- sizes -------------------------------------------------------------------------------------------------


def source_sizes(port: Port, values: Values, launch: Launch | None) -> SourceSizes:
    """Return what the directives request and a launch starts, as far as the script says it."""
    requested = port.requested
    given = _launch_sizes(values, launch) if launch is not None else {}
    nodes = given.get("nodes") or requested.node_count
    ranks = _rank_count(port, values, launch, given, nodes)
    if nodes is None and ranks is not None and (per_node := _per_node(given, requested)):
        nodes = -(-ranks // per_node)
    gpus = _gpu_count(port, given, nodes, ranks)
    cpus = given.get("cpus") or (requested.cpus_per_task.value if requested.cpus_per_task else None)
    return SourceSizes(nodes=nodes, ranks=ranks, gpus=gpus, cpus_per_rank=cpus or None)


def _per_node(given: dict[Size, int], requested: RequestedResources) -> int | None:
    own = given.get("tasks per node")
    return own or (requested.tasks_per_node.value if requested.tasks_per_node else None)


def _launch_sizes(values: Values, launch: Launch) -> dict[Size, int]:
    known = LAUNCHER_OPTIONS.get(launch.launcher)
    found: dict[Size, int] = {}
    for option in read_options(launch, values).options if known else ():
        size = known.sizes.get(option.name) if known else None
        number = _number(option)
        if size is not None and number:
            found[size] = number
    if sets := found.pop("sets", None):  # jsrun: resource sets, each with this number of ranks and GPUs
        per_set = found.pop("tasks per node", 1)
        found["tasks"] = sets * per_set
        if per_host := found.pop("sets per node", None):
            found["nodes"] = -(-sets // per_host)
        if each := found.pop("gpus per task", None):
            found["gpus"] = sets * each
    return found


def _number(option: LaunchOption) -> int | None:
    """Read a count: ``8``, and of GPUs ``a100:8`` and ``gpu:8``."""
    match = re.fullmatch(r"(?:[A-Za-z][\w.-]*:){0,2}(\d{1,9})", (option.value or "").strip())
    return int(match[1]) if match else None


def _rank_count(
    port: Port, values: Values, launch: Launch | None, given: dict[Size, int], nodes: int | None
) -> int | None:
    """Return the ranks: by the launch, else by the directives; a program without a launcher is one rank."""
    requested = port.requested
    if "tasks" in given:
        return given["tasks"]
    if "tasks per node" in given and nodes:
        return given["tasks per node"] * nodes
    if launch is not None and launch.launcher not in LAUNCHER_OPTIONS:
        return nodes if launch.launcher in ("torchrun", "horovodrun") else 1
    if launch is not None and (_open(launch, values, "tasks") or _open(launch, values, "tasks per node")):
        return None
    if requested.tasks:
        return requested.tasks.value
    if requested.tasks_per_node:
        return requested.tasks_per_node.value * (nodes or 1)
    return nodes if launch is not None else None


def _open(launch: Launch, values: Values, size: Size) -> bool:
    """Tell whether a launch has an option for a size, whose value could then not be read."""
    sizes = LAUNCHER_OPTIONS[launch.launcher].sizes
    return any(sizes.get(option.name) == size for option in read_options(launch, values).options)


def _gpu_count(port: Port, given: dict[Size, int], nodes: int | None, ranks: int | None) -> int | None:
    """Return the GPUs of the job; 0: its machine has none; None: the script does not say."""
    requested, source = port.requested, port.source
    per_node = given.get("gpus per node") or (
        requested.gpus_per_node.value if requested.gpus_per_node else None
    )
    per_task = given.get("gpus per task") or (
        requested.gpus_per_task.value if requested.gpus_per_task else None
    )
    if port.own and (own := own_gpus(port.script.text)):
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
        with_gpus = reader is not None and not reader.requests_gpus and _owns_nodes(port, source)
        whole = with_gpus or source.scheduler.select is not None or source.scheduler.launcher == "jsrun"
        if not source.node.gpus:
            return 0
        return len(source.node.gpus) * nodes if whole and nodes else None
    return None


def _owns_nodes(port: Port, source: SiteProfile) -> bool:
    """Tell whether the queue of the script gives whole nodes."""
    queue = source.queues.get(port.script.directive_value("queue"))
    return queue is not None and queue.whole_node


# --- the command -------------------------------------------------------------------------------------------


def port_program(port: Port, values: Values) -> None:
    """Set the command of the job file, its container and its framework."""
    port.command = read_command(port, port.launch, values)
    port.written, port.written_at = port.command.inside, port.command.inside_at
    for text in port.command.to_do:
        port.do(text)


def read_command(port: Port, launch: Launch | None, values: Values) -> PortedCommand:
    """Return the command of a launch, and with it the script that the launch starts and this script holds."""
    if launch is not None:
        words = program_of(port, launch, values)
    else:
        last = last_program(port)
        words = words_of(values, last.words) if last else []
    found = port_command(words, launch.launcher if launch is not None else "", port.here)
    programs = [word for word in found.words if word.plain not in ("bash", "sh")]
    place = find_written(port, values, programs[0]) if len(programs) == 1 else None
    if place is None and launch is not None:
        found, place = _with_text_fed(found, launch)
        place = place or _shell_text(found, launch)
    inner = read_written(port, values, place) if place is not None else None
    if inner is None or place is None:
        return found
    inner.launch = sole_program(inner) if place.in_launch else main_launch(inner, inner.values)
    if inner.launch is not None:
        return _with_inside(port, found, inner, place)
    return _with_text_kept(port, found, inner, place) if place.in_launch else found


def _with_inside(port: Port, found: PortedCommand, inner: Port, place: Written) -> PortedCommand:
    """Return the command with the program of the script inside."""
    assert inner.launch is not None  # noqa: S101
    program = program_of(inner, inner.launch, inner.values)
    own = inner.command = port_command(program, inner.launch.launcher, port.here)
    inner.in_container = found.image is not None
    fields = ("words", "framework", "inner", "workers", "workers_of_job", "nodes")
    taken = {name: getattr(own, name) for name in fields}
    said = "" if place.in_launch else f"the program of the file that line {place.command.line} writes"
    found = replace(found, inside=inner, inside_at=place, to_do=(*found.to_do, *own.to_do), **taken)
    return found.but(said=said)


_READS_STDIN = re.compile(r"(\S*/)?(ba)?sh( -[sl]+| -)*")
"""A shell without the name of a script."""


def _with_text_fed(found: PortedCommand, launch: Launch) -> tuple[PortedCommand, Written | None]:
    """Return ``bash -c`` for a shell that reads a here-document, and that as a script in the script."""
    bodies = [one for one in launch.command.redirects if one.body is not None and one.fd in ("", "0")]
    if not bodies or not _READS_STDIN.fullmatch(" ".join(word.plain or "?" for word in found.words)):
        return found, None
    dash = Value("-c", "-c")
    return found.but(words=(found.words[0], dash, Value(None, None))), text_fed(launch.command, bodies[-1])


def _shell_text(found: PortedCommand, launch: Launch) -> Written | None:
    """Return the text of ``bash -c TEXT``, where a launch starts that."""
    at = shell_text_at(found.words)
    if at is None:
        return None
    starts = [
        start for start, values in found.sources.items() if any(one is found.words[at] for one in values)
    ]
    return next((text_of_shell(launch.command, w) for w in launch.command.words if w.start in starts), None)


def _with_text_kept(port: Port, found: PortedCommand, inner: Port, place: Written) -> PortedCommand:
    """Return the command with a text of several programs or conditions; a shell in each rank reads it."""
    text, unknown = inner.values.translated(inner.script.text)
    line = place.line
    unknown = [] if port.same_scheduler else unknown
    for name in unknown:
        found = found.but(to_do=f"command: line {line} reads {name}, which jobs on {port.here} do not have")
    names = {ref.name for ref in inner.script.shell.refs} - set(inner.script.variables.assignments)
    for name in sorted(names & set(port.script.variables.assignments)):
        if inner.values.named(name, 0).plain is None and name not in port.script.variables.exported:
            to_do = f"command: line {line} reads {name}, whose value the script computes: set it in env"
            found = found.but(to_do=to_do)
    for command in inner.script.commands:
        words = tuple(piece.text for piece in words_of(inner.values, command.words))
        started, _ = inner_launcher(words)
        if started:
            workers, of_job = workers_of(started)
            kept = started.launcher.name
            text = _with_numbers_of(port, started, text)
            to_do = (
                f"command: line {line + command.line - 1}: {kept} stays, with {port.here}'s workers per node:"
                " check its other options, or name the program alone"
            )
            found = found.but(kept=kept, workers=workers, workers_of_job=of_job, to_do=to_do)
    return found.but(words=(*found.words[:-1], Value(text, None)))


def _with_numbers_of(port: Port, started: Started, text: str) -> str:
    """Return a text with the workers per node and the nodes that the job has here."""
    row = started.launcher
    numbers = {row.nodes: port.settings.get("nodes")}
    numbers |= dict.fromkeys(row.workers, port.settings.get("tasks_per_node"))
    for name, number in numbers.items():
        if name and number:
            spelt = re.escape(name).replace("_", "[_-]")
            text = re.sub(rf"(?<!\S)({spelt}[= ]\s*)[^\s;&|]+", rf"\g<1>{number}", text)
    return text


def set_command(port: Port) -> None:
    """Write the command, once all variables are known."""
    found = port.command
    for word in found.words:
        if word.plain is None and word.shell is None:
            for name in word.missing if word.named else (placeholder(word),):
                fill_in(port, name)
    stdin = _stdin(port)
    port.set("command", command_words(found, port.exports, stdin))
    _name_after_program(port)
    if found.image:
        port.set("container", found.image)
    if found.binds:
        port.set("container_bind", found.binds)
    gpus, per_node = gpus_of(port.target), port.settings.get("tasks_per_node")
    if found.inner and gpus and per_node and per_node > gpus:
        port.set(
            "framework", "none", f"{per_node} ranks share {gpus} GPUs: each sees one of them, as number 0"
        )
    elif found.framework:
        port.set("framework", found.framework, f"{found.inner} starts programs of this framework")
    if not port.same_machine and not found.image:
        for word in found.words:
            if word.plain is not None and is_path(word.plain):
                port.do(f"command: {word.plain} has to be a path on {port.here}")


def _name_after_program(port: Port) -> None:
    """Name a job whose script names none after its Python file or its program."""
    words = [text for word in port.command.words if (text := word.plain or word.shell)]
    texts = [text for word in words for text in word.split()]
    file = next((text for text in texts if text.endswith(".py")), words[0] if words else "")
    if "name" not in port.settings:
        port.set(
            "name",
            port.job_name(PurePosixPath(file).stem),
            "after the program, since the script names no job",
        )


def _stdin(port: Port) -> str | None:
    """Return the file that the launch reads, as a word for the shell."""
    command = port.launch.command if port.launch else None
    for redirect in command.redirects if command else ():
        if redirect.operator != "<" or redirect.fd not in ("", "0"):
            continue
        line = port.script.text.split("\n")[redirect.line - 1]
        if f"<{redirect.target.raw}>" in line:
            port.do(f"command: <{redirect.target.raw}> of line {redirect.line} is a placeholder: fill it in")
            continue
        return shell_word(port.values.value(redirect.target))
    return None


# --- verdicts ----------------------------------------------------------------------------------------------


def judge_launch(port: Port) -> None:
    """Judge the lines of the launch, each by the words that stand on it."""
    launch = port.launch
    if launch is None:
        return
    read = read_options(launch, port.values)
    lines = _own_lines(port, launch)
    by_line: dict[int, list[Verdict]] = {}
    for option in read.options:
        by_line.setdefault(option.word.line, []).append(_option_verdict(port, launch, option))
    end = _end_of_first(launch, read.program)
    for word in dict.fromkeys(piece.word for piece in read.program[:end]):
        by_line.setdefault(word.line, []).append(_word_verdict(port, word))
    for piece in read.program[end:]:
        port.do("command: the launch starts several programs (:), the job file has the first one")
        why = "undecided: a job file has one program: port each other one as another job"
        by_line.setdefault(piece.word.line, []).append(left_out(why))
    first = _first_verdict(port, launch)
    port.verdicts.note([launch.line], first)
    for assignment in launch.command.assignments:
        value = port.values.value(assignment.value) if assignment.value else Value(None, None)
        port.verdicts.note([assignment.line], port_variable(port, assignment.name, value))
    for line in lines:
        about = by_line.get(line, [])
        for verdict in about if line != launch.line else [one for one in about if one.fate != "kept"]:
            port.verdicts.note([line], verdict)
        if not about and line != launch.line:
            port.verdicts.note([line], first)
    for redirect in launch.command.redirects:
        if redirect.operator != "<":
            shown = f"{redirect.fd}{redirect.operator}{redirect.target.raw}"
            why = f"{shown}: stdout and stderr go to the job's log"
            port.verdicts.note([redirect.line], left_out(why))


def _own_lines(port: Port, launch: Launch) -> list[int]:
    """Return the lines of a launch, without those of a script inside of it that are judged one by one."""
    inside = range(0)
    if port.written is not None and port.written_at.in_launch:
        first = port.written_at.line
        inside = range(first, first + port.written_at.text.count("\n") + 1)
    return [line for line in port.lines_of(launch.command) if line == launch.line or line not in inside]


def _first_verdict(port: Port, launch: Launch) -> Verdict:
    words = port.settings.get("command", ())
    said = [*port.command.said]
    starts = f"{port.here} starts ranks by {port.launcher.name}"
    known = LAUNCHER_OPTIONS.get(launch.launcher)
    options = read_options(launch, port.values).options
    sized = known and any(option.name in known.sizes for option in options)
    if port.sizes is not None and not sized:
        said.append(port.sizes.said)
    if launch.command.block and not port.own:
        said.append("it stands in a block of the shell, and the job file starts it once, in any case")
        port.do(f"command: line {launch.line} starts it in a condition or a loop, the job file in any case")
    why = "; ".join([starts, *said])
    source = port.cited(port.target.scheduler.source)
    return Verdict("changed", f"command: {' '.join(words)}", why, source)


def _word_verdict(port: Port, word: Word) -> Verdict:
    values = port.command.sources.get(word.start, ())
    if port.written is not None or not any(value is one for value in values for one in port.command.words):
        return _taken_off(port, word)
    if values and all(value.plain is not None for value in values) and word.text is not None:
        return KEPT
    texts = [shell_word(value) or by_name(value) for value in values]
    why = f"{word.raw} is read here, its variables have the values of the job on {port.here}"
    return Verdict("changed", " ".join(texts) or "in the command", why, JOB_FILE)


def _taken_off(port: Port, word: Word) -> Verdict:
    """Return the verdict on a word that is not one of the command: a container's, or another launcher's."""
    if _is_of_inner(port, word):
        why = f"without {port.command.inner}: hpclaunch starts one rank for each of its workers"
        to = "the ranks, and where they find each other, as hpclaunch's script sets them"
        return Verdict("changed", to, why, SCRIPT_OF_HPCLAUNCH)
    if port.command.image:
        to = f"container: {port.command.image}"
        why = f"the container runs with the binds and the GPU option of {port.here}"
        return Verdict("changed", to, why, port.container_source)
    return Verdict("changed", "in the command", "hpclaunch starts the program itself", JOB_FILE)


def _is_of_inner(port: Port, word: Word) -> bool:
    """Tell whether a word is torchrun's or one of its options, in the launch of this script."""
    if port.written is not None or port.launch is None or not port.command.inner:
        return False
    names = re.compile(rf"(.*/)?{re.escape(port.command.inner)}|torch\.distributed\.(run|launch)")
    starts = [one.start for one in port.launch.program if names.fullmatch(one.visible)]
    return bool(starts) and word.start >= starts[0]


def _option_verdict(port: Port, launch: Launch, option: LaunchOption) -> Verdict:
    known = LAUNCHER_OPTIONS.get(launch.launcher)
    text = f"{launch.launcher}'s {option.name}"
    if known is None:
        return left_out(f"{text}: hpclaunch starts the ranks itself")
    if option.name in known.sizes:
        return Verdict("changed", port.sizes_text, port.sizes.said if port.sizes else "", JOB_FILE)
    handler = _OPTIONS.get(known.about.get(option.name, ""))
    if handler is None:
        return left_out(f"undecided: {text} has no setting here")
    return handler(port, text, option)


def _environment(port: Port, text: str, option: LaunchOption) -> Verdict:
    """Turn ``--export=ALL,A=b``, ``--env A=b``, ``-e A=b`` into variables of the job."""
    plain = option.value
    if plain is None:
        return left_out(f"undecided: {text}: its value is known at run time only")
    named = [part for part in re.split(r",(?=\w+=)", plain) if "=" in part]
    if not named:
        return left_out(f"{text}: all variables of the script reach the ranks")
    return exported(port, [part.removeprefix("ALL,") for part in named])


def _container(port: Port, text: str, option: LaunchOption) -> Verdict:
    image = image_name(option.value or "")
    if option.name in ("container-image", "image", "environment") and image is not None:
        return container_verdict(port, image)
    if option.name in ("container-mounts", "volume") and option.value is not None:
        return _binds(port, option.value)
    return left_out(f"undecided: {text}: container_bind of the job file names what it sees")


def _binds(port: Port, text: str) -> Verdict:
    """Turn the mounts of pyxis, ``SRC:DST:FLAGS,...``, and of Shifter into binds of the job."""
    mounts = ",".join(":".join(each.split(":")[:2]) for each in text.split(","))
    found = with_binds(PortedCommand(binds=port.command.binds), mounts, port.here)
    port.command = port.command.but(binds=found.binds)
    if found.binds:
        port.set("container_bind", found.binds)
    for said in found.to_do:
        port.do(said)
    why = "; ".join((*found.said, "container_bind of the job file names what a container sees"))
    return Verdict("changed", f"container_bind: {', '.join(found.binds) or 'none'}", why, JOB_FILE)


def _left(why: str) -> Callable[[Port, str, LaunchOption], Verdict]:
    return lambda port, text, option: left_out(f"{text}: {why}")


_OPTIONS: dict[str, Callable[[Port, str, LaunchOption], Verdict]] = {
    "binding": lambda port, text, option: binding_verdict(port, text),
    "fabric": lambda port, text, option: fabric_verdict(port, text),
    "environment": _environment,
    "container": _container,
    "log": _left("stdout and stderr go to the job's log"),
    "nodes by name": _left("the launcher uses all nodes of the job"),
    "nothing": _left("not needed"),
}
