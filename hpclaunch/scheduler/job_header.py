"""The header of a batch script: what a job asks of its scheduler, as directive lines with reasons."""

from __future__ import annotations

import re
import shlex

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.walltime import format_walltime


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a script with its reason, which becomes a comment."""

    text: str
    reason: str


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a job asks for; None: nothing is asked and the site's default holds."""

    name: str
    nodes: int
    tasks_per_node: int
    walltime_s: int
    account: str | None = None
    queue: str | None = None
    queue_reason: str = ""
    qos: str | None = None
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    memory: str | None = None
    exclusive: bool = False
    select: str | None = None
    """PBS: what follows the node count in ``-l select=``, such as ``system=polaris``."""
    after: tuple[str, ...] = ()
    """The scheduler's ids of the jobs that must end first."""
    after_any: bool = False
    array: str | None = None
    exclude: tuple[str, ...] = ()
    """Nodes to leave out; only for Slurm."""
    output: str | None = None
    """File for stdout and stderr; None: the scheduler's default name where the job was submitted."""


def slurm_header(want: Resources) -> tuple[Line, ...]:
    """Return the #SBATCH options (man sbatch) for a job."""
    # sbatch splits such a line as a shell does.
    lines = [(f"--job-name={shlex.quote(want.name)}", "the name in squeue")]
    if want.account:
        lines.append((f"--account={want.account}", "the project that pays"))
    if want.queue:
        lines.append((f"--partition={want.queue}", want.queue_reason))
    if want.qos:
        lines.append((f"--qos={want.qos}", want.queue_reason))
    lines += [
        (f"--nodes={want.nodes}", "nodes"),
        (f"--ntasks-per-node={want.tasks_per_node}", "ranks on each node"),
    ]
    if want.gpus_per_node:
        lines.append(
            (f"--gpus-per-node={want.gpus_per_node}", "GPUs of each node, visible to its ranks together")
        )
    if want.cpus_per_task:
        lines.append((f"--cpus-per-task={want.cpus_per_task}", "CPUs for each rank"))
    if want.memory:
        lines.append((f"--mem={want.memory}", "memory of each node"))
    if want.exclusive:
        lines.append(("--exclusive", "whole nodes, also where the partition shares them"))
    lines += [
        (f"--time={format_walltime(want.walltime_s)}", "walltime limit"),
        (f"--output={_sbatch_file(want.output) or 'hpclaunch-%j.out'}", "stdout and stderr of the job"),
    ]
    if want.after:
        lines += [
            (f"--dependency={_after(want)}", "jobs that must end first"),
            ("--kill-on-invalid-dep=yes", "if one of them ends otherwise this one must not pend for ever"),
        ]
    if want.array:
        lines += [
            (f"--array={want.array}", "a job for each index"),
            ("--open-mode=append", "what Slurm itself says of any of them stands in one file"),
        ]
    if want.exclude:
        lines.append((f"--exclude={','.join(want.exclude)}", "nodes to leave out"))
    return _lines(lines)


def pbs_header(want: Resources) -> tuple[Line, ...]:
    """Return the #PBS options (man qsub; PBS Professional user's guide) for a job."""
    lines = [(f"-N {want.name}", "the name in qstat")]
    if want.account:
        lines.append((f"-A {want.account}", "the project that pays"))
    if want.queue:
        lines.append((f"-q {want.queue}", want.queue_reason))
    lines += [
        (f"-l select={_select(want)}", "nodes, and what each of them must be"),
        (f"-l walltime={format_walltime(want.walltime_s)}", "walltime limit"),
        ("-j oe", "stderr goes where stdout goes"),
    ]
    if want.output:
        lines += [
            (f"-o {_qsub_file(want.output)}", "stdout and stderr of the job"),
            ("-k doe", "written there while the job runs, not copied at its end"),
        ]
    if want.after:
        lines.append(
            (f"-W depend={_after(want)}", "jobs that must end first; if one fails PBS ends this one")
        )
    if want.array:
        lines.append((f"-J {want.array}", "a job for each index"))
    return _lines(lines)


def _after(want: Resources) -> str:
    return ":".join(("afterany" if want.after_any else "afterok", *want.after))


def _sbatch_file(path: str | None) -> str:
    """Write a file name for a #SBATCH line, which sbatch splits as a shell does; a % of its own is %%."""
    if path and re.search(r"[\\\n]", path):
        raise BadInputError(
            f"{path!r} cannot stand in a #SBATCH line: a backslash means something else there",
            "set XDG_STATE_HOME to a folder without backslashes and line breaks",
        )
    return shlex.quote(path).replace("%", "%%") if path else ""


def _qsub_file(path: str) -> str:
    """Write a file name for a #PBS line, which has no way to quote one."""
    if not re.fullmatch(r"[\w./@%+=:,-]+", path):
        raise BadInputError(
            f"{path!r} cannot stand in a #PBS line: PBS splits it at blanks and quotes",
            "set XDG_STATE_HOME to a folder with a plain name",
        )
    return path


def _select(want: Resources) -> str:
    if want.select is not None:
        return f"{want.nodes}:{want.select}" if want.select else str(want.nodes)
    cpus = want.tasks_per_node * (want.cpus_per_task or 1)
    gpus = f":ngpus={want.gpus_per_node}" if want.gpus_per_node else ""
    return f"{want.nodes}:ncpus={cpus}:mpiprocs={want.tasks_per_node}{gpus}"


def _lines(pairs: list[tuple[str, str]]) -> tuple[Line, ...]:
    return tuple(Line(text=text, reason=reason) for text, reason in pairs)
