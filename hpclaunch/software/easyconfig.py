"""Names of easyconfigs and of their modules, how to get one from the other, and the wheels of pip.

``NAME-VERSION-TOOLCHAIN-TCVERSION SUFFIX.eb`` <-> ``NAME/VERSION-TOOLCHAIN-TCVERSION SUFFIX`` (EasyBuild
docs, "Writing easyconfig files", and its default module naming scheme). CUDA was part of the toolchain
(fosscuda) until 2020b and is a suffix ``-CUDA-x.y.z`` since 2021a.
"""

import re
from functools import cache

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, package_table

_WORD = package_constants("software/forms.json", "easyconfig")
_TOOLCHAIN = re.compile(rf"-({_WORD.toolchains})-(\d[\w.]*)")


class EasyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an easyconfig's name."""

    name: str
    version: str
    toolchain: str | None = None
    toolchain_version: str | None = None
    suffix: str = ""

    @property
    def module(self) -> str:
        """The module's name in EasyBuild's default scheme."""
        toolchain = f"-{self.toolchain}-{self.toolchain_version}" if self.toolchain else ""
        return f"{self.name}/{self.version}{toolchain}{self.suffix}"

    @property
    def cuda(self) -> str | None:
        """The CUDA version in the suffix or the toolchain; None: no CUDA, or the name does not tell."""
        return cuda_in(self.suffix) or (
            _WORD.cuda_of_fosscuda.get(self.toolchain_version or "") if self.toolchain == "fosscuda" else None
        )


def parse_easyconfig(text: str) -> EasyConfig:
    """Read the file name of an easyconfig or the name of a module. Raises BadInputError for other names."""
    base = text.rsplit("/", 1)[-1] if text.endswith(".eb") else text
    name, slash, full = base.partition("/")
    if not slash:
        # The version starts at the first dash before a digit: names may hold dashes (PyTorch-bundle-2.1.2).
        match = re.fullmatch(r"([A-Za-z_].*?)-(\d.*?)(?:\.eb)?", base)
        if match is None:
            raise BadInputError.case("easyconfig: name", text=text)
        name, full = match[1], match[2]
    toolchain = _TOOLCHAIN.search(full)
    if toolchain is None:
        version, dash, suffix = full.partition("-")
        return EasyConfig(name=name, version=version, suffix=f"{dash}{suffix}")
    return EasyConfig(
        name=name,
        version=full[: toolchain.start()],
        toolchain=toolchain[1],
        toolchain_version=toolchain[2],
        suffix=full[toolchain.end() :],
    )


def module_of(text: str) -> str:
    """Return the module of an easyconfig; the name of a module is returned unchanged."""
    return parse_easyconfig(text).module if text.endswith(".eb") else text


def cuda_in(text: str) -> str | None:
    """Return the CUDA version that a module or easyconfig names: ``cuda/12.1``, ``...-CUDA-11.7.0-...``.

    ``cudatoolkit/23.3_12.0`` is NVIDIA's HPC SDK 23.3 with CUDA 12.0.
    """
    suffix = re.search(r"-CUDA-(\d+(?:\.\d+)*)", text)
    itself = re.search(r"(?:^|/)cuda(?:toolkit|core)?[/-](?:\d+\.\d+_)?(\d+(?:\.\d+)*)", text, re.IGNORECASE)
    found = suffix or itself
    return found[1] if found else None


SOURCE = "https://github.com/easybuilders/easybuild-easyconfigs"
"""The recipes; what moved to easybuild-easyconfigs-archive is not found by ``eb``."""
RELEASE = "5.4.1"
"""The release in which the recipes without a commit are (read 2026-11)."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """An easyconfig that exists."""

    file: str
    commit: str | None = None
    provides: dict[str, str] = {}


@cache
def recipes() -> dict[str, tuple[Recipe, ...]]:
    """Return the recipes for each goal of ``software plan``, the preferred first."""
    table = package_table("software/install_recipes.yaml")["easyconfigs"]
    return msgspec.convert(table, dict[str, tuple[Recipe, ...]])


EULAS = ("CUDA", "cuDNN")
"""Whose licences ``eb`` asks for where a recipe has CUDA (easyblocks cuda.py and cudnn.py, 5.4.1)."""


def eb_command(recipe: Recipe) -> str:
    """Return the words of ``eb`` for a recipe: with its commit, and the licences that CUDA needs."""
    commit = ["--from-commit", recipe.commit] if recipe.commit else []
    licences = [f"--accept-eula-for={','.join(EULAS)}"] if parse_easyconfig(recipe.file).cuda else []
    return " ".join(["eb", *commit, *licences, recipe.file, "--robot"])


def provided(recipe: Recipe) -> dict[str, str]:
    """Return the versions that a recipe's name tells: horovod, tensorflow, torch, jax, cuda, mpi."""
    parsed = parse_easyconfig(recipe.file)
    names = {"PyTorch": "torch", "TensorFlow": "tensorflow", "Horovod": "horovod"}
    versions = {names.get(parsed.name, parsed.name): parsed.version}
    for name, key in (("PyTorch", "torch"), ("TensorFlow", "tensorflow")):
        if found := re.search(rf"-{name}-(\d[\d.]*)", parsed.suffix):
            versions[key] = found[1].rstrip(".")
    if parsed.cuda:
        versions["cuda"] = parsed.cuda
    known = package_table("software/install_recipes.yaml")["open_mpi"]
    if (generation := parsed.toolchain_version) in known and parsed.toolchain in ("foss", "gompi"):
        versions["mpi"] = f"Open MPI {known[generation]}"
    return {**versions, **recipe.provides}


class Wheels(msgspec.Struct, frozen=True, kw_only=True):
    """The packages that ``pip install`` gets."""

    words: tuple[str, ...]
    index: str | None = None
    versions: dict[str, str] = {}
    source: str


@cache
def wheels_of(goal: str, vendor: str | None) -> Wheels | None:
    """Return the wheels for GPUs of a vendor, or for CPUs; None: no index is known."""
    table = package_table("software/install_recipes.yaml")["wheels"]
    found = table.get(goal, {}).get(vendor or "cpu")
    return None if found is None else msgspec.convert(found, Wheels)
