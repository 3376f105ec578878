"""One check per node: what all nodes have, and which nodes differ."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from hpclaunch.check.check_report import Check, Report, Status, have, missing
from hpclaunch.plural import counted

NODE_MARK = "HPCLAUNCH-NODE "
# Evidence of these checks is different on each node.
_NODE_SPECIFIC = {"clock", "space", "inodes"}
_WORST: dict[Status, int] = {"have": 0, "unknown": 1, "missing": 2}


def node_command(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs ``argv`` and prints its stdout as marked lines with the node's name.

    The lines are short, because a launcher mixes long lines of several nodes.
    """
    text = (
        'out=$("$@"); host=$(hostname); printf "%s\\n" "$out" | fold -w 500 | '
        f'while IFS= read -r line; do echo "{NODE_MARK}$host $line"; done'
    )
    return ("bash", "-c", text, "node", *argv)


def read_nodes(stdout: str) -> dict[str, Report]:
    """Return each node's report from the launcher's output; nodes with an incomplete report are left out."""
    pieces: dict[str, list[str]] = {}
    for line in stdout.splitlines():
        _, mark, rest = line.partition(NODE_MARK)
        if mark:
            host, _, piece = rest.partition(" ")
            pieces.setdefault(host, []).append(piece)
    found = {}
    for host, texts in pieces.items():
        try:
            found[host] = msgspec.convert(json.loads("".join(texts)), Report)
        except (ValueError, msgspec.ValidationError):
            continue
    return dict(sorted(found.items()))


def merge_reports(reports: Mapping[str, Report], nodes: int, why_silent: str) -> tuple[Check, ...]:
    """Return one list of checks for all nodes, and the check ``nodes``: whether all give the same answers.

    Each check has its worst status. A node differs if a status, or the evidence of a check that should be the
    same everywhere, is not that of most nodes.
    """
    names = dict.fromkeys(check.name for each in reports.values() for check in each.checks)
    checks = tuple(_merged(name, reports) for name in names)
    return (*checks, _do_nodes_agree(reports, nodes, why_silent))


def _merged(name: str, reports: Mapping[str, Report]) -> Check:
    every = [(host, check) for host, each in reports.items() for check in each.checks if check.name == name]
    _, worst = max(every, key=lambda pair: _WORST[pair[1].status])
    bad = [host for host, check in every if check.status == worst.status]
    where = counted(len(reports), "node") if len(bad) >= len(reports) else ", ".join(dict.fromkeys(bad))
    return msgspec.structs.replace(worst, evidence=f"{where}: {worst.evidence}")


def _signature(host: str, report: Report) -> tuple[tuple[str, str, str], ...]:
    """A node's answers, without its name and without what is different on each node."""
    return tuple(
        (check.name, check.status, re.sub(rf"\b{re.escape(host)}\b", "", check.evidence))
        for check in report.checks
        if check.name not in _NODE_SPECIFIC
    )


def _do_nodes_agree(reports: Mapping[str, Report], nodes: int, why_silent: str) -> Check:
    signatures = {host: _signature(host, report) for host, report in reports.items()}
    silent = nodes - len(reports)
    if not signatures:
        return missing("nodes", f"none of {nodes} nodes answered: {why_silent}", "see the launcher's message")
    usual, _ = Counter(signatures.values()).most_common(1)[0]
    odd = {host: each for host, each in signatures.items() if each != usual}
    parts = [f"{host} differs: {_difference(each, usual)}" for host, each in odd.items()]
    parts += [f"{silent} of {nodes} nodes gave no answer: {why_silent}"] if silent > 0 else []
    if parts:
        remedy = "exclude these nodes (srun --exclude=NODES) and report them to the site"
        return missing("nodes", "; ".join(parts), remedy)
    return have("nodes", f"the same answers from {counted(len(reports), 'node')}: {', '.join(reports)}")


def _difference(mine: tuple[tuple[str, str, str], ...], usual: tuple[tuple[str, str, str], ...]) -> str:
    words = [
        f"{name} {status} ({evidence})"
        for name, status, evidence in mine
        if (name, status, evidence) not in usual
    ]
    lost = {name for name, *_ in usual} - {name for name, *_ in mine}
    return "; ".join([*words, *(f"no answer on {name}" for name in sorted(lost))])[:600]
