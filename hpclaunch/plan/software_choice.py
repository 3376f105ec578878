"""The software that brings a job the framework of its program, settled before anything is queued. Pure.

In this order: what the person named for the job, a Python that the command names by its path, the environment
that is active in the submitting shell, the person's configuration, what the site's profile offers. Where the
profile knows that none of these has the framework, the submission is refused.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import GOALS
from hpclaunch.plan import layout, script_commands, startup_plan, worker_launchers
from hpclaunch.plan.layout import KnownJob
from hpclaunch.plan.request import JobRequest, Problem, Setting
from hpclaunch.plan.settings_table import rows
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import Environment, JobContainer, Offer, SiteProfile, Software
from hpclaunch.site.site_scheduler import cite, site_scheduler, source_of
from hpclaunch.software.script_lines import word
from hpclaunch.software.software_lines import GIVEN

# An option goes over ``environment:`` of the job file or of the user's configuration, and that goes over the
# profile's. Modules and binds of options are added to those of ``environment:``; other options replace parts.
_BIND_VARIABLES = ("SINGULARITY_BIND", "APPTAINER_BIND")
_OPTIONS = {row.name: row.part for row in rows() if row.part}
"""Setting -> the part of ``environment:`` that it sets, or adds to where it is a list."""


def with_software(
    request: JobRequest, settings: tuple[Setting, ...], profile: SiteProfile
) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request with all of its software in ``environment``, and its settings part by part.

    Raises BadInputError for two Pythons, binds without a container, and a variable that would replace the
    binds.
    """
    if request.venv is not None and request.conda is not None:
        # A venv on top of a conda environment is stated as such, in ``environment:``.
        raise BadInputError.case("python: two", venv=request.venv, conda=request.conda)
    origins = {setting.name.replace("-", "_"): setting.origin for setting in settings}
    base, origin = request.environment, origins.get("environment", "the request")
    if base is None:
        base, origin = profile.environment, f"site profile {profile.name}"
    came_from = dict.fromkeys(_parts(base or Environment()), origin)
    given = {name: value for name in _OPTIONS if (value := getattr(request, name)) not in (None, ())}
    environment = _with_options(base or Environment(), given, origins, came_from)
    if environment.container and (
        own := next((name for name in _BIND_VARIABLES if name in request.env), None)
    ):
        raise BadInputError.case("env: binds", own=own)
    values = _parts(environment)
    stated = (
        Setting(name=f"environment.{part}", value=values[part], origin=o) for part, o in came_from.items()
    )
    moved: dict[str, Any] = {name: () if isinstance(given.get(name), tuple) else None for name in given}
    rest = (each for each in settings if each.name.replace("-", "_") not in {"environment", *_OPTIONS})
    request = replace(request, environment=environment if base or given else None, **moved)
    return request, (*rest, *stated)


def _with_options(
    environment: Environment, given: dict[str, Any], origins: dict[str, str], came_from: dict[str, str]
) -> Environment:
    """Return the environment with what options give, whose origins are noted in ``came_from``."""
    for name, value in given.items():
        if name in ("container_runtime", "container_bind") and environment.container is None:
            first = value if isinstance(value, str) else value[0]
            option = f"--{name.replace('_', '-')} {first}"
            raise BadInputError(f"{option}: the job has no container", "add --container IMAGE")
        part = "container.venv" if name == "venv" and environment.container else _OPTIONS[name]
        environment = _with_part(environment, part, value)
        origin, before = origins.get(name, "the request"), came_from.get(part)
        came_from[part] = f"{before}, then {origin}" if isinstance(value, tuple) and before else origin
    return environment


def _with_part(environment: Environment, part: str, value: str | tuple[str, ...]) -> Environment:
    """Return the environment with a part; a list goes behind the one that is there."""
    above, _, name = part.rpartition(".")
    holder = (environment.container or JobContainer(image="")) if above else environment
    whole = (*getattr(holder, name), *value) if isinstance(value, tuple) else value
    changed: dict[str, Any] = {name: whole}
    if above:
        changed = {above: replace(holder, **changed)}
    return replace(environment, **changed)


def software_files(environment: Environment | None) -> tuple[str, ...]:
    """Return the files without which the environment does not work: the image, the venv and its activate.

    A file counts as missing only where its folder exists, since nodes may have other file systems; so the
    venv itself is one. Addresses, names of CSCS' definitions and paths with variables are left out.
    """
    if environment is None:
        return ()
    venv = environment.venv or ""
    paths = [*re.findall(r"^/[^/]+/.*", venv), f"{venv}/bin/activate"] if venv else []
    if environment.container and re.search(
        r"^\.{0,2}/|\.(sif|sqsh|squashfs|toml)$", environment.container.image
    ):
        paths.append(environment.container.image)
    return tuple(path for path in paths if not re.search(r"[$~#]|://", path))


def _parts(environment: Environment) -> dict[str, str]:
    """Return what an environment states, by the keys of a file: ``container.image`` -> text."""

    def parts(tree: dict[str, Any], above: str) -> dict[str, str]:
        found = dict[str, str]()
        for name, value in tree.items():
            if isinstance(value, dict):
                found |= parts(value, f"{above}{name}.")
            elif isinstance(value, list | tuple):
                found[above + name] = ",".join(map(str, value))
            else:
                found[above + name] = {True: "yes", False: "no"}.get(value, str(value))
        return found

    return parts(msgspec.to_builtins(environment), "")


_FINDS_PYTHON = {"PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"}
_BRINGS_PYTHON = re.compile(
    r"python|conda|mamba|torch|tensorflow|jax|horovod|deepspeed|frameworks|(^|[-_/])(ai|ml|dl)([-_/]|$)", re.I
)
"""Modules of the submitting shell by whose name they may bring a framework."""
OPEN = "whether the job's Python has {} is not known"
_TENSORFLOW = {"tensorflow", "keras", "tf_keras"}


class ActiveShell(msgspec.Struct, frozen=True, kw_only=True):
    """Software that is active in the shell that submits; empty with ``--host``."""

    venv: str | None = None
    conda: str | None = None
    modules: tuple[str, ...] = ()
    without: str | None = None

    @property
    def path(self) -> str:
        """The environment; empty: none is active."""
        return self.venv or self.conda or ""


def goals_of(request: JobRequest) -> tuple[str, ...]:
    """Return what the program needs, as keys of ``software.offers``: several where either may be meant."""
    if request.software not in ("site", "none"):
        return (request.software,)
    if request.command.bundled:
        return ("mpi4py",)
    tops = {module.partition(".")[0] for module in request.imports}
    if request.framework == "horovod":
        return _horovod_goals(request.imports, tops)
    if request.framework in GOALS:
        return (request.framework,)
    return ("tensorflow",) if tops & _TENSORFLOW else ()


def _horovod_goals(imports: tuple[str, ...], tops: set[str]) -> tuple[str, ...]:
    """Return which Horovod is meant: by its own modules, else by the frameworks that are imported, too."""
    named = {module.split(".")[1] for module in imports if module.startswith("horovod.")} or tops
    found = {"horovod-torch": {"torch"}, "horovod-tensorflow": {"keras", *_TENSORFLOW}}
    return tuple(goal for goal, modules in found.items() if named & modules) or tuple(found)


def module_of(request: JobRequest) -> str | None:
    """Return the module of Python by which an environment is known to have the framework."""
    goals = goals_of(request)
    return layout.framework_of(request).module or (goals[0] if goals == ("tensorflow",) else None)


def choose_software(job: KnownJob, shell: ActiveShell | None) -> KnownJob:
    """Return the job with the software that its framework needs.

    ``shell``: None where the job is submitted on another machine. Raises BadInputError for a name that the
    profile does not offer, and for one that does not go together with a container.
    """
    found = _chosen(replace(job, notes=(), problems=()), shell)
    return replace(found, notes=(*job.notes, *found.notes), problems=(*job.problems, *found.problems))


def _chosen(job: KnownJob, shell: ActiveShell | None) -> KnownJob:
    request = job.request
    if request.software != "site":
        return _named_offer(job)
    if _is_named(request, job.settings):
        return job
    if own := script_commands.environment_of(request):
        note = f"{own} brings its environment, whose content is not known here: nothing is added to it"
        return replace(job, notes=(note,) if _still_needed(request, job.profile) else ())
    found = _active(job, shell) or _of_site(job, shell)
    if shell and shell.without and (found.problems or found.request.software != "site"):
        note = (
            f"{shell.without}, which is active in this shell, has no {goals_of(request)[0]} and is not used"
        )
        found = replace(found, notes=(note, *found.notes))
    return found


def _of_site(job: KnownJob, shell: ActiveShell | None) -> KnownJob:
    """Return the job with what the site has for its program."""
    request, profile = job.request, job.profile
    goals = _still_needed(request, profile)
    if not goals:
        return job
    if not startup_plan.starts_python(request):
        note = f"{_program(request)} brings its own software, or --software {goals[0]} that of the site"
        return replace(job, notes=(note,))
    if goal := next((goal for goal in goals if goal in profile.software.offers), None):
        return _offered(job, goal)
    brings, states_none = _handed_on(profile, shell), profile.software == Software()  # as `sites new` writes
    if profile.status == "generic" or brings or states_none:
        return _not_known(job, goals[0], brings)
    problem = Problem(message=_why_not(request, profile, goals), hint=_ways(job, goals[0]))
    return replace(job, problems=(problem,))


def _program(request: JobRequest) -> str:
    """Return the script that a command starts, else its first word."""
    script = script_commands.shell_target(request.command.argv)
    return script.file if script and script.file else request.command.argv[0]


def offer_of(request: JobRequest, profile: SiteProfile) -> Offer | None:
    """Return the site's software that the job uses."""
    return profile.software.offers.get(request.software)


def reason_of(request: JobRequest, profile: SiteProfile) -> Line:
    """Return why a job has the lines of its software, and the source, in a line without text."""
    if (offer := offer_of(request, profile)) is None:
        return GIVEN
    what = f"{holds(request.software, offer)}, software of the site"
    return Line(text="", reason=what, source=source_of(profile, offer.source))


def holds(goal: str, offer: Offer) -> str:
    """Return what an offer holds, as ``torch 2.8.0``."""
    names = [part for part in goal.split("-") if part in offer.versions]
    return " and ".join(f"{name} {offer.versions[name]}" for name in names) or goal


def ready_software(profile: SiteProfile) -> str:
    """Return what the site has that need not be installed first, with versions; empty: nothing."""
    offers = profile.software.offers.items()
    ready = {goal: offer for goal, offer in offers if goal != "python" and not offer.needs_install}
    return ", ".join(holds(goal, offer) for goal, offer in ready.items())


def _named_offer(job: KnownJob) -> KnownJob:
    """Return the job with the offer that the person names; one of an earlier job is there already."""
    request, profile = job.request, job.profile
    origin = next((each.origin for each in job.settings if each.name == "software"), "")
    if request.software == "none" or not origin.startswith(("command line", "job file", "user config")):
        return job
    if request.software not in profile.software.offers:
        there = ", ".join(sorted(set(profile.software.offers) - {"python"})) or "none"
        raise BadInputError.case(
            "software: not offered", asked=request.software, site=profile.name, there=there
        )
    if request.environment and request.environment.container:
        raise BadInputError.case("software: container", software=request.software)
    return _offered(job, request.software)


def _python_of(request: JobRequest) -> str:
    """Return the word of a command that names its Python, or its launcher of workers; empty: none does."""
    argv = () if request.command.bundled else request.command.argv
    started = worker_launchers.per_node_launcher(request)
    words = argv[: started.words] if started else argv
    wanted = "" if started else "python"
    return next((word for word in reversed(words) if wanted in PurePath(word).name and "/" in word), "")


def _is_named(request: JobRequest, settings: tuple[Setting, ...]) -> bool:
    """Whether the person has named for this job where its Python comes from."""
    parts = (each.origin for each in settings if each.name.startswith("environment."))
    by_path = "/" in _python_of(request)
    by_variable = bool(_FINDS_PYTHON.intersection(request.env))
    return by_path or by_variable or any(not o.startswith(("site profile", "user config")) for o in parts)


def _active(job: KnownJob, shell: ActiveShell | None) -> KnownJob | None:
    """Return the job in the environment that is active in the submitting shell; None: it has none."""
    before = job.request.environment or Environment()
    wanted = goals_of(job.request) and not (before.container or job.request.command.bundled)
    if shell is None or not shell.path or not wanted:
        return None
    name, variable = ("venv", "VIRTUAL_ENV") if shell.venv else ("conda", "CONDA_PREFIX")
    environment = replace(before, venv=shell.venv, conda=shell.conda)
    if (
        shell.conda and not site_scheduler(job.profile).hands_on_environment
    ):  # where conda itself may not be found
        environment = replace(before, path=(f"{shell.path}/bin", *before.path))
    origin = f"active in this shell: {variable}"
    return replace(
        job,
        request=replace(job.request, environment=environment),
        settings=(*job.settings, Setting(name=f"environment.{name}", value=shell.path, origin=origin)),
        notes=(f"the job uses {shell.path}, which is active in this shell; --software none leaves it out",),
    )


def _offered(job: KnownJob, goal: str) -> KnownJob:
    request, profile = job.request, job.profile
    offer = profile.software.offers[goal]
    what, page = holds(goal, offer), cite(profile, offer.source)
    if offer.needs_install:
        sentence = f"{goal} of {profile.name} has to be installed first ({page})"
        return replace(job, problems=(Problem(message=sentence, hint=_ways(job, goal)),))
    given = {_option(text) for text in request.directives}
    directives = tuple(text for text in offer.directives if _option(text) not in given)
    moved = replace(
        request,
        software=goal,
        environment=_with_named(offer.environment, request.environment),
        directives=(*directives, *request.directives),
        env={**offer.env, **request.env},
        mpi=request.mpi or offer.mpi,
    )
    setting = Setting(name="software", value=goal, origin=f"site profile {profile.name}: {what} ({page})")
    settings = (*(each for each in job.settings if each.name != "software"), setting)
    brought = "the site's setup has it" if offer.in_setup else "--software none leaves it out"
    notes = [f"{what} of {profile.name}'s software, {page}; {brought}"]
    if offer.install:
        notes.append(f"needed once before: {'; '.join(offer.install)}")
    return replace(job, request=moved, settings=settings, notes=(*notes, *_lacking(moved, offer)))


def _with_named(offered: Environment, named: Environment | None) -> Environment | None:
    """Return the offer's environment with what the person adds to it; None: the site's setup alone."""
    if named is None:
        return None if offered == Environment() else offered
    return replace(
        offered,
        modules=(*offered.modules, *named.modules),
        module_use=(*offered.module_use, *named.module_use),
        path=(*named.path, *offered.path),
        venv=named.venv or offered.venv,
        conda=named.conda or offered.conda,
    )


def _option(text: str) -> str:
    return re.split(r"[=\s]", text)[0]


def _lacking(request: JobRequest, offer: Offer) -> Iterator[str]:
    """Yield a note for each module that the program imports and the offer is known to lack."""
    for module in dict.fromkeys(each.partition(".")[0] for each in request.imports):
        if module in offer.lacks:
            yield f"the program imports {module}, which it does not have: {offer.lacks[module]}"


def _still_needed(request: JobRequest, profile: SiteProfile) -> tuple[str, ...]:
    """Return what the program needs, unless its environment is settled, or is that of this shell."""
    settled = site_scheduler(profile).starts_at_once or request.environment is not None
    return () if settled else goals_of(request)


def _handed_on(profile: SiteProfile, shell: ActiveShell | None) -> tuple[str, ...]:
    """Return the modules of this shell that may bring a framework, where the job gets its variables."""
    loaded = shell.modules if shell and site_scheduler(profile).hands_on_environment else ()
    return tuple(module for module in loaded if _BRINGS_PYTHON.search(module))


def _not_known(job: KnownJob, goal: str, brings: tuple[str, ...]) -> KnownJob:
    """Return the job with a note: the profile cannot know what its environment has."""
    if job.request.command.bundled or job.request.check or job.request.check_imports:
        return job
    loaded = f" (modules of this shell: {', '.join(brings)})" if brings else ""
    note = f"{OPEN.format(goal)}{loaded}; --check-imports tries it first"
    return replace(job, notes=(note,))


def _why_not(request: JobRequest, profile: SiteProfile, goals: tuple[str, ...]) -> str:
    why = f"our profile of {profile.name} knows no {goals[0]}"
    if lack := next((profile.software.lacks[goal] for goal in goals if goal in profile.software.lacks), None):
        page = f" ({cite(profile, lack.source)})" if lack.source else ""
        why = f"{lack.why}{page}"
    return f"nothing brings {request.framework or goals[0]} into the job: {why}"


def _ways(job: KnownJob, goal: str) -> str:
    """Return the commands that help; the site is named as in the settings, by a file, too."""
    from hpclaunch.software.install_plan import plan_install  # only refusals need it

    own = "name where it is: --venv, --conda, --module or --container"
    if goal in GOALS and plan_install(job.profile, goal).chosen:
        site = next((each.value for each in job.settings if each.name == "site"), job.profile.name)
        install = f"hpclaunch software plan --site {word(str(site))} --for {goal} --write install.sh"
        own = f"install it: {install}; or {own}"
    return f"{own}; --software none submits all the same"
