"""Reading the nodes of a running job that hpclaunch did not submit: commands and their answers."""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from hpclaunch.amounts import listed
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError, RefusedError
from hpclaunch.host.host_interface import Host
from hpclaunch.job.job_script import LOOK, one_text
from hpclaunch.remote.look import MARK
from hpclaunch.remote.roll_call import whole_answers
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Attach, RunningJob, Scheduler

_LIMIT_S = 120.0
PYTHON = ("python3", "-I", "-S", "-B")
"""On the nodes: without the user's variables and packages, which it does not need; it writes no file."""
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20")


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the job, as /proc shows it."""

    pid: int
    parent: int
    ticks: int
    program: tuple[str, ...]
    cpus: str
    mems: str
    threads: dict[str, int]
    running: dict[str, int] = {}
    devices: tuple[str, ...]
    variables: dict[str, str]


class AttachedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the job."""

    host: str
    processes: tuple[Process, ...]
    gpus: dict[str, str] = {}
    devices: dict[str, str] = {}
    slices: dict[str, str] = {}


def read_nodes_of(
    host: Host, scheduler: Scheduler, launcher: Launcher, job: str, environ: Mapping[str, str]
) -> tuple[RunningJob, tuple[AttachedNode, ...]]:
    """Look into a running job: one process per node, which only reads, and leaves nothing behind.

    ``environ``: that of this shell, which may be inside the job. Raises BadInputError for a job that does not
    run, RefusedError where the scheduler or a node gives no answer.
    """
    attach = scheduler.attach
    if attach is None:
        raise BadInputError.case("attach: cannot", scheduler=scheduler)
    if not re.fullmatch(attach.id_pattern or scheduler.id_pattern, job, re.ASCII):
        raise BadInputError.case("attach: no id", job=job[:60], scheduler=scheduler)
    job, step = attach.step_of(job)
    found = attach.parse(job, host.run(attach.query(job), env=dict(scheduler.query_env), timeout_s=_LIMIT_S))
    nodes = _answers(host, attach, launcher, found, environ)
    if len(nodes) < len(found.nodes):
        answered, silent = f"{len(nodes)} of {len(found.nodes)}", _silent(host, attach, found, nodes)
        raise RefusedError.case("attach: silent nodes", answered=answered, job=found, silent=silent)
    return found, nodes if step is None else tuple(_of_step(nodes, step, found))


def _silent(host: Host, attach: Attach, job: RunningJob, nodes: tuple[AttachedNode, ...]) -> str:
    words, answered = attach.names_query(job), {node.host for node in nodes}
    names = host.run(words, timeout_s=_LIMIT_S).stdout.split() if words else job.nodes
    return listed([name for name in names if name not in answered])


def _of_step(nodes: tuple[AttachedNode, ...], step: str, job: RunningJob) -> Iterator[AttachedNode]:
    """Yield the nodes with the processes of one step only. Raises BadInputError where it has none."""
    found = {one.variables.get("SLURM_STEP_ID", "") for node in nodes for one in node.processes} - {""}
    if step not in found:
        raise BadInputError.case("attach: no such step", step=step, job=job, steps=listed(sorted(found)))
    for node in nodes:
        own = tuple(one for one in node.processes if one.variables.get("SLURM_STEP_ID") == step)
        yield msgspec.structs.replace(node, processes=own)


def _answers(
    host: Host, attach: Attach, launcher: Launcher, job: RunningJob, environ: Mapping[str, str]
) -> tuple[AttachedNode, ...]:
    program = one_text(LOOK)
    commands = attach.commands(job)
    if not commands and environ.get(attach.job_variable) == job.id:
        commands = _from_inside(launcher, len(job.nodes))
    argv = (*PYTHON, "-c", program, attach.job_variable, job.id)
    if commands:
        answers = [host.run((*words, *argv), timeout_s=_LIMIT_S) for words in commands]
        return tuple(node for answer in answers for node in _read(answer, job))
    return tuple(node for name in job.nodes for node in _by_ssh(host, name, program, attach, job))


def _from_inside(launcher: Launcher, nodes: int) -> tuple[tuple[str, ...], ...]:
    """Return the command that starts one process on each node of the job from its own shell."""
    if nodes == 1:
        return ((),)
    started = launcher.one_per_node(nodes)
    return () if any("$" in word for word in started) else (started,)


def by_ssh(name: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs the Python program on its stdin with these words on a node."""
    return (*_SSH, "--", name, shlex.join((*PYTHON, "-", *words)))


def _by_ssh(host: Host, name: str, program: str, attach: Attach, job: RunningJob) -> tuple[AttachedNode, ...]:
    argv = by_ssh(name, attach.job_variable, job.id)
    answer = host.run(argv, stdin=program.encode(), timeout_s=_LIMIT_S)
    if MARK not in answer.stdout:
        said = answer.stderr.strip().splitlines()
        raise RefusedError.case("attach: ssh", name=name, job=job, said=said[-1] if said else "no answer")
    return _read(answer, job)


def _read(answer: CommandResult, job: RunningJob) -> tuple[AttachedNode, ...]:
    nodes = tuple(parse_nodes(answer.stdout))
    if not nodes:
        raise no_answer(answer, f"job {job.id} ({job.node_list or listed(job.nodes)})")
    return nodes


def no_answer(answer: CommandResult, job: str) -> RefusedError:
    """Return the error where no node of a job has answered."""
    said = answer.stderr.strip().splitlines()
    return RefusedError.case("attach: no answer", job=job, said=said[-1] if said else "no output")


def parse_nodes(text: str) -> Iterator[AttachedNode]:
    """Yield each node whose answer is complete; other output is passed over."""
    for _, whole in whole_answers(text):
        with suppress(msgspec.DecodeError):
            yield msgspec.json.decode(whole, type=AttachedNode)
