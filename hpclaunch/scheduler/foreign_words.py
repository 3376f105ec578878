"""The meaning of options and variables of other people's batch scripts: types, and ``slurm/words.yaml``."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from hpclaunch.package_data import package_table

Subject = Literal[
    "account", "after", "array", "begin", "binding", "carried", "constraint", "container", "cpus",
    "exclusive", "export", "fabric", "folder", "gpus", "gpus per node", "gpus per task", "interactive",
    "left out", "mail events", "mail user", "memory", "module", "name", "node list", "nodes", "nothing",
    "output", "qos", "queue", "rendezvous", "requeue", "reservation", "select", "signal", "site", "tasks",
    "tasks per node", "walltime", "wrap",
]  # fmt: skip
"""The subject of an option. carried: only this scheduler has it, on any machine; site: it names something of
one machine; nothing: the target's script does without it."""

Fact = Literal[
    "array index", "first node", "folder", "gpus per node", "job", "local rank", "node file", "node list",
    "node rank", "nodes", "rank", "tasks", "tasks per node", "cpus per task",
]  # fmt: skip
"""The content of a variable of the scheduler."""

MailEvent = Literal["begin", "end", "fail"]


class After(NamedTuple):
    """The jobs that a job waits for."""

    ids: tuple[str, ...]
    any_end: bool


class ForeignWords(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one scheduler, or of torchrun."""

    kind: str = ""
    """Its name, as in ``slurm/words.yaml``; empty: it has no words."""
    dashes: str = "--"
    """Before an option as it is typed."""
    read_mail: Callable[[str, str], frozenset[MailEvent]] = lambda name, value: frozenset()
    """Reads a ``mail events`` option, its name and value."""
    mail_by_user: frozenset[MailEvent] = frozenset()
    """The events of which an address alone requests mail."""
    write_mail: Callable[[frozenset[MailEvent], str | None], tuple[str, ...]] | None = None
    """Writes the options that send mail, without the sentinel; None: not known."""
    read_array: Callable[[str], str | None] = lambda text: text or None
    """Reads indices as ``--array`` takes them; None: they cannot be read."""
    write_array: Callable[[str], str] = lambda text: text
    """Writes them as this scheduler's header has them, for reports."""
    read_after: Callable[[str], After | None] = lambda text: None
    """Reads the jobs that must end first; None: another kind of dependency."""
    read_name: Callable[[str], str] = lambda text: text
    """Reads a job's name, which may hold the indices of an array."""

    @property
    def options(self) -> Mapping[str, Subject]:
        """Its options, each with its subject."""
        return word_table(self.kind, "options")

    @property
    def variables(self) -> Mapping[str, Fact]:
        """The variables of its jobs, each with the fact that it holds."""
        return word_table(self.kind, "variables")

    @property
    def owned(self) -> Mapping[str, str]:
        """Options that the plan sets (separated by blanks) -> the option of ``submit`` instead."""
        return _table(self.kind, "owned")

    @property
    def at_site(self) -> Mapping[str, str]:
        """Subject -> the answer at a site with this scheduler where no option is about it."""
        return _table(self.kind, "at_site")

    def shown(self, name: str) -> str:
        """Return an option as it is typed."""
        return f"-l {name[2:]}=" if name.startswith("l:") else f"{self.dashes}{name}"


def _table(kind: str, part: str) -> dict[str, str]:
    table: dict[str, str] = package_table(f"scheduler/{kind}/words.yaml").get(part, {}) if kind else {}
    return table


@cache
def word_table(kind: str, part: str) -> dict[str, Any]:
    """Return a part of ``KIND/words.yaml``: name of an option or a variable -> what it is about."""
    return {name: about for about, names in _table(kind, part).items() for name in names.split()}


def read_after_ok(text: str) -> After | None:
    """Read ``afterok:1:2``; several kinds, and singleton, cannot be said in one word of a job file."""
    match = re.fullmatch(r"(after(?:ok|any)):([\w:.\[\]-]+)", text.strip())
    if match is None:
        return None
    return After(tuple(filter(None, match[2].split(":"))), match[1] == "afterany")
