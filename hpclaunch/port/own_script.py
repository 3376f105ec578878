"""The lines of hpclaunch's own script: the reason of each tells whose it is.

A reason stands behind its line, or above one line or several that share it; in scripts of earlier versions
always above.
"""

import re

from hpclaunch.port.foreign_values import WORDS
from hpclaunch.port.line_report import KEPT, Verdict
from hpclaunch.port.port_state import Port
from hpclaunch.shell.shell_syntax import Command

BINDS = "in the container: what the job names"
"""The reason of a line that adds binds of the request."""


def request_lines(port: Port) -> dict[int, str]:
    """Return the lines with the request's variables, modules, environments and binds: number -> reason."""
    found: dict[int, str] = {}
    tails, inside = _ends(port)
    above: list[str] = []
    shared = ""
    for number, line in enumerate(port.script.text.split("\n"), 1):
        if number in inside:
            continue
        if line.startswith("#"):
            above.append(line.removeprefix("#").strip())
            continue
        if above or not line.strip():
            shared, above = " ".join(above), []
        if behind := re.search(r"  # (.*)$", tails.get(number, "")):
            shared = ""
        reason = re.sub(r" \[\d+\]$", "", behind[1] if behind else shared)
        if reason == BINDS or reason in WORDS["reasons of the request"]:
            found[number] = reason
    return found


def _ends(port: Port) -> tuple[dict[int, str], set[int]]:
    """Return what follows the last command on a line, and the lines inside of a command."""
    text, ends = port.script.text, dict[int, int]()
    inside: set[int] = set()
    for command in port.script.commands:
        if not command.depth:
            lines = port.lines_of(command)
            ends[lines.start] = max(command.end, ends.get(lines.start, 0))
            inside |= set(lines[1:])
    return {number: text[end:].partition("\n")[0] for number, end in ends.items()}, inside


def bind_line(port: Port, command: Command) -> Verdict:
    """Return the verdict on a line that adds binds to the runtime's variable, once by a function."""
    words = command.words[1:] if command.name == "hpclaunch_bind" else []
    verdict, binds = KEPT, list[str]()
    for word in (*words, *(made.value for made in command.assignments if made.value)):
        text = port.values.value(word).shell
        if text is None:
            verdict = verdict.doing(f"container_bind: {word.raw}: its variables are not known here")
        binds += filter(None, (text or "").split(","))
    return verdict.setting(container_bind=tuple(binds))


def own_gpus(text: str) -> int | None:
    """Return the GPUs of each node that the script gives to ranks."""
    found = (re.search(each, text, re.MULTILINE) for each in WORDS["own GPUs"])
    match = next(filter(None, found), None)
    return len(re.findall(r"\d+", match[match.lastindex or 1])) if match else None
