"""The messages noted without MPI are those of real ranks, and what the nodes' programs make of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.train.mpirun import ROOT, environment, run_ranks

ITEMS = 1003
CASES = (
    "ring,1048576",  # hop by hop
    "ring,200",  # in segments that follow one another
    "halving-doubling,400",
    "hierarchical,1048576",
)
NOTED = """
import json, sys
from hpclaunch.train import message_record
message_record.without_mpi()
found = {}
for case in sys.argv[2:]:
    name, _, segment = case.partition(",")
    every = found[case] = []
    for rank in range(6):
        notes = message_record.Notes(1 << 40, calls=[])
        counted = message_record.record_rank(name, notes, rank, 6, 2, int(sys.argv[1]), int(segment))
        assert counted == sum(size for kind, _, size in notes.calls if kind == "send")
        every.append(notes.calls)
print(json.dumps(found))
"""


def recorded(*options: object, code: int = 0) -> tuple[dict[str, Any], list[str]]:
    command = [sys.executable, "-m", "hpclaunch.train.message_record", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == code, done.stderr
    head, *lines = (done.stdout or done.stderr).splitlines()
    return (json.loads(head) if code == 0 else {"error": head}), lines


@pytest.mark.mpi
def test_the_messages_are_those_of_real_ranks() -> None:
    """Same peers, same bytes, same order, on each of 6 ranks: not a power of two; hierarchical on 3 nodes."""
    command = [sys.executable, "-c", NOTED, str(ITEMS), *CASES]
    noted = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    real = run_ranks(6, sys.executable, "-m", "tests.train.ranks.noted_messages", str(ITEMS), *CASES)
    assert real.returncode == 0, real.stderr
    expected = json.loads(real.stdout)
    assert expected["ring,200"][0] != expected["ring,1048576"][0]
    assert json.loads(noted.stdout) == expected


ALL = """
import contextlib, io, json, sys
from hpclaunch.train import message_record
found = {}
for name in ("ring", "halving-doubling", "hierarchical"):
    for per_node in (1, 3):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            options = ["--nodes", "5", "--ranks-per-node", str(per_node), "--items", "99991"]
            message_record.main([name, *options])
        found[f"{name},{per_node}"] = text.getvalue().splitlines()
print(json.dumps(found))
"""


def test_every_message_of_a_node_is_awaited_by_another() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALL], capture_output=True, text=True, env=environment(), check=True
    )
    for case, (head, *lines) in json.loads(done.stdout).items():
        sent: Counter[tuple[int, int]] = Counter()
        awaited: Counter[tuple[int, int]] = Counter()
        network_bytes = 0
        for line in lines:
            if line.startswith("node"):
                continue
            times, _, sends, *rest = map(int, line.split())
            for start in range(0, 3 * sends, 3):
                source, to, nbytes = rest[start : start + 3]
                assert source // int(case[-1]) != to // int(case[-1]), case
                sent[source, to] += times
                network_bytes += times * nbytes
            receives = rest[3 * sends + 1 :]
            assert len(receives) == 2 * rest[3 * sends]
            for source, to in zip(receives[::2], receives[1::2], strict=True):
                awaited[source, to] += times
        assert sent, case
        assert sent == awaited, case
        assert network_bytes == json.loads(head)["network_bytes"], case


def test_bytes_and_closed_form_of_a_ring_and_of_its_two_levels() -> None:
    """2 (p-1) times the array leaves the ranks; between nodes one rank of a node sends, or all slices."""
    links = ("--between-us", 3, "--between-gb-s", 10, "--inside-us", 1, "--inside-gb-s", 100)
    size = 4 * 1_200_000
    flat, _ = recorded("ring", "--nodes", 4, "--ranks-per-node", 2, "--items", size // 4, *links)
    assert flat["counted_bytes"] == 2 * 7 * size
    assert flat["network_bytes"] == pytest.approx(14 * size / 2)
    assert flat["closed_form_s"] == pytest.approx(14 * (3e-6 + size / 8 / 10e9))
    levels, _ = recorded("hierarchical", "--nodes", 4, "--ranks-per-node", 2, "--items", size // 4, *links)
    assert levels["network_bytes"] == pytest.approx(2 * 3 * size, rel=1e-4)
    assert levels["inside_s"] == pytest.approx(2 * (1e-6 + size / 2 / 100e9))
    between = 6 * (3e-6 + size / 4 / 10e9)
    assert levels["closed_form_s"] == pytest.approx(levels["inside_s"] + between)


def test_too_many_messages_end_it() -> None:
    answer, _ = recorded("ring", "--nodes", 9, "--items", 99, "--most-messages", 100, code=1)
    assert answer["error"] == "more than 100 messages"
