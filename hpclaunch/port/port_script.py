"""A foreign batch script as a job file for another machine, with a report on each of its lines. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from hpclaunch import __version__
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import Script, read_script, written_by_hpclaunch
from hpclaunch.lint.lint_rule import NO_FILES
from hpclaunch.lint.lint_script import lint_script
from hpclaunch.plan.settings import JobSettings
from hpclaunch.port.foreign_values import Values
from hpclaunch.port.job_sizes import TargetQueue, fit_queue, fit_sizes
from hpclaunch.port.line_report import LineReport
from hpclaunch.port.port_body import content_lines, port_body, port_rest
from hpclaunch.port.port_directives import port_directives
from hpclaunch.port.port_launch import (
    judge_launch,
    main_launch,
    port_program,
    read_command,
    set_command,
    source_sizes,
)
from hpclaunch.port.port_state import Port, gpus_of
from hpclaunch.port.ported_command import FILL_IN
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.scheduler.directive_readers import foreign_words, words_by_variables
from hpclaunch.scheduler.foreign_words import Fact, ForeignWords
from hpclaunch.scheduler.job_header import PLAIN_WORD
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.text_table import printable
from hpclaunch.walltime import format_walltime

_FAULTS = "module-|variable-(name|value)-|filesystem-|secret-"
"""Rules of lint about lines that would otherwise be carried over as they are."""


class Ported(msgspec.Struct, frozen=True, kw_only=True):
    """A script that was ported."""

    settings: dict[str, Any]
    """The job file as data."""
    report: LineReport
    to_do: tuple[str, ...]
    """Tasks for the user before the job is submitted: values to fill in, lines to check."""
    notes: tuple[str, ...]
    """Facts that no line of the script states."""
    reasons: dict[str, str] = {}
    """Setting -> why it has its value."""
    there: str = ""
    """Where the script is for."""

    @property
    def job_file(self) -> str:
        """The text of the job file."""
        head = [
            f"Ported by hpclaunch {__version__} from a script for {self.there} to {self.settings['site']}.",
            "Every key: docs/reference/job.md. The script: hpclaunch submit --file job.yaml --dry-run",
            *(f"TO DO: {text}" for text in self.to_do),
            *self.notes,
        ]
        return job_file_text(self.settings, self.reasons, head)


def port_script(
    text: str, source: SiteProfile | None, target: SiteProfile, site: str | None = None
) -> Ported:
    """Port a script from ``source`` (None: its machine is not known) to ``target``.

    ``site``: how the job file names the target; None: by its name. Raises BadInputError for a script that is
    not read, with the line.
    """
    script = read_script(text)
    _check(script, source)
    if site_scheduler(target).starts_at_once:
        raise BadInputError(
            f"site {target.name} has no queue: jobs there need no batch script",
            f"hpclaunch submit --site {target.name} -- COMMAND runs the program",
        )
    requested = script.reader.requested(script.components[0]) if script.reader else RequestedResources()
    port = Port(
        script=script,
        source=source,
        target=target,
        words=foreign_words(script.kind or (source.scheduler.kind if source else None))
        or words_by_variables(ref.name for ref in script.shell.refs),
        target_words=foreign_words(target.scheduler.kind) or ForeignWords(),
        requested=requested,
        own=written_by_hpclaunch(text),
    )
    for one in lint_script(script, source, NO_FILES):
        if one.line and one.severity != "note" and re.match(_FAULTS, one.rule):
            port.faults.setdefault(one.line, f"{one.message} ({one.rule})")
    port.set("site", site or target.name)
    _settle(port)
    port_directives(port)
    port_program(port, port.values)
    port_body(port)
    set_command(port)
    judge_launch(port)
    if port.written is not None:
        judge_launch(port.written)
    port_rest(port)
    return _ported(port)


def _check(script: Script, source: SiteProfile | None) -> None:
    shell = script.shebang.split()
    name = next((word.rpartition("/")[2] for word in shell if not word.endswith("/env")), "bash")
    if not re.fullmatch(r"(ba|k|z|da|a)?sh", name):
        raise BadInputError(
            f"line 1: #!{script.shebang}: only scripts of sh and bash are read",
            "port it by hand, or rewrite it",
        )
    if script.kind is None and source is None and not (shell or script.launches):
        raise BadInputError(
            "line 1: the text has no directives of a scheduler that is read, and starts no program",
            "give the batch script that is submitted, or name its machine with --from",
        )
    if source is not None and script.kind not in (None, source.scheduler.kind):
        first = script.directives[0]
        raise BadInputError(
            f"line {first.line}: #{first.reader.sentinel} is not a directive of {source.name}, which has"
            f" {source.scheduler.kind}",
            "name another site with --from, or leave it out",
        )


def _settle(port: Port) -> None:
    """Settle what all lines depend on: the launch, the sizes, the queue, and how variables are read."""
    first = Values(port.script, port.words, _numbers(port))
    port.launch = main_launch(port, first)
    found = source_sizes(port, first, port.launch)
    if port.launch is not None:  # torchrun and its like start workers themselves
        command = read_command(port, port.launch, first)
        workers, nodes = command.workers, found.nodes or 1
        if command.nodes and command.nodes > nodes:  # started by hand on each node, with the node's number
            each = found.gpus // nodes if found.gpus else None
            found = msgspec.structs.replace(found, nodes=command.nodes, gpus=each and each * command.nodes)
            port.do(
                f"nodes: line {port.launch.line} starts the workers of one of {command.nodes} nodes, and"
                f" a job here those of all: check that the script is for one node ({nodes})"
            )
        inner = command.inner or command.kept
        if inner and not command.workers_of_job:
            nodes = found.nodes or 1
            per_node = workers or (found.gpus // nodes if found.gpus else None)
            found = msgspec.structs.replace(found, ranks=per_node * nodes if per_node else None)
        elif inner:
            found = msgspec.structs.replace(found, ranks=workers or found.gpus or found.ranks)
    port.source_sizes = found
    port.sizes = fit_sizes(found, port.target)
    _set_account(port)
    _set_sizes(port)
    port.values = Values(port.script, port.words, _target_numbers(port), _target_facts(port))


def _numbers(port: Port) -> dict[Fact, int]:
    """Return the sizes that the script's variables have on its own machine."""
    asked, nodes, source = port.requested, port.requested.node_count, port.source
    slots = asked.tasks_per_node or asked.cpus_per_node  # NSLOTS and PBS_NP count slots
    known: dict[Fact, int | None] = {
        "nodes": nodes,
        "tasks per node": asked.ranks_per_node,
        "tasks": asked.tasks.value if asked.tasks else nodes * slots.value if nodes and slots else None,
        "cpus per task": asked.cpus_per_task.value if asked.cpus_per_task else None,
        "gpus per node": asked.gpus_per_node.value if asked.gpus_per_node else gpus_of(source),
    }
    return {fact: number for fact, number in known.items() if number}


def _set_account(port: Port) -> None:
    rule = port.target.account
    given = port.script.directive_value("account")
    own = port.same_machine and given and (not rule.pattern or re.fullmatch(rule.pattern, given))
    if own and given and PLAIN_WORD.fullmatch(given):
        port.set("account", given)
        return
    if not (rule.required or given):
        return
    example = re.sub(r"\d", "0", rule.example or "")
    fits = example and (not rule.pattern or re.fullmatch(rule.pattern, example))
    account = example if fits else rule.example or f"{FILL_IN}_ACCOUNT"
    port.set("account", account, f"fill in your account of {port.here}")
    port.do(f"account: {account} is a placeholder: fill in your account of {port.here}")


def _set_sizes(port: Port) -> None:
    """Set nodes, ranks, queue and time; where no queue takes as many nodes, those that one takes."""
    sizes = port.sizes
    assert sizes is not None  # noqa: S101
    given = port.requested.walltime_s.value if port.requested.walltime_s else None
    same = port.script.directive_value("queue") or port.script.directive_value("qos")
    queue = _same_queue(port, same, sizes.nodes, given or None) if port.same_machine and same else None
    queue = queue or fit_queue(port.target, sizes.nodes, given or None)
    if queue.nodes is not None and sizes.nodes is not None:
        fits = f"no queue of {port.here} takes {sizes.nodes} nodes for this time"
        fits += f", {queue.name} takes {queue.nodes}"
        each = sizes.tasks_per_node
        ranks = f": {each * queue.nodes} ranks here instead of {each * sizes.nodes}" if each else ""
        port.do(f"nodes: {fits}, which the job file has{ranks}")
        said = f"undecided: {fits}, which the job file has{ranks}; {sizes.said}"
        sizes = msgspec.structs.replace(sizes, nodes=queue.nodes, said=said, same=False)
    port.sizes, port.queue = sizes, queue
    if queue.name is not None:
        port.set("queue", queue.name, f"{queue.why} ({queue.source})")
    elif port.target.queues:
        port.do(f"queue: {queue.why}: change nodes or time in the job file")
    for key in ("nodes", "tasks_per_node", "gpus_per_task", "cpus_per_task"):
        value = getattr(sizes, key)
        if value is not None:
            port.set(key, value)
    port.reasons["nodes"] = sizes.said
    if queue.walltime_s is not None:
        port.set("time", format_walltime(queue.walltime_s), queue.walltime_why)
        if queue.walltime_why:
            port.do(f"time: {queue.walltime_why}")


def _same_queue(port: Port, name: str, nodes: int | None, walltime_s: int | None) -> TargetQueue | None:
    """Return the script's own queue on the same machine, where it takes the job."""
    narrowed = {key: queue for key, queue in port.target.queues.items() if key == name}
    if not narrowed:
        return None
    only = msgspec.structs.replace(port.target, queues=narrowed)
    found = fit_queue(only, nodes, walltime_s)
    return found if found.name is not None and found.nodes is None and not found.walltime_why else None


def _target_numbers(port: Port) -> dict[Fact, int]:
    """Return the sizes that the script's variables stand for in the job here."""
    nodes, per_node = port.settings.get("nodes"), port.settings.get("tasks_per_node")
    gpus, each = gpus_of(port.target), port.settings.get("gpus_per_task")
    known: dict[Fact, int | None] = {
        "nodes": nodes,
        "tasks per node": per_node,
        "tasks": nodes * per_node if nodes and per_node else None,
        "gpus per node": min(gpus, per_node * each) if gpus and per_node and each else gpus,
    }
    return {fact: number for fact, number in known.items() if number}


def _target_facts(port: Port) -> dict[Fact, str]:
    """Return the shell text for each fact of a job here."""
    launcher = port.launcher
    return {
        "job": "$HPCLAUNCH_JOB_ID",
        "array index": "$HPCLAUNCH_ARRAY_INDEX",
        "folder": "$PWD",
        "rank": launcher.rank,
        "local rank": launcher.local_rank,
        "first node": "$MASTER_ADDR",
        "cpus per task": "$OMP_NUM_THREADS",
        "tasks": "$HPCLAUNCH_TASKS",
    }


def _notes(port: Port) -> Iterator[str]:
    """Yield what the script does not say and hpclaunch therefore decides."""
    if port.requested.walltime_s is None:
        yield "time: the script requests none; hpclaunch's default is 30 minutes"
    if port.source is None:
        yield "the script's machine is not known: --from names it, whose profile states the GPUs per node"
    if port.launch is None:
        yield "the script has no launch line: its last program is taken for the command of one rank"
    if port.source_sizes.gpus is None and gpus_of(port.target):
        yield f"GPUs: the script requests none that can be read; on {port.here} the ranks share the node's"


def _ported(port: Port) -> Ported:
    if port.modules:
        port.set("module", tuple(port.modules))
    if port.env:
        port.set("env", dict(port.env))
    if port.directives:
        port.set("directives", tuple(dict.fromkeys(port.directives)))
    if "container" not in port.settings and (binds := port.settings.pop("container_bind", ())):
        port.do(f"container_bind: {', '.join(binds)}: the job has no container: name one, or no binds")
    for text in open_points(port):
        port.do(text)
    settings = {key: port.settings[key] for key in JobSettings.__struct_fields__ if key in port.settings}
    return Ported(
        settings=settings,
        report=port.verdicts.report(content_lines(port)),
        to_do=tuple(port.to_do),
        notes=tuple(_notes(port)),
        reasons=port.reasons,
        there=port.there,
    )


# --- the text of the job file ------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+@=-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def job_file_text(settings: Mapping[str, Any], reasons: Mapping[str, str], head: Iterable[str]) -> str:
    """Return the job file as YAML; ``reasons``: key -> why it has its value, ``head``: lines above it."""
    lines = [f"# {printable(line)}" for line in head]
    for name, value in settings.items():
        reason = reasons.get(name, "")
        if reason:
            lines.append(f"# {printable(reason)}")
        if isinstance(value, Mapping):
            lines.append(f"{name}:")
            lines += [f"  {_scalar(key)}: {_scalar(item)}" for key, item in value.items()]
        elif isinstance(value, tuple | list):
            lines.append(f"{name}:")
            lines += [f"  - {_scalar(item)}" for item in value]
        else:
            lines.append(f"{name}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'


_ARGUMENTS = re.compile(r"\$(?:\{(?:[@*]|\d+)[^}]*\}|[@*\d])")
_SCRIPT = re.compile(r".*\.(sh|bash|job|slurm)")


def open_points(port: Port) -> Iterator[str]:
    """Yield what the user has to check or to decide, each with the lines of the script that it is about."""
    yield from _gpus(port)
    yield from _nodes(port)
    yield from _arguments(port)
    yield from _script_file(port)
    for why, lines in port.verdicts.undecided().items():
        if not any(why in said for said in port.to_do):
            yield f"line{'s' * (len(lines) > 1)} {format_cpu_list(lines)}: {why}"


def _nodes(port: Port) -> Iterator[str]:
    """Compare the nodes of the launch with those that the script requests, and the GPUs of both jobs."""
    asked, used = port.requested.node_count, port.source_sizes.nodes
    if port.launch and asked and used and used < asked:
        yield f"nodes: the script requests {asked}, line {port.launch.line} starts ranks on {used}: set nodes"
    if port.sizes is not None and port.sizes.tasks_per_node is None:
        yield f"ranks: {port.sizes.said}: set nodes and tasks_per_node"
    if port.sizes is not None and "not the same number of GPUs" in port.sizes.said:
        yield f"GPUs: {port.sizes.said}"


def _gpus(port: Port) -> Iterator[str]:
    """Compare the ranks of a node with its GPUs."""
    gpus = gpus_of(port.target)
    per_node, source = port.settings.get("tasks_per_node"), port.source_sizes
    shared = source.gpus and source.ranks and source.ranks > source.gpus  # there, too
    if not gpus or not per_node or per_node <= gpus or source.gpus == 0:
        return
    if source.gpus is None:
        yield (
            f"GPUs: {per_node} ranks share the {gpus} GPUs of a node here, and how many the script has is not"
            " known: --from names its machine, else set nodes and tasks_per_node"
        )
    elif not shared:
        yield f"GPUs: {per_node} ranks share the {gpus} GPUs of a node here: set nodes and tasks_per_node"


def _arguments(port: Port) -> Iterator[str]:
    """Yield the words of the launch that stand for arguments of the script itself."""
    for part in filter(None, (port, port.written)):
        for word in part.launch.program if part.launch else ():
            if match := _ARGUMENTS.search(word.raw):
                yield (
                    f"command: {match[0]} stands for the arguments of the script, which are not known: write"
                    " those of this job into the command"
                )


def _script_file(port: Port) -> Iterator[str]:
    """Yield that the command starts a script, which may read variables of the other machine."""
    words = [word.plain or word.seen for word in port.command.words]
    words = words[1:] if words[:1] in (["bash"], ["sh"]) else words
    if words and _SCRIPT.fullmatch(words[0]):
        where = f" of line {port.launch.line}" if port.launch else ""
        yield (
            f"command: {words[0]}{where} is a script that port does not read: change in it what chooses GPUs"
            f" or cores, starts processes, or reads variables of {port.there}'s scheduler"
        )
