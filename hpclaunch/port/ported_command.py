"""The command of each rank: the program of the launch line, without launchers, in the target's container."""

import itertools
import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from hpclaunch.lint.batch_script import placeholder_in
from hpclaunch.plan.request_texts import looks_secret
from hpclaunch.plan.worker_launchers import Started, framework_launcher
from hpclaunch.plan.wrappers import program_at
from hpclaunch.port.foreign_values import Value, shell_word
from hpclaunch.port.launcher_words import Piece
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.site.job_environment import Environment, JobContainer
from hpclaunch.software.container_runtimes import RUNTIMES, Runtime
from hpclaunch.software.contradictions import unusable

FILL_IN = "FILL_IN"
"""Begins a text that the user must replace."""
_OF_THE_SYSTEM = re.compile(
    r"/(opt|var|usr|lib|lib64|etc|dev|sys|proc|tmp|run|bin|sbin|cvmfs)(/.*)?|\$(EB|CRAY|MPI|LD_)\w*.*"
)
"""Paths of a machine's own software, which the target's binds replace."""
_BINDER = re.compile(
    r"(.*/)?(set_\w*affinity\w*|gpu_?affinity\w*|gpu_tile_compact|select_gpu\w*|\w*(gpu|cpu)[-_]?bind\w*)(\.sh)?"
)
"""Wrappers such as ALCF's set_affinity_gpu_polaris.sh and gpu_tile_compact.sh, and LUMI's select_gpu."""
_TEMPLATE = re.compile(r"XXX\w+XXX|__[A-Z]\w*__|<[\w .,-]+>")
"""Placeholders that programs replace, such as RELION's."""
_WRAPPERS = ("time", "exec", "nohup", "command", "stdbuf", "nice")


@dataclass
class PortedCommand:
    """The command of each rank, and the words that were removed from it."""

    words: list[Value] = field(default_factory=list)
    image: str | None = None
    binds: list[str] = field(default_factory=list)
    inner: str = ""
    """The framework's launcher that was taken off."""
    kept: str = ""
    """The framework's launcher that stays in the text of a shell."""
    framework: str | None = None
    workers: int | None = None
    workers_of_job: bool = False
    inside: Any = None
    """The port (`port_state.Port`) of the script that the launch starts and the batch script holds."""
    inside_at: Any = None
    """Where it stands (`written_script.Written`)."""
    sources: dict[int, list[Value]] = field(default_factory=dict)
    """Offset of a word of the script -> its values."""
    said: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables that the words need and that are not known here."""
        return tuple(dict.fromkeys(name for word in self.words for name in word.missing))


def port_command(pieces: list[Piece], launcher: str, target: str) -> PortedCommand:
    """Return the command of the program's words; ``launcher``: what starts it, ``target``: the site."""
    found = PortedCommand(words=[piece.value for piece in pieces])
    for piece in pieces:
        found.sources.setdefault(piece.word.start, []).append(piece.value)
    _take_off_wrappers(found)
    _take_off_container(found, target)
    _take_off_wrappers(found)
    _take_off_binder(found)
    _take_off_inner(found, launcher)
    _hide_secrets(found)
    _placeholders(found)
    while found.words and found.words[0].plain == "":
        found.words = found.words[1:]
    if not found.words:
        found.words = [Value(f"{FILL_IN}_PROGRAM", f"{FILL_IN}_PROGRAM")]
        found.to_do.append(f"command: {FILL_IN}_PROGRAM: the script names no program that can be read")
    return found


def _take_off_wrappers(found: PortedCommand) -> None:
    while found.words and found.words[0].plain in _WRAPPERS:
        found.words = found.words[program_at(tuple(_texts(found.words))) :]


def _take_off_binder(found: PortedCommand) -> None:
    """Take the program out of a wrapper that gives each rank its GPU or cores, known by its name."""
    texts = _texts(found.words)
    starts = (
        len(texts) > 1 and _BINDER.fullmatch(texts[0]) and re.match(r"[./$]|python|bash|sh$|\w+$", texts[1])
    )
    if starts:
        found.words = found.words[1:]
        found.to_do.append(
            f"command: {texts[0]} is left out: by its name it gives each rank GPUs or cores of another"
            " machine, and hpclaunch's script does that here; put it back if it does more"
        )


def shell_text_at(words: list[Value]) -> int | None:
    """Return the position of the text of ``bash -c TEXT``; None: the words are something else."""
    texts = _texts(words)
    if not texts or PurePosixPath(texts[0]).name not in ("bash", "sh"):
        return None
    at = next((at for at, text in enumerate(texts[1:], 1) if not text.startswith("-")), 0)
    return at if at and re.fullmatch(r"-\w*c", texts[at - 1]) and at == len(texts) - 1 else None


def _put(found: PortedCommand, number: int, new: Value) -> None:
    """Put another value in place of a word."""
    old = found.words[number]
    for items in found.sources.values():
        items[:] = [new if one is old else one for one in items]
    found.words[number] = new


def _hide_secrets(found: PortedCommand) -> None:
    """Replace values of options that look like secrets: scripts, job files and records would hold them."""
    for number, word in enumerate(found.words):
        option, equals, value = (word.plain or "").partition("=")
        name = option.lstrip("-").replace("-", "_")
        if not option.startswith("-") or not re.fullmatch(r"[A-Za-z_]\w*", name) or not looks_secret(name):
            continue
        variable = name.upper()
        following = found.words[number + 1].plain if number + 1 < len(found.words) else None
        if equals and value:
            _put(found, number, Value(None, f"{option}=${variable}"))
        elif not equals and following and not following.startswith("-"):
            _put(found, number + 1, Value(None, f"${variable}"))
        else:
            continue
        found.to_do.append(
            f"command: the value of {option} is a secret: export {variable} in the shell that submits"
        )


def _placeholders(found: PortedCommand) -> None:
    for word in found.words:
        if word.plain and (_TEMPLATE.search(word.plain) or placeholder_in(word.plain)):
            found.to_do.append(f"command: {word.plain} is a placeholder of the script: fill it in")


def _texts(words: list[Value]) -> list[str]:
    return [word.plain or word.seen for word in words]


def inner_launcher(words: tuple[str, ...]) -> tuple[Started | None, tuple[str, ...]]:
    """Return a framework's launcher that words begin with, and the flags of its Python (``python -u -m``)."""
    flags = tuple(itertools.takewhile(lambda text: re.fullmatch("-[uBEOsI]+", text), words[1:]))
    python = words and re.fullmatch(r"(.*/)?python[\d.]*", words[0])
    if not python:
        return framework_launcher(words), ()
    return framework_launcher((words[0], *words[1 + len(flags) :])), flags


def workers_of(started: Started) -> tuple[int | None, bool]:
    """Return the workers that a launcher names, and whether they are those of the whole job."""
    row, options = started.launcher, started.options
    number = next((options[name] for name in (*row.workers, row.processes, "-np") if name in options), None)
    return whole_number(number), bool(row.processes)


def _take_off_inner(found: PortedCommand, launcher: str) -> None:
    """Drop torchrun and its like: hpclaunch starts a rank for each of its workers."""
    own = (launcher,) if launcher in ("torchrun", "horovodrun") else ()
    started, flags = inner_launcher((*own, *_texts(found.words)))
    if started is None:
        return
    row = started.launcher
    before = started.program[: len(started.program) - started.tail]
    found.words = [
        *(Value(text, text) for text in (*before[:1], *flags, *before[1:])),
        *found.words[len(found.words) - started.tail :],
    ]
    found.workers, found.workers_of_job = workers_of(started)
    found.inner, found.framework = row.name.partition(" ")[0], row.framework
    found.said.append(f"without {found.inner}: hpclaunch starts one rank for each of its workers")


def _take_off_container(found: PortedCommand, target: str) -> None:
    """Turn ``singularity exec -B ... IMAGE PROGRAM`` and its like into an image, binds and the program."""
    texts = _texts(found.words)
    if texts[:1] == ["singularity_wrapper"] and texts[1:2] in (["exec"], ["run"]):
        found.words = found.words[2:]
        found.to_do.append(
            "container: singularity_wrapper takes the image of a module there: name it in container"
        )
        return
    runtime = RUNTIMES.get(PurePosixPath(texts[0]).name) if texts else None
    if runtime is None or not runtime.flags:
        return
    if runtime.verbs and (len(texts) < 2 or texts[1] not in runtime.verbs):
        return
    at, image, left = _container_options(found, runtime, target)
    if not runtime.image_by:
        if at >= len(texts):
            return
        image, at = found.words[at], at + 1
    if image is not None:  # Shifter's may be in the job's header only
        _set_image(found, image.plain if runtime.start == "exec" else image_name(image.plain or ""), target)
    found.said.append(f"in a container with the binds and the GPU option of {target}")
    if left:
        found.said.append(f"left out of the container's options: {' '.join(map(shlex.quote, left))}")
    found.words = found.words[at:]
    if not found.words and runtime.start == "exec" and texts[1] == "run":
        found.words = [Value("/singularity", "/singularity")]
        found.said.append("/singularity is the image's own program, which run starts")


def _container_options(
    found: PortedCommand, runtime: Runtime, target: str
) -> tuple[int, Value | None, list[str]]:
    """Take the binds; return where the options of a container end, their image, and what is left out."""
    texts = _texts(found.words)
    at = 2 if runtime.verbs else 1
    left: list[str] = []
    image: Value | None = None
    while at < len(texts) and texts[at].startswith("-"):
        name, equals, value = texts[at].partition("=")
        step = 1 if equals or texts[at] in runtime.flags else 2
        following = found.words[at + 1 : at + 2]
        if name in runtime.binds_by:
            take_binds(
                found,
                value if equals else "".join((one.plain or one.shell or "") for one in following),
                target,
            )
        elif name in runtime.image_by:
            known = value if found.words[at].plain else None
            image = Value(known, None) if equals else next(iter(following), None)
        elif texts[at] not in runtime.gpu.values():
            left += texts[at : at + step]
        at += step
    return at, image, left


def _set_image(found: PortedCommand, image: str | None, target: str) -> None:
    if image is None or unusable(Environment(container=JobContainer(image=image))):
        found.image = f"{FILL_IN}_IMAGE.sif"
        found.to_do.append(f"container: {found.image}: the script's image is known at run time only")
    else:
        found.image = image
        found.to_do.append(f"container: {image} has to be on {target}, built for its processors and GPUs")


def image_name(text: str) -> str | None:
    """Return the image that pyxis and Shifter name, ``nvcr.io#nvidia/pytorch:25.06``, as one of ours."""
    if not re.fullmatch(r"[\w./$~][\w./:@#$~+-]*", text, re.ASCII):
        return None
    if text.startswith(("/", ".", "$", "~")) or text.endswith((".sqsh", ".sif", ".toml")):
        return text
    return f"docker://{text.removeprefix('docker:').removeprefix('//').replace('#', '/')}"


def take_binds(found: PortedCommand, text: str, target: str) -> None:
    """Add the binds of a text, ``SRC:DST,...``, without those that the target has itself."""
    for bind in filter(None, text.split(",")):
        source = bind.partition(":")[0]
        if _OF_THE_SYSTEM.fullmatch(source) or not source:
            found.said.append(f"bind {bind}: {target} has its own for MPI, fabric and GPUs")
        elif bind in ("$PWD", "$PWD:$PWD", "."):
            found.said.append(f"bind {bind}: hpclaunch binds the working folder")
        elif unusable(Environment(container=JobContainer(image="x", binds=(bind,)))):
            found.to_do.append("container_bind: a bind of the script cannot be read")
        elif bind not in found.binds:
            found.binds.append(bind)
            found.to_do.append(f"container_bind: {bind} has to be a path on {target}")


def command_words(found: PortedCommand, exports: list[str], stdin: str | None) -> tuple[str, ...]:
    """Return the words of the job file's ``command``.

    Plain words stay as they are. What is known at run time only is read by a shell in each rank; a variable
    that is not known here is one that the user fills in (``env``).
    """
    plain = [word.plain for word in found.words]
    if plain[1:3] == ["-m", "hpclaunch.train"]:  # the bundled training, which hpclaunch submits as mnist
        plain = ["mnist", *plain[3:]]
    if not exports and stdin is None and all(text is not None for text in plain):
        return tuple(text for text in plain if text is not None)
    words = [shell_word(word) or by_name(word) for word in found.words]
    lines = [*exports, f"exec {' '.join(words)}" + (f" < {stdin}" if stdin else "")]
    return ("bash", "-c", "\n".join(lines))


def by_name(word: Value) -> str:
    """Return a word that this script cannot say as the variable of ``env`` that the user fills in."""
    text = word.named or f"${{{placeholder(word)}}}"
    return text if word.splits else f'"{text}"'


def placeholder(word: Value) -> str:
    """Return the name of the variable that stands for a word that is not known."""
    return (
        word.missing[0]
        if word.missing and re.fullmatch(r"[A-Za-z_]\w*", word.missing[0])
        else f"{FILL_IN}_WORD"
    )
