"""The ``#BSUB`` lines of a batch script (IBM's bsub command reference for 10.1; OLCF's guide to Summit)."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from hpclaunch.scheduler import directive_reader
from hpclaunch.walltime import clock_s

# bsub has some 100 options, so one that is not in the table is not called wrong.
_VALUES = directive_reader.word_counts("lsf")
_JOINED = [name for name, count in _VALUES.items() if count]
_GPU_COUNT = re.compile(r"\bnum=(\d{1,6})\b")
_GPU_RESOURCE = re.compile(r"\bngpus(?:_\w+)?=(\d{1,6})\b")
"""In ``rusage``, of a host or of each slot, as the cluster decides: the same for a job of one slot."""
_PER_NODE = re.compile(r"\bptile=(\d{1,6})\b")


def _requested(directives: Sequence[directive_reader.Directive]) -> directive_reader.RequestedResources:
    nodes = directive_reader.given_number(directives, "nnodes")
    tasks = directive_reader.given_number(directives, "n", directive_reader.highest_number)
    per_node = _found(directives, "R", _PER_NODE)
    if nodes is None and tasks and per_node and per_node.value:
        nodes = tasks._replace(value=-(-tasks.value // per_node.value))
    gpus = _found(directives, "gpu", _GPU_COUNT)
    if gpus is None and (tasks is None or tasks.value == 1):
        gpus = _found(directives, "R", _GPU_RESOURCE)
    return directive_reader.RequestedResources(
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=per_node,
        gpus_per_node=gpus,
        walltime_s=directive_reader.given_number(directives, "W", lsf_time_s),
    )


def _found(
    directives: Sequence[directive_reader.Directive], name: str, pattern: re.Pattern[str]
) -> directive_reader.Given | None:
    """Return the last number that the pattern finds in the values of an option, which may stand twice."""
    found = None
    for each in directives:
        if each.name == name and (match := pattern.search(each.value or "")):
            found = directive_reader.Given(int(match[1]), each.line, each.text)
    return found


def lsf_time_s(text: str) -> int | None:
    """Read a run limit as LSF does (bsub -W): minutes or hours:minutes, perhaps followed by ``/host``."""
    return clock_s(r"(?:(?P<h>\d{1,6}):)?(?P<m>\d{1,9})(?:/.+)?", text)


def _read_array(name: str) -> str | None:
    match = re.search(r"\[([\d,:-]+)\](%\d+)?$", name.strip())
    return f"{match[1]}{match[2] or ''}" if match else None


DIRECTIVES = directive_reader.DirectiveReader(
    **directive_reader.DirectiveReader.facts("lsf"),
    read=lambda words: (
        replace(option, known=option.name != "")
        for option in directive_reader.word_options(words, _VALUES, _JOINED)
    ),
    requested=_requested,
    read_array=_read_array,
    read_name=lambda text: re.sub(r"\[.*", "", text),
)
