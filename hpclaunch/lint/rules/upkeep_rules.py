"""Rules about what grows old or fits one user or one node only: modules, variables, paths."""

import re
from collections.abc import Iterator

import msgspec

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.bind_lists import launch_ranks_per_node
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import program_words
from hpclaunch.lint.rules.module_rules import loaded
from hpclaunch.shell.shell_syntax import Command

_WRITTEN = 2026
"""The year in which these rules were written."""
_OLD = 4
"""Years after which sites have removed a software stack: of yearly toolchains they keep about three."""
_DATED = re.compile("|".join(TABLE["dated_modules"]))
_FETCHES = re.compile(rf"((ba)?sh -l?c )?({'|'.join(TABLE['fetches'])})\b")


@rule("module-old")
def module_old(context: Context) -> Iterator[Violation]:
    software = msgspec.json.encode(context.profile.software).decode() if context.profile else ""
    for module in loaded(context.script):
        match = _DATED.search(module.name)
        year = int(next(filter(None, match.groups()))) if match else _WRITTEN
        if year % 100 + 2000 <= _WRITTEN - _OLD and module.name not in software:
            yield Violation(module.line, f"{module.name} is of {year % 100 + 2000}")
            return


@rule("variable-obsolete")
def variable_obsolete(context: Context) -> Iterator[Violation]:
    variables = context.script.variables
    for name, (newer, since) in TABLE["obsolete"].items():
        for one in variables.assignments.get(name, [])[:1]:
            if newer not in variables.assignments and one.value is not None:  # of unset
                yield Violation(one.line, f"{name} is obsolete since {since}", f"use {newer}")


@rule("debug-mode-on")
def debug_mode_on(context: Context) -> Iterator[Violation]:
    variables = context.script.variables
    for one, text in variables.values_of(*TABLE["debug_variables"]):
        last = variables.assignments.get(one.name, [one])[-1] is one
        stays = last and not re.search(rf"\bunset\b[^\n]*\b{one.name}\b", context.script.text)
        read = (stays and one.name in variables.exported) or one in variables.prefixed
        if read and re.fullmatch(TABLE["debug_variables"][one.name], text):
            yield Violation(one.line, f"{one.name}={text} is for debugging, and makes the program slow")


@rule("path-retired")
def path_retired(context: Context) -> Iterator[Violation]:
    directives = {one.line for one in context.script.directives}
    left = dict(TABLE["retired_paths"])
    for number, line in enumerate(context.script.text.split("\n"), 1):
        for path in [path for path in left if re.search(rf"(?<![\w/.}}]){path}", line)]:
            if number in directives or not line.lstrip().startswith("#"):
                yield Violation(number, f"{path} was {left.pop(path)}")


@rule("personal-path")
def personal_path(context: Context) -> Iterator[Violation]:
    script = context.script
    if script.reader is None:
        return
    for number, line in enumerate(script.text.split("\n"), 1):
        if found := _homes_in(line):
            match = found[0]
            # Below /home may be groups and file systems, too, with users below.
            path, name = match[0].rpartition("/")[0] if match[2] else match[0], match[1]
            is_home = re.search(rf"{re.escape(path)}/({TABLE['only_in_homes']})", script.text)
            fixed = f"{match[0]} is a fixed path, of one user or group"
            others = dict.fromkeys(one[0] for one in found if one[1] != name)
            also = "".join(f", and so is {each}" for each in others)
            yield Violation(number, f"{path} is the home of {name}{also}" if is_home else f"{fixed}{also}")
            return


def _homes_in(line: str) -> list[re.Match[str]]:
    """Return the paths of persons in a line of code."""
    code = "" if line.lstrip().startswith("#") else line
    return [one for one in re.finditer(TABLE["homes"], code) if not re.search(TABLE["no_person"], one[1])]


@rule("node-local-once")
def node_local_once(context: Context) -> Iterator[Violation]:
    nodes, script = context.requested.node_count, context.script
    ranks = any(one.by_launcher for one in script.launches) or re.search(TABLE["launch_off"], script.text)
    if not nodes or nodes < 2 or not ranks:
        return
    for command in script.commands:
        path = _local_target(script, command)
        if path and not command.function:
            message = f"{command.name} {path} is done on the first of {nodes} nodes only"
            yield Violation(command.line, message, severity=_if_used(script, command, path))
            return


def _local_target(script: Script, command: Command) -> str | None:
    """Return the node-local path that a command makes, fills or removes; None: there is none."""
    text = " ".join(script.variables.fields(command.words))
    found = re.match(TABLE["fills"], text)
    path = next(filter(None, found.groups()), "") if found else ""
    return path if re.match(TABLE["node_local"], path) else None


def _if_used(script: Script, command: Command, path: str) -> Severity | None:
    """Return a warning where launches on several nodes use what a command has made."""
    made = command.name not in ("mkdir", "rm") and "sbcast" not in script.text
    return "warning" if made and path in " ".join(_used_on_nodes(script)) else None


def _used_on_nodes(script: Script) -> list[str]:
    """Return the words of programs on several nodes, and of environments activated for them."""
    steps = [one for one in script.launches if one.by_launcher and script.number(one, "nodes", "ntasks") != 1]
    launched = [word for one in steps for word in program_words(script, one)]
    words = [word for one in script.commands if one.name in (".", "source", "conda") for word in one.words]
    return launched and [*launched, *script.variables.fields(words)]


@rule("files-on-every-rank")
def files_on_every_rank(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.launches:
        text = " ".join(program_words(script, launch)) if launch.by_launcher else ""
        if _FETCHES.match(text) and not re.search(TABLE["target_of_rank"], text):
            each, nodes = _ranks(context, launch)
            if each > 1 or (nodes > 1 and not re.search(TABLE["maybe_local"], text)):
                yield Violation(launch.line, f"{each * nodes} ranks run {text.split()[0]} with one target")


def _ranks(context: Context, launch: Launch) -> tuple[int, int]:
    """Return the ranks per node and the nodes of a launch; one of each where they are not known."""
    script = context.script
    nodes = script.number(launch, "nodes") or context.requested.node_count or 1
    counted = nodes > 1 or launch.option("ntasks", "n", "np")
    each = launch_ranks_per_node(context, launch) or (0 if counted else context.requested.all_tasks)
    return (each, nodes) if each and script.number(launch, "ntasks", "n", "np") != 1 else (1, 1)
