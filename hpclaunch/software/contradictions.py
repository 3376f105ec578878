"""Parts of a software environment that do not work together, found before the job is queued."""

import re
from collections.abc import Iterator

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.site.schema import Environment, SiteProfile
from hpclaunch.software.containers import documented, undocumented
from hpclaunch.software.easyconfig import cuda_in, parse_easyconfig
from hpclaunch.software.eessi import TOOLCHAINS
from hpclaunch.software.known_pairs import cuda_addresses, first_cuda, version_numbers


def contradictions(environment: Environment, profile: SiteProfile) -> tuple[str, ...]:
    """Return the contradictions, one sentence each; empty: there are none."""
    inside = environment.container
    both = inside and environment.eessi and environment.eessi.init == "container"
    own = "the container has its own Python; give a venv as container: venv"
    return (
        *_wrong_cuda_for_gpu(environment, profile),
        *_two_cudas(environment, profile),
        *_horovod_from_eessi(environment),
        *(("container and eessi init: container: only one of them can run the command",) if both else ()),
        *_runtime(environment, profile),
        *(f"{key} and container: {own}" for key in ("venv", "conda") if inside and getattr(environment, key)),
    )


def unusable(environment: Environment) -> tuple[str, ...]:
    """Return what is wrong with the texts of an environment that a command line gets, one sentence each.

    A text that begins with a dash would be an option there, and one with a line break ends a list of paths.
    """
    wrong: list[str] = []

    def look(value: object, key: str) -> None:
        if isinstance(value, dict):
            for name, part in value.items():
                look(part, f"{key}.{name}".strip("."))
        elif isinstance(value, list | tuple):
            for part in value:
                look(part, key)
        elif isinstance(value, str):
            if not value.strip() or value.startswith(("-", ":")):
                wrong.append(f"{key}: {value!r} is not a name or path")
            elif re.search(r"[\0-\x1f\x7f]", value):
                wrong.append(f"{key}: {value!r} has a control character, such as a line break, in it")

    look(msgspec.to_builtins(environment), "")
    return tuple(wrong)


def loaded(environment: Environment, profile: SiteProfile) -> tuple[str, ...]:
    """Return the names of all modules and easyconfigs that the environment loads, including the site's."""
    site = profile.software.setup if environment.site_setup else ()
    words = [name for step in site for name in re.findall(r"\S+", step.text.partition("module load ")[2])]
    eessi, easybuild = environment.eessi, environment.easybuild
    return (
        *words,
        *(eessi.load if eessi else ()),
        *(easybuild.load if easybuild else ()),
        *environment.modules,
    )


def cuda_of(name: str) -> str | None:
    """Return the CUDA version of a module or easyconfig; None: none, or the name does not tell."""
    try:
        return parse_easyconfig(name).cuda or cuda_in(name)
    except BadInputError:
        return cuda_in(name)


def _two_cudas(environment: Environment, profile: SiteProfile) -> Iterator[str]:
    """Find two CUDAs with different major.minor: the one loaded last is used by all."""
    named = [(name, cuda) for name in loaded(environment, profile) if (cuda := cuda_of(name))]
    for position, (name, cuda) in enumerate(named):
        for other, other_cuda in named[position + 1 :]:
            if version_numbers(cuda)[:2] != version_numbers(other_cuda)[:2]:
                yield f"{name} loads CUDA {cuda}, {other} loads CUDA {other_cuda}: load only one of them"
                return


def _wrong_cuda_for_gpu(environment: Environment, profile: SiteProfile) -> Iterator[str]:
    """Find a CUDA that is older than the site's GPU."""
    node = profile.node
    if node is None or not node.gpus or not node.gpu_arch:
        return
    for name in loaded(environment, profile):
        cuda = cuda_of(name)
        if cuda is None:
            continue
        if node.gpu_vendor == "amd":
            yield f"{name} is built for CUDA {cuda}, and {profile.name} has AMD GPUs ({node.gpu_arch})"
        elif cuda_addresses(cuda, node.gpu_arch) is False:
            yield (
                f"{name} is built with CUDA {cuda}, which cannot address the GPUs of {profile.name}"
                f" ({node.gpu_arch} needs CUDA {first_cuda(node.gpu_arch)} or newer)"
            )


def _horovod_from_eessi(environment: Environment) -> Iterator[str]:
    """Find Horovod or a foreign toolchain from EESSI: it has no Horovod, and its own versions of foss."""
    eessi = environment.eessi
    for name in eessi.load if eessi else ():
        if eessi is None or not name.strip():
            continue
        if name.startswith("Horovod/") and eessi.extend is None:
            yield f"{name}: no version of EESSI has Horovod; build it on top with EESSI-extend, or with pip"
        generation = re.search(r"-(?:foss|gompi|gfbf)-(\d{4}[ab])", name)
        known = TOOLCHAINS.get(eessi.version, ())
        if generation and known and generation[1] not in known:
            yield f"{name}: EESSI {eessi.version} has the toolchains {', '.join(known)} only"


def _runtime(environment: Environment, profile: SiteProfile) -> Iterator[str]:
    """Find a container that the site is not known to start."""
    if environment.container and (why := undocumented(profile, environment.container)):
        yield why
    known, eessi = documented(profile), environment.eessi
    if eessi and eessi.init == "container" and known and not {"singularity", "apptainer"} & known.keys():
        has = " and ".join(known)
        yield f"eessi init: container needs Singularity or Apptainer; {profile.name} has {has}"
