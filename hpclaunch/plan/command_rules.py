"""Commands, and launchers in them, that cannot work, and options without effect on a job. Pure."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from hpclaunch.errors import note_text
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.plan import script_commands, worker_launchers
from hpclaunch.plan.frameworks import deepspeed_config
from hpclaunch.plan.layout import JobLayout, LaunchPlan
from hpclaunch.plan.program import python_target
from hpclaunch.plan.request import NOT_GIVEN, JobRequest, Problem, problem
from hpclaunch.plan.script_body import plugin_is_open
from hpclaunch.plan.script_commands import ScriptCommand, named_shell, option_values, shell_target, unwrap
from hpclaunch.plan.software_choice import software_files
from hpclaunch.plan.startup_plan import why_no_stands
from hpclaunch.site.schema import SiteProfile
from hpclaunch.walltime import format_walltime

_OPERATORS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"}
_WORD = package_constants("plan/forms.json", "command_rules")
_FORM = package_patterns("plan/forms.json", "command_rules")


def command_problems(job: JobLayout) -> Iterator[Problem]:
    """Yield what is wrong with the words of a command, given its ranks."""
    if job.request.command.bundled:
        return
    argv = job.request.command.argv
    line = shlex.quote(" ".join(argv))
    if len(argv) == 1 and re.search(r"\s", argv[0].strip()):
        yield problem("command: one word", argv=argv, line=line)
    if found := [word for word in argv if word in _OPERATORS]:
        yield problem("command: operator", word=found[0], line=line)
    if re.match(r"[A-Za-z_]\w*=", argv[0]):
        yield problem("command: variable", word=argv[0], words=shlex.join(argv))
    if (name := PurePosixPath(argv[0]).name) in ("sbatch", "qsub", "bsub", "salloc"):
        yield problem("command: submits a job", program=name)
    yield from _launcher_problems(job)


def command_notes(argv: tuple[str, ...], directives: str | None) -> tuple[str, ...]:
    """Return notes about the words before a program.

    ``directives``: how the directives begin that the started script has. Sources: conda/cli/main_run.py
    (``--no-capture-output``, from 4.9 on), conda's issue 10351 (signals), man nohup; ranks of Open MPI 5.0.11
    have a terminal as stdout, where nohup was seen to write into its file.
    """
    started, notes = unwrap(argv), []
    if "nohup" in started.wrappers:
        notes.append(note_text("command: nohup"))
    if started.python == "conda run":
        if not {"-s", "--no-capture-output", "--live-stream"}.intersection(started.options):
            notes.append(note_text("conda run: output"))
        notes.append(note_text("conda run: signals"))
    if directives:
        notes.append(note_text("command: batch script", directives=directives))
    return tuple(notes)


def needed_files(request: JobRequest) -> tuple[str, ...]:
    """Return the paths, from the job's folder, that the job cannot do without.

    They are the image of a container, a virtual environment, the Python file or script that the command
    starts, a program with a relative path, and configuration files. In a container absolute paths may be the
    image's.
    """
    software = software_files(request.environment)
    if request.command.bundled:
        return software
    program = _program_files(request.command.argv)
    if request.environment is not None and request.environment.container:
        program = [path for path in program if not path.startswith("/")]
    return tuple(dict.fromkeys((*software, *program)))


def _program_files(argv: tuple[str, ...]) -> list[str]:
    started, config = unwrap(argv), deepspeed_config(argv)
    named = (file for option, file in option_values(argv) if re.fullmatch(_WORD.config_option, option))
    given = [config] if config else []
    paths = [*_launched_files(argv, started.at), *given, *filter(_FORM.config_file.fullmatch, named)]
    # Where a wrapper changes the folder, the program does not look from the job's.
    return [path for path in paths if path.startswith("/")] if started.moved else paths


def _launched_files(argv: tuple[str, ...], at: int) -> list[str]:
    """Return the files that a command runs, ``at`` being its program; an address is none."""
    targets = (python_target(argv), shell_target(argv) if named_shell(argv) else None)
    paths = [target.file for target in targets if target is not None and target.file]
    paths += [word for word in (argv[0], argv[at]) if "/" in word and not word.startswith("/")]
    return [path for path in paths if "://" not in path]


def _launcher_problems(job: JobLayout) -> Iterator[Problem]:
    """Yield what is wrong with the launcher that a command begins with, and with its program's sizes."""
    request = job.request
    yield from _trainer(job)
    found = worker_launchers.find_launcher(request.command.argv)
    if found is None and request.as_ranks:
        where = request.command.config.get(f"{worker_launchers.IN_SCRIPT}.where")
        yield problem("as-ranks: no launcher", there=f" there: {where}" if where else "")
    found = found or worker_launchers.launcher_in_script(request)
    if found is None:
        return
    yield from _without_program(request.command.argv, found)
    if job.started is not None:
        yield from _contradictions(request, found)
        yield from _distributed_type(job, found)
        yield from _rendezvous(job, found)
    elif job.launched is None and _starts_again(job, found):
        yield _in_each_rank(job, found)


def _without_program(argv: tuple[str, ...], found: worker_launchers.Started) -> Iterator[Problem]:
    """Yield a problem where no word can be a program, not even one behind an option that is not known."""
    if found.launcher.per_node and not found.tail and not any(set("./").intersection(each) for each in argv):
        yield problem("command: no program", words=shlex.join(argv))


def script_problems(plan: LaunchPlan, commands: Iterable[ScriptCommand]) -> tuple[Problem, ...]:
    """Return which commands of the job's script start processes again in each of its ranks."""
    found = []
    for where, words in () if plan.started else commands:
        started = worker_launchers.find_launcher(words)
        if started and (problem := _in_script(plan, started)):
            found.append(msgspec.structs.replace(problem, message=f"{where}: {problem.message}"))
    return tuple(found)


def _in_script(plan: LaunchPlan, found: worker_launchers.Started) -> Problem | None:
    """Return why a launcher inside a script is wrong; one that starts a node's workers may run once on it."""
    row = found.launcher
    if not row.per_node or plan.tasks_per_node > 1:
        return _in_each_rank(plan, found) if _starts_again(plan, found) else None
    if plan.nodes == 1 or found.options.keys() & {*row.meets} - {"--standalone"}:
        return None
    return problem("launcher: alone on each node", launcher=row.name, nodes=plan.nodes)


def launcher_notes(job: JobLayout) -> Iterator[str]:
    """Yield what a job without its command's launcher loses, and what the job itself replaces."""
    request = job.request
    found, config = job.launched, request.command.config
    if found is None:
        return
    row = found.launcher
    if request.as_ranks:
        if lost := _lost(found, config):
            yield f"--as-ranks: {row.name} does not run, so nothing reads {', '.join(lost)}"
        return
    yield from _unbound(job, found)
    own = {"main_process_ip", "main_process_port", "machine_rank"}.intersection(config)
    if own and request.nodes not in (None, 1):
        yield f"{config['file']}: {', '.join(sorted(own))} are those of this job's nodes"


def _unbound(job: JobLayout, found: worker_launchers.Started) -> Iterator[str]:
    """Yield why the workers of a launcher are not bound."""
    row, request = found.launcher, job.request
    for option in ("--no_python", "--run_path"):
        if option in found.options and option not in row.contradicts:
            yield f"{row.name} {option} starts no Python itself: its workers are neither bound nor proved"
    if not (job.binding or job.at_start) and request.binding != "off":
        yield f"the ranks that {row.name} starts on a node share its cores: {request.site} has no binding"


def _lost(found: worker_launchers.Started, config: Mapping[str, str]) -> list[str]:
    """Return the options and keys that only the launcher reads, without those of sizes and rendezvous."""
    row = found.launcher
    ours = {row.nodes, *row.workers, row.processes, row.node_rank, *row.meets, *row.fills, "--config_file"}
    options = [each for each in found.options if each not in ours | {"-m", "--module"}]
    return [*options, *(each for each, value in config.items() if _is_setting(each, value))]


def _is_setting(key: str, value: str) -> bool:
    """Whether a key of a configuration file changes the training."""
    about = ("file", "compute_environment", "same_network", "rdzv_backend", "main_training_function", "debug")
    given = key not in (*about, *_WORD.of_the_job) and not key.startswith(("trainer.", "tpu_"))
    return given and value.lower() not in ("no", "false", "none", "all", "")


def _trainer(job: JobLayout) -> Iterator[Problem]:
    """Yield the sizes that Lightning's Trainer is given and that the job has not."""
    config = job.request.command.config
    for key, option, number in (
        ("devices", "--tasks-per-node", job.tasks_per_node),
        ("num_nodes", "--nodes", job.nodes),
    ):
        said = config.get(f"trainer.{key}")
        if said is not None and int(said) != number:
            where = config["trainer.where"]
            yield problem("fabric: size", where=where, key=key, said=said, number=number, option=option)


def _contradictions(request: JobRequest, found: worker_launchers.Started) -> Iterator[Problem]:
    for option, why in found.launcher.contradicts.items():
        if option in found.options and not ("--binding" in why and request.binding == "off"):
            yield Problem(message=f"{found.launcher.name} {option}", hint=why)


def _starts_again(job: JobLayout, found: worker_launchers.Started) -> bool:
    """Whether the launcher would start more than the ranks that the site's launcher starts."""
    return (job.tasks_per_node if worker_launchers.one_process(job.request, found) else job.tasks) > 1


def _in_each_rank(job: JobLayout, found: worker_launchers.Started) -> Problem:
    """The site's launcher starts every rank, and in each of them this one starts all workers again."""
    request, name, ranks = job.request, found.launcher.name, f"{job.nodes} x {job.tasks_per_node}"
    message = note_text("launcher: in each rank", name=name, job=job, ranks=ranks)
    if worker_launchers.one_process(request, found):
        config = request.command.config
        kind = f"{config['file']}: distributed_type MULTI_CPU" if "distributed_type" in config else "--cpu"
        message = f"accelerate starts one process per node on CPUs alone ({kind}), no workers"
    known = request.framework is not None and found.launcher.framework in ("torch", request.framework)
    framework = "" if known or not found.launcher.framework else f"--framework {found.launcher.framework} "
    if not found.program:
        right = "leave the launcher and its options out: hpclaunch starts one process per rank"
    else:
        right = note_text("launcher: none needed", framework=framework, program=shlex.join(found.program))
    return Problem(message=message, hint=right)


def _distributed_type(job: JobLayout, found: worker_launchers.Started) -> Iterator[Problem]:
    """Yield why accelerate would not start the job's workers by what its file says."""
    config = job.request.command.config
    if found.launcher is not worker_launchers.ACCELERATE:
        return
    if config.get("distributed_type") == "NO" and job.tasks > 1 and "num_processes" in config:
        yield problem("accelerate: one process", file=config["file"], ranks=job.tasks)
    pdsh = found.options.get("--deepspeed_multinode_launcher")
    pdsh = config.get("deepspeed_config.deepspeed_multinode_launcher") or pdsh
    if job.nodes > 1 and pdsh not in (None, "standard"):
        yield problem("accelerate: starts other nodes", pdsh=pdsh)


def _rendezvous(job: JobLayout, found: worker_launchers.Started) -> Iterator[Problem]:
    """Nodes that would not find each other."""
    if job.nodes == 1:
        return
    options = found.options
    if found.launcher is worker_launchers.TORCHRUN and "--standalone" in options:
        yield problem("torchrun: standalone", nodes=job.nodes)
    if found.launcher.node_rank in options:
        number = options[found.launcher.node_rank]
        yield problem("launcher: node rank", launcher=found.launcher, number=number, nodes=job.nodes)
    for each in ("--master_addr", "--main_address", "--main_process_ip", "--rdzv_endpoint"):
        if options.get(each, "").partition(":")[0] in ("localhost", "127.0.0.1"):
            yield problem("launcher: own address", launcher=found.launcher, option=each, value=options[each])
    if found.launcher is worker_launchers.FABRIC and options.get("--devices", "1") == "auto":
        yield problem("fabric: auto", tasks_per_node=job.tasks_per_node)


_DEFAULTS = ("user config", "job 2", *NOT_GIVEN)
"""How an origin begins whose settings are meant where they fit; ``job 2...``: the job that is repeated."""


class Found(NamedTuple):
    """An option without effect."""

    problems: tuple[Problem, ...]
    """Options of this command; nothing is submitted with them."""
    warnings: tuple[str, ...]


def no_effect(job: JobLayout) -> Found:
    """Return which of the given settings have no effect: a submission is refused for them, a dry run warns.

    What the user's configuration holds for all sites is a default, so it may have no effect at one of them.
    For a job file, which may be tried elsewhere, it is only said.
    """
    origins = {setting.name.replace("-", "_"): setting.origin for setting in job.settings}
    problems = [job.choice.problem] if job.choice.problem else []
    warnings = [*_times(job, origins), *_undocumented_plugin(job.request, job.profile)]
    for name, sentence in _without_effect(job):
        origin = origins.get(name)
        if origin is None or origin.startswith(_DEFAULTS):
            continue
        if origin.startswith("job file"):
            warnings.append(f"{sentence} ({origin})")
        else:
            problems.append(Problem(message=sentence, hint="leave it out"))
    return Found(tuple(problems), tuple(warnings))


def _without_effect(job: JobLayout) -> Iterator[tuple[str, str]]:
    """Yield (setting, why it has no effect)."""
    request, profile, launcher, place = job.request, job.profile, job.launcher, job.place
    for name, option in _WORD.of_the_queue.items():
        if place.allocation:
            number = place.allocation.job_id
            yield name, f"{option} has no effect in the allocation {number}; --no-here queues the job instead"
        elif job.scheduler.starts_at_once:
            yield name, f"{option} has no effect: jobs on this machine start at once, without a scheduler"
    if not request.after:
        yield "after_any", "--after-any has no effect without --after, which names the jobs to wait for"
    if not request.max_restarts:
        yield "warn_before", "--warn-before has no effect without --max-restarts: no rank is signalled"
    if not launcher.takes_plugin and request.mpi != "none":  # none: ranks that are alone are no failure
        yield "mpi", f"--mpi has no effect: the launcher of {profile.name}, {launcher.name}, takes no plugin"
    if request.no_sample:
        yield "sample", "--sample has no effect with --no-sample"
    if request.profile is None:
        yield "profile_after", "--profile-after has no effect without --profile"
    elif job.no_startup:
        yield "profile", f"--profile has no effect: {job.no_startup}, so no step can be recorded"
    if request.stacks and (why := why_no_stands(job)):
        yield "stacks", f"--stacks has no effect: {why}; hpclaunch stacks does without it"
    if not (request.check or request.preflight):
        yield "space", "--space has an effect only with --check or --preflight"
    if not _reads_python(request, profile):
        yield "python", note_text("python: no effect")
    if profile.node is not None and profile.status != "generic":
        yield "gpu_type", f"--gpu-type has no effect: {profile.name} describes nodes with one type of GPUs"
    if request.binding == "strict" and not (job.binding or job.at_start):
        why = f"hpclaunch plans no binding for {profile.name}, whose node is not described"
        yield "binding", f"--binding strict has no effect: {why}"


def _reads_python(request: JobRequest, profile: SiteProfile) -> bool:
    if request.python is None:
        return True  # there is nothing to note: the notes are YAML, which takes long to load
    used = request.command.bundled or request.check or request.preflight or request.check_imports
    argv = request.command.argv
    used = used or request.zero_stage is not None or request.python == argv[script_commands.program_at(argv)]
    return used or plugin_is_open(request, profile)


def _times(job: JobLayout, origins: dict[str, str]) -> Iterator[str]:
    """Yield how a walltime is read, and what it means where no scheduler enforces it."""
    request = job.request
    if request.time is not None and re.fullmatch(r"[\d:]+", request.time) and request.time.count(":") < 2:
        read = format_walltime(job.walltime_s)
        yield f"--time {request.time} is {read}: minutes, or minutes and seconds, as sbatch reads it"
    if request.time is None or request.max_restarts or origins.get("time", "").startswith(_DEFAULTS):
        return
    if allocation := job.place.allocation:
        yield f"--time {request.time}: the limit of the allocation {allocation.job_id} holds instead"
    elif job.scheduler.starts_at_once:
        yield note_text("time: no limit", request=request)


def _undocumented_plugin(request: JobRequest, profile: SiteProfile) -> Iterator[str]:
    documented = [name for name in (profile.mpi.plugin, *profile.mpi.alternatives) if name]
    if request.mpi and request.mpi != "none" and documented and request.mpi not in documented:
        names = " and ".join(documented)
        yield f"--mpi {request.mpi}: {profile.name} documents {names}; a submission asks srun what it offers"
