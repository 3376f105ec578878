"""A job's request to its scheduler, and the lines of a script with their reasons."""

import datetime as dt
import re

import msgspec

from hpclaunch.errors import BadInputError

PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:+=@/-]{0,254}")
"""A name that every scheduler reads in a directive as it stands: no quote, blank, ``#``, ``$`` or ``%``."""
_PLAIN_FIELDS = ("account", "queue", "qos", "memory", "select", "gpu_type")
_JOB_ID = r"[A-Za-z0-9ƒ][A-Za-z0-9_.\[\]-]*"  # an array of Flux has those of its jobs


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a script with its reason, which becomes a comment."""

    text: str
    reason: str
    source: str = ""

    @property
    def cited(self) -> str:
        """The reason, with its source."""
        return f"{self.reason} ({self.source})" if self.source else self.reason


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of a job; None: nothing is requested and the site's default holds."""

    name: str
    nodes: int
    tasks_per_node: int
    starter: str = "ranks"
    walltime_s: int
    account: str | None = None
    account_option: str = "-A"  # of PBS' qsub
    queue: str | None = None
    queue_reason: str = ""
    queue_kind: str = ""
    qos: str | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    gpu_request: str = "gpus-per-node"
    cpus_per_task: int | None = None
    memory: str | None = None
    exclusive: bool = False
    select: str | None = None
    launcher: str = ""
    begin: dt.datetime | None = None
    after: tuple[str, ...] = ()
    after_any: bool = False
    array: str | None = None
    exclude: tuple[str, ...] = ()
    output: str | None = None
    warn_s: int | None = None

    def __post_init__(self) -> None:
        """Refuse names that stand unquoted in directives and are no plain words."""
        for field in _PLAIN_FIELDS:
            text = getattr(self, field)
            if text and not PLAIN_WORD.fullmatch(text):
                raise BadInputError.case("header: no plain text", field=field, text=text[:60])

        for job in self.after:
            if not re.fullmatch(_JOB_ID, job):
                raise BadInputError.case("after: no job", job=job[:60])

    @property
    def dependency(self) -> str:
        """The dependency as Slurm and PBS name it: ``afterok:ID:ID``; empty without one."""
        return ":".join(("afterany" if self.after_any else "afterok", *self.after)) if self.after else ""


class HeaderRow(msgspec.Struct, frozen=True, array_like=True):
    """One directive of a scheduler; ``{NAME}`` stands for a value of the job."""

    text: str
    reason: str
    when: str = ""
