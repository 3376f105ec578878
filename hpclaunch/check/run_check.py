"""A whole check: what is asked where, and what must hold."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping

import msgspec

from hpclaunch.check.across_nodes import merge, node_command, read_nodes
from hpclaunch.check.check_report import Check, Report, Requirement, report
from hpclaunch.check.facts import BuildFacts, LaunchFacts, NodeFacts, Outcome
from hpclaunch.check.gather import (
    Argv,
    Place,
    ask,
    build_facts,
    launch_facts,
    node_facts,
    probe,
)
from hpclaunch.check.judge_build import judge_build, working_frameworks
from hpclaunch.check.judge_launch import judge_imports, judge_launch, judge_setup, open_mpi_at_run_time
from hpclaunch.check.judge_node import judge_node
from hpclaunch.check.remedies import Remedies
from hpclaunch.check.requirements import FRAMEWORKS, default_requirements, site_requirements
from hpclaunch.errors import RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.package_data import resource_dir
from hpclaunch.remote.probe import IMPORT_LIMIT_S
from hpclaunch.scheduler.job_header import Line
from hpclaunch.scheduler.launcher import Launch
from hpclaunch.scheduler.registry import THIS_MACHINE, get_scheduler
from hpclaunch.site.job_environment import Environment
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.software_lines import environment_lines, site_variables, wrap_command

_KNOWN_SUMS = resource_dir("remote") / "known_sums.py"
_SIZES = (4096, 1 << 20, 1 << 24)
_RANKS_HERE = 2
# What may stay unknown (a login node has no GPUs and starts no ranks) but must not be wrong.
_MUST_NOT_BE_MISSING = (
    "environment", "imports", "versions", "mpi-plugin", "mpi-library", "mpi-launch", "horovod-launch", "gpus",
    "fabric-plugin", "clock",
)  # fmt: skip
_ASKED_FOR = ("environment", "allreduce", "space", "inodes", "nodes")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a check is to find out."""

    profile: SiteProfile | None = None
    """None: this shell as it is, on a machine that is not known."""
    site: str | None = None
    """The profile's name or file, as it was given."""
    environment: Environment | None = None
    """What the job asks for on top of the site's setup."""
    job_file: str | None = None
    """The file that ``environment`` was read from."""
    python: str | None = None
    """The interpreter that trains; None: the site's, or python3."""
    mpi_plugin: str | None = None
    """Value of srun --mpi where the profile leaves it open."""
    require: tuple[Requirement, ...] = ()
    """What must hold; empty: what the site needs, or any controller and framework."""
    besides: tuple[Requirement, ...] = ()
    """What must hold beside what the site needs."""
    nodes: int | None = None
    """Ask each node of an allocation; None: this machine only."""
    space: tuple[str, ...] = ()
    """Folders whose free space and inodes matter."""
    allreduce: bool = False
    alone: bool = False
    """Start no ranks: one node among several, asked by itself."""
    horovod: bool = True
    """Ask for a Horovod build; else only for the launch layer and ``module``."""
    by_mpi: bool = True
    """The ranks find each other by MPI, so that starting some is a test."""
    module: str | None = None
    """What the interpreter must be able to import, beside or instead of Horovod."""
    import_limit_s: float = IMPORT_LIMIT_S


def requirements(question: Question) -> tuple[Requirement, ...]:
    """Return what must be ``have``."""
    if question.require:
        return question.require
    besides = question.besides
    if question.module:
        besides += (Requirement(names=("imports",), reason="the framework"),)
    if not question.horovod:
        return besides
    framework = default_requirements(frameworks=True)
    if question.profile is None:
        return (*framework, *besides)
    return (*site_requirements(question.profile), framework[-1], *besides)


def framework_meant(require: tuple[Requirement, ...], modules: frozenset[str] = frozenset()) -> str:
    """Return the framework that remedies speak of: the one required, else the one that is installed."""
    named = [name for need in require for name in need.names if name in FRAMEWORKS]
    if named:
        return named[0]
    return "tensorflow" if "tensorflow" in modules and "torch" not in modules else "pytorch"


def judge(question: Question, checks: tuple[Check, ...]) -> Report:
    """Return the report: what is required is there, and nothing that was looked at is wrong.

    With ``--require`` only what is named, and the tests that were asked for, decide.
    """
    strict = _ASKED_FOR if question.require else (*_MUST_NOT_BE_MISSING, *_ASKED_FOR)
    found = report(checks, requirements(question))
    wrong = any(check.status == "missing" and check.name in strict for check in found.checks)
    return msgspec.structs.replace(found, ok=found.ok and not wrong)


def run_check(host: Host, question: Question, environ: Mapping[str, str] = os.environ) -> Report:
    """Ask everything and judge it. Raises RefusedError for ``nodes`` outside of an allocation."""
    place = make_place(host, question, environ)
    if question.nodes is not None:
        return judge(question, _on_nodes(place, question))
    setup = ask(place, ["true"], place.import_limit_s) if question.profile else None
    if setup is not None and setup.exit_code != 0:
        return judge(question, (judge_setup(setup), *_not_asked(question)))
    build = build_facts(place) if question.horovod else BuildFacts(installed=_installed(place))
    modules = _modules(build.installed)
    remedies = Remedies(profile=question.profile, framework=framework_meant(question.require, modules))
    launch = _launch(place, question, working_frameworks(build), modules, setup)
    node = _node(place, question)
    checks = (
        *(judge_build(build, remedies, open_mpi_at_run_time(launch)) if question.horovod else ()),
        *_imports(place, question),
        *judge_launch(launch, build, question.profile),
        *judge_node(node, question.profile),
    )
    return judge(question, checks)


# --- where -------------------------------------------------------------------------------------------------


def make_place(host: Host, question: Question, environ: Mapping[str, str]) -> Place:
    """Return where the questions are asked: with the lines of a job's script, and its launcher."""
    profile = question.profile
    launcher, ranks, why_not = _launcher(question, environ)
    if profile is None:
        setup = get_scheduler(THIS_MACHINE).launchers[0].environment(None, ()) if launcher else ()
        return Place(
            host=host,
            setup=setup,
            python=question.python or "python3",
            launcher=launcher,
            ranks=ranks,
            not_started=why_not,
            import_limit_s=question.import_limit_s,
        )
    return Place(
        host=host,
        setup=(*_first_on_path(profile), *_job_lines(question, profile)),
        wrap=lambda argv: wrap_command(question.environment, profile, argv),
        python=question.python or profile.software.python,
        launcher=launcher,
        ranks=ranks,
        not_started=why_not,
        import_limit_s=question.import_limit_s,
    )


def _first_on_path(profile: SiteProfile) -> tuple[Line, ...]:
    """A job on this machine has hpclaunch's own interpreter first on its path."""
    if not site_scheduler(profile).starts_at_once:
        return ()
    folder = shlex.quote(os.path.dirname(sys.executable))
    return (Line(text=f'export PATH={folder}:"$PATH"', reason="the Python and MPI of this hpclaunch"),)


def _job_lines(question: Question, profile: SiteProfile) -> tuple[Line, ...]:
    return (
        *environment_lines(question.environment, profile),
        *site_launcher(profile).environment(None, ()),
        *site_variables(profile, question.nodes or 1),
    )


def _launcher(question: Question, environ: Mapping[str, str]) -> tuple[Argv, int, str | None]:
    """Return (words that start ranks, how many, why none can be started)."""
    profile = question.profile
    if question.alone:
        return (), 0, None
    if profile is None or site_scheduler(profile).starts_at_once:
        return ("mpiexec", "-n", str(_RANKS_HERE)), _RANKS_HERE, None
    inside = site_scheduler(profile).inside_variable
    if inside is not None and inside not in environ:
        return (), 0, f"no ranks were started: this is no job ({inside} is not set)"
    nodes = question.nodes or 1
    gpus = len(profile.node.gpus) if profile.node else 0
    each = gpus or (_RANKS_HERE if nodes == 1 else 1)
    return _job_launcher(question, profile, nodes, each), nodes * each, None


def _job_launcher(question: Question, profile: SiteProfile, nodes: int, each: int) -> Argv:
    launch = Launch(
        nodes=nodes,
        tasks_per_node=each,
        mpi_plugin=profile.mpi.plugin or question.mpi_plugin,
        options=profile.fabric.launch_options if nodes > 1 else (),
    )
    words = site_launcher(profile).words_in_allocation(launch)
    # $PBS_NODEFILE is shell text for a script; here no shell reads it.
    return tuple(os.path.expandvars(word.strip('"')) for word in words)


# --- what --------------------------------------------------------------------------------------------------


def _installed(place: Place) -> Outcome:
    return probe(place, "installed", limit_s=place.import_limit_s)


def _imports(place: Place, question: Question) -> tuple[Check, ...]:
    if question.module is None:
        return ()
    outcome = probe(place, "imports", question.module, limit_s=place.import_limit_s)
    return (judge_imports(outcome, question.module, place.python),)


def _modules(installed: Outcome | None) -> frozenset[str]:
    return frozenset(installed.answers().get("modules") or ()) if installed else frozenset()


def _not_asked(question: Question) -> Iterator[Check]:
    """What is required stays unknown where the job's environment does not start."""
    why = "not asked: the job's environment does not start here"
    for name in dict.fromkeys(name for need in requirements(question) for name in need.names):
        yield Check(name=name, status="unknown", evidence=why, remedy="see the verdict on environment")


def _launch(
    place: Place,
    question: Question,
    frameworks: tuple[str, ...],
    modules: frozenset[str],
    setup: Outcome | None,
) -> LaunchFacts:
    profile = question.profile
    plugin_list = site_launcher(profile).plugin_list if profile is not None else ()
    return launch_facts(
        place,
        setup=setup,
        plugin_list=() if question.alone else plugin_list,
        mpi4py="mpi4py" in modules and question.by_mpi,
        frameworks=frameworks,
        allreduce=_known_sums(place, question, frameworks) if question.allreduce else (),
    )


def _known_sums(place: Place, question: Question, frameworks: tuple[str, ...]) -> Argv:
    """The allreduce test, the way that gradients go where Horovod for torch is there, else through MPI."""
    sizes = set(_SIZES)
    if question.profile is not None:
        sizes |= {figure.message_bytes for figure in question.profile.fabric.allreduce}
    text = _KNOWN_SUMS.read_text(encoding="utf-8")
    via = "horovod" if frameworks[:1] == ("pytorch",) else "mpi"
    listed = ",".join(map(str, sorted(sizes)))
    return (place.python, "-c", text, "--via", via, "--sizes", listed)


def _node(place: Place, question: Question) -> NodeFacts:
    profile = question.profile
    vendor = profile.node.gpu_vendor if profile and profile.node and profile.node.gpus else None
    fabric = vendor is not None and profile is not None and profile.fabric.kind.startswith("slingshot")
    return node_facts(place, vendor=vendor, fabric=fabric, space=question.space)


def _on_nodes(place: Place, question: Question) -> tuple[Check, ...]:
    """Ask each node by itself, then start ranks across all of them."""
    nodes = question.nodes or 1
    if place.not_started:
        raise RefusedError(
            f"--nodes {nodes}: {place.not_started}", "run it in an allocation: salloc, or a batch script"
        )
    profile = question.profile
    one_each: Argv = ()
    if profile is not None and not site_scheduler(profile).starts_at_once:
        one_each = _job_launcher(question, profile, nodes, 1)
    elif nodes > 1:
        raise RefusedError(f"--nodes {nodes}: this machine is one node", "name the site with --site")
    bare = Place(host=place.host, import_limit_s=place.import_limit_s)
    outcome = ask(bare, node_command(_node_argv(question)), 12 * place.import_limit_s, one_each)
    reports = read_nodes(outcome.stdout)
    checks = merge(reports, nodes, outcome.last_words() or outcome.ending())
    there = {each.name for each in checks if each.status == "have"}
    frameworks = tuple(name for name in FRAMEWORKS if name in there) if "mpi" in there else ()
    modules = _modules(_installed(place))
    launch = judge_launch(_launch(place, question, frameworks, modules, None), BuildFacts(), question.profile)
    asked = {each.name for each in checks}
    return (*checks, *(each for each in launch if each.name not in asked))


def _node_argv(question: Question) -> Argv:
    """The same check for one node: this program, by the interpreter that runs it here."""
    words = [sys.executable, "-m", "hpclaunch", "check", "--json", "--alone"]
    words += ["--limit", f"{question.import_limit_s:g}"]
    if question.site:
        words += ["--site", question.site]
    if question.job_file:
        words += ["--file", question.job_file]
    if question.python:
        words += ["--python", question.python]
    for folder in question.space:
        words += ["--space", folder]
    return tuple(words)
