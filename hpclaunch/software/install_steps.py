"""The shell lines of an installation. Pure.

The steps are data: ``install_recipes.yaml``. The script exports PREFIX, the folder to install into; its steps
run in bash with ``set -eo pipefail``.
"""

import shlex
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.framework_table import GOALS
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import Environment, JobEasyBuild, JobEessi
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import Offer, SiteProfile
from hpclaunch.software import easyconfig
from hpclaunch.software.container_lines import bind_lines, gpu_flag, module_lines
from hpclaunch.software.container_runtimes import RUNTIMES, facts_of, runtime_of
from hpclaunch.software.easyconfig import Wheels, wheels_of
from hpclaunch.software.eessi import IMAGE, SCRIPTS, EessiModule, init_lines
from hpclaunch.software.horovod_facts import CXX17_FROM_TORCH, TESTED_TENSORFLOW, VERSION, build_variables
from hpclaunch.software.shell_quoting import double_quote
from hpclaunch.software.software_lines import environment_lines

_CPUS = {"Grace": "aarch64", "POWER": "ppc64le"}


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A way before it is known whether its versions go together."""

    why: str
    steps: tuple[Line, ...] = ()
    environment: Environment = Environment()
    mpi: str | None = None
    nodes: int | None = None
    directives: tuple[str, ...] = ()
    env: dict[str, str] = {}
    versions: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    slow: bool = False


def _part(part: str, **facts: Any) -> tuple[Line, ...]:
    """Return the steps of a part of ``install_recipes.yaml`` with these facts."""
    rows = package_table("software/install_recipes.yaml")["steps"][part]
    return tuple(
        Line(text=_template(row["run"]).render(facts), reason=_template(row["why"]).render(facts))
        for row in rows
        if "if" not in row or facts[row["if"]]
    )


@cache
def _template(text: str) -> Any:
    import jinja2  # only where an installation is planned

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - a shell script, not HTML: the filters quote
    )
    environment.filters.update(quoted=shlex.quote, in_double_quotes=double_quote)
    return environment.from_string(text)


def _head(profile: SiteProfile) -> tuple[Line, ...]:
    """Return the check that the script runs on the kind of CPU that the jobs have."""
    model = profile.node.cpu_model if profile.node else ""
    cpu = next((name for word, name in _CPUS.items() if word in model), None)
    return _part("head", cpu=cpu) if cpu else ()


def _prove(name: str) -> tuple[Line, ...]:
    return _part("prove", program=GOALS[name].prove)


def package_on_top(
    profile: SiteProfile, name: str, *, system: bool, venv: str = "$PREFIX"
) -> tuple[Line, ...]:
    """Return the steps that install a goal's package into a venv on top of its base."""
    package = GOALS[name].package
    build = _horovod(profile, name) if package == "horovod" else _part("package", package=package)
    return (*_part("venv", folder=venv, system=system), *build, *_prove(name))


def _horovod(profile: SiteProfile, name: str) -> tuple[Line, ...]:
    """Return the steps that compile Horovod with the variables of the site."""
    torch = GOALS[name].base == "torch"
    variables = build_variables(profile, "pytorch" if torch else "tensorflow")
    exports = " ".join(
        f"{key}={double_quote(value) if '$' in value else value}" for key, value in variables.items()
    )
    since = ".".join(map(str, CXX17_FROM_TORCH)) if torch else None
    return _part("horovod", exports=exports, version=VERSION, cxx17_from=since)


def of_offer(profile: SiteProfile, offer: Offer, prefix: str) -> tuple[Line, ...]:
    """Return the steps that the site documents; none where it has the software."""
    if not offer.install:
        return ()
    return (*_head(profile), *_before(profile, offer), *_documented(profile, offer))


def _documented(profile: SiteProfile, offer: Offer) -> tuple[Line, ...]:
    source = f"from the site ({cite(profile, offer.source)})"
    return tuple(Line(text=text, reason=source) for text in offer.install)


def _before(profile: SiteProfile, offer: Offer) -> tuple[Line, ...]:
    """Return what must be set before the lines of an offer: EasyBuild's folder, and the site's setup."""
    lines: tuple[Line, ...] = ()
    site = profile.software.easybuild
    if offer.environment.easybuild is not None and site is not None:
        lines = _part("easybuild_folder", variable=site.prefix_variable)
    return (*lines, *(environment_lines(None, profile) if offer.environment.site_setup else ()))


def inside_offer(
    profile: SiteProfile, offer: Offer, prefix: str, inside: tuple[Line, ...]
) -> tuple[Line, ...]:
    """Return the steps that run others where an offer is loaded: here, in its image, or behind ``enter``."""
    first = (*_head(profile), *_documented(profile, offer))
    container = offer.environment.container
    if container is not None:
        runtime = runtime_of(profile)
        words = (runtime, "exec", *gpu_flag(profile, container), double_quote(container.image))
        return (
            *first,
            *module_lines(profile),
            *_part("seen_in_container"),
            *bind_lines(RUNTIMES[runtime].binds, ("$PREFIX",), profile, facts_of(profile)),
            *_part("inside", enter=" ".join(words), inside=inside),
        )
    if offer.enter is not None:
        return (*first, *_part("inside", enter=offer.enter, inside=inside))
    return (*first, *environment_lines(offer.environment, profile), *inside)


def eb_command(recipe: easyconfig.Recipe) -> str:
    """Return the words of ``eb`` for a recipe: with its commit, and the licences that CUDA needs."""
    words = ["eb"]
    if recipe.commit:
        words += ["--from-commit", recipe.commit]
    if easyconfig.parse_easyconfig(recipe.file).cuda:
        words.append(f"--accept-eula-for={','.join(easyconfig.EULAS)}")
    return " ".join([*words, recipe.file, "--robot"])


def easybuild(profile: SiteProfile, recipe: easyconfig.Recipe, goal: str | None) -> tuple[Line, ...]:
    """Return the steps of EasyBuild in a separate venv, in the release whose recipes are known.

    ``goal``: what the recipe is for; None: something is installed on top of it.
    """
    load = Environment(site_setup=False, easybuild=JobEasyBuild(prefix="$PREFIX", load=(recipe.file,)))
    licences = " and ".join(easyconfig.EULAS) if easyconfig.parse_easyconfig(recipe.file).cuda else ""
    # The recipe is not that of the site's stack, so EasyBuild's own variable is not needed.
    foreign = replace(profile, software=replace(profile.software, easybuild=None))
    return (
        *_head(profile),
        *_part("easybuild", release=easyconfig.RELEASE, eb=eb_command(recipe), licences=licences),
        *environment_lines(load, foreign)[1:],
        *(_prove(goal) if goal else ()),
    )


def eessi(
    profile: SiteProfile, name: str, module: EessiModule, job: JobEessi, prefix: str
) -> tuple[Line, ...]:
    """Return the steps of a module of EESSI; none where it is there already."""
    if job.init == "container":
        return (*module_lines(profile), *_part("eessi_container", scripts=SCRIPTS, image=IMAGE))
    if not module.extend and not module.package:
        return ()
    site = profile.software.eessi
    steps = (*_head(profile), *_part("eessi_folder"), *init_lines(job, site.modules if site else ()))
    if module.extend:
        recipe = {"eb": eb_command(module.extend), "extended": module.extend_module}
        return (*steps, *_part("eessi_extend", module=module.name, **recipe), *_prove(name))
    above = package_on_top(profile, name, system=True)
    return (*steps, *_part("eessi_module", module=module.name), *above)


def _requirements(name: str, wheels: Wheels) -> tuple[str, ...]:
    goal = GOALS[name]
    return (*wheels.words, *((goal.package,) if goal.package else ()))


def cotainr(profile: SiteProfile, name: str, wheels: Wheels, image: str) -> tuple[Line, ...]:
    """Return the steps that build an image with cotainr from a conda environment with pip's wheels."""
    site = profile.software.container
    system = site.cotainr if site else ""
    packages = _requirements(name, wheels)
    return _part("cotainr", name=name, wheels=wheels, packages=packages, image=image, system=system)


def wrapper(profile: SiteProfile, name: str, wheels: Wheels, prefix: str) -> tuple[Line, ...]:
    """Return the steps of the container wrapper with pip's requirements."""
    facts = {"wheels": wheels, "packages": _requirements(name, wheels), "wrapper": profile.software.wrapper}
    return (
        *_head(profile),
        *environment_lines(None, profile),
        *_part("wrapper", **facts),
        *_prove(name),
    )


def pip(profile: SiteProfile, name: str, vendor: str | None) -> tuple[Line, ...]:
    """Return the steps of a venv with what pip installs."""
    goal = GOALS[name]
    if name == "mpi4py":
        parts = _part("pip_mpi4py")
    elif goal.base == "tensorflow":
        parts = _part("pip_tensorflow", newest=".".join(map(str, TESTED_TENSORFLOW)))
    else:
        parts = _part("pip_wheels", wheels=wheels_of(goal.base or name, vendor))
    if goal.package == "horovod":
        parts = (*parts, *_part("horovod_tools"), *_horovod(profile, name))
    elif goal.package is not None:
        parts = (*parts, *_part("package", package=goal.package))
    return (*_part("venv", folder="$PREFIX", system=False), *parts, *_prove(name))


def pip_notes(name: str) -> tuple[str, ...]:
    """Return what is worth knowing about a goal from pip."""
    if GOALS[name].package != "horovod":
        return ()
    notes = [f"Horovod {VERSION} is published as source only: it is compiled with the loaded MPI"]
    if GOALS[name].base == "torch":
        since = ".".join(map(str, CXX17_FROM_TORCH))
        notes.append(f"torch from {since} on needs C++17; a wrapper of the compiler sets it")
    return tuple(notes)
