"""The drawings are well-formed and complete, and show a wrong binding."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding.compute import bind
from hpclaunch.binding.judge_masks import judge
from hpclaunch.binding.node_binding import BindingRequest, NodeBinding
from hpclaunch.binding.picture import draw, svg
from hpclaunch.topology.node_topology import Gpu, Nic, NodeTopology
from tests.binding.machines import lumi_like, machine, machines, usable_cores
from tests.binding.test_compute import LUMI_MASKS
from tests.how_much import examples
from tests.in_one_test import in_one_test

RED = "#d0021b"


def words(drawing: str) -> list[str]:
    """Return all text of an SVG, its XML read by a real parser."""
    return [element.text or "" for element in ElementTree.fromstring(drawing).iter()]


def shapes(drawing: str) -> list[dict[str, str]]:
    return [
        element.attrib for element in ElementTree.fromstring(drawing).iter() if element.tag.endswith("rect")
    ]


@settings(max_examples=examples(20), deadline=None)
@given(machines(), st.integers(0, 100))
def test_every_core_rank_and_gpu_is_drawn_in_well_formed_xml(topology: NodeTopology, number: int) -> None:
    tasks = 1 + number % len(usable_cores(topology))
    binding = bind(topology, BindingRequest(tasks_per_node=tasks))
    drawing = svg(topology, binding)
    text = words(drawing)
    tips = [word for word in text if word.startswith("core ")]
    assert len(tips) == len(topology.cores)
    for rank in binding.ranks:
        assert sum(f": rank {rank.local_rank}" in f"{tip};" for tip in tips)
        assert any(word.startswith(f"r{rank.local_rank}: CPUs ") for word in text)
    for gpu in topology.gpus:
        assert any(re.match(rf"GPU {gpu.index}\b", word) for word in text)
    terminal = draw(topology, binding)
    assert all(f"GPU {gpu.index}" in terminal for gpu in topology.gpus)


def test_a_right_binding_has_red_only_in_the_legend() -> None:
    drawing = svg(lumi_like(), bind(lumi_like(), BindingRequest(tasks_per_node=8)))
    assert [shape.get("stroke") for shape in shapes(drawing)].count(RED) == 1
    assert "FAR" not in drawing


def test_a_wrong_binding_is_red_where_it_is_wrong() -> None:
    masks = LUMI_MASKS.split(",")
    masks[0], masks[4] = masks[4], masks[0]
    masks[7] = "0x100000000000000"  # core 56: reserved
    wrong = NodeBinding(ranks=judge(lumi_like(), "mask", ",".join(masks)).ranks)
    text = words(svg(lumi_like(), wrong))
    assert {"GPU 0 · r0 FAR", "GPU 4 · r4 FAR", "GPU 7 · r7 FAR", "GPU 1 · r1"} <= set(text)
    assert "rank 0 is far from its GPU 0" in text
    assert "core 56 is reserved" in text
    red = [shape for shape in shapes(svg(lumi_like(), wrong)) if shape.get("stroke") == RED]
    assert len(red) == 1 + 3 + 1
    terminal = draw(lumi_like(), wrong)
    assert "GPU 0 (rank 0 FAR)" in terminal
    assert "!  core 56 is reserved" in terminal


def test_shared_and_missing_cpus_are_named() -> None:
    node = machine([2])
    text = words(svg(node, NodeBinding(ranks=judge(node, "map", "0,0,7").ranks)))
    assert "cores with several ranks: 0" in text
    assert "rank 2: no CPU 7 on this node" in text


def test_the_title_names_site_gpus_and_ranks() -> None:
    node = msgspec.structs.replace(
        machine([2]), gpus=tuple(Gpu(index=i, numa=0, model="A100") for i in (0, 1))
    )
    drawing = svg(node, bind(node, BindingRequest(tasks_per_node=2)), "here")
    assert "CPU-GPU binding of one node: here, 2 x A100, 2 ranks" in words(drawing)


@in_one_test("cores", [1, 2, 64])
def test_nothing_runs_out_of_a_narrow_picture(cores: int) -> None:
    node = machine([cores])
    root = ElementTree.fromstring(svg(node, bind(node, BindingRequest(tasks_per_node=1)), "a-long-name" * 3))
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") == "start":
            size, letters = int(text.attrib["font-size"]), len(text.text or "")
            assert int(text.attrib["x"]) + 0.6 * size * letters <= int(root.attrib["width"]), text.text


def test_names_are_escaped() -> None:
    node = msgspec.structs.replace(machine([1]), nics=(Nic(name='<script>&"\x00\x1b', numa=0),))
    binding = bind(node, BindingRequest(tasks_per_node=1))
    drawing = svg(node, binding)
    assert "<script" not in drawing
    assert 'NIC <script>&"' in words(drawing)
    assert "\x1b" not in draw(node, binding)


def test_reserved_idle_and_denied_cores_have_different_signs() -> None:
    node = msgspec.structs.replace(machine([6], reserved_cores=(0,)), allowed=frozenset({0, 1, 2, 3}))
    text = draw(node, bind(node, BindingRequest(tasks_per_node=1, cpus_per_task=2)))
    assert "cores 0-5  # 0 0 . x x" in text
    assert text.splitlines()[-1].endswith("# reserved, x not granted, . idle")
