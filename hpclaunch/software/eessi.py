"""EESSI: its CPU and accelerator targets, and the lines that initialise it.

Facts: EESSI/software-layer-scripts, init/arch_specs/*.spec and init/eessi_archdetect.sh; EESSI docs.
"""

import re
from collections.abc import Iterable
from functools import cache

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import JobEessi, SiteProfile
from hpclaunch.software.easyconfig import Recipe, module_of
from hpclaunch.software.script_lines import double_quote, line, literal, word

REPOSITORY = "/cvmfs/software.eessi.io"
TOOLCHAINS = {"2023.06": ("2022b", "2023a", "2023b"), "2025.06": ("2024a", "2025a", "2025b")}
"""Version -> generations of foss in it (EESSI docs, available software)."""

SCRIPTS = "https://github.com/EESSI/software-layer-scripts.git"
"""The repository with eessi_container.sh."""
SOURCE = "https://www.eessi.io/docs/available_software/overview/"


class EessiModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module of EESSI that a goal needs."""

    name: str
    cuda: str | None = None
    mpi: str | None = None
    versions: dict[str, str] = {}
    package: str | None = None
    extend: Recipe | None = None

    @property
    def extend_module(self) -> str | None:
        """The module of ``extend``."""
        return module_of(self.extend.file) if self.extend else None

    @property
    def what(self) -> str:
        """The kind of module, for a sentence."""
        more = self.package or (self.extend.file if self.extend else None)
        return f"{more} on top of the module {self.name}" if more else f"the module {self.name}"


@cache
def eessi_modules() -> dict[str, dict[str, tuple[EessiModule, ...]]]:
    """Return the modules of each version for each goal of ``software plan``."""
    table = package_table("software/install_recipes.yaml")["eessi"]
    return msgspec.convert(table, dict[str, dict[str, tuple[EessiModule, ...]]])


_ACCELERATOR = re.compile(r"accel/(nvidia/cc[0-9]+|amd/gfx[0-9a-f]+)")


def with_target(eessi: JobEessi, profile: SiteProfile) -> JobEessi:
    """Return it with the accelerator of the site's GPUs, unless the job names one or the site has none."""
    node = profile.node
    target = accelerator_target(node.gpu_arch) if node and node.gpus else None
    return (
        eessi if eessi.accelerator or target is None else msgspec.structs.replace(eessi, accelerator=target)
    )


def accelerator_target(gpu_arch: str | None) -> str | None:
    """Return the accelerator target: sm_90 -> accel/nvidia/cc90, gfx90a -> accel/amd/gfx90a."""
    if gpu_arch is None:
        return None
    if match := re.fullmatch(r"sm_(\d+)a?", gpu_arch):
        return f"accel/nvidia/cc{match[1]}"
    return f"accel/amd/{gpu_arch}" if re.fullmatch(r"gfx[0-9a-f]+", gpu_arch) else None


def init_lines(eessi: JobEessi, site_modules: Iterable[str]) -> tuple[Line, ...]:
    """Return the lines that make EESSI's modules available; raises BadInputError for unknown targets.

    ``site_modules``: the site's own modules for it; ``EESSI/VERSION`` is loaded if it is one of them.
    """
    version = eessi.version
    _check_version(version)
    lines = [*_overrides(eessi)]
    if eessi.extend:
        lines.append(line("eessi extended", folder=double_quote(eessi.extend)))
    # autofs mounts on access; a test of the parent folder would not mount it.
    lines.append(line("eessi mounted", repository=REPOSITORY))
    if eessi.init == "shell":
        lines.append(line("eessi shell", repository=REPOSITORY, version=version))
    elif f"EESSI/{version}" in site_modules:
        lines.append(line("eessi of the site", version=version))
    else:
        lines += [line("eessi modules alone"), line("eessi folder", repository=REPOSITORY)]
        lines.append(line("eessi module", version=version))
    if eessi.extend:
        lines.append(line("eessi extend", version=version))
    return tuple(lines)


def _check_version(version: str) -> None:
    if not re.fullmatch(r"\d{4}\.\d{2}", version, re.ASCII):
        raise BadInputError(f"eessi version {version!r}", "write 2023.06 or 2025.06")


def _overrides(eessi: JobEessi) -> Iterable[Line]:
    if eessi.cpu_target is not None:
        targets = package_table("software/install_recipes.yaml")["eessi_cpu_targets"].split()
        if eessi.cpu_target not in targets:
            raise BadInputError.case("EESSI: cpu_target", eessi=eessi, targets=", ".join(sorted(targets)))
        yield line("eessi cpu target", target=eessi.cpu_target)
    if eessi.accelerator is not None:
        if not _ACCELERATOR.fullmatch(eessi.accelerator):
            raise BadInputError.case("EESSI: accelerator", eessi=eessi)
        yield line("eessi accelerator", target=eessi.accelerator)


IMAGE = "docker://ghcr.io/eessi/build-node:debian12"
"""Default image of eessi_container.sh, which has CernVM-FS in it."""


def pull_lines(eessi: JobEessi) -> tuple[Line, ...]:
    """Return the lines that get EESSI's image once, before the ranks: each would pull or copy it."""
    _check_version(eessi.version)
    cache = f" {double_quote(eessi.cache)}" if eessi.cache else ""
    return (*_overrides(eessi), line("eessi image", image=IMAGE, cache=cache))


def in_eessi_container(eessi: JobEessi, gpu_flag: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs ``argv`` in ``eessi_container.sh`` (EESSI/software-layer-scripts, 2026)."""
    words = [eessi.script or "eessi_container.sh", "--mode", "exec", "--repository", "software.eessi.io"]
    if gpu_flag == ("--nv",):
        words += ["--nvidia", "run"]
    elif gpu_flag:
        words += ["--pass-through", *gpu_flag]
    program = double_quote(words[0]) if eessi.script else words[0]
    start = line("eessi container", program=" ".join((program, *map(literal, words[1:])))).text
    loads = "".join(f"module load {word(name)} && " for name in eessi.load)
    inside = f'source {REPOSITORY}/versions/{eessi.version}/init/lmod/bash && {loads}exec -- "$@"'
    return ("bash", "-c", start, "eessi", "bash", "-c", inside, "inside", *argv)
