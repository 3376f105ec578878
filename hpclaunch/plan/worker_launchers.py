"""Launchers in a command that start the processes of a node: torchrun, accelerate, deepspeed. Pure.

One that starts the workers of its node runs once per node, and the job fills in what the command leaves open:
the sizes, the number of the node, and where the nodes meet. Read from the parsers of torch 2.13
(torch/distributed/run.py), accelerate 1.15 (accelerate/commands/launch.py, utils/launch.py), DeepSpeed 0.19
(deepspeed/launcher/runner.py) and Lightning 2.6 (lightning/fabric/cli.py).
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.framework_table import LAUNCHERS, WorkerLauncher
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.script_commands import program_at

IN_SCRIPT = "script"
"""Key of a command's ``config``: the words by which its shell script starts torchrun."""

TORCHRUN, ACCELERATE = LAUNCHERS["torchrun"], LAUNCHERS["accelerate launch"]
DEEPSPEED, FABRIC = LAUNCHERS["deepspeed"], LAUNCHERS["fabric run"]
_OF_SITES = ("srun", "mpirun", "mpiexec", "mpiexec.hydra", "prterun", "aprun", "jsrun")
_PROGRAMS: dict[tuple[str, ...], WorkerLauncher] = {
    tuple(words.split()): row for row in LAUNCHERS.values() for words in row.commands
}
_PROGRAMS |= {(name,): WorkerLauncher(name=name) for name in _OF_SITES}
PYTHON_FLAGS = "-[bBdEiIOPqRsSuvx]+"
"""Options of Python without a value (man python), as in ``python -u -m torch.distributed.run``."""
_MODULES = {module: row for row in LAUNCHERS.values() for module in row.modules}


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A command that begins with such a launcher."""

    launcher: WorkerLauncher
    words: int
    options: Mapping[str, str] = {}
    program: tuple[str, ...] = ()
    tail: int = 0

    @property
    def meets_itself(self) -> bool:
        """Whether the command says where its nodes meet."""
        return any(each in self.options for each in self.launcher.meets)

    @property
    def is_static(self) -> bool:
        """Whether it is a torchrun whose nodes have numbers: the backend that holds where none is named."""
        itself = self.meets_itself and "--standalone" not in self.options
        return itself and self.options.get("--rdzv_backend", "static") == "static"


def find_launcher(argv: tuple[str, ...]) -> Started | None:
    """Return the launcher that a command begins with, wrappers before it aside; None: there is none."""
    at = program_at(argv)
    names = (PurePosixPath(argv[at]).name, *argv[at + 1 :]) if at < len(argv) else ()
    behind = next((n for n, word in enumerate(names) if n and not re.fullmatch(PYTHON_FLAGS, word)), 0)
    if names[behind : behind + 1] == ("-m",) and re.fullmatch(r"python[\d.]*", names[0]):
        row, taken = _MODULES.get(" ".join(names[behind + 1 : behind + 2])), behind + 2
    else:
        found = next((key for key in _PROGRAMS if names[: len(key)] == key), ())
        row, taken = _PROGRAMS.get(found), len(found)
    if row is None:
        return None
    options, rest = split_options(row, argv[at + taken :])
    program = _as_command(row, options, rest)
    return Started(launcher=row, words=at + taken, options=options, program=program, tail=len(rest))


def split_options(row: WorkerLauncher, words: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options of a launcher, and the words after them."""
    options: dict[str, str] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, value = words[at].partition("=")
        name = _full(row, name.replace("-", "_").replace("__", "--", 1) if name[1:2] == "-" else name)
        if not equals and name not in row.flags:
            at += 1
            value = words[at] if at < len(words) else ""
        options[name] = value
        at += 1
    return options, words[at + 1 if words[at : at + 1] == ("--",) else at :]


def _as_command(row: WorkerLauncher, options: Mapping[str, str], rest: tuple[str, ...]) -> tuple[str, ...]:
    if options.keys() & {"-m", "--module"}:
        return ("python", "-m", *rest)
    python = row.per_node and "--no_python" not in options
    return ("python", *rest) if rest and (python or rest[0].endswith(".py")) else rest


def _full(row: WorkerLauncher, name: str) -> str:
    """Return the option that a name begins, as argparse takes it: ``--nproc`` is ``--nproc_per_node``."""
    known = (row.nodes, *row.workers, row.processes, row.node_rank, *row.meets, *row.flags, *row.contradicts)
    if name in known or not name.startswith("--"):
        return name
    begun = [each for each in known if each.startswith(name)]
    return begun[0] if len(begun) == 1 else name


def launched_program(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the workers of a command run; the command itself where no launcher is in it."""
    found = find_launcher(argv)
    return found.program if found and found.program else argv


def per_node_launcher(request: JobRequest) -> Started | None:
    """Return the launcher of a job's command that starts the workers of a node; None: it has none."""
    if request.command.bundled or not request.command.argv:
        return None
    found = find_launcher(request.command.argv) or launcher_in_script(request)
    return found if found and found.launcher.per_node and not one_process(request, found) else None


def launcher_in_script(request: JobRequest) -> Started | None:
    """Return the launcher that the script of a job starts; nothing of it is in the command."""
    words = request.command.config.get(IN_SCRIPT)
    found = find_launcher(tuple(shlex.split(words))) if words else None
    return msgspec.structs.replace(found, words=0) if found else None


def one_process(request: JobRequest, found: Started) -> bool:
    """Whether accelerate starts no worker but one process per node, which is an ordinary rank."""
    kind = request.command.config.get("distributed_type")
    return found.launcher is ACCELERATE and ("--cpu" in found.options or kind == "MULTI_CPU")


def rank_command(request: JobRequest) -> tuple[str, ...]:
    """Return the words that a job starts: those of the command, with ``--as-ranks`` without its launcher."""
    argv = request.command.argv
    found = find_launcher(argv) if request.as_ranks and per_node_launcher(request) else None
    return (*argv[: program_at(argv)], *found.program) if found else argv


class Said(msgspec.Struct, frozen=True):
    """A number that a command or its configuration file says, and its words."""

    number: int
    words: str


def _number(found: Started, names: tuple[str, ...]) -> Said | None:
    for name in names:
        value = found.options.get(name, "")
        value = value.rpartition(":")[2] if name == "--nnodes" else value  # MIN:MAX
        if value.isdigit():
            return Said(int(value), f"{found.launcher.name} {name} {found.options[name]}")
    return None


def said_sizes(request: JobRequest, found: Started) -> tuple[Said | None, Said | None]:
    """Return the nodes and the workers of each node that a launcher is given; None: it leaves them open.

    Raises BadInputError for numbers of one command that contradict each other.
    """
    row, config = found.launcher, request.command.config
    nodes = _number(found, (row.nodes,)) or _configured(config, "num_machines")
    workers = _number(found, row.workers)
    if row.processes and (total := _number(found, (row.processes,)) or _configured(config, "num_processes")):
        among = nodes.number if nodes else request.nodes or 1
        if total.number % among:
            raise BadInputError.case(
                "sizes: uneven", total=total, nodes=among, fit=total.number - total.number % among or among
            )
        workers = Said(total.number // among, total.words)
    return nodes, workers


def _configured(config: Mapping[str, str], key: str) -> Said | None:
    value = config.get(key, "")
    return Said(int(value), f"{config['file']}: {key} {value}") if value.isdigit() else None


def with_said_sizes(request: JobRequest, found: Started | None) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request with the sizes that its launcher is given, and settings that say so.

    Raises BadInputError where the job says other sizes.
    """
    nodes, workers = said_sizes(request, found) if found else (None, None)
    changes: dict[str, int] = {}
    settings: list[Setting] = []
    for name, said in (("nodes", nodes), ("tasks_per_node", workers)):
        asked, option = getattr(request, name), name.replace("_", "-")
        if said is None or asked == said.number:
            continue
        if asked is not None:
            raise BadInputError.case("sizes: two", words=said.words, option=option, asked=asked)
        changes[name] = said.number
        settings.append(Setting(name=option, value=str(said.number), origin=f"computed: {said.words}"))
    return msgspec.structs.replace(request, **changes), tuple(settings)
