"""Hand-written lists, right and wrong."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.binding.judge_masks import Judgement, Kind, document, judge, report
from hpclaunch.errors import BadInputError
from hpclaunch.topology.node_topology import NodeTopology
from tests.binding.machines import lumi_like, machine, machines, with_near_cpus
from tests.binding.test_compute import LUMI_MASKS
from tests.how_much import examples
from tests.in_one_test import in_one_test

RIGHT: list[tuple[Kind, str]] = [
    ("mask", LUMI_MASKS),
    ("mask", f"--cpu-bind=verbose,mask_cpu:{LUMI_MASKS}"),
    ("mask", LUMI_MASKS.replace("0x", "").replace("f", "F")),
    ("mask", LUMI_MASKS.replace("fe", "7e")),
    ("map", "49,57,17,25,1,9,33,41"),
    ("map", "map_cpu:49,57,17,25,1,9,33,41"),
    ("map", "0x31,57,17,25,1,9,33,41"),
    ("map", "113,121,81,89,65,73,97,105"),
    ("map", "49,17,1,33"),
    ("map", "50"),
]


@in_one_test("kind, text", RIGHT)
def test_the_sites_own_lists_are_right(kind: Kind, text: str) -> None:
    for node in (lumi_like(), lumi_like(l3_known=False), with_near_cpus(lumi_like())):
        judgement = judge(node, kind, text)
        assert judgement.findings == ()
        assert judgement.right


def problems(judgement: Judgement) -> list[tuple[int | None, str]]:
    return [(finding.rank, finding.problem) for finding in judgement.findings]


WRONG: list[tuple[Kind, str, list[tuple[int | None, str]]]] = [
    ("map", "49,57,17,,1,9,33,41", [(3, "unparsable")]),
    ("mask", "0x," + LUMI_MASKS.partition(",")[2], [(0, "unparsable")]),
    ("mask", "0xzz," + LUMI_MASKS.partition(",")[2], [(0, "unparsable")]),
    ("mask", "0x0," + LUMI_MASKS.partition(",")[2], [(0, "empty")]),
    ("map", "48,57,17,25,1,9,33,41", [(0, "reserved")]),
    ("map", "49,57,17,25,1,9,33,200", [(7, "outside")]),
    ("map", "49,49,17,25,1,9,33,41", [(1, "shared")]),
    ("map", "49,113,17,25,1,9,33,41", [(1, "shared")]),
    (
        "map",
        "49,57,17,25,33,41,1,9",
        [(4, "wrong-gpu"), (5, "wrong-gpu"), (6, "wrong-gpu"), (7, "wrong-gpu")],
    ),
    ("mask", LUMI_MASKS.replace("0xfe0000,", "0xfe000000fe0000,"), [(2, "crosses-numa"), (2, "shared")]),
    ("mask", LUMI_MASKS.replace("0xfe,0xfe00,", "0x20e,0xfc00,"), [(4, "crosses-l3")]),
    ("mask", "", [(None, "empty")]),
    ("map", "", [(None, "empty")]),
]


@in_one_test("kind, text, wanted", WRONG)
def test_what_is_wrong_is_found(kind: Kind, text: str, wanted: list[tuple[int | None, str]]) -> None:
    judgement = judge(lumi_like(), kind, text)
    assert problems(judgement) == wanted
    assert not judgement.right


def test_the_remedy_names_the_right_cpus() -> None:
    finding = judge(lumi_like(), "mask", LUMI_MASKS.replace("0xfe000000000000", "0xff000000000000")).findings[
        0
    ]
    assert finding.message == "CPU 48: reserved for the system; a job that names a reserved core fails"
    assert finding.remedy == "leave them out: CPUs 49-55 (0xfe000000000000) would be right"
    finding = judge(lumi_like(), "map", "48,57,17,25,1,9,33,41").findings[0]
    assert finding.remedy == "leave them out: CPU 49 would be right"


def test_the_wrong_l3_group_of_the_right_numa_node_is_found_where_it_is_known() -> None:
    swapped = "57,49,17,25,1,9,33,41"
    assert judge(lumi_like(), "map", swapped).right
    judgement = judge(with_near_cpus(lumi_like()), "map", swapped)
    assert problems(judgement) == [(0, "wrong-gpu"), (1, "wrong-gpu")]
    assert "not near GPU 0 (NUMA node 3, nearest to CPUs 48-55,112-119)" in judgement.findings[0].message


def test_a_list_in_numa_order_is_checked_against_the_gpus_of_numa_order() -> None:
    by_cores = "0xfefe,0xfefe0000,0xfefe00000000,0xfefe000000000000"
    assert judge(lumi_like(), "mask", by_cores, order="numa").right
    assert not judge(lumi_like(), "mask", by_cores).right


def test_cpus_outside_the_grant_are_found() -> None:
    node = msgspec.structs.replace(machine([4, 4]), allowed=frozenset({0, 1}))
    judgement = judge(node, "map", "0,5")
    assert problems(judgement) == [(1, "not-granted")]
    assert judgement.findings[0].message == "CPU 5: not granted, the job has 0-1"


def test_a_list_of_another_length_than_the_ranks_is_found() -> None:
    short = judge(lumi_like(), "map", "49,17,1,33", tasks=8)
    assert problems(short) == [(None, "count")]
    assert "Slurm starts over, rank 4 gets rank 0's CPUs" in short.findings[0].message
    long = judge(lumi_like(), "map", "49,57,17,25,1,9,33,41", tasks=4)
    assert "the last 4 are never used" in long.findings[0].message
    with pytest.raises(BadInputError, match="tasks_per_node is 0"):
        judge(lumi_like(), "map", "49", tasks=0)


def test_cpu_numbers_given_as_masks_are_recognised() -> None:
    judgement = judge(lumi_like(), "mask", "49,57,17,25,1,9,33,41")
    assert "look like CPU numbers" in judgement.findings[0].message


def test_multipliers_are_read_and_bounded() -> None:
    assert problems(judge(machine([4]), "map", "1*2")) == [(1, "shared")]
    assert problems(judge(machine([4]), "map", "1*99999999999")) == [(0, "unparsable")]
    assert problems(judge(machine([4]), "map", "1*99999")) == [(0, "unparsable")]
    assert problems(judge(machine([4]), "map", "1*0")) == [(0, "unparsable")]


def test_a_gpu_without_usable_cores_is_not_an_error_of_the_list() -> None:
    node = msgspec.structs.replace(machine([4, 4], gpu_numa=(1,)), allowed=frozenset({0, 1}))
    assert judge(node, "map", "0").right


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    machines(),
    st.sampled_from(["mask", "map"]),
    st.text(alphabet="0123456789abcdefxX,*:- \u00e9\n'", max_size=60) | st.text(max_size=30),
)
def test_any_text_is_checked_without_a_crash(node: NodeTopology, kind: Kind, text: str) -> None:
    judgement = judge(node, kind, text)
    assert report(judgement)
    assert document(judgement).right is judgement.right


def test_the_report_shows_each_rank_and_each_remedy() -> None:
    text = report(judge(lumi_like(), "map", "48,57,17,25,1,9,33,41"))
    lines = text.splitlines()
    assert lines[1].split() == ["0", "48", "3", "6", "0", "WRONG"]
    assert lines[2].split() == ["1", "57", "3", "7", "1", "right"]
    assert lines[-2].startswith("rank 0: CPU 48: reserved")
    assert report(judge(lumi_like(), "map", "49")).splitlines()[-1].startswith("right: 1 rank,")
