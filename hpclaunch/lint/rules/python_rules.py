"""Rules about the Python files that a script launches."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from hpclaunch.amounts import counted
from hpclaunch.lint.bind_lists import ranks_of
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import Launch, python_files
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import program_words, worker_run
from hpclaunch.plan.program import parsed_program
from hpclaunch.scheduler.directive_reader import RequestedResources, last_directive

_CALLBACKS: dict[str, dict[str, Any]] = TABLE["callbacks"]
"""Callback of Horovod 0.28 -> ``names`` of its arguments, in order, and how many are ``required``."""

_IMPORTS_LIGHTNING = re.compile(r"(?m)^\s*(import|from) (pytorch_lightning|lightning)\b")
_INTERACTIVE = ("bash", "interactive")
"""Names of jobs in which Lightning does not look at Slurm."""
_OWN_TASKS = re.compile(r"(?:unset\s.*|-u ?)SLURM_(?:NTASKS|JOB_NAME)|\bSLURM_(?:NTASKS\w*|JOB_NAME)=")
_OTHER_PLUGIN = re.compile(r" --(trainer\.plugins|print_config|help)\b")


@rule("horovod-callback-arguments")
def horovod_callback_arguments(context: Context) -> Iterator[Violation]:
    for name, source in _launched(context, context.script.launches):
        for call, message in _wrong_calls(source) if "horovod" in source else ():
            line = source.encode().split(b"\n")[call.lineno - 1]
            column = len(line[: call.col_offset].decode(errors="replace")) + 1  # ast counts bytes
            yield Violation(call.lineno, message, file=name, column=column)


@rule("gpus-without-rank")
def gpus_without_rank(context: Context) -> Iterator[Violation]:
    started = [one for one in context.script.steps() if not one.trivial]
    if len(started) == 1 and started[0].by_launcher and not context.requested.gpus_per_task:
        ranks, gpus = _ranks_and_gpus(context, started[0])
        if 0 < ranks < gpus and _is_horovod(context, started[0]):
            message = f"{counted(ranks, 'rank')} of Horovod, {gpus} GPUs requested, some have no rank"
            yield Violation(started[0].line, message)


def _ranks_and_gpus(context: Context, launch: Launch) -> tuple[int, int]:
    """Return the ranks of a launch and the GPUs of the job; 0 where a number is not known."""
    nodes = context.requested.node_count or 1
    ranks = context.script.number(launch, "ntasks", "n", "np") or nodes * (ranks_of(context, launch) or 0)
    return ranks, nodes * (context.requested.gpus_of_node or 0)


def _is_horovod(context: Context, launch: Launch) -> bool:
    """Tell whether horovodrun starts the program, or its words or its file name Horovod."""
    sources = (source for _, source in _launched(context, [launch]))
    texts = [launch.launcher, *program_words(context.script, launch), *sources]
    return re.search("(?i)horovod|hvd", " ".join(texts)) is not None


def _launched(context: Context, launches: Iterable[Launch]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each Python file that is launched and that can be read, once."""
    words = [word for launch in launches for word in python_files(launch)]
    names = dict.fromkeys(context.script.variables.expand(word).text for word in words)
    for name in filter(None, names):
        source = context.files.text(name)
        if source:
            yield context.files.shown(name), source


@rule("lightning-tasks")
def lightning_tasks(context: Context) -> Iterator[Violation]:
    named = last_directive(context.directives, "job-name")
    counted = any(map(context.script.has_option, ("ntasks", "ntasks-per-node")))
    if not counted or (named is not None and named.value in _INTERACTIVE):
        return
    for launch in context.script.launches:
        own = launch.option("ntasks", "n", "ntasks-per-node") or worker_run(context.script, launch)
        sees_tasks = launch.launcher in ("python", "srun") and not own
        options = _of_lightning(context, launch) if sees_tasks else None
        if options is not None and (wrong := _tasks_of_lightning(context.requested, options)):
            yield Violation(launch.line, *wrong)


def _of_lightning(context: Context, launch: Launch) -> str | None:
    """Return the options of a program that surely uses Lightning's Trainer; None: it may not."""
    words = " ".join(program_words(context.script, launch))
    if _OTHER_PLUGIN.search(words) or _OWN_TASKS.search(context.script.text):
        return None
    if re.search(r"(^| )--trainer\.\w", words):
        return words
    source = "\n".join(text for _, text in _launched(context, [launch]))
    uses = _IMPORTS_LIGHTNING.search(source) and re.search(r"\b(Trainer|Fabric)\(", source)
    return words if uses and not re.search(r"Environment\(|plugins=", source) else None


def _tasks_of_lightning(requested: RequestedResources, options: str) -> tuple[str, str, Severity] | None:
    """Return what is wrong with the tasks, the remedy and its severity; None: nothing, or not known."""
    given = re.search(r"--(?:trainer\.)?(?:devices|gpus)[= ](\d{1,3})(?= |$)", options)
    devices, each, tasks = int(given[1]) if given else 0, requested.tasks_per_node, requested.tasks
    remedy = f"write --ntasks-per-node={devices or 'N'}, and srun before the program"
    if each:
        message = f"Lightning ends at once: {devices} devices, and {each.text}"
        return (message, remedy, "error") if devices not in (0, each.value) else None
    if tasks and tasks.value > 1:
        return f"Lightning ends at once: {tasks.text} without --ntasks-per-node", remedy, "error"
    message = f"Lightning trains on one of {devices} devices, with a part of the data: {tasks and tasks.text}"
    return (message, remedy, "warning") if devices > 1 else None


@rule("data-parallel")
def data_parallel(context: Context) -> Iterator[Violation]:
    if context.requested.all_tasks < 2:
        return
    for name, source in _launched(context, context.script.launches):
        match = re.search(r"(?m)^([^#\n]*)\bDataParallel\(", source)
        if match and "DistributedDataParallel(" not in source:
            line = source.count("\n", 0, match.start()) + 1
            column = len(match[1]) + 1
            yield Violation(line, "DataParallel works in one process", file=name, column=column)


def _wrong_calls(source: str) -> Iterator[tuple[ast.Call, str]]:
    for call in (node for node in ast.walk(parsed_program(source)) if isinstance(node, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        row = _CALLBACKS.get(called)
        if row and (message := _mistake(call, row["names"].split(), row["required"])):
            yield call, f"{called}: {message}"


def _mistake(call: ast.Call, names: list[str], required: int) -> str | None:
    """Return what is wrong with a call; None: nothing, or it is not known (``*args``)."""
    given = [keyword.arg for keyword in call.keywords if keyword.arg]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    if starred or len(given) < len(call.keywords):
        return None
    if unknown := sorted({*given} - {*names}):
        return f"no argument {', '.join(unknown)}; it takes {', '.join(names)}"
    missing = sorted({*names[len(call.args) : required]} - {*given})
    return f"{', '.join(missing)} is required" if missing else None
