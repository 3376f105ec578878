"""Signals that request a run to stop: noted by the rank that got one, agreed upon by all ranks.

A signal reaches the ranks at different moments, and in the middle of a step. So its handler only sets a
flag, and the ranks agree on the step after which they stop.
"""

import os
import signal
from collections.abc import Mapping
from types import FrameType

import numpy as np

from .allreduce import Comm
from .run_errors import BadRequestError

EXIT_CODE_VARIABLE = "HPCLAUNCH_CHECKPOINT_EXIT_CODE"
_DEFAULT_EXIT_CODE = 85  # free in the conventions of shells and of sysexits.h


class Interrupted(BaseException):
    """A signal requested this rank to end at once."""


class Checkpointed(Exception):
    """All ranks stop on request, and a checkpoint from which the run can go on is written."""

    def __init__(self, step: int) -> None:
        super().__init__(f"asked to stop: checkpoint written after step {step}; --resume continues")


def checkpoint_exit_code(environment: Mapping[str, str] = os.environ) -> int:
    """Exit code of a run that is to be started again; BadRequestError where the variable is not a code."""
    text = environment.get(EXIT_CODE_VARIABLE, str(_DEFAULT_EXIT_CODE))
    if not (text.isdigit() and 0 < int(text) < 256):
        raise BadRequestError(f"{EXIT_CODE_VARIABLE}={text}: not an exit code", "Use a number from 1 to 255.")
    return int(text)


class StopRequest:
    """Whether a signal requested this process to write a checkpoint and leave.

    SIGUSR1 always does; SIGTERM does where the launching script can start the run again (`EXIT_CODE_VARIABLE`
    is set) and the run writes checkpoints; otherwise SIGTERM raises `Interrupted`.
    """

    def __init__(self) -> None:
        self.requested = False

    def listen(self, *, writes_checkpoints: bool, environment: Mapping[str, str] = os.environ) -> None:
        """Install the handlers; of the main thread only."""
        called_again = writes_checkpoints and EXIT_CODE_VARIABLE in environment
        signal.signal(signal.SIGUSR1, self._note)
        signal.signal(signal.SIGTERM, self._note if called_again else _interrupt)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True


class Vote:
    """A yes-or-no vote of all ranks, counted while they compute: is it yes on any of them?"""

    def __init__(self, comm: Comm) -> None:
        """Collective; the vote has its own communicator."""
        from mpi4py import MPI

        self._comm = comm.Dup()
        self._largest = MPI.MAX
        self._mine = np.zeros(1, np.int32)
        self._any = np.zeros(1, np.int32)
        self._request = MPI.REQUEST_NULL

    def cast(self, mine: bool) -> None:
        """Begin; collective. Every vote needs its `outcome` before the next."""
        self._mine[0] = mine
        self._request = self._comm.Iallreduce(self._mine, self._any, self._largest)

    def outcome(self) -> bool:
        """Whether any rank cast True; the same on all."""
        self._request.Wait()
        return bool(self._any[0])

    def close(self) -> None:
        """Free the communicator; collective, with no vote open."""
        self._comm.Free()


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Interrupted
