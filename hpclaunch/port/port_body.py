"""The other lines of a foreign script: variables, modules, folders, and commands around the launch."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any

from hpclaunch.lint.bind_lists import is_list
from hpclaunch.lint.known_variables import INFORMATION_COMMANDS
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.plan.script_commands import program_at
from hpclaunch.plan.software_choice import ready_software
from hpclaunch.port.foreign_values import UNREADABLE, WORDS, Value, option_pairs, texts_of
from hpclaunch.port.line_report import KEPT, Judged, Verdict, task
from hpclaunch.port.own_script import BINDS, bind_line, request_lines
from hpclaunch.port.port_directives import binding_verdict
from hpclaunch.port.port_state import Port, decided
from hpclaunch.port.port_variables import fill_in, group_of, port_variable
from hpclaunch.port.ported_command import inner_launcher
from hpclaunch.scheduler.directive_readers import SUBMIT_COMMANDS
from hpclaunch.shell.shell_reader import DECLARING
from hpclaunch.shell.shell_syntax import Assignment, Command, Word, assignment_in, is_assignment
from hpclaunch.site.schema import Environment
from hpclaunch.software.containers import RUNTIMES
from hpclaunch.software.contradictions import contradictions, unusable

CHANGES = frozenset(WORDS["changes"])
PRINTS = (INFORMATION_COMMANDS - CHANGES).union(WORDS["prints or waits"])
FILTERS = frozenset(WORDS["filters"])
_NO_START = "|".join((*PRINTS, *FILTERS, *CHANGES, WORDS["no start"], WORDS["environments"]))
"""Names of commands that start no program of the job, whatever stands behind them."""


def port_body(port: Port) -> Iterator[Judged]:
    """Judge every command that is not the launch."""
    own = request_lines(port) if port.values.own else {}
    judged = [(command, list(_of_command(port, command, own))) for command in port.script.commands]
    begins, ends = (port.says("condition"), port.says("loop")), port.says("exit")
    cluster = port.says("ray cluster")
    settled: dict[int, bool] = {}
    for command, found in reversed(judged):
        *_, block = (0, *(id(one) for one, _ in command.path))
        if found and settled.get(block) and all(one.verdict in begins for one in found):
            found[:] = [Judged(port.lines_of(command), port.says("empty block"))]
        over = port.launch is not None and command.start > port.launch.command.start
        verdicts = [one.verdict for one in found if not (over and one.verdict == ends)]
        left = all((one.fate == "left out" and not one.is_open) or one.to == cluster.to for one in verdicts)
        left = left and not (port.launch and command.start == port.launch.command.start)
        settled |= {id(one): left and settled.get(id(one), True) for one, _ in command.path}
    yield from chain.from_iterable(found for _, found in judged)


def _of_command(port: Port, command: Command, own: dict[int, str]) -> Iterator[Judged]:
    """Judge a command; the words of the launch are judged elsewhere."""
    if port.written is not None and command is port.command.inside_at.command:
        inside = port.command.inside_at
        end = [command.line, inside.line + inside.text.count("\n")]  # the file's lines are judged one by one
        yield from [Judged(end, port.says("written file"))] * (not inside.in_launch)
        yield from (one.behind(port.written.before) for one in port_body(port.written))
    elif port.launch and command.start == port.launch.command.start:  # eval $CMD, too
        return
    elif not command.depth:
        yield from _judge(port, command, own)
    elif _writes_to(port, command) or not _only_reads(port, command):
        yield Judged(port.lines_of(command), port.says(_inner_case(port, command), name=command.name))


def _inner_case(port: Port, command: Command) -> str:
    """Return the case of a command in a substitution: its output may be a value to be filled in."""
    if command.name in SUBMIT_COMMANDS:
        return "submits a job"
    assigned = port.script.variables.assignments
    values = (one.value for name in port.command.missing for one in assigned.get(name, ()))
    inside = any(word and word.start <= command.start < word.end for word in values)
    acts = re.fullmatch(_NO_START, command.name.rpartition("/")[2])
    if inside and not acts:
        return "inner value"
    return "inner command" if acts or not _for_one_machine(port, command) else "inner of a machine"


def _for_one_machine(port: Port, command: Command) -> bool:
    """Tell whether all that a command prints goes into variables that mean nothing on another machine."""
    lines, text = port.content_lines, port.script.text
    made = re.search(r"(\w+)=[\"`$(]+\s*$", text[: command.start])
    reads = [ref.line for ref in port.script.shell.refs if made and ref.name == made[1]]
    alone = re.compile(rf"\s*(export +)?({WORDS['of one machine alone']})=")
    return bool(reads) and all(alone.match(lines.get(line, "")) for line in reads)


def port_rest(port: Port, known: set[int]) -> Iterator[Judged]:
    """Judge the lines that nothing is known of: the shebang, and words such as ``fi`` and ``done``."""
    for number, line in port.content_lines.items():
        if number in known:
            continue
        if number == 1 and line.startswith("#!"):
            yield Judged([1], _first_line(port, line.strip()))
        elif port.values.own:
            yield Judged([number], port.says("own line"))
        elif line.strip().startswith("#"):
            yield Judged([number], port.says("comment written"))
        else:
            cases = WORDS["lines without a command"].items()
            case = next(case for pattern, case in cases if re.fullmatch(pattern, line.strip()))
            yield Judged([number], port.says(case))


def _first_line(port: Port, line: str) -> Verdict:
    """Return the verdict on the first line, which may start a login shell."""
    here = WORDS["first lines"].get(port.target.scheduler.kind, "#!/bin/bash")
    if line in (here, "#!/bin/bash"):
        return KEPT
    login = re.search(r" (-\w*l\w*|--login)( |$)", line) and not here.endswith("-l")
    bare = login and not port.scheduler.hands_on_environment
    case = "no login shell" if bare else "login shell" if login else "shebang"
    return port.says(case, first=here, title=port.scheduler.title)


def _judge(port: Port, command: Command, own: dict[int, str]) -> Iterator[Judged]:
    lines, name = port.lines_of(command), command.name.rpartition("/")[2]
    whole: Verdict | None = None
    if own.get(command.line) == BINDS:
        whole = bind_line(port, command)
    elif port.values.own and command.line not in own:
        whole = port.says("own line")
    elif _is_behind(port, command):
        whole = port.says("behind the launch", line=port.launch_line)
    elif _sets_up_conda(port, command):
        whole = _conda_init(port, command)
    elif file := _node_file(port, command):
        whole = port.says("node file", file=file)
    elif command.words and name not in DECLARING:
        whole = _command(port, command, name)
    if whole is not None:
        yield Judged(lines, whole)
    else:
        yield from _assignments(port, command)


def _sets_up_conda(port: Port, command: Command) -> bool:
    """Tell whether a command is one of those that conda init writes, in such a block."""
    text = port.script.text
    blocks = (found.span() for found in re.finditer(WORDS["block of conda init"], text))
    inside = any(start <= command.start < end for start, end in blocks)
    return (
        inside and re.fullmatch(WORDS["of conda init"], text[command.start : command.end].strip()) is not None
    )


def _conda_init(port: Port, command: Command) -> Verdict:
    """Judge what makes conda known: nothing, where a line activates an environment, else one environment."""
    activates = any("activate" in {word.raw for word in one.words[:2]} for one in port.script.commands)
    lines = "; ".join(step.text for step in port.target.software.setup)
    if activates or "conda" not in lines:
        return port.says("conda hook" if activates else "environment, unknown")
    source = port.cited(port.target.software.setup[-1].source)
    said = port.says("environment", source, setup=lines)
    return said.setting(set_up=((command.line + port.before, "conda init"),))


def _is_behind(port: Port, command: Command) -> bool:
    """Tell whether a command sets variables when the launch is over."""
    return (not command.words or command.name in DECLARING) and _is_over(port, command)


def _is_over(port: Port, command: Command) -> bool:
    """Tell whether the launch is over when a command runs."""
    main = port.launch.command if port.launch else None
    return main is not None and not (main.block or main.function) and command.start >= main.end


def _assignments(port: Port, command: Command) -> Iterator[Judged]:
    """Judge what a command sets, and the other words of export, declare and the like."""
    lines, words = port.lines_of(command), command.words[1:]
    for word in words:
        name = word.raw
        if re.fullmatch(r"[A-Za-z_]\w*", name):  # whose value was set before
            yield Judged([word.line], _program_variable(port, name, port.values.named(name, word.start)))
        elif not is_assignment(word):
            yield Judged([word.line], port.says("shell option", name=name))
    if len(command.words) == 1:
        yield Judged(lines, port.says("only prints"))
    made = [assignment_in(word, exported=True) for word in words if is_assignment(word)]
    for one in made or command.assignments:
        about = range(one.line, lines.stop) if one.line in lines else lines
        yield Judged(about, _assignment(port, one, command, exported=command.name == "export"))


def _program_variable(port: Port, name: str, value: Value) -> Verdict:
    """Return the verdict on an exported variable; one that holds a launch is not the program's."""
    return _holds_launcher(port, name, value) or port_variable(port, name, value)


def _holds_launcher(port: Port, name: str, value: Value) -> Verdict | None:
    inner = inner_launcher(tuple(value.text.split()))[0] if group_of(name) is None else None
    if inner is None or not (inner.options or inner.program):  # the path of a folder named deepspeed
        return None
    text = port.script.text[port.launch.command.start : port.launch.command.end] if port.launch else ""
    used = name in used_names(port) or re.search(rf"\$\{{?{name}\b", text)
    return port.says(f"holds a launcher{'' if used else ', unused'}", launcher=inner.launcher.name)


def _assignment(port: Port, one: Assignment, command: Command, *, exported: bool) -> Verdict:
    if is_list(one):
        return binding_verdict(port, f"{one.name}, a list of cores,")
    exported = exported or one.name in port.script.variables.exported
    of_machine = group_of(one.name) is not None
    value = port.values.named(one.name, one.offset + 1)
    if exported and not of_machine and one.line in port.faults:
        return port.says("fault", fault=port.faults[one.line])
    in_subshell = any(block.kind in ("(", "sh") for block, _ in command.path)
    if (exported or of_machine) and (in_subshell or decided(command)):
        value = Value(None, None)
    if one.name in port.command.missing and not (of_machine or (exported and value.known)):
        return fill_in(port, one.name, [one.line, *set_at(port, {one.line})])
    if exported or of_machine:
        return _program_variable(port, one.name, value)
    if one.name not in used_names(port):
        return port.says("unused variable")
    if value.known:
        return port.says("script variable")
    return _unread_value(port, one, value)


def _unread_value(port: Port, one: Assignment, value: Value) -> Verdict:
    """Return the verdict on a variable that the launch uses and whose value is not one text."""
    options, program = names_in_launch(port)
    words = {UNREADABLE, *value.missing}
    word = next((name for name in port.command.missing if name in words), "")
    if not word:
        return _settled_value(port, one.name, value)
    if port.written is not None:
        return port.says("run time value")
    if one.name not in options | program:
        return port.says("unused variable")
    return port.says("fill in", name=word, value=word).setting(fill_in=((word, one.line),))  # which has it


def _settled_value(port: Port, name: str, value: Value) -> Verdict:
    """Return the verdict on such a variable where the command has no word to be filled in."""
    options, program = names_in_launch(port)
    if name in program - options:  # an array, of which the command has items
        return _holds_launcher(port, name, value) or port.says("script variable")
    at_run_time = port.written is not None or name in options
    case = "run time value" if at_run_time else "unused variable"
    return _holds_launcher(port, name, value) or port.says(case)


@lru_cache(maxsize=8)  # each assignment asks for them
def names_in_launch(port: Port) -> tuple[set[str], set[str]]:
    """Return the variables of the launcher's options and of the command, with those of their values.

    Words that are taken off the program, such as those of torchrun, are of neither.
    """
    if port.launch is None:
        return set(), set()
    command, written = port.launch.command, port.written is not None
    kept = {one.origin.start for one in port.command.words if one.origin}
    first = next((word.start for word in port.launch.program if word.start >= 0), command.end)
    behind = {word.start: word.end for word in command.words if word.start >= first}
    stays = behind.items() if written else [(start, behind[start]) for start in behind.keys() & kept]
    return port.names_read((command.start, first)), port.names_read(*stays)


def _node_file(port: Port, command: Command) -> str:
    """Return the file of nodes that a command makes or removes, for the launcher alone; empty: none."""
    files = [one.target for one in command.redirects if one.operator in (">", ">>", ">|") and one.fd != "2"]
    if re.fullmatch(WORDS["of files"], command.name):
        files += [word for word in command.words[1:] if not word.raw.startswith(("-", "+"))]
    elif not _only_reads(port, command):
        return ""
    names = {one.plain or one.shell or one.named or "" for one in port.values.words_of(files)}
    words = (part.values.words_of(part.launch.command.words) for part in port.parts if part.launch)
    given = chain.from_iterable(map(option_pairs, words))
    of_nodes = {value for name, value in given if re.fullmatch(WORDS["options with a file of nodes"], name)}
    of_nodes -= {one.plain or one.shell or one.named for one in port.command.words}
    return files[0].raw if names and names <= of_nodes else ""


@lru_cache(maxsize=8)
def used_names(port: Port) -> set[str]:
    """Return the variables that the launch and exported variables use, and those that their values use."""
    launch, variables = port.launch, port.script.variables
    if launch is None:
        return set()
    exported = {name for name in variables.exported if group_of(name) is None}
    made = (one for name in exported for one in variables.assignments.get(name, []))
    parts = [(one.value.start, one.value.end) for one in made if one.value]
    parts.append((launch.command.start, launch.command.end))
    if inside := port.command.inside_at:
        start = port.script.text.find(inside.text, inside.command.start)
        parts.append((start, start + len(inside.text)))
    return port.names_read(*parts)


def set_at(port: Port, lines: Collection[int]) -> set[int]:
    """Return the other lines that set the variables which these read, and those that their values read."""
    read = ((ref.offset, ref.offset + 1) for ref in port.script.shell.refs if ref.line in lines)
    assigned = port.script.variables.assignments
    return {one.line for name in port.names_read(*read) for one in assigned.get(name, ())}.difference(lines)


def _command(port: Port, command: Command, name: str) -> Verdict:
    if name in WORDS["cases of commands"]:
        return port.says(WORDS["cases of commands"][name])
    for pattern, handler in _COMMANDS:
        if re.fullmatch(pattern, name):
            return handler(port, command)
    if fed := _fed(port, command):
        return port.says("feeds a launch", line=fed.line)
    if launch := port.launches.get(command.start):
        texts = (command, *command.inner) if not launch.by_launcher or only_prints(launch) else ()
        if not port.starts_ray and (file := next(filter(None, (_writes_to(port, one) for one in texts)), "")):
            return port.says("writes text", file=file)
        return _other_launch(port, launch)
    if any(redirect.body is not None for redirect in command.redirects):
        return port.says("writes text", file="a file")
    if command.condition or name in ("[", "[[", "test", "case"):
        return port.says("condition")
    if (name in PRINTS or name in FILTERS) and (file := _writes_to(port, command)):
        return port.says("writes text", file=file)
    if (name in PRINTS and _only_shows(command.words)) or (command.piped_in and name in FILTERS):
        return port.says("prints or waits")
    if port.alone and _is_program(port, command):
        return port.says("other program", line=port.launch_line)
    submits = re.search(WORDS["function that submits"].format(name=re.escape(name)), port.script.text)
    return _mkdir(port, command) if name == "mkdir" else port.says("submits a job" if submits else "no place")


def _mkdir(port: Port, command: Command) -> Verdict:
    """Judge folders that are made: those that cd enters, and those of the job's log, other lines name."""
    made = {_path(port, word) for word in command.words[1:] if not word.raw.startswith("-")}
    moves = (one.words[1:2] for one in port.script.commands if leaves(port, one))
    entered = {_path(port, word) for word in chain.from_iterable(moves)}
    return port.says("folders named" if made <= entered | _log_folders(port, command) else "makes folders")


def _log_folders(port: Port, maker: Command) -> set[str]:
    """Return the folders of the job's output that no other line names but the one that makes them."""
    outputs = [one for one in port.script.active_directives if port.words.options.get(one.name) == "output"]
    known = {maker.line, *(one.line for one in outputs)}
    text = "\n".join(line for number, line in port.content_lines.items() if number not in known)
    logs = {(one.value or "").rpartition("/")[0] for one in outputs}
    return {log for log in logs if not re.search(rf"\b{re.escape(log.rpartition('/')[2])}\b", text)}


def _path(port: Port, word: Word) -> str:
    """Return the path that a word stands for, by its variables where their values are not known."""
    value = port.values.value(word)
    return (value.plain or value.named or word.raw).rstrip("/")


def _only_shows(words: list[Word]) -> bool:
    """Tell whether a command that prints does nothing else with its arguments."""
    name, given = words[0].visible.rpartition("/")[2], (word.visible or word.raw for word in words[1:])
    only = (args for names, args in WORDS["prints only with"].items() if re.fullmatch(names, name))
    return re.fullmatch(next(only, ".*"), " ".join(given), re.DOTALL) is not None


def _only_reads(port: Port, command: Command) -> bool:
    """Tell whether a command changes nothing but the files that its output goes to."""
    name, launch = command.name.rpartition("/")[2], port.launches.get(command.start)
    known = name in FILTERS or (name in PRINTS and _only_shows(command.words))
    known = known or re.fullmatch(WORDS["prints in a substitution"], name) is not None
    return not command.words or known or (launch is not None and launch.trivial)


def _writes_to(port: Port, command: Command) -> str:
    """Return the file that a command writes; empty: it writes none, or a log."""
    outputs = [one for one in command.redirects if ">" in one.operator and one.body is None]
    files = (one.target for one in outputs if one.operator != ">&" and one.fd != "2")
    logs = re.compile(r"/dev/\w+|&?[\d-]+|.*\.(log|out|err)\W?")
    return next((file.raw for file in files if not logs.fullmatch(_path(port, file))), "")


def _fed(port: Port, command: Command) -> Launch | None:
    """Return the launch of ranks that reads what a command prints; None: there is none."""
    behind = (one for one in port.script.commands if one.start > command.start and one.depth == command.depth)
    pipe = {one.start for one in takewhile(lambda one: one.before in ("|", "|&"), behind)}
    return next((one for start, one in port.launches.items() if start in pipe and not only_prints(one)), None)


def only_prints(launch: Launch) -> bool:
    """Tell whether a launch only prints, or starts Ray; a shell's text counts by all that is in it."""
    if inner := [one for one in launch.command.inner if one.words]:
        return all(
            one.name.rpartition("/")[2] in (PRINTS | FILTERS if one.piped_in else PRINTS) for one in inner
        )
    words = [word.visible for word in launch.program]
    words = words[program_at(tuple(words)) :]
    if not words:
        return launch.option("version", "help", "V", "h", "info") is not None
    name = words[0].rpartition("/")[2]
    runtime = RUNTIMES.get(name)
    if runtime and ("ldd" in words[1:] or (runtime.verbs and not {*words[1:]}.intersection(runtime.verbs))):
        return True  # ldd shows the libraries of a program
    installs = words[1:2] == ["-m"] and words[2:3] and words[2] in ("venv", "pip", "ensurepip", "ipykernel")
    prints = launch.trivial or name in PRINTS
    prints = prints and not re.fullmatch(WORDS["prints and starts"], " ".join(words))
    return prints or bool(installs) or name == "cd" or (name, *words[1:2]) == ("ray", "start")


def last_program(port: Port) -> Launch | None:
    """Return the program of a script without a launch: the last with a path or interpreter, else by name."""
    by_launcher = {start for start, launch in port.launches.items() if launch.by_launcher}  # of information
    found = [one for one in reversed(port.script.commands) if _is_program(port, one)] or _by_name(port)
    found = [one for one in sorted(found, key=decided) if one.start not in by_launcher]
    return Launch(found[0], "python", [], found[0].words) if found else None


def _by_name(port: Port) -> list[Command]:
    """Return the one command of a script for one process whose name is that of a program; empty: none is."""
    functions = map(re.escape, re.findall(WORDS["names of functions"], port.script.text))
    tools = "|".join((_NO_START, WORDS["of the shell"], *DECLARING, *WORDS["cases of commands"], *functions))
    bare = re.compile(rf"(?!({tools})$)[A-Za-z][\w.+-]*")
    found = [one for one in port.script.commands if bare.fullmatch(_program_of(one))]
    return found if len(found) == 1 and not starts_several(port, port.requested.node_count or 1) else []


def _program_of(command: Command) -> str:
    """Return the program behind the wrappers of a command; empty: another command or a function decides."""
    words = tuple(word.raw for word in command.words)
    hidden = command.depth or command.condition or command.function
    return "" if hidden else "".join(words[program_at(words) :][:1])


def starts_several(port: Port, nodes: int) -> bool:
    """Tell whether a script without a launch may start several ranks; else its slots are for threads."""
    words = (word.raw for one in port.script.commands for word in one.words[1:])
    named = any(re.match(WORDS["counts of processes"], word) for word in words)
    return nodes > 1 or port.values.own or named


def _is_program(port: Port, command: Command) -> bool:
    if not _program_of(command):
        return False
    raw = [word.raw.strip("\"'") for word in command.words]
    of_variable = re.fullmatch(r"\$(\w+|\{\w+\})", raw[0])  # CMD="torchrun a.py", to which conditions add
    raw = [*texts_of(port.values.words_of(command.words[: bool(of_variable)])), *raw]
    first, *others = raw[program_at(tuple(raw)) :]
    first = re.sub("^(/usr)?/s?bin/", "", first)
    if re.match(r"(\.{1,2}/|/|~/|\$\w+/|\$\{\w+\}/)|(R|Rscript|julia|bash|sh|matlab|perl)$", first):
        return True
    starts = any(re.fullmatch(r"(.*/)?python[\d.]*|[\w./${}-]+\.py", other) for other in others)
    return starts and not re.fullmatch(_NO_START, first.rpartition("/")[2])


def _acts(launch: Launch) -> bool:
    """Tell whether a launch that prints changes something, too: ``python -c`` may do anything."""
    words = [word.visible for word in launch.program]
    name = words[0].rpartition("/")[2] if words else ""
    if words and not _only_shows(launch.program):
        return True
    code = words[words.index("-c") + 1] if "-c" in words[:-1] and name.startswith("python") else ""
    prints = (re.fullmatch(WORDS["Python that prints"], one.strip()) for one in re.split("[;\n]", code))
    return name in CHANGES or not all(prints)


def _other_launch(port: Port, launch: Launch) -> Verdict:
    ray = launch.program[0].visible if launch.program else ""
    if port.starts_ray and re.fullmatch("(.*/)?ray", ray):
        return port.says("ray cluster").setting(set_up=((launch.line, ray),) * ("/" in ray))
    if launch.trivial and not _acts(launch) and not (port.launch and port.launch.trivial):
        return port.says("prints information")
    main = f", here that of line {port.launch_line}" if port.launch else ""
    return port.says("other launch", main=main)


def leaves(port: Port, command: Command) -> bool:
    """Tell whether a command goes to another folder than that where the job is submitted."""
    value = port.values.words_of(command.words[1:2])
    folder = (value[0].shell or value[0].plain or "").rstrip("/") if value else ""
    stays = folder in ("$PWD", "${PWD}", ".")
    return command.name in ("cd", "pushd") and not (command.depth or stays)


def _cd(port: Port, command: Command) -> Verdict:
    if not leaves(port, command):
        return port.says("submit folder")
    if _is_over(port, command):
        return port.says("folder behind", line=port.launch_line)
    shown = command.words[1].raw if len(command.words) > 1 else "home"
    folder = " ".join(one.plain or "" for one in port.values.words_of(command.words[1:2]))
    known = f" ({folder})" if folder not in ("", shown.strip("\"'")) else ""
    return port.says("other folder", shown=shown + known)


def _module(port: Port, command: Command) -> Verdict:
    words = _module_words(command)
    if port.same_machine:
        return _same_modules(port, command)
    if words[:1] in (["list"], ["avail"]):
        return port.says("module list")
    if words[:1] and (case := WORDS["module folders"].get(words[0])):
        said = port.says(case, shown=(shown := " ".join(word.raw for word in command.words)))
        return said.setting(loads=(shown,) * (not said.is_open))
    setup = [step.text for step in port.target.software.setup]
    if not setup and (ready := ready_software(port.target)):
        return port.says("module, offered", ready=ready).setting(loads=tuple(_loaded_by(command)))
    if not setup:
        return port.says("module, unknown")
    said = port.says("module", port.cited(port.target.software.setup[0].source), setup="; ".join(setup))
    return said.setting(loads=tuple(_loaded_by(command)))


def _same_modules(port: Port, command: Command) -> Verdict:
    if fault := port.faults.get(command.line):
        return port.says("fault", fault=fault)
    names = _loaded_by(command)
    setup = " ".join(step.text for step in port.target.software.setup).split()
    if not names:
        return port.says("module, login")
    more = tuple(name for name in names if name not in setup)
    if not more:
        return KEPT
    if not re.fullmatch(r"[\w./+:=@ -]+", " ".join(names)):
        return port.says("module, run time")
    until = [one for one in port.script.commands if one.start <= command.start]
    loads = [name for one in until if one.name in ("module", "ml") for name in _loaded_by(one)]
    wanted = Environment(modules=tuple(dict.fromkeys(name for name in loads if name not in setup)))
    wrong = unusable(wanted) or contradictions(wanted, port.target)
    return port.says("fault", fault="; ".join(wrong)) if wrong else KEPT.setting(module=more)


def replaced_modules(port: Port, found: Mapping[str, Any]) -> list[str]:
    """Return the modules of the site's setup of which the script loads other versions."""
    steps = [step.text for step in port.target.software.setup] if port.same_machine else []
    theirs = [name for step in steps if step.startswith("module load ") for name in step.split()[2:]]
    own = {name.partition("/")[0] for name in found.get("module", ())}
    return [name for name in theirs if name.partition("/")[0] in own]


def modules_behind(port: Port, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield that the site's setup stays, and loads other versions of modules of the script before these."""
    names = replaced_modules(port, found)
    if names and "environment" not in found:
        yield task("own modules behind", names=" ".join(names), here=port.here)


def own_modules(port: Port, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a job whose script loads another version of a module of the site's setup.

    Behind the site's own, the environment that is activated in it and its paths would stay. ``found``: the
    keys that the lines set. Empty: the script loads no such module, or the setup does more than loading some.
    """
    replaced, setup = replaced_modules(port, found), [one.text.split() for one in port.target.software.setup]
    if not replaced or {" ".join(step[:2]) for step in setup}.difference(WORDS["steps of setup"]):
        return {}
    loaded = chain.from_iterable(step[2:] for step in setup if step[1] == "load")
    others = filter(lambda name: name not in replaced, loaded)
    environment = {"site_setup": False, "module_use": [step[2] for step in setup if step[1] == "use"]}
    return {**_base(port), **found, "module": (*others, *found["module"]), "environment": environment}


def _base(port: Port) -> dict[str, str]:
    """Return conda's base as the environment where a line activates it."""
    lines = (" ".join(word.raw for word in one.words) for one in port.script.commands)
    return {"conda": "base"} if {"conda activate", "conda activate base"}.intersection(lines) else {}


def _module_words(command: Command) -> list[str]:
    texts = (word.text or word.raw for word in command.words[1:])
    return [text for text in texts if not text.startswith("-")]


def _loaded_by(command: Command) -> list[str]:
    """Return the modules that a command loads."""
    words = _module_words(command)
    if words[:1] and words[0] in ("load", "add", "try-load"):
        return words[1:]
    if words[:1] and words[0] in ("swap", "switch"):
        return words[-1:]
    return words if command.name == "ml" and not {*words[:1]}.intersection(WORDS["module verbs"]) else []


def _environment(port: Port, command: Command) -> Verdict:
    words = [word.text for word in command.words]
    shown = " ".join(word.raw for word in command.words)
    if port.in_container:
        return port.says("environment in container", line=command.line + port.before, shown=shown)
    if port.same_machine and None not in words:
        return _same_environment(port, list(filter(None, words)))
    lines = "; ".join(step.text for step in port.target.software.setup)
    if re.search(r"(^|; )(conda|source)", lines):
        source = port.cited(port.target.software.setup[-1].source)
        said = port.says("environment", source, setup=lines)
        return said.setting(set_up=((command.line + port.before, shown),))
    return port.says("environment, unknown")


def _same_environment(port: Port, words: list[str]) -> Verdict:
    setup = [step.text for step in port.target.software.setup]
    words = [*words, "base"] if words[1:] == ["activate"] else words  # conda activate
    line = " ".join(words)
    if line in setup:
        return KEPT
    if words[0] in ("conda", "mamba") and words[1:2] == ["activate"] and len(words) == 3:
        return KEPT.setting(conda=words[2])
    if words[0] in ("source", ".") and len(words) == 2 and words[1].endswith("/bin/activate"):
        return KEPT.setting(venv=words[1].removesuffix("/bin/activate"))
    return port.says("environment, same machine")


def _source(port: Port, command: Command) -> Verdict:
    name = command.words[1].visible if len(command.words) > 1 else ""
    if re.fullmatch(WORDS["makes module known"], name):
        return port.says("module, login")
    if re.search(r"activate$|conda\.sh$|setup\.sh$|bashrc$|profile|modules|init/", name):
        return _environment(port, command)
    return port.says("sourced", shown=command.words[1].raw if name else "it")


def _let(port: Port, command: Command) -> Verdict:
    names = {word.raw.strip("\"'").partition("=")[0].rstrip("+-*/ ") for word in command.words[1:]}
    return port.says("run time value" if names & used_names(port) else "unused variable")


def _eval(port: Port, command: Command) -> Verdict:
    texts = (" ".join(word.raw for word in one.words[:2]) for one in port.script.commands)
    hook = re.fullmatch(r"[\"`$(]*\S*conda[\"']? shell\.\w+ hook[^;&|]*", command.words[-1].raw)
    return port.says("conda hook" if hook and "conda activate" in texts else "no place")


def sole_program(port: Port) -> Launch | None:
    """Return the one program of a text for a shell; None: it has none or several, or a condition decides."""
    commands = [one for one in port.script.commands if not one.depth]
    flow = any(decided(one) or one.condition or one.before == "||" for one in commands)
    programs = [one for one in commands if one.words and not _sets_up(port, one)]
    if flow or len(programs) != 1 or programs[0].assignments:
        return None
    (program,) = programs
    if program.piped_in or any(one.operator.startswith("<") for one in program.redirects):
        return None  # the shell gives it its stdin
    return port.launches.get(program.start, Launch(program, "python", [], program.words))


def _sets_up(port: Port, command: Command) -> bool:
    """Tell whether a command only prints, sets variables, or prepares the shell."""
    name = command.name.rpartition("/")[2]
    if len(command.words) == 1 and not name:  # $WITH_CONDA
        return port.values.value(command.words[0]).plain is None
    known = (*DECLARING, *PRINTS, *WORDS["cases of commands"])
    return name in known or any(re.fullmatch(pattern, name) for pattern, _ in _COMMANDS)


def _set(port: Port, command: Command) -> Verdict:
    words = [word.raw for word in command.words[1:] if word.raw not in WORDS["modes"]]
    if any(re.fullmatch(r"--?|-\w*[ak]\w*|allexport|[^+-].*", word) for word in words):
        return port.says("set arguments")
    return port.says("set")


_COMMANDS: tuple[tuple[str, Callable[[Port, Command], Verdict]], ...] = (
    ("cd|pushd", _cd),
    ("set|shopt", _set),
    ("module|ml", _module),
    (WORDS["environments"], _environment),
    (r"source|\.", _source),
    ("eval", _eval),
    ("let", _let),
    ("ray", lambda port, command: port.says("ray cluster" if port.starts_ray else "no place")),
)
