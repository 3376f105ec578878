"""The command of each rank: the program of the launch line, without launchers, in the target's container."""

import itertools
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from hpclaunch.framework_table import LAUNCHERS
from hpclaunch.lint.batch_script import placeholder_in
from hpclaunch.plan.request_texts import looks_secret
from hpclaunch.plan.script_commands import WRAPPERS, behind_wrapper, program_at, unwrap
from hpclaunch.plan.worker_launchers import PYTHON_FLAGS, Started, find_launcher
from hpclaunch.port.foreign_values import WORDS, Value, shell_word, texts_of
from hpclaunch.port.line_report import task
from hpclaunch.scheduler.directive_reader import whole_number
from hpclaunch.site.schema import Environment, JobContainer
from hpclaunch.software.containers import RUNTIMES, Runtime
from hpclaunch.software.contradictions import unusable

FILL_IN = "FILL_IN"
"""Begins a text that the user must replace."""


@dataclass(frozen=True)
class PortedCommand:
    """The command of each rank, and the words that were removed from it."""

    words: tuple[Value, ...] = ()
    image: str | None = None
    binds: tuple[str, ...] = ()
    inner: str = ""
    kept: str = ""
    framework: str | None = None
    workers: int | None = None
    workers_of_job: bool = False
    nodes: int | None = None
    settled: tuple[str, ...] = ()
    open_ranks: bool = False
    inside: Any = None
    inside_at: Any = None
    said: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables that the words need and that are not known here."""
        return tuple(dict.fromkeys(name for word in self.words for name in word.missing))

    @property
    def program(self) -> str:
        """The program behind its wrappers, with variables by their names."""
        words = self.words[program_at(tuple(texts_of(self.words))) :]
        return next((word.plain or word.named or word.shell or "" for word in words), "")

    def but(self, *, said: str = "", to_do: str = "", **changed: Any) -> "PortedCommand":
        """Return the command with other fields, and with one more line in ``said`` or ``to_do``."""
        if said:
            changed["said"] = (*self.said, said)
        if to_do:
            changed["to_do"] = (*self.to_do, to_do)
        return replace(self, **changed)


def port_command(words: Sequence[Value], target: str) -> PortedCommand:
    """Return the command of the program's words; ``target``: the site."""
    found = PortedCommand(words=tuple(words))
    found = _without_wrappers(_without_container(_without_wrappers(found), target))
    texts = texts_of(found.words)
    binds = len(texts) > 1 and re.fullmatch(WORDS["binder"], texts[0])  # by its name
    if binds and re.match(r"[./$]|python|bash|sh$|\w+$", texts[1]):
        found = found.but(words=found.words[1:], to_do=task("binder", text=texts[0]))
    found = _without_secrets(_without_inner(found))
    for word in found.words:
        if word.plain and (re.search(WORDS["template"], word.plain) or placeholder_in(word.plain)):
            found = found.but(to_do=f"command: {word.plain} is a placeholder of the script: fill it in")
    given = tuple(itertools.dropwhile(lambda word: word.plain == "", found.words))
    if given:
        return _with_other_launcher_named(found.but(words=given), target)
    program = Value(f"{FILL_IN}_PROGRAM", f"{FILL_IN}_PROGRAM")
    to_do = f"command: {FILL_IN}_PROGRAM: the script names no program that can be read"
    return found.but(words=(program,), to_do=to_do)


def _without_wrappers(found: PortedCommand) -> PortedCommand:
    words = found.words
    while (
        words
        and PurePosixPath(words[0].plain or "").name in WORDS["wrappers"]
        and (behind := behind_wrapper(tuple(texts_of(words)), 0))
    ):
        words = words[behind:]
    return found.but(words=words)


def _with_other_launcher_named(found: PortedCommand, target: str) -> PortedCommand:
    """Name a program that brings its environment, that is none, or that may start processes itself."""
    texts = texts_of(found.words)
    if environment := unwrap(tuple(texts)).python:
        return found.but(to_do=task("environment of wrapper", text=environment, here=target))
    if re.match(r"-|\d+$", texts[0]):
        return found.but(to_do=task("no program", text=texts[0]))
    if PurePosixPath(texts[0]).name in WRAPPERS or re.fullmatch(WORDS["interpreter"], texts[0]):
        return found
    by_wrapper = re.fullmatch(WORDS["wrapper and program"], " ".join(texts[:2])) is not None
    starts = (at for at, text in enumerate(texts) if re.fullmatch(WORDS["interpreter"], text))
    if at := next(starts, int(by_wrapper)):
        return _with_start_named(found, at)
    name = by_name(found.words[0])
    unknown = re.fullmatch(r"\$\{\w+\}", name)
    return found.but(to_do=task("unknown program", text=name)) if unknown else found


def _with_start_named(found: PortedCommand, at: int) -> PortedCommand:
    """Name a launcher or a wrapper that is not read, which starts the interpreter at this position."""
    counts = any(re.match(WORDS["counts of processes"], text) for text in texts_of(found.words[1:at]))
    case = "other launcher, ranks" if counts else "other wrapper"
    shown = [word.plain or by_name(word) for word in found.words[: at + 2]]
    to_do = task(case, text=" ".join(shown[:at]), program=" ".join(shown[at:]))
    return found.but(open_ranks=counts, to_do=to_do)


def shell_text_at(words: Sequence[Value]) -> int | None:
    """Return the position of the text of ``bash -c TEXT``; None: the words are something else."""
    texts = texts_of(words)
    if not texts or PurePosixPath(texts[0]).name not in ("bash", "sh"):
        return None
    at = next((at for at, text in enumerate(texts[1:], 1) if not text.startswith("-")), 0)
    return at if at and re.fullmatch(r"-\w*c", texts[at - 1]) and at == len(texts) - 1 else None


def with_word(found: PortedCommand, number: int, new: Value, to_do: str = "") -> PortedCommand:
    """Return the command with another value in place of a word."""
    new = replace(new, origin=found.words[number].origin)
    return found.but(words=(*found.words[:number], new, *found.words[number + 1 :]), to_do=to_do)


def _without_secrets(found: PortedCommand) -> PortedCommand:
    """Replace values of options that look like secrets: scripts, job files and records would hold them."""
    for number, word in enumerate(found.words):
        option, equals, value = (word.plain or "").partition("=")
        name = option.lstrip("-").replace("-", "_")
        if not option.startswith("-") or not re.fullmatch(r"[A-Za-z_]\w*", name) or not looks_secret(name):
            continue
        variable = name.upper()
        following = found.words[number + 1].plain if number + 1 < len(found.words) else None
        to_do = f"command: the value of {option} is a secret: export {variable} in the shell that submits"
        if equals and value:
            found = with_word(found, number, Value(None, f"{option}=${variable}"), to_do)
        elif not equals and following and not following.startswith("-"):
            found = with_word(found, number + 1, Value(None, f"${variable}"), to_do)
    return found


def inner_launcher(words: tuple[str, ...]) -> tuple[Started | None, tuple[str, ...]]:
    """Return a framework's launcher that words begin with, and the flags of its Python (``python -u -m``)."""
    flags = tuple(itertools.takewhile(lambda text: re.fullmatch(PYTHON_FLAGS, text), words[1:]))
    rest, python = words[1 + len(flags) :], re.fullmatch(r"(.*/)?python[\d.]*", "".join(words[:1]))
    by_path = python and rest and PurePosixPath(rest[0]).name in LAUNCHERS  # python $(which torchrun)
    found = find_launcher(rest if by_path else words)
    return found if found and found.launcher.framework else None, flags


def workers_of(started: Started) -> tuple[int | None, bool]:
    """Return the workers that a launcher names, and whether they are those of the whole job."""
    row, options = started.launcher, started.options
    names = (*row.workers, row.processes, "-np")
    given = (options[name] for name in names if name in options)
    number = next(given, "1" if row.name == "torchrun" else None)
    return whole_number(number), bool(row.processes)


def _workers_unread(started: Started, words: Sequence[Value]) -> str:
    """Return the option of a launcher whose number of workers cannot be read; empty: there is none.

    ``words``: the launcher and its options, and the word after them: an unquoted ``$ARGS`` may hold more.
    """
    row, options = started.launcher, started.options
    given = {*row.workers, row.processes, "-np"} & options.keys()
    if not given and any(word.plain is None and word.splits for word in words):
        return "options"
    unread = {name for name in given if not re.fullmatch(WORDS["numbers of workers"], options[name])}
    return next(iter(unread or options.keys() & set(WORDS["some GPUs"])), "")


def _without_inner(found: PortedCommand) -> PortedCommand:
    """Drop torchrun and its like: hpclaunch starts a rank for each of its workers."""
    started, flags = inner_launcher(tuple(texts_of(found.words)))
    if started is None:
        return found
    row = started.launcher
    before = started.program[: len(started.program) - started.tail]
    own = tuple(Value(text, text) for text in (*before[:1], *flags, *before[1:]))
    at = program_at(tuple(texts_of(found.words)))
    own = (*found.words[:at], *_by_path(found.words[at], own))
    workers, workers_of_job = workers_of(started)
    inner = row.name.partition(" ")[0]
    if unread := _workers_unread(started, found.words[: len(found.words) - started.tail + 1]):
        found = found.but(open_ranks=True, to_do=task("workers unread", option=unread, inner=inner))
    if _gives_local_rank(started, texts_of(found.words)):
        found = found.but(to_do=task("local rank given", inner=inner))
    known = {row.nodes, *row.workers, row.processes, row.node_rank, *row.meets, *WORDS["about workers"]}
    if more := {name: value for name, value in started.options.items() if name not in known}:
        given = " ".join(f"{name} {value}".strip() for name, value in more.items())
        found = found.but(to_do=task("options of inner", options=", ".join(more), inner=inner, given=given))
    return found.but(
        words=(*own, *found.words[len(found.words) - started.tail :]),
        workers=None if unread else workers,
        workers_of_job=workers_of_job,
        nodes=whole_number(started.options.get(row.nodes, {"torchrun": "1"}.get(inner))),
        inner=inner,
        framework=row.framework,
        said=f"without {inner}: hpclaunch starts one rank for each of its workers",
    )


def _by_path(launcher: Value, own: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return a command with the Python next to a launcher started by its path: that of its environment."""
    path = launcher.plain or launcher.named or ""
    of_system = "/bin/" not in path or re.fullmatch(WORDS["of the system"], path)
    if of_system or own[:1] != (Value("python", "python"),):
        return own
    texts = (launcher.plain, launcher.shell, launcher.named)
    plain, shell, named = (text and re.sub(r"/(?!python)[^/]+$", "/python", text) for text in texts)
    return replace(launcher, plain=plain, shell=shell, named=named), *own[1:]


def _gives_local_rank(started: Started, texts: list[str]) -> bool:
    """Tell whether a launcher gives each worker the argument --local_rank; torchrun gives none."""
    if started.launcher.name == "deepspeed":
        return "--no_local_rank" not in started.options
    return "torch.distributed.launch" in texts and "--use_env" not in started.options


def _without_container(found: PortedCommand, target: str) -> PortedCommand:
    """Turn ``singularity exec -B ... IMAGE PROGRAM`` and its like into an image, binds and the program."""
    texts = texts_of(found.words)
    if texts[:1] == ["singularity_wrapper"] and texts[1:2] in (["exec"], ["run"]):
        to_do = "container: singularity_wrapper takes the image of a module there: name it in container"
        return found.but(words=found.words[2:], to_do=to_do)
    program = PurePosixPath(texts[0]).name if texts else ""
    runtime = RUNTIMES.get(WORDS["runtimes read as"].get(program, program))
    if runtime is None or not runtime.flags:
        return found
    if runtime.verbs and (len(texts) < 2 or texts[1] not in runtime.verbs):
        return found
    found, at, image, left = _container_options(found, runtime, target)
    if not runtime.image_by:
        if at >= len(texts):
            return found
        image, at = found.words[at], at + 1
    if image is not None:  # Shifter's may be in the job's header only
        text = image.plain or re.sub(r".*\$\(.*", "", image.shell or "")
        name = text or None if runtime.start == "exec" else image_name(text)
        unread = name is None or unusable(Environment(container=JobContainer(image=name)))
        found = found.but(image=f"{FILL_IN}_IMAGE.sif" if unread else name)
    found = found.but(
        words=found.words[at:], said=f"in a container with the binds and the GPU option of {target}"
    )
    if left:
        shown = f"left out of the container's options: {' '.join(map(shlex.quote, left))}"
        found = found.but(said=shown, to_do=f"container: {shown}: does the program need them?")
    if runtime.start == "exec" and texts[1] == "run":
        if re.match(WORDS["program of an image"], f"{' '.join(texts[at:])} "):
            return found.but(to_do=task("image's own program", text=texts[0]))
        said = "/singularity is the image's own program, which run starts"
        found = found.but(words=(Value("/singularity", "/singularity"), *found.words), said=said)
    return found


def _container_options(
    found: PortedCommand, runtime: Runtime, target: str
) -> tuple[PortedCommand, int, Value | None, list[str]]:
    """Return the command with the binds, where a container's options end, their image, what is left out."""
    texts = texts_of(found.words)
    at = 2 if runtime.verbs else 1
    left: list[str] = []
    image: Value | None = None
    while at < len(texts) and texts[at].startswith("-"):
        name, equals, value = texts[at].partition("=")
        step = 1 if equals or texts[at] in runtime.flags else 2
        following, shown = found.words[at + 1 : at + 2], " ".join(texts[at : at + step])
        if name in runtime.binds_by:
            binds = value if equals else "".join((one.plain or one.shell or "") for one in following)
            found = with_binds(found, binds, target)
            if not binds:
                found = found.but(to_do=f"container_bind: what {name} binds is known at run time only")
        elif name in runtime.image_by:
            known = value if found.words[at].plain else None
            image = Value(known, None) if equals else next(iter(following), None)
        elif not (texts[at] in runtime.gpu.values() or re.fullmatch(WORDS["modules of Shifter"], shown)):
            left += texts[at : at + step]
        at += step
    return found, at, image, left


def image_name(text: str) -> str | None:
    """Return the image that pyxis and Shifter name, ``nvcr.io#nvidia/pytorch:25.06``, as one of ours."""
    if not re.fullmatch(r"[\w./$~][\w./:@#$~+-]*", text, re.ASCII):
        return None
    if text.startswith(("/", ".", "$", "~")) or text.endswith((".sqsh", ".sif", ".toml")):
        return text
    return f"docker://{text.removeprefix('docker:').removeprefix('//').replace('#', '/')}"


def with_binds(found: PortedCommand, text: str, target: str) -> PortedCommand:
    """Return the command with the binds of a text, ``SRC:DST,...``, but those that the target has itself."""
    for bind in filter(None, text.split(",")):
        source = bind.partition(":")[0]
        if re.fullmatch(WORDS["of the system"], source) or not source:
            found = found.but(said=f"bind {bind}: {target} has its own for MPI, fabric and GPUs")
        elif bind in ("$PWD", "$PWD:$PWD", "."):
            found = found.but(said=f"bind {bind}: hpclaunch binds the working folder")
        elif unusable(Environment(container=JobContainer(image="x", binds=(bind,)))):
            found = found.but(to_do="container_bind: a bind of the script cannot be read")
        elif bind not in found.binds:
            found = found.but(binds=(*found.binds, bind))
    return found


def command_words(found: PortedCommand, exports: Sequence[str], stdin: str | None) -> tuple[str, ...]:
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
    name = next(iter(word.missing), "")
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"{FILL_IN}_WORD"
