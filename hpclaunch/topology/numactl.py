"""Reader of ``numactl -H`` (``--hardware``), also with lines that a mail program wrapped."""

import re

from hpclaunch.cpuset import MAX_CPU, CpuSet, parse_cpu_list
from hpclaunch.errors import BadInputError
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.node_topology import NumaNode, Partial

KIND = "numactl"

_HINT = "run LC_ALL=C numactl -H again and save the whole output"
_AVAILABLE = re.compile(r"[ \t]*available: (\d{1,6}) nodes? \(([\d,-]{0,8000})\)")
_CPUS = re.compile(r"[ \t]*node (\d{1,6}) cpus:(.*)")
_SIZE = re.compile(r"[ \t]*node (\d{1,6}) size:[ \t]*(\d{1,12}) ?MB")
_MIB = 1024 * 1024


def read(text: str, origin: str) -> Partial:
    """Read the NUMA nodes, their CPUs and memory. Raises BadInputError for damaged output."""
    lines = tool.clean_lines(text, origin)
    nodes = _cpus(lines)
    memory = {int(found[1]): int(found[2]) * _MIB for line in lines if (found := _SIZE.match(line.text))}
    if not nodes:
        raise BadInputError(f"{origin}: no line such as 'node 0 cpus: 0 1 2 3'", _HINT)
    listed = _listed(lines)
    if listed is not None and listed != nodes.keys():
        odd = min(listed ^ nodes.keys())
        where = "announced but has no line 'cpus'" if odd in listed else "shown but not announced"
        raise BadInputError(f"{origin}: node {odd} is {where}", _HINT)
    return Partial(
        kind=KIND,
        origin=origin,
        numa_nodes=tuple(
            NumaNode(id=node, cpus=cpus, memory_bytes=memory.get(node))
            for node, cpus in sorted(nodes.items())
        ),
        numa_count=len(listed) if listed is not None else None,
    )


def _cpus(lines: list[tool.Line]) -> dict[int, CpuSet]:
    """Read the CPU lines; a line of numbers alone continues the CPU line before it."""
    cpus: dict[int, list[int]] = {}
    open_node: int | None = None
    for line in lines:
        if match := _CPUS.match(line.text):
            node = tool.numa_id(line.part(match.group(1)))
            if node is None or node in cpus:
                raise line.bad(f"node {match.group(1)} appears twice", tool.ONE_FILE_PER_NODE)
            open_node, cpus[node] = node, []
            rest = match.group(2)
        elif open_node is not None and re.fullmatch(r"[\d \t]+", line.text):
            rest = line.text
        else:
            open_node = None
            continue
        cpus[open_node] += _numbers(line.part(rest))
    return {node: frozenset(found) for node, found in cpus.items()}


def _numbers(line: tool.Line) -> list[int]:
    cpus = []
    for word in line.text.split():
        cpu = tool.whole_number(word)
        if cpu is None or cpu > MAX_CPU:
            raise line.bad(f"{tool.shorten(word)} among the CPUs", _HINT)
        cpus.append(cpu)
    return cpus


def _listed(lines: list[tool.Line]) -> frozenset[int] | None:
    """Read ``available: 6 nodes (0,8,252-255)``: the node numbers, None without that line."""
    for line in lines:
        if match := _AVAILABLE.match(line.text):
            listed = tool.cpus_by(parse_cpu_list, line.part(match.group(2)), _HINT)
            if len(listed) != int(match.group(1)):
                raise line.bad(tool.shorten(line.text.strip()), "the count and the list must agree")
            return listed
    return None
