"""Rules, their findings, and the data that they use."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from hpclaunch.lint.batch_script import Script
from hpclaunch.scheduler import directive_reader
from hpclaunch.scheduler.registry import get_scheduler
from hpclaunch.site.profile_node import site_topology
from hpclaunch.site.schema import Node, Queue, SiteProfile
from hpclaunch.site.yaml_tree import read_tree
from hpclaunch.topology.node_topology import NodeTopology

Severity = Literal["error", "warning", "note"]
"""error: the job fails, hangs, or does something else than the script says; warning: likely, or the site does
not document it; note: it works, but should be checked."""


class Edit(msgspec.Struct, frozen=True):
    """A change of the script's text that corrects only the mistake."""

    start: int
    end: int
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    line: int | None
    rule: str
    severity: Severity
    message: str
    remedy: str
    edits: tuple[Edit, ...] = ()
    file: str | None = None
    column: int | None = None


class Versions(msgspec.Struct, frozen=True):
    """The versions of a scheduler that behave as a rule says."""

    kind: str
    name: str
    source: str
    first: str = ""
    before: str = ""

    def holds(self, version: str | None) -> bool | None:
        """Tell whether a version behaves so; None: the version is not known, but it counts."""
        if not (self.first or self.before):
            return True
        if version is None:
            return None
        number = _numbers(version)
        return _numbers(self.first) <= number and not (self.before and number >= _numbers(self.before))

    def __str__(self) -> str:
        """Return the versions in words."""
        bounds = [f"from {self.first}" if self.first else "", f"before {self.before}" if self.before else ""]
        return " ".join([self.name, *filter(None, bounds)])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as the docs show it."""

    id: str
    severity: Severity
    what: str
    why: str
    remedy: str
    bad: str
    good: str
    fixable: bool = False
    versions: tuple[Versions, ...] = ()
    notes_other_versions: bool = False
    skips_placeholders: bool = False
    by_component: bool = False


class Violation(msgspec.Struct, frozen=True):
    """A violation that a check yields; None: as the rule says."""

    line: int | None
    message: str
    remedy: str | None = None
    severity: Severity | None = None
    edits: tuple[Edit, ...] = ()
    file: str | None = None
    """The other file that it is in; None: the script."""
    column: int | None = None


def also_at(lines: Sequence[int]) -> str:
    """Return ``, also lines 5, 7``: the lines behind the first one; empty where there are none."""
    return f", also line{'s' * (len(lines) > 2)} {', '.join(map(str, lines[1:6]))}" if lines[1:] else ""


@dataclass(frozen=True)
class Files:
    """Finds the files that a script names."""

    folders: tuple[Path, ...] = ()
    """Folders for relative names, in order: where the script is submitted, where the script is."""

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

    def shown(self, name: str) -> str:
        """Return a file as seen from the first folder, which is where the command runs."""
        path = self.find(name)
        if path is None or path == self.folders[0] / name:
            return name
        return str(path.relative_to(self.folders[0]) if path.is_relative_to(self.folders[0]) else path)

    def text(self, name: str) -> str | None:
        """Return a file's text; None: it does not exist or cannot be read."""
        path = self.find(name)
        try:
            return path.read_bytes().decode("utf-8", errors="replace") if path and path.is_file() else None
        except OSError:
            return None


NO_FILES = Files()


@dataclass(eq=False)
class Context:
    """The data for a check: the script, the site if known, and the files that the script names."""

    script: Script
    profile: SiteProfile | None = None
    files: Files = NO_FILES
    component: int | None = None
    """The component of a heterogeneous job that is checked, from 0; None: the whole script."""

    @cached_property
    def directives(self) -> tuple[directive_reader.Directive, ...]:
        """The active directives of the script, or of the component."""
        if self.component is None:
            return self.script.active_directives
        return self.script.components[self.component]

    def directive(self, role: directive_reader.Role) -> directive_reader.Directive | None:
        """Return the last directive of a role, of the script or of the component."""
        return next((one for one in reversed(self.directives) if one.role == role), None)

    @cached_property
    def components(self) -> "tuple[Context, ...]":
        """A context for each component of a heterogeneous job; the whole script where it is none."""
        count = len(self.script.components)
        if count < 2:
            return (self,)
        return tuple(Context(self.script, self.profile, self.files, at) for at in range(count))

    @property
    def kind(self) -> str | None:
        """The scheduler: that of the directives, else the site's."""
        return self.script.kind or (self.profile.scheduler.kind if self.profile else None)

    @property
    def scheduler_version(self) -> str | None:
        """The version of the site's scheduler; None: not known."""
        scheduler = self.profile.scheduler if self.profile else None
        return scheduler.version if scheduler and scheduler.kind == self.kind else None

    @cached_property
    def requested(self) -> directive_reader.RequestedResources:
        """The resources that the directives request; nothing is known of a heterogeneous job as a whole."""
        reader = self.script.reader
        if reader is None or (self.component is None and len(self.script.components) > 1):
            return directive_reader.RequestedResources()
        return reader.requested(self.directives)

    def number(self, text: str | None) -> int | None:
        """Read a count, or a variable of Slurm whose value follows from the directives; None: not known."""
        requested, variable = self.requested, re.fullmatch(r"\$\{?(SLURM_\w+)\}?", text or "")
        tasks, each, cpus = requested.tasks, requested.tasks_per_node, requested.cpus_per_task
        counts = {
            "SLURM_CPUS_PER_TASK": cpus.value if cpus else None,
            "SLURM_NNODES": requested.node_count,
            "SLURM_JOB_NUM_NODES": requested.node_count,
            "SLURM_NTASKS": tasks.value if tasks else None,
            "SLURM_NTASKS_PER_NODE": each.value if each else None,
            "SLURM_GPUS_ON_NODE": requested.gpus_of_node,
        }
        return counts.get(variable[1]) if variable else directive_reader.whole_number(text)

    @cached_property
    def node_topology(self) -> NodeTopology | None:
        """The site's node; None: not known."""
        return site_topology(self.profile) if self.profile and self.node else None

    @cached_property
    def node(self) -> Node | None:
        """The node that the profile describes; None: none, or the job runs on others."""
        node = self.profile.node if self.profile else None
        without_gpus = any(queue is not None and not queue.gpus for _, _, queue in self.queues)
        return None if node and (self.names_unknown or (node.gpus and without_gpus)) else node

    @cached_property
    def names_unknown(self) -> bool:
        """Whether a queue or constraint is not the profile's: most sites have other nodes, too."""
        known = self.profile.queues if self.profile else {}
        values = [one.value or "" for one in self.directives if one.role == "queue"]
        named = {name for value in values for name in value.split(",") if name}
        return self._other_constraint() or bool(known and named - known.keys())

    @cached_property
    def queues(self) -> tuple[tuple[str, int, Queue | None], ...]:
        """Partition, QOS or queue that the script names: name, line, and its entry in the profile."""
        found: list[tuple[str, int, Queue | None]] = []
        for directive in self.directives:
            if directive.role in ("queue", "qos") and directive.value:
                known = self.profile.queues.get(directive.value) if self.profile else None
                found.append((directive.value, directive.line, known))
        return tuple(found)

    @cached_property
    def owns_node(self) -> bool | None:
        """Whether the job gets whole nodes; None: not known."""
        exclusive = [d for d in self.directives if d.role == "exclusive"]
        if any(d.value is None for d in exclusive):  # with =user or =mcs some other jobs share the node
            return True
        known = [queue.whole_node for _, _, queue in self.queues if queue is not None]
        return all(known) if known else None

    @cached_property
    def cores_for_jobs(self) -> int:
        """The cores of the site's node that jobs can use; 0: not known."""
        node = self.node_topology
        usable = node.usable if node else frozenset()
        return sum(usable.issuperset(core.cpus) for core in node.cores) if node else 0

    @property
    def gpus_of_whole_node(self) -> int | None:
        """The GPUs of the site's node where the job gets whole ones with GPUs; None: not known."""
        return len(self.node.gpus) if self.node and self.owns_node else None

    def _other_constraint(self) -> bool:
        """Tell whether the script names other nodes than those that the profile's own constraint names."""
        given = directive_reader.last_directive(self.directives, "constraint")
        if given is None or self.profile is None:
            return False
        features = re.split(r"[&|*\[\]\"]", given.value or "")
        advised = [each.text.split() for each in self.profile.directives]
        return any(words[0] == "-C" and words[-1] not in features for words in advised)


Check = Callable[[Context], Iterator[Violation]]
RULES: dict[str, tuple[Rule, Check]] = {}
"""Every rule by its id, in the order of the docs."""

C = TypeVar("C", bound=Check)


def rule(identifier: str, **computed: Any) -> Callable[[C], C]:
    """Register a check under its rule of ``rules/*.yaml``; ``computed``: fields made by code."""

    def add(check: C) -> C:
        made = msgspec.convert({"id": identifier, **_texts()[identifier], **computed}, Rule)
        if identifier in RULES or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", identifier):
            raise ValueError(f"rule id {identifier!r} is taken or not in kebab case")
        RULES[identifier] = (made, check)
        check.__doc__ = check.__doc__ or made.what
        return check

    return add


@cache
def _texts() -> dict[str, dict[str, Any]]:
    """Return what the files of this room say about each rule."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((Path(__file__).parent / "rules").glob("*.yaml")):
        found |= read_tree(path).plain()
    for versions in (each for texts in found.values() for each in texts.get("versions", ())):
        versions["name"] = get_scheduler(versions["kind"]).title
    return found
