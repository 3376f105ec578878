"""Rules about exit status, pipes, discarded output and shell options."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from itertools import islice, pairwise, takewhile
from math import inf
from typing import Any

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import SHOWS, TABLE
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import Context, Edit, Violation, also_at, rule
from hpclaunch.lint.program_words import runs
from hpclaunch.lint.rules.step_rules import end_of_pipeline
from hpclaunch.scheduler.directive_readers import SUBMIT_COMMANDS
from hpclaunch.shell.shell_syntax import Assignment, Command, Word

_SET_LETTERS: dict[str, str] = TABLE["set_letters"]
_SET_NAMES = [*_SET_LETTERS, *TABLE["set_names"].split()]
_SET_VALID = set("abefhkmnoprtuvxBCEHPT")
_COUNTED, _UNSURE, _GOES_ON = (re.compile(TABLE["counters"][part]) for part in ("forms", "before", "behind"))
_FORMS = {name: re.compile(form) for name, form in TABLE["forms_of_flow"].items()}
_NO = ("False", "false", "0", "no")
_Forms = tuple[list[dict[str, Any]], re.Pattern[str]]


@rule("status-lost-in-pipe")
def status_lost_in_pipe(context: Context) -> Iterator[Violation]:
    script = context.script
    found = _with_lost_status(script)
    for launch, last in found[:1]:
        reads = [r.line for r in script.shell.refs if r.name == "?" and r.offset > launch.command.end]
        read = f", and line {reads[0]} reads it" if reads else ""
        message = f"the exit status of {launch.name} is lost in the pipe: it is {last}'s{read}"
        yield Violation(launch.line, message + also_at([one.line for one, _ in found]))
    yield from _program_before_tee(script)


def _with_lost_status(script: Script) -> list[tuple[Launch, str]]:
    """Return launches and the commands whose status hides theirs; first the one on which most depends."""
    found = []
    for launch in script.steps():
        if (last := _command_with_the_status(script, launch)) is not None:
            found.append((launch, last))
    if found and script.on_from("e", "errexit") > found[-1][0].command.start:
        found.reverse()  # the last one has the status of the script
    return found


def _program_before_tee(script: Script) -> Iterator[Violation]:
    """Report a program other than a launch at whose pipe into tee a batch script ends."""
    ended = [one for one in script.commands if one.words and not one.depth][-2:]
    if [one.name for one in ended[1:]] != ["tee"] or not (script.active_directives and script.is_posix):
        return
    if _is_program(script, ended[0]) and not _pipefail(script, ended[0].start):
        message = f"the exit status of {ended[0].words[0].raw} is lost in the pipe: it is tee's"
        yield Violation(ended[0].line, message)


def _is_program(script: Script, command: Command) -> bool:
    """Tell whether a command begins a pipe, starts no ranks and does more than prepare, inform or report."""
    begins = command.piped_out and not (command.piped_in or command.function or command.inner)
    launched = any(one.command is command for one in script.launches)
    return begins and not launched and command.name not in SHOWS


def _command_with_the_status(script: Script, launch: Launch) -> str | None:
    """Return the last command of a pipeline that hides a launch's exit status; None: nothing hides it."""
    command = launch.command
    if not command.piped_out or command.depth or launch.trivial or script.language == "csh":
        return None
    if _pipefail(script, command.start) or "PIPESTATUS" in script.uses_after(command.end):
        return None
    return _end_of_pipe(script, command)


def _end_of_pipe(script: Script, command: Command) -> str | None:
    """Return the name of the pipeline's last command; None where ``|| true`` ignores its status."""
    last = end_of_pipeline(script, command)
    behind = [one for one in script.commands if one.start > last.start and one.depth == command.depth]
    ignored = last.after == "||" and [one.name for one in behind[:1]] in (["true"], [":"])
    return None if ignored else last.name or "the last command"


def _pipefail(script: Script, before: int) -> bool:
    """Tell whether pipefail is on at an offset."""
    on = re.search(r"\s-\w*o\s+pipefail\b", script.shebang) is not None
    for command in (one for one in script.commands if one.start < before and not one.depth):
        if given := _FORMS["pipefail"].match(" ".join(word.visible for word in command.words)):
            on = given[1] is not None
    return on


@rule("shell-syntax")
def shell_syntax(context: Context) -> Iterator[Violation]:
    script = context.script
    if script.language in ("bash", "sh") and not script.shell.template:
        for line, text in sorted(script.shell.misplaced)[:1]:
            if line not in script.open_words:
                yield _syntax_error(line, text, script.text.split("\n")[line - 1])
        for command in (one for one in script.commands if one.after == "&" and not one.depth):
            if found := _FORMS["behind_ampersand"].match(script.text, command.end):
                message = f"syntax error: {found[1]} behind &, which ends the command itself"
                yield Violation(command.line, message)


def _syntax_error(line: int, text: str, code: str) -> Violation:
    """Report a sign or word out of place, with the remedy that a table has for it."""
    for row in TABLE["syntax_errors"]:
        if found := re.fullmatch(row["form"], f"{text}\n{code}"):
            says = row.get("says", r"syntax error: unexpected \1")
            return Violation(line, found.expand(says), found.expand(row["write"]))
    return Violation(line, f"syntax error: unexpected {text}")


@rule("counter-ends-script")
def counter_ends_script(context: Context) -> Iterator[Violation]:
    script = context.script
    stops = script.on_from("e", "errexit")
    for match in islice(_COUNTED.finditer(script.text if stops < inf else ""), 50):  # each reads the text
        name, before = match[1] or match[2], script.text[: match.start()]
        said = re.findall(rf"(?<![\w$-])(?<!\$\{{){name}\b(=0\b)?", before)
        sure = said == ["=0"] and not _UNSURE.search(before) and not _GOES_ON.search(script.text, match.end())
        line = script.line_at(match.start())
        if match.start() > stops and sure and line not in script.text_lines:
            message = f"{match[0].strip()} is 0 at first, which is a failure, and set -e then ends the job"
            yield Violation(line, message)


@rule("compiled-not-started")
def compiled_not_started(context: Context) -> Iterator[Violation]:
    started = runs(context.script)
    made = {_made(words): one.line for one, words in started}
    named = {word.rpartition("/")[2] for _, words in started if not _made(words) for word in words}
    unused = {_FORMS["digits"].sub("", name): name for name in made.keys() - named}
    for one, words in started if named.isdisjoint({"make", "gmake", "cmake", "ninja"}) else ():
        name = words[0].removeprefix("./")
        other = unused.get(_FORMS["digits"].sub("", name), name)
        if name not in {words[0], other} | made.keys():
            message = f"{name} is started, line {made[other]} compiles {other}"
            yield Violation(one.line, message, f"write ./{other}")


def _made(words: list[str]) -> str:
    """Return the name of the program that a compiler makes; empty where it makes none."""
    compiles = re.fullmatch(TABLE["compiles"], words[0]) and "-o" in words[:-1]
    return words[words.index("-o") + 1].rpartition("/")[2] if compiles else ""


@rule("signal-not-trapped")
def signal_not_trapped(context: Context) -> Iterator[Violation]:
    traps = [one for one in reversed(context.script.commands) if one.name == "trap"]
    lines = {word.visible.removeprefix("SIG"): one.line for one in traps for word in one.words}
    for one in (one for one in context.script.active_directives if one.name == "signal"):
        options, _, text = str(one.value).rpartition(":")
        name = text.partition("@")[0].removeprefix("SIG")
        if "B" not in options and name in lines:
            message = f"{one.text} reaches the steps only, not the trap on line {lines[name]}"
            yield Violation(one.line, message, f"write B:{name}")
        else:
            yield from _held_back(context.script, lines.get(name, inf))


def _held_back(script: Script, line: float) -> Iterator[Violation]:
    """Report the program that holds a trap back: in loops are short ones, between which traps run."""
    later = [one for one in script.commands if one.line > line and not (one.block or one.depth)]
    ran = [one for one in later if one.name not in {*SHOWS, ""}]
    for one in ran[:1] if all(each.after != "&" for each in script.commands) else ():
        message = f"the trap on line {line} runs only when this program has ended"
        yield Violation(one.line, message, "write & behind the program, and then `wait $!`")


def _where(script: Script, command: Command) -> set[str]:
    """Return a command's name, its shell, ``if`` where it is asked whether it succeeds, and its place."""
    fed = command.piped_in or script.has_option("input") or command.has_input
    fed = fed or script.input_from < command.start
    asked = command.condition or command.after == "||"
    places = {"if": asked, "function": command.function, "input": fed}
    places["loaded"] = _may_have_path(script, command)
    places["override"] = script.is_override(command)
    places["indirect"] = _FORMS["indirect"].search(script.text) is not None
    places["tested"] = command.after == "&&" and _FORMS["said"].match(script.text, command.end) is not None
    shells = script.language, *re.findall(r"\b[kz]sh\b", script.text)  # these may read it, too: zsh -c TEXT
    return {command.name, *shells, *(name for name, here in places.items() if here)}


def _may_have_path(script: Script, command: Command) -> bool:
    """Tell whether PATH may have folders of software where a command runs."""
    before = (one.name for one in script.commands if one.start < command.start)
    loads = not {"module", "ml", ".", "source", "eval"}.isdisjoint(before)
    return loads or "PATH" in script.variables.assignments


def _holds(row: dict[str, str], context: Context, command: Command) -> bool:
    """Tell whether a row is about a command at this place."""
    script = context.script
    if "of_jobs" in row and (command.condition or not script.active_directives):
        return False
    if "nodes" in row and (context.requested.node_count or 1) < 2:
        return False
    named = "variable" not in row or _is_variable(script, command.words[-1].raw)
    holds = named and not _mended(row, script, command)
    return holds and _where(script, command).isdisjoint(row.get("not", "").split())


def _is_variable(script: Script, name: str) -> bool:
    """Tell whether a script sets a variable, also by an assignment that blanks break."""
    broken = any([word.raw for word in one.words[:2]] == [name, "="] for one in script.commands)
    return name in script.variables.assignments or broken


def _stands(row: dict[str, str], script: Script, command: Command) -> bool:
    """Tell whether what a row has for the lines before and behind a command stands there."""
    if "before" not in row:
        return True
    code = [each for each in enumerate(script.text.split("\n"), 1) if each[0] not in script.text_lines]
    own = script.text[: max(command.start, 0)].rpartition("\n")[2]
    before = "\n".join([*(text for number, text in code if number < command.line), own])
    later = "\n".join(text for number, text in code if number > command.line)
    stand = re.search(row["before"], before) and re.match(row.get("later", ""), later)
    return stand is not None and not command.path


def _mended(row: dict[str, str], script: Script, command: Command) -> bool:
    """Tell whether the last value of the variable of a row comes later and is none that it reports.

    Of a row with ``once``: whether a shell reads the value again.
    """
    if "once" in row:
        return _read_again(script, command)
    made = script.variables.assignments.get(row.get("until", ""), [])
    value = script.variables.expand(made[-1].value).in_words if made and made[-1].value else ""
    return bool(made) and made[-1].offset > command.start and not re.match(row["form"], f"PATH={value}")


def _read_again(script: Script, command: Command) -> bool:
    """Tell whether a shell reads the variable that a command sets once more, as ``eval "$NAME"`` does."""
    variables = script.variables
    texts = ((one, " ".join(word.visible for word in one.words) + " ") for one in variables.commands)
    words = (word for one, text in texts if _FORMS["reads_again"].match(text) for word in one.words)
    return any(command.start <= made.offset < command.end for word in words for made in _used(script, word))


def _used(script: Script, word: Word) -> Iterator[Assignment]:
    """Yield the assignments of the variables in a word, and of those in their values."""
    for name in (part.text for part in word.parts if part.kind == "variable"):
        yield from script.variables.assignments.get(name, ())
    for value in script.variables.values(word):
        yield from value.via


def _refused(tables: dict[bool, _Forms], context: Context) -> Iterator[Violation]:
    """Report commands that begin as a row says; ``tables``: whether it is csh -> the rows."""
    script = context.script
    rows, forms = tables[script.language == "csh"]
    own = re.findall(r"(?m)^[ \t]*(?:function[ \t]+|(?=[\w-]+[ \t]*\())([\w-]+)", script.text)
    for command in script.variables.commands if rows else ():
        whole = re.sub(r"[ \t]+\\\n[ \t]*|\\\n[ \t]+", " ", script.text[command.start : command.end][:900])
        whole = whole.replace("\\\n", "")
        shown, (whole, line) = whole[:60], _with_answers(script, command, whole)
        text = whole if len(whole) < TABLE["most_read"] else f"{whole[: TABLE['most_read']]}\0"
        if command.name not in own and (found := forms.match(_FORMS["descriptor"].sub("", text))):
            row = rows[int(str(found.lastgroup)[1:])]
            if _holds(row, context, command) and _stands(row, script, command):
                if line == command.line and found.end() > len(shown):
                    last = found[0].split()[-1]
                    at = script.text.find(last, command.start, command.end)
                    line, shown = script.line_at(max(at, command.start)), f"{command.name} ... {last}"
                yield Violation(line, f"{shown}: {row['says']}", row.get("write"), row.get("severity"))


def _with_answers(script: Script, command: Command, text: str) -> tuple[str, int]:
    """Return the text of a submission with that of another one in place of its output, and the line of it."""
    for found in re.finditer(r"\$(?:(\w+)|\{(\w+)\})", text) if command.name in SUBMIT_COMMANDS else ():
        made = script.variables.reaching_at(found[1] or found[2], command.start)[-1:]
        for one in filter(None, made):
            if one.value and one.value.raw.strip('"').startswith(("$(", "`")):
                return text.replace(found[0], one.value.raw), one.line
    return text, command.line


def _slips(names: str) -> str:
    """Return the slips in names of programs as a pattern: letters the other way round, or one left out."""
    known = names.split()
    cuts = [(name[:at], name[at:]) for name in known for at in range(len(name))]
    turned = {head + tail[1::-1] + tail[2:] for head, tail in cuts}
    shorter = {head + tail[1:] for head, tail in cuts if head and len(head + tail) > 5}
    return "|".join(sorted((turned | shorter) - {*known}))


def _compiled(rows: list[dict[str, Any]]) -> _Forms:
    """Return rows, and their forms as one pattern, each a group with the number of its row."""
    forms = "|".join(f"(?P<r{number}>{row['form']})" for number, row in enumerate(rows))
    return rows, re.compile(forms.replace("SLIPS", _slips(TABLE["programs"])))


for _rule_id, _rows in TABLE["refused_commands"].items():
    _tables = {csh: _compiled([row for row in _rows if ("csh" in row) is csh]) for csh in (False, True)}
    rule(_rule_id)(partial(_refused, _tables))


@rule("script-path-copied")
def script_path_copied(context: Context) -> Iterator[Violation]:
    script = context.script
    if not script.active_directives or any(one.name == "sbatch" for one in script.commands):
        return
    if re.search(r"SUBMIT_DIR|O_WORKDIR|LS_SUBCWD|scontrol show job", script.text):
        return  # the script handles both cases
    for command in script.variables.commands:
        words = " ".join(word.raw for word in command.words[1:])
        own = re.search(r"\$(0|\{0\}|BASH_SOURCE|\{BASH_SOURCE[^}]*\})", words)
        if own and command.name in ("dirname", "readlink", "realpath") and not command.function:
            message = f"{command.name} {own[0]}: the scheduler runs a copy of the script in another folder"
            yield Violation(command.line, message)
            return


@rule("dry-run")
def dry_run(context: Context) -> Iterator[Violation]:
    found: dict[str, list[tuple[Command, str]]] = {}
    meant = re.search(r"(?i)\bdry", "\n".join(one.text for one in context.script.active_directives) or "dry")
    for command, words in () if meant else runs(context.script):
        program, option = _with_dry_option(words)
        found.setdefault(program, []).append((command, option))
    for program, rows in found.items():
        command, option = rows[-1]
        if all(each for _, each in rows) and not _is_looked_at(context.script, command):
            yield Violation(command.line, f"{program} {option} only shows what it would do")


def _with_dry_option(words: list[str]) -> tuple[str, str]:
    """Return the name of a program, and the option with which it does nothing; empty where there is none."""
    name, shown = words[0].rpartition("/")[2], " ".join(one for one in words[:2] if one[:1] != "-")
    form = re.compile(TABLE["dry_runs"].get(name, TABLE["dry_runs"]["others"]))
    later = pairwise([] if re.search(TABLE["no_dry_runs"], " ".join(words)) else [*words[1:], ""])
    option = next((one for one, value in later if form.fullmatch(one) and value not in _NO), "")
    return name if name in TABLE["dry_runs"] else shown, option


def _is_looked_at(script: Script, command: Command) -> bool:
    """Tell whether the script reads the output or the status of a command, or runs it only after a test."""
    before = [one.name for one in script.commands if one.start < command.start][-1:]
    tested = command.before in ("&&", "||") and before[0] in ("[", "[[", "test", "((")
    looked = command.condition or command.depth or command.piped_out or command.after in ("&&", "||")
    return bool(tested or looked)


@rule("stderr-discarded")
def stderr_discarded(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.steps():
        if not (launch.trivial or launch.command.depth) and _loses_stderr(script, launch):
            yield Violation(launch.line, f"stderr of {launch.name} is discarded (/dev/null)")
    moved = [one for one in script.commands if (one.name, len(one.words)) == ("exec", 1) and one.redirects]
    for one in filter(_discards, moved):
        yield Violation(one.line, "stderr of all commands after this line is discarded (/dev/null)")
    yield from () if moved else _discarded_by_directive(script)


def _discarded_by_directive(script: Script) -> Iterator[Violation]:
    error = script.directive("error")
    if error is not None and error.value == "/dev/null":
        yield Violation(error.line, "stderr of the job is discarded (/dev/null)")


def _loses_stderr(script: Script, launch: Launch) -> bool:
    """Tell whether a launch discards its stderr; a script may do so with Python that it only tries."""
    command = launch.command
    if launch.launcher == "python" and (command.condition or command.after == "||"):
        return False
    by_option = script.value(launch.srun_option("error")).text in ("/dev/null", "none")
    return by_option or _discards(command)


def _discards(command: Command) -> bool:
    """Follow stdout and stderr through the redirections, in their order."""
    targets = {"1": "", "2": ""}
    for redirect in command.redirects:
        target = redirect.target.text or ""
        if redirect.operator == ">&" and (redirect.fd or target.isdigit()):
            targets[redirect.fd or "1"] = targets.get(target, "")
        elif redirect.operator in ("&>", "&>>", ">&"):  # of both
            targets["1"] = targets["2"] = target
        elif redirect.operator in (">", ">>", ">|"):
            targets[redirect.fd or "1"] = target
    return targets["2"] == "/dev/null"


@rule("tee-without-pipe")
def tee_without_pipe(context: Context) -> Iterator[Violation]:
    for command in context.script.commands:
        if command.name != "tee" or "input" in _where(context.script, command):
            continue
        chained = command.before in ("&&", "||")
        if not command.function and (chained or not command.block):
            behind = f" after {command.before}" if chained else ""
            yield Violation(command.line, f"tee{behind} gets nothing: no pipe leads into it")


@rule("pattern-not-replaced")
def pattern_not_replaced(context: Context) -> Iterator[Violation]:
    for command in context.script.commands if context.script.active_directives else ():
        words = [one.target for one in command.redirects if one.body is None]
        for word in [*words, *(command.words[1:] if command.name == "tee" else ())]:
            if re.search(r"(?<![%\w])%[jAJ]\b", word.visible):
                yield Violation(word.line, f"{word.raw}: the shell leaves the sign as it is, in each job")


@rule("folder-entered-twice")
def folder_entered_twice(context: Context) -> Iterator[Violation]:
    commands = context.script.commands
    for at, command in enumerate(commands):
        text = context.script.text[command.start : command.end]
        if (entered := re.fullmatch(r"cd (\w[\w-]*)/?", text)) and not (command.path or command.depth):
            seen = {
                word for one in commands[:at] for word in _paths(one) if word.startswith(f"{entered[1]}/")
            }
            for one in takewhile(_stays, commands[at + 1 :]):
                for word in seen.intersection(_paths(one)):
                    yield Violation(one.line, f"{word}: line {command.line} has entered {entered[1]}")


def _paths(command: Command) -> list[str]:
    """Return the words of a command that may be files, and the files of its redirections."""
    words = [] if command.name in ("echo", "printf") else command.words[1:]
    return [word.raw for word in [*words, *(one.target for one in command.redirects)]]


def _stays(command: Command) -> bool:
    """Tell whether a command, which runs in any case, is none that changes folders or makes one."""
    return command.name not in ("mkdir", "cd", "pushd", "popd") and not (command.path or command.depth)


@rule("set-option-misspelt")
def set_option_misspelt(context: Context) -> Iterator[Violation]:
    if context.script.language not in ("bash", "sh"):
        return
    for command in context.script.commands:
        if command.name == "set":
            yield from _set_words(command.words[1:])
    if context.script.shebang.split("/")[-1].startswith(("bash -", "sh -")):
        for text in context.script.shebang.split()[1:]:
            if right := _right_option(text):  # bash knows letters that set does not, such as -l
                message = f"#! line: {text} is misspelt, bash reads it letter by letter"
                yield Violation(1, message, f"write {right}")


def _set_words(words: list[Word]) -> Iterator[Violation]:
    named = False  # the word before ended in o: a name follows
    for word in words:
        text = word.text
        if text is None or text == "--":
            return
        if named:
            named = False
            yield from _unknown_name(word, text)
        elif text[:1] not in "-+" or len(text) < 2:
            if text in _SET_NAMES and word is not words[0]:
                yield _without_its_o(words[words.index(word) - 1], word)
            return
        elif (right := _right_option(text)) is None:
            named = "o" in text[1:]
        else:
            yield _misspelt(word, f"set {text}: misspelt, bash reads it letter by letter", right)


def _without_its_o(before: Word, word: Word) -> Violation:
    """Report ``set -eu pipefail``: the name is an argument of the script, no option."""
    message = f"set {before.visible} {word.visible}: {word.visible} is not set, it becomes the argument $1"
    letters = re.fullmatch(r"-[a-zA-Z]+", before.raw)
    edits = (Edit(before.end, before.end, "o"),) if letters else (Edit(word.start, word.start, "-o "),)
    right = f"{before.visible}o" if letters else f"-o {before.visible} -o"
    return Violation(word.line, message, f"write set {right} {word.visible}", edits=edits)


def _unknown_name(word: Word, name: str) -> Iterator[Violation]:
    if name not in _SET_NAMES:
        near = get_close_matches(name, _SET_NAMES, n=1)
        right = near[0] if near else ""
        yield _misspelt(word, f"set -o {name}: there is no such option", right, "-o ")


def _misspelt(word: Word, message: str, right: str, option: str = "") -> Violation:
    """Report a word of ``set``; ``right``: what it was meant to be, empty where unknown."""
    if not right:
        return Violation(word.line, message)
    return Violation(word.line, message, f"write {option}{right}", edits=(Edit(word.start, word.end, right),))


def _right_option(text: str) -> str | None:
    """Return what a misspelt option was meant to be, empty where unknown; None where it is right."""
    sign, name = text[:1], text[1:].lstrip("-")
    letters = set(text[1:])
    near = get_close_matches(name.lower(), _SET_NAMES, n=1, cutoff=0.75) if len(name) >= 4 else []
    if near:
        letter = _SET_LETTERS.get(near[0])
        return f"{sign}{letter[1:]}" if letter else f"{sign}o {near[0]}"
    return None if text.startswith(("-", "+")) and letters <= _SET_VALID else ""
