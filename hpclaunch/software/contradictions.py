"""Parts of a software environment that cannot go together, found before a node hour is spent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpclaunch.errors import BadInputError
from hpclaunch.site.job_environment import Environment
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.easyconfig import cuda_in, parse_easyconfig
from hpclaunch.software.eessi import TOOLCHAINS
from hpclaunch.software.gpu_arch import cuda_addresses, first_cuda, version_numbers


def contradictions(environment: Environment, profile: SiteProfile) -> tuple[str, ...]:
    """Return what contradicts what, one sentence each; empty: nothing does."""
    return (
        *_wrong_cuda_for_gpu(environment, profile),
        *_two_cudas(environment, profile),
        *_horovod_from_eessi(environment),
        *_two_containers(environment),
        *_two_pythons(environment),
    )


def loaded(environment: Environment, profile: SiteProfile) -> tuple[str, ...]:
    """Return the names of all modules and easyconfigs that the environment loads, the site's included."""
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
    """Return the CUDA version that a module or easyconfig brings; None: none, or it does not say."""
    try:
        return parse_easyconfig(name).cuda or cuda_in(name)
    except BadInputError:
        return cuda_in(name)


def _two_cudas(environment: Environment, profile: SiteProfile) -> Iterator[str]:
    """Two CUDAs of different major.minor: the one loaded last wins, for all."""
    named = [(name, cuda) for name in loaded(environment, profile) if (cuda := cuda_of(name))]
    for position, (name, cuda) in enumerate(named):
        for other, other_cuda in named[position + 1 :]:
            if version_numbers(cuda)[:2] != version_numbers(other_cuda)[:2]:
                yield f"{name} brings CUDA {cuda}, {other} brings CUDA {other_cuda}: load one of them"
                return


def _wrong_cuda_for_gpu(environment: Environment, profile: SiteProfile) -> Iterator[str]:
    """A CUDA that is older than the site's GPU."""
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
    """EESSI has no Horovod, and each of its versions has its own generations of foss."""
    eessi = environment.eessi
    for name in eessi.load if eessi else ():
        if eessi is None or not name.strip():
            continue
        if name.startswith("Horovod/"):
            yield f"{name}: no version of EESSI has Horovod; build it on top with EESSI-extend, or with pip"
        generation = re.search(r"-(?:foss|gompi|gfbf)-(\d{4}[ab])", name)
        known = TOOLCHAINS.get(eessi.version, ())
        if generation and known and generation[1] not in known:
            yield f"{name}: EESSI {eessi.version} has the toolchains {', '.join(known)} only"


def _two_containers(environment: Environment) -> Iterator[str]:
    if environment.container and environment.eessi and environment.eessi.init == "container":
        yield "container beside eessi init: container: one of them can be around the command"


def _two_pythons(environment: Environment) -> Iterator[str]:
    """A venv or conda outside of a container is not seen in it."""
    if environment.container is None:
        return
    for key in ("venv", "conda"):
        if getattr(environment, key):
            yield f"{key} beside container: it has a Python of its own; a venv goes under container: venv"
