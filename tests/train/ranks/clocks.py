"""On every rank: a timeline of all, though the last one's clock is three times too fast."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from unittest import mock

from mpi4py import MPI

from hpclaunch.train.run_options import Options
from hpclaunch.train.timeline_writer import close_timeline, open_timeline

COMM = MPI.COMM_WORLD
RANK, RANKS = COMM.Get_rank(), COMM.Get_size()


def ball(turns: int) -> None:
    """A ball goes round, and each rank notes when it has it."""
    options = Options(timeline=Path(sys.argv[1]), timeline_ranks="all")
    timeline = open_timeline(COMM, options)
    assert timeline is not None
    lane = timeline.lane('the "ball" \\ of\n\u00e9\U0001f3c0')
    for turn in range(turns):
        if turn or RANK:
            COMM.recv(source=(RANK - 1) % RANKS)
        start = time.perf_counter()
        time.sleep(0.05)
        timeline.phase(lane, f"TURN_{turn}", start, time.perf_counter())
        timeline.flush()
        COMM.send(None, dest=(RANK + 1) % RANKS)
    if RANK == 0:
        COMM.recv(source=RANKS - 1)
    close_timeline(COMM, options, timeline)


if __name__ == "__main__":
    true_time = time.perf_counter

    def wrong_time() -> float:
        return 3 * true_time() - 12345

    if RANK == RANKS - 1:
        mock.patch.object(time, "perf_counter", wrong_time).start()
    ball(turns=6)
