"""Rules about what a script starts, compared with what it requests: tasks, CPUs, GPUs, steps, exit status."""

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from math import inf

from hpclaunch.amounts import counted
from hpclaunch.binding.judge_masks import judge
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.bind_lists import bind_option, launch_ranks_per_node
from hpclaunch.lint.known_variables import PREPARES, SHOWS, TABLE
from hpclaunch.lint.launch_lines import STOPS, Launch, python_files
from hpclaunch.lint.lint_rule import Context, Severity, Violation, also_at, rule
from hpclaunch.lint.program_words import partly_expanded, program_words, runs, torch_run
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.shell.shell_syntax import Assignment, Command, Word
from hpclaunch.topology.node_topology import NodeTopology

_STARTS_ITSELF = re.compile(rf"(?i)(?<![a-z])({'|'.join(TABLE['starts_ranks'].split())})")
_ENDING = name_set(TABLE["ends"])
_LIMITS, _OWN_SLOTS = (TABLE[name].split() for name in ("limits", "own_slots"))
_FORMS = {name: re.compile(form) for name, form in TABLE["forms_of_steps"].items()}
_ONE_THREAD = re.compile(rf"(\S*/)?({TABLE['one_thread']})( |$)")
_NO_PROGRAM = re.compile("|".join(TABLE["starts_none"]))
_COMMAND = re.compile("|".join(TABLE["of_a_command"]))


def _real(script: Script) -> list[Launch]:
    """Return the launches of the job's own program."""
    return [launch for launch in script.steps() if not launch.trivial and not launch.command.depth]


@rule("one-process-for-tasks")
def one_process_for_tasks(context: Context) -> Iterator[Violation]:
    script = context.script
    tasks, started = context.requested.all_tasks, _real(script)
    is_array = any(map(script.has_option, ("array", "J")))
    if tasks < 2 or len(started) != 1 or is_array:
        return
    nodes = context.requested.node_count or 1
    if nodes > 1 or not _takes_all(context, started[0]):
        over = f"{tasks} tasks on {f'{nodes} nodes' if nodes > 1 else 'one node'}"
        message = f"{over} are requested, this line starts one process"
        found = Violation(started[0].line, message, severity=_if_cores(context, started[0]))
        yield from [] if _starts_others(script, started[0]) else [found]


def _takes_all(context: Context, launch: Launch) -> bool:
    """Tell whether one process takes what one node gives the job: it chooses its GPUs, or has no GPUs."""
    words = program_words(context.script, launch)
    option = re.compile(r"(?i)--?(num[-_])?(gpus?|devices)([-_]?ids?)?(=|$)")
    return any(map(option.match, words)) or not (context.requested.gpus_of_node or may_spread(context))


def _if_cores(context: Context, launch: Launch) -> Severity | None:
    """Return a note where the tasks may be the cores of one process, but not those of Lightning."""
    several = (context.requested.node_count or 1) > 1 or may_spread(context, TABLE["more_than_one_node"])
    named = "lightning" in " ".join(program_words(context.script, launch)).lower()
    ranks = context.requested.all_tasks == context.requested.gpus_of_node
    return None if several or named or ranks else "note"


def may_spread(context: Context, fewest: int = 0) -> bool:
    """Tell whether the scheduler may place the tasks of the job, at least ``fewest``, on several nodes."""
    one_node = TABLE["spreads_tasks"].get(context.kind)
    open_count = context.requested.node_count is None and not context.owns_node
    several = open_count and context.requested.all_tasks >= fewest
    return bool(several and one_node and not re.search(one_node, context.script.text))


def _starts_others(script: Script, launch: Launch) -> bool:
    """Tell whether a launcher or another command may start processes, or the program itself further ones."""
    elsewhere = any(one.by_launcher for one in script.launches) or any(map(may_launch, script.commands))
    names = [one.name for one in script.commands]
    itself = _STARTS_ITSELF.search(" ".join([*program_words(script, launch), *names]))
    return bool(elsewhere or itself or not python_files(launch) or torch_run(script, launch))


def may_launch(command: Command) -> bool:
    """Tell whether a command may start ranks: a script, or a program in a variable."""
    raw, text = (command.words[0].raw, command.words[0].visible) if command.words else ("", "")
    by_name = raw in ("ssh", "pdsh") or text.endswith((".sh", ".csh"))
    return by_name or raw.startswith(("$", "./", "/", '"$'))


@rule("launcher-foreign")
def launcher_foreign(context: Context) -> Iterator[Violation]:
    script = context.script
    for launch in script.launches if not script.unread else ():
        foreign = TABLE["foreign_launchers"].get(launch.launcher, "").split()
        if script.kind in foreign and not (launch.command.path or launch.command.depth):
            yield Violation(launch.line, f"{launch.name} starts nothing in a job of {script.kind}")
            return


@rule("submit-folder-not-entered")
def submit_folder_not_entered(context: Context) -> Iterator[Violation]:
    script = context.script
    options = "\n".join(one.text for one in script.active_directives)
    given = re.search(TABLE["own_folder"], options) or script.variables.sources_unknown
    code = re.sub(r"(?m)^[ \t]*#(?!PBS).*", "", script.text)
    if given or not script.active_directives or re.search(r"\b(cd|pushd)\b|wdir", code):
        return
    for line, word in _named_files(script)[:1]:
        name = partly_expanded(script, word)
        if not name.startswith(("/", "~", "$", "?")):
            message = f"{name} is looked for in the home folder, where the job starts"
            yield Violation(line, message + _switched_off(script, "cd"))


def _named_files(script: Script) -> list[tuple[int, Word]]:
    """Return lines and words that name files which are run."""
    named: list[tuple[int, Word]] = []
    for one in _real(script):
        own = (word for word in one.program[:1] if word.visible.startswith(("./", "../")))
        inputs = (each.target for each in one.command.redirects if each.operator == "<")
        named += [(one.line, word) for word in (*python_files(one), *own, *inputs)]
    named += [(one.line, one.words[0]) for one in script.commands if one.name.startswith("./")]
    return [*named, *_files_read(script)]


def _files_read(script: Script) -> Iterator[tuple[int, Word]]:
    """Yield lines and words that name the files of other interpreters than Python."""
    for one in script.commands:
        form = TABLE["reads_files"].get(one.name, "(?!)")
        yield from ((one.line, word) for word in one.words[1:] if re.fullmatch(form, word.raw))


@rule("one-cpu-per-gpu-rank")
def one_cpu_per_gpu_rank(context: Context) -> Iterator[Violation]:
    requested = context.requested
    gpus = requested.gpus or requested.gpus_per_node or requested.gpus_per_task
    if gpus is None or not gpus.value or _asks_for_cpus(context) or _gets_cpus(context):
        return
    started = [" ".join(program_words(context.script, one)) for one in _real(context.script)]
    if not _needs_one_core(context.script, started):
        message = f"{gpus.text} requests GPUs, but nothing requests more than one CPU per task"
        yield Violation(gpus.line, message, None, None if _trains(context, started) else "note")


def _needs_one_core(script: Script, started: list[str]) -> bool:
    """Tell whether all programs that a script starts have one thread by default."""
    return bool(started) and all(map(_ONE_THREAD.match, started)) and "OMP_NUM_THREADS" not in script.text


def _trains(context: Context, started: list[str]) -> bool:
    """Tell whether Python runs on a node that is known: it loads data while the GPU computes."""
    return context.node is not None and any(map(_FORMS["trains"].match, started))


def _gets_cpus(context: Context) -> bool:
    """Tell whether a launch asks for CPUs, or the job has whole nodes, all CPUs of which a step gets."""
    whole = bool(context.owns_node) or any(one.role == "exclusive" for one in context.directives)
    gives = ("cpus-per-task", "cpus-per-gpu", "cpu-bind", "cpu_bind")
    return whole or any(one.option(*gives) for one in context.script.launches)


def _asks_for_cpus(context: Context) -> bool:
    """Tell whether the directives request CPUs, or there are none."""
    script, requested = context.script, context.requested
    if script.reader is None:
        return True
    many = (requested.ranks_per_node or 1) > 4 * max(1, context.requested.gpus_of_node or 1)
    return many or any(map(script.has_option, TABLE["requests_cpus"].split()))


@rule("steps-without-wait")
def steps_without_wait(context: Context) -> Iterator[Violation]:
    script = context.script
    waits_elsewhere = re.search(TABLE["waits_elsewhere"], script.text)
    for command, name in [] if waits_elsewhere else _behind(script)[-1:]:
        later = _new_after(script, command)
        twins = [one for one in later if _same_program(script, one, command)]
        if not any(_waits(script, one, command) for one in later if one not in twins):
            line = f"with line {twins[-1].line}, " if twins else ""
            message = f"{name} runs in the background, and the script ends {line}without wait"
            yield Violation(command.line, message, severity="warning" if twins else None)


def _behind(script: Script) -> list[tuple[Command, str]]:
    """Return what a batch script starts in the background, in order: launches, and programs by their path."""
    alone = [(one, words[0]) for one, words in runs(script) if _alone(script, one) and not one.depth]
    found = {one.start: (one, name) for one, name in alone if not (one.piped_in or name in SHOWS)}
    found |= {one.command.start: (one.command, one.launcher) for one in _in_background(script)}
    return [found[at] for at in sorted(found)] if script.reader else []


def _alone(script: Script, command: Command) -> bool:
    """Tell whether a command, or the group that it ends, runs in the background."""
    return command.after == "&" or bool(command.block and _FORMS["group"].match(script.text, command.end))


def _same_program(script: Script, one: Command, other: Command) -> bool:
    """Tell whether two commands start the same program, whatever its arguments."""
    started = [_texts(each.program[:2]) for each in script.launches if each.command in (one, other)]
    return len(started) == 2 and started[0] == started[1]


def _new_after(script: Script, command: Command) -> list[Command]:
    """Return the commands after one, without those that ran before it, too: they do not take long."""
    before = [_texts(one.words) for one in script.commands if one.start < command.start]
    later = [one for one in script.commands if one.start > command.end and not one.piped_in]
    return [one for one in later if one.name == "wait" or _texts(one.words) not in before]


def _texts(words: list[Word]) -> list[str]:
    return [word.visible for word in words]


def _in_background(script: Script, *launchers: str) -> list[Launch]:
    """Return the launches in the background, all or those by these launchers."""
    alone = [one for one in script.launches if not one.command.depth and script.is_posix]
    behind = [one for one in alone if end_of_pipeline(script, one.command).after == "&"]
    return [one for one in behind if not launchers or one.launcher in launchers]


def end_of_pipeline(script: Script, command: Command) -> Command:
    """Return the last command of a pipeline of plain commands; the command itself where it has none."""
    if command.after not in ("|", "|&"):
        return command
    every = script.variables.commands  # also those in the text for another shell
    later = [one for one in every if one.start > command.start and one.depth == command.depth]
    return next((one for one in later if one.after not in ("|", "|&")), command)


def _waits(script: Script, command: Command, behind: Command) -> bool:
    """Tell whether a command waits for one in the background, or runs another program for some time."""
    launches = any(one.command is command and not one.trivial for one in script.launches)
    waiting = _FORMS["takes_time"].match(" ".join([*_texts(command.words), ""]))
    again = command.name == "sleep" and command.block > behind.block
    runs = may_launch(command) or (command.words and command.name not in SHOWS)
    return bool(launches or waiting or again or runs)


@rule("steps-without-exact")
def steps_without_exact(context: Context) -> Iterator[Violation]:
    script = context.script
    steps = _exclusive_steps(context)
    if not steps:
        return
    after = _launchers_after(script, steps)
    limits = _LIMITS[:2] if "mpiexec" in after else _LIMITS  # mpirun starts its daemons by srun, on all CPUs
    first = next((one for one in steps if not one.option(*limits)), None)
    if first and (len(steps) > 1 or steps[0].command.block or after):
        yield Violation(first.line, "this step runs next to others: without --exact or --overlap one waits")


def _exclusive_steps(context: Context) -> list[Launch]:
    """Return the steps in the background that share no CPUs; none where each takes one of several nodes."""
    script, several = context.script, (context.requested.node_count or 1) > 1
    shared = script.variables.all_assignments("SLURM_OVERLAP")
    steps = [one for one in _in_background(script, "srun") if not (shared or one.option("overlap"))]
    return [] if several and all(script.number(one, "nodes") == 1 for one in steps) else steps


def _launchers_after(script: Script, steps: list[Launch]) -> set[str]:
    """Return what starts ranks after these steps began and before the script waits, apart from them.

    A step with --overlap shares the CPUs of every step, also of those without it (man srun, 24.05).
    """
    begin = steps[0].command.start
    waits = (one.start for one in script.commands if one.name == "wait" and one.start > begin)
    end = min(waits, default=len(script.text))
    others = (one for one in script.launches if one not in steps and begin < one.command.start < end)
    alone = [one.launcher for one in others if not (one.trivial or one.srun_option("overlap"))]
    return {"srun", "mpiexec"}.intersection(alone)


@rule("ranks-differ-from-tasks")
def ranks_differ_from_tasks(context: Context) -> Iterator[Violation]:
    script, tasks = context.script, _tasks(context)
    for launch in script.launches if tasks is not None else ():
        ranks = script.number(launch, "ntasks", "n", "np")
        if ranks is None or tasks is None or not _must_match(context, launch, ranks, tasks):
            continue
        message = f"{counted(ranks, 'rank')} started, {counted(tasks, 'task')} requested"
        remedy = f"{TABLE['tasks_in'].get(context.kind, 'count the slots')}, or leave the number out"
        if ranks > tasks:
            yield Violation(launch.line, message, remedy)
        elif 1 < ranks < tasks and launch.launcher == "mpiexec" and len(_real(script)) == 1:
            yield Violation(launch.line, message, remedy, "note")


def _must_match(context: Context, launch: Launch, ranks: int, tasks: int) -> bool:
    """Tell whether the number of ranks must fit the job's tasks."""
    if launch.option(*_OWN_SLOTS) or launch.trivial:
        return False
    if launch.launcher == "srun":
        each, own = context.requested.cpus_per_task, context.script.number(launch, "cpus-per-task")
        enough_cpus = ranks * (own or 1) <= tasks * (each.value if each else 1)
        return not (context.owns_node or enough_cpus)
    return launch.launcher == "mpiexec"


def _tasks(context: Context) -> int | None:
    """Return the tasks of the job; None: not requested as a number of tasks."""
    requested = context.requested
    if requested.tasks:
        return requested.tasks.value
    each, cpus = requested.tasks_per_node, requested.cpus_per_node
    if each and requested.node_count and (cpus is None or cpus.value == each.value):  # those of ppn=8
        return each.value * requested.node_count
    return None


@rule("step-takes-all-tasks")
def step_takes_all_tasks(context: Context) -> Iterator[Violation]:
    tasks, nodes = _tasks(context) or 1, context.requested.node_count or 1
    for launch in filter(_takes_tasks, context.script.launches):
        own = _nodes_of_step(context, launch)
        if own and own < min(nodes, tasks) and not re.search(TABLE["unset_tasks"], context.script.text):
            each = -(-tasks // nodes)
            one_each = each == 1 or launch.option("ntasks-per-node")
            takes = f"srun without -n takes the {tasks} tasks of the job"
            message = f"{takes}: all start on {own} of {nodes} nodes"
            alone = f", or -n {own} for one task per node" if each > 1 else ""
            remedy = f"write -n {own * each}{alone}"
            yield Violation(launch.line, message, remedy, None if one_each else "warning")


def _takes_tasks(launch: Launch) -> bool:
    """Tell whether srun starts a program with the tasks of the job, and not only something that prepares."""
    prepares = launch.trivial or any(word.visible in PREPARES for word in launch.program[:1])
    return launch.launcher == "srun" and not prepares and launch.option(*TABLE["step_tasks"]) is None


def _nodes_of_step(context: Context, launch: Launch) -> int | None:
    """Return the nodes that srun's own option names, also as ``$((SLURM_NNODES - 1))``; None: not known."""
    option, count = launch.option("nodes"), context.requested.node_count
    word = option.value.raw if option and option.value else ""
    less = re.search(r"\$\(\( *\$?\{?SLURM_(?:JOB_NUM_)?NNODES\}? *- *(\d) *\)\)", word)
    return count - int(less[1]) if less and count else context.script.number(launch, "nodes")


@rule("srun-without-program")
def srun_without_program(context: Context) -> Iterator[Violation]:
    script = context.script
    filled_in = any((script.shell.template, script.is_filled_in))
    for launch in script.launches if script.is_posix and not filled_in else ():
        words = " ".join(word.visible for word in launch.command.words)
        alone = launch.by_launcher and not launch.program and launch.options
        if alone and not (_NO_PROGRAM.search(words) or script.has_option("wrap")):
            yield Violation(launch.line, f"{launch.name} has no program: its line ends after the options")


@rule("step-over-job")
def step_over_job(context: Context) -> Iterator[Violation]:
    script, nodes, limits = context.script, context.requested.node_count or inf, _gpus_of_job(context)
    steps = _steps_in_job(script)
    if lines := [one.line for one in steps if _needs_nodes(context, one) > nodes]:
        yield Violation(lines[0], f"this step asks for more nodes than the job's {nodes}{also_at(lines)}")
    for launch, (name, most) in product(steps, limits.items()):
        gpus = _gpus_of_step(script, launch, name)
        if gpus > most:
            yield Violation(launch.line, f"this step asks for {gpus} GPUs, the job has {most}")


def _steps_in_job(script: Script) -> list[Launch]:
    """Return the launches by srun that take their nodes from the script's own job."""
    leaves = re.search(TABLE["leaves_job"], script.text)
    return [one for one in script.launches if one.launcher == "srun" and not (leaves or one.option("jobid"))]


def _gpus_of_step(script: Script, launch: Launch, name: str) -> int:
    """Return the GPUs that a step asks for by an option; 0: by none, or their number is not known."""
    text = f"{name}={script.value(launch.option(name)).text}"
    given = re.fullmatch(r"(?:gres=gpu:|gpus.*=)(?:[a-z][\w.-]*:)?(\d{1,4})", text)
    return int(given[1]) if given else 0


def _needs_nodes(context: Context, launch: Launch) -> int:
    """Return the nodes that a step needs: for fewer tasks srun takes fewer; 0: they are not known."""
    tasks = context.script.number(launch, "ntasks") or context.requested.all_tasks
    other = launch.option("het-group", "pack-group")
    return 0 if other else min(tasks, _nodes_of_step(context, launch) or 0)


def _gpus_of_job(context: Context) -> dict[str, float]:
    """Return the GPUs that a step may ask for by each option, where the directives say them surely."""
    asked, each = context.requested, context.requested.gpus_per_node or context.requested.gpus
    if each is None or "," in each.text or asked.gpus_per_task or context.owns_node:
        return {}
    nodes = asked.node_count or (inf if asked.all_tasks > 1 else 1)
    total = each.value * (nodes if asked.gpus_per_node else 1)
    return {"gres": each.value, "gpus-per-node": each.value, "gpus": total}


@rule("ranks-share-gpus")
def ranks_share_gpus(context: Context) -> Iterator[Violation]:
    script = context.script
    gpus = context.requested.gpus_of_node or context.gpus_of_whole_node
    if not gpus or context.requested.gpus_per_task or re.search(TABLE["gpu_by_rank"], script.text):
        return
    most = inf if context.requested.gpus_of_node else TABLE["most_ranks"]
    for launch in filter(partial(_starts_python, script), _real(script)):
        ranks = launch_ranks_per_node(context, launch)
        if ranks and gpus < ranks <= most:
            yield Violation(launch.line, f"{ranks} ranks per node, {counted(gpus, 'GPU')} per node")
            return


def _starts_python(script: Script, launch: Launch) -> bool:
    """Tell whether a launcher starts Python as the ranks, without torchrun between them."""
    python = any(re.fullmatch(r"(.*/)?python[\d.]*", word) for word in program_words(script, launch)[:1])
    return python and launch.by_launcher and torch_run(script, launch) is None


@rule("no-cpu-binding")
def no_cpu_binding(context: Context) -> Iterator[Violation]:
    topology, script = context.node_topology, context.script
    if topology is None or not topology.gpus:
        return
    count = len(topology.gpus)
    if re.search(r"VISIBLE_DEVICES|SLURM_CPU_BIND|taskset|numactl|sched_setaffinity", script.text):
        return
    for launch in filter(partial(_is_unbound, context), _real(script)):
        if launch_ranks_per_node(context, launch) == count and _out_of_order(topology, count):
            yield Violation(launch.line, "no CPU binding: the ranks' cores are not those next to their GPUs")
            return


def _is_unbound(context: Context, launch: Launch) -> bool:
    """Tell whether srun, or PALS' mpiexec, starts ranks and binds neither CPUs nor GPUs."""
    bound = bind_option(launch) or launch.option("gpu-bind", "gpus-per-task")
    pals = context.profile is not None and context.profile.scheduler.launcher == "pals"
    return launch.launcher == ("mpiexec" if pals else "srun") and bound is None


@lru_cache(maxsize=4)  # one per site
def _out_of_order(topology: NodeTopology, ranks: int) -> bool:
    """Tell whether cores that are given out in order are far from the GPUs."""
    cores = [core.cpus[0] for core in topology.cores if core.cpus[0] in topology.usable]
    each = max(1, len(cores) // ranks)
    listed = ",".join(str(cores[rank * each]) for rank in range(ranks) if rank * each < len(cores))
    return any(one.problem == "wrong-gpu" for one in judge(topology, "map", listed).findings)


@rule("nothing-started")
def nothing_started(context: Context) -> Iterator[Violation]:
    script, stored = context.script, _stored(context.script)
    commands = [one for one in script.commands if one.words]
    if not (script.active_directives or stored) or _starts_something(script, commands):
        return
    message = f"no command of the script starts a program{_switched_off(script)}"
    for one in stored[:1]:
        says = f"{message}; the text in {one.name} is never run"
        yield Violation(one.line, says, f'write eval "${one.name}", or the command itself')
    if not stored:
        yield Violation(None, message, severity=None if _was_to_start(script, commands) else "note")


def _starts_something(script: Script, commands: list[Command]) -> bool:
    """Tell whether a script may start a program, only shows its GPUs, or has commands to be filled in."""
    unread = script.shell.misplaced or not script.is_posix
    if script.launches or unread or any(map(_runs_something, commands)):
        return True
    if not commands:
        return bool(script.shell.placeholders)
    return any(one.name in ("nvidia-smi", "rocm-smi") for one in commands) and not _switched_off(script)


def _was_to_start(script: Script, commands: list[Command]) -> str | None:
    """Return a comment that holds a launch or, where there is no command at all, stands for one."""
    behind = script.text.split("\n")[script.active_directives[-1].line :]
    held = re.search(r"(?m)^\s*#+\s*(?!#|SBATCH|PBS|BSUB)\w", "\n".join(behind)) if not commands else None
    return held[0] if held else _switched_off(script)


def _stored(script: Script) -> list[Assignment]:
    """Return the variables that hold a command and are never read, in a script that has a job's variables."""
    if not (script.active_directives or re.search(r"\b(TASK_ID|SLURM_|PBS_|SGE_|LSB_)", script.text)):
        return []
    unread = script.variables.assignments.keys() - script.variables.used - script.variables.exported
    made = (one for name in sorted(unread) for one in script.variables.assignments[name])
    return [one for one in made if one.value and _COMMAND.match(f"{one.name}={one.value.visible}")]


def _switched_off(script: Script, names: str = "srun|mpirun|mpiexec|python3?|torchrun") -> str:
    """Return where a comment holds a command of such a name, as a part of a message."""
    off = re.search(rf"(?m)^\s*#+\s*({names})\s", script.text)
    return f"; line {script.line_at(off.start(1))} is a comment" if off else ""


def _runs_something(command: Command) -> bool:
    """Tell whether a command runs a program: its own, a sourced script, a transfer of files."""
    words = [word.raw for word in command.words]
    if command.name not in PREPARES - {"sleep"}:
        return True
    if command.name in (".", "source", "eval"):
        return not re.search(r"activate|conda|profile|env|setup|init", " ".join(words))
    moves = command.name in ("cp", "mv", "rm") and len(words) > 3
    return moves or (command.name in ("conda", "mamba", "pip") and words[1:2] not in (["activate"], []))


@rule("status-lost")
def status_lost(context: Context) -> Iterator[Violation]:
    script = context.script
    launches = _real(script)
    if not launches or script.reader is None or _handles_errors(script):
        return
    launch = launches[-1]
    later = _after(script, launch.command)
    read = {"?", "PIPESTATUS"} & script.uses_after(launch.command.start)
    if later and _is_plain(launch.command, later) and all(map(_hides, later)) and not read:
        by = f"{later[-1].name} on line {later[-1].line}"
        remedies = {"&": "write `wait $PID || exit` for each", "||": "write `|| { echo failed; exit 1; }`"}
        remedy = remedies.get(launch.command.after)
        meant: Severity | None = "note" if later[-1].name == "exit" else None
        message = f"the status of {launch.name} is lost: {by} ends the script"
        yield Violation(launch.line, message, remedy, meant)


def _after(script: Script, command: Command) -> list[Command]:
    """Return the commands after a command that do something."""
    later = [one for one in script.commands if one.start > command.start and not one.depth]
    return [one for one in later if one.words or one.assignments]


def _is_plain(command: Command, later: list[Command]) -> bool:
    """Tell whether a command is in no pipe, condition or function; it may be in a loop.

    Behind one in the background is ``wait`` without a process, whose status is 0 (POSIX, wait).
    """
    if command.piped_out or command.function or command.condition:
        return False
    waited = command.after == "&" and any(_texts(one.words) == ["wait"] for one in later)
    printed = command.after == "||" and later[0].name in ("echo", "printf")
    return waited or printed or command.after in ("\n", ";")


def _hides(command: Command) -> bool:
    """Tell whether a command after a launch only reports or cleans up."""
    words = [word.raw for word in command.words]
    stops = STOPS.match(" ".join(words)) or words in (["exit", "0"], ["wait"])
    return bool(stops or command.name in _ENDING or (not words and command.assignments))


def _handles_errors(script: Script) -> bool:
    """Tell whether the script ends at errors, or it or the program that fills it in may handle them."""
    at_errors = script.on_from("e", "errexit") < inf or script.is_filled_in
    return at_errors or not script.is_posix or any(one.name == "trap" for one in script.commands)
