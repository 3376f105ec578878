"""Which plugin of ``srun --mpi`` a job needs, looked up where the profile leaves it open.

The plugin must speak what the program's MPI speaks: with another one each rank is alone, without an error.
"""

import json
import re
from typing import Any

import msgspec

from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.package_data import text_beside
from hpclaunch.plan.frameworks import interpreter, uses_mpi
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.script_body import plugin_is_open
from hpclaunch.plan.script_commands import inner_words
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher
from hpclaunch.software.software_lines import environment_lines

_MPI: dict[str, Any] = json.loads(text_beside(__file__, "mpi_plugins.json"))
"""speaks: word in the MPI's own version -> plugin. Open MPI speaks PMIx (docs.open-mpi.org, "Launching with
Slurm"), MPICH and those made from it PMI-2 (slurm.schedmd.com/mpi_guide.html). linked: name of a library that
programs are linked with, likewise: Open MPI's, then those of MPICH's common ABI."""
_LDD, _PROBE = _MPI["programs"]
_PROBE_TIMEOUT_S = 20.0
_LIST_TIMEOUT_S = 30.0


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin to use; None: srun's default."""

    name: str | None
    reason: str
    library: str | None = None


def choose_plugin(
    request: JobRequest, profile: SiteProfile, host: Host, settings: tuple[Setting, ...] = ()
) -> Plugin | None:
    """Ask srun what it offers, and which MPI a Python has whose ranks use it, or a program.

    ``settings``: among them what the program imports. None: nothing is open.

    Raises RefusedError where srun cannot be asked.
    """
    if not plugin_is_open(request, profile):
        return None
    answer = host.run(site_launcher(profile).plugin_list, timeout_s=_LIST_TIMEOUT_S)
    offered = (answer.stdout + answer.stderr).replace(",", " ").split()
    python = interpreter(request, profile)
    ask = uses_mpi(request, settings)
    setup = environment_lines(request.environment, profile)
    library = _library(host, python, setup) if ask else None
    program = "" if ask else inner_words(request.command.argv)[0]
    if program and (linked := _linked(host, program)):
        file, fitting = linked
        if fitting in offered:
            return Plugin(name=fitting, reason=f"fits {file}, with which {program} is linked")
    if library is None:
        name = next((plugin for plugin in ("pmix", "pmi2") if plugin in offered), None)
        why = f"{python} names no MPI here (mpi4py), so it is " if ask else ""
        return Plugin(name=name, reason=f"{why}the first that srun --mpi=list offers; --mpi chooses another")
    wanted = next((plugin for word, plugin in _MPI["speaks"] if word in library), None)
    if wanted in offered:
        return Plugin(name=wanted, reason=f"fits the MPI of {python}: {library}", library=library)
    missing = f"srun does not offer {wanted}" if wanted else "which plugin fits is not known"
    reason = f"the MPI of {python} is {library}; {missing}: name one with --mpi"
    return Plugin(name=None, reason=reason, library=library)


def check_plugin(request: JobRequest, profile: SiteProfile, host: Host) -> None:
    """Refuse a plugin that srun of the host does not list; raises BadInputError."""
    command = site_launcher(profile).plugin_list
    if request.mpi is None or not command:
        return
    answer = host.run(command, timeout_s=_LIST_TIMEOUT_S)
    # "MPI plugin types are...", a name on each line, then "specific pmix plugin versions available: a,b".
    lists = (line.rpartition(":")[2] for line in (answer.stdout + answer.stderr).splitlines())
    offered = [
        name for text in lists for word in text.split(",") if re.fullmatch(r"\w+", name := word.strip())
    ]
    if answer.exit_code == 0 and offered and request.mpi not in offered:
        raise BadInputError.case("mpi: not offered", request=request, host=host, offered=", ".join(offered))


def _linked(host: Host, program: str) -> tuple[str, str] | None:
    """Return the MPI library that a program is linked with, found or not, and its plugin; None: no such."""
    try:
        answer = host.run(["sh", "-c", _LDD, "sh", program], timeout_s=_PROBE_TIMEOUT_S)
    except RefusedError:
        return None
    return next(((word, plugin) for word, plugin in _MPI["linked"] if word in answer.stdout), None)


def _library(host: Host, python: str, setup: tuple[Line, ...]) -> str | None:
    """Return the name and version of its MPI after the job's own ``setup``; None where it does not say."""
    argv = [python, "-c", _PROBE]
    if setup:
        quiet = "exec 3>&1 >&2"  # what the setup prints is not the answer
        script = "\n".join(["set -eo pipefail", quiet, *(line.text for line in setup), 'exec -- "$@" >&3'])
        argv = ["bash", "-c", script, "bash", *argv]
    try:
        answer = host.run(argv, timeout_s=_PROBE_TIMEOUT_S)
    except RefusedError:
        return None
    lines = answer.stdout.strip("\0 \n").splitlines()
    if answer.exit_code != 0 or not lines:
        return None
    return " ".join(lines[0].partition(",")[0].split())
