"""A whole check, on one node or on each: facts are collected, judged, and compared with the requirements."""

import json
import os
import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.check import gather
from hpclaunch.check.check_report import Check, Report, Requirement, Status, make_report, verdict
from hpclaunch.check.facts import BuildFacts, LaunchFacts, NodeFacts, Outcome
from hpclaunch.check.judge_build import Remedies, judge_build, judge_interpreter, working_frameworks
from hpclaunch.check.judge_launch import judge_launch, judge_setup, open_mpi_at_run_time
from hpclaunch.check.judge_node import judge_node
from hpclaunch.check.requirements import (
    FRAMEWORKS,
    default_requirements,
    gpu_build_of,
    judge_framework,
    site_requirements,
)
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.package_data import package_constants, resource_dir
from hpclaunch.remote.probe import IMPORT_LIMIT_S
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.scheduler.registry import THIS_MACHINE, get_scheduler
from hpclaunch.site.schema import Environment, SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.software_lines import environment_lines, site_variables, wrap_command

_KNOWN_SUMS = resource_dir("remote") / "known_sums.py"
_RUN = package_constants("check/limits.yaml", "run")


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a check: program, site, launcher."""

    profile: SiteProfile | None = None
    site: str | None = None
    environment: Environment | None = None
    job_file: str | None = None
    python: str | None = None
    mpi_plugin: str | None = None
    require: tuple[Requirement, ...] = ()
    extra_requirements: tuple[Requirement, ...] = ()
    nodes: int | None = None
    space: tuple[str, ...] = ()
    allreduce: bool = False
    without_ranks: bool = False
    horovod: bool = True
    ranks_use_mpi: bool = True
    module: str | None = None
    gpu_build: bool = True
    import_limit_s: float = IMPORT_LIMIT_S


def requirements(request: CheckRequest) -> tuple[Requirement, ...]:
    """Return the requirements of a check."""
    if request.require:
        return request.require
    extra = request.extra_requirements
    if request.module:
        extra += (Requirement(names=("imports",), reason=f"--framework {request.module}"),)
        build = gpu_build_of(request.profile) if request.gpu_build and request.module != "mpi4py" else None
        if request.profile is not None and build:
            extra += (Requirement(names=(build,), reason=f"site {request.profile.name}"),)
    if not request.horovod:
        return extra
    default = default_requirements(frameworks=True)
    if request.profile is None:
        return (*default, *extra)
    return (*site_requirements(request.profile), default[-1], *extra)


def framework_for_remedies(require: tuple[Requirement, ...], modules: frozenset[str] = frozenset()) -> str:
    """Return the framework for the remedies: the one that is required, else the one that is installed."""
    named = [name for need in require for name in need.names if name in FRAMEWORKS]
    if named:
        return named[0]
    return "tensorflow" if "tensorflow" in modules and "torch" not in modules else "pytorch"


def judge(request: CheckRequest, checks: tuple[Check, ...]) -> Report:
    """Return the report; ``ok``: all requirements are met and no other check that matters is missing.

    With ``--require`` only the named checks and the requested tests decide.
    """
    strict = _RUN.tests if request.require else (*_RUN.must_not_be_missing, *_RUN.tests)
    found = make_report(checks, requirements(request))
    wrong = any(check.status == "missing" and check.name in strict for check in found.checks)
    return msgspec.structs.replace(found, ok=found.ok and not wrong)


def run_check(host: Host, request: CheckRequest, environ: Mapping[str, str] = os.environ) -> Report:
    """Collect the facts and judge them. Raises RefusedError for ``nodes`` outside of an allocation."""
    place = make_place(host, request, environ)
    if place.launcher[:1] != ("mpiexec",):
        return _check_at(place, request)
    base = tempfile.gettempdir()
    short = base if len(base) <= _RUN.longest_tmpdir else "/tmp"  # noqa: S108  (a new folder, 0700)
    with tempfile.TemporaryDirectory(prefix="hpclaunch-mpi.", dir=short) as folder:
        # a new folder for the session files, for the reason that remote/mpi_session.sh has
        names = ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base")
        text = "export " + " ".join(f"{name}={shlex.quote(folder)}" for name in names)
        line = Line(text=text, reason="a new folder for the session files of mpiexec")
        return _check_at(msgspec.structs.replace(place, setup=(*place.setup, line)), request)


def _check_at(place: gather.Place, request: CheckRequest) -> Report:
    if request.nodes is not None:
        return judge(request, _on_nodes(place, request))
    setup = gather.run_command(place, ["true"], place.import_limit_s) if request.profile else None
    if setup is not None and setup.exit_code != 0:
        return judge(request, (judge_setup(setup),))
    build = gather.build_facts(place) if request.horovod else BuildFacts(installed=_installed(place))
    if build.installed and (no_python := judge_interpreter(build.installed, place.python)):
        return judge(request, (*((judge_setup(setup),) if setup else ()), no_python))
    modules = _modules(build.installed)
    remedies = Remedies(profile=request.profile, framework=framework_for_remedies(request.require, modules))
    launch = _launch(place, request, working_frameworks(build), modules, setup)
    node = _node(place, request)
    checks = (
        *(judge_build(build, remedies, open_mpi_at_run_time(launch)) if request.horovod else ()),
        *_framework(place, request, remedies),
        *judge_launch(launch, build, request.profile),
        *judge_node(node, request.profile),
    )
    return judge(request, checks)


def make_place(host: Host, request: CheckRequest, environ: Mapping[str, str]) -> gather.Place:
    """Return where the commands run: with the lines of a job's script, and its launcher."""
    profile = request.profile
    launcher, ranks, why_not = _launcher(request, environ)
    place = gather.Place(
        host=host,
        python=request.python or (profile.software.python if profile else "python3"),
        launcher=launcher,
        ranks=ranks,
        not_started=why_not,
        import_limit_s=request.import_limit_s,
    )
    if profile is None:
        setup = get_scheduler(THIS_MACHINE).launchers[0].environment(None, ()) if launcher else ()
        return msgspec.structs.replace(place, setup=setup)
    return msgspec.structs.replace(
        place,
        setup=(
            *_first_on_path(profile),
            *environment_lines(request.environment, profile),
            *site_launcher(profile).environment(None, ()),
            *site_variables(profile, request.nodes or 1, request.environment),
        ),
        wrap=lambda argv: wrap_command(request.environment, profile, argv),
    )


def _first_on_path(profile: SiteProfile) -> tuple[Line, ...]:
    """Put hpclaunch's own interpreter first on the path, as in a job on this machine."""
    if not site_scheduler(profile).starts_at_once:
        return ()
    folder = shlex.quote(os.path.dirname(sys.executable))
    return (Line(text=f'export PATH={folder}:"$PATH"', reason="the Python and MPI of this hpclaunch"),)


def _launcher(request: CheckRequest, environ: Mapping[str, str]) -> tuple[gather.Argv, int, str | None]:
    """Return (words that start ranks, how many, why none can be started)."""
    profile = request.profile
    if request.without_ranks:
        return (), 0, None
    if profile is None or site_scheduler(profile).starts_at_once:
        return ("mpiexec", "-n", str(_RUN.ranks_here)), _RUN.ranks_here, None
    inside = site_scheduler(profile).inside_variable
    if inside is not None and inside not in environ:
        return (), 0, f"no ranks were started: this is not a job ({inside} is not set)"
    nodes, ranks_per_node = request.nodes or 1, _ranks_per_node(request, profile)
    return _job_launcher(request, profile, nodes, ranks_per_node), nodes * ranks_per_node, None


def _ranks_per_node(request: CheckRequest, profile: SiteProfile) -> int:
    """Return one rank per GPU; without GPUs one per node, and two on a single node."""
    gpus = len(profile.node.gpus) if profile.node else 0
    return gpus or (_RUN.ranks_here if (request.nodes or 1) == 1 else 1)


def _job_launcher(
    request: CheckRequest, profile: SiteProfile, nodes: int, ranks_per_node: int
) -> gather.Argv:
    launch = Launch(
        nodes=nodes,
        tasks_per_node=ranks_per_node,
        mpi_plugin=profile.mpi.plugin or request.mpi_plugin,
        options=profile.fabric.launch_options if nodes > 1 else (),
    )
    words = site_launcher(profile).words_in_allocation(launch)
    # $PBS_NODEFILE is shell text for a script; here no shell reads it.
    return tuple(os.path.expandvars(word.strip('"')) for word in words)


def _installed(place: gather.Place) -> Outcome:
    return gather.run_probe(place, "installed", limit_s=place.import_limit_s)


def _framework(place: gather.Place, request: CheckRequest, remedies: Remedies) -> tuple[Check, ...]:
    if request.module is None:
        return ()
    outcome = gather.run_probe(place, "library", request.module, limit_s=place.import_limit_s)
    return judge_framework(outcome, request.module, place.python, remedies)


def _modules(installed: Outcome | None) -> frozenset[str]:
    return frozenset(installed.answers().get("modules") or ()) if installed else frozenset()


def _launch(
    place: gather.Place,
    request: CheckRequest,
    frameworks: tuple[str, ...],
    modules: frozenset[str],
    setup: Outcome | None,
) -> LaunchFacts:
    profile = request.profile
    plugin_list = site_launcher(profile).plugin_list if profile is not None else ()
    return gather.launch_facts(
        place,
        setup=setup,
        plugin_list=() if request.without_ranks else plugin_list,
        mpi4py="mpi4py" in modules and request.ranks_use_mpi,
        frameworks=frameworks,
        allreduce=_known_sums(place, request, frameworks) if request.allreduce else (),
    )


def _known_sums(place: gather.Place, request: CheckRequest, frameworks: tuple[str, ...]) -> gather.Argv:
    """Return the allreduce test: through Horovod for torch if it works, as gradients go, else through MPI."""
    sizes = set(_RUN.sizes)
    if request.profile is not None:
        sizes |= {figure.message_bytes for figure in request.profile.fabric.allreduce}
    text = _KNOWN_SUMS.read_text(encoding="utf-8")
    via = "horovod" if frameworks[:1] == ("pytorch",) else "mpi"
    listed = ",".join(map(str, sorted(sizes)))
    return (place.python, "-c", text, "--via", via, "--sizes", listed)


def _node(place: gather.Place, request: CheckRequest) -> NodeFacts:
    profile = request.profile
    vendor = profile.node.gpu_vendor if profile and profile.node and profile.node.gpus else None
    fabric = vendor is not None and profile is not None and profile.fabric.kind.startswith("slingshot")
    return gather.node_facts(place, vendor=vendor, fabric=fabric, space=request.space)


def _on_nodes(place: gather.Place, request: CheckRequest) -> tuple[Check, ...]:
    """Check each node alone, then start ranks across all of them."""
    nodes = request.nodes or 1
    if place.not_started:
        raise RefusedError.case("check: not started", nodes=nodes, place=place)
    bare = gather.Place(host=place.host, import_limit_s=place.import_limit_s)
    command = node_command(_node_argv(request))
    outcome = gather.run_command(
        bare, command, 12 * place.import_limit_s, _one_process_per_node(request, nodes)
    )
    reports = read_nodes(outcome.stdout)
    checks = merge_reports(reports, nodes, outcome.last_error_line() or outcome.ending())
    frameworks = _frameworks_everywhere(checks)
    facts = _launch(place, request, frameworks, _modules(_installed(place)), None)
    names = {check.name for check in checks}
    across = judge_launch(facts, BuildFacts(), request.profile)
    return (*checks, *(check for check in across if check.name not in names))


def _one_process_per_node(request: CheckRequest, nodes: int) -> gather.Argv:
    """Return the words that start one process per node; none on this machine."""
    profile = request.profile
    if profile is not None and not site_scheduler(profile).starts_at_once:
        return _job_launcher(request, profile, nodes, 1)
    if nodes > 1:
        raise BadInputError(f"--nodes {nodes}: this machine is one node", "name the site with --site")
    return ()


def _frameworks_everywhere(checks: tuple[Check, ...]) -> tuple[str, ...]:
    there = {check.name for check in checks if check.status == "have"}
    return tuple(name for name in FRAMEWORKS if name in there) if "mpi" in there else ()


def _node_argv(request: CheckRequest) -> gather.Argv:
    """Return the same check for one node: this program with the interpreter that runs it here."""
    words = [sys.executable, "-m", "hpclaunch", "check", "--json", "--alone"]
    words += ["--limit", f"{request.import_limit_s:g}"]
    module = None if request.horovod else request.module
    given = {
        "--site": request.site,
        "--file": request.job_file,
        "--python": request.python,
        "--framework": module,
    }
    options = [*given.items(), *(("--space", folder) for folder in request.space)]
    return (*words, *(word for name, value in options if value for word in (name, value)))


NODE_MARK = "HPCLAUNCH-NODE "
# Evidence of these checks is different on each node.
_NODE_SPECIFIC = {"clock", "space", "inodes"}
_WORST: dict[Status, int] = {"have": 0, "unknown": 1, "missing": 2}


def node_command(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command that prints ``argv``'s stdout in marked short lines, which launchers do not mix."""
    text = (
        'out=$("$@"); host=$(hostname); printf "%s\\n" "$out" | fold -w 500 | '
        f'while IFS= read -r line; do echo "{NODE_MARK}$host $line"; done'
    )
    return ("bash", "-c", text, "node", *argv)


def read_nodes(stdout: str) -> dict[str, Report]:
    """Return each node's report from the launcher's output; nodes with an incomplete report are left out."""
    pieces: dict[str, list[str]] = {}
    for line in stdout.splitlines():
        _, mark, rest = line.partition(NODE_MARK)
        if mark:
            host, _, piece = rest.partition(" ")
            pieces.setdefault(host, []).append(piece)
    found = {}
    for host, texts in pieces.items():
        try:
            found[host] = msgspec.convert(json.loads("".join(texts)), Report)
        except (ValueError, msgspec.ValidationError):
            continue
    return dict(sorted(found.items()))


def merge_reports(reports: Mapping[str, Report], nodes: int, why_silent: str) -> tuple[Check, ...]:
    """Return one list of checks for all nodes, and the check ``nodes``: whether all give the same answers.

    Each check has its worst status. A node differs if a status, or the evidence of a check that should be the
    same everywhere, is not that of most nodes.
    """
    names = dict.fromkeys(check.name for each in reports.values() for check in each.checks)
    checks = tuple(_merged(name, reports) for name in names)
    return (*checks, _do_nodes_agree(reports, nodes, why_silent))


def _merged(name: str, reports: Mapping[str, Report]) -> Check:
    every = [(host, check) for host, each in reports.items() for check in each.checks if check.name == name]
    _, worst = max(every, key=lambda pair: _WORST[pair[1].status])
    bad = [host for host, check in every if check.status == worst.status]
    where = counted(len(reports), "node") if len(bad) >= len(reports) else ", ".join(dict.fromkeys(bad))
    return msgspec.structs.replace(worst, evidence=f"{where}: {worst.evidence}")


def _signature(host: str, report: Report) -> tuple[tuple[str, str, str], ...]:
    """A node's answers, without its name and without what is different on each node."""
    return tuple(
        (check.name, check.status, re.sub(rf"\b{re.escape(host)}\b", "", check.evidence))
        for check in report.checks
        if check.name not in _NODE_SPECIFIC
    )


def _do_nodes_agree(reports: Mapping[str, Report], nodes: int, why_silent: str) -> Check:
    signatures = {host: _signature(host, report) for host, report in reports.items()}
    silent = nodes - len(reports)
    if not signatures:
        return verdict("nodes: silent", nodes=nodes, why=why_silent)
    usual, _ = Counter(signatures.values()).most_common(1)[0]
    odd = {host: each for host, each in signatures.items() if each != usual}
    parts = [f"{host} differs: {_difference(each, usual)}" for host, each in odd.items()]
    parts += [f"{silent} of {nodes} nodes gave no answer: {why_silent}"] if silent > 0 else []
    if parts:
        return verdict("nodes: differ", parts="; ".join(parts))
    return verdict("nodes: agree", count=counted(len(reports), "node"), names=", ".join(reports))


def _difference(mine: tuple[tuple[str, str, str], ...], usual: tuple[tuple[str, str, str], ...]) -> str:
    words = [
        f"{name} {status} ({evidence})"
        for name, status, evidence in mine
        if (name, status, evidence) not in usual
    ]
    lost = {name for name, *_ in usual} - {name for name, *_ in mine}
    return "; ".join([*words, *(f"no answer on {name}" for name in sorted(lost))])[:600]
