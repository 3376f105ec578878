"""One check per node, and the nodes that differ."""

from __future__ import annotations

import json
import subprocess
import sys

import msgspec

from hpclaunch.check.check_report import Check, Report, Status
from hpclaunch.check.run_check import NODE_MARK, merge_reports, node_command, read_nodes


def report(nccl: Status = "have", clock: str = "0.01 s", host: str = "") -> Report:
    checks = (
        Check(name="nccl", status=nccl, evidence=f"nccl on {host}".strip()),
        Check(name="clock", status="have", evidence=clock),
    )
    return Report(ok=nccl == "have", checks=checks)


def by_name(reports: dict[str, Report], wanted: int) -> dict[str, Check]:
    return {check.name: check for check in merge_reports(reports, wanted, "srun: node n9 is down")}


def test_nodes_that_answer_alike() -> None:
    found = by_name({f"n{i}": report(host=f"n{i}", clock=f"0.0{i} s") for i in range(1, 4)}, 3)
    assert found["nodes"].status == "have"
    assert found["nccl"].status == "have"


def test_a_node_that_differs_is_listed() -> None:
    found = by_name({"n1": report(host="n1"), "n2": report("missing", host="n2"), "n3": report(host="n3")}, 3)
    assert found["nodes"].status == "missing"
    assert "n2 differs: nccl missing" in found["nodes"].evidence
    assert "n1" not in found["nodes"].evidence
    assert (found["nccl"].status, found["nccl"].evidence[:3]) == ("missing", "n2:")


def test_silent_nodes_are_counted() -> None:
    found = by_name({"n1": report()}, 3)
    assert found["nodes"].status == "missing"
    assert "2 of 3 nodes gave no answer: srun: node n9 is down" in found["nodes"].evidence
    assert by_name({}, 2)["nodes"].status == "missing"


def test_reports_survive_the_way_through_a_launcher() -> None:
    """Long reports are cut into short lines, so that those of several nodes may be mixed."""
    sent = Report(ok=True, checks=(Check(name="mpi", status="have", evidence="ä \\ \" ' " * 900),))
    text = json.dumps(msgspec.to_builtins(sent))
    command = node_command([sys.executable, "-c", "import sys; print(sys.argv[1])", text])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (host,) = read_nodes(done.stdout)
    other = done.stdout.replace(f"{NODE_MARK}{host}", f"{NODE_MARK}other")
    mixed = [line for pair in zip(done.stdout.splitlines(), other.splitlines(), strict=True) for line in pair]
    assert read_nodes("noise\n" + "\n".join(mixed)) == {host: sent, "other": sent}
    assert max(map(len, mixed)) < 700


def test_a_torn_report_is_no_answer() -> None:
    assert read_nodes(f'{NODE_MARK}n1 {{"ok": true, "che\n') == {}
