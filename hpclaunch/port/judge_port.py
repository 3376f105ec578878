"""How a port judges its result: points in which the new job may differ from the script. Pure."""

import re
from collections.abc import Iterator

from hpclaunch.cpuset import format_cpu_list
from hpclaunch.port.port_state import Port, gpus_of

_ARGUMENTS = re.compile(r"\$(?:\{(?:[@*]|\d+)[^}]*\}|[@*\d])")
_SCRIPT = re.compile(r".*\.(sh|bash|job|slurm)")


def open_points(port: Port) -> Iterator[str]:
    """Yield what the user has to check or to decide, each with the lines of the script that it is about."""
    yield from _gpus(port)
    yield from _nodes(port)
    yield from _arguments(port)
    yield from _script_file(port)
    for why, lines in port.verdicts.undecided().items():
        if not any(why in said for said in port.to_do):
            yield f"line{'s' * (len(lines) > 1)} {format_cpu_list(lines)}: {why}"


def _nodes(port: Port) -> Iterator[str]:
    """Compare the nodes of the launch with those that the script requests, and the GPUs of both jobs."""
    asked, used = port.requested.node_count, port.source_sizes.nodes
    if port.launch and asked and used and used < asked:
        yield f"nodes: the script requests {asked}, line {port.launch.line} starts ranks on {used}: set nodes"
    if port.sizes is not None and port.sizes.tasks_per_node is None:
        yield f"ranks: {port.sizes.said}: set nodes and tasks_per_node"
    if port.sizes is not None and "not the same number of GPUs" in port.sizes.said:
        yield f"GPUs: {port.sizes.said}"


def _gpus(port: Port) -> Iterator[str]:
    """Compare the ranks of a node with its GPUs."""
    gpus = gpus_of(port.target)
    per_node, source = port.settings.get("tasks_per_node"), port.source_sizes
    shared = source.gpus and source.ranks and source.ranks > source.gpus  # there, too
    if not gpus or not per_node or per_node <= gpus or source.gpus == 0:
        return
    if source.gpus is None:
        yield (
            f"GPUs: {per_node} ranks share the {gpus} GPUs of a node here, and how many the script has is not"
            " known: --from names its machine, else set nodes and tasks_per_node"
        )
    elif not shared:
        yield f"GPUs: {per_node} ranks share the {gpus} GPUs of a node here: set nodes and tasks_per_node"


def _arguments(port: Port) -> Iterator[str]:
    """Yield the words of the launch that stand for arguments of the script itself."""
    for part in filter(None, (port, port.written)):
        for word in part.launch.program if part.launch else ():
            if match := _ARGUMENTS.search(word.raw):
                yield (
                    f"command: {match[0]} stands for the arguments of the script, which are not known: write"
                    " those of this job into the command"
                )


def _script_file(port: Port) -> Iterator[str]:
    """Yield that the command starts a script, which may read variables of the other machine."""
    words = [word.plain or word.seen for word in port.command.words]
    words = words[1:] if words[:1] in (["bash"], ["sh"]) else words
    if words and _SCRIPT.fullmatch(words[0]):
        where = f" of line {port.launch.line}" if port.launch else ""
        yield (
            f"command: {words[0]}{where} is a script that port does not read: change in it what chooses GPUs"
            f" or cores, starts processes, or reads variables of {port.there}'s scheduler"
        )
