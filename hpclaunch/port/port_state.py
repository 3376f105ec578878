"""A script on its way to another machine: both machines, what the script asks for, and the sizes here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hpclaunch.errors import case_texts
from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import Values
from hpclaunch.port.job_sizes import SourceSizes, TargetQueue, TargetSizes
from hpclaunch.port.line_report import Fate, Verdict
from hpclaunch.port.ported_command import PortedCommand
from hpclaunch.scheduler.directive_reader import DirectiveReader, Fact, Given, RequestedResources
from hpclaunch.scheduler.directive_readers import is_directive_like
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.shell.shell_syntax import Command
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import cite, site_launcher, site_scheduler


@dataclass(frozen=True, eq=False)
class Port:
    """One script on its way from one machine to another."""

    script: Script
    source: SiteProfile | None
    target: SiteProfile
    words: DirectiveReader
    target_words: DirectiveReader
    requested: RequestedResources
    faults: Mapping[int, str]
    values: Values
    launch: Launch | None = None
    command: PortedCommand = field(default_factory=PortedCommand)
    source_sizes: SourceSizes = field(default_factory=SourceSizes)
    sizes: TargetSizes = field(default_factory=TargetSizes)
    queue: TargetQueue = field(default_factory=TargetQueue)
    account: str | None = None
    before: int = 0
    in_container: bool = False

    @property
    def written(self) -> "Port | None":
        """The script that this one holds and starts, where it does."""
        inside: Port | None = self.command.inside
        return inside

    @property
    def parts(self) -> "list[Port]":
        """The script, and the one that it holds and starts."""
        return [self, *filter(None, [self.written])]

    @property
    def here(self) -> str:
        """The target's name."""
        return self.target.name

    @cached_property
    def starts_ray(self) -> bool:
        """Whether the script starts a Ray cluster itself; a line that prints the words starts none."""
        starts = r"^(?:(?!\b(?:echo|printf)\b)[^#\n])*\bray +start\b"
        return re.search(starts, self.script.text, re.MULTILINE) is not None

    @property
    def there(self) -> str:
        """The other machine's name."""
        return self.source.name if self.source else "the other machine"

    @property
    def same_machine(self) -> bool:
        """Whether the script is for the target already."""
        return self.source is not None and self.source.name == self.target.name

    @property
    def same_scheduler(self) -> bool:
        """Whether both machines have the same kind of scheduler."""
        return self.script.kind == self.target.scheduler.kind

    @property
    def scheduler(self) -> Scheduler:
        """The target's scheduler."""
        return site_scheduler(self.target)

    @property
    def launcher(self) -> Launcher:
        """The target's launcher."""
        return site_launcher(self.target)

    @cached_property
    def launches(self) -> dict[int, Launch]:
        """The launches of the script, by the place of their commands."""
        return {one.command.start: one for one in reversed(self.script.launches)}

    @cached_property
    def content_lines(self) -> dict[int, str]:
        """The lines that are not only a comment: number -> text."""
        script, found = self.script, {}
        unread = {number for number, _ in script.unread}
        for number, line in enumerate(script.text.split("\n"), 1):
            bare = line.strip()
            comment = bare.startswith("#") and not is_directive_like(line) and number not in script.text_lines
            comment = comment and number not in unread and not (number == 1 and bare.startswith("#!"))
            if bare and not comment:
                found[number] = line.rstrip("\r")
        return found

    @property
    def alone(self) -> bool:
        """Whether the launch is the last program of a script that has no launch line."""
        return self.launch is not None and self.launch not in self.script.launches

    @property
    def launch_line(self) -> int | None:
        """The line of the launch."""
        return self.launch.line if self.launch else None

    def names_read(self, *parts: tuple[int, int]) -> set[str]:
        """Return the variables that parts of the script use (begin, end), and those that their values use."""
        refs, assigned = self.script.shell.refs, self.script.variables.assignments
        open_parts, names = list(parts), set[str]()
        while open_parts:
            begin, end = open_parts.pop()
            found = {ref.name for ref in refs if begin <= ref.offset < end}
            found.update(re.findall(r"\[\$\{?([A-Za-z_]\w*)", self.script.text[begin:end]))  # of an index
            for name in found - names:
                names.add(name)
                made = assigned.get(name, ())
                ends = ((one, [*(one.items or ()), *filter(None, [one.value])]) for one in made)
                open_parts += [(one.offset, words[-1].end if words else one.offset) for one, words in ends]
        return names

    def cited(self, source: str | None) -> str:
        """Return where a fact about the target comes from."""
        return cite(self.target, source)

    @property
    def subjects(self) -> set[str | None]:
        """The subjects of the script's directives."""
        return {self.words.options.get(one.name) for one in self.script.active_directives}

    def names_of(self, fact: Fact) -> set[str]:
        """Return the variables by which the script's scheduler tells a fact."""
        return {name for name, about in self.words.variables.items() if about == fact}

    @property
    def sizes_text(self) -> str:
        """The sizes as the job file has them."""
        return ", ".join(f"{key}: {value}" for key, value in self.sizes.known.items())

    def job_name(self, text: str) -> str:
        """Return a name that the target's scheduler takes."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or "job"
        return name if re.fullmatch(self.scheduler.job_name_pattern, name) else f"job-{name}"

    def says(self, case: str, source: str = "", **values: object) -> Verdict:
        """Return the verdict of a case of ``port_verdicts.yaml``, with these values in its texts."""
        texts = case_texts("port/port_verdicts.yaml", case, here=self.here, there=self.there, **values)
        to_do = (texts["to_do"],) if "to_do" in texts else ()
        to, why = texts.get("to", ""), texts.get("why", "")
        fate: Fate = "changed" if "to" in texts else "left out"
        return Verdict(fate, to, why, source or texts.get("source", ""), to_do)

    def rewritten(self, to: str, why: str = "") -> Verdict:
        """Return the verdict on an option that means the same here: kept, or written in another way."""
        if self.same_scheduler and not why:
            return Verdict("kept")
        title = self.scheduler.title
        return Verdict("changed", to, why or f"{title} has another option for it", "docs/reference/job.md")

    def lines_of(self, command: Command) -> range:
        """Return the lines of a command, those of its here-documents included."""
        text = self.script.text[command.start : command.end].rstrip("\n \t;&|)")
        last = command.line + text.count("\n")
        for redirect in command.redirects:
            if redirect.body is not None:
                last = max(last, redirect.line + 1 + redirect.body.count("\n"))
        return range(command.line, last + 1)


def decided(command: Command) -> bool:
    """Tell whether a condition, a loop or a function decides if a command runs, and how often."""
    kinds = ("if", "case", "while", "until", "for", "select", "function")
    return any(block.kind in kinds for block, _ in command.path)


def gpus_of(profile: SiteProfile | None) -> int:
    """Return the GPUs of a node; 0: it has none, or is not described."""
    return len(profile.node.gpus) if profile and profile.node else 0


def number(given: Given | None) -> int | None:
    """Return the number that directives request; None: they request none."""
    return given.value if given else None


def numbers_asked(script: Script, asked: RequestedResources, source: SiteProfile | None) -> dict[Fact, int]:
    """Return the sizes that the script's variables have on its own machine."""
    nodes, slots = asked.node_count, asked.tasks_per_node or asked.cpus_per_node
    known: dict[Fact, int | None] = {
        "nodes": nodes,
        "tasks per node": asked.ranks_per_node,
        # NSLOTS and PBS_NP count slots
        "tasks": asked.tasks.value if asked.tasks else nodes * slots.value if nodes and slots else None,
        "cpus per task": number(asked.cpus_per_task),
        "gpus per node": asked.gpus_per_node.value if asked.gpus_per_node else gpus_of(source),
    }
    return {fact: number for fact, number in known.items() if number}
