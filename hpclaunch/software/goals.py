"""What ``hpclaunch software plan`` can plan, as a table, and the wheels that pip installs."""

from functools import cache

import msgspec

from hpclaunch.package_data import package_table


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """Software to plan."""

    framework: str
    """The framework of its jobs."""
    base: str | None = None
    """The goal that it is installed on top of."""
    package: str | None = None
    """What pip installs on top of ``base``."""
    by_mpi: bool = False
    """Its ranks find each other by MPI."""
    check: str
    """Options of ``hpclaunch check`` for it."""
    prove: str
    """A Python program that fails where it is not installed as wanted."""


_HOROVOD = (
    "import horovod.{0} as hvd; assert hasattr(hvd, 'init'), 'no compiled library'; print(hvd.mpi_built())"
)
GOALS = {
    "horovod-tensorflow": Goal(
        framework="horovod",
        base="tensorflow",
        package="horovod",
        by_mpi=True,
        check="--require mpi,tensorflow",
        prove=_HOROVOD.format("tensorflow"),
    ),
    "horovod-torch": Goal(
        framework="horovod",
        base="torch",
        package="horovod",
        by_mpi=True,
        check="--require mpi,torch",
        prove=_HOROVOD.format("torch"),
    ),
    "tensorflow": Goal(
        framework="none",
        check="--framework tensorflow",
        prove="import tensorflow; print(tensorflow.__version__)",
    ),
    "torch": Goal(
        framework="torch",
        check="--framework torch",
        prove="import torch; print(torch.__version__, torch.version.cuda or torch.version.hip)",
    ),
    "deepspeed": Goal(
        framework="deepspeed",
        base="torch",
        package="deepspeed",
        check="--framework deepspeed",
        prove="import deepspeed; print(deepspeed.__version__)",
    ),
    "jax": Goal(framework="jax", check="--framework jax", prove="import jax; print(jax.__version__)"),
    "mpi4py": Goal(
        framework="mpi4py",
        by_mpi=True,
        check="--framework mpi4py",
        prove="import mpi4py; print(mpi4py.__version__)",
    ),
}
"""Name, as ``--for`` takes it -> what it is."""
ROUTES = ("site", "easybuild", "eessi", "container", "wrapper", "pip", "eessi-container")


class Wheels(msgspec.Struct, frozen=True, kw_only=True):
    """What ``pip install`` gets."""

    words: tuple[str, ...]
    """Requirements."""
    index: str | None = None
    """Index to take them from; None: pip's own."""
    versions: dict[str, str] = {}
    source: str


@cache
def wheels_of(goal: str, vendor: str | None) -> Wheels | None:
    """Return the wheels for GPUs of a vendor, or for CPUs; None: no index is known."""
    table = package_table("software/install_recipes.yaml")["wheels"]
    found = table.get(goal, {}).get(vendor or "cpu")
    return None if found is None else msgspec.convert(found, Wheels)
