"""The lines of one rank, as launchers label them."""

from __future__ import annotations

import pytest

from hpclaunch.failures.rank_labels import RankLines


@pytest.mark.parametrize(
    "label", [" {}: ", "{}: ", "[1,{}]<stdout>: ", "[1,{}]<stderr>:", "[{}] ", "[rank{}]: "]
)
def test_lines_of_one_rank_in_pieces(label: str) -> None:
    log = "noise\n" + "".join(f"{label.format(rank)}line {rank}\n" for rank in (1, 0, 11, 1))
    got: list[bytes] = []
    lines = RankLines(1, got.append)
    for at in range(0, len(log), 3):
        lines(log[at : at + 3].encode())
    lines(label.format(1).encode() + b"without an end")
    lines.end()
    assert b"".join(got) == b"line 1\nline 1\nwithout an end\n"
    assert lines.ranks == {0, 1, 11}


def test_a_log_without_labels_names_no_rank() -> None:
    lines = RankLines(0, lambda data: None)
    lines(b"epoch 0: loss 3\n12:30 started\n[INFO] x\n")
    assert lines.ranks == set()
