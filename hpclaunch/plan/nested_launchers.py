"""Launchers that a command starts inside the launcher of the job, and the right command instead. Pure.

The site's launcher starts every rank, so ``torchrun`` in each of them would start all workers of a node once
per rank: with 8 ranks per node, 64 processes.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

import msgspec

from hpclaunch.plan.request import JobRequest


class NestedLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts other processes."""

    framework: str | None
    """``--framework`` of what it starts; None: any program."""
    per_node: bool = False
    """Made to run once per node, where it starts the workers of its node."""
    joins: tuple[str, ...] = ()
    """Options without which the processes of several nodes do not find each other."""


_TORCHRUN = NestedLauncher(framework="torch", per_node=True, joins=("--nnodes", "--rdzv"))
_MPI = NestedLauncher(framework=None)
# pytorch.org/docs/stable/elastic/run.html; deepspeed.ai/getting-started; Accelerate's "Command Line" page;
# horovod.readthedocs.io/en/stable/running.html.
# deepspeed and horovodrun reach other nodes themselves (pdsh, ssh).
_LAUNCHERS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate": NestedLauncher(
        framework="torch", per_node=True, joins=("--machine_rank", "--machine-rank", "--rdzv")
    ),
    "deepspeed": NestedLauncher(framework="deepspeed"),
    "horovodrun": NestedLauncher(framework="horovod"),
    "srun": _MPI,
    "mpirun": _MPI,
    "mpiexec": _MPI,
    "mpiexec.hydra": _MPI,
    "prterun": _MPI,
    "aprun": _MPI,
    "jsrun": _MPI,
}


def nested_launcher(argv: tuple[str, ...]) -> tuple[str, NestedLauncher, tuple[str, ...]] | None:
    """Return the launcher that a command begins with: its name, row and arguments; None: there is none."""
    words = _without_environment(argv)
    if not words:
        return None
    name, more = PurePosixPath(words[0]).name, words[1:]
    if re.fullmatch(r"python[\d.]*", name) and more[:1] == ("-m",):
        name, more = " ".join(more[1:2]), more[2:]
    if name in ("accelerate", "accelerate.commands.launch"):
        if more[:1] != ("launch",) and name == "accelerate":
            return None
        name, more = "accelerate", more[1:] if more[:1] == ("launch",) else more
    row = _LAUNCHERS.get(name)
    return (name, row, more) if row else None


def nesting_problem(request: JobRequest, nodes: int, tasks_per_node: int) -> tuple[str, str] | None:
    """Return why a launcher inside the launcher is wrong with these ranks, and what would be right."""
    found = None if request.command.bundled else nested_launcher(request.command.argv)
    if found is None:
        return None
    name, row, more = found
    if row.per_node and tasks_per_node == 1:
        joined = any(word.startswith(row.joins) for word in more)
        if nodes == 1 or joined:
            return None
        message = (
            f"{name} runs on {nodes} nodes without {' or '.join(row.joins)}: each node would train alone"
        )
    elif nodes * tasks_per_node == 1:
        return None
    else:
        message = (
            f"{name} would start its processes {nodes * tasks_per_node} times, once in each of the ranks that"
            f" this job has ({nodes} x {tasks_per_node})"
        )
    return message, _right_line(request, row, more)


def _right_line(request: JobRequest, row: NestedLauncher, more: tuple[str, ...]) -> str:
    program = _program(more)
    # torchrun starts programs of other frameworks, too; what the program imports says more.
    known = request.framework is not None and row.framework in ("torch", request.framework)
    framework = f"--framework {row.framework} " if row.framework and not known else ""
    if not program:
        return "leave the launcher and its options out: hpclaunch starts one process per rank"
    right = f"{framework}-- {shlex.join(program)}"
    return f"hpclaunch starts the ranks itself, bound to their CPUs and GPUs: {right}"


def _program(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program after a launcher's options: from the first Python file, module or interpreter on."""
    for at, word in enumerate(words):
        if word in ("-m", "--module") and at + 1 < len(words):
            return ("python", "-m", *words[at + 1 :])
        if re.fullmatch(r"python[\d.]*", PurePosixPath(word).name):
            return words[at:]
        if word.endswith(".py"):
            return ("python", *words[at:])
        if word.startswith(("./", "/")) and not words[max(0, at - 1)].startswith("-"):
            return words[at:]
    return ()


def _without_environment(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without ``env`` and the variables before it."""
    words = argv[1:] if argv[:1] == ("env",) else argv
    at = 0
    while at < len(words) and re.match(r"[A-Za-z_]\w*=", words[at]):
        at += 1
    return words[at:]
