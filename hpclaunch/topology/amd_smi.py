"""Reader of amd-smi: ``static --numa`` (text and ``--json``), and GPU addresses from ``topology``.

``amd-smi topology`` shows how GPUs are linked but not their NUMA nodes; a note says so.
"""

import re
from collections.abc import Mapping
from typing import Any

from hpclaunch.cpuset import CpuSet, format_cpu_list, parse_mask
from hpclaunch.errors import BadInputError
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.partial import GpuFact, Partial, settle_numa

KIND = "amd_smi"

_HINT = "run amd-smi static --numa --json again and save the whole output"
_GPU = re.compile(r"[ \t]*GPU:[ \t]*(\d{1,4})$")
_VALUE = re.compile(r"[ \t]*([A-Z][A-Z_0-9]{0,40}):[ \t]*(.*)$")
_WORD = re.compile(r"CPU_LIST_(\d{1,3})")
_WORD_BITS = 64
_TABLE_TITLE = "ACCESS TABLE:"
_WANTED = ("NODE", "AFFINITY", "BDF", "MARKET_NAME")
_JSON_SECTIONS = ("numa", "bus", "asic")
_MAX_GPUS = 10000

_Facts = dict[str, tuple[str, int]]
"""Value and line by upper-case key; CPU_LIST_n holds the CPU list of the n-th 64 CPUs that are near."""


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
        return _from_text(lines, origin)
    if any(line.text.strip() == _TABLE_TITLE for line in lines):
        return _from_table(lines, origin)
    if document := tool.json_text(text, origin):
        return _from_json(document, origin)
    raise BadInputError(f"{origin}: this is not the output of amd-smi static or topology", _HINT)


def _from_text(lines: list[tool.Line], origin: str) -> dict[int, _Facts]:
    """Read indented ``KEY: value`` lines below each ``GPU: n``."""
    facts: dict[int, _Facts] = {}
    current: _Facts | None = None
    block = word = ""
    for line in lines:
        if match := _GPU.match(line.text):
            index = int(match.group(1))
            if index in facts:
                raise line.bad(f"GPU {index} appears twice", tool.ONE_FILE_PER_NODE)
            current, block = facts.setdefault(index, {}), ""
        elif current is not None and (match := _VALUE.match(line.text)):
            key, value = match.group(1), match.group(2).strip()
            if key in ("CPU_AFFINITY", "SOCKET_AFFINITY"):
                block = key
            elif _WORD.fullmatch(key):
                word = key
            elif block == "CPU_AFFINITY":
                _add_cpus(current, word, key, value, origin, line.number)
            if key in _WANTED:
                current[key] = (value, line.number)
    return facts


def _add_cpus(facts: _Facts, word: str, key: str, value: str, origin: str, number: int) -> None:
    """Add the CPUs of one ``CPU_LIST_n``: those of BITMASK, else those of CPU_CORES_AFFINITY.

    BITMASK has one bit per CPU of the n-th 64; CPU_CORES_AFFINITY is only the first and the last of them.
    """
    if key == "BITMASK" and (match := _WORD.fullmatch(word)) and value.upper() not in ("", "N/A"):
        start = int(match.group(1)) * _WORD_BITS
        try:
            cpus = parse_mask(value)
        except BadInputError as error:
            raise tool.bad_line(origin, number, error.message[:200], _HINT) from None
        facts[word] = (format_cpu_list(start + cpu for cpu in cpus), number)
    elif key == "CPU_CORES_AFFINITY":
        facts.setdefault(word, (value, number))


def _from_table(lines: list[tool.Line], origin: str) -> dict[int, _Facts]:
    """Read the PCI addresses that head the table of ``amd-smi topology``."""
    start = next(i for i, line in enumerate(lines) if line.text.strip() == _TABLE_TITLE)
    for line in lines[start + 1 :]:
        addresses = line.text.split()
        if addresses:
            break
    else:
        raise BadInputError(f"{origin}: ACCESS TABLE without columns", _HINT)
    if not all(tool.bus_id(address) for address in addresses):
        raise line.bad("columns that are not PCI addresses", _HINT)
    return {index: {"BDF": (address, line.number)} for index, address in enumerate(addresses)}


def _from_json(document: str, origin: str) -> dict[int, _Facts]:
    """Read ``[{"gpu": 0, "numa": {"node": 0, "affinity": 0}, "bus": {...}}]``, also in ``gpu_data``."""
    facts: dict[int, _Facts] = {}
    for entry in _json_entries(document, origin):
        index = entry.get("gpu") if isinstance(entry, dict) else None
        if type(index) is not int or not 0 <= index < _MAX_GPUS or index in facts:
            raise BadInputError(
                f"{origin}: an entry has no number 'gpu', or the number of another entry", _HINT
            )
        facts[index] = _json_facts(entry, origin)
    return facts


def _json_entries(document: str, origin: str) -> list[Any]:
    decoded = tool.decoded_json(document, origin, _HINT)
    entries = decoded.get("gpu_data") if isinstance(decoded, dict) else decoded
    if not isinstance(entries, list) or not entries:
        raise BadInputError(f"{origin}: JSON without a list of GPUs", _HINT)
    return entries


def _json_facts(entry: Mapping[str, object], origin: str) -> _Facts:
    """Return the values of one GPU's entry: those at its top, then those of its sections."""
    facts: _Facts = {}
    for section in (entry, *(entry.get(name) for name in _JSON_SECTIONS)):
        if isinstance(section, Mapping):
            facts.update(_wanted_values(section))
    _add_json_cpus(facts, entry.get("numa"), origin)
    return facts


def _wanted_values(section: Mapping[str, object]) -> _Facts:
    """Return the values that the reader uses; null becomes the empty text."""
    return {
        str(key).upper(): ("" if value is None else str(value), 1)
        for key, value in section.items()
        if str(key).upper() in _WANTED and isinstance(value, str | int | None)
    }


def _add_json_cpus(facts: _Facts, numa: object, origin: str) -> None:
    """Add the CPUs of ``cpu_affinity``: ``{"cpu_list_0": {"bitmask": ..., "cpu_cores_affinity": ...}}``."""
    affinity = numa.get("cpu_affinity") if isinstance(numa, dict) else None
    if isinstance(affinity, list):
        affinity = {f"cpu_list_{at}": item for at, item in enumerate(affinity)}
    for word, item in affinity.items() if isinstance(affinity, dict) else ():
        for key in ("bitmask", "cpu_cores_affinity"):
            if isinstance(item, dict) and isinstance(value := item.get(key), str):
                _add_cpus(facts, word.upper(), key.upper(), value.strip(), origin, 1)


def _gpu(index: int, facts: _Facts, origin: str, notes: list[str]) -> GpuFact:
    numa = settle_numa(facts, ("NODE", "AFFINITY"), origin, f"amd-smi ({origin}): GPU {index}", notes)
    model = facts.get("MARKET_NAME", ("", 0))[0]
    return GpuFact(
        index=index,
        numa=numa,
        cpus=_cpus(facts, origin),
        bus_id=tool.bus_id(facts["BDF"][0]) if "BDF" in facts else None,
        model=model if model.upper() not in ("", "N/A") else None,
    )


def _cpus(facts: _Facts, origin: str) -> CpuSet | None:
    stated = [facts[key] for key in facts if _WORD.fullmatch(key)]
    lists = [(text, number) for text, number in stated if text.strip().upper() not in ("", "N/A")]
    return (
        frozenset().union(*(tool.cpu_list(text, origin, number) for text, number in lists)) if lists else None
    )
