"""The frameworks, one row each, ``frameworks.json``: ranks, imports, launchers and software of each.

In the order in which a program's imports are looked for: Horovod and DeepSpeed programs import torch, too,
and JAX programs may take torch's data loaders. `plan/worker_launchers.py` has the sources of the launchers.
"""

from collections.abc import Mapping

import msgspec

from hpclaunch.package_data import text_beside


class WorkerLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts other processes; options are written with underscores."""

    name: str = ""
    commands: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    framework: str | None = None
    imports: tuple[str, ...] = ()
    per_node: bool = False
    nodes: str = ""
    workers: tuple[str, ...] = ()
    processes: str = ""
    node_rank: str = ""
    meets: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    contradicts: Mapping[str, str] = {}
    fills: Mapping[str, str] = {}


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """Software to plan."""

    framework: str = ""
    base: str | None = None
    package: str | None = None
    by_mpi: bool = False
    check: str
    prove: str


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """One framework: the needs of its ranks, the names by which it is recognised, its software."""

    sources: tuple[str, ...] = ()
    rank_variables: tuple[str, ...] = ()
    rendezvous: bool = False
    by_mpi: bool = False
    timeline: bool = False
    hostfile: bool = False
    device_by_local_rank: bool = False
    nccl: bool = False
    coordinator: bool = False
    per_node: bool = False
    lines: tuple[tuple[str, str], ...] = ()
    module: str | None = None
    imports: tuple[str, ...] = ()
    launchers: Mapping[str, WorkerLauncher] = {}
    goals: Mapping[str, Goal] = {}


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
