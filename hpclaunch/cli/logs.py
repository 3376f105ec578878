"""``hpclaunch logs``: the output of a job."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from hpclaunch.cli._options import options
from hpclaunch.cli._terminal import for_reader
from hpclaunch.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpclaunch.api import JobHandle

    Filter = Callable[[Callable[[bytes], None]], Callable[[bytes], None]]


@click.command()
@options("logs")
def command(job: str, follow: bool, index: int | None, rank: int | None) -> None:
    """Print the output of JOB: an id, either end of one, the scheduler's id, a name, or last (the default).

    \b
    Examples:
      hpclaunch logs -f last
      hpclaunch logs --rank 3 last
    """
    from hpclaunch.api import find_job
    from hpclaunch.failures.rank_labels import RankLines
    from hpclaunch.job.refresh import to_stderr

    handle = find_job(job, to_stderr)
    if index is not None:
        if follow:
            raise click.UsageError("--index and --follow exclude each other")
        handle = handle.index(index)
    if rank is not None and rank >= handle.record.tasks:
        raise BadInputError(f"--rank {rank}: job {handle.id} has {handle.record.tasks} ranks, from 0 on")
    show = _follow if follow else _read
    try:
        with handle.connected():
            if rank is None:
                show(handle, lambda forward: forward)
                return
            lines: list[RankLines] = []

            def of_rank(forward: Callable[[bytes], None]) -> Callable[[bytes], None]:
                lines.append(RankLines(rank, forward))
                return lines[0]

            show(handle, of_rank)
            lines[0].end()
            if rank not in lines[0].ranks:
                _print_stderr(handle, rank, lines[0].ranks)
    except BrokenPipeError:
        # The reader (head, less) left; Python must not try to flush the remaining output at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(handle: JobHandle, chosen: Filter) -> None:
    shown = for_reader(sys.stdout.buffer)
    handle.read_log(chosen(lambda data: _print(shown(data))))


def _follow(handle: JobHandle, chosen: Filter) -> None:
    from hpclaunch.cli._progress_bar import JobOutput

    output = JobOutput(sys.stdout.buffer, handle.progress)
    try:
        handle.wait(chosen(output.forward), on_poll=output.poll)
    finally:
        output.clear()


def _print_stderr(handle: JobHandle, rank: int, ranks: set[int]) -> None:
    """Print what the rank itself has left of its stderr, where the log names no line of it."""
    from hpclaunch.job.refresh import to_stderr

    words = handle.rank_stderr(rank)
    if not words:
        raise _no_line_of(rank, ranks)
    to_stderr(f"no line of the log names rank {rank}: this is the end of its stderr")
    _print(for_reader(sys.stdout.buffer)(words))


def _no_line_of(rank: int, ranks: set[int]) -> BadInputError:
    if ranks:
        shown = ", ".join(map(str, sorted(ranks)[:20]))
        return BadInputError(f"--rank {rank}: no line names this rank; lines name the ranks {shown}")
    return BadInputError(
        f"--rank {rank}: the lines of this log do not name their ranks",
        "submit with --env SLURM_LABELIO=1 on Slurm (srun --label), or let the program print its RANK",
    )


def _print(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
