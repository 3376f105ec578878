"""Lint a script: run every rule, find the site from the script's directives, apply the safe fixes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set

import msgspec

from hpclaunch.json_document import document_of
from hpclaunch.lint import rules as _rules  # noqa: F401  importing them registers them
from hpclaunch.lint.batch_script import Script, placeholder_in, read_script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import NO_FILES, RULES, Context, Edit, Files, Finding, Rule, Violation
from hpclaunch.lint.rules.module_rules import ever_loaded
from hpclaunch.site.detect import bases_of
from hpclaunch.site.schema import SiteProfile


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the docs."""
    return tuple(rule for rule, _ in RULES.values())


def find_faults(
    text: str, profile: SiteProfile | None = None, files: Files = NO_FILES
) -> tuple[Finding, ...]:
    """Return the findings in a script, in the order of its lines; those without a line come first.

    ``profile``: the script's site; None: not known, and rules that need it find nothing. ``files`` finds the
    Python files and folders that the script names. Never raises, for any text.
    """
    return lint_script(read_script(text), profile, files)


def lint_script(script: Script, profile: SiteProfile | None, files: Files) -> tuple[Finding, ...]:
    """Lint a script that was read before."""
    context = Context(script, profile, files)
    found = [*_found_by(RULES, context), *_in_written_scripts(script, profile)]
    lines = script.text.split("\n")
    return in_order(dict.fromkeys(_with_column(one, lines, script) for one in found))


def _found_by(names: Iterable[str], context: Context) -> Iterator[Finding]:
    """Yield the findings of some rules in a script."""
    for rule, check in (RULES[name] for name in names):
        doubt = _doubt(rule, context)
        if doubt is None:
            continue
        skipped = context.script.open_directives if rule.skips_placeholders else {}
        parts = context.components if rule.by_component else (context,)
        made = [one for part in parts for one in check(part)]
        yield from (_finding(rule, one, doubt) for one in made if one.line not in skipped)


def _with_column(one: Finding, lines: list[str], script: Script) -> Finding:
    """Return a finding with its column: of a change, of the option it names, or of its first word."""
    if one.line is None or one.file is not None:
        return one
    line = lines[one.line - 1]
    begin = sum(len(each) + 1 for each in lines[: one.line - 1])
    changed = [edit.start - begin for edit in one.edits if 0 <= edit.start - begin <= len(line)]
    column = min(changed, default=_column_of_option(one, line, script))
    return msgspec.structs.replace(one, column=column + 1)


def _column_of_option(one: Finding, line: str, script: Script) -> int:
    """Return where the option of a directive begins that the message names first, else the first word."""
    here = [each.text for each in script.directives if each.line == one.line and each.text in one.message]
    named = min(here, key=one.message.index, default="")
    return line.find(named) if named in line.strip() and named else len(line) - len(line.lstrip())


def _in_written_scripts(script: Script, profile: SiteProfile | None) -> Iterator[Finding]:
    """Yield the findings in here-documents that are scripts; a line with a variable of this one is open."""
    lines = enumerate(script.text.split("\n"), 1)
    left_open = {number for number, line in lines if re.search("[$`]", line)}
    for written, known in script.written_scripts:
        context = Context(written, profile)
        found = [*_found_by(TABLE["rules_of_texts"].split(), context)]
        if written.reader:
            directives = _found_by(TABLE["rules_of_job_files"].split(), context)
            found += [one for one in directives if known or one.line not in left_open]
        yield from (msgspec.structs.replace(one, edits=()) for one in found)


def _doubt(rule: Rule, context: Context) -> str | None:
    """Return why a rule is not certain for this site's scheduler, empty if it is; None: it does not hold."""
    if not rule.versions:
        return ""
    known = next((one for one in rule.versions if one.kind == context.kind), None)
    if known is None:
        return None if context.kind else ""
    holds = known.holds(context.scheduler_version)
    if holds:
        return ""
    if rule.notes_other_versions:
        return f" ({known})"
    if holds is None and not known.before:
        return f" ({known}; the version of this site is not known)"
    return None  # of an unknown version: newer ones have changed this, and most machines have one


def _finding(rule: Rule, one: Violation, doubt: str) -> Finding:
    severity = "note" if doubt else one.severity or rule.severity
    words = {"message": one.message + doubt, "remedy": one.remedy or rule.remedy}
    return document_of(Finding, one, rule=rule.id, severity=severity, **words)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by line; those without a line come first, those in other files last."""
    return tuple(sorted(findings, key=lambda one: (one.file or "", one.line or 0, one.rule)))


def fix(text: str, findings: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Apply findings' edits; return the new text and those applied: none touches an earlier edit."""
    taken: list[Edit] = []
    applied: list[Finding] = []
    for finding in findings:
        pairs = ((one, other) for one in finding.edits for other in taken)
        touches = any(one.start <= other.end and other.start <= one.end for one, other in pairs)
        if finding.edits and not touches:
            taken += finding.edits
            applied.append(finding)
    for edit in sorted(taken, key=lambda one: one.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, tuple(applied)


def site_of(script: Script, profiles: Mapping[str, SiteProfile]) -> str | None:
    """Return the site that matches a script's directives; None: no site or several sites match.

    A site matches if account and queue, or the select line, have its form, or the script loads a module that
    only this site has and names its queues, and nothing contradicts it. If a profile and one that starts
    from it match, the latter counts. A form of accounts that several sites have (the machines of one
    operator) tells none of them: others of that operator may have no profile.
    """
    shared = _shared_patterns(profiles)
    candidates = [name for name, profile in profiles.items() if _is_for_site(script, profile, shared)]
    bases = {profiles[name].base for name in candidates}
    sites = [name for name in candidates if name not in bases]
    return sites[0] if len(sites) == 1 else None


def _shared_patterns(profiles: Mapping[str, SiteProfile]) -> set[str]:
    """Return the forms of accounts that profiles have which do not extend each other."""
    roots: dict[str, set[str]] = {}
    for name, profile in profiles.items():
        if profile.account.pattern:
            root = [name, *bases_of(name, profiles)][-1]
            roots.setdefault(profile.account.pattern, set()).add(root)
    return {pattern for pattern, names in roots.items() if len(names) > 1}


def _is_for_site(script: Script, profile: SiteProfile, shared: Set[str]) -> bool:
    """Tell whether account and queue, or the select line, have the form of a site."""
    if profile.scheduler.kind != script.kind:
        return False
    queues = [*filter(None, script.directive_value("queue").split(","))]
    account_fits = _account_fits(script, profile)
    if account_fits is False or any(name not in profile.queues for name in queues):
        return False
    by_account = account_fits and profile.account.pattern not in shared
    by_queue = queues and (by_account or _loads_own_module(script, profile))
    select = profile.scheduler.select
    return bool(by_queue) or bool(select and select in script.directive_value("select").split(":"))


def _loads_own_module(script: Script, profile: SiteProfile) -> bool:
    """Tell whether the script loads a module that only this site has."""
    patterns = profile.detect.modules
    return any(re.fullmatch(one, name) for one in patterns for name in ever_loaded(script))


def _account_fits(script: Script, profile: SiteProfile) -> bool | None:
    """Tell whether the script's account has the site's form; None: the account or the form is not known."""
    account, pattern = script.directive_value("account"), profile.account.pattern
    if not account or not pattern:
        return None
    fits = re.fullmatch(pattern, account) is not None
    return None if not fits and placeholder_in(account) else fits
