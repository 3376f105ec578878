"""The directives of a foreign script, one by one: into the job file, or left out with the reason."""

import re
from collections.abc import Callable, Iterator

from hpclaunch.errors import BadInputError
from hpclaunch.lint.batch_script import placeholder_in
from hpclaunch.plan.request_rules import array_indices, check_directives
from hpclaunch.port.foreign_values import WORDS, Value
from hpclaunch.port.line_report import KEPT, Judged, Verdict, all_set, task, undecided
from hpclaunch.port.port_state import Port
from hpclaunch.port.port_variables import group_of, port_variable
from hpclaunch.port.ported_command import PortedCommand, image_name, with_binds
from hpclaunch.scheduler.directive_reader import COMPONENT_SEPARATORS, Directive, MailEvent, Subject
from hpclaunch.site.schema import Node
from hpclaunch.walltime import format_walltime


def port_directives(port: Port) -> Iterator[Judged]:
    """Judge every directive of the script."""
    reader = port.script.reader
    with_options = {one.line for one in port.script.directives if one.problem != "comment"}
    later = {id(one) for component in port.script.components[1:] for one in component}
    for directive in port.script.directives:
        submit = directive.reader.submit_command
        if id(directive) in later or (later and directive.name in COMPONENT_SEPARATORS):
            verdict = port.says("other component")
        elif directive.reader is not reader:
            verdict = port.says("other reader", submit=submit)
        elif not directive.active:
            first = "line that is not a comment" if reader and reader.read_in == "lines at top" else "command"
            verdict = port.says("behind the directives", submit=submit, first=first)
        else:
            verdict = _judge(port, directive)
        if not (directive.problem == "comment" and directive.line in with_options):
            yield Judged([directive.line], verdict)
    for line, name in port.script.unread:
        yield Judged([line], port.says("unread", name=name))
    events, user = mail_of(port)
    if events and (written := port.target_words.write_mail(events, user)):
        yield Judged((), KEPT.setting(directives=written))


def _judge(port: Port, directive: Directive) -> Verdict:
    subject = port.words.options.get(directive.name)
    subject = WORDS["subjects of options"].get(directive.name, subject)
    handler = _HANDLERS.get(subject) if subject else None
    if handler is not None:
        return handler(port, directive)
    if directive.line in port.faults:
        return port.says("fault", fault=port.faults[directive.line])
    if port.same_machine and (carried := _as_it_is(port, directive)):
        return carried
    if not directive.known:
        case = WORDS["cases of problems"].get(directive.problem, "no such option")
        return port.says(case, text=directive.text, submit=directive.reader.submit_command)
    if known := WORDS["of one machine"].get(subject):
        plain = re.fullmatch(known, directive.value or "", re.DOTALL)
        return port.says("of one machine" if plain else "nodes there", text=directive.text)
    return _unknown(port, directive)


def _unknown(port: Port, directive: Directive) -> Verdict:
    return port.says("gpus" if asks_for_gpus(port, directive) else "unknown directive", text=directive.text)


def asks_for_gpus(port: Port, directive: Directive) -> bool:
    """Tell whether a directive requests GPUs, or names some in a way of which no number is read."""
    subject = port.words.options.get(directive.name)
    known = subject in _HANDLERS or subject in WORDS["of one machine"] or not directive.known
    named = re.search(WORDS["speaks of GPUs"], directive.text) and port.source_sizes.gpus is None
    return "gpu" in directive.name or bool(named and not known)


def _constraint(port: Port, directive: Directive) -> Verdict:
    if directive.line in port.faults:
        return port.says("fault", fault=port.faults[directive.line])
    words = re.findall(WORDS["piece"], (directive.value or "").lower())
    met = words and {*words}.issubset(words_of_nodes(port))
    alike = _as_it_is(port, directive) if port.same_machine else None
    return alike or port.says("of all nodes" if met else "unknown directive", text=directive.text)


def words_of_nodes(port: Port) -> list[str]:
    """Return the words of a directive that are true of each node here."""
    node = port.target.node
    texts = (
        [node.gpu_model, node.gpu_type, node.gpu_vendor, node.gpu_arch, "gpu"] if node and node.gpus else []
    )
    return " ".join(filter(None, texts)).lower().replace("-", " ").split()


def _as_it_is(port: Port, directive: Directive) -> Verdict | None:
    """Carry a directive over as one of the job file's, unless the plan sets its option itself.

    Only plain words: how a quote in a directive is read differs from scheduler to scheduler.
    """
    if not re.fullmatch(r"[\w./:=,@%+ -]+", directive.text, re.ASCII):
        return None
    try:
        check_directives(port.scheduler, [directive.text])
    except BadInputError:
        return None
    return KEPT.setting(directives=(directive.text,))


def _name(port: Port, directive: Directive) -> Verdict:
    name = port.words.read_name(directive.value or "").strip()
    why = ""
    if not re.fullmatch(port.scheduler.job_name_pattern, name) or not name.isprintable():
        name, why = port.job_name(name), f"names here: {port.scheduler.job_name_rule}"
    if array := port.words.read_array(directive.value or "") if "[" in (directive.value or "") else None:
        return _with_array(port, array, directive).setting(name=name)
    return port.rewritten(f"name: {name}", why).setting(name=name)


def _account(port: Port, directive: Directive) -> Verdict:
    if port.same_machine and directive.value == port.account:
        return KEPT
    return port.says("account", port.cited(port.target.account.source), account=port.account or "none")


def _queue(port: Port, directive: Directive) -> Verdict:
    queue = port.queue
    if queue.name is None and port.target.queues:
        return port.says("fault", fault=queue.why)
    if queue.name is None:
        return port.says("queue, unknown")
    if port.same_machine and queue.name == directive.value:
        return KEPT
    what = "a placeholder" if placeholder_in(directive.value or "") else f"a queue of {port.there}"
    value = directive.value
    return port.says("queue", queue.source, value=value, what=what, queue=queue.name, reason=queue.why)


def _walltime(port: Port, directive: Directive) -> Verdict:
    given, queue = port.requested.walltime_s, port.queue
    if given is None or queue.walltime_s is None:
        return port.says("walltime, unread", value=directive.value)
    if given.line != directive.line:
        return port.says("walltime, twice", line=given.line, text=given.text)
    time = format_walltime(queue.walltime_s)
    if queue.walltime_why:
        return port.says("walltime", queue.source, time=time, reason=queue.walltime_why)
    return port.rewritten(f"time: {time}")


def _sizes(port: Port, directive: Directive) -> Verdict:
    sizes = port.sizes
    if "gpu" in directive.name and port.source_sizes.gpus is None:
        return port.says("gpus", text=directive.text)
    same = sizes.same and port.same_scheduler
    if same and (directive.name, directive.value) == ("nodes", str(sizes.nodes)):
        return KEPT
    source = port.cited(port.target.node.source if port.target.node else None)
    return Verdict("changed", port.sizes_text or "as many as hpclaunch computes", sizes.said, source)


def binding_verdict(port: Port, text: str) -> Verdict:
    """Return the verdict on what binds ranks to cores, GPUs or memory."""
    binding = port.target.binding
    how = {"none": "nothing is bound: the node is not described"}.get(binding.cpu, f"{binding.cpu}, per rank")
    gpus = f", GPUs by {binding.gpu_visible_var}" if binding.gpu_visible_var else ""
    return port.says("binding", port.cited(binding.source), how=how, gpus=gpus, text=text)


def _memory(port: Port, directive: Directive) -> Verdict:
    node = port.target.node
    if node is None:
        return _memory_of_unknown_node(port, directive)
    asked, has = _gib_of_node(port, directive), least_memory(node)
    if asked and asked > has:
        known = "too much" if node.memory_request or node.memory_gib else "unknown"
        return port.says(f"memory, {known}", text=directive.text, asked=asked, has=has)
    if request := node.memory_request:
        return port.says("memory", port.cited(node.source), memory=request)
    return port.says("memory, unknown" if asked is None else "memory, enough", text=directive.text)


def _memory_of_unknown_node(port: Port, directive: Directive) -> Verdict:
    gpus = port.sizes.gpus_per_task and port.target.scheduler.gpu_request != "none"
    requested = "gpu" not in directive.name or gpus  # of a GPU, which the job must request
    carried = requested and port.same_scheduler and _as_it_is(port, directive)
    return carried or port.says("memory, unknown", text=directive.text)


def least_memory(node: Node) -> float:
    """Return the GiB that a node has, or has at least by its cores."""
    return _gib(node.memory_request) or node.memory_gib or node.cores * WORDS["least memory of a core"]


def _gib(text: str | None) -> float | None:
    """Return a size of memory, in MiB where it has no unit; None: it cannot be read."""
    match = re.fullmatch(WORDS["size of memory"], (text or "").strip())
    return float(match[1]) / {"K": 2**20, "G": 1, "T": 2**-10}.get(match[2].upper(), 2**10) if match else None


def _gib_of_node(port: Port, directive: Directive) -> float | None:
    """Return the memory that an option requests for the ranks of a node here; None: it cannot be read."""
    gib = _gib(directive.value)
    if gib is None:
        return None
    source, sizes = port.source_sizes, port.sizes
    per = re.search(r"cpu|gpu|vmem|free|task", directive.name)
    if per is None:  # of a node, or of the job on one
        return gib * (source.nodes or 1) / (sizes.nodes or 1) if source.nodes else gib
    return gib * (sizes.tasks_per_node or 1) * (source.cpus_per_rank or 1 if per[0] == "cpu" else 1)


def _exclusive(port: Port, directive: Directive) -> Verdict:
    if directive.value is None or "excl" in directive.value or "scatter" in directive.value:
        return port.rewritten("exclusive: true")
    return port.says("exclusive", port.cited(port.target.binding.source))


def _with_array(port: Port, array: str | None, directive: Directive) -> Verdict:
    try:
        array_indices(array or "", port.scheduler)
    except BadInputError as error:
        return port.says("fault", fault=f"{directive.text}: {error.message.partition(': ')[2]}")
    said = f"array: {array} ({port.target_words.array_form.format(array)})"
    return port.rewritten(said).setting(array=array)


def _after(port: Port, directive: Directive) -> Verdict:
    value = directive.value or ""
    after = port.words.read_after(value)
    pattern = port.scheduler.id_pattern or r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}"
    if after is None or not all(re.fullmatch(pattern, each, re.ASCII) for each in after.ids):
        return port.says(WORDS["no jobs"].get(value.partition("=")[0], "after"), text=directive.text)
    any_end = after.any_end or port.target.scheduler.kind in WORDS["wait for any end"]
    kind = "after, after_any" if any_end else "after"
    why = f"the ids are those of jobs on {port.there}: fill in those of {port.here}"
    to_do = f"after: {', '.join(after.ids)}: replace the ids by those of the jobs on {port.here}"
    to_do += f"; {port.scheduler.title} waits for any end of theirs" * (any_end and not after.any_end)
    said = port.rewritten(f"{kind}: {', '.join(after.ids)}", why * (not port.same_machine))
    return said.doing(to_do).setting(after=after.ids, **({"after_any": True} if any_end else {}))


def exported(port: Port, text: str, case: str, ends: str) -> Verdict:
    """Turn ``NAME=VALUE,...`` into variables; ``case``: where there are none, ``ends``: what ends a name."""
    parts = re.split(rf",\s*(?=[A-Za-z_]\w*(?:{ends}))", text)
    named = [part for part in parts if "=" in part]
    names = [part for part in parts if re.fullmatch(r"(?!(ALL|NONE|NIL|all|none)$)[A-Za-z_]\w*", part)]
    known = port.script.variables.exported.union(WORDS["of a job here, too"])
    alone = [part for part in names if part not in known and group_of(part) is None]
    said = _with_values(port, named) if named else port.says(case)
    return said.doing(task("export by name", names=", ".join(alone))) if alone else said


def _with_values(port: Port, named: list[str]) -> Verdict:
    given = [part.strip().partition("=")[::2] for part in named]
    said = [port_variable(port, name, Value(value, value)) for name, value in given]
    fates = {verdict.fate for verdict in said}
    is_open = undecided(Judged((), one) for one in said)
    to = "; ".join(
        verdict.to or (f"env: {name}" if verdict.fate == "kept" else f"{name} is left out: {verdict.why}")
        for (name, _), verdict in zip(given, said, strict=True)
    )
    if fates == {"left out"}:
        why = "; ".join(verdict.why.removeprefix("undecided: ") for verdict in said)
        return Verdict("left out", why=f"undecided: {why}" if is_open else why)
    to_do = (*(f"env: {why}" for why in is_open), *(text for verdict in said for text in verdict.to_do))
    sets = all_set(Judged((), verdict) for verdict in said)
    return port.says("exported", texts=to).doing(*to_do).setting(**sets)


def _begin(port: Port, directive: Directive) -> Verdict:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", directive.value or "", re.ASCII):
        return port.says("nothing" if directive.value == "now" else "begin", text=directive.text)
    begin = (directive.value or "")[:16]
    return port.rewritten(f"begin: {begin}").setting(begin=begin)


def fabric_verdict(port: Port, text: str) -> Verdict:
    """Return the verdict on a launcher's option about the network or the MPI's plugin."""
    options = " ".join(port.target.fabric.launch_options)
    plugin = f"--mpi={port.target.mpi.plugin}" if port.target.mpi.plugin else ""
    to = " ".join(filter(None, (options, plugin)))
    if not to:
        return port.says("fabric, nothing", text=text)
    source = port.cited(port.target.mpi.source if plugin else port.target.fabric.source)
    return port.says("fabric", source, options=to, text=text)


def container_option(port: Port, name: str, value: str | None, text: str) -> Verdict:
    """Return the verdict on an option about the container: its image, or what it sees."""
    if name in ("container-image", "image", "environment"):
        image = image_name(value or "")
        return port.says("image") if image is None else in_container(port, image).setting(container=image)
    if name not in ("container-mounts", "volume") or value is None:
        return port.says("container option", text=text)
    # mounts of pyxis, SRC:DST:FLAGS,..., and of Shifter
    mounts = ",".join(":".join(each.split(":")[:2]) for each in value.split(","))
    found = with_binds(PortedCommand(binds=port.command.binds), mounts, port.here)
    before = "".join(f"{text}; " for text in found.said)
    said = port.says("binds", binds=", ".join(found.binds) or "none", said=before)
    return said.setting(container_bind=found.binds).doing(*found.to_do)


def in_container(port: Port, image: str) -> Verdict:
    """Return the verdict on words that start the program in a container."""
    container = port.target.software.container
    return port.says("container", port.cited(container.source if container else None), image=image)


def _mail_option(port: Port, directive: Directive) -> Verdict:
    events, user = mail_of(port)
    to = ", ".join(port.target_words.write_mail(events, user)) if events else ""
    if not to:
        by_user = port.words.options.get(directive.name) == "mail user"
        none = not events and (by_user or re.fullmatch("(?i)n(one|ever)?", directive.value or ""))
        return port.says("mail, none" if none else "mail, unknown", title=port.scheduler.title)
    lost = ", ".join(_lost_mail(port, directive))
    why = f"left out: {lost}: mail is sent to plain addresses, at the begin, the end and a failure"
    return port.rewritten(f"directives: {to}", why if lost else "")


def mail_of(port: Port) -> tuple[set[MailEvent], str]:
    """Return for which events the script requests mail, and to whose address."""
    events, user = set[MailEvent](), ""
    for directive in port.script.active_directives:
        subject = port.words.options.get(directive.name)
        if subject == "mail events":
            events.update(*port.words.read_mail(directive.name, directive.value or "").values())
        elif subject == "mail user" and re.fullmatch(r"[\w.@+,-]+", directive.value or ""):
            user = directive.value or ""
    if user and "mail events" not in port.subjects:
        output = " with output" * ("output" in port.subjects)
        events |= {*WORDS["mail without events"].get(f"{port.words.kind}{output}", ())}
    return events, user


def _lost_mail(port: Port, directive: Directive) -> list[str]:
    """Return the words of an option for mail that mean no event or address which a job file can say."""
    if port.words.options.get(directive.name) == "mail user":
        return re.findall(r".*[^\w.@+,-].*", directive.value or "")
    read = port.words.read_mail(directive.name, directive.value or "")
    return [word for word, events in read.items() if not events]


def _folder(port: Port, directive: Directive) -> Verdict:
    if directive.value in (None, "", ".", "./", "$PWD", "$PBS_O_WORKDIR"):
        return port.says("folder")
    return port.says("other folder", shown=directive.value)


def _or_stdin(case: str) -> Callable[[Port, Directive], Verdict]:
    return lambda port, one: port.says("input" if one.name in WORDS["stdin"] else case, text=one.text)


def _or_as_it_is(handler: Callable[[Port, Directive], Verdict]) -> Callable[[Port, Directive], Verdict]:
    return lambda port, one: (port.same_scheduler and _as_it_is(port, one)) or handler(port, one)


def _carried(port: Port, directive: Directive) -> Verdict:
    case = "nothing" if directive.name in WORDS["notes"] else "carried"
    return port.says(case, text=directive.text, title=port.scheduler.title)


def _requeue(port: Port, directive: Directive) -> Verdict:
    """Say in the way of the scheduler here whether a job starts again after its node has failed."""
    again = directive.name == "requeue" or (directive.value or "").startswith("y")
    written = WORDS["requeue"].get(port.target.scheduler.kind)
    if written is None or (directive.name == "r" and directive.value not in ("y", "n", "yes", "no")):
        return _carried(port, directive)
    return port.rewritten(f"directives: {written[again]}").setting(directives=(written[again],))


_HANDLERS: dict[Subject, Callable[[Port, Directive], Verdict]] = {
    **dict.fromkeys((*WORDS["numbers"], "select"), _sizes),
    **dict.fromkeys(("carried", "signal"), _or_as_it_is(_carried)),
    **dict.fromkeys(("mail events", "mail user"), _mail_option),
    **dict.fromkeys(("interactive", "nothing"), _or_stdin("nothing")),
    **dict.fromkeys(("qos", "queue"), _queue),
    "account": _account,
    "after": _after,
    "array": lambda port, one: _with_array(port, port.words.read_array(one.value or ""), one),
    "binding": lambda port, one: binding_verdict(port, one.text),
    "constraint": _constraint,
    "begin": _or_as_it_is(_begin),
    "requeue": _or_as_it_is(_requeue),
    "container": lambda port, one: container_option(port, one.name, one.value, one.text),
    "exclusive": _exclusive,
    "export": lambda port, one: exported(port, one.value or "", "export", "[=,]|$"),
    "fabric": lambda port, one: fabric_verdict(port, one.text),
    "folder": _folder,
    "memory": _memory,
    "name": _name,
    "output": _or_stdin("output"),
    "walltime": _walltime,
}
