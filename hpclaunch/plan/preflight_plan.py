"""Work of nodes before a job's ranks start, and the words of the script for it: the preflight, the staging.

The check is ``hpclaunch/remote/probe.py``, the copying ``hpclaunch/remote/stage.py``, which is sent with what
it imports. Both go to the job's folder; one process per node runs them.
"""

import json
import posixpath
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.plan import frameworks, layout, program, script_commands
from hpclaunch.plan.layout import Preflight, Staging
from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.containers import launch_options
from hpclaunch.software.script_lines import literal
from hpclaunch.software.software_lines import wrap_command

PROBE = "probe.py"
"""Its name in the job's folder."""
_HERE = "\0"
"""Stands for the probe's path, which is known where the script runs; no other word has this character."""
_LIMIT_S = 300
"""Longer than the import of a framework may take there."""


def plan_preflight(job: layout.JobLayout) -> Preflight | None:
    """Return how nodes are checked, or None. Raises BadInputError if ``exclude_bad_nodes`` has no effect."""
    request, profile = job.request, job.profile
    again = _again(request, job.scheduler) if request.exclude_bad_nodes else None
    if not (request.preflight or request.check_imports):
        return None
    python = frameworks.interpreter(request, profile)
    wanted = _wanted(job) if request.preflight else {**_imports(request), "only": "imports"}
    nodes = job.nodes if request.preflight else 1
    text = json.dumps(wanted)
    probe = _shell_words(wrap_command(request.environment, profile, (python, _HERE, "preflight", text)))
    judge = _shell_words(wrap_command(request.environment, profile, (python, _HERE, "verdict", str(nodes))))
    words = (*job.launcher.one_per_node(nodes), *launch_options(request.environment, profile))
    launch = () if job.scheduler.starts_at_once else words
    return Preflight(probe=(*launch, *probe), judge=judge, limit_s=_LIMIT_S, again=again)


def _shell_words(argv: Iterable[str]) -> tuple[str, ...]:
    return tuple('"$probe"' if word == _HERE else literal(word) for word in argv)


def _again(request: JobRequest, scheduler: Scheduler) -> str:
    """Return the command that submits the script without some nodes; only a new job can do without them."""
    if not scheduler.resubmit_without:
        raise BadInputError.case("exclude-bad-nodes: cannot", scheduler=scheduler)
    if request.array:
        raise BadInputError.case("exclude-bad-nodes: array")
    for name, wanted in (("--preflight", request.preflight), ("--max-restarts", request.max_restarts)):
        if not wanted:
            raise BadInputError.case("exclude-bad-nodes: alone", name=name)
    exclude = shlex.quote("".join(f"{node}," for node in request.exclude)) if request.exclude else ""
    return scheduler.resubmit_without.format(exclude=exclude)


def _imports(request: JobRequest) -> dict[str, object]:
    """Return what the job's Python must import, and its first folder. Raises BadInputError: none is known."""
    module = layout.framework_of(request).module
    target = program.python_target(request.command.argv)
    if own := script_commands.environment_of(request):
        if request.check_imports:
            raise BadInputError.case("check-imports: own environment", own=own)
        return {}
    if request.imports:
        folder = str(PurePosixPath(target.file).parent) if target and target.file else "."
        return {"imports": list(request.imports), "folder": folder}
    if request.check_imports and module is None:
        raise BadInputError.case("check-imports: no modules")
    return {"imports": [module]} if request.check_imports else {"module": module}


def _wanted(job: layout.JobLayout) -> dict[str, object]:
    """Return what a node must show, as the probe reads it; only what the profile knows."""
    profile = job.profile
    vendor = profile.node.gpu_vendor if profile.node and job.gpus_per_node else None
    plugin = job.framework.nccl and job.nodes > 1 and profile.fabric.kind.startswith("slingshot")
    wanted: dict[str, object] = {
        "cpus": format_cpu_list(job.bound_cpus),
        "gpus": job.gpus_per_node if vendor else None,
        "vendor": vendor,
        "fabric": plugin and vendor in ("amd", "nvidia"),
        **_imports(job.request),
        "space": list(job.request.space),
    }
    return {name: value for name, value in wanted.items() if value}


STAGE = "stage.py"
"""Its name in the job's folder."""


def split_item(text: str) -> tuple[str, str]:
    """Return source and target of ``SRC[#sha256=SUM][:DEST]``; without DEST SRC's name, of a tar its stem.

    Raises BadInputError where one is missing or the target would lie outside of the job's folder.
    """
    from hpclaunch.remote.archive_reader import ARCHIVES  # few jobs stage something
    from hpclaunch.remote.stage_sources import split_sum

    source, colon, target = text.rpartition(":")
    if not colon:
        source, target = text, ""
    if not target:
        target = posixpath.basename(split_sum(source)[0].rstrip("/"))
        target = next((target.removesuffix(end) for end in ARCHIVES if target.endswith(end)), target)
    clean = posixpath.normpath(target)
    if not source or clean in ("", ".", "/") or clean.startswith(".."):
        raise BadInputError.case("stage: no item", text=text)
    if "#sha256=" in source and not split_sum(source)[1]:
        raise BadInputError(f"--stage {text}: not a sha256", "it has 64 digits, as sha256sum prints them")
    return source, clean


def plan_staging(request: JobRequest, profile: SiteProfile, nodes: int) -> Staging | None:
    """Return what is staged, or None. Raises BadInputError for a target twice and ``keep_staged`` alone."""
    if not request.stage:
        option = "--keep-staged" if request.keep_staged else "--stage-links keep"
        if request.keep_staged or request.stage_links == "keep":
            raise BadInputError(f"{option} without --stage: nothing is staged", "name it with --stage")
        return None
    pairs = [split_item(text) for text in request.stage]
    targets = [target for _, target in pairs]
    if len(set(targets)) < len(targets):
        raise BadInputError("--stage: two sources have the same target", "name targets: SRC:DEST")
    scheduler, launcher = site_scheduler(profile), site_launcher(profile)
    launch = () if scheduler.starts_at_once else (*launcher.one_per_node(nodes), *launcher.overlap)
    local = profile.node.local_scratch if profile.node else None
    return Staging(
        launch=launch,
        root=literal(local) if local else '"${TMPDIR:-/tmp}"',
        pairs=tuple((literal(source), literal(target)) for source, target in pairs),
        links=request.stage_links,
        afterwards=_afterwards(request.keep_staged, bool(launch), bool(launcher.overlap)),
    )


def _afterwards(keep: bool, launched: bool, overlaps: bool) -> Literal["stay", "leave", "here", "keep"]:
    if keep:
        return "keep"
    if not launched:
        return "here"
    return "stay" if overlaps else "leave"
