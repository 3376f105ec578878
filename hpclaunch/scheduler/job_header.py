"""What a job requests of its scheduler, and the lines of a script with their reasons."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from collections.abc import Iterable

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a script with its reason, which becomes a comment."""

    text: str
    reason: str


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What a job requests; None: nothing is requested and the site's default holds."""

    name: str
    nodes: int
    tasks_per_node: int
    walltime_s: int
    account: str | None = None
    queue: str | None = None
    queue_reason: str = ""
    qos: str | None = None
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    memory: str | None = None
    exclusive: bool = False
    select: str | None = None
    """What follows the node count in PBS' ``-l select=``, such as ``system=polaris``."""
    launcher: str = ""
    """Name of the launcher, for schedulers whose requests depend on it."""
    after: tuple[str, ...] = ()
    """The scheduler's ids of the jobs that must end first."""
    after_any: bool = False
    array: str | None = None
    exclude: tuple[str, ...] = ()
    """Nodes to leave out."""
    output: str | None = None
    """File for stdout and stderr; None: the scheduler's default name where the job was submitted."""
    warn_s: int | None = None
    """Seconds before the walltime limit at which the job is signalled to write a checkpoint; None: it has
    no restarts."""

    @property
    def dependency(self) -> str:
        """The dependency as Slurm and PBS name it: ``afterok:ID:ID``."""
        return ":".join(("afterany" if self.after_any else "afterok", *self.after))


def lines(pairs: Iterable[tuple[str, str]]) -> tuple[Line, ...]:
    """Return (text, reason) pairs as lines."""
    return tuple(Line(text=text, reason=reason) for text, reason in pairs)
