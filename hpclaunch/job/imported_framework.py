"""A job's framework, interpreter and script by the files that it starts, here or on the host of the job."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from hpclaunch.host.host_interface import Host
from hpclaunch.package_data import shell_words
from hpclaunch.plan.command_rules import command_notes
from hpclaunch.plan.frameworks import FOUND
from hpclaunch.plan.launch_plan import KnownJob
from hpclaunch.plan.layout import framework_of
from hpclaunch.plan.program import (
    MPI,
    FoundFramework,
    find_framework,
    launcher_config,
    needed_modules,
    python_target,
)
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.script_commands import (
    FileFacts,
    Look,
    ReadText,
    StartedFile,
    commands_of_script,
    directives_in,
    script_commands,
    shell_target,
    start_file,
)
from hpclaunch.plan.worker_launchers import Started, per_node_launcher

_MAX_SOURCE = 1_000_000
"""Bytes; a larger Python file is generated, and is not read."""
_MAX_ROUND_TRIPS = 10
_LONGEST_PATH = 4096
"""PATH_MAX of Linux."""
_Settled = tuple[JobRequest, tuple[Setting, ...]]


def read_program(job: KnownJob, look: Look, reader: Callable[[JobRequest], ReadText]) -> KnownJob:
    """Return the job with what starts its program, and with its framework.

    ``look`` and ``reader`` see the files where the job will run.
    """
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
        settings = tuple(_with_command(each, file) for each in settings)
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


def _with_command(setting: Setting, file: StartedFile) -> Setting:
    if setting.name != "command":
        return setting
    origin = f"{setting.origin}; {file.note}" if file.note else setting.origin
    return replace(setting, value=" ".join(file.argv), origin=origin)


def with_framework(request: JobRequest, settings: tuple[Setting, ...], read: ReadText) -> _Settled:
    """Return the request with what its program imports, and the framework by that, unless one is named.

    A program of another framework that imports mpi4py, too, gets a setting that says so.
    """
    if not request.command.bundled and (config := launcher_config(request.command.argv, read)):
        request = replace(request, command=replace(request.command, config=config))
    started = per_node_launcher(request)
    needed = needed_modules(request.command.argv, read)
    of_program = tuple(each for each in needed if each.partition(".")[0] not in sys.stdlib_module_names)
    imports = request.imports or (*(started.launcher.imports if started else ()), *of_program)
    if imports != request.imports and not request.command.bundled:
        origin = "computed: the top of the program"
        settings = (*settings, Setting(name="imports", value=",".join(imports), origin=origin))
        request = replace(request, imports=imports)
    if request.framework == "none" or request.command.bundled:
        return request, settings
    found = _of_launcher(started, find_framework(request.command.argv, read))
    if found is None:
        return request, settings
    if request.framework is None:
        setting = Setting(name="framework", value=found.name, origin=f"{FOUND}{found.reason}")
        request, settings = replace(request, framework=found.name), (*settings, setting)
    reason = found.reason if found.name == MPI else found.mpi
    if reason and not framework_of(request).by_mpi:
        settings = (*settings, Setting(name=MPI, value="used, too", origin=f"{FOUND}{reason}"))
    return request, settings


def _of_launcher(started: Started | None, found: FoundFramework | None) -> FoundFramework | None:
    """Return the framework of the program's launcher where the program shows none, or torch alone."""
    name = started.launcher.framework if started else None
    if started is None or name is None or (found and (found.name != "torch" or name == "torch")):
        return found
    return FoundFramework(name=name, reason=f"{started.launcher.name} starts it")


def read_in(folder: Path) -> ReadText:
    """Return a reader of the files in a folder of this machine."""

    def read(name: str) -> str | None:
        path = folder / os.path.expanduser(name)
        try:
            return path.read_text() if path.is_file() and path.stat().st_size < _MAX_SOURCE else None
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
        if name not in allowed or len(texts) >= _MAX_ROUND_TRIPS:
            return texts.get(name)
        if name not in texts:
            answer = host.run(["head", "-c", str(_MAX_SOURCE), "--", str(Path(folder) / name)], timeout_s=60)
            texts[name] = answer.stdout if answer.exit_code == 0 else None
            if not name.endswith(".py"):
                allowed.update(
                    *(_launched(words) for _, words in commands_of_script(texts[name] or "")),
                )
        return texts[name]

    return read


def _launched(argv: tuple[str, ...]) -> set[str]:
    found = (python_target(argv), shell_target(argv))
    return {target.file for target in found if target is not None and target.file}


def look_on(host: Host, folder: str) -> Look:
    """Return what tells the facts of a file in a folder of a host, or of this machine."""

    kind_of = shell_words(__file__, "looks.sh", "kind_of")

    def look(path: str) -> FileFacts | None:
        if len(path) > _LONGEST_PATH:
            return None
        answer = host.run((*kind_of, str(Path(folder) / path)), timeout_s=60)
        kind, _, head = answer.stdout.partition(" ")
        if answer.exit_code != 0 or kind not in ("folder", "program", "file"):
            return None
        return FileFacts(folder=kind == "folder", executable=kind == "program", head=head)

    return look
