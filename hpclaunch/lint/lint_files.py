"""Lint of files: each for its site, with shellcheck's findings, --fix, and what its settings leave.

Of a folder the batch scripts are read: the files that hold directives of a scheduler.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hpclaunch.errors import BadInputError
from hpclaunch.host.this_machine import LocalHost
from hpclaunch.lint.batch_script import Script, placeholder_in, read_script
from hpclaunch.lint.chosen_findings import chosen, without_ignored
from hpclaunch.lint.finding_report import difference
from hpclaunch.lint.known_variables import SHELLCHECK_REPEATS, TABLE
from hpclaunch.lint.lint_config import LintSettings
from hpclaunch.lint.lint_rule import Files, Finding
from hpclaunch.lint.lint_script import fix, in_order, lint_script, site_of
from hpclaunch.lint.shellcheck import LANGUAGES, PREFIX, run_shellcheck
from hpclaunch.scheduler.directive_readers import DIRECTIVE_READERS
from hpclaunch.site.detect import Detection, detect_here
from hpclaunch.site.load_profile import load_all, load_site
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.site_scheduler import no_submission

_OF_THE_SHELL = {"shell-syntax", "test-bracket-joined", "continuation-missing", *TABLE["refused_commands"]}
"""Rules about what shellcheck reads, too."""
_OTHERS = "OAR|PJM|MSUB"
_SENTINELS = "|".join([*(re.escape(one.sentinel) for one in DIRECTIVE_READERS), _OTHERS])
_DIRECTIVE = re.compile(rf"^\s*#\s?({_SENTINELS})[ \t]*-", re.MULTILINE)


class LintTask(NamedTuple):
    """One script to lint."""

    name: str
    """Its path, or ``-``."""
    data: bytes
    settings: LintSettings
    fixing: bool = False
    shellcheck: Path | None = None


class Linted(NamedTuple):
    """The findings in one script."""

    findings: tuple[Finding, ...]
    site: str | None
    """The site that it was checked for; None: not known."""
    why: str
    """Why for that site; empty: it was named."""
    said: str = ""
    """The changes that --fix made."""
    closed: str | None = None
    """Why nothing is submitted to that site any more."""


class _Sites:
    """The sites of scripts; what is read for one script is known for the next."""

    def __init__(self) -> None:
        self._named: dict[str, SiteProfile] = {}

    @cached_property
    def _loaded(self) -> tuple[dict[str, SiteProfile], dict[str, str]]:
        return load_all()

    @cached_property
    def here(self) -> Detection:
        return detect_here(self._loaded)

    def of(self, script: Script, named: str | None) -> tuple[SiteProfile | None, str]:
        """Return the site that is named, else that of the script, else that of this machine, and why."""
        if named is not None:
            if named not in self._named:
                self._named[named] = load_site(named)
            return self._named[named], ""
        profiles, _ = self._loaded
        if (name := site_of(script, profiles)) is not None:
            return profiles[name], "only this site matches the script's directives"
        name = self.here.site
        if name is None or script.kind not in (None, profiles[name].scheduler.kind):
            return None, ""
        return profiles[name], self.here.reason


def lint_files(tasks: Sequence[LintTask], processes: int) -> Iterator[Linted]:
    """Yield what is found in each script, in their order; the first that cannot be linted raises."""
    sites = [_Sites()] * len(tasks)  # each part of the work has one
    if processes < 2 or len(tasks) < 2:
        yield from map(_lint_one, tasks, sites)
        return
    with ProcessPoolExecutor(processes) as pool:
        size = -(-len(tasks) // (processes * TABLE["shares"]))
        yield from pool.map(_lint_one, tasks, sites, chunksize=size)


def _lint_one(task: LintTask, sites: _Sites) -> Linted:
    text, said = task.data.decode("utf-8", errors="replace"), ""
    script = read_script(text)
    profile, why = sites.of(script, task.settings.site)
    findings = _left(task, text, _faults(task, script, profile))
    if task.fixing:
        new, said = _fix(task, text, findings)
        if new != text:
            findings = _left(task, new, _faults(task, read_script(new), profile))
    closed = no_submission(profile) if profile else None
    return Linted(findings, profile.name if profile else None, why, said, closed)


def _left(task: LintTask, text: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that the settings and the script's comments leave, with their severities."""
    settings = task.settings
    left = chosen(without_ignored(text, findings), settings.select, settings.ignore)
    return tuple(map(settings.graded, left))


def _faults(task: LintTask, script: Script, profile: SiteProfile | None) -> tuple[Finding, ...]:
    here = Path.cwd()
    folders = (here,) if task.name == "-" else (here, (here / task.name).parent)
    findings = lint_script(script, profile, Files(folders))
    if task.shellcheck is None or script.language not in LANGUAGES:
        return findings
    more = run_shellcheck(task.shellcheck, script.text, LocalHost())
    left = (one for one in more if not _is_left_open(script, one.line or 1))
    return in_order(_without_repeats(script, (*findings, *left), (*findings, *more)))


def _is_left_open(script: Script, line: int) -> bool:
    """Tell whether a line has a field to be filled in, which the rule ``placeholder`` reports."""
    in_template = script.open_directives and placeholder_in(script.text.split("\n")[line - 1])
    return line in script.open_words or bool(in_template)


def _without_repeats(
    script: Script, findings: tuple[Finding, ...], every: tuple[Finding, ...]
) -> Iterator[Finding]:
    """Yield findings without those of shellcheck that repeat one of ``every``: by its code, or of its line.

    A template's text is not what the shell reads in the end, so its syntax tells nothing.
    """
    said = " ".join(SHELLCHECK_REPEATS.get(one.rule, "") for one in every)
    said += f" {TABLE['shellcheck_warnings']['syntax']}" * script.shell.template
    lines = {one.line for one in every if one.rule in _OF_THE_SHELL}
    for one in findings:
        on_line = one.rule.startswith(PREFIX) and one.severity == "warning" and one.line in lines
        if not on_line and one.rule.removeprefix(PREFIX) not in said.split():
            yield one


def _fix(task: LintTask, old: str, findings: tuple[Finding, ...]) -> tuple[str, str]:
    """Write the corrected script, whole or not at all; return its text, and what to say."""
    new, applied = fix(old, findings)
    if not applied:
        return old, f"note: --fix has nothing to correct in {task.name}\n"
    if old.encode() != task.data:
        raise BadInputError(f"{task.name}: not UTF-8, so it was not changed", "save it as UTF-8")
    target = Path(task.name).resolve()
    LocalHost().write_file(str(target), new.encode(), mode=target.stat().st_mode & 0o7777)
    corrected = ", ".join(one.rule for one in applied)
    return new, difference(task.name, old, f"{task.name} (fixed)", new) + f"corrected: {corrected}\n"


def batch_scripts(folder: Path, excluded: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the batch scripts below a folder in order, but for hidden folders and those ``excluded``."""
    for place, folders, names in os.walk(folder):
        kept = [name for name in folders if not (name.startswith(".") or excluded(Path(place, name)))]
        folders[:] = sorted(kept)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_file() and not excluded(path) and _is_batch_script(path):
                yield path


def _is_batch_script(path: Path) -> bool:
    """Tell whether a file has directives; a file that cannot be read has none."""
    try:
        with path.open("rb") as file:
            head = file.read(TABLE["head_bytes"])
    except OSError:
        return False
    return b"\0" not in head and _DIRECTIVE.search(head.decode("utf-8", errors="replace")) is not None
