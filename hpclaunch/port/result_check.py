"""The last look at a port: what of the script is lost, and what stays and may belong to another machine."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from hpclaunch.port.foreign_values import WORDS
from hpclaunch.port.job_sizes import usable_cores
from hpclaunch.port.line_report import Judged, at_lines, task, undecided
from hpclaunch.port.port_body import launch_line, leaves, names_in_launch
from hpclaunch.port.port_directives import PIECE, words_of_nodes
from hpclaunch.port.port_state import Port
from hpclaunch.shell.shell_syntax import Assignment


def unsaid(port: Port, settings: Mapping[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    """Yield what else is to do, given the keys of the job file and the verdicts on all lines."""
    yield from _foreign_words(port, settings)
    yield from _lost_values(port, settings, judged)
    yield from _unread_sizes(port)
    yield from _folders(port, str(settings))
    yield from _outputs(port, {line for lines in undecided(judged).values() for line in lines})
    cores = (usable_cores(port.target) or 0) // (port.sizes.tasks_per_node or 1)
    if 0 < cores < (there := port.source_sizes.cpus_per_rank or 0):
        yield task("fewer cores", there=there, here=cores)


def _folders(port: Port, result: str) -> Iterator[str]:
    """Yield the lines that read the folder they run in, where a line of the script goes to another one."""
    folders = {"PWD", *(name for name, fact in port.words.variables.items() if fact == "folder")}
    moves = [one.line for one in port.script.commands if leaves(port, one)]
    reads = [ref.line for ref in port.script.shell.refs if ref.name in folders]
    reads += [one.line for one in port.script.commands if one.depth and one.name == "pwd"]
    if moves and reads and re.search(r"\$\{?PWD\b", result):
        yield task("folder moved", at=at_lines(reads), moves=at_lines(moves))


def _outputs(port: Port, named: Collection[int]) -> Iterator[str]:
    """Yield the files of the launch's output that other lines read or that hold data: here it is in the log.

    ``named``: the lines that are the user's.
    """
    launch, text = port.launch, port.script.text
    if launch is None or not launch.program:
        return
    options = text[launch.command.start : launch.program[0].start]
    behind = text[launch.program[-1].end :].partition("\n")[0]
    written = [
        (launch.line, options + behind),
        *((one.line, one.text) for one in port.script.active_directives),
    ]
    for line, file in ((line, file) for line, code in written for file in re.findall(WORDS["output"], code)):
        name = re.split(r"[%$]", file.rpartition("/")[2])[0] or file
        reads = (at for at in named if at > launch.line and name in text.split("\n")[at - 1])
        later = [*reads] if len(name) > 2 else []
        if later or re.fullmatch(WORDS["data"], name):
            what = f"which {at_lines(later)} reads" if later else "which looks like data"
            yield task("output in a file", line=line, file=file, what=what, here=port.here)


def _foreign_words(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of other GPUs, of other schedulers, and of what hpclaunch's script sets up itself."""
    node, command = port.target.node, settings["command"]
    own = {getattr(node, "gpu_vendor", None), port.target.scheduler.kind}
    others = {owner: pattern for owner, pattern in WORDS["belongs to"].items() if owner not in own}
    texts = {"command": command[-1] if command[:2] == ("bash", "-c") else " ".join(command)}
    texts |= {f"env {name}": f"{name} {value}" for name, value in settings.get("env", {}).items()}
    found = [
        (at, word, by) for at in texts for by in others for word in re.findall(others[by], texts[at], re.M)
    ]
    for where, word, owner in dict.fromkeys(found):
        read = re.search(rf"\$\{{?{re.escape(word)}\b", texts[where])
        case, line = "variable of the scheduler" if read else "foreign word", launch_line(port)
        case = WORDS["tasks of owners"].get(owner, case)
        yield task(case, where=where, word=word, owner=owner, line=line, here=port.here)


def _unread_sizes(port: Port) -> Iterator[str]:
    """Yield the directives whose number is not read, and the words of others that are lost."""
    read = {one.line for one in msgspec.structs.astuple(port.requested) if one}
    for one in () if port.same_machine else port.script.active_directives:
        subject, at = port.words.options.get(one.name), at_lines([one.line])
        if subject in WORDS["numbers"] and one.line not in read:
            yield task("number unread", at=at, text=one.text)
        if subject in WORDS["sizes with words"] and (lost := _lost_words(port, (one.value or "").lower())):
            yield task("lost words", at=at, words=", ".join(lost), text=one.text, here=port.here)


def _lost_words(port: Port, value: str) -> list[str]:
    """Return the words of a directive that are neither about sizes nor true of each node here."""
    node, ranks = port.target.node, port.sizes.tasks_per_node or 1
    known = [port.there, *words_of_nodes(port)]
    asked, memory = re.findall(r"\bmem=(\d+)gb?\b", value), node.memory_gib if node else None
    if asked and memory and max(map(int, asked)) * ranks <= memory:
        known.append("mem")
    said = re.compile("|".join([WORDS["about sizes"], *map(re.escape, known)]))
    return [word for word in re.findall(PIECE, value) if not said.fullmatch(word)]


def _lost_values(port: Port, settings: Mapping[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines whose values are said to stand in the job file, where it does not have them."""
    said, result = port.says("script variable"), str(settings)
    used = set(chain.from_iterable(one.lines for one in judged if one.verdict == said))
    options, program = names_in_launch(port)
    assigned = port.script.variables.assignments
    made = chain.from_iterable(assigned.get(name, ()) for name in sorted(program - options))
    if lost := [one for one in made if one.line in used and _lacks(result, one)]:
        names = ", ".join(dict.fromkeys(one.name for one in lost))
        yield task("lost values", at=at_lines(one.line for one in lost), names=names)


def _lacks(result: str, made: Assignment) -> bool:
    """Tell whether a text lacks a word that a variable is set to, other than a number."""
    texts = [part.text for part in made.value.parts if part.kind == "text"] if made.value else []
    words = chain.from_iterable(re.findall(PIECE, text) for text in texts)
    return any(not word.isdigit() and word not in result for word in words)
