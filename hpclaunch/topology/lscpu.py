"""Reader of lscpu: its text (flat or in sections), ``-J`` (flat or nested) and ``-p=`` with its header.

Field names are translated in other locales. Lines with "NUMA" and one number are the same in all of
them and are read; the other lines of a translated output are not (run lscpu with ``LC_ALL=C``).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from hpclaunch.amounts import grouped
from hpclaunch.cpuset import MAX_CPU, CpuSet, parse_mask
from hpclaunch.errors import BadInputError, note_text
from hpclaunch.topology import tool_text as tool
from hpclaunch.topology.node_topology import Core, NumaNode, Partial

KIND = "lscpu"

_HINT = "run LC_ALL=C lscpu, or LC_ALL=C lscpu -p=CPU,CORE,SOCKET,NODE,CACHE, and save the whole output"
_L3 = re.compile(r"[^(]{0,60}\((\d{1,6}) instances?\)")
_MASK_KEY = "On-line CPU(s) mask"
_TABLE = re.compile(r"[ \t]*#[ \t]*(CPU(?:,.*)?)$", re.IGNORECASE)
_MAX_DEPTH = 8


class _Field(NamedTuple):
    """One named value of the text or JSON form."""

    key: str
    line: tool.Line
    """Its text is the value."""


def read(text: str, origin: str) -> Partial:
    """Read CPUs, cores, caches, NUMA nodes. Raises BadInputError: damaged, or with neither nodes nor CPUs."""
    lines = tool.clean_lines(text, origin)
    table = _table(lines, origin)
    document = tool.json_text(text, origin) if '"lscpu"' in text else ""
    fields = list(_json_fields(document, origin)) if document else _text_fields(lines, table is not None)
    if not fields and table is None:
        raise BadInputError(f"{origin}: this is not the output of lscpu", _HINT)
    return _join(fields, table, origin)


def _text_fields(lines: list[tool.Line], has_table: bool) -> list[_Field]:
    """Split ``key: value`` lines; a Chinese or Japanese locale prints a full-width colon."""
    fields = []
    for line in lines:
        if has_table and line.text.lstrip().startswith("#"):
            continue
        if match := re.match(r"[ \t]*([^:\uff1a]{1,80})[:\uff1a][ \t]*(.*)", line.text):
            fields.append(_Field(match.group(1).strip(), line.part(match.group(2))))
    return fields


def _json_fields(document: str, origin: str) -> Iterator[_Field]:
    """Walk ``{"lscpu": [{"field": "CPU(s):", "data": "8", "children": [...]}]}``; empty data is null."""
    decoded = tool.decoded_json(document, origin, _HINT)
    entries = decoded.get("lscpu") if isinstance(decoded, dict) else None
    if not isinstance(entries, list):
        raise BadInputError(f"{origin}: JSON without a list 'lscpu'", _HINT)
    yield from _walk(entries, origin, 0)


def _walk(entries: list[object], origin: str, depth: int) -> Iterator[_Field]:
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("field"), str) or depth > _MAX_DEPTH:
            raise BadInputError(f"{origin}: an entry of 'lscpu' without 'field'", _HINT)
        data = entry.get("data")
        value = tool.Line(1, "" if data is None else str(data), origin)
        yield _Field(entry["field"].rstrip(":\uff1a "), value)
        children = entry.get("children")
        if isinstance(children, list):
            yield from _walk(children, origin, depth + 1)


def _join(fields: list[_Field], table: Partial | None, origin: str) -> Partial:
    values = grouped((field.key, field) for field in fields)
    as_masks = _prints_masks(fields)
    numa = _numa_lists(fields, as_masks)
    online_list = _single(values, "On-line CPU(s) list") or _single(values, _MASK_KEY)
    stated_online = _cpus(online_list.line, as_masks) if online_list else None
    if table is None and not numa and stated_online is None:
        raise BadInputError(f"{origin}: neither NUMA nodes nor a list of CPUs", _HINT)
    table = table or Partial(kind=KIND, origin=origin)
    translated = [note_text("lscpu: translated", origin=origin)] * _is_translated(fields)
    return msgspec.structs.replace(
        table,
        online=_common(table.online, stated_online),
        cpu_count=_number(values, "CPU(s)"),
        threads_per_core=_number(values, "Thread(s) per core"),
        cores_per_socket=_number(values, "Core(s) per socket"),
        sockets=_number(values, "Socket(s)"),
        architecture=values["Architecture"][0].line.text if "Architecture" in values else None,
        virtual="Hypervisor vendor" in values,
        l3_instances=_l3_instances(values),
        numa_nodes=numa or table.numa_nodes,
        numa_count=_number(values, "NUMA node(s)"),
        notes=(*table.notes, *translated),
    )


def _prints_masks(fields: list[_Field]) -> bool:
    """Tell whether this is ``lscpu -x``, whose masks have no 0x: one is named, or has the digits a to f."""
    sets = [field.line.text for field in fields if _is_numa_line(field.key)]
    return any(field.key == _MASK_KEY for field in fields) or any(
        re.fullmatch(r"[0-9a-fA-F]*[a-fA-F][0-9a-fA-F]*", value) for value in sets
    )


def _is_translated(fields: list[_Field]) -> bool:
    return any(_is_numa_line(field.key) and not field.key.startswith("NUMA node") for field in fields)


def _common(one: CpuSet | None, other: CpuSet | None) -> CpuSet | None:
    """Return the CPUs in both sets; where only one is known, that one."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _l3_instances(values: dict[str, list[_Field]]) -> int | None:
    """Return n of ``L3 cache: 256 MiB (n instances)``."""
    field = _single(values, "L3 cache") or _single(values, "L3")
    match = _L3.match(field.line.text) if field else None
    return int(match.group(1)) if match else None


def _is_numa_line(key: str) -> bool:
    """Tell whether this names one NUMA node's CPUs, in any language: NUMA and one number."""
    return "NUMA" in key and len(key) <= 60 and len(re.findall(r"\d+", key)) == 1


def _single(values: dict[str, list[_Field]], key: str) -> _Field | None:
    """Return the field of this name, None where it is absent or, on hybrid processors, ambiguous."""
    found = values.get(key, [])
    return found[0] if found and all(field.line.text == found[0].line.text for field in found) else None


def _number(values: dict[str, list[_Field]], key: str) -> int | None:
    field = _single(values, key)
    return None if field is None or field.line.text in ("", "-") else tool.required_number(field.line)


def _numa_lists(fields: list[_Field], as_masks: bool) -> tuple[NumaNode, ...]:
    """Read ``NUMA node3 CPU(s): 24-31,56-63``, in any language: NUMA, one number, a CPU list."""
    nodes: dict[int, tuple[CpuSet, int]] = {}
    for field in fields:
        if not _is_numa_line(field.key):
            continue
        node = tool.numa_id(field.line.part(re.findall(r"\d+", field.key)[0]))
        if node is None:
            continue
        cpus = _cpus(field.line, as_masks)
        if node in nodes and nodes[node][0] != cpus:
            found = f"NUMA node {node} appears again, with other CPUs than in line {nodes[node][1]}"
            raise field.line.bad(found, tool.ONE_FILE_PER_NODE)
        nodes[node] = (cpus, field.line.number)
    return tuple(NumaNode(id=node, cpus=cpus) for node, (cpus, _) in sorted(nodes.items()))


def _cpus(value: tool.Line, as_masks: bool) -> CpuSet:
    """Read a CPU list, or the mask that ``lscpu -x`` prints instead."""
    if not value.text or not (as_masks or value.text.startswith("0x")):
        return tool.cpu_list(value)
    return tool.cpus_by(parse_mask, value, "masks look like 0xff")


class _Row(NamedTuple):
    """One CPU of the ``-p`` form."""

    cpu: int
    core: str | None
    """The values that distinguish its core from all other cores; None where the table has no core column."""
    numa: int | None
    socket: int | None
    l3: str | None


def _table(lines: list[tool.Line], origin: str) -> Partial | None:
    """Read the first ``# CPU,Core,...`` table; None where there is none."""
    headers = [(i, match.group(1)) for i, line in enumerate(lines) if (match := _TABLE.match(line.text))]
    if not headers:
        if any(re.fullmatch(r"\d+(,\d*){2,12}", line.text.strip()) for line in lines[:8]):
            raise BadInputError(f"{origin}: rows of lscpu -p without the line '# CPU,Core,...'", _HINT)
        return None
    first, names = headers[0]
    header = [name.strip() for name in names.lower().split(",")]
    rows = _rows(lines[first + 1 :], header)
    if not rows:
        raise lines[first].bad("a header of lscpu -p without rows", _HINT)
    notes = (f"lscpu ({origin}): several tables; the first was read",) if len(headers) > 1 else ()
    cores, nodes = _table_cores(rows, header), _table_nodes(rows)
    return Partial(
        kind=KIND, origin=origin, cores=cores, online=frozenset(rows), numa_nodes=nodes, notes=notes
    )


def _rows(lines: list[tool.Line], header: list[str]) -> dict[int, _Row]:
    """Read the rows up to the first empty line or comment after them, by CPU."""
    rows: dict[int, _Row] = {}
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("#"):
            if rows:
                break
            continue
        if "," not in text and not text[0].isdigit():  # a prompt or a warning
            continue
        row = _row(header, line.part(text))
        if row is None:
            continue
        if row.cpu in rows:
            raise line.bad(f"CPU {row.cpu} appears twice", tool.ONE_FILE_PER_NODE)
        rows[row.cpu] = row
    return rows


def _row(header: list[str], line: tool.Line) -> _Row | None:
    """Read one row; None for a CPU that is offline (``-a`` lists them with an empty core)."""
    cells = [cell.strip() for cell in line.text.split(",")]
    if len(cells) != len(header):
        found = f"{tool.shorten(line.text)} has {len(cells)} fields, the header {len(header)}"
        raise line.bad(found, "expected one field per column")
    named = dict(zip(header, cells, strict=True))
    caches = _caches(named, line)
    cpu = tool.required_number(line.part(named["cpu"]))
    if cpu > MAX_CPU:
        raise line.bad(f"CPU {cpu}", f"CPUs go up to {MAX_CPU}")
    if named.get("online", "").upper() in ("N", "NO") or ("core" in named and named["core"] in ("", "-")):
        return None
    numa = tool.numa_id(line.part(named.get("node", "")))
    socket = tool.numa_id(line.part(named.get("socket", "")))
    # Core numbers repeat on hybrid processors and in each node of some machines: two CPUs share a core
    # only where socket, node and the first caches agree as well.
    inner = (caches.get("l1i") or caches.get("l1d", ""), caches.get("l2", ""))
    core = repr((named["core"], named.get("socket"), numa, inner)) if "core" in named else None
    return _Row(cpu, core, numa, socket, caches.get("l3") or None)


def _caches(cells: dict[str, str], line: tool.Line) -> dict[str, str]:
    """Return cache numbers by level: from separate columns or from one ``L1d:L1i:L2:L3`` column."""
    caches: dict[str, str] = {}
    for name, cell in cells.items():
        levels, values = name.split(":"), cell.split(":")
        if not re.fullmatch(r"l\d[di]?(:l\d[di]?)*", name):
            continue
        if len(levels) != len(values) and cell not in ("", "-"):
            raise line.bad(f"caches {tool.shorten(cell)}", f"the header names {name}")
        caches.update(zip(levels, values, strict=False))
    return caches


def _table_cores(rows: dict[int, _Row], header: list[str]) -> tuple[Core, ...] | None:
    if "core" not in header:
        return None
    by_core = grouped((row.core, row) for _, row in sorted(rows.items()))
    group_of = {
        l3: i for i, l3 in enumerate(dict.fromkeys(rows[cpu].l3 for cpu in sorted(rows) if rows[cpu].l3))
    }
    return tuple(
        Core(
            cpus=tuple(row.cpu for row in siblings),
            numa=siblings[0].numa,
            l3=group_of.get(siblings[0].l3),
            socket=siblings[0].socket,
        )
        for siblings in by_core.values()
    )


def _table_nodes(rows: dict[int, _Row]) -> tuple[NumaNode, ...] | None:
    nodes: dict[int, set[int]] = {}
    for row in rows.values():
        if row.numa is not None:
            nodes.setdefault(row.numa, set()).add(row.cpu)
    return tuple(NumaNode(id=node, cpus=frozenset(cpus)) for node, cpus in sorted(nodes.items())) or None
