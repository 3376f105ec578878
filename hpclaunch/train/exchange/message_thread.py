"""Messages during computing: a thread that sums what is ready while the first layers are still computed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from ..collective import AgreedError
from ..run_errors import BadRequestError

if TYPE_CHECKING:
    from mpi4py import MPI


def check_threads(comm: MPI.Intracomm) -> None:
    """Raise AgreedError where MPI lets only one thread at a time communicate on any rank; collective."""
    from mpi4py import MPI

    names = {
        MPI.THREAD_SINGLE: "MPI_THREAD_SINGLE",
        MPI.THREAD_FUNNELED: "MPI_THREAD_FUNNELED",
        MPI.THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED",
    }
    level = comm.allreduce(MPI.Query_thread(), op=MPI.MIN)
    if level < MPI.THREAD_MULTIPLE:
        message = f"--overlap: this MPI gives {names[level]}, and two threads need MPI_THREAD_MULTIPLE"
        raise AgreedError(BadRequestError(message, "Use --no-overlap, or an MPI library that gives it."))


class Progress:
    """How far back-propagation is: from its position on, all gradients are ready; 0 when all are."""

    def __init__(self) -> None:
        self._reported: SimpleQueue[int | None] = SimpleQueue()
        self._position = 0

    def report(self, position: int | None) -> None:
        """From the thread that computes; None: there will be no further steps."""
        self._reported.put(position)

    def begins(self) -> bool:
        """Wait for a step's first position; False where there are no further steps."""
        first = self._reported.get()
        self._position = first or 0
        return first is not None

    def reach(self, position: int) -> None:
        """Wait until all from ``position`` on is ready."""
        while self._position > position:
            self._position = self._reported.get() or 0


class Messenger:
    """Sends each step's messages in one thread, started once.

    What the thread raises is raised in `finish`. A signal interrupts `finish`, not the thread, which ends
    with the process.
    """

    def __init__(self, send_all: Callable[[Progress], None]) -> None:
        """``send_all`` sends the messages of one step, and returns when the progress is 0."""
        self.progress = Progress()
        self._send_all = send_all
        self._outcome: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="gradient messages", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the step's last message; raise what the thread has raised."""
        error = self._outcome.get()
        if error is not None:
            raise error

    def close(self) -> None:
        """End the thread, between two steps."""
        self.progress.report(None)
        self._thread.join()

    def _serve(self) -> None:
        while self.progress.begins():
            error: BaseException | None = None
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # the loop checks all sums
                    self._send_all(self.progress)
            except BaseException as caught:
                error = caught
            self._outcome.put(error)
