"""Draw a node with its ranks: as SVG, and as text for the terminal.

There is one panel per NUMA node, with its L3 groups and cores, and the GPUs and NICs local to it. A rank and
its GPUs have the same colour, so a binding to the wrong place shows as colours that do not match. A GPU far
from its rank's cores and a core with two ranks are also framed in red, and say so in words. Ranks after the
last colour repeat them: the number in the cell identifies the rank.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hpclaunch.amounts import counted
from hpclaunch.binding.node_binding import Locality, NodeBinding, RankBinding
from hpclaunch.cpuset import format_cpu_list
from hpclaunch.package_data import package_constants
from hpclaunch.text_table import printable
from hpclaunch.topology.node_topology import Core, Gpu, Nic, NodeTopology

_CELL_W, _CELL_H, _GAP = 40, 32, 6
_CELLS_PER_ROW = 16
_LINE = 18
_PICTURE = package_constants("binding/picture.yaml", "words")


@dataclass
class _Panel:
    """One NUMA node with its cores, GPUs and NICs."""

    title: str
    groups: list[tuple[str, list[int]]]
    """L3 groups: name and core indices."""
    gpus: list[Gpu] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)


@dataclass
class _Scene:
    """The node with the ranks of each core and GPU."""

    topology: NodeTopology
    panels: list[_Panel]
    core_ranks: dict[int, list[int]]
    gpu_ranks: dict[int, list[int]]
    far: set[int]
    """Indices of GPUs with a rank whose cores are far."""
    captions: list[str]

    def state(self, at: int) -> str:
        """Return the state of a core: reserved, denied, idle, one (has one rank) or wrong."""
        core = self.topology.cores[at]
        ranks = self.core_ranks.get(at, ())
        if not self.topology.reserved.isdisjoint(core.cpus):
            return "wrong" if ranks else "reserved"
        if _is_denied(self.topology, core):
            return "wrong" if ranks else "denied"
        return ("idle", "one", "wrong")[min(len(ranks), 2)]


def _scene(topology: NodeTopology, binding: NodeBinding) -> _Scene:
    where = Locality(topology)
    core_ranks: dict[int, list[int]] = {}
    gpu_ranks: dict[int, list[int]] = {}
    far: set[int] = set()
    captions: list[str] = []
    for rank in binding.ranks:
        for at in where.cores(rank.cpus):
            core_ranks.setdefault(at, []).append(rank.local_rank)
        for index in rank.gpus:
            gpu_ranks.setdefault(index, []).append(rank.local_rank)
        far_gpus = _far_gpus(where, rank)
        far.update(far_gpus)
        captions += _rank_captions(where, rank, is_far=bool(far_gpus))
    captions += _core_captions(topology, core_ranks)
    return _Scene(topology, _panels(topology), core_ranks, gpu_ranks, far, captions)


def _far_gpus(where: Locality, rank: RankBinding) -> list[int]:
    """Return the rank's GPUs where its cores are near none of them."""
    gpus = [gpu for gpu in where.topology.gpus if gpu.index in rank.gpus]
    if not rank.cpus or any(where.is_near(gpu, rank.cpus) for gpu in gpus):
        return []
    return [gpu.index for gpu in gpus]


def _rank_captions(where: Locality, rank: RankBinding, *, is_far: bool) -> Iterator[str]:
    if is_far:
        yield f"rank {rank.local_rank} is far from its GPU {format_cpu_list(rank.gpus)}"
    if outside := frozenset(rank.cpus) - where.cpus:
        yield f"rank {rank.local_rank}: no CPU {format_cpu_list(outside)} on this node"
    if not rank.cpus:
        yield f"rank {rank.local_rank} has no CPU"


def _core_captions(topology: NodeTopology, core_ranks: Mapping[int, list[int]]) -> Iterator[str]:
    """Yield which cores are used though they are reserved, not granted or used by another rank."""
    for at in core_ranks:
        core = topology.cores[at]
        if not topology.reserved.isdisjoint(core.cpus):
            yield f"core {core.cpus[0]} is reserved"
        elif _is_denied(topology, core):
            yield f"core {core.cpus[0]} is not granted"
    if shared := [topology.cores[at].cpus[0] for at, ranks in core_ranks.items() if len(ranks) > 1]:
        yield f"cores with several ranks: {format_cpu_list(shared)}"


def _is_denied(topology: NodeTopology, core: Core) -> bool:
    return topology.allowed is not None and topology.allowed.isdisjoint(core.cpus)


def _panels(topology: NodeTopology) -> list[_Panel]:
    """Return one panel per NUMA node with cores, in order, then those that only have devices."""
    by_numa: dict[int | None, dict[int | None, list[int]]] = {}
    for at, core in enumerate(topology.cores):
        by_numa.setdefault(core.numa, {}).setdefault(core.l3, []).append(at)
    memory = {node.id: node.memory_bytes for node in topology.numa_nodes if node.memory_bytes}
    panels: dict[int | None, _Panel] = {}
    for numa in sorted(by_numa, key=lambda numa: (numa is None, numa or 0)):
        named = [("" if l3 is None else f"L3 {l3}", cores) for l3, cores in by_numa[numa].items()]
        size = f" · {memory[numa] / 2**30:.0f} GiB" if numa in memory else ""
        panels[numa] = _Panel(_numa_title(numa) + size, named)
    for gpu in topology.gpus:
        _panel_of(gpu, panels).gpus.append(gpu)
    for nic in topology.nics:
        _panel_of(nic, panels).nics.append(nic)
    return list(panels.values())


def _panel_of(device: Gpu | Nic, panels: dict[int | None, _Panel]) -> _Panel:
    suffix = "" if device.numa is None else " (no cores known)"
    return panels.setdefault(device.numa, _Panel(_numa_title(device.numa) + suffix, []))


def _numa_title(numa: int | None) -> str:
    return "NUMA node unknown" if numa is None else f"NUMA node {numa}"


def svg(topology: NodeTopology, binding: NodeBinding, name: str = "", captions: Sequence[str] = ()) -> str:
    """Return the drawing as one self-contained SVG document.

    ``name``: of the node, for the title. ``captions``: lines below the drawing, in addition to its own.
    """
    from hpclaunch.pages.render_page import render  # Jinja, which the drawing in text does not need

    scene = _scene(topology, binding)
    title = _title(topology, binding, name)
    across = 1 if len(scene.panels) == 1 else 2
    in_rows = (
        sum(min(len(cores), _CELLS_PER_ROW) * _CELL_W + 3 * _GAP for _, cores in row)
        for panel in scene.panels
        for row in _rows(panel)
    )
    panel_width = max(max(in_rows, default=0) + 2 * _GAP, 360)
    words = _rank_words(binding)
    rank_width = 40 + 8 * max(map(len, words), default=0)
    legend_width = 4 * _GAP + sum(44 + 8 * len(word) for _, _, word in _PICTURE.legend)
    panels_width = across * (panel_width + 2 * _GAP) + 2 * _GAP
    width = max(panels_width, legend_width, rank_width, 4 * _GAP + 11 * len(title))
    columns = max(1, min(4, width // rank_width))
    rows = [scene.panels[start : start + across] for start in range(0, len(scene.panels), across)]
    heights = [max(map(_panel_height, row)) for row in rows]
    notes = [*scene.captions, *captions]
    below = -(-len(words) // columns) + len(notes) + 1
    return render(
        "binding.svg.j2",
        title=title,
        width=width,
        height=8 * _GAP + 22 + sum(height + 2 * _GAP for height in heights) + below * _LINE,
        panel_width=panel_width,
        rows=list(zip(rows, heights, strict=True)),
        groups=_rows,
        devices=lambda panel: list(_devices(scene, panel)),
        core=lambda at: _core(scene, at),
        cpu=lambda at: topology.cores[at].cpus[0],
        legend=_PICTURE.legend,
        ranks=[(_colour(rank.local_rank), word) for rank, word in zip(binding.ranks, words, strict=True)],
        columns=columns,
        captions=notes,
        size=_SIZE,
    )


def _rows(panel: _Panel) -> list[list[tuple[str, list[int]]]]:
    """Put L3 groups side by side as long as a row holds them."""
    rows: list[list[tuple[str, list[int]]]] = []
    used = _CELLS_PER_ROW
    for group in panel.groups:
        cells = min(len(group[1]), _CELLS_PER_ROW)
        if used + cells > _CELLS_PER_ROW:
            rows.append([])
            used = 0
        rows[-1].append(group)
        used += cells
    return rows


def _panel_height(panel: _Panel) -> int:
    lines = (max(-(-len(cores) // _CELLS_PER_ROW) for _, cores in row) for row in _rows(panel))
    cores = sum(count * _CELL_H + _LINE + 3 * _GAP for count in lines)
    devices = -(-(len(panel.gpus) + len(panel.nics)) // 4) * (_CELL_H + _GAP)
    return 2 * _LINE + cores + devices + _GAP


def _core(scene: _Scene, at: int) -> tuple[str, str, str, str]:
    """Return the state of a core, its colour, what is said about it, and the word for its ranks."""
    core, state, ranks = scene.topology.cores[at], scene.state(at), scene.core_ranks.get(at, [])
    fill = _PICTURE.fills.get(state) or _colour(ranks[0])
    tip = f"core {core.cpus[0]} (CPUs {format_cpu_list(core.cpus)})"
    tip += f": rank {', '.join(map(str, ranks))}" if ranks else f": {_PICTURE.words[state]}"
    more = f"+{len(ranks) - 1}" if len(ranks) > 1 else "!" if state == "wrong" else ""
    return state, fill, tip, f"r{ranks[0]}{more}" if ranks else ""


def _devices(scene: _Scene, panel: _Panel) -> Iterator[tuple[str, str, bool]]:
    """Yield the words, the colour and whether it is far from its rank, of each GPU and NIC."""
    for gpu in panel.gpus:
        ranks, far = scene.gpu_ranks.get(gpu.index, []), gpu.index in scene.far
        word = f"GPU {gpu.index}" + (f" · r{format_cpu_list(ranks).replace(',', ',r')}" if ranks else "")
        yield word + (" FAR" if far else ""), _colour(ranks[0]) if ranks else _PICTURE.fills["idle"], far
    for nic in panel.nics:
        yield f"NIC {nic.name}", _PICTURE.fills["denied"], False


_SIZE = {"cell_w": _CELL_W, "cell_h": _CELL_H, "gap": _GAP, "line": _LINE, "per_row": _CELLS_PER_ROW}


def _title(topology: NodeTopology, binding: NodeBinding, name: str) -> str:
    """Return ``CPU-GPU binding of one node: lumi-g, 8 x AMD Instinct MI250X (one GCD), 8 ranks``."""
    models = {gpu.model for gpu in topology.gpus if gpu.model}
    gpus = f"{len(topology.gpus)} x {models.pop()}" if len(models) == 1 else f"{len(topology.gpus)} GPUs"
    ranks = counted(len(binding.ranks), "rank")
    facts = [name, gpus if topology.gpus else "", ranks if binding.ranks else "no ranks"]
    return f"{_PICTURE.title}: {', '.join(filter(None, facts))}"


def _rank_words(binding: NodeBinding) -> list[str]:
    return [
        f"r{rank.local_rank}: CPUs {format_cpu_list(rank.cpus) or '-'}"
        + (f" · GPU {','.join(map(str, rank.gpus))}" if rank.gpus else "")
        + (f" · {rank.nic}" if rank.nic else "")
        for rank in binding.ranks
    ]


def _colour(rank: int) -> str:
    from hpclaunch.pages.render_page import PALETTE

    return str(PALETTE["colours"][rank % len(PALETTE["colours"])])


def draw(topology: NodeTopology, binding: NodeBinding, width: int | None = None) -> str:
    """Return the drawing in text: one line per L3 group, one sign per core; ``width``: of the terminal."""
    scene = _scene(topology, binding)
    sign_width = max((len(str(rank.local_rank)) for rank in binding.ranks), default=1)
    groups = [group for panel in scene.panels for group in panel.groups]
    label_width = max((len(_group_label(topology, group)) for group in groups), default=0)
    room = (width or 32 * (sign_width + 1) + label_width + 4) - label_width - 4
    per_line = max(4, 4 * (room // (4 * (sign_width + 1))))
    lines: list[str] = []
    for panel in scene.panels:
        lines.append(_panel_heading(scene, panel))
        for group in panel.groups:
            signs = [_sign(scene, at).rjust(sign_width) for at in group[1]]
            lines += _group_lines(_group_label(topology, group).ljust(label_width), signs, per_line)
    return "\n".join([*lines, _legend(scene), *(f"!  {caption}" for caption in scene.captions)])


def _group_lines(label: str, signs: list[str], per_line: int) -> list[str]:
    """Return the lines of one L3 group, its label before the first of them."""
    rows = [" ".join(signs[start : start + per_line]) for start in range(0, len(signs), per_line)]
    return [f"  {' ' * len(label) if at else label}  {row}" for at, row in enumerate(rows)]


def _panel_heading(scene: _Scene, panel: _Panel) -> str:
    words = [panel.title]
    for gpu in panel.gpus:
        ranks, far = scene.gpu_ranks.get(gpu.index), " FAR" if gpu.index in scene.far else ""
        words.append(f"GPU {gpu.index}" + (f" (rank {format_cpu_list(ranks)}{far})" if ranks else ""))
    return "  ".join([*words, *(f"NIC {printable(nic.name)}" for nic in panel.nics)])


def _legend(scene: _Scene) -> str:
    used = {scene.state(at) for at in range(len(scene.topology.cores))}
    words = {**_PICTURE.words, "wrong": "used, but shared, reserved or not granted"}
    signs = [f"{sign} {words[state]}" for state, sign in _PICTURE.signs.items() if state in used]
    return ", ".join(["a number is the rank that has the core", *signs])


def _group_label(topology: NodeTopology, group: tuple[str, list[int]]) -> str:
    name, cores = group
    listed = format_cpu_list(topology.cores[at].cpus[0] for at in cores)
    if listed.count(",") > 1:
        listed = f"{topology.cores[cores[0]].cpus[0]}...{topology.cores[cores[-1]].cpus[0]}"
    return f"{name} cores {listed}".strip()


def _sign(scene: _Scene, at: int) -> str:
    state = scene.state(at)
    return str(scene.core_ranks[at][0]) if state == "one" else _PICTURE.signs[state]
