"""Facts about a job that its files, the scheduler and the active shell tell, here or on the job's host."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.package_data import package_constants, shell_words
from hpclaunch.plan import program
from hpclaunch.plan.command_rules import command_notes
from hpclaunch.plan.frameworks import FOUND
from hpclaunch.plan.layout import KnownJob, framework_of
from hpclaunch.plan.request import JobRequest, Problem, Setting, problem
from hpclaunch.plan.script_commands import (
    FileFacts,
    Look,
    ReadText,
    commands_of_script,
    directives_in,
    script_commands,
    shell_target,
    start_file,
)
from hpclaunch.plan.software_choice import ActiveShell, choose_software, module_of
from hpclaunch.plan.worker_launchers import Started, per_node_launcher
from hpclaunch.scheduler.cluster_facts import ClusterFacts
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.asked_cluster import Wanted, cluster_profile
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler

_WORD = package_constants("job/forms.json", "find_out")
_Settled = tuple[JobRequest, tuple[Setting, ...]]
Reader = Callable[[JobRequest], ReadText]


def seen_in(folder: Path | None) -> tuple[Look, Reader]:
    """Return what sees the files in a folder of this machine; None: nothing is seen."""
    if folder is None:
        return _nothing, lambda _: _nothing
    read = read_in(folder)
    return look_on(LocalHost(), str(folder)), lambda _: read


def find_out(job: KnownJob, look: Look, reader: Reader, cluster: Host | None, *, here: bool) -> KnownJob:
    """Return the job with what its files, the scheduler on ``cluster`` and the site's software tell.

    ``here``: it is submitted on this machine, in whose shell an environment may be active.
    """
    job = read_program(job, look, reader)
    if cluster is not None and is_open(job.profile):
        job = ask_cluster(cluster, job)
    return choose_software(job, active_shell(os.environ, module_of(job.request)) if here else None)


def read_program(job: KnownJob, look: Look, reader: Reader) -> KnownJob:
    """Return the job with its program's starter and framework; ``look``, ``reader``: where it runs."""
    request, settings = job.request, job.settings
    if request.command.bundled:
        return job
    image = request.environment is not None and request.environment.container is not None

    def seen(path: str) -> FileFacts | None:
        return None if image and path.startswith("/") else look(path)

    python = request.python or job.profile.software.python
    argv = request.command.argv
    file = start_file(argv, seen, python, by_suffix=job.is_file)
    if file.argv != argv:
        request = replace(request, command=replace(request.command, argv=file.argv))
        command, more = " ".join(file.argv), f"; {file.note}" if file.note else ""
        settings = tuple(
            replace(each, value=command, origin=each.origin + more) if each.name == "command" else each
            for each in settings
        )
    read = reader(request)
    request, settings = with_framework(request, settings, read)
    about_file = (file.note,) if file.note else ()
    return replace(
        job,
        request=request,
        settings=settings,
        notes=(*job.notes, *about_file, *command_notes(file.argv, directives_in(file.argv, read))),
        problems=(*job.problems, *((file.problem,) if file.problem else ())),
        commands=script_commands(file.argv, read),
    )


def with_framework(request: JobRequest, settings: tuple[Setting, ...], read: ReadText) -> _Settled:
    """Return the request with what its program imports, and the framework by that, unless one is named.

    A program of another framework that imports mpi4py, too, gets a setting that says so.
    """
    if not request.command.bundled and (config := program.launcher_config(request.command.argv, read)):
        request = replace(request, command=replace(request.command, config=config))
    started = per_node_launcher(request)
    needed = program.needed_modules(request.command.argv, read)
    of_program = tuple(each for each in needed if each.partition(".")[0] not in sys.stdlib_module_names)
    imports = request.imports or (*(started.launcher.imports if started else ()), *of_program)
    if imports != request.imports and not request.command.bundled:
        origin = "computed: the top of the program"
        settings = (*settings, Setting(name="imports", value=",".join(imports), origin=origin))
        request = replace(request, imports=imports)
    if request.framework == "none" or request.command.bundled:
        return request, settings
    found = _of_launcher(started, program.find_framework(request.command.argv, read))
    if found is None:
        return request, settings
    if request.framework is None:
        setting = Setting(name="framework", value=found.name, origin=f"{FOUND}{found.reason}")
        request, settings = replace(request, framework=found.name), (*settings, setting)
    reason = found.reason if found.name == program.MPI else found.mpi
    if reason and not framework_of(request).by_mpi:
        settings = (*settings, Setting(name=program.MPI, value="used, too", origin=f"{FOUND}{reason}"))
    return request, settings


def _of_launcher(
    started: Started | None, found: program.FoundFramework | None
) -> program.FoundFramework | None:
    """Return the framework of the program's launcher where the program shows none, or torch alone."""
    name = started.launcher.framework if started else None
    if started is None or name is None or (found and (found.name != "torch" or name == "torch")):
        return found
    return program.FoundFramework(name=name, reason=f"{started.launcher.name} starts it")


def read_in(folder: Path) -> ReadText:
    """Return a reader of the files in a folder of this machine."""

    def read(name: str) -> str | None:
        path = folder / os.path.expanduser(name)
        try:
            return path.read_text() if path.is_file() and path.stat().st_size < _WORD.max_source else None
        except (OSError, ValueError):
            return None

    return read


def read_on(host: Host, folder: str, request: JobRequest) -> ReadText:
    """Return a reader of some files in a folder of a host, each of which is a round trip.

    They are the launched file, the configuration file of its launcher, and of a script those that it starts.
    """
    allowed, texts = _launched(request.command.argv), dict[str, str | None]()
    if started := per_node_launcher(request):
        allowed.add(started.options.get("--config_file", ""))

    def read(name: str) -> str | None:
        if name not in allowed or len(texts) >= _WORD.max_round_trips:
            return texts.get(name)
        if name not in texts:
            answer = host.run(
                ["head", "-c", str(_WORD.max_source), "--", str(Path(folder) / name)], timeout_s=60
            )
            texts[name] = answer.stdout if answer.exit_code == 0 else None
            if not name.endswith(".py"):
                for _, words in commands_of_script(texts[name] or ""):
                    allowed.update(_launched(words))
        return texts[name]

    return read


def _launched(argv: tuple[str, ...]) -> set[str]:
    found = (program.python_target(argv), shell_target(argv))
    return {target.file for target in found if target is not None and target.file}


def look_on(host: Host, folder: str) -> Look:
    """Return what tells the facts of a file in a folder of a host, or of this machine."""
    kind_of = shell_words(__file__, "looks.sh", "kind_of")

    def look(path: str) -> FileFacts | None:
        if len(path) > _WORD.longest_path:
            return None
        answer = host.run((*kind_of, str(Path(folder) / path)), timeout_s=60)
        kind, _, head = answer.stdout.partition(" ")
        if answer.exit_code != 0 or kind not in ("folder", "program", "file"):
            return None
        return FileFacts(folder=kind == "folder", executable=kind == "program", head=head)

    return look


def _nothing(_path: str) -> None:
    """Tell nothing of a file."""


def is_open(profile: SiteProfile) -> bool:
    """Whether the profile leaves its nodes to be asked for."""
    return (
        profile.status == "generic" and profile.node is None and bool(site_scheduler(profile).facts_commands)
    )


def words_of_asking(host: Host, scheduler: Scheduler) -> str:
    """Return what is asked where, as ``scontrol on this machine``."""
    programs = dict.fromkeys(argv[0] for argv in scheduler.facts_commands.values())
    return f"{' and '.join(programs)} on {host.name}"


def cluster_facts(host: Host, scheduler: Scheduler) -> ClusterFacts:
    """Return what the scheduler on ``host`` tells of its nodes and queues. Raises RefusedError."""
    return scheduler.parse_facts(
        {
            name: host.run(argv, timeout_s=_WORD.limit_s, env=scheduler.query_env)
            for name, argv in scheduler.facts_commands.items()
        }
    )


def ask_cluster(host: Host, job: KnownJob) -> KnownJob:
    """Ask the scheduler on ``host`` for its nodes, and plan the job for those that fit.

    Such clusters share nodes among jobs unless a queue says otherwise, so a job with GPUs requests whole
    nodes only where the user does. Where nothing can be learned, a program that uses GPUs is submitted if
    the request gives their number. Raises BadInputError where no node has what the job wants.
    """
    request, profile, scheduler = job.request, job.profile, site_scheduler(job.profile)
    want = Wanted(
        nodes=request.nodes or 1,
        queue=request.queue,
        gpu_type=request.gpu_type,
        gpus=_wants_gpus(request),
        framework=request.framework,
    )
    asked = words_of_asking(host, scheduler)
    try:
        facts = cluster_facts(host, scheduler)
        found = cluster_profile(profile, facts, want, asked)
        queues = ", ".join(queue.name for queue in facts.queues) or "no queue that takes jobs"
        why = f"{asked} shows {queues}" + (f", not {want.queue}" if want.queue else "")
    except RefusedError as error:
        found, why = None, error.message
    if found is None:
        return replace(job, problems=(*job.problems, *_nothing_known(request, profile, want, why)))
    job = replace(job, profile=found.profile, notes=(*job.notes, *found.notes))
    named = next((each.origin for each in job.settings if each.name == "exclusive"), "default") != "default"
    if named or found.profile.node is None or not found.profile.node.gpus:
        return job
    settings = tuple(each for each in job.settings if each.name != "exclusive")
    shared = Setting(name="exclusive", value="false", origin="computed: nodes are shared here")
    return replace(job, request=replace(request, exclusive=False), settings=(*settings, shared))


def _wants_gpus(request: JobRequest) -> bool | None:
    """Whether the job uses GPUs; None: the program does not show it."""
    if request.gpus_per_task == 0:
        return False
    if request.gpus_per_task or request.gpu_type:
        return True
    row = framework_of(request)
    return True if row.nccl else None


def _nothing_known(request: JobRequest, profile: SiteProfile, want: Wanted, why: str) -> tuple[Problem, ...]:
    if not want.gpus or request.gpus_per_task:
        return ()
    return (problem("GPUs: not known", site=profile.name, framework=request.framework, why=why),)


def active_shell(variables: Mapping[str, str], module: str | None) -> ActiveShell:
    """Return the Python environment that is active here, and the modules that are loaded.

    An environment counts if it has ``module``, or packages of another Python, among which it may be. The one
    that hpclaunch itself is installed in counts only if it has the module: many make one for hpclaunch alone.
    """
    venv, conda = variables.get("VIRTUAL_ENV"), variables.get("CONDA_PREFIX")
    if variables.get("CONDA_DEFAULT_ENV") == "base":
        conda = None
    loaded = tuple(filter(None, variables.get("LOADEDMODULES", "").split(":")))
    found = venv or conda
    if found is None:
        return ActiveShell(modules=loaded)
    holds = module is not None and _has(Path(found), module)
    if not holds and (Path(found) == Path(sys.prefix) or _is_closed(Path(found))):
        own = Path(found) == Path(sys.prefix)
        return ActiveShell(modules=loaded, without=None if own or module is None else found)
    return ActiveShell(venv=venv, conda=None if venv else conda, modules=loaded)


def _has(folder: Path, module: str) -> bool:
    """Whether a package is installed in an environment, by its folder or its file."""
    places = [place for name in ("lib", "lib64") for place in folder.glob(f"{name}/python3*/site-packages")]
    names = (module, f"{module}.py", f"{module}.so")
    return any((place / name).exists() for place in places for name in names)


def _is_closed(folder: Path) -> bool:
    """Whether an environment has its own packages only (pyvenv.cfg of PEP 405; conda's always)."""
    try:
        text = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    values = dict(line.replace(" ", "").lower().split("=", 1) for line in text.splitlines() if "=" in line)
    return values.get("include-system-site-packages") != "true"
