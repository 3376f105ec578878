"""What a rule is, what it finds, and what it may ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from hpclaunch.lint.batch_script import Script
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import Queue, SiteProfile
from hpclaunch.topology.node_topology import NodeTopology

Severity = Literal["error", "warning", "note"]
"""error: the job fails, hangs, or does something else than it says; warning: likely so, or not documented by
the site; note: works, and is worth a look."""


class Edit(msgspec.Struct, frozen=True):
    """A change of the script's text that alters nothing but the mistake."""

    start: int
    """Offset in characters."""
    end: int
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    line: int | None
    """From 1; None: it is about something that is missing."""
    rule: str
    severity: Severity
    message: str
    """What was found, in a sentence."""
    remedy: str
    """What would be right."""
    edits: tuple[Edit, ...] = ()
    """What ``--fix`` would change; empty: only a person can say."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as the docs show it."""

    id: str
    """Stable, in kebab case."""
    severity: Severity
    """The usual one; a finding may be milder."""
    what: str
    """What it finds, in a sentence."""
    why: str
    """What happens to the job, and where that is known from."""
    remedy: str
    bad: str
    """Lines that trigger it."""
    good: str
    """The same lines, right."""
    fixable: bool = False


class Violation(msgspec.Struct, frozen=True):
    """What a check yields; the rule fills in the rest."""

    line: int | None
    message: str
    remedy: str | None = None
    severity: Severity | None = None
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Files:
    """Where files that a script names are looked for."""

    folders: tuple[Path, ...] = ()
    """A relative name is looked for in these, in order: where it is submitted, where the script is."""

    def find(self, name: str) -> Path | None:
        """Return the first that exists."""
        for folder in self.folders:
            try:
                path = folder / name
                if path.exists():
                    return path
            except (OSError, ValueError):  # a name too long, or with a zero byte in it
                continue
        return None

    def text(self, name: str) -> str | None:
        """Return a file's text, None where there is none that can be read."""
        path = self.find(name)
        try:
            return path.read_bytes().decode("utf-8", errors="replace") if path and path.is_file() else None
        except OSError:
            return None


NO_FILES = Files()


@dataclass(eq=False)
class Context:
    """Everything a check may ask: the script, the site where known, and the files around it."""

    script: Script
    profile: SiteProfile | None = None
    files: Files = NO_FILES

    @cached_property
    def requested(self) -> RequestedResources:
        """What the directives request."""
        reader = self.script.reader
        return reader.requested(self.script.active_directives) if reader else RequestedResources()

    @cached_property
    def topology(self) -> NodeTopology | None:
        """The site's node, None where nothing is known of it."""
        return site_topology(self.profile) if self.profile else None

    @cached_property
    def queues(self) -> tuple[tuple[str, int, Queue | None], ...]:
        """Partition, QOS or queue that the script names: name, line, and what the profile knows of it."""
        found: list[tuple[str, int, Queue | None]] = []
        for directive in self.script.directives:
            if directive.active and directive.role in ("queue", "qos") and directive.value:
                known = self.profile.queues.get(directive.value) if self.profile else None
                found.append((directive.value, directive.line, known))
        return tuple(found)

    @cached_property
    def owns_node(self) -> bool | None:
        """Whether the job gets whole nodes; None: not known."""
        exclusive = [d for d in self.script.directives if d.active and d.role == "exclusive"]
        if any(d.value is None for d in exclusive):  # with =user or =mcs others of one kind share the node
            return True
        known = [queue.whole_node for _, _, queue in self.queues if queue is not None]
        return all(known) if known else None

    @property
    def without_gpus(self) -> bool:
        """Whether the job goes to nodes of another kind than the profile describes: those without GPUs."""
        return any(queue is not None and not queue.gpus for _, _, queue in self.queues)


Check = Callable[[Context], Iterator[Violation]]
RULES: dict[str, tuple[Rule, Check]] = {}
"""Every rule by its id, in the order of the docs."""

C = TypeVar("C", bound=Check)


def register(rule: Rule, check: Check) -> None:
    """Add a rule."""
    if rule.id in RULES or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id):
        raise ValueError(f"rule id {rule.id!r} is taken or not in kebab case")
    RULES[rule.id] = (rule, check)


def rule(identifier: str, severity: Severity, **texts: Any) -> Callable[[C], C]:
    """Register the decorated check under a rule; ``texts`` are the other fields of Rule."""

    def add(check: C) -> C:
        register(Rule(id=identifier, severity=severity, **texts), check)
        return check

    return add
