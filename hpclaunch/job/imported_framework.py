"""The framework of a job by what its Python file imports, here or on the host where the job will run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec.structs import replace

from hpclaunch.host.host_interface import Host
from hpclaunch.plan.framework_notes import FOUND
from hpclaunch.plan.frameworks import framework_of
from hpclaunch.plan.launcher_files import launcher_config
from hpclaunch.plan.program import (
    MPI,
    FoundFramework,
    ReadText,
    find_framework,
    needed_modules,
    python_target,
)
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.worker_launchers import per_node_launcher

_MAX_SOURCE = 1_000_000
"""Bytes; a larger Python file is generated, and is not read."""
_Settled = tuple[JobRequest, tuple[Setting, ...]]


def with_framework(request: JobRequest, settings: tuple[Setting, ...], read: ReadText) -> _Settled:
    """Return the request with what its program imports, and the framework by that, unless one is named.

    A program of another framework that imports mpi4py, too, gets a setting that says so.
    """
    if not request.command.bundled and (config := launcher_config(request.command.argv, read)):
        request = replace(request, command=replace(request.command, config=config))
    started = per_node_launcher(request)
    of_program = _third_party(needed_modules(request.command.argv, read))
    imports = request.imports or (*(started.launcher.imports if started else ()), *of_program)
    if imports != request.imports and not request.command.bundled:
        origin = "computed: the top of the program"
        settings = (*settings, Setting(name="imports", value=",".join(imports), origin=origin))
        request = replace(request, imports=imports)
    if request.framework == "none" or request.command.bundled:
        return request, settings
    found = find_framework(request.command.argv, read)
    if found is None and started and started.launcher.framework:
        found = FoundFramework(name=started.launcher.framework, reason=f"{started.launcher.name} starts it")
    if found is None:
        return request, settings
    if request.framework is None:
        setting = Setting(name="framework", value=found.name, origin=f"{FOUND}{found.reason}")
        request, settings = replace(request, framework=found.name), (*settings, setting)
    reason = found.reason if found.name == MPI else found.mpi
    if reason and not framework_of(request).by_mpi:
        settings = (*settings, Setting(name=MPI, value="used, too", origin=f"{FOUND}{reason}"))
    return request, settings


def _third_party(modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in modules if each.partition(".")[0] not in sys.stdlib_module_names)


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
    """Return a reader of the launched file, and of its launcher's configuration file, in a folder of a host.

    No others: each file is a round trip.
    """
    target = python_target(request.command.argv)
    started = per_node_launcher(request)
    wanted = {target.file if target else None, started.options.get("--config_file") if started else None}

    def read(name: str) -> str | None:
        if name not in wanted:
            return None
        answer = host.run(["head", "-c", str(_MAX_SOURCE), "--", str(Path(folder) / name)], timeout_s=60)
        return answer.stdout if answer.exit_code == 0 else None

    return read
