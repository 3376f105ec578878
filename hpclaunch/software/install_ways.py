"""The ways to get a framework on a site, each a function from what is known to steps and a job. Pure.

The steps are data: ``install_recipes.yaml``. The script exports PREFIX, the folder to install into; its steps
run in bash with ``set -eo pipefail``.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from hpclaunch.errors import note_text
from hpclaunch.framework_table import GOALS, Goal
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import Environment, JobContainer, JobEasyBuild, JobEessi, Offer, SiteProfile
from hpclaunch.site.site_scheduler import cite, site_scheduler
from hpclaunch.software import easyconfig, eessi, horovod_facts
from hpclaunch.software.containers import RUNTIMES, bind_lines, facts_of, gpu_flag, module_lines, runtime_of
from hpclaunch.software.contradictions import contradictions
from hpclaunch.software.easyconfig import Recipe, Wheels, parse_easyconfig, provided, wheels_of
from hpclaunch.software.known_pairs import compatible, cuda_addresses, first_cuda, mpi_family, version_numbers
from hpclaunch.software.script_lines import double_quote
from hpclaunch.software.software_lines import environment_lines


class NoWayError(Exception):
    """Why software cannot be had in some way; the plan says so."""


def unless(*reasons: str | None) -> None:
    """End a way by the first of these reasons that there is."""
    if why := next(filter(None, reasons), None):
        raise NoWayError(why)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The goal and the machine of a plan."""

    profile: SiteProfile
    name: str
    prefix: str

    @property
    def goal(self) -> Goal:
        """The row of the table."""
        return GOALS[self.name]

    @property
    def base(self) -> str:
        """The goal that a package goes on top of, else the goal itself."""
        return self.goal.base or self.name

    @property
    def vendor(self) -> str | None:
        """The vendor of the site's GPUs; None: it has none."""
        node = self.profile.node
        return node.gpu_vendor if node and node.gpus else None

    @property
    def arch(self) -> str | None:
        """The architecture of its GPUs."""
        node = self.profile.node
        return node.gpu_arch if node and node.gpus else None

    @property
    def slingshot(self) -> bool:
        """Whether its network is Slingshot, which needs a libfabric with cxi and a plugin of NCCL."""
        return self.profile.fabric.kind.startswith("slingshot")

    @property
    def anonymous(self) -> bool:
        """Whether the profile describes no machine: what it has is not known."""
        return self.profile.status == "generic"

    @property
    def offline(self) -> str | None:
        """Why nothing can be downloaded; None: it can."""
        if self.profile.internet_on_login is False and not self.profile.internet_on_compute:
            return f"neither login nor compute nodes of {self.profile.name} reach the internet"
        return None


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


def part(name: str, /, **facts: Any) -> tuple[Line, ...]:
    """Return the steps of a part of ``install_recipes.yaml`` with these facts."""
    rows = package_table("software/install_recipes.yaml")["steps"][name]
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


def head(profile: SiteProfile) -> tuple[Line, ...]:
    """Return the check that the script runs on the kind of CPU that the jobs have."""
    cpu = profile.node.cpu_arch if profile.node else None
    return part("head", cpu=cpu) if cpu else ()


def prove(target: Target) -> tuple[Line, ...]:
    """Return the step that fails where the goal is not there afterwards."""
    return part("prove", program=target.goal.prove)


def package_on_top(target: Target, venv: str = "$PREFIX") -> tuple[Line, ...]:
    """Return the steps that install a goal's package into a venv on top of its base."""
    return (*part("venv", folder=venv, system=True), *package(target), *prove(target))


def package(target: Target) -> tuple[Line, ...]:
    """Return the steps of a goal's package; Horovod is compiled with the variables of the site."""
    if target.goal.package != "horovod":
        return part("package", package=target.goal.package)
    torch = target.goal.base == "torch"
    variables = horovod_facts.build_variables(target.profile, "pytorch" if torch else "tensorflow")
    exports = " ".join(
        f"{key}={double_quote(value) if '$' in value else value}" for key, value in variables.items()
    )
    since = ".".join(map(str, horovod_facts.CXX17_FROM_TORCH)) if torch else None
    return part("horovod", exports=exports, version=horovod_facts.VERSION, cxx17_from=since)


def documented(profile: SiteProfile, offer: Offer) -> tuple[Line, ...]:
    """Return the steps that the site documents."""
    source = f"from the site ({cite(profile, offer.source)})"
    return tuple(Line(text=text, reason=source) for text in offer.install)


def inside_offer(profile: SiteProfile, offer: Offer, inside: tuple[Line, ...]) -> tuple[Line, ...]:
    """Return the steps that run others where an offer is loaded: here, in its image, or behind ``enter``."""
    first = (*head(profile), *documented(profile, offer))
    container = offer.environment.container
    if container is not None:
        runtime = runtime_of(profile)
        words = (runtime, "exec", *gpu_flag(profile, container), double_quote(container.image))
        return (
            *first,
            *module_lines(profile),
            *part("seen_in_container"),
            *bind_lines(RUNTIMES[runtime].binds, ("$PREFIX",), profile, facts_of(profile)),
            *part("inside", enter=" ".join(words), inside=inside),
        )
    if offer.enter is not None:
        return (*first, *part("inside", enter=offer.enter, inside=inside))
    return (*first, *environment_lines(offer.environment, profile), *inside)


def _starts(target: Target, mpi: str) -> str | None:
    """Return the value of srun --mpi for programs of this MPI; None: the launcher starts them as it is."""
    profile, family = target.profile, mpi_family(mpi) or mpi
    own = mpi_family(profile.mpi.implementation or "")
    if (own and compatible(own, family)) or target.anonymous or profile.mpi.plugin_open:
        return None
    plugin = {"Open MPI": "pmix"}.get(family, "pmi2")
    if plugin in profile.mpi.alternatives or profile.mpi.plugin == plugin:
        return plugin
    launcher, has = profile.scheduler.launcher, own or "another MPI"
    raise NoWayError(f"no way to start {mpi} with {launcher} is documented: {profile.name} has {has}")


def _for_horovod(target: Target, versions: dict[str, str]) -> str | None:
    """Return why Horovod cannot be built on this base; None: no fact is against it, or none is wanted."""
    mpi = versions.get("mpi")
    if target.goal.package != "horovod":
        return None
    if mpi is None:
        return "which MPI is in it is not documented, and Horovod is compiled with one"
    if mpi_family(mpi) == "Open MPI" and version_numbers(mpi.rsplit(" ", 1)[-1])[:1] >= (5,):
        return f"it has {mpi}, and no build of Horovod with Open MPI 5 is known (it wants Open MPI 4)"
    return _for_gpus_of_horovod(target.vendor, versions) if target.vendor else None


def _for_gpus_of_horovod(vendor: str, versions: dict[str, str]) -> str | None:
    kit = {"nvidia": "cuda", "amd": "rocm"}.get(vendor)
    if kit is None:
        return f"no build of Horovod for {vendor} GPUs is known"
    newest, where = package_table("software/install_recipes.yaml")["documented_gpu_builds"][kit]
    have = version_numbers(versions.get(kit, ""))
    if not have:
        return f"which {kit} is in it is not documented, and Horovod is compiled with one"
    if [*have[: len(newest)]] <= newest:
        return None
    listed = f"the newest is {'.'.join(map(str, newest))} ({where})"
    return f"no build of Horovod with {kit} {versions[kit]} is documented; {listed}"


def _foreign_stack(target: Target, mpi: str | None) -> tuple[str | None, int | None, tuple[str, ...]]:
    """Judge a stack that is not the site's: (srun's plugin, nodes, notes)."""
    plugin = _starts(target, mpi) if mpi and target.goal.by_mpi else None
    if not target.slingshot:
        return plugin, None, ()
    if target.goal.by_mpi:
        raise NoWayError("its Open MPI has no libfabric with the provider cxi, which Slingshot needs")
    if target.vendor is None:
        return plugin, None, ()
    note = "one node only: on several NCCL needs a plugin for Slingshot, which this stack does not have"
    return plugin, 1, (note,)


def _with_prefix(value: Any, prefix: str) -> Any:
    """Return data with $PREFIX replaced in every text."""
    if isinstance(value, str):
        return value.replace("$PREFIX", prefix)
    if isinstance(value, dict):
        return {key: _with_prefix(each, prefix) for key, each in value.items()}
    return [_with_prefix(each, prefix) for each in value] if isinstance(value, list | tuple) else value


def from_site(target: Target) -> Way:
    """The software that the site has or documents, or a small package on top of it."""
    offers = target.profile.software.offers
    if offer := offers.get(target.name):
        unless(target.offline if offer.install else None)
        return Way(why=_why(target, offer), steps=_of_offer(target, offer), **_job_of(offer, target.prefix))
    base = offers.get(target.goal.base or "")
    if base is None:
        raise NoWayError(_unknown(target))
    try:
        return _on_top(target, base)
    except NoWayError as why:
        raise NoWayError(f"{_unknown(target)}; on its {target.goal.base}: {why}") from why


def _of_offer(target: Target, offer: Offer) -> tuple[Line, ...]:
    """Return the steps that the site documents, with EasyBuild's folder and the site's setup before them."""
    if not offer.install:
        return ()
    profile, site = target.profile, target.profile.software.easybuild
    steps = head(profile)
    if offer.environment.easybuild is not None and site is not None:
        steps += part("easybuild_folder", variable=site.prefix_variable)
    if offer.environment.site_setup:
        steps += environment_lines(None, profile)
    return (*steps, *documented(profile, offer))


def _unknown(target: Target) -> str:
    """Return that the site has no such software, as its page says, or that the profile knows of none."""
    profile = target.profile
    if lack := profile.software.lacks.get(target.name):
        return f"{lack.why} ({cite(profile, lack.source)})"
    return f"our profile of {profile.name} knows no {target.name}"


def _why(target: Target, offer: Offer) -> str:
    return f"{offer.note or 'what the site documents'} ({cite(target.profile, offer.source)})"


def _job_of(offer: Offer, prefix: str) -> dict[str, Any]:
    environment = _with_prefix(msgspec.to_builtins(offer.environment), prefix)
    return {
        "environment": msgspec.convert(environment, Environment),
        "directives": offer.directives,
        "env": _with_prefix(dict(offer.env), prefix),
        "mpi": offer.mpi,
        "versions": dict(offer.versions),
    }


def _on_top(target: Target, base: Offer) -> Way:
    """Install a package into a venv on top of the site's framework."""
    unless(target.offline, target.profile.software.no_venv, _for_horovod(target, base.versions))
    job = _job_of(base, target.prefix)
    environment: Environment = job.pop("environment")
    if environment.container is not None:
        if RUNTIMES[runtime_of(target.profile)].start != "exec":
            raise NoWayError("its images start by srun only, so a venv inside is made by hand in a job")
        venv = replace(environment, container=replace(environment.container, venv=target.prefix))
    else:
        venv = replace(environment, venv=target.prefix)
    steps = inside_offer(target.profile, base, package_on_top(target))
    why = f"{target.goal.package} in a venv on top of the site's {target.goal.base}: {_why(target, base)}"
    notes = (f"{target.goal.package} on top of it was not tried there",)
    return Way(why=why, steps=steps, environment=venv, notes=notes, **job)


def easybuild(target: Target) -> Way:
    """The first recipe that exists and works on the site."""
    unless(target.offline)
    if re.search(r"\s", target.prefix):
        raise NoWayError(note_text("EasyBuild: blank"))
    own = target.name in easyconfig.recipes()
    recipes = easyconfig.recipes().get(target.name if own else target.base, ())
    if not recipes:
        raise NoWayError(f"no easyconfig of {target.name} is in release {easyconfig.RELEASE}")
    refused: list[str] = []
    for recipe in recipes:
        against = next(_against(recipe, target), None)
        if against is None:
            return _easybuild_way(target, recipe, own)
        refused.append(against)
    why = "no recipe works: " + "; ".join(dict.fromkeys(refused))
    first = first_cuda(target.arch) if target.arch else None
    if first and any("cannot address" in each for each in refused):
        why += f". For {target.arch} a recipe needs CUDA {first} or newer"
    raise NoWayError(why)


def _against(recipe: Recipe, target: Target) -> Iterator[str]:
    profile, parsed, versions = target.profile, parse_easyconfig(recipe.file), provided(recipe)
    alone = Environment(site_setup=False, easybuild=JobEasyBuild(load=(recipe.file,)))
    yield from contradictions(alone, profile)
    if target.vendor and not parsed.cuda and target.goal.framework != "mpi4py":
        yield f"{recipe.file} is built for CPUs only"
    if parsed.cuda and target.vendor != "nvidia":
        has = f"has {target.vendor} GPUs" if target.vendor else "has no known GPU"
        yield f"{recipe.file} needs CUDA {parsed.cuda}, and {profile.name} {has}"
    site = profile.software.easybuild
    if site and site.toolchains and parsed.toolchain not in site.toolchains:
        listed = ", ".join(site.toolchains)
        yield f"{recipe.file} has the toolchain {parsed.toolchain}; this site has {listed}"
    if why := _for_horovod(target, versions):
        yield f"{recipe.file}: {why}"
    try:
        _foreign_stack(target, versions.get("mpi"))
    except NoWayError as no_way:
        yield f"{recipe.file}: {no_way}"


def _easybuild_way(target: Target, recipe: Recipe, own: bool) -> Way:
    """Return the way with one recipe, and with a package on top where the recipe is only the base."""
    plugin, nodes, notes = _foreign_stack(target, provided(recipe).get("mpi"))
    prefix, profile = target.prefix, target.profile
    environment = Environment(easybuild=JobEasyBuild(prefix=prefix, load=(recipe.file,)))
    if profile.software.setup:
        environment = replace(environment, site_setup=False)
    load = Environment(site_setup=False, easybuild=JobEasyBuild(prefix="$PREFIX", load=(recipe.file,)))
    licences = " and ".join(easyconfig.EULAS) if parse_easyconfig(recipe.file).cuda else ""
    # The recipe is not that of the site's stack, so EasyBuild's own variable is not needed.
    foreign = replace(profile, software=replace(profile.software, easybuild=None))
    release, eb = easyconfig.RELEASE, easyconfig.eb_command(recipe)
    steps = (
        *head(profile),
        *part("easybuild", release=release, eb=eb, licences=licences),
        *environment_lines(load, foreign)[1:],
    )
    why = f"{recipe.file} is in release {release} of EasyBuild's recipes ({easyconfig.SOURCE})"
    if recipe.commit:
        commit = f"{easyconfig.SOURCE}, {recipe.commit}"
        why = f"{recipe.file} is in no release: it is that of a pull request ({commit})"
        notes = (*notes, "no report of a build of this recipe was read")
    if own:
        steps += prove(target)
    else:
        unless(profile.software.no_venv)
        environment = replace(environment, venv=f"{prefix}/venv")
        steps += package_on_top(target, f"{prefix}/venv")
        why = f"{target.goal.package} in a venv on top of EasyBuild's: {why}"
    notes = (*notes, "the first build takes hours; build on a node with the CPU of the compute nodes")
    return Way(
        why=why, steps=steps, environment=environment, mpi=plugin, nodes=nodes,
        versions=provided(recipe), notes=notes, slow=True,
    )  # fmt: skip


def eessi_native(target: Target) -> Way:
    """A module of EESSI where the site has it, or a recipe or package on top of one."""
    site = target.profile.software.eessi
    if site is None:
        raise NoWayError(f"our profile of {target.profile.name} knows no EESSI{_no_horovod(target)}")
    return _eessi(target, site.versions or tuple(eessi.eessi_modules()), "module")


def eessi_container(target: Target) -> Way:
    """A module of EESSI in its container, where nodes have no CernVM-FS but reach the internet."""
    profile = target.profile
    container = profile.software.container
    if container is None and not target.anonymous:
        raise NoWayError(f"our profile of {profile.name} knows no containers")
    if container is not None and container.runtime not in ("singularity", "apptainer"):
        raise NoWayError(f"{profile.name} has no Singularity or Apptainer, which eessi_container.sh starts")
    if profile.internet_on_compute is False:
        why = "do not reach the internet, from which its CernVM-FS reads"
        raise NoWayError(f"compute nodes of {profile.name} {why}")
    if target.goal.by_mpi:
        raise NoWayError("the MPI in EESSI's container is not known to reach the launcher outside of it")
    return _eessi(target, tuple(eessi.eessi_modules()), "container")


def _eessi(target: Target, versions: tuple[str, ...], init: str) -> Way:
    if target.vendor not in (None, "nvidia"):
        raise NoWayError(f"EESSI has no framework for {target.vendor} GPUs{_no_horovod(target)}")
    refused: list[str] = []
    for version in sorted(versions, reverse=True):
        for module in eessi.eessi_modules().get(version, {}).get(target.name, ()):
            try:
                return _eessi_way(target, version, module, init)
            except NoWayError as why:
                refused.append(f"{module.name}: {why}")
    gpus = f" for {target.arch}" if target.arch else ""
    nothing = f"EESSI has no {target.name}{gpus} in {' or '.join(versions)}{_no_horovod(target)}"
    raise NoWayError("; ".join(refused) or nothing)


def _no_horovod(target: Target) -> str:
    return "; it has no Horovod in any version" if target.goal.package == "horovod" else ""


def _eessi_way(target: Target, version: str, module: eessi.EessiModule, init: str) -> Way:
    if bool(module.cuda) != (target.vendor == "nvidia") and target.goal.framework != "mpi4py":
        raise NoWayError("it is built for CPUs only" if target.vendor else "it is built for NVIDIA GPUs")
    if module.cuda and target.arch and cuda_addresses(module.cuda, target.arch) is False:
        raise NoWayError(f"its CUDA {module.cuda} cannot address {target.arch}")
    plugin, nodes, notes = _foreign_stack(target, f"Open MPI {module.mpi}" if module.mpi else None)
    unless(target.profile.software.no_venv if module.package else None)
    if (module.extend or module.package) and init == "container":
        raise NoWayError("nothing can be added to EESSI in its container here")
    cache = target.prefix if init == "container" else None
    job = JobEessi(
        version=version,
        init=init,  # type: ignore[arg-type]
        accelerator=eessi.accelerator_target(target.arch),
        load=(module.extend_module or module.name,),
        extend=target.prefix if module.extend else None,
        cache=cache,
        script=f"{target.prefix}/software-layer-scripts/eessi_container.sh" if cache else None,
    )
    environment = Environment(site_setup=False, eessi=job, venv=target.prefix if module.package else None)
    where = "in its container" if init == "container" else "of the site"
    return Way(
        why=f"{module.what} of EESSI {version} {where} ({eessi.SOURCE})",
        steps=_eessi_steps(target, module, job),
        environment=environment, mpi=plugin, nodes=nodes, versions=module.versions, notes=notes,
    )  # fmt: skip


def _eessi_steps(target: Target, module: eessi.EessiModule, job: JobEessi) -> tuple[Line, ...]:
    """Return the steps of a module of EESSI; none where it is there already."""
    profile, site = target.profile, target.profile.software.eessi
    if job.init == "container":
        return (*module_lines(profile), *part("eessi_container", scripts=eessi.SCRIPTS, image=eessi.IMAGE))
    if not module.extend and not module.package:
        return ()
    steps = (*head(profile), *part("eessi_folder"), *eessi.init_lines(job, site.modules if site else ()))
    if module.extend:
        recipe = {"eb": easyconfig.eb_command(module.extend), "extended": module.extend_module}
        return (*steps, *part("eessi_extend", module=module.name, **recipe), *prove(target))
    return (*steps, *part("eessi_module", module=module.name), *package_on_top(target))


def container(target: Target) -> Way:
    """An image that is built for the site with cotainr."""
    site = target.profile.software.container
    if site is None or site.runtime == "none":
        raise NoWayError(f"our profile of {target.profile.name} knows no containers")
    if site.cotainr is None:
        why = "knows no tool that builds images of Python packages"
        raise NoWayError(f"our profile of {target.profile.name} {why}")
    wheels, packages = _wheels(target)
    image = f"{target.prefix}/{target.name}.sif"
    facts = {"wheels": wheels, "packages": packages, "image": image, "system": site.cotainr}
    return Way(
        why=f"an image built with cotainr --system={site.cotainr}, with wheels for {target.vendor} GPUs",
        steps=part("cotainr", name=target.name, **facts),
        environment=Environment(site_setup=False, container=JobContainer(image=image)),
        versions=wheels.versions,
        notes=_no_plugin(target),
    )


def wrapper(target: Target) -> Way:
    """The site's container wrapper around pip: few files, and programs as if they were not in a container."""
    profile, program = target.profile, target.profile.software.wrapper
    if program is None:
        raise NoWayError(f"our profile of {profile.name} knows no container wrapper")
    wheels, packages = _wheels(target)
    steps = part("wrapper", wheels=wheels, packages=packages, wrapper=program)
    return Way(
        why=f"pip in an image with {program}, with wheels for {target.vendor} GPUs",
        steps=(*head(profile), *environment_lines(None, profile), *steps, *prove(target)),
        environment=Environment(path=(f"{target.prefix}/bin",)),
        versions=wheels.versions,
        notes=("the site calls the wrapper experimental", *_no_plugin(target)),
    )


def _no_plugin(target: Target) -> tuple[str, ...]:
    if not target.slingshot:
        return ()
    return ("on several nodes RCCL uses TCP: the wheels have no plugin for Slingshot (aws-ofi-rccl)",)


def _wheels(target: Target) -> tuple[Wheels, tuple[str, ...]]:
    """Return the wheels of the goal, or of its base, for the site's GPUs, and the requirements of pip."""
    unless("wheels are not compiled with the site's MPI" if target.goal.by_mpi else target.offline)
    wheels = wheels_of(target.base, target.vendor)
    if wheels is None:
        raise NoWayError(f"no index of {target.base} for {target.vendor} GPUs is known")
    return wheels, (*wheels.words, *filter(None, [target.goal.package]))


def pip(target: Target) -> Way:
    """A venv with what pip installs."""
    profile, goal = target.profile, target.goal
    unless(target.offline, profile.software.no_venv)
    python = profile.software.offers.get("python")
    if python is None and not target.anonymous:
        raise NoWayError(f"our profile of {profile.name} knows no Python for virtual environments")
    if goal.by_mpi and not target.anonymous:
        why = f"nothing is known about compiling {target.name} with the MPI of {profile.name}"
        raise NoWayError(why)
    wheels = wheels_of(target.base, target.vendor)
    if not goal.by_mpi and wheels is None:
        raise NoWayError(f"no index of {target.base} for {target.vendor} GPUs is known")
    offer = python or Offer()
    job = _job_of(offer, target.prefix)
    job["environment"] = replace(job["environment"], venv=target.prefix)
    job["versions"] = {**job["versions"], **(wheels.versions if wheels and not goal.by_mpi else {})}
    notes = list(_horovod_from_source(target)) if goal.package == "horovod" else []
    if target.anonymous and not site_scheduler(profile).starts_at_once:
        notes.append("this profile describes no machine: whether Python, MPI and GPUs fit is not known")
    steps = inside_offer(profile, offer, _pip_steps(target, wheels))
    return Way(why="a virtual environment with pip", steps=steps, notes=tuple(notes), **job)


def _pip_steps(target: Target, wheels: Wheels | None) -> tuple[Line, ...]:
    """Return the steps of a venv with what pip installs."""
    if target.name == "mpi4py":
        steps = part("pip_mpi4py")
    elif target.goal.base == "tensorflow":
        steps = part("pip_tensorflow", newest=".".join(map(str, horovod_facts.TESTED_TENSORFLOW)))
    else:
        steps = part("pip_wheels", wheels=wheels)
    if target.goal.package == "horovod":
        steps += part("horovod_tools")
    if target.goal.package is not None:
        steps += package(target)
    return (*part("venv", folder="$PREFIX", system=False), *steps, *prove(target))


def _horovod_from_source(target: Target) -> Iterator[str]:
    yield f"Horovod {horovod_facts.VERSION} is published as source only: it is compiled with the loaded MPI"
    if target.goal.base == "torch":
        since = ".".join(map(str, horovod_facts.CXX17_FROM_TORCH))
        yield f"torch from {since} on needs C++17; a wrapper of the compiler sets it"


WAYS: dict[str, Callable[[Target], Way]] = {
    "site": from_site,
    "easybuild": easybuild,
    "eessi": eessi_native,
    "container": container,
    "wrapper": wrapper,
    "pip": pip,
    "eessi-container": eessi_container,
}
"""Name of a route -> the function that finds it, in the order of preference."""
