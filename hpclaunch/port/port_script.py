"""A foreign batch script as a job file for another machine, with a report on each of its lines. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from hpclaunch import __version__
from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import Script, read_script, written_by_hpclaunch
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.lint.lint_rule import NO_FILES
from hpclaunch.lint.lint_script import lint_script
from hpclaunch.plan.settings import JobSettings
from hpclaunch.plan.software_choice import ready_software
from hpclaunch.port import port_launch
from hpclaunch.port.foreign_values import WORDS, Values
from hpclaunch.port.job_sizes import SourceSizes, fit_queue, fit_sizes
from hpclaunch.port.line_report import KEPT, Judged, LineReport, Verdict, all_set, at_lines, line_report, task
from hpclaunch.port.port_body import (
    last_program,
    modules_behind,
    own_modules,
    port_body,
    port_rest,
)
from hpclaunch.port.port_directives import port_directives
from hpclaunch.port.port_state import Port, gpus_of, number, numbers_asked
from hpclaunch.port.port_variables import to_fill_in
from hpclaunch.port.ported_command import FILL_IN, PortedCommand
from hpclaunch.port.result_check import lines_by_index, open_lines, open_points, read_by_programs
from hpclaunch.scheduler.directive_reader import DirectiveReader, Fact, RequestedResources, whole_number
from hpclaunch.scheduler.directive_readers import READERS, SUBMIT_COMMANDS, reader_by_variables
from hpclaunch.scheduler.job_header import PLAIN_WORD
from hpclaunch.site.schema import JobContainer, SiteProfile
from hpclaunch.site.site_scheduler import site_scheduler
from hpclaunch.software.containers import RUNTIMES, undocumented
from hpclaunch.text_table import printable
from hpclaunch.walltime import format_walltime


class Ported(msgspec.Struct, frozen=True, kw_only=True):
    """A script that was ported."""

    settings: dict[str, Any]
    report: LineReport
    to_do: tuple[str, ...]
    notes: tuple[str, ...]
    reasons: dict[str, str] = {}
    there: str = ""

    @property
    def job_file(self) -> str:
        """The text of the job file, as YAML."""
        head = [
            f"Ported by hpclaunch {__version__} from a script for {self.there} to {self.settings['site']}.",
            "Every key: docs/reference/job.md. The script: hpclaunch submit --file job.yaml --dry-run",
            *(f"TO DO: {text}" for text in self.to_do),
            *self.notes,
        ]
        lines = [f"# {printable(line)}" for line in head]
        for name, value in self.settings.items():
            lines += [f"# {printable(self.reasons[name])}"] if self.reasons.get(name) else []
            if isinstance(value, Mapping):
                lines += [f"{name}:", *(f"  {_scalar(key)}: {_scalar(item)}" for key, item in value.items())]
            elif isinstance(value, tuple | list):
                lines += [f"{name}:", *(f"  - {_scalar(item)}" for item in value)]
            else:
                lines.append(f"{name}: {_scalar(value)}")
        return "\n".join(lines) + "\n"


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
        raise BadInputError.case("port: no queue", site=target)
    requested = script.reader.requested(script.components[0]) if script.reader else RequestedResources()
    found = [one for one in lint_script(script, source, NO_FILES) if re.match(WORDS["faults"], one.rule)]
    faults = [one for one in found if one.line and one.severity != "note"]
    words = READERS.get(script.kind or (source.scheduler.kind if source else None))
    words = words or reader_by_variables(ref.name for ref in script.shell.refs)
    # PBS's file of nodes has a line for each rank of mpiprocs or ppn, LSF's for each slot.
    node_file: Fact = "tasks" if words.file_of_slots or requested.tasks_per_node else "nodes"
    own = written_by_hpclaunch(text)
    port = Port(
        script=script,
        source=source,
        target=target,
        words=words,
        target_words=READERS.get(target.scheduler.kind, DirectiveReader()),
        requested=requested,
        faults={one.line: f"{one.message} ({one.rule})" for one in reversed(faults) if one.line},
        values=Values(script, words, numbers_asked(script, requested, source), node_file=node_file, own=own),
    )
    port, settled = _settle(port)
    _check_starts(port)
    return _put_together(port, KEPT.setting(site=site or target.name, **settled.sets).doing(*settled.to_do))


def _check(script: Script, source: SiteProfile | None) -> None:
    shell = script.shebang.split()
    name = next((word.rpartition("/")[2] for word in shell if not re.match("-|.*/env$", word)), "bash")
    if not re.fullmatch(r"(ba|k|z|da|a)?sh", name):
        raise BadInputError.case("port: other shell", shebang=script.shebang)
    if script.kind is None and source is None and not (shell or script.launches):
        raise BadInputError.case("port: no script")
    if source is not None and script.kind not in (None, source.scheduler.kind):
        raise BadInputError.case("port: other scheduler", first=script.directives[0], source=source)


def _check_starts(port: Port) -> None:
    """Refuse a script that only submits others: those are to be ported."""
    found = [one for one in port.script.commands if one.name in SUBMIT_COMMANDS]
    text = "\n".join(port.script.text[one.start : one.end] for one in found)
    texts = ["its here-documents, as files"] * bool(found and re.search(WORDS["a header"], port.script.text))
    scripts = ", ".join([*dict.fromkeys(re.findall(WORDS["a script"], text)), *texts])
    if scripts and port.launch is None and not port.script.directives:
        raise BadInputError.case("port: submits", at=at_lines(one.line for one in found), scripts=scripts)


def _settle(port: Port) -> tuple[Port, Verdict]:
    """Settle what all lines depend on: the launch, the sizes, the queue, and how variables are read."""
    launch = port_launch.main_launch(port) or last_program(port)
    port = _within_range(port, port_launch.source_sizes(port, launch).ranks)
    found = port_launch.source_sizes(port, launch)
    command = port_launch.read_command(port, launch)
    found, to_do = _with_nodes(found, command, launch)
    found = _with_workers(found, command, port.values.numbers.get("gpus per node"))
    sizes = fit_sizes(found, port.target)
    if port.starts_ray:
        sizes = msgspec.structs.replace(sizes, said="a Ray cluster: one process on each node")
    port = replace(port, launch=launch, source_sizes=found, sizes=sizes)
    account = _account(port)
    port, sized = _sized(replace(port, account=account.sets.get("account")))
    asked, ranks = port.values.numbers, found.ranks or 0
    started: dict[Fact, int] = {"tasks": ranks, "tasks per node": -(-ranks // (found.nodes or 1))}
    other = (fact for fact, count in started.items() if ranks and asked.get(fact, count) != count)
    slots = {} if command.inner else {fact: asked[fact] for fact in other}  # for threads, as there
    there: dict[Fact, int] = {"tasks": ranks, **asked}
    numbers = {**_target_numbers(port), **slots}
    values = replace(port.values, numbers=numbers, target=_target_facts(port), there=there)
    port = replace(port, values=values)
    port = replace(port, command=port_launch.read_command(port, launch))
    sets = {**account.sets, **sized.sets}
    return port, KEPT.setting(**sets).doing(*to_do, *account.to_do, *sized.to_do, *port.command.to_do)


def _within_range(port: Port, ranks: int | None) -> Port:
    """Return the port with no more nodes of a range than have a rank (man sbatch, -N)."""
    asked = port.requested.nodes
    bounds = re.fullmatch(r"(?:-N|--nodes)[ =]?(\d+)-\d+", asked.text) if asked else None
    if asked is None or bounds is None or not ranks or ranks >= asked.value:
        return port
    nodes = asked._replace(value=max(int(bounds[1]), ranks))
    return replace(port, requested=msgspec.structs.replace(port.requested, nodes=nodes))


def _with_nodes(
    found: SourceSizes, command: PortedCommand, launch: Launch | None
) -> tuple[SourceSizes, list[str]]:
    """Return the sizes with the nodes of torchrun and its like, and what is to do about them."""
    nodes, used = found.nodes or 1, command.nodes
    if launch is None or not used or used == nodes:
        return found, []
    each = found.gpus // nodes if found.gpus else None
    there = msgspec.structs.replace(found, nodes=used, gpus=each and each * used)
    if used > nodes:  # started by hand on each node, with the node's number
        return there, [task("nodes of one", line=launch.line, nodes=used, each=nodes)]
    if used == 1 and launch.launcher in ("torchrun", "python"):  # which run on the first node
        return there, []
    return found, [task("nodes apart", line=launch.line, nodes=nodes)] * (used == 1)


def _with_workers(found: SourceSizes, command: PortedCommand, gpus_there: int | None) -> SourceSizes:
    """Return the sizes with the workers that torchrun and its like start, as ranks."""
    if not (command.open_ranks or command.inner or command.kept):
        return found
    if command.open_ranks:
        return msgspec.structs.replace(found, ranks=None)
    nodes, cpus = found.nodes or 1, found.cpus_per_rank
    per_node = command.workers or (found.gpus // nodes if found.gpus else None)
    ranks = per_node * nodes if per_node else None
    if command.workers_of_job:
        ranks = command.workers or found.gpus or found.ranks
    gpus = ranks if found.gpus is None and ranks == nodes * (gpus_there or 0) else found.gpus
    cpus = cpus and ranks and max(1, cpus * max(found.ranks or 0, nodes) // ranks)  # of the task
    return msgspec.structs.replace(found, ranks=ranks, gpus=gpus, cpus_per_rank=cpus)


def _account(port: Port) -> Verdict:
    """Return the account of the job file: the script's on the same machine, else a placeholder."""
    rule = port.target.account
    given = port.script.directive_value("account")
    own = port.same_machine and given and (not rule.pattern or re.fullmatch(rule.pattern, given))
    if own and given and PLAIN_WORD.fullmatch(given):
        return KEPT.setting(account=given)
    if not (rule.required or "account" in port.subjects):
        return KEPT
    example = re.sub(r"\d", "0", rule.example or "")
    fits = example and (not rule.pattern or re.fullmatch(rule.pattern, example))
    account = example if fits else rule.example or f"{FILL_IN}_ACCOUNT"
    to_do = f"account: {account} is a placeholder: fill in your account of {port.here}"
    return KEPT.setting(account=account).doing(to_do)


def _sized(port: Port) -> tuple[Port, Verdict]:
    """Settle nodes, ranks, queue and time; where no queue takes as many nodes, those that one takes."""
    sizes, to_do, keys = port.sizes, list[str](), dict[str, Any]()
    given = number(port.requested.walltime_s)
    same = port.script.directive_value("queue") or port.script.directive_value("qos")
    own = {name: one for name, one in port.target.queues.items() if port.same_machine and name == same}
    queue = fit_queue(msgspec.structs.replace(port.target, queues=own), sizes.nodes, given or None)
    if not own or queue.name is None or queue.nodes is not None or queue.walltime_why:
        queue = fit_queue(port.target, sizes.nodes, given or None)
    if queue.nodes is not None and sizes.nodes is not None:
        each = sizes.tasks_per_node
        ranks = f": {each * queue.nodes} ranks here instead of {each * sizes.nodes}" if each else ""
        to_do.append(task("other nodes", here=port.here, nodes=sizes.nodes, queue=queue, ranks=ranks))
        said = f"undecided: {to_do[0].removeprefix('nodes: ')}; {sizes.said}"
        sizes = msgspec.structs.replace(sizes, nodes=queue.nodes, said=said, same=False)
    if queue.name is not None:
        keys["queue"] = queue.name
    elif port.target.queues:
        to_do.append(f"queue: {queue.why}: change nodes or time in the job file")
    keys |= sizes.known
    if queue.walltime_s is not None:
        keys["time"] = format_walltime(queue.walltime_s)
    if queue.walltime_why:
        to_do.append(f"time: {queue.walltime_why}")
    if given is None:
        to_do.append("time: the script requests none; hpclaunch's default is 30 minutes: set time")
    return replace(port, sizes=sizes, queue=queue), KEPT.setting(**keys).doing(*to_do)


def _reasons(port: Port, settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, str]:
    """Return why keys of the job file have their values; ``given``: the keys that lines of the script set."""
    queue, sizes, found = port.queue, port.sizes, port.command
    placeholder = port.account != port.script.directive_value("account") or not port.same_machine
    framework = f"{found.inner} starts programs of this framework"
    if settings.get("framework") == "none":
        shared = (sizes.tasks_per_node or 0) > gpus_of(port.target)
        framework = port.says("ranks share GPUs" if shared else "ranks see their own", sizes=sizes).why
    return {
        "account": f"fill in your account of {port.here}" if placeholder else "",
        "queue": f"{queue.why} ({queue.source})",
        "nodes": sizes.said,
        "time": queue.walltime_why,
        "name": "" if "name" in given else "after the program, since the script names no job",
        "framework": framework,
        "environment": "the script loads its own version of a module of the site's setup",
    }


def _target_numbers(port: Port) -> dict[Fact, int]:
    """Return the sizes that the script's variables stand for in the job here."""
    nodes, per_node, each = port.sizes.nodes, port.sizes.tasks_per_node, port.sizes.gpus_per_task
    gpus = gpus_of(port.target)
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
    threads = port.script.variables.assignments.get("OMP_NUM_THREADS", [])
    given = any(whole_number(one.value.text) is not None for one in threads if one.value)
    cores: dict[Fact, str] = {} if given else {"cpus per task": "$OMP_NUM_THREADS"}
    names = [one for one in port.script.active_directives if port.words.options.get(one.name) == "name"]
    name = names[-1].value or "" if names else ""
    named: dict[Fact, str] = {"job name": name} if PLAIN_WORD.fullmatch(name) else {}
    ranks: dict[Fact, str] = {"rank": launcher.rank, "local rank": launcher.local_rank}
    return {**cores, **WORDS["facts here"], **named, **ranks}


def _put_together(port: Port, settled: Verdict) -> Ported:
    """Judge all lines of the script, and put together what the verdicts say."""
    judged = [*port_directives(port), *port_body(port)]
    judged += (one.behind(part.before) for part in port.parts for one in port_launch.judge_words(part))
    judged += port_launch.filled_in(port, {name for name, _ in all_set(judged).get("fill_in", ())})
    given = all_set(judged)
    command = port_launch.written_command(port, given).setting(container_bind=port.command.binds)
    words = command.sets["command"]
    known = {line for one in judged for line in one.lines}
    start = (
        one.behind(part.before)
        for part in port.parts
        for one in port_launch.judge_start(part, words, {at - part.before for at in known})
    )
    judged = [*start, *judged]
    judged += port_rest(port, {line for one in judged for line in one.lines})
    judged += [Judged([number], port.says("behind the end")) for number in port.script.behind]
    every = [Judged((), settled), Judged((), command), *judged]
    settings, more = _settings(port, all_set(every))
    to_do = dict.fromkeys(text for one in every for text in one.verdict.to_do)
    to_do |= dict.fromkeys([*more, *open_points(port, settings, judged)])
    to_do |= dict.fromkeys(open_lines(port, judged, tuple(to_do)))
    return Ported(
        settings=settings,
        report=line_report(judged, port.content_lines | port.script.behind),
        to_do=tuple(to_do),
        notes=tuple(read_by_programs(port, settings)),
        reasons=_reasons(port, settings, given),
        there=port.there,
    )


def _settings(port: Port, found: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of the job file in its order, and what is to do about those that the target lacks."""
    by_index = lines_by_index(port) if "array" in found else []
    to_fill, to_set = to_fill_in(found.get("fill_in", ()), by_index, found.get("array", ""))
    found = {**found, "env": {**to_fill, **found.get("env", {})}}
    found |= own_modules(port, found)
    image, binds = found.get("container"), found.get("container_bind", ())
    to_do = _without_container(port, image, binds)
    left = ("container", "container_bind") if to_do or not image else ()
    keys = [key for key in JobSettings.__struct_fields__ if key not in left]
    settings = {key: found[key] for key in keys if found.get(key) not in (None, (), {})}
    to_do += _image(port, settings.get("container"))
    if not port.same_machine:
        to_do += [task("bind", bind=bind, here=port.here) for bind in settings.get("container_bind", ())]
    return settings, [*to_set, *to_do, *_software(port, found)]


def _image(port: Port, image: str | None) -> list[str]:
    """Return what is to do about the image of the job's container."""
    if image is None or (port.same_machine and FILL_IN not in image):
        return []
    arch = port.target.node.cpu_arch if port.target.node else None
    case = "image unread" if FILL_IN in image else "image here"
    return [task(case, image=image, here=port.here, kind=f" ({arch})" if arch else "")]


def _software(port: Port, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the modules and the environments of the script gave."""
    loads, in_container = dict.fromkeys(found.get("loads", ())), found.get("container")
    needed = (name for name in loads if not (in_container and name.partition("/")[0] in RUNTIMES))
    if modules := " ".join(needed):
        there = ready_software(port.target)
        case = "modules, offered" if there else "modules loaded"
        yield task(case, modules=modules, here=port.here, there=there)
    yield from modules_behind(port, found)
    if set_up := found.get("set_up"):
        lines = {line for line, _ in set_up}
        shown = "; ".join(dict.fromkeys(text for _, text in set_up))
        at = f"{at_lines(lines)} set{'s' * (len(lines) == 1)}"
        yield task("set up", at=at, shown=shown, here=port.here)


def _without_container(port: Port, image: str | None, binds: tuple[str, ...]) -> list[str]:
    """Return what is to do where the job here has no container; nothing: it has one, or needs none."""
    if not image:
        return [task("binds alone", binds=", ".join(binds))] if binds else []
    refused = undocumented(port.target, JobContainer(image=image))
    left = "; ".join([f"container: {image}", *(f"container_bind: {bind}" for bind in binds)])
    return [f"{refused} ({left} {'are' if binds else 'is'} left out)"] if refused else []


_PLAIN = re.compile(r"(?i)(?!(null|true|false|yes|no|on|off|y|n)$)[a-z_/][a-z0-9_./+@=-]*", re.ASCII)


def _scalar(value: object) -> str:
    text = printable(json.dumps(value, ensure_ascii=False))  # JSON is YAML
    bare = text.strip('"')
    return bare if _PLAIN.fullmatch(bare) else text
