"""``hpclaunch logs``: the output of a job."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hpclaunch.amounts import counted
from hpclaunch.cli._jobs import goes_on, named
from hpclaunch.cli._options import options, wants_document
from hpclaunch.cli._terminal import JobOutput, for_reader, printed
from hpclaunch.errors import BadInputError
from hpclaunch.text_table import to_stderr

if TYPE_CHECKING:
    from hpclaunch.api import JobHandle


class _Tail:
    """Passes on the last lines of what comes before the first `flush`, and all that comes after it."""

    def __init__(self, lines: int | None, forward: Callable[[bytes], None]) -> None:
        """``lines``: how many; None: all."""
        self._lines, self._forward, self._held = lines, forward, b""

    def __call__(self, data: bytes) -> None:
        if self._lines is None:
            self._forward(data)
        else:
            self._held = b"".join((self._held + data).splitlines(keepends=True)[-self._lines :])

    def flush(self) -> None:
        held, self._held, self._lines = self._held, b"", None
        if held:
            self._forward(held)


@click.command()
@options("logs")
def command(job: str, follow: bool, index: int | None, rank: int | None, tail: int | None) -> None:
    """Print the output of JOB: an id, an end of one, the scheduler's id, a name, or last (the default)."""
    from hpclaunch.job.job_documents import LogDocument

    as_json = wants_document()
    if follow and (index is not None or as_json):
        raise click.UsageError(f"{'--json' if as_json else '--index'} and --follow exclude each other")
    handle = _job_of(job, index, rank)
    pieces: list[bytes] = []
    with handle.connected():
        if follow:
            _follow(handle, rank, tail)
        else:
            _show(handle, rank, _Tail(tail, pieces.append if as_json else _printer()), handle.read_log)
    text = b"".join(pieces).decode(errors="replace")
    printed(LogDocument(id=handle.id, state=handle.record.state, index=index, rank=rank, text=text))


def _job_of(job: str, index: int | None, rank: int | None) -> JobHandle:
    """Return the job, or that of this index of an array; the rank must be one of it. Raises BadInputError."""
    handle = named(job)
    if index is not None:
        handle = handle.index(index)
    if rank is not None and rank >= handle.record.tasks:
        has = counted(handle.record.tasks, "rank")
        raise BadInputError(f"--rank {rank}: job {handle.id} has {has}, from 0 on")
    return handle


def _show(
    handle: JobHandle, rank: int | None, last: _Tail, read: Callable[[Callable[[bytes], None]], None]
) -> None:
    """Read the output, or the lines of one rank; where the log names no line of it, the end of its stderr."""
    if rank is None:
        read(last)
    else:
        from hpclaunch.failures.rank_labels import RankLines

        lines = RankLines(rank, last)
        read(lines)
        lines.end()
        if rank not in lines.ranks:
            words = handle.rank_stderr(rank)
            if not words and lines.ranks:
                shown = ", ".join(map(str, sorted(lines.ranks)[:20]))
                raise BadInputError(f"--rank {rank}: no line names this rank; lines name the ranks {shown}")
            if not words:
                raise BadInputError.case("logs: no ranks", rank=rank)
            to_stderr(f"no line of the log names rank {rank}: this is the end of its stderr")
            last(words)
    last.flush()


def _follow(handle: JobHandle, rank: int | None, tail: int | None) -> None:
    output = JobOutput(sys.stdout.buffer, handle.progress)
    last = _Tail(tail, output.forward)

    def poll() -> None:
        last.flush()
        output.poll()

    def read(forward: Callable[[bytes], None]) -> None:
        with goes_on(handle):
            try:
                handle.wait(forward, on_poll=poll)
            finally:
                output.clear()

    _show(handle, rank, last, read)


def _printer() -> Callable[[bytes], None]:
    shown = for_reader(sys.stdout.buffer)

    def write(data: bytes) -> None:
        sys.stdout.buffer.write(shown(data))
        sys.stdout.buffer.flush()

    return write
