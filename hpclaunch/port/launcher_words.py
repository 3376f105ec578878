"""The options of foreign launchers by what they are about, and the launchers that frameworks bring along.

Sources: man srun (24.11), mpiexec of Open MPI 5, MPICH hydra and PALS, man aprun (CLE 6), IBM's jsrun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hpclaunch.lint.launch_lines import Launch, Option
from hpclaunch.lint.shell_syntax import Word
from hpclaunch.scheduler.directive_reader import name_set

Size = Literal[
    "nodes",
    "tasks",
    "tasks per node",
    "cpus",
    "gpus",
    "gpus per node",
    "gpus per task",
    "sets",
    "sets per node",
]
About = Literal["binding", "container", "environment", "fabric", "log", "nodes by name", "nothing"]


@dataclass(frozen=True)
class LauncherWords:
    """The options of one launcher, without dashes."""

    sizes: Mapping[str, Size]
    about: Mapping[str, About]
    valued: frozenset[str] = frozenset()
    """Options whose value may be the next word, where lint's reader does not know them."""
    letters: str = ""
    """One-letter options whose value may follow without a blank."""


def _words(
    sizes: dict[Size, str], about: dict[About, str], valued: str = "", letters: str = ""
) -> LauncherWords:
    by_size = {name: size for size, names in sizes.items() for name in names.split()}
    by_use = {name: use for use, names in about.items() for name in names.split()}
    return LauncherWords(by_size, by_use, name_set(valued), letters)


LAUNCHER_WORDS = {
    "srun": _words(
        {
            "nodes": "nodes",
            "tasks": "ntasks",
            "tasks per node": "ntasks-per-node",
            "cpus": "cpus-per-task",
            "gpus": "gpus",
            "gpus per node": "gpus-per-node gres",
            "gpus per task": "gpus-per-task",
        },
        {
            "binding": "cpu-bind cpu_bind gpu-bind mem-bind distribution hint threads-per-core core-spec"
            " cpus-per-gpu ntasks-per-core ntasks-per-socket ntasks-per-gpu exclusive exact overcommit"
            " overlap O s cores-per-socket extra-node-info mem mem-per-cpu mem-per-gpu",
            "container": "container-image container-mounts container-workdir container-name environment image"
            " module volume container-env container-writable",
            "environment": "export",
            "fabric": "mpi network",
            "log": "output error label l u unbuffered wait kill-on-bad-exit K quiet Q verbose v job-name",
            "nodes by name": "nodelist exclude relative het-group",
        },
    ),
    "mpiexec": _words(
        {
            "tasks": "n np",
            "tasks per node": "ppn npernode N ntasks-per-node perhost",
            "cpus": "d depth cpus-per-rank cpus-per-proc",
        },
        {
            "binding": "cpu-bind bind-to map-by rank-by report-bindings gpu-bind mem-bind rankfile rf"
            " use-hwthread-cpus oversubscribe bind-to-core bynode byslot",
            "environment": "env genv x genvall envall genvnone envlist",
            "fabric": "mca gmca prtemca pmixmca iface launcher",
            "log": "line-buffer l output-filename tag-output report-bindings-to display-map v prepend-rank",
            "nodes by name": "hostfile machinefile f host hosts H hostlist",
            "nothing": "allow-run-as-root",
        },
        letters="nN",
    ),
    "aprun": _words(
        {"tasks": "n", "tasks per node": "N", "cpus": "d"},
        {
            "binding": "cc cp j S sn ss sl r F m cpu-binding p",
            "environment": "e",
            "log": "q b B T D t",
            "nodes by name": "L l",
        },
        "n N d cc cp j S sn sl r F m e L l p D t",
        letters="nNdjSre",
    ),
    "jsrun": _words(
        {
            "sets": "n nrs",
            "sets per node": "r rs_per_host",
            "tasks": "p np",
            "tasks per node": "a tasks_per_rs",
            "cpus": "c cpu_per_rs",
            "gpus per task": "g gpu_per_rs",
        },
        {
            "binding": "b bind d launch_distribution l latency_priority K rs_per_socket",
            "environment": "E env F env_eval D",
            "fabric": "smpiargs M",
            "log": "o stdio_stdout k stdio_stderr e stdio_mode",
            "nodes by name": "H U",
            "nothing": "immediate",
        },
        "n nrs r rs_per_host p np a tasks_per_rs c cpu_per_rs g gpu_per_rs b bind d launch_distribution l"
        " latency_priority K rs_per_socket E env F M smpiargs o k e H U D",
        letters="nrpacgbdlKEFMokeHUD",
    ),
}


class LaunchOption(NamedTuple):
    """An option of a launcher with the word of its value."""

    name: str
    value: Word | None
    prefix: int


@dataclass
class ReadLaunch:
    """A launch line: its options, and the words of its program."""

    options: list[LaunchOption] = field(default_factory=list)
    program: list[Word] = field(default_factory=list)


def read_options(launch: Launch) -> ReadLaunch:
    """Return the options and the program of a launch; those of aprun and jsrun are read here."""
    known = LAUNCHER_WORDS.get(launch.launcher)
    if known is None or not known.valued:
        options = [_option(option) for option in launch.options]
        return ReadLaunch(options, launch.program)
    words = _after_launcher(launch)
    found = ReadLaunch()
    while words and words[0].visible.startswith("-") and words[0].visible not in ("-", "--"):
        taken, option = _read_one(words, known)
        found.options.append(option)
        words = words[taken:]
    found.program = words[1:] if words and words[0].visible == "--" else words
    return found


def _option(option: Option) -> LaunchOption:
    return LaunchOption(option.name, option.value, option.prefix)


def _after_launcher(launch: Launch) -> list[Word]:
    names = [word.visible.rpartition("/")[2] for word in launch.command.words]
    return launch.command.words[names.index(launch.launcher) + 1 :]


def _read_one(words: list[Word], known: LauncherWords) -> tuple[int, LaunchOption]:
    shown = words[0].visible
    name, equals, _ = shown.lstrip("-").partition("=")
    if equals:
        return 1, LaunchOption(name, words[0], shown.index("=") + 1)
    if name in known.valued and words[0].text is not None:
        return 2, LaunchOption(name, words[1] if len(words) > 1 else None, 0)
    if not shown.startswith("--") and shown[1:2] in known.letters and shown[1:2]:
        return 1, LaunchOption(shown[1], words[0], 2)
    return 1, LaunchOption(name, None, 0)


# --- launchers of frameworks -------------------------------------------------------------------------------


class Inner(NamedTuple):
    """A launcher that a framework brings along, as a command begins with it."""

    name: str
    framework: str | None
    workers: str
    """Regular expression for the option with the number of workers; empty: one per GPU."""
    whole_job: bool
    """Whether that number is of the whole job, not of each node."""


_INNER = (
    Inner("torchrun", "torch", r"--nproc[-_]per[-_]node", False),
    Inner("torch.distributed.run", "torch", r"--nproc[-_]per[-_]node", False),
    Inner("torch.distributed.launch", "torch", r"--nproc[-_]per[-_]node", False),
    Inner("accelerate", None, r"--num[-_]processes", True),
    Inner("deepspeed", "deepspeed", r"--num[-_]gpus", False),
    Inner("horovodrun", "horovod", r"-np|--num-proc", True),
)


def inner_launcher(texts: list[str], launcher: str) -> tuple[Inner, int] | None:
    """Return the framework's launcher that a command is, and where its options begin.

    ``texts``: the words of the program; ``launcher``: the word before it, where that is one itself.
    """
    for inner in _INNER:
        if launcher == inner.name:
            return inner, 0
        if texts[:1] and texts[0].rpartition("/")[2] == inner.name:
            return inner, 2 if inner.name == "accelerate" and texts[1:2] == ["launch"] else 1
        is_python = bool(texts) and re.fullmatch(r"(.*/)?python[\d.]*", texts[0]) is not None
        if is_python and "-m" in texts and texts[texts.index("-m") + 1 :][:1] == [inner.name]:
            return inner, texts.index("-m") + 2
    return None


_FLAGS = re.compile(
    r"--(standalone|no[-_]python|multi[-_]gpu|use[-_]\w+|debug|verbose|no_local_rank|mpi|gloo|same_network"
    r"|mixed_precision=\S+|enable[-_]\w+|disable[-_]cache|autotune)"
)


def after_options(texts: list[str], begin: int) -> tuple[int, tuple[str, ...]]:
    """Return where the program begins after a framework launcher's options, and the words before it there.

    It begins at the first Python file, interpreter, module or path that is not the value of an option.
    """
    at = begin
    while at < len(texts):
        text = texts[at]
        if text in ("-m", "--module"):
            return at + 1, ("python", "-m")
        if re.fullmatch(r"(.*/)?python[\d.]*", text):
            return at, ()
        if not text.startswith("-"):
            return at, ("python",) if text.endswith(".py") or not text else ()
        at += 1 if "=" in text or _FLAGS.fullmatch(text) else 2
    return at, ()
