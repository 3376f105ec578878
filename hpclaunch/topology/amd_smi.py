"""Reader of amd-smi: ``static --numa`` (text and ``--json``), and GPU addresses from ``topology``.

``amd-smi topology`` shows how GPUs are linked but not their NUMA nodes; a note says so.
"""

import re
from collections.abc import Iterable, Iterator

from hpclaunch.cpuset import format_cpu_list, parse_mask
from hpclaunch.errors import BadInputError
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.node_topology import GpuFact, Partial, settle_numa

KIND = "amd_smi"

_HINT = "run amd-smi static --numa --json again and save the whole output"
_GPU = re.compile(r"[ \t]*GPU:[ \t]*(\d{1,4})$")
_VALUE = re.compile(r"[ \t]*([A-Z][A-Z_0-9]{0,40}):[ \t]*(.*)$")
_WORD = re.compile(r"CPU_LIST_(\d{1,3})")
_WORD_BITS = 64
_TABLE_TITLE = "ACCESS TABLE:"
_WANTED = ("NODE", "AFFINITY", "BDF", "MARKET_NAME")
_JSON_SECTIONS = ("numa", "bus", "asic")
_JSON_DEPTH = 4
_MAX_GPUS = 10000

_Facts = dict[str, tool.Line]
"""Value by upper-case key; CPU_LIST_n holds the CPU list of the n-th 64 CPUs that are near."""


def read(text: str, origin: str) -> Partial:
    """Read the NUMA node and PCI address of each GPU. Raises BadInputError for damaged output."""
    facts = _facts(text, origin)
    numbers = sorted(facts)
    if numbers != list(range(len(numbers))):
        raise BadInputError(f"{origin}: GPUs {numbers} are not numbered from 0 without a gap", _HINT)
    notes: list[str] = []
    gpus = tuple(_gpu(index, facts[index], origin, notes) for index in numbers)
    if not any("NODE" in values or "AFFINITY" in values for values in facts.values()):
        notes.append(f"amd-smi ({origin}): no NUMA nodes in this output (amd-smi static --numa shows them)")
    return Partial(kind=KIND, origin=origin, gpu_vendor="AMD", gpus=gpus, notes=tuple(notes))


def _facts(text: str, origin: str) -> dict[int, _Facts]:
    """Read the values of each GPU by its number, from any of the three forms."""
    lines = tool.clean_lines(text, origin)
    if any(_GPU.match(line.text) for line in lines):
        return _from_text(lines)
    if any(line.text.strip() == _TABLE_TITLE for line in lines):
        return _from_table(lines, origin)
    if document := tool.json_text(text, origin):
        return _from_json(document, origin)
    raise BadInputError(f"{origin}: this is not the output of amd-smi static or topology", _HINT)


def _from_text(lines: list[tool.Line]) -> dict[int, _Facts]:
    """Read indented ``KEY: value`` lines below each ``GPU: n``."""
    pairs: dict[int, list[tuple[str, tool.Line]]] = {}
    current: list[tuple[str, tool.Line]] = []
    for line in lines:
        if match := _GPU.match(line.text):
            index = int(match.group(1))
            if index in pairs:
                raise line.bad(f"GPU {index} appears twice", tool.ONE_FILE_PER_NODE)
            pairs[index] = current = []
        elif match := _VALUE.match(line.text):
            current.append((match.group(1), line.part(match.group(2))))
    return {index: _facts_of(found) for index, found in pairs.items()}


def _facts_of(pairs: Iterable[tuple[str, tool.Line]]) -> _Facts:
    """Return what is used of one GPU's keys and values, in their order."""
    facts: _Facts = {}
    block = word = ""
    for key, value in pairs:
        if key in ("CPU_AFFINITY", "SOCKET_AFFINITY"):
            block = key
        elif _WORD.fullmatch(key):
            word = key
        elif block == "CPU_AFFINITY":
            _add_cpus(facts, word, key, value)
        if key in _WANTED:
            facts[key] = value
    return facts


def _add_cpus(facts: _Facts, word: str, key: str, value: tool.Line) -> None:
    """Add the CPUs of one ``CPU_LIST_n``: those of BITMASK, else those of CPU_CORES_AFFINITY.

    BITMASK has one bit per CPU of the n-th 64; CPU_CORES_AFFINITY is only the first and the last of them.
    """
    if key == "BITMASK" and (match := _WORD.fullmatch(word)) and value.text.upper() not in ("", "N/A"):
        start = int(match.group(1)) * _WORD_BITS
        cpus = tool.cpus_by(parse_mask, value, _HINT)
        facts[word] = value.part(format_cpu_list(start + cpu for cpu in cpus))
    elif key == "CPU_CORES_AFFINITY":
        facts.setdefault(word, value)


def _from_table(lines: list[tool.Line], origin: str) -> dict[int, _Facts]:
    """Read the PCI addresses that head the table of ``amd-smi topology``."""
    start = next(i for i, line in enumerate(lines) if line.text.strip() == _TABLE_TITLE)
    head = next((line for line in lines[start + 1 :] if line.text.strip()), None)
    if head is None:
        raise BadInputError(f"{origin}: ACCESS TABLE without columns", _HINT)
    addresses = head.text.split()
    if not all(map(tool.bus_id, addresses)):
        raise head.bad("columns that are not PCI addresses", _HINT)
    return {index: {"BDF": head.part(address)} for index, address in enumerate(addresses)}


def _from_json(document: str, origin: str) -> dict[int, _Facts]:
    """Read ``[{"gpu": 0, "numa": {"node": 0, "affinity": 0}, "bus": {...}}]``, also in ``gpu_data``."""
    decoded = tool.decoded_json(document, origin, _HINT)
    entries = decoded.get("gpu_data") if isinstance(decoded, dict) else decoded
    if not isinstance(entries, list) or not entries:
        raise BadInputError(f"{origin}: JSON without a list of GPUs", _HINT)
    facts: dict[int, _Facts] = {}
    for entry in entries:
        index = entry.get("gpu") if isinstance(entry, dict) else None
        if type(index) is not int or not 0 <= index < _MAX_GPUS or index in facts:
            wrong = "an entry has no number 'gpu', or the number of another entry"
            raise BadInputError(f"{origin}: {wrong}", _HINT)
        facts[index] = _facts_of(_json_pairs(entry, origin))
    return facts


def _json_pairs(value: object, origin: str, depth: int = 0) -> Iterator[tuple[str, tool.Line]]:
    """Yield the keys and values of a GPU's entry as the text form has them; null becomes the empty text."""
    for key, inner in value.items() if isinstance(value, dict) and depth < _JSON_DEPTH else ():
        if depth or key in _JSON_SECTIONS or not isinstance(inner, dict | list):
            plain = str(inner).strip() if isinstance(inner, str | int) else ""
            yield str(key).upper(), tool.Line(1, plain, origin)
            if isinstance(inner, list):
                inner = {f"cpu_list_{at}": item for at, item in enumerate(inner)}
            yield from _json_pairs(inner, origin, depth + 1)


def _gpu(index: int, facts: _Facts, origin: str, notes: list[str]) -> GpuFact:
    numa = settle_numa(facts, ("NODE", "AFFINITY"), f"amd-smi ({origin}): GPU {index}", notes)
    model = facts["MARKET_NAME"].text if "MARKET_NAME" in facts else ""
    stated = [value for key, value in facts.items() if _WORD.fullmatch(key)]
    lists = [tool.cpu_list(value) for value in stated if value.text.upper() not in ("", "N/A")]
    return GpuFact(
        index=index,
        numa=numa,
        cpus=frozenset().union(*lists) if lists else None,
        bus_id=tool.bus_id(facts["BDF"].text) if "BDF" in facts else None,
        model=model if model.upper() not in ("", "N/A") else None,
    )
