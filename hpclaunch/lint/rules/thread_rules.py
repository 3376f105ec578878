"""Rules about programs of one process with threads: their CPUs as the job requests them."""

import re
from collections.abc import Iterator
from math import prod

from hpclaunch.amounts import counted
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import SHOWS, TABLE
from hpclaunch.lint.launch_lines import python_files
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import runs
from hpclaunch.lint.rules.binding_rules import cpus_of_job
from hpclaunch.lint.rules.step_rules import may_launch, may_spread
from hpclaunch.shell.shell_syntax import Command

_OPTIONS = {name: form for form, names in TABLE["thread_options"].items() for name in names.split()}
"""Program -> the options for its threads, as a pattern."""
_FEWEST_CPUS = 8
"""Idle CPUs of jobs with fewer are not reported."""
_Started = tuple[Command, str, int | None]
"""A command, its program, and its threads: 0 where their number is open, None without an option."""


def _threads(words: list[str]) -> tuple[str, int | None]:
    """Return the name of a program, and its threads as ``_Started`` has them; a container is passed over."""
    names = [word.rpartition("/")[2] for word in words]
    at = next((at for at, name in enumerate(names) if name in _OPTIONS), 0)
    if re.search(TABLE["no_threads"], " ".join([names[0], *words[1:]])):
        return names[0], None
    return names[at], _most(_OPTIONS.get(names[at], TABLE["threads_of_any"]), " ".join(words[at:]))


def _most(form: str, text: str) -> int | None:
    """Return the highest number of options of a form, of mdrun the product; 0: one is open, None: none."""
    given = re.findall(rf" (?:{form})[= ]?(\d{{1,4}}|[Aa][Uu][Tt][Oo]|[$?]\S*)(?= |$)", text)
    numbers = [int(one) if one.isdigit() else 0 for one in given]
    count = prod if "-ntmpi" in form else max
    return count(numbers) if numbers and 0 not in numbers else 0 if numbers else None


def _started(script: Script) -> list[_Started]:
    """Return the commands of a script that do more than prepare and report."""
    return [(one, *_threads(words)) for one, words in runs(script) if one.name not in SHOWS]


def _threaded(context: Context) -> list[_Started]:
    """Return the programs with threads of a job that starts nothing by a launcher."""
    script = context.script
    started = _started(script) if script.active_directives else []
    launches = any(one.by_launcher for one in script.launches)
    others = any(threads is None and may_launch(one) for one, _, threads in started)
    return [] if launches or others else [one for one in started if one[2] is not None and one[1][:1] != "-"]


@rule("tasks-for-threads")
def tasks_for_threads(context: Context) -> Iterator[Violation]:
    nodes, tasks = context.requested.node_count or 1, context.requested.all_tasks
    python = any(map(python_files, context.script.launches))  # of which one-process-for-tasks tells
    write = TABLE["one_process"].get(context.script.kind)
    for command, name, _ in [] if python else _threaded(context)[:1]:
        if nodes > 1:
            yield Violation(command.line, f"{name} is one process, on the first of {nodes} nodes", write)
        elif tasks > 1 and may_spread(context):
            where = f"{name} is one process on one node, the {tasks} tasks may be on several nodes"
            severity: Severity | None = None if may_spread(context, TABLE["more_than_one_node"]) else "note"
            yield Violation(command.line, where, write, severity)


@rule("threads-over-job")
def threads_over_job(context: Context) -> Iterator[Violation]:
    cpus = cpus_of_job(context)
    for command, name, threads in _threaded(context) if cpus else ():
        if threads and threads > cpus:
            message = f"{name} starts {threads} threads, the job has {counted(cpus, 'CPU')}"
            yield Violation(command.line, message)


@rule("cpus-unused")
def cpus_unused(context: Context) -> Iterator[Violation]:
    cpus = cpus_of_job(context)
    started = _started(context.script) if cpus >= _FEWEST_CPUS and _threaded(context) else []
    counts = [threads or 0 for _, _, threads in started]
    if counts and not any(map(_runs_next_to_others, started)) and min(counts) and max(counts) * 2 <= cpus:
        command, name, threads = started[counts.index(max(counts))]
        message = f"{name} starts {counted(threads or 0, 'thread')}, the job has {cpus} CPUs"
        yield Violation(command.line, message)


def _runs_next_to_others(started: _Started) -> bool:
    """Tell whether a command may run at the same time as others, or several times."""
    command, name, _ = started
    ranks = name == "mdrun"  # without -ntmpi as many as fill its CPUs
    return bool(ranks or command.after == "&" or command.piped_out or command.path or command.function)
