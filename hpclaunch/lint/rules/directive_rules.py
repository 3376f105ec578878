"""Rules about the form of directives, and about what lint cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script, written_by_hpclaunch
from hpclaunch.lint.lint_rule import Context, Edit, Severity, Violation, pbs, rule, slurm
from hpclaunch.scheduler.directive_reader import Directive, DirectiveOption, DirectiveReader
from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS
from hpclaunch.scheduler.registry import THIS_MACHINE

_SENTINELS = [reader.sentinel for reader in DIRECTIVE_READERS]
_READ = ", ".join(f"#{sentinel}" for sentinel in _SENTINELS)
_TEXTS = frozenset({"job-name", "output", "error", "input", "comment", "mail-user", "chdir"})
_NOT_READ = re.compile(
    rf"(?P<indent>[ \t]*)#(?P<blank>[ \t]*)"
    rf"(?P<sentinel>{'|'.join(one for one in _SENTINELS if one.isalpha())})[ \t]+(?P<rest>-.*)$"
)


def _with_problem(context: Context, problem: str) -> Iterator[Directive]:
    """Yield the first directive of each line that has a problem of this kind."""
    lines: set[int] = set()
    for found in context.script.directives:
        if found.active and found.option.problem == problem and found.line not in lines:
            lines.add(found.line)
            yield found


def _span(script: Script, line: int, text: str) -> tuple[int, int] | None:
    """Return where a text is in a line; None: nowhere, or more than once."""
    begin = 0
    for _ in range(line - 1):
        begin = script.text.find("\n", begin) + 1
    end = script.text.find("\n", begin)
    whole = script.text[begin : len(script.text) if end < 0 else end]
    at = whole.find(text)
    return (begin + at, begin + at + len(text)) if text and whole.count(text) == 1 else None


@rule(
    "directive-stray-word",
    "error",
    what="A word in a directive line is neither an option nor the value of one.",
    why="sbatch refuses the job (`Invalid directive found in batch script`), and so does qsub"
    " (`directive error`). One finding per line.",
    remedy="Remove the word, or put `#` before a comment (sbatch only).",
    bad="#SBATCH --nodes=2 partition=gpu",
    good="#SBATCH --nodes=2 --partition=gpu",
    versions=(
        slurm("src/sbatch/opt.c, _opt_batch_script"),
        pbs("OpenPBS, src/cmds/qsub.c, directive error"),
    ),
    skips_placeholders=True,
)
def directive_stray_word(context: Context) -> Iterator[Violation]:
    """Find words in directives that are no options."""
    for found in _with_problem(context, "stray"):
        yield Violation(found.line, f"{found.text}: {found.reader.submit_command} knows no such option")


@rule(
    "directive-comment",
    "error",
    what="A comment stands in a #PBS line.",
    why="qsub takes the words of the comment for options and refuses the job. (sbatch knows such comments.)",
    remedy="Put the comment on the line before.",
    bad="#PBS -l walltime=01:00:00 # one hour",
    good="# one hour\n#PBS -l walltime=01:00:00",
    fixable=True,
    versions=(pbs("OpenPBS, src/cmds/qsub.c, directive error"),),
)
def directive_comment(context: Context) -> Iterator[Violation]:
    """Find comments behind directives of a scheduler that does not know them."""
    for found in _with_problem(context, "comment"):
        span = _span(context.script, found.line, found.text)
        begin = span[0] if span else 0
        while span and context.script.text[begin - 1] in " \t":
            begin -= 1
        edits = (Edit(begin, span[1], ""),) if span else ()
        command = found.reader.submit_command
        yield Violation(found.line, f"{found.text}: {command} takes it for options", edits=edits)


@rule(
    "directive-equals",
    "error",
    what="A short option of a directive has `=` before its value.",
    why='sbatch takes the sign for a part of the value: `-n=4` is refused (`Invalid numeric value "=4"`). A'
    " name or file then begins with the sign, which is a warning.",
    remedy="Write `-n 4`, or `--ntasks=4`.",
    bad="#SBATCH -n=4",
    good="#SBATCH -n 4",
    fixable=True,
    versions=(slurm("getopt(3), short options; src/common/slurm_opt.c, parse_int"),),
)
def directive_equals(context: Context) -> Iterator[Violation]:
    """Find ``-n=4``."""
    for found in context.script.directives:
        if found.active and found.option.problem == "equals":
            right = found.text.replace("=", " ", 1)
            span = _span(context.script, found.line, found.text)
            edits = (Edit(*span, right),) if span else ()
            severity: Severity | None = "warning" if found.name in _TEXTS else None
            message = f"{found.text}: the value is '={found.value}', with the sign"
            yield Violation(found.line, message, f"write {right}", severity, edits)


@rule(
    "directive-not-read",
    "warning",
    what="A directive is written so that it is a comment: `# SBATCH`, or an indented `#SBATCH`.",
    why="sbatch reads `#SBATCH` at the start of a line only, qsub `#PBS` without a blank in it. It is a note"
    " if another line gives the same option, so that this one may be switched off on purpose.",
    remedy="Remove the blanks, or the line.",
    bad="# SBATCH --nodes=2",
    good="#SBATCH --nodes=2",
    versions=(slurm("src/sbatch/opt.c, _next_line"), pbs("man qsub, directive prefix")),
)
def directive_not_read(context: Context) -> Iterator[Violation]:
    """Find directives that are comments because of a blank."""
    script = context.script
    active = {(found.reader.sentinel, found.name) for found in script.active_directives}
    for number, line in enumerate(script.text.split("\n"), 1):
        match = _NOT_READ.match(line)
        if match is None or number in script.text_lines:
            continue
        reader = next(one for one in DIRECTIVE_READERS if one.sentinel == match["sentinel"])
        options = list(reader.read_text(match["rest"]))
        if _is_meant(script, reader, match, options):
            again = any((reader.sentinel, option.name) in active for option in options)
            message = f"{line.strip()[:60]}: {reader.submit_command} takes it for a comment"
            yield Violation(number, message, severity="note" if again else None)


def _is_meant(
    script: Script, reader: DirectiveReader, match: re.Match[str], options: list[DirectiveOption]
) -> bool:
    """Tell whether a comment was meant as a directive: the scheduler is the script's, its options exist."""
    off = bool(match["blank"]) or (bool(match["indent"]) and not reader.indented)
    return off and script.reader in (None, reader) and all(option.known for option in options)


@rule(
    "scheduler-not-read",
    "warning",
    what="The directives are those of a scheduler that lint does not read.",
    why="Nothing that they request is checked. The script may be right, but the exit status must not be"
    " that of a checked one.",
    remedy=f"Lint reads {_READ}.",
    bad="#OAR -l /nodes=2,walltime=1:00:00",
    good="#SBATCH --nodes=2\n#SBATCH --time=01:00:00",
)
def scheduler_not_read(context: Context) -> Iterator[Violation]:
    """Name the scheduler of directives that no reader reads."""
    if context.script.unread and context.script.reader is None:
        line, name = context.script.unread[0]
        count = sum(1 for _, other in context.script.unread if other == name)
        yield Violation(
            line, f"{count} directives of {name}: lint does not read them, so they are not checked"
        )


@rule(
    "no-directives",
    "warning",
    what="The script has no directive of any scheduler, so what the job requests is not known.",
    why="Sizes, limits and required options are not checked. The exit status must not be that of a checked"
    " script.",
    remedy="Write the options into the script, or check the command line of sbatch or qsub yourself.",
    bad="#!/bin/bash\nsrun ./app",
    good="#!/bin/bash\n#SBATCH --nodes=2\nsrun ./app",
)
def no_directives(context: Context) -> Iterator[Violation]:
    """Report scripts without directives, and texts that are not scripts."""
    script, profile = context.script, context.profile
    without_queue = profile is not None and profile.scheduler.kind == THIS_MACHINE
    if script.reader is not None or script.unread or without_queue or written_by_hpclaunch(script.text):
        return  # a script of ours without directives is for a machine without a queue
    if not script.text.strip():
        yield Violation(None, "the file is empty")
    elif script.language in ("python", "other"):
        yield Violation(None, f"no directives, and {script.language_name} is not read: nothing was checked")
    else:
        yield Violation(None, "no directives: what the job requests is not known, so it is not checked")


@rule(
    "language-not-read",
    "note",
    what="The script is not written in a shell that lint reads, so only its directives are checked.",
    why="Schedulers take Python, Perl or R as batch scripts, but lint reads the commands of sh, bash, ksh,"
    " zsh and csh only.",
    remedy="Check the rest yourself.",
    bad="#!/usr/bin/env python3\n#SBATCH --nodes=1\nprint(1)",
    good="#!/bin/bash\n#SBATCH --nodes=1\nsrun python3 train.py",
)
def language_not_read(context: Context) -> Iterator[Violation]:
    """Report batch scripts in other languages."""
    script = context.script
    if script.reader is not None and script.language in ("python", "other"):
        yield Violation(1, f"the script is {script.language_name}: only its directives were checked")


@rule(
    "site-other-scheduler",
    "error",
    what="The directives are for another scheduler than the site's.",
    why="The site's scheduler takes them for comments: the job runs with default sizes, or is refused.",
    remedy="Write the directives of the site's scheduler: `hpclaunch submit --dry-run` shows them.",
    bad="# on Polaris, which has PBS\n#SBATCH --nodes=2",
    good="#PBS -l select=2:system=polaris",
)
def site_other_scheduler(context: Context) -> Iterator[Violation]:
    """Compare the scheduler of the directives with the site's."""
    profile, script = context.profile, context.script
    if profile is None:
        return
    if script.reader is not None and script.reader.kind != profile.scheduler.kind:
        line = next(iter(script.active_directives or script.directives)).line
        message = (
            f"directives for {script.reader.submit_command}, but {profile.name} has {profile.scheduler.kind}"
        )
        yield Violation(line, message)


@rule(
    "placeholder",
    "note",
    what="Something is left open: `<project>`, `[budget code]`, `project_xxxxxxxxx`, `srun <application>`.",
    why="The scheduler refuses it as it is. One note per script; no other rule takes it for a value.",
    remedy="Fill it in.",
    bad="#SBATCH --account=<project>",
    good="#SBATCH --account=project_465000001",
)
def placeholder(context: Context) -> Iterator[Violation]:
    """Name the lines of directives that hold a placeholder."""
    script = context.script
    in_commands = dict(reversed(script.shell.placeholders))
    in_directives = {
        one.line: one.text for one in reversed(script.directives) if one.line in script.placeholder_lines
    }
    texts = {**in_commands, **in_directives}
    lines = sorted(texts)
    if lines:
        first = texts[lines[0]]
        more = f", and lines {', '.join(map(str, lines[1:6]))}" if len(lines) > 1 else ""
        yield Violation(lines[0], f"{first} is to be filled in{more}")


@rule(
    "time-missing",
    "note",
    what="No walltime is requested.",
    why="The job gets the queue's default, often minutes, or the queue's maximum, with which it waits longer"
    " than it must.",
    remedy="Request a time: `#SBATCH --time=01:00:00`, `#PBS -l walltime=01:00:00`.",
    bad="#SBATCH --nodes=2\nsrun ./app",
    good="#SBATCH --nodes=2\n#SBATCH --time=01:00:00\nsrun ./app",
)
def time_missing(context: Context) -> Iterator[Violation]:
    """Find jobs without a walltime."""
    script = context.script
    asks = (
        script.active_directives and script.reader is not None and "walltime" in script.reader.roles.values()
    )
    if asks and script.directive("walltime") is None:
        yield Violation(None, "no walltime is requested: the queue's default holds")


@rule(
    "scheduler-retired",
    "warning",
    what="The directives are those of a scheduler that no machine has any more.",
    why="Cobalt ran ALCF's Theta and ThetaGPU, which are switched off (docs.alcf.anl.gov): no command reads"
    " the script. What it requests is still checked.",
    remedy="Write it for a machine that exists.",
    bad="#COBALT -n 8 -t 60 -A Project",
    good="#PBS -l select=8:system=polaris\n#PBS -l walltime=1:00:00\n#PBS -A Project",
)
def scheduler_retired(context: Context) -> Iterator[Violation]:
    """Report scripts whose scheduler is retired, unless they are for a machine that is known to be so."""
    reader = context.script.reader
    known = context.profile is not None and context.profile.retired is not None
    if reader is not None and reader.retired and not known:
        line = next(iter(context.script.active_directives or context.script.directives)).line
        yield Violation(line, f"directives of #{reader.sentinel}: {reader.retired}")
