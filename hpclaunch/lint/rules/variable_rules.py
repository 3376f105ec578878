"""Rules about variables: those that nothing sets, misspelt names and values, secrets, quoting."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain, pairwise

from hpclaunch.lint import known_variables
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.bind_lists import mismatches, unset_in_lists
from hpclaunch.lint.known_variables import (
    FILE_SYSTEMS,
    NAMES,
    PREFIXES,
    SET_BY_SCHEDULERS,
    SYSTEM,
    TABLE,
    VALUES,
)
from hpclaunch.lint.lint_rule import Context, Edit, Severity, Violation, also_at, rule
from hpclaunch.plan.request_texts import looks_secret
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.scheduler.directive_readers import READERS, reader_by_variables
from hpclaunch.shell.shell_reader import DECLARING
from hpclaunch.shell.shell_syntax import Assignment, Command, Path, Ref, Word

_FORMS = {name: re.compile(form) for name, form in TABLE["forms_of_variables"].items()}
_SPLITS_NOTHING = {*DECLARING, "echo", "printf", "[[", "case"}
_READS_TEXTS = name_set(TABLE["reads_texts"])


@rule("variable-undefined")
def variable_undefined(context: Context) -> Iterator[Violation]:
    script = context.script
    others = set(unset_in_lists(script)) | set(mismatches(script)) | _tested(script)
    found = [
        ref
        for ref in script.unset_uses(longer_than=1)
        if not (ref.name in others or _by_module(script, ref.name) or _of_this_site(context, ref.name))
    ]
    found = [*dict.fromkeys([*found, *_other_sites_uses(context)])]
    if _any_may_be_set(script):  # but for the name of ``$A_``
        found = [ref for ref in found if ref.name.endswith("_") and _without_braces(script, ref)]
    for ref in found[: TABLE["most_named"]]:
        remedy = _without_braces(script, ref)
        yield Violation(ref.line, _unset_message(context, ref.name), remedy, _if_sure(script, ref))


def _any_may_be_set(script: Script) -> bool:
    """Tell whether other files, or the environment that is passed on purpose, may set any variable."""
    given = "\n".join(one.text for one in script.active_directives)
    passed = re.search(TABLE["passes_all"], given) is not None
    unsure = script.language == "csh" or script.shell.misplaced  # behind an error of syntax all is doubtful
    return passed or script.variables.sources_unknown or bool(unsure)


def _if_sure(script: Script, ref: Ref) -> Severity | None:
    """Return a warning where braces are missing, and for small letters where set -u ends the job."""
    ends = script.on_from("u", "nounset") < ref.offset and re.search("[a-z]", ref.name)
    return "warning" if ends or _without_braces(script, ref) else None


def _without_braces(script: Script, ref: Ref) -> str | None:
    """Return how a variable is to be written whose name goes on, as in ``$USER_data``; None: it does not."""
    for found in reversed([*re.finditer("(?<=.)_", ref.name)]):
        name, rest = ref.name[: found.start()], ref.name[found.start() :]
        differ = rest == "_" or name.isupper() is rest[1].islower()  # of $A_B both may be one name
        plain = script.text.startswith(f"${ref.name}", ref.offset)
        if differ and plain and script.variables.is_set(name):
            return f"write ${{{name}}}{rest}"
    return None


def _unset_message(context: Context, name: str) -> str:
    message = f"${name} is set neither by the script nor by the scheduler"
    if context.profile is None or not _of_another_site(context, name):
        return message
    paths = " ".join(sorted(each.path for each in context.profile.storage.values()))
    return f"{message}; the file systems of {context.profile.name} are {paths}"


def _other_sites_uses(context: Context) -> list[Ref]:
    """Return the first use of each variable that other sites set, where the script does not."""
    variables = context.script.variables
    made = variables.assignments.keys() | variables.provided
    uses = context.script.unguarded_uses.items()
    return [ref for name, ref in uses if name not in made and _of_another_site(context, name)]


def _of_another_site(context: Context, name: str) -> bool:
    """Tell whether a variable names a file system of other sites, and the profile lists this one's."""
    if context.profile is None or name not in FILE_SYSTEMS:
        return False
    return bool(context.profile.storage) and not _of_this_site(context, name)


def _of_this_site(context: Context, name: str) -> bool:
    """Tell whether the site names one of its file systems by a variable."""
    storage = context.profile.storage.values() if context.profile else ()
    return any(re.search(rf"\$\{{?{name}\b", each.path) for each in storage)


def _by_module(script: Script, name: str) -> bool:
    """Tell whether a module or the system may set a variable: its name says so, or the script tests it."""
    usual = re.fullmatch("|".join(TABLE["by_modules"]), name)
    modules = any(command.name in ("module", "ml") for command in script.commands)
    return bool(usual) and (modules or not name.islower())


@rule("variable-not-exported")
def variable_not_exported(context: Context) -> Iterator[Violation]:
    script = context.script
    for command in script.variables.commands if script.is_posix else ():
        for name, line in _used_inside(command).items():
            made = [one for one in script.variables.reaching_at(name, command.start) if one]
            if made and not _may_be_exported(script, command, name):
                message = f"${name} of line {made[-1].line} is not exported: this shell does not get it"
                yield Violation(line, message, f"write export {name}")


def _used_inside(command: Command) -> dict[str, int]:
    """Return the variables of a quoted text that a command gives to another shell, with their first lines."""
    inner = [one for one in command.inner if _is_for_another_shell(one.path) and command.name != "ssh"]
    words = chain.from_iterable(map(_words_of, inner))
    uses = [(part.text, word.line) for word in words for part in word.parts if part.kind == "variable"]
    return dict(reversed(uses))


def _words_of(command: Command) -> Iterator[Word]:
    """Yield the words of a command, its values and the files of its redirections."""
    yield from (one.value for one in command.assignments if one.value)
    yield from (*command.words, *(one.target for one in command.redirects))


def _is_for_another_shell(path: Path) -> bool:
    return any(block.kind == "sh" for block, _ in path)


def _may_be_exported(script: Script, command: Command, name: str) -> bool:
    """Tell whether another shell may get a variable, or sets it itself."""
    variables, inner = script.variables, command.inner[0]
    inside = any(_is_for_another_shell(one.path) for one in variables.assignments[name])
    words = (one.raw for one in command.words if not one.start <= inner.start < one.end)
    given = " ".join([*words, *(one.name for one in command.assignments)])
    unsure = re.search(rf"\bunset [^\n;]*\b{name}\b|{TABLE['exports_any']}", script.text)
    known = name in variables.exported | SYSTEM | variables.provided or _by_module(script, name)
    passed = re.search(rf"(?<![\w${{]){name}\b", given) or known
    return bool(inside or passed or unsure or variables.sources_unknown)


@rule("scheduler-variable-misspelt")
def scheduler_variable_misspelt(context: Context) -> Iterator[Violation]:
    script = context.script
    made = SET_BY_SCHEDULERS | script.variables.assignments.keys() | script.variables.provided
    for ref in script.shell.refs:
        name = ref.name
        if ref.guarded or name in made or re.search(TABLE["not_of_schedulers"], name):
            continue
        near = get_close_matches(name, SET_BY_SCHEDULERS, n=1, cutoff=0.9)
        if right := TABLE["scheduler_slips"].get(name, *near):
            at = script.text.find(name, ref.offset, ref.offset + len(name) + 3)
            if name.startswith(f"{right}_") and at == ref.offset + 1:  # without braces
                right = f"{{{right}}}{name[len(right) :]}"
            edits = (Edit(at, at + len(name), right),) if at >= 0 else ()
            said = f"${name}: no scheduler sets such a variable"
            yield Violation(ref.line, said, f"write ${right}", None, edits)


@rule("variable-name-unknown")
def variable_name_unknown(context: Context) -> Iterator[Violation]:
    variables = context.script.variables
    for name in variables.assignments:
        right = known_variables.SLIPS.get(name) or _nearest(name)
        if right is None or name in variables.used or right in variables.assignments:
            continue
        for one in variables.assignments[name]:
            plain = context.script.text[one.offset : one.offset + len(name)] == name
            edits = (Edit(one.offset, one.offset + len(name), right),) if plain else ()
            if one.exported or name in variables.exported:
                yield Violation(one.line, f"nothing reads {name}", f"write {right}", edits=edits)


def _nearest(name: str) -> str | None:
    """Return the documented name that a name of the same family nearly is; None: it is documented, or far."""
    if name in NAMES or not name.startswith(PREFIXES):
        return None
    near = get_close_matches(name, NAMES, n=1, cutoff=0.92)
    return near[0] if near and abs(len(near[0]) - len(name)) <= 2 else None


@rule("variable-value-unknown")
def variable_value_unknown(context: Context) -> Iterator[Violation]:
    variables = context.script.variables
    for one, text in variables.values_of(*VALUES):
        values = VALUES[one.name]
        known = {value.lower() for value in values}
        if not re.search(r"[${(\[]", text) and any(
            part.strip().lower() not in known for part in text.split(",")
        ):
            yield Violation(one.line, f"{one.name}={text}: known are {', '.join(sorted(values))}")


@rule("scheduler-variable-foreign")
def scheduler_variable_foreign(context: Context) -> Iterator[Violation]:
    script = context.script
    whose, foreign = _foreign_to(script)
    known = _tested(script) | script.variables.assignments.keys()
    for name in script.first_uses:
        if foreign.fullmatch(name) and name not in known:
            line, severity = _where_read(script, name)
            message = f"${name} is not set in a job of {whose}"
            yield Violation(line, message, _own_variable(name, script.kind), severity)


def _foreign_to(script: Script) -> tuple[str, re.Pattern[str]]:
    """Return whose job a script is, and the variables that are not set there; none where it is not sure."""
    others = any(one.reader is not script.reader for one in script.directives)
    says_nothing = TABLE["says_nothing"].get(script.kind, ())
    leftover = all(one.name in says_nothing for one in script.directives)
    if script.reader is None or others or leftover or script.unread:
        return "", re.compile("(?!)")
    kind, lacks = script.kind_of_pbs
    foreign = [names for own, names in TABLE["of_schedulers"].items() if own != script.reader.sentinel]
    return kind or script.reader.submit_command, re.compile("|".join([*foreign, lacks]))


def _where_read(script: Script, name: str) -> tuple[int, Severity | None]:
    """Return the line of the first use of a variable, and a note where echo or printf alone write it."""
    shown = [one for one in script.commands if one.name in ("echo", "printf") and not one.redirects]
    uses = [ref for ref in script.shell.refs if ref.name == name]
    used = next((ref for ref in uses if not any(one.start <= ref.offset < one.end for one in shown)), None)
    return (used.line, None) if used else (uses[0].line, "note")


def _own_variable(name: str, kind: str | None) -> str | None:
    """Return the advice to use the variable of this scheduler that holds the same; None: it has none."""
    fact = reader_by_variables([name]).variables.get(name)
    same = [one for one, holds in READERS[kind].variables.items() if holds == fact and one != name]
    return f"write ${same[0]}" if same else None


def _asks(command: Command) -> bool:
    """Tell whether a command may ask whether a variable is set; one that is compared with a number is."""
    asks = command.condition or command.name in ("[", "[[", "test")
    return asks and not _FORMS["compared"].search(" ".join(word.raw for word in command.words))


def _tested(script: Script) -> set[str]:
    """Return the variables that the script tests, or uses with a default: it is for several schedulers."""
    commands = filter(_asks, script.commands)
    tested = {
        part.text for one in commands for word in one.words for part in word.parts if part.kind == "variable"
    }
    return tested | {ref.name for ref in script.shell.refs if ref.guarded}


@rule("gpus-overridden")
def gpus_overridden(context: Context) -> Iterator[Violation]:
    given = list(_lists_of_gpus(context))
    used = {int(number) for _, text in given for number in text.split(",")}
    harmless = context.owns_node or used == set(range(context.requested.gpus_of_node or 0))
    for name in dict.fromkeys(f"{one.name}={text}" for one, text in given):
        lines = [one.line for one, text in given if f"{one.name}={text}" == name]
        message = f"{name} replaces what the scheduler assigns{also_at(lines)}"
        yield Violation(lines[0], message, None, "note" if harmless else None)


def _lists_of_gpus(context: Context) -> Iterator[tuple[Assignment, str]]:
    """Yield the numbers of GPUs that a script sets in a job that requests some, with the assignments."""
    requested = context.requested
    asks = requested.gpus or requested.gpus_per_node or requested.gpus_per_task
    for one, text in context.script.variables.values_of(*TABLE["gpu_variables"]) if asks else ():
        numbers = text.split(",") if _FORMS["list"].fullmatch(text) else []
        if numbers and not _in_another_order(context, text, sorted(map(int, numbers))):
            yield one, text


def _in_another_order(context: Context, text: str, numbers: list[int]) -> bool:
    """Tell whether a job that has all GPUs of the site's node only turns their order round."""
    every = list(range(len(context.node.gpus) if context.node else 0))
    turned = text != ",".join(map(str, numbers))
    return turned and numbers == every and context.requested.gpus_of_node == len(every)


@rule("secret-in-script")
def secret_in_script(context: Context) -> Iterator[Violation]:
    script = context.script
    for one in [*chain.from_iterable(script.variables.assignments.values()), *script.variables.prefixed]:
        severity = _secrecy(script, one) if looks_secret(re.sub("(?i)_id$", "", one.name)) else None
        if severity:
            yield Violation(one.line, f"{one.name} is written into the script", None, severity)
    yield from _given_to_programs(script)


def _given_to_programs(script: Script) -> Iterator[Violation]:
    """Report secrets in the arguments of commands."""
    for command in script.commands:
        for word in command.words:
            match = _FORMS["secret_option"].fullmatch(word.text or "")
            if match and _is_secret(match[2]):
                yield Violation(word.line, f"--{match[1]} has a secret as its value")
        if _FORMS["login"].match(" ".join(word.visible for word in command.words)):
            yield Violation(command.line, "wandb login has a secret as its argument")


def _secrecy(script: Script, one: Assignment) -> Severity | None:
    """Return how grave a secret variable's value is; None: it has no literal value."""
    if one.value is None:
        return None
    if re.search(r"<\s*[a-z]|x{4,}|your|\.{3}", script.text[one.offset : one.value.end + 12], re.IGNORECASE):
        return "note"
    return "warning" if _is_secret(one.value.text or "") else None


def _is_secret(text: str) -> bool:
    """Tell whether a value looks like a key: long enough, no path, no number and no placeholder."""
    return len(text) >= 8 and _FORMS["no_secret"].search(text) is None


@rule("escaped-dollar")
def escaped_dollar(context: Context) -> Iterator[Violation]:
    script = context.script
    for word, shown in _echoed(script):
        match = _FORMS["escaped"].search(word.raw)
        if match and not (word.raw.startswith("'") or match[1] in shown) and _known(script, match[1]):
            yield Violation(word.line, f"echo prints ${match[1]} as it is, not its value")
    for word in chain.from_iterable(launch.program for launch in script.launches):
        match = _escaped_in_single(word)
        if match and _known(script, match[1]):
            line = word.line + word.raw.count("\n", 0, match.start())
            yield Violation(line, f"inside single quotes \\${match[1]} stays as it is, with the backslash")
    yield from _as_text(script)


def _as_text(script: Script) -> Iterator[Violation]:
    """Report variables of the script in single quotes, which programs get as text."""
    readers = _READS_TEXTS | {*re.findall(r"([\w-]+)[ \t]*\(\)", script.text)}  # or functions
    for command in script.commands:
        form, names = _FORMS["alone"], {word.visible.rpartition("/")[2] for word in command.words}
        for before, word in pairwise(command.words if names.isdisjoint(readers) else ()):
            form = _FORMS["in_single"] if before.raw.endswith(".py") else form
            match = form.fullmatch(word.raw)
            if (
                match
                and match[1] in script.variables.assignments
                and not _FORMS["code_option"].match(before.raw)
            ):
                says = f"inside single quotes ${match[1]} stays as it is: the program gets its name"
                yield Violation(word.line, says)


def _escaped_in_single(word: Word) -> re.Match[str] | None:
    """Return an escaped variable in single quotes, where no double quotes of an inner shell need it."""
    return (
        _FORMS["escaped"].search(word.raw)
        if word.raw.startswith("'") and not _FORMS["in_quotes"].search(word.raw)
        else None
    )


def _echoed(script: Script) -> Iterator[tuple[Word, set[str]]]:
    """Yield the words that echo prints into the job's output, and variables that are meant by name."""
    labelled = {name for name, _ in _FORMS["labelled"].findall(script.text)}
    for command in script.commands:
        if command.name == "echo" and not (command.redirects or command.piped_out):
            parts = chain.from_iterable(word.parts for word in command.words)
            shown = {part.text for part in parts if part.kind == "variable"}
            yield from ((word, shown | labelled) for word in command.words[1:])


def _known(script: Script, name: str) -> bool:
    return name in script.variables.assignments or name.startswith(("SLURM_", "PBS_"))


@rule("array-of-one")
def array_of_one(context: Context) -> Iterator[Violation]:
    arrays: set[str] = set()
    made = context.script.variables.assignments if context.script.language in ("bash", "ksh") else {}
    for one in sorted(chain.from_iterable(made.values()), key=lambda each: each.offset):
        match = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", " ".join(word.raw for word in one.items or ()))
        if match and match[1] in arrays:
            yield Violation(one.line, f"{one.name} gets the first item of {match[1]} only")
        arrays |= {one.name} if one.items is not None else set()


@rule("continuation-dangling")
def continuation_dangling(context: Context) -> Iterator[Violation]:
    text = context.script.text
    for match in re.finditer(r"(?<![ \t])[ \t]*\\(\n)(?=[ \t]*\n)", text):
        line = context.script.line_at(match.start())
        comment = text[text.rfind("\n", 0, match.start()) + 1 :].lstrip().startswith("#")
        if not comment and line not in context.script.text_lines:
            edit = Edit(match.start(), match.start(1), "")
            yield Violation(line, "the backslash joins an empty line to this command", edits=(edit,))


@rule("continuation-blank")
def continuation_blank(context: Context) -> Iterator[Violation]:
    script = context.script
    for match in _FORMS["blank_behind"].finditer(script.text if script.is_posix else ""):
        line = script.line_at(match.start())
        begins = script.text.rfind("\n", 0, match.start()) + 1
        edits = (Edit(match.start(), match.end(), ""),)
        text = _in_value(script, match.start())
        if text and _gives_backslash(script):
            yield Violation(line, TABLE["backslash_kept"], severity="warning", edits=edits)
        elif text or line in script.text_lines or re.match(r"\s*#", script.text[begins:]):
            continue
        elif script.text[match.end()] == "#":
            message = "a comment behind the backslash: the command ends here, without the next line"
            yield Violation(line, message, "write the comment on a line above the command")
        else:
            message = "a blank behind the backslash: the command ends here, without the next line"
            yield Violation(line, message, edits=edits)


def _in_value(script: Script, offset: int) -> bool:
    """Tell whether a place is in the double quotes of a value."""
    made = chain.from_iterable(script.variables.assignments.values())
    values = (one.value for one in made if one.value and one.value.raw[:1] == '"')
    return any(each.start < offset < each.end for each in values)


def _gives_backslash(script: Script) -> bool:
    """Tell whether a command gets a backslash as a word, from the value of a variable."""
    commands = (one for one in script.commands if one.name not in _SPLITS_NOTHING)
    return any("\\" in script.variables.fields(one.words) for one in commands if script.language != "zsh")


@rule("continuation-missing")
def continuation_missing(context: Context) -> Iterator[Violation]:
    script = context.script
    if not script.is_posix or script.shell.template:
        return
    before: Command | None = None
    for command in script.commands:
        if _is_option(script, command):
            if before is not None and _is_option(script, before):
                continue  # said already
            message = f"the shell takes {command.name} for a program: the line before does not go on here"
            yield Violation(command.line, message)
        elif before is not None and _was_meant_to_go_on(script, before, command):
            ends = f"the command of line {before.line} ends before this line"
            yield Violation(command.line, f"{ends}, which is indented as a part of it", severity="warning")
        before = command


def _is_option(script: Script, command: Command) -> bool:
    """Tell whether a command begins with an option, and not behind a blank that another rule reports."""
    first = command.words[0].raw if command.words else ""
    override = re.match(TABLE["override"], first) and script.is_override(command)
    begins = override or re.match(TABLE["no_program"], first)
    line = script.text[: command.start].rpartition("\n")
    alone = not line[2].strip() and not re.search(r"\\[ \t]+(#.*)?$", line[0])
    return bool(begins) and alone and not command.depth


def _was_meant_to_go_on(script: Script, before: Command, command: Command) -> bool:
    """Tell whether a line is indented like the continued lines of the command before it."""
    begin = script.text.rfind("\n", 0, before.start) + 1
    lines = script.text[begin : command.start].split("\n")
    follows = before.path == command.path and before.after == "\n" and not (before.depth or command.depth)
    other = command.name != before.name and before.name not in ("export", "echo")
    goes_on = "".join("." if line.rstrip().endswith("\\") else " " for line in lines)
    one_command = follows and other and re.fullmatch(r"\.+  ", goes_on) is not None
    return one_command and _blanks(lines[-1]) == _blanks(lines[-2]) > _blanks(lines[0])


def _blanks(line: str) -> int:
    """Return the width of the blanks at the beginning of a line."""
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


@rule("scheduler-variable-unset")
def scheduler_variable_unset(context: Context) -> Iterator[Violation]:
    script = context.script
    known = _tested(script) | script.variables.assignments.keys() | script.variables.provided
    known |= {*script.kind_of_pbs[1].split("|")}  # another rule's
    if script.reader is None or not script.active_directives:
        return
    own = re.compile(TABLE["of_schedulers"].get(script.reader.sentinel, ""))
    for name in script.first_uses:
        elsewhere = TABLE["by_command_line"].get(name, "")
        options = (elsewhere or TABLE["by_option"].get(name, "")).split()
        lacks = options and own.fullmatch(name) and name not in known
        if lacks and not any(map(script.has_option, options)):
            option = script.reader.shown(options[0])
            line, severity = _where_read(script, name)
            severity = "note" if _by_command_line(script, name, option) else severity
            yield Violation(line, f"${name} is empty: {option} is not given", f"give {option}", severity)


def _by_command_line(script: Script, name: str, option: str) -> bool:
    """Tell whether the option of a variable may be on the command line: no line switches it off."""
    sentinel = re.escape(script.reader.sentinel) if script.reader else ""
    off = re.search(rf"(?m)^##+ *{sentinel} +{option}\b", script.text)
    given = off or script.has_option("J") or script.has_option("t")
    said = re.search(rf"(?m)^[ \t]*#(?!#* *{sentinel}[ \t])[^\n]*(?<![\w-]){option}\b", script.text)
    return bool(name in TABLE["by_command_line"] or said) and not given


@rule("array-past-list")
def array_past_list(context: Context) -> Iterator[Violation]:
    script = context.script
    names = dict.fromkeys(_FORMS["by_array_index"].findall(script.text if script.language != "zsh" else ""))
    for one in (each for each in script.active_directives if each.name in ("array", "J", "t")):
        indices = re.fullmatch(r"(?:.*\[)?(\d[\d,-]*)\]?(?:%\d+)?", one.value or "")
        last = max(map(int, re.findall(r"\d+", indices[1]))) if indices else 0
        for name in names:
            count = _count_of_items(script, name)
            if 0 < count <= last:
                remedy = f"write {name}=(...), the items in parentheses" if count == 1 else None
                yield Violation(one.line, f"{one.text}: the last number of {name} is {count - 1}", remedy)


def _count_of_items(script: Script, name: str) -> int:
    """Return how many items a list has, of a text one; 0 where that is not known."""
    made = script.variables.assignments.get(name, [])
    filled = re.search(rf"\b{name}\[[^]\n]*\]\+?=|-\w*[aA]\w* {name}\b", script.text)
    if made and not filled and all(one.value for one in made):
        return 1
    items = made[0].items if len(made) == 1 and not made[0].append else None
    return 0 if not items or any(re.search(r"[*?{\[$`(]", word.raw) for word in items) else len(items)


@rule("test-bracket-joined")
def test_bracket_joined(context: Context) -> Iterator[Violation]:
    plain = context.script.is_posix and not context.script.shell.template
    commands = context.script.variables.commands if plain else []
    for one in (each for each in commands if each.name == "["):
        last = one.words[-1]
        if re.fullmatch(r"[^\[\u00a0]+\]", last.raw):
            edits = (Edit(last.end - 1, last.end - 1, " "),)
            yield Violation(last.line, f"{last.raw}: a blank is missing before ]", edits=edits)
        elif last.visible != "]" and one.after in ("&&", "||"):
            message = "this [ has no ]: the shell ends the command before && and ||"
            yield Violation(last.line, message, "write `[ A ] && [ B ]`, or `[[ A && B ]]`")


@rule("redirect-empty")
def redirect_empty(context: Context) -> Iterator[Violation]:
    script = context.script
    unsure = script.shell.template or script.shell.misplaced or script.variables.sources_unknown
    sure = script.language in ("bash", "sh") and not unsure
    for one in chain.from_iterable(command.redirects for command in script.commands if sure):
        if one.operator in (">", ">>", ">|", "<", "&>", "&>>") and _is_empty(script, one.target):
            says = f"{one.operator} {one.target.raw}: this name is empty, and the command does not run"
            yield Violation(one.line, says)


def _is_empty(script: Script, word: Word) -> bool:
    """Tell whether a word is surely empty: its variables get no value, and are not tested."""
    names = {part.text for part in word.parts if part.kind == "variable"} - _tested(script)
    made = [one for name in names for one in script.variables.assignments.get(name, [])]
    found = script.variables.expand(word)
    texts = {found.text, *(one.value.text if one.value else None for one in made)}
    return texts == {""} and bool(made) and not found.unset
