"""Collect facts: each by a separate process with a time limit, in the environment of the job.

The import of a broken build may crash or hang, so hpclaunch itself never loads any of it.
"""

import shlex
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from hpclaunch.check.facts import MODULES, NOT_FOUND, SETUP_MARK, BuildFacts, LaunchFacts, NodeFacts, Outcome
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host, NoAnswerError
from hpclaunch.json_document import document_of
from hpclaunch.package_data import resource_dir
from hpclaunch.remote.probe import GPU_TOOLS, IMPORT_LIMIT_S, TOOL_LIMIT_S
from hpclaunch.scheduler.job_header import Line

_KILL_AFTER_S = 5.0
_PROBE = resource_dir("remote") / "probe.py"

Argv = tuple[str, ...]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the commands of a check run."""

    host: Host
    setup: tuple[Line, ...] = ()
    wrap: Callable[[Argv], Argv] = lambda argv: argv
    python: str = "python3"
    launcher: Argv = ()
    ranks: int = 0
    not_started: str | None = None
    import_limit_s: float = IMPORT_LIMIT_S


def setup_script(setup: Sequence[Line]) -> str:
    """Return bash text that runs the environment's lines as a job's script does, then ``"$@"``.

    ``set -eo pipefail`` as in the script: a module that does not exist ends it, with that line on stderr.
    """
    steps = [f"hpclaunch_step={shlex.quote(line.text)}\n{line.text}" for line in setup]
    return "\n".join(
        [
            "set -eo pipefail",
            f'trap \'[ -z "$hpclaunch_step" ] || echo "{SETUP_MARK}$hpclaunch_step" >&2\' EXIT',
            *steps,
            "hpclaunch_step=",
            'exec -- "$@"',
        ]
    )


def run_command(place: Place, argv: Sequence[str], limit_s: float, launcher: Sequence[str] = ()) -> Outcome:
    """Run a command and return how it ended; never raises for a failure of the command.

    coreutils' ``timeout`` ends the whole process group, so children that hang end too; the output so far is
    returned.
    """
    words = [*launcher, *place.wrap(tuple(argv))]
    if place.setup:
        words = ["bash", "-c", setup_script(place.setup), "bash", *words]
    timed = ["timeout", f"--kill-after={_KILL_AFTER_S:g}", f"{limit_s:g}", *words]
    start = time.monotonic()
    try:
        answer = place.host.run(timed, timeout_s=limit_s + 6 * _KILL_AFTER_S)
    except NoAnswerError:
        return Outcome(exit_code=124, timed_out=True, limit_s=limit_s)
    except RefusedError as error:
        return Outcome(exit_code=NOT_FOUND, stderr=error.message, limit_s=limit_s)
    timed_out = answer.exit_code in (124, 137) and time.monotonic() - start >= limit_s
    return document_of(Outcome, answer, timed_out=timed_out, limit_s=limit_s)


def run_probe(place: Place, *words: str, limit_s: float, launcher: Sequence[str] = ()) -> Outcome:
    """Run the probe with the interpreter that trains; ``words``: its mode and arguments."""
    argv = [place.python, "-c", _PROBE.read_text(encoding="utf-8"), *words]
    return run_command(place, argv, limit_s, launcher)


def build_facts(place: Place) -> BuildFacts:
    """Collect the facts about the Horovod build."""
    installed = run_probe(place, "installed", limit_s=place.import_limit_s)
    facts = installed.answers()
    if not facts.get("folder"):
        return BuildFacts(installed=installed)
    there = dict(facts["libraries"])
    there.pop("keras", None)
    present = [name for name, module in MODULES.items() if module in facts["modules"] or name in there]
    frameworks = {n: run_probe(place, "framework", n, limit_s=place.import_limit_s) for n in present}
    answered = any(outcome.answers().get("built") for outcome in frameworks.values())
    choose = 'if [ -x "$1" ]; then exec "$1" --check-build; else exec horovodrun --check-build; fi'
    # horovodrun imports the framework once per box, which takes long.
    boxes = ("bash", "-c", choose, "bash", f"{facts['scripts']}/horovodrun")
    return BuildFacts(
        installed=installed,
        check_build=run_command(place, boxes, place.import_limit_s) if answered else None,
        frameworks=frameworks,
        linked={name: run_command(place, ["ldd", path], TOOL_LIMIT_S) for name, path in there.items()},
    )


def launch_facts(
    place: Place,
    *,
    setup: Outcome | None,
    plugin_list: Argv,
    mpi4py: bool,
    frameworks: Sequence[str],
    allreduce: Sequence[str] = (),
) -> LaunchFacts:
    """Collect how ranks start: the plugins of srun, PMIx, and the rank numbers that started ranks report.

    ``setup``: the outcome of the environment's lines alone. ``plugin_list``: the command that lists the
    launcher's plugins; empty: none. ``frameworks``: those whose Horovod works, to be started under the
    launcher too. ``allreduce``: the command of the allreduce test.
    """
    ranks = {}
    allreduced = None
    if place.launcher:
        vias = [*(["mpi4py"] if mpi4py else []), *frameworks[:1]]
        ranks = {
            via: run_probe(place, "ranks", via, limit_s=place.import_limit_s, launcher=place.launcher)
            for via in vias
        }
        if allreduce:
            allreduced = run_command(place, allreduce, place.import_limit_s + 180, place.launcher)
    return LaunchFacts(
        setup=setup,
        mpi_list=run_command(place, plugin_list, TOOL_LIMIT_S) if plugin_list else None,
        pmix=run_command(place, ["pmix_info"], TOOL_LIMIT_S),
        ranks=ranks,
        ranks_started=place.ranks,
        not_started=place.not_started,
        allreduce=allreduced,
    )


def node_facts(place: Place, *, vendor: str | None, fabric: bool, space: Sequence[str]) -> NodeFacts:
    """Collect the facts about the node: clock, GPUs, the fabric's plugin, and the folders of ``--space``."""
    node = run_probe(place, "node", *space, limit_s=TOOL_LIMIT_S)
    facts = node.answers()
    lustre = facts.get("filesystem") == "lustre"
    tool = GPU_TOOLS.get(vendor or "")
    quota = 'exec lfs quota -q -u "$(id -un)" "$1"'
    return NodeFacts(
        node=node,
        gpu_tool=run_command(place, tool, TOOL_LIMIT_S) if tool else None,
        gpu_tool_name=tool[0] if tool else "",
        plugin=run_probe(place, "plugin", limit_s=TOOL_LIMIT_S) if fabric else None,
        stripes=run_command(place, ["lfs", "getstripe", "-d", "."], TOOL_LIMIT_S) if lustre else None,
        quotas={
            f: run_command(place, ["bash", "-c", quota, "bash", f], TOOL_LIMIT_S) for f in _on_lustre(facts)
        },
    )


def _on_lustre(facts: dict[str, Any]) -> list[str]:
    """Return the folders on Lustre among those that the probe ``node`` describes."""
    described: dict[str, Any] = facts.get("folders") or {}
    return [
        folder
        for folder, found in described.items()
        if isinstance(found, dict) and found["filesystem"] == "lustre"
    ]
