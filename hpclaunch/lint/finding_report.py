"""Findings and rules as documents: as text, JSON and SARIF."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from hpclaunch import __version__
from hpclaunch.amounts import counted
from hpclaunch.json_document import Document, document_of
from hpclaunch.lint.lint_rule import Finding, Rule, Severity
from hpclaunch.text_table import text_table

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class FindingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    file: str
    line: int | None
    column: int | None
    rule: str
    severity: Severity
    message: str
    remedy: str


class LintDocument(Document, frozen=True, kw_only=True):
    """The findings of ``lint``, in the order of the lines."""

    findings: tuple[FindingDocument, ...]


DOCUMENTS = {"lint": LintDocument, "lint-rules": tuple[Rule, ...]}
"""Name of the schema -> its type."""

Found = Mapping[str, Sequence[Finding]]
"""Script -> its findings."""


def document(found: Found) -> LintDocument:
    """Return findings for ``--json``."""
    every = ((name, one) for name, findings in found.items() for one in findings)
    made = (document_of(FindingDocument, one, file=one.file or name) for name, one in every)
    return LintDocument(findings=tuple(made))


def report(found: Found, style: Callable[[str, str], str] = lambda text, _: text) -> str:
    """Return findings as text: ``SCRIPT:LINE:COLUMN: severity: message [rule]``, the remedy, and a summary.

    Empty where there are none. ``style`` may colour a severity.
    """
    lines = []
    for name, one in ((name, one) for name, findings in found.items() for one in findings):
        place = [one.file or name, *(str(at) for at in (one.line, one.column) if at is not None)]
        severity = style(one.severity, one.severity)
        lines.append(f"{':'.join(place)}: {severity}: {one.message} [{one.rule}]\n  {one.remedy}\n")
    clean = sum(not findings for findings in found.values())
    about = f"{len(found)} scripts, {clean} without findings" if len(found) > 1 else next(iter(found), "")
    every = chain.from_iterable(found.values())
    return "".join([*lines, f"{about}: {_counted(every)}\n"]) if lines else ""


def statistics(found: Found, width: int | None = None) -> str:
    """Return how many findings each rule has, the most frequent first."""
    every = Counter((one.rule, one.severity) for findings in found.values() for one in findings)
    rows = [(str(count), rule, severity) for (rule, severity), count in every.most_common()]
    return text_table(rows, width=width)


def explanation(rule: Rule) -> str:
    """Return what the docs say about one rule, for a terminal."""
    return f"{rule.id} ({rule.severity}): {rule.what}\n\n{rule.why}\n\n{rule.remedy}\n\n{example(rule)}"


def example(rule: Rule) -> str:
    """Return a script with the fault, and one without it."""
    return "\n".join(["# wrong", rule.bad, "", "# right", rule.good])


def _counted(findings: Iterable[Finding]) -> str:
    """Return ``2 errors, 1 note``."""
    severities = [one.severity for one in findings]
    counts = [(word, severities.count(word)) for word in ("error", "warning", "note")]
    return ", ".join(counted(n, word) for word, n in counts if n)


def difference(old_name: str, old: str, new_name: str, new: str) -> str:
    """Return how two scripts differ, as a unified diff."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, old_name, new_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def sarif(found: Found, rules: Sequence[Rule]) -> dict[str, Any]:
    """Return findings as a SARIF 2.1.0 log (OASIS), which code reviews show next to the lines."""
    described: dict[str, dict[str, Any]] = {
        rule.id: {
            "id": rule.id,
            "shortDescription": {"text": rule.what},
            "fullDescription": {"text": rule.why},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in rules
    }
    every = [(name, one) for name, findings in found.items() for one in findings]
    for _, one in every:
        described.setdefault(one.rule, {"id": one.rule})
    order = list(described)
    driver = {"name": "hpclaunch lint", "version": __version__, "rules": list(described.values())}
    results = [_sarif_result(one.file or name, one, order.index(one.rule)) for name, one in every]
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _sarif_result(name: str, finding: Finding, index: int) -> dict[str, Any]:
    from urllib.parse import quote

    uri = Path(name).as_uri() if Path(name).is_absolute() else quote(Path(name).as_posix())
    location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line is not None:
        location["region"] = {"startLine": finding.line}
        if finding.column is not None:
            location["region"]["startColumn"] = finding.column
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [{"physicalLocation": location}],
    }


def rules_list(rules: Sequence[Rule], width: int | None = None) -> str:
    """Return the rules for a terminal."""
    rows = [(rule.id, rule.severity, rule.what.replace("`", "")) for rule in rules]
    return text_table(rows, width=width)
