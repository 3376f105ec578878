"""Rules about the Python files that a script launches."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import attrgetter

from hpclaunch.amounts import counted
from hpclaunch.lint.bind_lists import launch_ranks_per_node, ranks_of
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.launch_lines import Launch, python_files
from hpclaunch.lint.lint_rule import Context, Severity, Violation, rule
from hpclaunch.lint.program_words import program_words, worker_run
from hpclaunch.plan.program import parsed_program
from hpclaunch.scheduler.directive_reader import RequestedResources, last_directive
from hpclaunch.shell.shell_syntax import Word

_BY_LOCAL_RANK: dict[str, str] = TABLE["gpu_by_local_rank"]


@rule("horovod-callback-arguments")
def horovod_callback_arguments(context: Context) -> Iterator[Violation]:
    for name, source, before in _launched(context, context.script.launches):
        for call, message in _wrong_calls(source) if "horovod" in source else ():
            line = source.encode().split(b"\n")[call.lineno - 1]
            column = len(line[: call.col_offset].decode(errors="replace")) + 1  # ast counts bytes
            yield Violation(before + call.lineno, message, file=name, column=column if name else None)


@rule("gpu-number-of-node")
def gpu_number_of_node(context: Context) -> Iterator[Violation]:
    for launch in context.script.launches:
        if gpus := _hidden_gpus(context, launch):
            sees = f"each rank sees {counted(gpus, 'GPU')}, counted from 0"
            yield from _in_texts(launch, sees)
            yield from _in_python(context, launch, sees)


def _in_texts(launch: Launch, sees: str) -> Iterator[Violation]:
    """Report GPUs by the rank's number on its node in what the shell of each rank reads."""
    for text, line in launch.texts_for_ranks():
        if found := re.search(_BY_LOCAL_RANK["shell"], text):
            yield Violation(line + text.count("\n", 0, found.start()), f"{found[0]}: {sees}")


def _in_python(context: Context, launch: Launch, sees: str) -> Iterator[Violation]:
    """Report the first GPU by the rank's number on its node in each text of Python that is launched."""
    given = any(re.search(_BY_LOCAL_RANK["given"], text) for text, _ in launch.texts_for_ranks())
    names = "(SLURM_LOCALID|LOCAL_RANK)" if given else "SLURM_LOCALID"
    severity: Severity | None = "error" if launch_ranks_per_node(context, launch) else None
    workers = worker_run(context.script, launch) is not None  # these set LOCAL_RANK themselves
    for name, source, before in _launched(context, () if workers else [launch]):
        chosen = re.search(_BY_LOCAL_RANK["chosen"], context.script.text + source)
        for call in [] if chosen else _by_local_rank(source, names)[:1]:
            message = f"{ast.unparse(call)[:80]}: {sees}"
            yield Violation(before + call.lineno, message, severity=severity, file=name)


def _hidden_gpus(context: Context, launch: Launch) -> int:
    """Return the GPUs of each rank where Slurm hides those of the node's other ranks from it, else 0."""
    script, job, bind = context.script, context.requested, launch.srun_option("gpu-bind")
    bound = re.fullmatch(r"(?:v(?:erbose)?,)?(?:single:\d+|per_task:(\d+))", script.value(bind).text or "")
    gpus = script.number(launch, "gpus-per-task") or (job.gpus_per_task.value if job.gpus_per_task else 0)
    if bind:
        gpus = int(bound[1] or 1) if bound else 0
    ranks = launch_ranks_per_node(context, launch) or job.all_tasks // (job.node_count or 1)
    hidden = launch.launcher == "srun" and gpus < ranks
    return gpus * hidden


def _by_local_rank(source: str, names: str) -> list[ast.Call]:
    """Return the calls that take the rank's number on its node for that of a GPU, in order."""
    nodes, number = [*ast.walk(parsed_program(source))], _BY_LOCAL_RANK["variable"].replace("NAMES", names)
    made = defaultdict[str, list[str]](list)
    for one in (each for each in nodes if isinstance(each, ast.Assign)):
        made[ast.unparse(one.targets[0])].append(ast.unparse(one.value))
    for name, values in [*made.items()] * 2:  # twice: of a name that a later one is made of
        if all(map(_form("python", number).fullmatch, values)):
            number += f"|{re.escape(name)}"
    calls = sorted((one for one in nodes if isinstance(one, ast.Call)), key=attrgetter("lineno"))
    return [one for one in calls if _form("calls", number).fullmatch(ast.unparse(one))]


def _form(name: str, number: str) -> re.Pattern[str]:
    """Return a form of Python; ``number``: that of the rank's number on its node."""
    whole = _BY_LOCAL_RANK[name].replace("DEVICE", _BY_LOCAL_RANK["python"])
    return re.compile(whole.replace("NUMBER", number))


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
    sources = (source for _, source, _ in _launched(context, [launch]))
    texts = [launch.launcher, *program_words(context.script, launch), *sources]
    return re.search("(?i)horovod|hvd", " ".join(texts)) is not None


def _launched(context: Context, launches: Iterable[Launch]) -> Iterator[tuple[str | None, str, int]]:
    """Yield file, text and the line before it, of each Python file that is launched, and of ``-c TEXT``."""
    started = [*launches]
    words = (word for launch in started for word in python_files(launch))
    for name in filter(None, dict.fromkeys(context.script.variables.expand(word).text for word in words)):
        if source := context.files.text(name):
            yield context.files.shown(name), source, 0
    yield from ((None, word.text or "", word.line - 1) for word in _texts_behind_c(started))


def _texts_behind_c(launches: list[Launch]) -> list[Word]:
    """Return the texts that Python, or a shell, gets as ``-c TEXT``."""
    commands = [each for one in launches for each in (one.command, *one.command.inner)]
    return [word for one in commands for before, word in pairwise(one.words) if before.raw == "-c"]


@rule("lightning-tasks")
def lightning_tasks(context: Context) -> Iterator[Violation]:
    named = last_directive(context.directives, "job-name")
    counted = any(map(context.script.has_option, ("ntasks", "ntasks-per-node")))
    if not counted or (named is not None and named.value in ("bash", "interactive")):
        return  # in jobs of these names Lightning does not look at Slurm
    for launch in context.script.launches:
        own = launch.option("ntasks", "n", "ntasks-per-node", "nodes") or worker_run(context.script, launch)
        sees_tasks = launch.launcher in ("python", "srun") and not own
        options = _of_lightning(context, launch) if sees_tasks else None
        if options is not None and (wrong := _tasks_of_lightning(context.requested, options)):
            yield Violation(launch.line, *wrong)


def _of_lightning(context: Context, launch: Launch) -> str | None:
    """Return the options of a program that surely uses Lightning's Trainer; None: it may not."""
    words = " ".join(program_words(context.script, launch))
    if re.search(TABLE["other_plugin"], words) or re.search(TABLE["own_tasks"], context.script.text):
        return None
    if re.search(r"(^| )--trainer\.\w", words):
        return words
    source = "\n".join(text for _, text, _ in _launched(context, [launch]))
    uses = re.search(TABLE["imports_lightning"], source) and re.search(r"\b(Trainer|Fabric)\(", source)
    own = re.search(r"Environment\(|plugins=|spawn|notebook|fork", source)
    return f"{_of_trainer(source)} {words}" if uses and not own else None


def _of_trainer(source: str) -> str:
    """Return devices and nodes of the Trainer in a program as options; empty where they are not known."""
    calls = [one for one in _calls(source) if re.search(r"\b(Trainer|Fabric)$", ast.unparse(one.func))]
    given = {one.arg: ast.unparse(one.value).strip("'") for call in calls for one in call.keywords}
    sure = len(calls) == 1 and "devices" in given and None not in given
    return f"--devices={given['devices']} --num_nodes={given.get('num_nodes', 1)}" if sure else ""


def _tasks_of_lightning(requested: RequestedResources, options: str) -> tuple[str, str, Severity] | None:
    """Return what is wrong with the tasks, the remedy and its severity; None: nothing, or not known."""
    given = re.findall(r"--(?:trainer\.)?(devices|gpus|num_nodes)[= ](\d{1,3})(?= )", f"{options} ")
    found = {name.replace("gpus", "devices"): int(number) for name, number in reversed(given)}
    each, tasks = requested.tasks_per_node, requested.tasks
    devices = found.get("devices", each.value if each else 0)
    remedy = f"write --ntasks-per-node={devices or 'N'}, and srun before the program"
    if wrong := _refused_by_lightning(requested, devices, found.get("num_nodes")):
        return f"Lightning ends at once: {wrong}", remedy, "error"
    message = f"Lightning trains on one of {devices} devices, with a part of the data: {tasks and tasks.text}"
    return (message, remedy, "warning") if devices > 1 and tasks and tasks.value == 1 else None


def _refused_by_lightning(requested: RequestedResources, devices: int, nodes: int | None) -> str:
    """Return which numbers Lightning refuses; empty: none. One device alone needs no others."""
    each, tasks, job = requested.tasks_per_node, requested.tasks, requested.node_count
    if each is None:
        return f"{tasks.text} without --ntasks-per-node" if tasks and tasks.value > 1 else ""
    if devices not in (1, each.value):
        return f"{devices} devices, and {each.text}"
    return (
        f"num_nodes={nodes}, and the job has {job}"
        if devices > 1 and nodes and job not in (None, nodes)
        else ""
    )


@rule("data-parallel")
def data_parallel(context: Context) -> Iterator[Violation]:
    if context.requested.all_tasks < 2:
        return
    for name, source, before in _launched(context, context.script.launches):
        match = re.search(r"(?m)^([^#\n]*)\bDataParallel\(", source)
        if match and "DistributedDataParallel(" not in source:
            line = before + source.count("\n", 0, match.start()) + 1
            column = len(match[1]) + 1 if name else None
            yield Violation(line, "DataParallel works in one process", file=name, column=column)


def _calls(source: str) -> list[ast.Call]:
    """Return the calls in a program."""
    return [one for one in ast.walk(parsed_program(source)) if isinstance(one, ast.Call)]


def _wrong_calls(source: str) -> Iterator[tuple[ast.Call, str]]:
    for call in _calls(source):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        row = TABLE["callbacks"].get(called)
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
