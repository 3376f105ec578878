"""The shell lines of a job's script for its ``environment:``, each with its reason. Pure."""

from collections.abc import Iterator

from msgspec.structs import replace

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import Environment, EnvVar, JobEasyBuild, SiteProfile
from hpclaunch.site.site_scheduler import source_of
from hpclaunch.software.containers import (
    bind_lines,
    container_lines,
    facts_of,
    gpu_flag,
    in_container,
    module_lines,
)
from hpclaunch.software.script_lines import double_quote, line, word

GIVEN = Line(text="", reason="given in environment")


def environment_lines(
    environment: Environment | None, profile: SiteProfile, given: Line = GIVEN
) -> tuple[Line, ...]:
    """Return all software lines of a job's script: the site's setup, and what the job adds.

    None: only the site's setup. ``given``: reason and source of what the job adds. Raises BadInputError if
    parts of it contradict each other.
    """
    if environment is None:
        return tuple(_site_setup(profile, contained=False))
    from hpclaunch.software.contradictions import contradictions, unusable  # seldom needed

    if wrong := unusable(environment) or contradictions(environment, profile):
        raise BadInputError("\n".join(f"environment: {each}" for each in wrong))
    return tuple(_lines(environment, profile, given))


def _lines(environment: Environment, profile: SiteProfile, given: Line) -> Iterator[Line]:
    """Yield the lines in the order that works: prefixes before the modules that read them, Python last."""
    prefix = easybuild_prefix(environment.easybuild, profile) if environment.easybuild else None
    if prefix:
        yield line("easybuild prefix", variable=_prefix_variable(profile), folder=double_quote(prefix))
    if environment.site_setup:
        yield from _site_setup(profile, contained=environment.container is not None)
    yield from _eessi(environment, profile)
    for folder in environment.module_use:
        yield replace(given, text=f"module use {double_quote(folder)}")
    if environment.easybuild:
        yield from _easybuild(environment.easybuild, prefix, _prefix_variable(profile))
    for name in environment.modules:
        yield from load_lines(name, profile, given)
    yield from _python(environment)
    for folder in reversed(environment.path):
        yield replace(given, text=f'export PATH={double_quote(folder)}:"$PATH"')
    if environment.container:
        yield from container_lines(environment.container, profile)


def _eessi(environment: Environment, profile: SiteProfile) -> Iterator[Line]:
    eessi, site = environment.eessi, profile.software.eessi
    if eessi is None:
        return
    from hpclaunch.software.eessi import init_lines, pull_lines, with_target

    eessi = with_target(eessi, profile)
    if eessi.init == "container":
        yield from module_lines(profile)  # Singularity's or Apptainer's
        yield from pull_lines(eessi)
        yield from bind_lines("SINGULARITY_BIND", (), profile, facts_of(profile))
        return
    yield from init_lines(eessi, site.modules if site else ())
    yield from (_load(name, "module from EESSI") for name in eessi.load)


def _python(environment: Environment) -> Iterator[Line]:
    if environment.conda:
        yield line("conda hook")
        yield line("conda activate", name=word(environment.conda))
    if environment.venv:
        yield line("venv", script=double_quote(environment.venv + "/bin/activate"))


def _site_setup(profile: SiteProfile, *, contained: bool) -> Iterator[Line]:
    """Yield the site's lines; with a container without those whose software its image replaces."""
    for step in profile.software.setup:
        if contained and step.replaced_by_images:
            continue
        line = Line(text=step.text, reason=step.reason, source=source_of(profile, step.source))
        name = step.text.removeprefix("module load ")
        yield from load_lines(name, profile, line) if name in profile.software.fallbacks else (line,)


def load_lines(name: str, profile: SiteProfile, given: Line) -> Iterator[Line]:
    """Yield the lines that load a module: where it is gone, the next one that the profile knows, and say so.

    ``module is-avail``: Lmod (lmod.readthedocs.io, 010_user), Environment Modules from 4.1 on (man module).
    """
    others = profile.software.fallbacks.get(name, ())
    if not others:
        yield replace(given, text=f"module load {word(name)}")
        return
    yield line("first module", names=" ".join(map(word, (name, *others))))
    yield line("another module", word=word(name), name=name)
    yield replace(given, text='module load "$module"')


def _load(name: str, why: str) -> Line:
    return Line(text=f"module load {word(name)}", reason=why)


def _prefix_variable(profile: SiteProfile) -> str:
    site = profile.software.easybuild
    return site.prefix_variable if site else "EASYBUILD_PREFIX"


def easybuild_prefix(easybuild: JobEasyBuild, profile: SiteProfile) -> str | None:
    """Return where EasyBuild installs: as the job says, else as the site advises, if that is a real path."""
    site = profile.software.easybuild
    advised = site.prefix if site else None
    return easybuild.prefix or (advised if advised and "<" not in advised else None)


def _easybuild(easybuild: JobEasyBuild, prefix: str | None, variable: str) -> Iterator[Line]:
    """Yield EasyBuild's lines: its modules are in PREFIX/modules/all; LUMI's stack finds EBU_USER_PREFIX."""
    if prefix and variable == "EASYBUILD_PREFIX":
        yield line("easybuild modules", folder=double_quote(prefix + "/modules/all"))
    from hpclaunch.software.easyconfig import module_of

    yield from (_load(module_of(name), "module built with EasyBuild") for name in easybuild.load)


def wrap_command(
    environment: Environment | None, profile: SiteProfile, argv: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the command that each rank runs: inside the container if there is one."""
    if environment is None:
        return argv
    if environment.container is not None:
        return in_container(environment.container, profile, argv)
    if environment.eessi is not None and environment.eessi.init == "container":
        from hpclaunch.software.eessi import in_eessi_container

        return in_eessi_container(environment.eessi, gpu_flag(profile), argv)
    return argv


PRIVATE_FOLDERS = "private_folders.sh"
"""File of ``hpclaunch/remote``, and of the job's folder."""
_WRITABLE_BY_ALL = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108


def private_folders(
    profile: SiteProfile, nodes: int, environment: Environment | None, given: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return those of the profile's variables that name a folder where every user may write."""
    return tuple(
        name
        for name, each in _merged(profile, nodes, environment).items()
        if name not in given and (each.value or "").startswith(_WRITABLE_BY_ALL)
    )


def _merged(profile: SiteProfile, nodes: int, environment: Environment | None) -> dict[str, EnvVar]:
    """Return the profile's variables; in a container without those that the site's engine sets itself."""
    fabric = profile.fabric
    merged = {**fabric.common, **(fabric.multi_node if nodes > 1 else fabric.single_node), **profile.env}
    if environment is None or environment.container is None:
        return merged
    return {name: each for name, each in merged.items() if not each.outside_containers}


def site_variables(
    profile: SiteProfile, nodes: int, environment: Environment | None, given: frozenset[str] = frozenset()
) -> tuple[Line, ...]:
    """Return the profile's variables for a job of ``nodes`` nodes, without those that the job sets itself."""
    return tuple(
        Line(
            text=f"unset {name}" if each.value is None else f"export {name}={word(each.value)}",
            reason=each.reason,
            source=source_of(profile, each.source),
        )
        for name, each in _merged(profile, nodes, environment).items()
        if name not in given
    )
