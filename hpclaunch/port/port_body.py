"""The other lines of a foreign script: variables, modules, folders, and commands around the launch."""

import re
from collections.abc import Callable, Iterator

from hpclaunch.lint.bind_lists import is_list
from hpclaunch.lint.known_variables import INFORMATION_COMMANDS
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import Value
from hpclaunch.port.line_report import KEPT, Judged, Verdict, left_out
from hpclaunch.port.own_script import bind_line, is_bind, request_lines
from hpclaunch.port.port_directives import binding_verdict
from hpclaunch.port.port_state import JOB_FILE, SCRIPT_OF_HPCLAUNCH, Port
from hpclaunch.port.port_variables import fill_in, group_of, port_variable
from hpclaunch.port.ported_command import inner_launcher
from hpclaunch.port.written_script import judge_written
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.scheduler.directive_readers import is_directive_like
from hpclaunch.shell.shell_syntax import Assignment, Command, assignment_in, is_assignment
from hpclaunch.site.schema import Environment
from hpclaunch.software.contradictions import contradictions, unusable

CHANGES = name_set("cp mkdir rm test")
"""Commands that lint counts as information, and that change or decide something."""
PRINTS = (INFORMATION_COMMANDS - CHANGES) | name_set(
    "sleep wait sync clear tput ldd lstopo nvcc gcc sinfo squeue qstat sacct sstat seff jobinfo id whoami"
    " uname free top ps : let shift return break continue"
)
_FILTERS = name_set("awk cat cut egrep grep head sed sort tail tr uniq wc")
_CONDITION = "undecided: a condition: a job file has no place for it, so what depends on it is judged alone"
_DECLARING = ("export", "declare", "typeset", "local", "readonly")
_ENVIRONMENTS = "conda|mamba|micromamba|pyenv|uv|poetry|spack|eb|pip|pip3|uenv"
_ENVIRONMENT = "environments are installed per machine"


def port_body(port: Port) -> Iterator[Judged]:
    """Judge every command that is not the launch."""
    main = port.launch.command if port.launch else last_program(port)
    own = request_lines(port) if port.own else {}
    for command in port.script.commands:
        lines = port.lines_of(command)
        if port.written is not None and command is port.written_at.command:
            yield from judge_written(port.written_at)
            yield from (one.behind(port.written.before) for one in port_body(port.written))
            continue
        if command is main and port.launch is None:
            why = "the script has no launch line: its last program is taken"
            yield Judged(lines, Verdict("changed", "command", why, JOB_FILE))
        if command is main or command.depth:
            continue
        if is_bind(own.get(command.line)):
            yield Judged(lines, bind_line(port, command))
        elif port.own and command.line not in own:
            yield Judged(lines, _own_line(port))
        else:
            yield from _judge(port, command)


def port_rest(port: Port, known: set[int]) -> Iterator[Judged]:
    """Judge the lines that nothing is known of: the shebang, and words such as ``fi`` and ``done``."""
    for number, line in content_lines(port).items():
        if number in known:
            continue
        if number == 1 and line.startswith("#!"):
            why = "hpclaunch writes scripts for bash"
            bash = Verdict("changed", "#!/bin/bash", why, SCRIPT_OF_HPCLAUNCH)
            yield Judged([1], KEPT if re.fullmatch(r"#!/bin/bash( -l)?", line.strip()) else bash)
        elif port.own:
            yield Judged([number], _own_line(port))
        elif line.strip().startswith("#"):
            yield Judged([number], left_out("a comment in the file that is written"))
        elif _BLOCK_WORDS.fullmatch(line.strip()):
            yield Judged(
                [number], left_out("part of a block of the shell, whose commands are judged one by one")
            )
        else:
            yield Judged([number], left_out("undecided: hpclaunch does not know what it is for"))


_BLOCK_WORDS = re.compile(
    r"([\w-]+ *\(\)|function +[\w-]+( *\(\))?|if|then|else|fi|do|done|case .*|esac|for .*|select .*|while"
    r"|until|[^()]*\)|[({]|[)}]|;;|;)*([ \t;{&|]|\d?>&?\s*\S+|#.*)*"
)
"""A line of nothing but words by which bash groups commands."""


def _own_line(port: Port) -> Verdict:
    to = f"hpclaunch's own line for {port.here}"
    return Verdict("changed", to, f"hpclaunch wrote it for {port.there}", SCRIPT_OF_HPCLAUNCH)


def content_lines(port: Port) -> dict[int, str]:
    """Return the lines that are not only a comment: number -> text."""
    script = port.script
    inside: set[int] = set()
    for command in script.commands:
        for redirect in command.redirects:
            if redirect.body is not None:
                first = redirect.line + 1
                inside |= set(range(first, first + redirect.body.count("\n")))
    found = {}
    unread = {number for number, _ in script.unread}
    for number, line in enumerate(script.text.split("\n"), 1):
        bare = line.strip()
        comment = bare.startswith("#") and not is_directive_like(line) and number not in inside
        comment = comment and number not in unread and not (number == 1 and bare.startswith("#!"))
        if bare and not comment:
            found[number] = line.rstrip("\r")
    return found


def _judge(port: Port, command: Command) -> Iterator[Judged]:
    lines = port.lines_of(command)
    name = command.name.rpartition("/")[2]
    if not command.words:
        yield from _judge_assignments(port, command, command.assignments)
        return
    if name not in _DECLARING:
        yield Judged(lines, _command(port, command, name))
        return
    words = command.words[1:]
    for word in words:
        if not is_assignment(word):
            yield Judged([word.line], _exported_name(port, word.raw, word.start))
    if not words:
        yield Judged(lines, left_out("it only prints"))
    made = [assignment_in(word, exported=True) for word in words if is_assignment(word)]
    yield from _judge_assignments(port, command, made)


def _judge_assignments(port: Port, command: Command, made: list[Assignment]) -> Iterator[Judged]:
    lines = port.lines_of(command)
    for one in made:
        about = range(one.line, lines.stop) if one.line in lines else lines
        yield Judged(about, _assignment(port, one, command, exported=command.name == "export"))


def _exported_name(port: Port, name: str, offset: int) -> Verdict:
    """Return the verdict on ``export NAME``, whose value was set before."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return left_out(f"an option of the shell: {name}")
    return _program_variable(port, name, port.values.named(name, offset))


def _program_variable(port: Port, name: str, value: Value) -> Verdict:
    """Return the verdict on an exported variable; one that holds a launch is not the program's."""
    inner = inner_launcher(tuple((value.plain or value.seen).split()))[0] if group_of(name) is None else None
    if inner is None or not (inner.options or inner.program):  # the path of a folder named deepspeed
        return port_variable(port, name, value)
    why = f"it holds the words of {inner.launcher.name}, and hpclaunch itself starts a rank for each worker"
    text = port.script.text[port.launch.command.start : port.launch.command.end] if port.launch else ""
    if name in used_names(port) or re.search(rf"\$\{{?{name}\b", text):
        return Verdict("changed", "its program stands in the command", why, JOB_FILE)
    return left_out(why)


def _assignment(port: Port, one: Assignment, command: Command, *, exported: bool) -> Verdict:
    if is_list(one) or _in_bind_list(port, one.name):
        return binding_verdict(port, f"{one.name}, a list of cores,")
    in_block = command.function or command.block > 0
    exported = exported or one.name in port.script.variables.exported
    needed = one.name in port.command.missing
    if exported and one.line in port.faults and group_of(one.name) is None:
        return left_out(f"undecided: {port.faults[one.line]}")
    if exported or group_of(one.name) is not None:
        value = port.values.named(one.name, one.offset + 1)
        if in_block:
            value = Value(None, None)
        if needed and group_of(one.name) is None and value.plain is None and value.shell is None:
            return fill_in(port, one.name, [one.line])
        return _program_variable(port, one.name, value)
    if needed:
        return fill_in(port, one.name, [one.line])
    if one.name in used_names(port):
        value = port.values.named(one.name, one.offset + 1)
        if value.plain is None and value.shell is None:
            why = "undecided: its value is known at run time only, so what uses it is to be filled in"
            return left_out(why)
        to = "its value stands in the command, the sizes or the variables that use it"
        return Verdict("changed", to, "a variable of the script only, no program sees it", JOB_FILE)
    return left_out("only lines that are left out use it, or none")


def _in_bind_list(port: Port, name: str) -> bool:
    """Tell whether the launch's list of cores uses a variable."""
    launch = port.launch
    option = launch.option("cpu-bind", "cpu_bind") if launch else None
    return bool(
        option and option.value and any(p.kind == "variable" and p.text == name for p in option.value.parts)
    )


def used_names(port: Port) -> set[str]:
    """Return the variables that the launch and exported variables use, and those that their values use."""
    launch, variables = port.launch, port.script.variables
    if launch is None:
        return set()
    exported = {name for name in variables.exported if group_of(name) is None}
    made = (one for name in exported for one in variables.assignments.get(name, []))
    offsets = [(one.value.start, one.value.end) for one in made if one.value]
    offsets.append((launch.command.start, max(launch.command.end, launch.command.start)))
    if port.written is not None:
        body = port.written_at.text
        start = port.script.text.find(body, port.written_at.command.start)
        offsets.append((start, start + len(body)))
    names: set[str] = set()
    while offsets:
        start, end = offsets.pop()
        for ref in port.script.shell.refs:
            if start <= ref.offset < end and ref.name not in names:
                names.add(ref.name)
                for each in variables.assignments.get(ref.name, []):
                    offsets.append((each.offset, each.value.end if each.value else each.offset))
    return names


def _command(port: Port, command: Command, name: str) -> Verdict:
    for pattern, handler in _COMMANDS:
        if re.fullmatch(pattern, name):
            return handler(port, command)
    launch = next((one for one in port.script.launches if one.command is command), None)
    if launch is not None:
        return _other_launch(port, launch)
    if any(redirect.body is not None for redirect in command.redirects):
        why = f"undecided: it writes a file when the job starts: write that file once on {port.here}"
        return left_out(why)
    if command.condition or name in ("[", "[[", "test"):
        return left_out(_CONDITION)
    if (name in PRINTS or name in _FILTERS) and (file := _writes_to(command)):
        return left_out(
            f"undecided: it writes {file} when the job starts: write that file once on {port.here}"
        )
    if name in PRINTS or (command.piped_in and name in _FILTERS):
        return left_out("it prints or waits only; hpclaunch status and logs show the job")
    if port.launch is None and _is_program(command) and (taken := last_program(port)):
        return left_out(
            f"undecided: a job of hpclaunch has one launch, here the program of line {taken.line}, the last"
            " one: port this one as a job that follows (--after)"
        )
    return left_out(
        f"undecided: a job file has no place for it: run it on {port.here} before, or in the program"
    )


def _writes_to(command: Command) -> str:
    """Return the file that a command writes; empty: it writes none, or a log."""
    outputs = [one for one in command.redirects if ">" in one.operator and one.body is None]
    names = [one.target.raw for one in outputs if one.operator != ">&" and one.fd != "2"]
    return next(
        (name for name in names if not re.fullmatch(r"/dev/\w+|&?[\d-]+|.*\.(log|out|err)\W?", name)), ""
    )


def last_program(port: Port) -> Command | None:
    """Return the program of a script without a launch: the last command with a path, or an interpreter."""
    return next((one for one in reversed(port.script.commands) if _is_program(one)), None)


def _is_program(command: Command) -> bool:
    hidden = command.depth or command.block or command.function or command.condition
    path = r"(\./|/|\$\w+/)|(R|Rscript|julia|bash|sh|matlab|perl)$"
    return bool(command.words and not hidden and re.match(path, command.words[0].raw))


def _other_launch(port: Port, launch: Launch) -> Verdict:
    name = launch.program[0].visible.rpartition("/")[2] if launch.program else ""
    if launch.trivial and name not in CHANGES and not (port.launch and port.launch.trivial):
        return left_out("it prints information only; hpclaunch submit --preflight checks the nodes")
    main = f", and line {port.launch.line} starts the most ranks" if port.launch else ""
    why = f"undecided: a job of hpclaunch has one launch{main}: port this one as a job that follows (--after)"
    return left_out(why)


def _cd(port: Port, command: Command) -> Verdict:
    value = port.values.value(command.words[1]) if len(command.words) > 1 else Value(None, None)
    if value.shell in ("$PWD", "${PWD}") or value.plain == ".":
        return Verdict(
            "changed",
            "the folder where the job is submitted",
            "hpclaunch's script begins there on every scheduler",
            SCRIPT_OF_HPCLAUNCH,
        )
    shown = command.words[1].raw if len(command.words) > 1 else "home"
    why = f"undecided: submit the job in the folder on {port.here} that takes the place of {shown}"
    return left_out(why)


def _module(port: Port, command: Command) -> Verdict:
    words = [word.text or word.raw for word in command.words[1:]]
    words = [word for word in words if not word.startswith("-")]
    loads = [] if words[:1] and words[0] in ("list", "avail", "purge", "unload", "use", "reset") else words
    if port.same_machine:
        return _same_modules(port, command)
    if words[:1] in (["list"], ["avail"]):
        return left_out("it prints only")
    setup = [step.text for step in port.target.software.setup]
    if not setup:
        return left_out(f"undecided: a module of {port.there}; name those of {port.here}: module")
    why = f"modules are those of one machine; these are {port.here}'s"
    said = Verdict("changed", "; ".join(setup), why, port.cited(port.target.software.setup[0].source))
    shown = " ".join(loads).removeprefix("load ")
    plan = f"hpclaunch software plan --site {port.here} --for NAME"
    return said.doing(f"software: {port.here} must have what {shown} gave: {plan}") if loads else said


def _same_modules(port: Port, command: Command) -> Verdict:
    fault = port.faults.get(command.line)
    if fault:
        return left_out(f"undecided: {fault}")
    names = _loaded_by(command)
    setup = " ".join(step.text for step in port.target.software.setup).split()
    if not names:
        return left_out("hpclaunch's script loads modules on top of the login shell's")
    more = tuple(name for name in names if name not in setup)
    if not more:
        return KEPT
    if not re.fullmatch(r"[\w./+:=@ -]+", " ".join(names)):
        return left_out("undecided: a name that is known at run time only")
    loaded = dict.fromkeys(name for name in _loaded_until(port, command) if name not in setup)
    wanted = Environment(modules=tuple(loaded))
    wrong = unusable(wanted) or contradictions(wanted, port.target)
    return left_out(f"undecided: {'; '.join(wrong)}") if wrong else KEPT.setting(module=more)


def _loaded_until(port: Port, command: Command) -> Iterator[str]:
    """Yield the modules that the script loads up to a command."""
    for one in port.script.commands:
        if one.name in ("module", "ml") and one.start <= command.start:
            yield from _loaded_by(one)


def _loaded_by(command: Command) -> list[str]:
    """Return the modules that a command loads."""
    words = [word.text or word.raw for word in command.words[1:]]
    words = [word for word in words if not word.startswith("-")]
    if words[:1] and words[0] in ("load", "add"):
        return words[1:]
    return words if command.name == "ml" and words[:1] != ["purge"] else []


def _environment(port: Port, command: Command) -> Verdict:
    words = [word.text for word in command.words]
    shown = " ".join(word.raw for word in command.words)
    if port.in_container:
        said = left_out(f"undecided: {shown} sets up the shell inside the container")
        return said.doing(
            f"environment in the container: {shown}: environment.container.venv of the job file names a venv"
        )
    if port.same_machine and None not in words:
        return _same_environment(port, list(filter(None, words)))
    lines = "; ".join(step.text for step in port.target.software.setup)
    if re.search(r"(^|; )(conda|source)", lines):
        source = port.cited(port.target.software.setup[-1].source)
        return Verdict("changed", lines, f"{_ENVIRONMENT}; this is {port.here}'s", source).doing(
            f"environment: {port.here} must have what line {command.line + port.before} sets up, {shown}"
            " (hpclaunch software plan)"
        )
    return left_out(
        f"undecided: {_ENVIRONMENT}: install it on {port.here} and name it with conda or venv in the job file"
    )


def _same_environment(port: Port, words: list[str]) -> Verdict:
    setup = [step.text for step in port.target.software.setup]
    line = " ".join(words)
    if line in setup:
        return KEPT
    if words[0] in ("conda", "mamba") and words[1:2] == ["activate"] and len(words) == 3:
        return KEPT.setting(conda=words[2])
    if words[0] in ("source", ".") and len(words) == 2 and words[1].endswith("/bin/activate"):
        return KEPT.setting(venv=words[1].removesuffix("/bin/activate"))
    return left_out("undecided: a script that sets up the shell; the job file names conda or venv")


def _source(port: Port, command: Command) -> Verdict:
    name = command.words[1].visible if len(command.words) > 1 else ""
    if re.search(r"activate$|conda\.sh$|setup\.sh$|bashrc$|profile|modules|init/", name):
        return _environment(port, command)
    why = (
        f"undecided: {command.words[1].raw if name else 'it'} may set anything: what the program needs of it"
    )
    return left_out(f"{why} belongs into env, module or venv of the job file")


def sole_program(port: Port) -> Launch | None:
    """Return the one program of a text for a shell; None: it has none or several, or a condition decides."""
    commands = [one for one in port.script.commands if not one.depth]
    decided = any(one.block or one.function or one.condition or one.before == "||" for one in commands)
    programs = [one for one in commands if one.words and not _sets_up(port, one)]
    if decided or len(programs) != 1 or programs[0].assignments:
        return None
    (program,) = programs
    known = (one for one in port.script.launches if one.command is program)
    return next(known, Launch(program, "python", [], program.words))


def _sets_up(port: Port, command: Command) -> bool:
    """Tell whether a command only prints, sets variables, or prepares the shell."""
    name = command.name.rpartition("/")[2]
    if len(command.words) == 1 and not name:  # $WITH_CONDA
        value = port.values.value(command.words[0])
        return value.plain is None
    patterns = (pattern for pattern, _ in _COMMANDS)
    return name in _DECLARING or name in PRINTS or any(re.fullmatch(each, name) for each in patterns)


def _set(port: Port, command: Command) -> Verdict:
    words = [word.raw for word in command.words[1:]]
    if any(re.fullmatch(r"--?|-\w*[ak]\w*|allexport|[^+-].*", word) and word not in _MODES for word in words):
        return left_out("undecided: it changes the arguments or exports every variable: name those in env")
    return Verdict("changed", "set -eo pipefail", _FAILS, SCRIPT_OF_HPCLAUNCH)


_MODES = name_set("errexit nounset pipefail xtrace verbose extglob globstar nullglob expand_aliases")


def _fixed(verdict: Verdict) -> Callable[[Port, Command], Verdict]:
    return lambda port, command: verdict


_LOOP = "undecided: a loop: a job file has none, so what it repeats is judged once: submit a job each time"
_FAILS = "the script ends at the first command that fails, also inside a pipe"
_STATUS = "the script ends with the status of the launch"
_UNSET = "undecided: the script that was written sets what the new machine needs"
_TEE = "hpclaunch keeps stdout and stderr in the job's log: hpclaunch logs"
_COMMANDS: tuple[tuple[str, Callable[[Port, Command], Verdict]], ...] = (
    ("cd|pushd", _cd),
    ("set|shopt", _set),
    ("module|ml", _module),
    (_ENVIRONMENTS, _environment),
    (r"source|\.", _source),
    ("exit", _fixed(Verdict("changed", "the job's exit status", _STATUS, SCRIPT_OF_HPCLAUNCH))),
    ("unset", _fixed(left_out(_UNSET))),
    ("tee", _fixed(left_out(_TEE))),
    ("for|select", _fixed(left_out(f"{_LOOP} (--array), or repeat it in the program"))),
)
