"""Which findings count: --select and --ignore, comments in the script, and the baseline of an old tree.

A comment ``# hpclaunch: ignore[RULE, RULE]`` holds for its line and, alone on a line, for the next one; a
finding without a line is ignored by such a comment anywhere. Rules may be patterns: ``directive-*``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.json_document import Document
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import Finding, also_at
from hpclaunch.lint.lint_script import all_rules

_COMMENT = re.compile(r"#\s*hpclaunch:\s*ignore(?:\[([^\]\n]*)\])?")


def chosen(findings: Iterable[Finding], select: Sequence[str], ignore: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings of the selected rules (all if none is named) without the ignored ones."""
    selected = (one for one in findings if not select or _matches(one.rule, select))
    return tuple(one for one in selected if not _matches(one.rule, ignore))


def _matches(rule: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(rule, pattern) for pattern in patterns)


def unknown_rule(pattern: str) -> str | None:
    """Return in words that no rule matches a pattern; None: one does, or it is for shellcheck's."""
    names = [rule.id for rule in all_rules()]
    if pattern.startswith("shellcheck-") or any(fnmatchcase(name, pattern) for name in names):
        return None
    near = get_close_matches(pattern, names, n=1)
    return f"no rule is called {pattern}" + (f"; did you mean {near[0]}?" if near else "")


def without_ignored(text: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that no comment of the script ignores."""
    ignored: dict[int | None, list[str]] = {}  # by line; None: in findings without one
    for number, line in enumerate(text.split("\n"), 1):
        match = _COMMENT.search(line)
        if match:
            patterns = [part.strip() for part in (match[1] or "*").split(",")]
            alone = line.strip() == match[0]
            for at in (None, number, number + 1) if alone else (None, number):
                ignored.setdefault(at, []).extend(patterns)
    return tuple(one for one in findings if one.file or not _matches(one.rule, ignored.get(one.line, ())))


def told_once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with those of one cause as one, which names the other lines."""
    causes: dict[object, list[Finding]] = {}
    for one in findings:
        says = one.message.partition(": ")[2] if one.rule in TABLE["refused_commands"] else one.message
        alone = one.edits or one.file or one.line is None or not says
        causes.setdefault(one if alone else (one.rule, one.severity, says), []).append(one)
    return tuple(
        msgspec.structs.replace(each[0], message=each[0].message + also_at([one.line or 0 for one in each]))
        for each in causes.values()
    )


class Baseline(Document, frozen=True, kw_only=True):
    """The findings of an old tree that are not reported again: file -> rule -> how many."""

    findings: dict[str, dict[str, int]]


def make_baseline(found: Mapping[str, Sequence[Finding]]) -> Baseline:
    """Return the baseline of these findings, by file."""
    counted = {name: dict(sorted(Counter(one.rule for one in each).items())) for name, each in found.items()}
    return Baseline(findings={name: rules for name, rules in sorted(counted.items()) if rules})


def read_baseline(name: str, data: bytes) -> Baseline:
    """Read a baseline file. Raises BadInputError if it is none."""
    try:
        return msgspec.json.decode(data, type=Baseline)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadInputError(f"{name}: not a baseline of hpclaunch lint: {error}", "write it again") from None


def new_findings(name: str, findings: Iterable[Finding], baseline: Baseline) -> tuple[Finding, ...]:
    """Return the findings beyond those in the baseline: of each rule the last ones."""
    left = Counter(baseline.findings.get(name, {}))
    kept = []
    for one in findings:
        if left[one.rule] > 0:
            left[one.rule] -= 1
        else:
            kept.append(one)
    return tuple(kept)
