"""The state of a port while it reads a script: both machines, the settings, the verdicts, what is to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.launch_lines import Launch
from hpclaunch.port.foreign_values import Values
from hpclaunch.port.job_sizes import SourceSizes, TargetQueue, TargetSizes
from hpclaunch.port.line_report import Verdict, Verdicts
from hpclaunch.port.ported_command import PortedCommand
from hpclaunch.scheduler.directive_reader import RequestedResources
from hpclaunch.scheduler.foreign_words import ForeignWords
from hpclaunch.scheduler.launcher import Launcher
from hpclaunch.scheduler.scheduler_interface import Scheduler
from hpclaunch.shell.shell_syntax import Command
from hpclaunch.site.job_environment import JobContainer
from hpclaunch.site.queue_limits import cite
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import site_launcher, site_scheduler
from hpclaunch.software.container_runtimes import undocumented

SCRIPT_OF_HPCLAUNCH = "docs/how-to/port.md, what hpclaunch's script sets"
JOB_FILE = "docs/reference/job.md"


@dataclass
class Port:
    """One script on its way from one machine to another."""

    script: Script
    source: SiteProfile | None
    """None: the script's machine is not known."""
    target: SiteProfile
    words: ForeignWords
    target_words: ForeignWords
    requested: RequestedResources
    settings: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    exports: list[str] = field(default_factory=list)
    """Shell lines for variables whose value is known at run time only."""
    directives: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)
    verdicts: Verdicts = field(default_factory=Verdicts)
    launch: Launch | None = None
    """The one that the job file is for."""
    sizes: TargetSizes | None = None
    source_sizes: SourceSizes = field(default_factory=SourceSizes)
    queue: TargetQueue | None = None
    command: PortedCommand = field(default_factory=PortedCommand)
    values: Values = None  # type: ignore[assignment]
    """Values as the target has them."""
    faults: dict[int, str] = field(default_factory=dict)
    """Line -> what lint finds wrong with a variable, a module or a file system that it names."""
    written: Port | None = None
    """The script that this one writes to a file and then starts, where it does."""
    written_at: Any = None
    """Where it writes it (`written_script.Written`)."""
    in_container: bool = False
    """The script runs inside a container."""
    own: bool = False
    """hpclaunch wrote the script."""
    no_container: str | None = None
    """Why the target cannot start the script's container; None: it can."""

    @property
    def here(self) -> str:
        """The target's name."""
        return self.target.name

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

    @property
    def container_source(self) -> str:
        """The page about the target's containers."""
        container = self.target.software.container
        return self.cited(container.source if container else None)

    def cited(self, source: str | None) -> str:
        """Return where a fact about the target comes from."""
        return cite(self.target, source)

    def do(self, text: str) -> None:
        """Add something that the user has to do before the job is submitted, once."""
        if text not in self.to_do:
            self.to_do.append(text)

    def set(self, key: str, value: object, reason: str = "") -> None:
        """Set a key of the job file; not that of a container which the target cannot start."""
        if key == "container":
            self.no_container = undocumented(self.target, JobContainer(image=str(value)))
        if key in ("container", "container_bind") and self.no_container:
            self.do(f"{self.no_container} ({key}: {value} is left out)")
            return
        self.settings[key] = value
        if reason:
            self.reasons[key] = reason

    @property
    def sizes_text(self) -> str:
        """The sizes as the job file has them."""
        keys = ("nodes", "tasks_per_node", "gpus_per_task", "cpus_per_task")
        return ", ".join(f"{key}: {self.settings[key]}" for key in keys if key in self.settings)

    def job_name(self, text: str) -> str:
        """Return a name that the target's scheduler takes."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or "job"
        return name if re.fullmatch(self.scheduler.job_name_pattern, name) else f"job-{name}"

    def rewritten(self, to: str, why: str = "") -> Verdict:
        """Return the verdict on an option that means the same here: kept, or written in another way."""
        if self.same_scheduler and not why:
            return Verdict("kept")
        title = self.scheduler.title
        return Verdict("changed", to, why or f"{title} has another option for it", JOB_FILE)

    def lines_of(self, command: Command) -> range:
        """Return the lines of a command, those of its here-documents included."""
        text = self.script.text[command.start : command.end].rstrip("\n \t;&|)")
        last = command.line + text.count("\n")
        for redirect in command.redirects:
            if redirect.body is not None:
                last = max(last, redirect.line + 1 + redirect.body.count("\n"))
        return range(command.line, last + 1)


def gpus_of(profile: SiteProfile | None) -> int:
    """Return the GPUs of a node; 0: it has none, or is not described."""
    return len(profile.node.gpus) if profile and profile.node else 0


def is_path(text: str) -> bool:
    """Tell whether a text is a path that exists on one machine only: absolute, not of the system."""
    system = r"/(tmp|dev|proc|sys|bin|sbin|usr|etc|run|var|lib\w*)(/.*)?"
    return (
        re.fullmatch(r"/\w.*", text) is not None and re.fullmatch(system, text) is None and ":/" not in text
    )
