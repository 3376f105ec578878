"""The variables of a foreign script: the program's go into ``env``, a machine's are replaced."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from hpclaunch.package_data import package_table
from hpclaunch.plan.request_texts import SCRIPT_OWN, SHELL_OWN, looks_secret
from hpclaunch.port.foreign_values import UNREADABLE, WORDS, Value
from hpclaunch.port.job_sizes import usable_cores
from hpclaunch.port.line_report import KEPT, Verdict, at_lines, task
from hpclaunch.port.port_state import Port, gpus_of, number
from hpclaunch.port.ported_command import FILL_IN
from hpclaunch.scheduler.directive_reader import whole_number


class Group(NamedTuple):
    """Variables of the machine, the launcher or the job, which a port does not carry over unchanged."""

    name: str
    pattern: str
    why: str


_TABLE: dict[str, dict[str, Any]] = package_table("port/port_variables.yaml")
GROUPS = tuple(Group(name, "|".join(row["names"]), row["why"]) for name, row in _TABLE.items())


def group_of(name: str) -> Group | None:
    """Return the group of a variable; None: it is the program's."""
    found = next((group for group in GROUPS if re.fullmatch(group.pattern, name, re.IGNORECASE)), None)
    return None if found is None or found.name == "debug" else found


def port_variable(port: Port, name: str, value: Value) -> Verdict:
    """Return the verdict on ``export NAME=VALUE``; a variable of the program becomes one of the job."""
    group = group_of(name)
    if port.same_machine and group is not None and group.name in ("fabric", "proxy"):
        group = group if name.endswith("SOCKET_IFNAME") else None
    fabric, several = port.target.fabric, (port.sizes.nodes or 1) > 1
    here = {**fabric.common, **(fabric.multi_node if several else fabric.single_node), **port.target.env}
    site = here.get(name) if group is not None or not port.same_machine else None
    if group is not None and re.fullmatch(WORDS["of any node"], f"{name}={value.plain}"):
        group = None
    if group is not None and group.name == "threads" and fits(port, value):
        group = site = None
    if group is not None and group.name == "software" and re.search(r"PATH$|PRELOAD$", name):
        shown = value.plain or value.shell
        if re.fullmatch(WORDS["path of an environment"], f"{name}={value.named or shown}"):
            return port.says("path of an environment")
        return port.says("search path", name=name, why=group.why, shown=f": {shown}" if shown else "")
    if site is not None:
        to = f"{name}={site.value}" if site.value is not None else f"unset {name}"
        why = f"{group.why}; " if group else ""
        return port.says("set by the site", port.cited(site.source), to=to, why=why, reason=site.reason)
    if re.fullmatch(WORDS["GPU-aware MPI"], f"{name}={value.plain}"):
        return gpu_aware_verdict(port, name)
    if group is not None:
        return _replaced(port, name, group, value)
    return _carried(port, name, value)


def _carried(port: Port, name: str, value: Value) -> Verdict:
    """Return the verdict on a variable of the program."""
    if reason := _refused(name):
        secret = (f"secret: {name} is left out: export it in the shell that submits",)
        return Verdict("left out", why=reason).doing(*(secret if looks_secret(name) else ()))
    if value.plain is not None and len(value.plain.encode()) < WORDS["bytes of a variable"]:
        tasks = paths_here(port, f"env {name}", value.plain)
        if is_other_size(port, name, value.plain, of_job=value.of_job):
            what = f"env {name}: {value.plain}"
            tasks.append(task("other size", what=what, there=port.there, here=port.sizes_text))
        return KEPT.setting(env={name: value.plain}).doing(*tasks)
    shell = _by_names_to_fill_in(port, value) or value.shell
    if shell is not None and "\n" not in shell:
        line = f'export {name}="{shell}"'
        said = port.says("exported line", line=line)
        return said.setting(exports=(line,)).doing(*paths_here(port, f"env {name}", shell))
    return port.says("computed value", name=name)


def _by_names_to_fill_in(port: Port, value: Value) -> str | None:
    """Return a value by the names of variables that the user fills in for the command; None: of others."""
    filled = {*value.missing} <= {*port.command.missing} - {UNREADABLE}
    return value.named if value.missing and filled else None


def paths_here(port: Port, where: str, text: str, bound: Collection[str] = ()) -> list[str]:
    """Return the tasks about the paths of another machine in a text, without those below ``bound``."""
    parts = dict.fromkeys(re.split(r"[\s:=,;'\"]+", "" if port.same_machine else text))
    paths = [part for part in parts if re.fullmatch(WORDS["path of one machine"], part)]
    paths = [path for path in paths if not any(f"{path}/".startswith(f"{folder}/") for folder in bound)]
    return [f"{where}: {path} has to be a path on {port.here}" for path in paths]


def is_other_size(port: Port, name: str, value: str | None, *, of_job: bool = False) -> bool:
    """Tell whether a number, by its name a size of the job, may be another one here.

    ``of_job``: it is that of the job here, where the ranks started are those requested.
    """
    per_node, nodes = port.sizes.tasks_per_node or 0, port.sizes.nodes or 0
    is_here = of_job and value in [*map(str, (nodes, per_node, nodes * per_node))]
    return not is_here and _may_differ(port, name, value)


def _may_differ(port: Port, name: str, value: str | None) -> bool:
    """Tell whether a number is by its name a size of the job, and the job has another one or none here."""
    there, here = port.source_sizes, port.sizes
    of_node = here.tasks_per_node or gpus_of(port.target)
    same = here.same and there.nodes and (there.ranks or there.gpus) == of_node * there.nodes
    same = same or (port.same_machine and value == str(gpus_of(port.target)))
    same = same or bool(re.fullmatch(WORDS["one of each"], f"{value}; {port.sizes_text}"))
    is_size = re.fullmatch(WORDS["names of sizes"], name.strip("-"), re.IGNORECASE)
    return not same and bool(is_size and re.fullmatch(r"\d+", f"{value}"))


def fill_in(port: Port, name: str, lines: Sequence[int]) -> Verdict:
    """Make a variable that the command needs, and that is not known here, one that the user fills in."""
    if reason := _refused(name):
        said = f"command: {name} of {at_lines(lines)}: {reason.removeprefix('undecided: ')}"
        return Verdict("left out", why=reason).doing(said)
    if name == port.target.binding.gpu_visible_var:
        return port.says("own GPUs read", name=name, at=at_lines(lines))
    return port.says("fill in", name=name, value=f"{FILL_IN}_{name}").setting(
        fill_in=tuple((name, line) for line in lines)
    )


def to_fill_in(
    filled: Iterable[tuple[str, int]], by_index: Collection[int], array: str
) -> tuple[dict[str, str], list[str]]:
    """Return the variables that the user fills in, and the task for each.

    ``filled``: name and line; ``by_index``: the lines that read the index of the array.
    """
    lines: dict[str, list[int]] = {}
    for name, line in filled:
        lines.setdefault(name, []).append(line)
    env = {name: f"{FILL_IN}_{name.removeprefix(f'{FILL_IN}_')}" for name in lines}
    shells = {f"{UNREADABLE}_{name}": name for name in WORDS["of one shell"]}
    to_do = []
    for name, value in env.items():
        case = "word to fill in" if name.startswith(FILL_IN) else "value to fill in"
        case = "value by the index" if {*by_index}.intersection(lines[name]) else case
        case = "value of one shell" if name in shells else case
        texts = {"name": name, "value": value, "at": at_lines(lines[name]), "own": shells.get(name)}
        to_do.append(task(case, array=array, **texts))
    return env, to_do


def fits(port: Port, value: Value) -> bool:
    """Tell whether a number of threads fits the cores of a rank here."""
    cores, per_node = usable_cores(port.target), port.sizes.tasks_per_node
    threads = whole_number(value.plain)
    if threads is None:
        return False
    return cores is None or (per_node is not None and threads <= max(1, cores // per_node))


def _refused(name: str) -> str | None:
    """Return why a job file cannot have a variable of this name."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{name} is not a name of a variable"
    if name in SHELL_OWN or name in SCRIPT_OWN or name.startswith("hpclaunch_"):
        return f"undecided: the script itself uses a variable {name}: give yours another name"
    if looks_secret(name):
        submits = "export it in the shell that submits"
        return f"{name} looks like a secret: {submits}, job files are no place for it"
    return None


def _replaced(port: Port, name: str, group: Group, value: Value) -> Verdict:
    read = _read_in_script(port, name)
    if group.name in ("rendezvous", "ranks") and not (read or name in WORDS["set for ranks"]):
        return port.says("not set for ranks", name=name, why=group.why)
    if group.name in ("rendezvous", "ranks", "scheduler", "sizes for srun"):
        return port.says(group.name, name=name, why=group.why)
    if group.name == "threads":
        return _threads(port, name, group, value)
    if group.name == "binding":
        return _visible(port, name, value, _bound(port, name, group))
    alone = read or port.same_machine or re.fullmatch(WORDS["of one machine alone"], name)
    return port.says("not needed here" if alone else "not set here", why=group.why)


def gpu_aware_verdict(port: Port, text: str) -> Verdict:
    """Return the verdict on what lets the other machine's MPI send from the memory of GPUs."""
    mpi = port.target.mpi
    name = WORDS["variable for GPUs"].get(mpi.implementation)
    if name is None or name in port.target.env:
        return port.says("GPU-aware MPI, unknown", text=text)
    said = port.says("GPU-aware MPI", port.cited(mpi.source), text=text, name=name, mpi=mpi.implementation)
    return said.setting(env={name: "1"})


def _bound(port: Port, name: str, group: Group) -> Verdict:
    """Return the verdict on a variable by which the other machine binds ranks."""
    binding = port.target.binding
    gpus = f", GPUs by {binding.gpu_visible_var}" if binding.gpu_visible_var else ""
    source = port.cited(binding.source)
    return port.says("replaced by the binding", source, gpus=gpus, why=group.why, name=name)


def _threads(port: Port, name: str, group: Group, value: Value) -> Verdict:
    """Return the verdict on a number of threads, in whose place the cores of a rank stand here."""
    cores, case = number(port.requested.cpus_per_task), "threads"
    if value.plain is None:
        case = "threads of cores" if cores and value.shell == "$OMP_NUM_THREADS" else "threads, run time"
    like = "" if name == "OMP_NUM_THREADS" else f", which is read where {name} is not set"
    said = port.says(case, like=like, why=group.why, cores=cores)
    if value.plain and port.sizes.tasks_per_node is None:  # the cores of a rank are not known
        return said.doing(task("threads, unknown", name=name, value=value.plain))
    return said


def _read_in_script(port: Port, name: str) -> bool:
    """Tell whether lines of the script, which are judged, read a variable, or no program gets it."""
    made = port.script.variables
    unseen = name in made.assignments and name not in made.exported
    return unseen or any(ref.name == name for ref in port.script.shell.refs)


def _visible(port: Port, name: str, value: Value, said: Verdict) -> Verdict:
    """Add the task about a list of GPUs other than those of a node, and that a rank sees its own alone."""
    there = port.source_sizes
    each = there.gpus // (there.nodes or 1) if there.gpus is not None else None
    listed = len((value.plain or "").split(","))
    if "VISIBLE" in name and port.launcher.local_rank in (value.shell or ""):
        return said.setting(own_gpus=True)
    if "VISIBLE" not in name or not value.plain or listed == each:
        return said
    return said.doing(task("GPUs listed", name=name, value=value.plain, listed=listed))
