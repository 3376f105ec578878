"""The frameworks, one row each, ``frameworks.json``: ranks, imports, launchers and software of each.

In the order in which a program's imports are looked for: Horovod and DeepSpeed programs import torch, too,
and JAX programs may take torch's data loaders. The sources are named where the rows are used:
`plan/frameworks.py`, `plan/worker_launchers.py`.
"""

from collections.abc import Mapping

import msgspec

from hpclaunch.package_data import text_beside


class WorkerLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts other processes; options are written with underscores."""

    name: str = ""
    commands: tuple[str, ...] = ()
    """Words with which a command begins that starts it."""
    modules: tuple[str, ...] = ()
    """Modules that are it, for ``python -m``."""
    framework: str | None = None
    """``--framework`` of what it starts; None: any program."""
    imports: tuple[str, ...] = ()
    """Modules without which it does not start."""
    per_node: bool = False
    """It runs once per node, and the job knows how to fill in what a command leaves open."""
    nodes: str = ""
    """Option with the number of nodes."""
    workers: tuple[str, ...] = ()
    """Options with the number of workers of each node."""
    processes: str = ""
    """Option with the number of workers of the whole job."""
    node_rank: str = ""
    """Option with the number of the node that it runs on."""
    meets: tuple[str, ...] = ()
    """Options that say where the nodes meet; one of them in a command, and it has said so itself."""
    flags: frozenset[str] = frozenset()
    """Options without a value."""
    contradicts: Mapping[str, str] = {}
    """Option -> why it is wrong in a job of hpclaunch."""
    fills: Mapping[str, str] = {}
    """Option that a command may leave open -> its value as shell text, with ``{nodes}``, ``{workers}`` of
    each node, ``{tasks}`` of the job and the ``{rank}`` of the node; empty for a flag."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """Software to plan."""

    framework: str = ""
    """The framework of its jobs."""
    base: str | None = None
    """The goal that it is installed on top of."""
    package: str | None = None
    """The package that pip installs on top of ``base``."""
    by_mpi: bool = False
    """Its ranks find each other by MPI."""
    check: str
    """Options of ``hpclaunch check`` for it."""
    prove: str
    """A Python program that fails where it is not installed as wanted."""


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """One framework: the needs of its ranks, the names by which it is recognised, its software."""

    rank_variables: tuple[str, ...] = ()
    """Environment variables from which a rank's program reads its rank."""
    rendezvous: bool = False
    """MASTER_ADDR and MASTER_PORT."""
    by_mpi: bool = False
    """The ranks find each other by MPI, so srun's plugin must fit the MPI of their Python."""
    timeline: bool = False
    """It writes HOROVOD_TIMELINE."""
    hostfile: bool = False
    """``HOST slots=N`` for each node, in the job's folder."""
    device_by_local_rank: bool = False
    """Its programs take the GPU whose number is the local rank; else a rank takes the first that it sees."""
    nccl: bool = False
    """On GPUs its tensors go by NCCL or RCCL, which want the fabric's plugin."""
    coordinator: bool = False
    """JAX_COORDINATOR_ADDRESS, and JAX_LOCAL_DEVICE_IDS where GPUs are planned."""
    per_node: bool = False
    """One process on each node, which gets all of it."""
    lines: tuple[tuple[str, str], ...] = ()
    """Lines of the job's shell for it, each with its reason."""
    module: str | None = None
    """The module that a Python must be able to import."""
    imports: tuple[str, ...] = ()
    """Modules by whose import a program is known to use it."""
    launchers: Mapping[str, WorkerLauncher] = {}
    """Its own launchers, by their names."""
    goals: Mapping[str, Goal] = {}
    """Its software, by the names that ``hpclaunch software plan --for`` takes."""


def _read() -> dict[str, Framework]:
    found = msgspec.json.decode(text_beside(__file__, "frameworks.json"), type=dict[str, Framework])
    replace = msgspec.structs.replace
    return {
        name: replace(
            row,
            launchers={key: replace(one, name=key, framework=name) for key, one in row.launchers.items()},
            goals={key: replace(one, framework=name) for key, one in row.goals.items()},
        )
        for name, row in found.items()
    }


FRAMEWORKS = _read()
LAUNCHERS = {name: one for row in FRAMEWORKS.values() for name, one in row.launchers.items()}
GOALS = {name: goal for row in FRAMEWORKS.values() for name, goal in row.goals.items()}
"""The goals that ``hpclaunch software plan`` can plan, by the names that ``--for`` takes."""
