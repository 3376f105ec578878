"""Reader of ``nvidia-smi topo -m``, CPU and NUMA affinity of each GPU, and of ``nvidia-smi -L``.

The matrix of links does not describe CPUs; it only serves to check that rows and columns fit.
The CPU affinity column is cut off after some ten characters, and inside a job it shows the job's CPUs only.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from hpclaunch.cpuset import CpuSet
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.package_data import package_constants, package_patterns
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.node_topology import GpuFact, Partial

KIND = "nvidia_smi"

_WORD = package_constants("topology/forms.json", "nvidia_smi")
_FORM = package_patterns("topology/forms.json", "nvidia_smi")
_ROW_END = re.compile(rf"{_FORM.link.pattern}|[\d,-]{{1,4000}}")


class _Header(NamedTuple):
    """The columns: devices, then affinities."""

    devices: list[str]
    affinities: list[str]
    number: int
    tabs: bool


def read(text: str, origin: str) -> Partial:
    """Read the affinities of each GPU row, and the list of GPUs and MIG instances.

    Raises BadInputError when there is no matrix or rows and columns do not fit: a cell that is missing in the
    middle would shift all that follow, so no cell is guessed.
    """
    plain = tool.clean_lines(text, origin)
    listed = listed_gpus(plain, origin)
    lines = _unwrapped(plain)
    if listed and not any(_is_header(line.text) for line in lines):
        return _partial(listed, (), origin)
    header = _header(lines, origin)
    rows = _rows(header, lines, origin)
    return _partial(joined_list(rows, listed, origin), _notes(header, len(rows), origin), origin)


def _partial(gpus: Sequence[GpuFact], notes: Sequence[str], origin: str) -> Partial:
    found = list(notes)
    if instances := sum(1 for gpu in gpus if gpu.uuid and gpu.uuid.startswith("MIG-")):
        found.append(note_text("GPUs: MIG instances", origin=origin, instances=instances))
    return Partial(kind=KIND, origin=origin, gpus=tuple(gpus), gpu_vendor="NVIDIA", notes=tuple(found))


def _rows(header: _Header, lines: list[tool.Line], origin: str) -> list[GpuFact]:
    gpus: list[GpuFact] = []
    for line in lines:
        match = re.match(r"[ \t]*GPU(\d{1,4})[ \t]+(?=\S)", line.text)
        if line.number <= header.number or not match:
            continue
        gpu = int(match.group(1))
        if _is_header(line.text):  # of another matrix, as nvidia-smi topo -p2p prints
            break
        if gpu != len(gpus):
            raise line.bad(f"row GPU{gpu} follows {len(gpus)} rows", "rows in order from GPU0")
        gpus.append(_row(header, gpu, line))
    if not gpus:
        raise BadInputError(f"{origin}: a header of columns but no row GPU0", _WORD.hint)
    return gpus


def _unwrapped(lines: list[tool.Line]) -> list[tool.Line]:
    """Drop remains of colour codes; join lines that a mail program or a narrow terminal broke."""
    joined: list[tool.Line] = []
    for line in lines:
        text = _FORM.bare_colour.sub("", line.text)
        before = joined[-1].text if joined else ""
        # the end of the line before: of the column names, or of the cells of a row
        end = _ROW_END if _is_row(before) else _FORM.header_end
        words = text.split()
        if words and before.lstrip().startswith("GPU") and all(map(end.fullmatch, words)):
            # nothing stood between the halves where a CPU list was broken in its middle
            cut = before.endswith((",", "-")) or text.lstrip().startswith((",", "-"))
            between = "" if cut else "\t" if "\t" in before.strip() else " "
            joined[-1] = joined[-1]._replace(text=before + between + text.strip())
        else:
            joined.append(line._replace(text=text))
    return joined


def _is_row(text: str) -> bool:
    """Tell a row (``GPU0   X   NV4 ...``) from the line of column names, which begins with GPU0 as well."""
    words = text.split()
    return len(words) > 1 and _FORM.link.fullmatch(words[1]) is not None


def _is_header(text: str) -> bool:
    """Tell the line of column names: it begins with GPU0 and is not a row."""
    return text.split()[:1] == ["GPU0"] and not _is_row(text)


def _notes(header: _Header, rows: int, origin: str) -> tuple[str, ...]:
    named = sum(1 for name in header.devices if name.startswith("GPU"))
    notes = []
    if rows < named:
        notes.append(note_text("GPUs: output cut off", origin=origin, named=named, rows=rows))
    if not header.affinities:
        notes.append(note_text("GPUs: no affinity", origin=origin))
    return tuple(notes)


def _header(lines: list[tool.Line], origin: str) -> _Header:
    for line in lines:
        if line.text.lstrip().startswith("|") and "GPU0" in line.text.split():
            raise line.bad("a table in Markdown, not nvidia-smi's own output", _WORD.hint)
        if _is_header(line.text):
            return _split_header(line)
    if any("closest CPU" in line.text for line in lines):
        raise BadInputError(f"{origin}: output of nvidia-smi topo -C, which names no GPU", _WORD.hint)
    raise BadInputError(f"{origin}: no line of column names 'GPU0 ... CPU Affinity'", _WORD.hint)


def _split_header(line: tool.Line) -> _Header:
    # Split at blanks, not inside the names of affinity columns, and between names that a terminal glued.
    text = re.sub(r"(?<=\d)(?=(?:GPU|NIC|mlx5_)\d)", " ", line.text)
    for column in _WORD.columns:
        text = re.sub(column.replace(" ", r"[ \t]+"), column.replace(" ", "_"), text)
    joined = {column.replace(" ", "_"): column for column in _WORD.columns}
    columns = [joined.get(word, word) for word in text.split()]
    devices = [column for column in columns if column not in _WORD.columns]
    affinities = [column for column in columns if column in _WORD.columns]
    if columns != devices + affinities or affinities != list(_WORD.columns[: len(affinities)]):
        raise line.bad(f"columns in another order: {tool.shorten(line.text.strip())}", _WORD.hint)
    _check_devices(devices, line)
    return _Header(devices, affinities, line.number, "\t" in line.text.strip())


def _check_devices(devices: list[str], line: tool.Line) -> None:
    gpus = [device for device in devices if device.startswith("GPU")]
    if devices[: len(gpus)] != [f"GPU{i}" for i in range(len(gpus))]:
        raise line.bad("the GPU columns are not GPU0, GPU1, ... in order", _WORD.hint)
    if odd := [device for device in devices if not _FORM.device.fullmatch(device)]:
        raise line.bad(f"column {tool.shorten(odd[0])}", _WORD.hint)


def _row(header: _Header, gpu: int, line: tool.Line) -> GpuFact:
    cells, rest = _cells(header, line)
    wrong = [cell for cell in cells if not _FORM.link.fullmatch(cell)]
    if wrong:
        raise line.bad(f"{tool.shorten(wrong[0])} in row GPU{gpu} where a link is expected", _WORD.hint)
    if gpu >= len(cells) or cells[gpu] != "X" or cells.count("X") != 1:
        raise line.bad(f"row GPU{gpu} has no X in column GPU{gpu}: cells are missing", _WORD.hint)
    values = dict.fromkeys(_WORD.columns, line.part("")) | dict(
        zip(header.affinities, map(line.part, rest), strict=True)
    )
    cpus, affinity, own = values.values()
    nodes = _nodes(affinity)
    return GpuFact(
        index=gpu,
        numa=min(nodes) if len(nodes) == 1 else None,
        numa_candidates=nodes if len(nodes) > 1 else frozenset(),
        memory_numa=tool.numa_id(own),
        cpus=_cpus(cpus),
        cpus_text=cpus.text or None,
    )


def _cells(header: _Header, line: tool.Line) -> tuple[list[str], list[str]]:
    """Split a row into links and affinities; an affinity may be empty only where tabs separate the cells."""
    width, named = len(header.devices), len(header.affinities)
    if header.tabs and "\t" in line.text.strip():
        cells = [cell.strip() for cell in line.text.strip().split("\t")][1:]
        rest = _between_tabs(cells[width:], named)
    else:
        cells = line.text.split()[1:]
        rest = cells[width:]
        if rest in ([], ["N/A"]):
            rest = [""] * named
    if len(rest) != named:
        raise line.bad(
            f"{len(cells)} cells, {width + named} columns: cells are missing or too many", _WORD.hint
        )
    return cells[:width], rest


def _between_tabs(cells: list[str], named: int) -> list[str]:
    """Return the affinities: the driver prints two tabs after that of NUMA, and before it where it is N/A."""
    filled = [cell for cell in cells if cell]
    if len(filled) == named:
        return filled
    if len(cells) == 4 and not cells[2]:
        cells = [cells[0], cells[1], cells[3]]
    return cells + [""] * (named - len(cells))


def _nodes(value: tool.Line) -> frozenset[int]:
    """Read one NUMA node, several (``0,5-11``: those near the GPU, most of them without CPUs), or none."""
    if "," in value.text or re.fullmatch(r"\d+-\d+", value.text):
        return tool.cpu_list(value)
    node = tool.numa_id(value)
    return frozenset() if node is None else frozenset((node,))


def _cpus(value: tool.Line) -> CpuSet | None:
    """Read the CPU affinity; a last number below those before it was cut off and is left out."""
    if value.text.upper() in ("", "N/A"):
        return None
    head, _, last = value.text.rpartition(",")
    end = tool.whole_number(last)
    if head and end is not None and end <= max(before := tool.cpu_list(value.part(head)), default=-1):
        return before
    return tool.cpu_list(value)


# Source of the format: NVIDIA's MIG User Guide, "Getting Started with MIG" (driver R470 and newer: MIG-UUID).


def listed_gpus(lines: Sequence[tool.Line], origin: str) -> list[GpuFact]:
    """Return GPUs and MIG instances in the order of the list; empty where there is none.

    A GPU with instances is left out: only these can be used. Raises BadInputError for a damaged list.
    """
    gpus: list[GpuFact] = []
    instances: dict[int, list[GpuFact]] = {}
    for line in lines:
        if match := _FORM.listed_gpu.match(line.text):
            number = int(match[1])
            if number != len(gpus):
                raise line.bad(f"GPU {number} follows {len(gpus)} GPUs", _WORD.list_hint)
            gpus.append(GpuFact(index=number, device=number, model=match[2], uuid=match[3]))
        elif match := _FORM.listed_instance.match(line.text):
            if not gpus:
                raise line.bad("a MIG instance before the line of its GPU", _WORD.list_hint)
            model = f"{gpus[-1].model} MIG {match[1]}"
            instance = msgspec.structs.replace(gpus[-1], model=model, uuid=match[2])
            instances.setdefault(instance.index, []).append(instance)
    usable = [part for gpu in gpus for part in instances.get(gpu.index, [gpu])]
    return [msgspec.structs.replace(gpu, index=index) for index, gpu in enumerate(usable)]


def joined_list(rows: Sequence[GpuFact], listed: Sequence[GpuFact], origin: str) -> list[GpuFact]:
    """Return the listed GPUs with the affinities of the matrix; the rows where nothing is listed.

    Raises BadInputError where the two show different GPUs.
    """
    if not listed:
        return list(rows)
    row_of = {row.index: row for row in rows}
    if {gpu.device for gpu in listed} != set(row_of):
        raise BadInputError(
            f"{origin}: the matrix has {len(rows)} GPUs, the list has others", _WORD.list_hint
        )
    return [
        msgspec.structs.replace(
            row_of[gpu.device or 0], index=gpu.index, device=gpu.device, model=gpu.model, uuid=gpu.uuid
        )
        for gpu in listed
    ]
