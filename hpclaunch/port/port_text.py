"""The report of a port as text for a terminal."""

from __future__ import annotations

from hpclaunch.port.port_script import Ported
from hpclaunch.text_table import printable


def report_text(ported: Ported) -> str:
    """Return the report: kept, changed, left out, then what is to do and what the script does not say."""
    report = ported.report
    lines = [f"kept: {_count(len(report.kept))}"]
    lines += [_line(one.line, one.text) for one in report.kept]
    lines += ["", f"changed: {_count(len(report.changed))}"]
    for changed in report.changed:
        lines.append(_line(changed.line, changed.text))
        lines += [f"        to:     {_whole(changed.to)}", f"        why:    {_whole(changed.why)}"]
        lines.append(f"        source: {_whole(changed.source)}")
    lines += ["", f"left out: {_count(len(report.left_out))}"]
    for left in report.left_out:
        lines += [_line(left.line, left.text), f"        why:    {_whole(left.why)}"]
    for title, texts in (
        ("to do before it is submitted:", ported.to_do),
        ("not in the script:", ported.notes),
    ):
        if texts:
            lines += ["", title, *(f"  - {_whole(text)}" for text in texts)]
    return "\n".join([*lines, ""])


def _count(number: int) -> str:
    return f"{number} line{'s' * (number != 1)}"


def _line(number: int, text: str) -> str:
    return f"  {number:>4}  {printable(text.strip())}"


def _whole(text: str) -> str:
    return printable(text.replace("\n", "; "))
