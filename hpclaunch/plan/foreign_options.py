"""Options of sbatch, qsub, flux batch, bsub and torchrun, as somebody types them for ``submit``, and ours.

``foreign_options.yaml`` is the one table: the refusals are made from it, and docs/reference/options.md. Which
option of a scheduler is about which notion stands in ``scheduler/NAME/words.yaml``. Pure.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import asdict

from hpclaunch.package_data import package_table
from hpclaunch.scheduler import directive_reader
from hpclaunch.scheduler.directive_reader import DirectiveOption, DirectiveReader, GnuOptions, Subject
from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS
from hpclaunch.walltime import format_walltime


class Notion(NamedTuple):
    """The subject of an option."""

    meaning: str
    ours: str = ""
    say: str = ""


_TABLE: dict[str, Any] = package_table("plan/foreign_options.yaml")
NOTIONS: dict[Subject, Notion] = {subject: Notion(**row) for subject, row in _TABLE["subjects"].items()}
_BY_NAME: dict[str, str] = _TABLE["by_name"]
"""Options whose answer is another one than that of their notion."""

_TORCHRUN_FLAGS = frozenset({"standalone", "no-python"})


def _read_torchrun(words: Sequence[str]) -> Iterable[DirectiveOption]:
    """Read its options, whose names have dashes or underscores (torch/distributed/run.py, 2.0 to 2.9)."""
    name, equals, value = words[0].partition("=")
    options = GnuOptions({"m": "module"}, _TORCHRUN_FLAGS, frozenset(_TORCHRUN.options))
    return options.read([f"{name.replace('_', '-')}{equals}{value}", *words[1:]])


_TORCHRUN = DirectiveReader(kind="torchrun", submit_command="torchrun", read=_read_torchrun)
"""PyTorch's launcher: it has no directives, only ``submit`` asks for its options."""
TOOLS = (*DIRECTIVE_READERS, _TORCHRUN)
"""The programs whose options people know."""


class _Found(NamedTuple):
    """An option as one tool reads it."""

    tool: DirectiveReader
    option: DirectiveOption
    subject: Subject

    @property
    def value(self) -> str:
        """Its value, empty where it has none."""
        return self.option.value or ""


def explain(words: Sequence[str], kind: str | None) -> tuple[str, ...]:
    """Return what to type instead of an option that ``submit`` has not; nothing where no tool has it.

    ``words``: the option as typed, and the word behind it. ``kind``: the scheduler of the site, None where no
    site is named. One sentence per tool that has the option with another answer; that of the site goes alone.
    """
    said: dict[str, str] = {}
    for found in _known(words, kind)[:_ENOUGH]:
        said.setdefault(_answer(found, kind), found.tool.submit_command)
    name = words[0].partition("=")[0]
    return tuple(f"{name} of {program}: {answer}" for answer, program in said.items())


_ENOUGH = 2
"""Tools that are named: a letter has another meaning in each."""


def _known(words: Sequence[str], kind: str | None) -> list[_Found]:
    """Return the tools that have the option: the site's alone, else those that have it by its whole name."""
    found = list(chain.from_iterable(_read(tool, words) for tool in TOOLS))
    own = [one for one in found if one.tool.kind == kind]
    typed = words[0].partition("=")[0].lstrip("-").replace("_", "-")
    whole = [] if len(typed) == 1 else [one for one in found if one.option.name == typed]
    return own or whole or sorted(found, key=lambda one: one.subject == "nothing")


def _read(tool: DirectiveReader, words: Sequence[str]) -> tuple[_Found, ...]:
    option = next(iter(tool.read(list(words))))
    subject = tool.options.get(option.name)
    return (_Found(tool, option, subject),) if subject else ()


def _answer(found: _Found, kind: str | None) -> str:
    notion = NOTIONS[found.subject]
    if said := _BY_NAME.get(found.option.name) or _TRANSLATE.get(found.subject, _sizes)(found):
        return said
    usual = f"{notion.ours} {{value}}" if notion.ours else "{directive}"
    value = shlex.quote(found.value or "VALUE")
    return (notion.say or usual).format(value=value, directive=_at_site(found, kind))


def _after(found: _Found) -> str:
    if found.value.startswith(("umask", "block")):  # of PBS' -W, which is about many things
        return "--wait" if found.value.startswith("block") else _directive(found.option.text)
    after = found.tool.read_after(found.value)
    return f"--after {','.join(after.ids)}{' --after-any' * after.any_end}" if after else ""


def _array(found: _Found) -> str:
    array = found.tool.read_array(found.value)
    return f"--array {shlex.quote(array)}" if array else ""


def _name(found: _Found) -> str:
    """Return the name, and the indices that LSF has behind it."""
    array = _array(found) if "[" in found.value else ""
    return f"--name {shlex.quote(found.tool.read_name(found.value))} {array}" if array else ""


def _begin(found: _Found) -> str:
    absolute = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", found.value)
    return f"--begin {found.value[:16]}" if absolute else ""


def _gpus_per_node(found: _Found) -> str:
    other = found.option.name == "gres" and "gpu" not in found.value
    return _directive(found.option.text) if other else _sizes(found)


def _sizes(found: _Found) -> str:
    """Return the sizes and the walltime that an option requests, as ours."""
    if not found.tool.sentinel:
        return f"{NOTIONS[found.subject].ours} {found.value}" if found.value.isdecimal() else ""
    asked = found.tool.requested(
        [directive_reader.Directive(**asdict(found.option), reader=found.tool, line=1, active=True)]
    )
    each = {
        "--nodes": asked.nodes,
        "--tasks": asked.tasks or asked.gpus,
        "--tasks-per-node": asked.tasks_per_node or asked.gpus_per_node,
        "--cpus-per-task": asked.cpus_per_task,
        "--gpus-per-task": asked.gpus_per_task,
    }
    said = [f"{name} {given.value}" for name, given in each.items() if given]
    if asked.walltime_s:
        said.append(f"--time {format_walltime(asked.walltime_s.value)}")
    return " ".join(said) + " --gpus-per-task 1" * _by_gpus(asked)


def _by_gpus(asked: directive_reader.RequestedResources) -> bool:
    """Whether the ranks follow from the GPUs, one for each."""
    return (asked.gpus or asked.gpus_per_node) is not None and not (asked.tasks or asked.tasks_per_node)


_TRANSLATE: dict[Subject, Callable[[_Found], str]] = {
    "after": _after,
    "array": _array,
    "begin": _begin,
    "export": lambda found: " ".join(
        f"--env {shlex.quote(part)}" for part in found.value.split(",") if "=" in part
    ),
    "gpus per node": _gpus_per_node,
    "name": _name,
}
"""Functions that translate the value of an option into our words; empty where it cannot be read."""


def _at_site(found: _Found, kind: str | None) -> str:
    """Return how the site's own scheduler gets such an option."""
    tool, option, subject = found
    target = next((one for one in TOOLS if one.kind == kind), tool)
    if target.kind == tool.kind:
        return _directive(option.text)
    if said := target.answers("at_site").get(subject):
        return said.format(value=shlex.quote(found.value or "VALUE"))
    names = names_of(target, subject)
    has = f"has {' and '.join(names)} for it, which --directive hands to it"
    return _mail(found, target) or f"{target.submit_command} {has if names else 'has no such option'}"


def _mail(found: _Found, target: DirectiveReader) -> str:
    """Return the directives for mail; empty for other options, and where the site's are not known."""
    if found.subject not in ("mail events", "mail user"):
        return ""
    read = found.tool.read_mail(found.option.name, found.value)
    events = {event for of_word in read.values() for event in of_word}
    by_user = found.subject == "mail user"
    written = target.write_mail(set(), found.option.value) if by_user else target.write_mail(events, None)
    return " ".join(map(_directive, written))


def _directive(text: str) -> str:
    return f"--directive {shlex.quote(text)}"


def names_of(tool: DirectiveReader, subject: Subject) -> list[str]:
    """Return the options of a tool about a notion, as they are typed."""
    return [tool.shown(name) for name, about in tool.options.items() if about == subject]
