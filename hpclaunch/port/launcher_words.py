"""The options of foreign launchers by what they are about, and the launchers that frameworks bring along.

Sources: man srun (24.11), mpiexec of Open MPI 5, MPICH hydra and PALS, man aprun (CLE 6), IBM's jsrun.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hpclaunch.lint.command_options import MPI_TWO, MPI_VALUED, SRUN_FLAGS, SRUN_SHORT, SRUN_VALUED
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import Value, Values
from hpclaunch.scheduler.directive_reader import name_set
from hpclaunch.shell.shell_syntax import Word

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


class Piece(NamedTuple):
    """A word of the command line after its variables were replaced."""

    value: Value
    word: Word
    """The script's word that it comes from."""

    @property
    def text(self) -> str:
        """What hpclaunch knows of its text."""
        return self.value.plain if self.value.plain is not None else self.value.seen


class LaunchOption(NamedTuple):
    """An option of a launcher."""

    name: str
    """Without dashes; of srun the long name."""
    value: str | None
    """None: it has none, or the run alone knows it."""
    word: Word
    """The script's word that names it."""


@dataclass
class ReadLaunch:
    """A launch line: its options, and its program."""

    options: list[LaunchOption] = field(default_factory=list)
    program: list[Piece] = field(default_factory=list)


_BINDS = frozenset({"cpu-bind", "cpu_bind", "gpu-bind", "mem-bind", "mem_bind"})
_LIST_PIECE = re.compile(r"[0-9A-Fa-fxX,:*-]*\d[0-9A-Fa-fxX,:*-]*|,")
_PYXIS = name_set(
    "container-image container-mounts container-workdir container-name container-env image volume"
)
_MPI_FLAGS = name_set("line-buffer l v q")


def read_options(launch: Launch, values: Values) -> ReadLaunch:
    """Return the options and the program of a launch, its variables replaced as far as they are known."""
    if launch.launcher == "python":
        return ReadLaunch([], words_of(values, launch.program))
    rest = words_of(values, _after_launcher(launch))
    if launch.launcher not in LAUNCHER_WORDS:  # torchrun and its like read all words themselves
        return ReadLaunch([], rest)
    found = ReadLaunch()
    while rest and rest[0].text.startswith("-") and rest[0].text not in ("-", "--"):
        option, taken = _read_one(rest, launch.launcher)
        found.options.append(option)
        rest = rest[taken:]
        if option.name in _BINDS:
            rest = _without_torn(option, rest)
    found.program = rest[1:] if rest and rest[0].text == "--" else rest
    return found


def words_of(values: Values, words: list[Word]) -> list[Piece]:
    """Return what some words become on a command line."""
    found: list[Piece] = []
    for word in words:
        items = values.split(word)
        found += [Piece(item, word) for item in (items if items is not None else [values.value(word)])]
    return found


def _after_launcher(launch: Launch) -> list[Word]:
    for number, word in enumerate(launch.command.words):
        name = word.visible.rpartition("/")[2]
        if name == launch.launcher or (launch.launcher == "mpiexec" and name.startswith("mpi")):
            return launch.command.words[number + 1 :]
    return launch.program


def _read_one(rest: list[Piece], launcher: str) -> tuple[LaunchOption, int]:
    """Read the option at the beginning of some words; return it and how many words it takes."""
    shown, word = rest[0].text, rest[0].word
    following = rest[1] if len(rest) > 1 else None
    name, equals, value = shown.lstrip("-").partition("=")
    known = rest[0].value.plain is not None
    if launcher == "srun" and not shown.startswith("--"):
        return _short_srun(shown, rest[0], following)
    if equals:
        return LaunchOption(name, value if known else None, word), 1
    if launcher == "mpiexec" and name in MPI_TWO:
        joined = following is not None and "=" in following.text
        third = rest[2].value.plain if len(rest) > 2 else None
        first = following.value.plain if following else None
        both = first if joined else f"{first}={third}" if first and third is not None else None
        return LaunchOption(name, both, word), 2 if joined else 3
    if name in _valued(launcher):
        return LaunchOption(name, following.value.plain if following else None, word), 2
    letters = LAUNCHER_WORDS[launcher].letters
    if not shown.startswith("--") and shown[1:2] and shown[1:2] in letters and len(shown) > 2:
        return LaunchOption(shown[1], shown[2:] if known else None, word), 1
    return LaunchOption(name, None, word), 1


def _valued(launcher: str) -> frozenset[str]:
    if launcher == "srun":
        return (SRUN_VALUED | _PYXIS) - {"multi-prog"}
    if launcher == "mpiexec":
        return MPI_VALUED - _MPI_FLAGS
    return LAUNCHER_WORDS[launcher].valued


def _short_srun(shown: str, piece: Piece, following: Piece | None) -> tuple[LaunchOption, int]:
    """Read ``-n 8``, ``-n8`` and flags before it, ``-ln8``."""
    at = 1
    while at < len(shown) - 1 and shown[at] in SRUN_FLAGS:
        at += 1
    letter = shown[at : at + 1]
    if letter in SRUN_FLAGS or letter not in SRUN_SHORT:
        return LaunchOption(letter or shown[1:], None, piece.word), 1
    name, value = SRUN_SHORT[letter], shown[at + 1 :].removeprefix("=")
    if value or piece.value.plain is None:
        return LaunchOption(name, value if piece.value.plain is not None else None, piece.word), 1
    return LaunchOption(name, following.value.plain if following else None, piece.word), 2


def _without_torn(option: LaunchOption, rest: list[Piece]) -> list[Piece]:
    """Drop the words that continue a list of cores which blanks have torn."""
    last = option.value or ""
    while rest:
        text = rest[0].text
        if not ((last.endswith((",", ":")) or text.startswith(",")) and _LIST_PIECE.fullmatch(text)):
            break
        last, rest = text, rest[1:]
    return rest


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
