"""Rules about the form of directives, and about what lint cannot read."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, takewhile

from hpclaunch.lint.batch_script import BROKEN_SHEBANG, JOINED, Script, placeholder_in, written_by_hpclaunch
from hpclaunch.lint.known_variables import OPTION_VALUES, TABLE
from hpclaunch.lint.lint_rule import Context, Edit, Severity, Violation, also_at, rule
from hpclaunch.lint.program_words import runs
from hpclaunch.scheduler.directive_reader import DASH, Directive, DirectiveOption, DirectiveReader
from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS, READERS
from hpclaunch.scheduler.registry import THIS_MACHINE

_SENTINELS = [reader.sentinel for reader in DIRECTIVE_READERS]
_READ = ", ".join(f"#{sentinel}" for sentinel in _SENTINELS)
_SLURM = READERS["slurm"]
_Rows = dict[str, dict[str, str]]
_Option = tuple[int, str, str, str | None]
"""Line, text, name and value of an option."""
_NEVER_EMPTY = TABLE["refused_empty"].split()
_TEXTS = frozenset(TABLE["any_text"].split())
_NOT_READ = re.compile(
    rf"(?P<indent>[ \t]*)#(?P<blank>[ \t\u00a0]*)"
    rf"(?P<sentinel>{'|'.join(one for one in _SENTINELS if one.isalpha())}|(?<= )\$)[ \t]+(?P<rest>-.*)$"
)
_ANY_TEXT = re.compile(TABLE["right_as_they_are"])


def _with_problem(context: Context, problem: str) -> Iterator[Directive]:
    """Yield the directives with a problem of this kind; of several words of a line the first."""
    seen: set[tuple[int, str]] = set()
    for found in context.script.directives:
        if found.active and found.problem == problem and (found.line, found.name) not in seen:
            seen.add((found.line, found.name))
            yield found


def _span(script: Script, line: int, text: str) -> tuple[int, int] | None:
    """Return where a text is in a line; None: nowhere, or more than once."""
    *before, whole = script.text.split("\n")[:line]
    at = sum(len(each) + 1 for each in before) + whole.find(text)
    return (at, at + len(text)) if text and whole.count(text) == 1 else None


@rule("directive-stray-word")
def directive_stray_word(context: Context) -> Iterator[Violation]:
    certain = context.profile or context.script.has_option("l:select")
    # What ends with ``=``, perhaps before a blank and its value.
    cut_off = {one.line: one.text for one in context.script.active_directives if one.text.endswith("=")}
    for found in _with_problem(context, "stray"):
        yield _stray(found, bool(certain), cut_off.get(found.line))
    yield from _no_words(context.script)
    for match in re.finditer(TABLE["like_a_blank"], context.script.text):
        line, edits = context.script.line_at(match.end()), (Edit(match.end() - 1, match.end(), " "),)
        if line not in context.script.text_lines:
            message = "a sign that only looks like a blank is a part of the word"
            yield Violation(line, message, None, _in_text(context, match[0]), edits)


def _stray(found: Directive, certain: bool, cut_off: str | None) -> Violation:
    """Report a stray word; behind a dash of a text an option is lost where it is not refused."""
    dash = DASH.match(found.text)
    tried = found.reader.kind not in TABLE["stray_words_untried"]
    lost = dash or not tried or re.match(TABLE["a_resource"], found.text)
    refused = tried and (certain or found.reader.comments)
    severity: Severity | None = None if refused else "warning" if lost else "note"
    if dash:
        message = f"{found.text}: {dash[0]} is a dash of a text, not the sign of an option"
        return Violation(found.line, message, "write `-`", severity)
    message = f"{found.text}: {found.reader.submit_command} knows no such option"
    remedy = None if found.reader.kind == _SLURM.kind else "remove the word"
    remedy = f"write {cut_off}{found.text}, without a blank" if cut_off else remedy
    return Violation(found.line, message, remedy, severity)


def _no_words(script: Script) -> Iterator[Violation]:
    """Report lines that a submit command cannot split into words; most read up to the first command."""
    head = re.match(r"([ \t]*(#.*)?\n)*", script.text)
    whole = script.reader is None or script.reader.read_in == "whole script"
    end = head.end() if head and not whole else len(script.text)
    for row in TABLE["unreadable_lines"].get(script.kind or "unknown", ()):
        for match in re.compile(row["form"]).finditer(script.text, 0, end):
            line = script.line_at(match.start())
            if line not in script.text_lines:
                message = f"{match[0][:60]}: {row['says']}"
                remedy = row.get("write", "write two #, or close the quote")
                yield Violation(line, message, remedy, row.get("severity"))


def _in_text(context: Context, beginning: str) -> Severity | None:
    """Return a warning where the beginning of a line ends in the name of something: any sign is accepted."""
    reader = context.script.reader
    options = list(reader.read_text(beginning.partition("SBATCH")[2])) if reader else []
    return "warning" if (options and options[-1].name in _TEXTS) or "SBATCH" not in beginning else None


@rule("directive-comment")
def directive_comment(context: Context) -> Iterator[Violation]:
    """Find comments behind directives of a scheduler that does not know them.

    A note where the site is not known: TORQUE, whose directives look the same, ignores the words.
    """
    severity: Severity | None = None if context.profile else "note"
    given = "\n".join(one.text for one in context.script.active_directives)
    torque = severity and re.search(TABLE["of_torque"], given)
    for found in () if torque else _with_problem(context, "comment"):
        span = _span(context.script, found.line, found.text)
        before = context.script.text[: span[0]].rstrip(" \t") if span else ""
        edits = (Edit(len(before), span[1], ""),) if span else ()
        message = f"{found.text}: {found.reader.submit_command} takes it for options"
        yield Violation(found.line, message, severity=severity, edits=edits)


@rule("directive-equals")
def directive_equals(context: Context) -> Iterator[Violation]:
    for found in _with_problem(context, "equals"):
        right = found.text.replace("=", " ", 1)
        span = _span(context.script, found.line, found.text)
        edits = (Edit(*span, right),) if span else ()
        severity: Severity | None = "warning" if found.name in _TEXTS else None
        message = f"{found.text}: the value is '={found.value}', with the sign"
        yield Violation(found.line, message, f"write {right}", severity, edits)


@rule("directive-not-read")
def directive_not_read(context: Context) -> Iterator[Violation]:
    script = context.script
    severity: Severity | None = "note" if script.active_directives else None
    for number, line in enumerate(script.text.split("\n"), 1):
        match = _NOT_READ.match(line)
        if match is None or number in script.text_lines:
            continue
        reader = next(one for one in DIRECTIVE_READERS if one.sentinel == match["sentinel"])
        options = list(reader.read_text(match["rest"]))
        if _is_meant(script, reader, match, options):
            message = f"{line.strip()[:60]}: {reader.submit_command} takes it for a comment"
            yield Violation(number, message, severity=severity)
    yield from _behind_signs(script)


def _behind_signs(script: Script) -> Iterator[Violation]:
    """Report directives behind stray signs, ``**#$ -cwd**``: the shell runs such a line."""
    for found in re.finditer(TABLE["behind_signs"], script.text if script.is_posix else ""):
        number = script.line_at(found.start())
        if number not in script.text_lines:
            message = f"{found[0].strip()[:60]}: signs before the #, the shell takes the line for a command"
            yield Violation(number, message, "remove the signs")


def _is_meant(
    script: Script, reader: DirectiveReader, match: re.Match[str], options: list[DirectiveOption]
) -> bool:
    """Tell whether a comment was meant as a directive: the scheduler is the script's, its options exist."""
    off = bool(match["blank"]) or (bool(match["indent"]) and not reader.indented)
    own = script.reader is reader or (script.reader is None and reader.sentinel.isalpha())
    return off and own and all(option.known for option in options)


@rule("scheduler-not-read", remedy=f"Lint reads {_READ}.")
def scheduler_not_read(context: Context) -> Iterator[Violation]:
    if context.script.unread and context.script.reader is None:
        line, name = context.script.unread[0]
        count = sum(1 for _, other in context.script.unread if other == name)
        message = f"{count} directives of {name}: lint does not read them, so they are not checked"
        yield Violation(line, message)


@rule("no-directives")
def no_directives(context: Context) -> Iterator[Violation]:
    script, profile = context.script, context.profile
    without_queue = profile is not None and profile.scheduler.kind == THIS_MACHINE
    elsewhere = without_queue or any(one.reader for one, _ in script.written_scripts)
    if script.reader is not None or script.unread or elsewhere or written_by_hpclaunch(script.text):
        return  # a script of ours without directives is for a machine without a queue
    if not script.text.strip():
        yield Violation(None, "the file is empty")
    elif script.language in ("python", "other"):
        yield Violation(None, f"no directives, and {script.language_name} is not read: nothing was checked")
    else:
        message = "no directives: what the job requests is not known, so it is not checked"
        yield Violation(None, message, severity="note")  # its options may be on the command line


@rule("language-not-read")
def language_not_read(context: Context) -> Iterator[Violation]:
    script = context.script
    if script.reader is not None and script.language in ("python", "other"):
        yield Violation(1, f"the script is {script.language_name}: only its directives were checked")


@rule("site-other-scheduler")
def site_other_scheduler(context: Context) -> Iterator[Violation]:
    profile, script = context.profile, context.script
    if profile and script.reader and script.reader.kind != profile.scheduler.kind:
        line = next(iter(script.active_directives or script.directives)).line
        given = f"directives for {script.reader.submit_command}"
        yield Violation(line, f"{given}, but {profile.name} has {profile.scheduler.kind}")


@rule("placeholder")
def placeholder(context: Context) -> Iterator[Violation]:
    script = context.script
    texts = {**script.open_words, **script.open_directives}
    # Names that the scheduler looks up, and what commands leave open.
    named = {one.line for one in script.active_directives if _is_looked_up(one)}
    opened = script.open_words.items()
    open_lines = {line for line, text in opened if not _may_be_right(script, line, text)}
    fails = set() if script.is_filled_in else (named | open_lines) & texts.keys()
    lines = sorted(texts, key=lambda line: (line not in fails, line))
    if lines:
        message = (
            f"{re.sub(TABLE['blanks_in_fields'], ' ', texts[lines[0]])} is to be filled in{also_at(lines)}"
        )
        # Several are those of a template, one may have been forgotten.
        yield Violation(lines[0], message, severity="warning" if fails and len(lines) == 1 else None)


def _may_be_right(script: Script, line: int, text: str) -> bool:
    """Tell whether a text is right as it is, or the default of a variable that the environment may have."""
    default = rf"\$\{{\w+:?-[^}}]*{re.escape(text)}"
    return bool(_ANY_TEXT.match(text) or re.search(default, script.text.split("\n")[line - 1]))


def _is_looked_up(one: Directive) -> bool:
    """Tell whether a scheduler looks up a value: a name, the working folder, that of files it opens first."""
    opened = placeholder_in(one.text)
    in_folder = opened is not None and "/" in one.text[one.text.find(opened) :]
    file = in_folder and one.name in TABLE["opened_at_start"].get(one.reader.kind, "").split()
    read = one.reader.options.get(one.name) in TABLE["read_by_scheduler"]
    return bool(opened and (read or file)) and not re.search(TABLE["masked"], one.text)


@rule("time-missing")
def time_missing(context: Context) -> Iterator[Violation]:
    script = context.script
    line = TABLE["time_lines"].get(script.kind)
    given = "\n".join(one.text for one in script.active_directives)
    by_queue = re.search(TABLE["times_by_queue"].get(script.kind, "(?!)"), given)
    if line and given and script.directive("walltime") is None and not by_queue:
        message = "no walltime is requested: the queue's default holds"
        yield Violation(None, message, f"request a time: `{line}`")


@rule("scheduler-retired")
def scheduler_retired(context: Context) -> Iterator[Violation]:
    reader = context.script.reader
    known = context.profile is not None and context.profile.retired is not None
    if reader is not None and reader.retired and not known:
        line = next(iter(context.script.active_directives or context.script.directives)).line
        yield Violation(line, f"directives of #{reader.sentinel}: {reader.retired}")


@rule("shebang-missing")
def shebang_missing(context: Context) -> Iterator[Violation]:
    script = context.script
    mark = script.text.startswith("\ufeff#!")
    if script.directives and not script.text.startswith("#!") and not placeholder_in(script.text[:200]):
        at = len(script.text) - len(script.text.lstrip("\ufeff \t\r\n"))
        edits = (Edit(0, at, ""),) if script.text.startswith("#!", at) else (Edit(0, 0, "#!/bin/bash\n"),)
        if broken := BROKEN_SHEBANG.match(script.text):
            edits = (Edit(0, broken.end(), f"#!/{broken[1]}"),)
        first = ["the first line is not #!", "a byte order mark (BOM) stands before #!"][mark]
        yield Violation(1, f"{first}: sbatch refuses the script", "remove the mark" * mark, edits=edits)
    elif script.directives and re.fullmatch(TABLE["no_interpreters"], script.shebang):
        yield Violation(1, f"#!{script.shebang}: the system finds no such program, and the job fails at once")


def _wrong_values(table: dict[str, _Rows], context: Context) -> Iterator[Violation]:
    """Report the options whose values are not of the form that a table has."""
    script, rows = context.script, table.get(context.kind or _SLURM.kind, {})
    # Some have another form where the commands of the script are as they say.
    text = "\n".join(" ".join(words) for _, words in runs(script))
    meant = {name: row for name, row in rows.items() if re.search(row.get("of", "(?!)"), text)}
    rows = rows | {name: {**row, "form": row["then"]} for name, row in meant.items()}
    read = [one for one in script.active_directives if not one.one_dash]
    yield from _of_other_form(rows, ((one.line, one.text, one.name, one.value) for one in read))
    if context.kind in (None, _SLURM.kind):
        yield from _of_other_form(rows | table.get("srun", {}), _options_of_srun(script))
        yield from _of_other_form(rows, _options_of_sbatch(script))


def _of_other_form(rows: _Rows, options: Iterable[_Option]) -> Iterator[Violation]:
    for line, text, name, value in options:
        written = re.split(r"[=\s]", text)[0].removeprefix("--")  # an option may have an older name
        row = rows.get(written, rows.get(name))
        if row and _is_refused(row["form"], value):
            long = re.match(rf"-{re.escape(name)}([a-z]+)\b", text)
            reads = f"it reads as -{name} {long[1]}, {row['reads']}" if long else row["reads"]
            number = re.match(r"\d*", value or "")
            right = row.get("write", "").format(name=name.removeprefix("l:"), number=number and number[0])
            yield Violation(line, f"{text}: {reads}", right or None)


def _options_of_srun(script: Script) -> Iterator[_Option]:
    """Yield the options of srun, but where the shell replaces a ``~``, or a sign is reported."""
    for option in chain.from_iterable(one.options for one in script.launches if one.launcher == "srun"):
        text = script.value(option).text
        if not (text or "").startswith("~") and (text or "").isascii() and not placeholder_in(text or ""):
            yield option.line, f"--{option.name}={text}", option.name, text


def _options_of_sbatch(script: Script) -> Iterator[_Option]:
    """Yield those of sbatch and salloc in commands of the script."""
    for command in (one for one in script.commands if one.name in ("sbatch", "salloc")):
        options = _SLURM.read(script.variables.fields(command.words[1:]))
        for one in takewhile(lambda one: one.problem is None, options):
            if not (one.value or "").startswith("~"):
                yield command.line, one.text, one.name, one.value


def _is_refused(form: str, value: str | None) -> bool:
    if not value or JOINED.search(value) or value.startswith("="):  # directive-equals reports it
        return False
    if re.search(r"[$?]", value) and r"\$" not in form:  # its value is not known
        return False
    return not re.fullmatch(form, value.strip("\"'"), re.IGNORECASE)


@rule("option-value-refused")
def option_value_refused(context: Context) -> Iterator[Violation]:
    yield from _empty_values(context)
    yield from _with_one_dash(context.script)
    yield from _wrong_values(OPTION_VALUES["option-value-refused"], context)
    yield from _ranges_down(context)


def _empty_values(context: Context) -> Iterator[Violation]:
    """Report options without their value; one before a blank and it is directive-stray-word's."""
    empty = [one for one in context.script.active_directives if one.value == "" and one.name in _NEVER_EMPTY]
    cut_off = {(one.line, "=") for one in _with_problem(context, "stray")}
    every = (*_with_problem(context, "empty"), *empty)
    for found in (one for one in every if (one.line, one.text[-1:]) not in cut_off):
        refused = f"{found.reader.submit_command} refuses it without a value, or the job cannot start"
        severity: Severity | None = "warning" if found.text.endswith("=") else None  # a field of a template
        yield Violation(found.line, f"{found.text}: {refused}", severity=severity)


def _with_one_dash(script: Script) -> Iterator[Violation]:
    """Report long options with one dash; sbatch accepts a text, unless a letter before it is none."""
    unknown = {one.line for one in script.active_directives if not one.known}
    for one in (one for one in script.active_directives if one.one_dash):
        message = f"{one.text}: one dash begins a short option, this reads as {one.text[:2]} {one.text[2:]}"
        accepted = one.name in _TEXTS and one.line not in unknown
        yield Violation(one.line, message, f"write -{one.text}", "warning" if accepted else None)


def _ranges_down(context: Context) -> Iterator[Violation]:
    """Report ranges whose first number is above the last one."""
    upward = TABLE["ranges_go_up"].get(context.kind or "", "").split()
    for one in (each for each in context.script.active_directives if each.name in upward):
        ranges = re.findall(r"\b(\d{1,9})-(\d{1,9})\b", one.value or "")
        if any(int(first) > int(last) for first, last in ranges):
            yield Violation(one.line, f"{one.text}: the first number of the range is above the last one")


for _rule_id in sorted(OPTION_VALUES.keys() - {"option-value-refused"}):
    rule(_rule_id)(partial(_wrong_values, OPTION_VALUES[_rule_id]))


@rule("directive-repeated")
def directive_repeated(context: Context) -> Iterator[Violation]:
    for name in TABLE["given_once"].split():
        given = [one for one in context.directives if one.name == name]
        for one, last in zip(given[:-1], given[-1:] * len(given), strict=False):
            if one.value != last.value:
                yield Violation(one.line, f"{one.text}: line {last.line} replaces it, {last.text}")


@rule("options-contradict")
def options_contradict(context: Context) -> Iterator[Violation]:
    given = {one.name: one for one in context.directives}
    for first, *others in (row.split() for row in TABLE["contradicting_options"].get(context.kind or "", ())):
        for one in (given[other] for other in others if {first, other} <= given.keys()):
            message = f"{one.text}: not together with {given[first].text} (line {given[first].line})"
            yield Violation(one.line, message, severity=_if_of_torque(context, one))
    yield from _lacking(given, TABLE["needed_options"].get(context.kind or "", {}))


def _if_of_torque(context: Context, one: Directive) -> Severity | None:
    """Return a warning for an option that TORQUE has, unless the script is for PBS Professional."""
    sure = context.profile or context.script.kind_of_pbs[0] == "PBS Professional"
    return None if sure or one.name not in TABLE["torque_reads"].split() else "warning"


def _lacking(given: dict[str, Directive], needed: dict[str, str]) -> Iterator[Violation]:
    """Report options of a table without one of those that they need; where two are named, mail is lost."""
    for names, wanted in needed.items():
        if given.keys() >= {*names.split()} and given.keys().isdisjoint(wanted.split()):
            one = given[names.split()[0]]
            listed = ", ".join(map(one.reader.shown, wanted.split()[:3]))
            severity: Severity | None = "note" if " " in names else None
            message = f"{one.text}: one of {listed} must be given, too"
            yield Violation(one.line, message, severity=severity)
