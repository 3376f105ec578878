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
    """Installation folder, set in the site's variable for it; None: the folder that the site recommends."""
    load: tuple[str, ...] = ()
    """Easyconfigs (``Horovod-0.28.1-foss-2022a-PyTorch-1.12.0.eb``) or their modules' names."""


class JobEessi(_Strict, frozen=True, kw_only=True):
    """The European Environment for Scientific Software Installations, over CernVM-FS."""

    version: str
    """``2023.06`` or ``2025.06``."""
    init: Literal["module", "shell", "container"] = "module"
    """module: ``module load EESSI/VERSION``; shell: its init script; container: eessi_container.sh."""
    cpu_target: str | None = None
    """CPU target instead of the one that EESSI detects, such as ``aarch64/nvidia/grace``."""
    accelerator: str | None = None
    """Accelerator instead of the one from nvidia-smi, such as ``accel/nvidia/cc90``; needed on AMD."""
    load: tuple[str, ...] = ()
    """Modules to load from it."""
    extend: str | None = None
    """Folder of software that you installed with EESSI-extend; ``load`` loads its modules."""
    script: str | None = None
    """For ``init: container``: path of eessi_container.sh; None: it is on the PATH."""
    cache: str | None = None
    """For ``init: container``: folder of its image; None: one in $SINGULARITY_CACHEDIR or ~/.cache."""


class JobContainer(_Strict, frozen=True, kw_only=True):
    """A container around the command of each rank."""

    image: str
    """SIF file, folder or address such as ``docker://...``; the TOML file for CSCS' container engine."""
    runtime: (
        Literal["apptainer", "singularity", "shifter", "podman-hpc", "pyxis", "container-engine"] | None
    ) = None
    """The program that starts it; None: the usual one of the site."""
    binds: tuple[str, ...] = ()
    """Paths in addition to the site's: ``/data`` or ``/data:/in/the/container``."""
    gpu: bool | None = None
    """Whether to pass the site's GPU flag; None: where its nodes have GPUs."""
    venv: str | None = None
    """Folder of a venv inside the container, or bound into it, that is activated there."""
    activate: str | None = None
    """Shell line that runs in the container before the command, such as ``$WITH_CONDA`` in LUMI's images."""
    site_modules: bool = True
    """Load the site's modules for containers; false where the module of the image does what they do."""


class Environment(_Strict, frozen=True, kw_only=True):
    """The software environment of a job or a profile."""

    site_setup: bool = True
    """Run the setup lines of the site's profile first."""
    module_use: tuple[str, ...] = ()
    """Folders for ``module use``."""
    modules: tuple[str, ...] = ()
    """For ``module load``, in this order."""
    path: tuple[str, ...] = ()
    """Folders to put first on PATH, such as the programs of a container wrapper."""
    easybuild: JobEasyBuild | None = None
    """Software that was installed with EasyBuild."""
    eessi: JobEessi | None = None
    """Software from EESSI."""
    conda: str | None = None
    """Name or path of a conda environment."""
    venv: str | None = None
    """Folder of a Python virtual environment."""
    container: JobContainer | None = None
    """The container that the command of each rank runs in."""
