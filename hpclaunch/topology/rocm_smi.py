"""Reader of ``rocm-smi --showtoponuma`` (text and ``--json``), in the spellings of ROCm 4 to 7.

There are two numbers per GPU: "Numa Node" comes from the driver's topology, "Numa Affinity" from /sys (-1
means that the kernel does not know the node). Lines of ``--showbus`` are read too.
"""

import re

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.node_topology import GpuFact, Partial, settle_numa

KIND = "rocm_smi"

_WORD = package_constants("topology/forms.json", "rocm_smi")
_FORM = package_patterns("topology/forms.json", "rocm_smi")
_USEFUL = frozenset({*_WORD.columns, "PCI Bus"})

_Values = dict[str, tool.Line]
"""The values of one GPU by key."""


def read(text: str, origin: str) -> Partial:
    """Read the NUMA node of each GPU. Raises BadInputError for a damaged capture or one without GPUs."""
    lines = tool.clean_lines(text, origin)
    if any(_FORM.entry.match(line.text) for line in lines):
        cards = _from_text(lines)
    else:
        document = tool.json_text(text, origin)
        if not document.startswith("{"):
            raise BadInputError(f"{origin}: no line such as 'GPU[0] : (Topology) Numa Node: 3'", _WORD.hint)
        cards = _from_json(document, origin)
    notes: list[str] = []
    if "====" in text and "End of ROCm" not in text:
        notes.append(f"rocm-smi ({origin}): no line 'End of ROCm SMI Log': the output may be cut off")
    gpus = tuple(_gpu(index, cards[key], origin, notes) for index, key in enumerate(sorted(cards)))
    if all(_USEFUL.isdisjoint(values) for values in cards.values()):
        raise BadInputError(f"{origin}: GPUs but neither NUMA nodes nor PCI addresses", _WORD.hint)
    _check_complete(cards, origin)
    return Partial(kind=KIND, origin=origin, gpu_vendor="AMD", gpus=gpus, notes=tuple(notes))


def _from_text(lines: list[tool.Line]) -> dict[tuple[int, int], _Values]:
    """Read the values of each GPU by (card, partition)."""
    cards: dict[tuple[int, int], _Values] = {}
    for line in lines:
        if match := _FORM.entry.match(line.text):
            gpu, partition, key, value = match.groups()
            values = cards.setdefault((int(gpu), int(partition or 0)), {})
            _put(values, "Card series" if key.startswith("Card") else key, line.part(value))
        elif _FORM.started.match(line.text):
            raise line.bad(f"{tool.shorten(line.text.strip())} is cut off", _WORD.hint)
    return cards


def _put(values: _Values, key: str, value: tool.Line) -> None:
    if key.startswith("Numa") and not value.text:
        raise value.bad(f"{key} without a value", _WORD.hint)
    before = values.setdefault(key, value)
    if before.text != value.text:
        found = f"{key} is {value.text}, but {before.text} in line {before.number}"
        raise value.bad(found, tool.ONE_FILE_PER_NODE)
    values[key] = value


def _from_json(text: str, origin: str) -> dict[tuple[int, int], _Values]:
    """Read ``{"card0": {"(Topology) Numa Node": "0", ...}, "system": {...}}``."""
    document = tool.decoded_json(text, origin, _WORD.hint)
    cards: dict[tuple[int, int], _Values] = {}
    for card, entry in document.items() if isinstance(document, dict) else ():
        match = re.fullmatch(r"card(\d{1,4})", card)
        if not match or not isinstance(entry, dict):
            continue
        values = cards.setdefault((int(match.group(1)), 0), {})
        for key, value in entry.items():
            name = key.removeprefix("(Topology) ").strip()
            name = "Card series" if name.lower() == "card series" else name
            if name in (*_USEFUL, "Card series"):
                _put(values, name, tool.Line(1, str(value).strip(), origin))
    if not cards:
        raise BadInputError(f"{origin}: JSON without card0, card1, ...", _WORD.hint)
    return cards


def _gpu(index: int, values: _Values, origin: str, notes: list[str]) -> GpuFact:
    numa = settle_numa(values, _WORD.columns, f"rocm-smi ({origin}): GPU {index}", notes)
    bus, series = values.get("PCI Bus"), values.get("Card series")
    return GpuFact(
        index=index,
        numa=numa,
        bus_id=tool.bus_id(bus.text) if bus else None,
        model=series.text if series else None,
    )


def _check_complete(cards: dict[tuple[int, int], _Values], origin: str) -> None:
    """Refuse gaps in the numbering and GPUs that lack a value that others have: lines are missing."""
    numbers = sorted({gpu for gpu, _ in cards})
    missing = sorted(set(range(numbers[-1] + 1)) - set(numbers))
    if missing:
        raise BadInputError(
            f"{origin}: GPU {missing[0]} is missing but GPU {numbers[-1]} is there", _WORD.hint
        )
    for key in _WORD.columns:
        lacking = [gpu for (gpu, _), values in sorted(cards.items()) if key not in values]
        if lacking and len(lacking) < len(cards):
            raise BadInputError(
                f"{origin}: GPU {lacking[0]} has no line '{key}', other GPUs have it", _WORD.hint
            )
