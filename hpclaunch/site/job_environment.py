"""``environment:`` of a job file, of the user's config or of a profile: what a job loads, as typed data.

The order of keys in the file does not matter. The script has the lines in the one order that works: EESSI,
EasyBuild's prefix and modules, modules, conda, venv. The command itself runs inside the container.
"""

from typing import Literal

import msgspec


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of the structs below. Paths may hold shell variables ($SCRATCH) of the job."""


ContainerRuntime = Literal["apptainer", "singularity", "shifter", "podman-hpc", "pyxis", "container-engine"]


class JobEasyBuild(_Strict, frozen=True, kw_only=True):
    """Software that was installed with EasyBuild."""

    prefix: str | None = None
    load: tuple[str, ...] = ()


class JobEessi(_Strict, frozen=True, kw_only=True):
    """The European Environment for Scientific Software Installations, over CernVM-FS."""

    version: str
    init: Literal["module", "shell", "container"] = "module"
    cpu_target: str | None = None
    accelerator: str | None = None
    load: tuple[str, ...] = ()
    extend: str | None = None
    script: str | None = None
    cache: str | None = None


class JobContainer(_Strict, frozen=True, kw_only=True):
    """A container around the command of each rank."""

    image: str
    runtime: ContainerRuntime | None = None
    binds: tuple[str, ...] = ()
    gpu: bool | None = None
    venv: str | None = None
    activate: str | None = None
    site_modules: bool = True


class Environment(_Strict, frozen=True, kw_only=True):
    """The software environment of a job or a profile."""

    site_setup: bool = True
    module_use: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    easybuild: JobEasyBuild | None = None
    eessi: JobEessi | None = None
    conda: str | None = None
    venv: str | None = None
    container: JobContainer | None = None
