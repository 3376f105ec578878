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
from hpclaunch.plan.request import JobRequest, Setting
from hpclaunch.plan.wrappers import program_at


class WorkerLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts other processes; options are written with underscores."""

    name: str
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


_BINDS = "it binds each worker, and so does hpclaunch: leave it out, or add --binding off"
_HOSTS = "hosts and their GPUs are known when the job runs: leave it out, --num_gpus N is enough"
_ADDRESS, _PORT = '"$MASTER_ADDR"', '"$MASTER_PORT"'


IN_SCRIPT = "script"
"""Key of a command's ``config``: the words by which its shell script starts torchrun."""


def _flags(text: str) -> frozenset[str]:
    return frozenset(f"--{name}" if len(name) > 1 else f"-{name}" for name in text.split())


TORCHRUN = WorkerLauncher(
    name="torchrun",
    framework="torch",
    imports=("torch",),
    per_node=True,
    nodes="--nnodes",
    workers=("--nproc_per_node",),
    node_rank="--node_rank",
    meets=(
        "--rdzv_backend",
        "--rdzv_endpoint",
        "--rdzv_id",
        "--master_addr",
        "--master_port",
        "--standalone",
    ),
    flags=_flags("standalone m module no_python run_path virtual_local_rank h help"),
    contradicts={
        "--numa_binding": _BINDS,
        "--virtual_local_rank": "workers are bound by their LOCAL_RANK, which it makes 0: leave it out",
    },
)
ACCELERATE = WorkerLauncher(
    name="accelerate launch",
    framework="torch",
    imports=("accelerate",),
    per_node=True,
    nodes="--num_machines",
    processes="--num_processes",
    node_rank="--machine_rank",
    meets=("--main_process_ip", "--main_process_port", "--rdzv_backend"),
    flags=_flags(
        "h help q quiet cpu multi_gpu tpu enable_cpu_affinity dynamo_use_fullgraph dynamo_use_dynamic"
        " dynamo_use_regional_compilation use_deepspeed use_fsdp use_parallelism_config use_megatron_lm"
        " same_network m module no_python tpu_cluster no_tpu_cluster tpu_use_sudo downcast_bf16"
        " fp8_use_autocast_during_eval debug"
    ),
    contradicts={
        "--enable_cpu_affinity": "it moves each worker to other cores than those that hpclaunch has bound it"
        " to: leave it out, or add --binding off"
    },
    fills={
        "--num_machines": "{nodes}",
        "--num_processes": "{tasks}",
        "--machine_rank": "{rank}",
        "--main_process_ip": _ADDRESS,
        "--main_process_port": _PORT,
    },
)
DEEPSPEED = WorkerLauncher(
    name="deepspeed",
    framework="deepspeed",
    imports=("deepspeed",),
    per_node=True,
    nodes="--num_nodes",
    workers=("--num_gpus", "--num_accelerators"),
    node_rank="--node_rank",
    meets=("--master_addr", "--master_port"),
    flags=_flags(
        "module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid bind_cores_to_rank q quiet"
        " h help"
    ),
    contradicts={
        "--bind_cores_to_rank": _BINDS,
        "--bind_core_list": _BINDS,
        "--hostfile": "the job's nodes are known when it runs: leave it out, hpclaunch writes the file",
        "--launcher": "the site's launcher starts deepspeed on each node, without ssh: leave it out",
        "--include": _HOSTS,
        "--exclude": _HOSTS,
        "--no_python": "the workers' Python is started bound: name the Python file itself",
    },
    fills={
        "--hostfile": '"$HPCLAUNCH_JOB_FOLDER/hostfile"',
        "--no_ssh": "",
        "--node_rank": "{rank}",
        "--master_addr": _ADDRESS,
        "--master_port": _PORT,
        "--no_python": "",
    },
)
FABRIC = WorkerLauncher(
    name="fabric run",
    framework="torch",
    imports=("lightning",),
    per_node=True,
    nodes="--num_nodes",
    workers=("--devices",),
    node_rank="--node_rank",
    meets=("--main_address", "--main_port"),
    flags=_flags("help"),
    fills={
        "--devices": "{workers}",
        "--num_nodes": "{nodes}",
        "--node_rank": "{rank}",
        "--main_address": _ADDRESS,
        "--main_port": _PORT,
    },
)
# Their programs are started by the site's launcher as well, or their options were not read.
_OTHERS = {
    "horovodrun": WorkerLauncher(
        name="horovodrun",
        framework="horovod",
        processes="--num_proc",
        flags=_flags("v h version help check_build verbose mpi gloo jsrun disable_cache autotune"),
    ),
    "composer": WorkerLauncher(name="composer", framework="torch"),
    "colossalai": WorkerLauncher(name="colossalai", framework="torch"),
    **{
        name: WorkerLauncher(name=name)
        for name in ("srun", "mpirun", "mpiexec", "mpiexec.hydra", "prterun", "aprun", "jsrun")
    },
}
_PROGRAMS: dict[tuple[str, ...], WorkerLauncher] = {
    ("torchrun",): TORCHRUN,
    ("accelerate", "launch"): ACCELERATE,
    ("accelerate-launch",): ACCELERATE,
    ("deepspeed",): DEEPSPEED,
    ("fabric", "run"): FABRIC,
    ("lightning", "run", "model"): FABRIC,
    **{(name,): row for name, row in _OTHERS.items()},
}
_MODULES = {
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "accelerate.commands.launch": ACCELERATE,
    "deepspeed.launcher.runner": DEEPSPEED,
}


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A command that begins with such a launcher."""

    launcher: WorkerLauncher
    words: int
    """Words of the command up to the launcher's name and its verb."""
    options: Mapping[str, str] = {}
    """Options of the launcher -> value; empty for a flag."""
    program: tuple[str, ...] = ()
    """What each worker runs, as a command."""
    tail: int = 0
    """Words of the command after the launcher's options."""

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
    if names[1:2] == ("-m",) and re.fullmatch(r"python[\d.]*", names[0]):
        row, taken = _MODULES.get(" ".join(names[2:3])), 3
    else:
        found = next((key for key in _PROGRAMS if names[: len(key)] == key), ())
        row, taken = _PROGRAMS.get(found), len(found)
    if row is None:
        return None
    options, rest = _split(row, argv[at + taken :])
    program = _as_command(row, options, rest)
    return Started(launcher=row, words=at + taken, options=options, program=program, tail=len(rest))


def framework_launcher(argv: tuple[str, ...]) -> Started | None:
    """Return the launcher that a framework brings along, where a command begins with one."""
    found = find_launcher(argv)
    return found if found and found.launcher.framework else None


def _split(row: WorkerLauncher, words: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the options, and the words after them."""
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


def worker_launch(request: JobRequest) -> Started | None:
    """Return the launcher that starts the workers of a job's nodes; None: the site's launcher does."""
    return None if request.as_ranks else per_node_launcher(request)


def one_process(request: JobRequest, found: Started) -> bool:
    """Whether accelerate starts no worker but one process per node, which is an ordinary rank."""
    kind = request.command.config.get("distributed_type")
    return found.launcher is ACCELERATE and ("--cpu" in found.options or kind == "MULTI_CPU")


def rank_command(request: JobRequest) -> tuple[str, ...]:
    """Return the words that a job starts: those of the command, with ``--as-ranks`` without its launcher."""
    argv = request.command.argv
    found = find_launcher(argv) if request.as_ranks and per_node_launcher(request) else None
    return (*argv[: program_at(argv)], *found.program) if found else argv


# --- sizes -------------------------------------------------------------------------------------------------


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


def said_sizes(request: JobRequest) -> tuple[Said | None, Said | None]:
    """Return the nodes and the workers of each node that a command says; None: it leaves them open.

    Raises BadInputError for numbers of one command that contradict each other.
    """
    found = per_node_launcher(request)
    if found is None:
        return None, None
    row, config = found.launcher, request.command.config
    nodes = _number(found, (row.nodes,)) or _configured(config, "num_machines")
    workers = _number(found, row.workers)
    if row.processes and (total := _number(found, (row.processes,)) or _configured(config, "num_processes")):
        among = nodes.number if nodes else request.nodes or 1
        if total.number % among:
            raise BadInputError(
                f"{total.words}: {total.number} workers are no whole number on each of {among} nodes",
                f"{total.number - total.number % among or among}, or another number of nodes",
            )
        workers = Said(total.number // among, total.words)
    return nodes, workers


def _configured(config: Mapping[str, str], key: str) -> Said | None:
    value = config.get(key, "")
    return Said(int(value), f"{config['file']}: {key} {value}") if value.isdigit() else None


def with_said_sizes(request: JobRequest) -> tuple[JobRequest, tuple[Setting, ...]]:
    """Return the request with the sizes that its command says, and settings that say so.

    Raises BadInputError where the job says other sizes.
    """
    nodes, workers = said_sizes(request)
    changes: dict[str, int] = {}
    settings: list[Setting] = []
    for name, said in (("nodes", nodes), ("tasks_per_node", workers)):
        asked, option = getattr(request, name), name.replace("_", "-")
        if said is None or asked == said.number:
            continue
        if asked is not None:
            raise BadInputError(
                f"{said.words}, but the job has --{option} {asked}",
                "give both the same number, or leave one of them out: hpclaunch fills in what is open",
            )
        changes[name] = said.number
        settings.append(Setting(name=option, value=str(said.number), origin=f"computed: {said.words}"))
    return msgspec.structs.replace(request, **changes), tuple(settings)
