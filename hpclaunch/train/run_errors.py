"""The errors of the bundled runner that a user may see: one clear message and an exit code.

The runner's folder is copied to compute nodes alone, so it has its own error root and imports nothing
of hpclaunch; messages and exit codes follow the same rules as those of the command. Longer texts are in
``texts.json``: case -> message and hint, with the names of values in braces.
"""

import json
from functools import cache
from pathlib import Path
from typing import TypeVar

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3

_Error = TypeVar("_Error", bound="TrainError")


@cache
def _table() -> dict[str, list[str]]:
    table: dict[str, list[str]] = json.loads(Path(__file__).with_name("texts.json").read_text("utf-8"))
    return table


def text_of(case: str, /, **values: object) -> str:
    """Return the message of a case of ``texts.json`` with these values in it."""
    return _table()[case][0].format(**values)


class TrainError(Exception):
    """Root of all expected errors of the runner.

    ``message`` names the file or option and what was found; ``hint`` says what would be right.
    Instances survive pickling, so that rank 0 can broadcast its error to the other ranks.
    """

    exit_code = EXIT_FAILED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @classmethod
    def of(cls: type[_Error], case: str, /, **values: object) -> _Error:
        """Return the error of a case of ``texts.json`` with these values in it."""
        return cls(*(text.format(**values) for text in _table()[case]))

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(TrainError):
    """Options that the command line does not have, or values of the wrong kind."""

    exit_code = EXIT_USAGE


class BadDataError(TrainError):
    """Training data that cannot be used: damaged, of the wrong kind, or not available."""

    exit_code = EXIT_BAD_INPUT


class BadCheckpointError(TrainError):
    """A checkpoint that cannot be read, or that belongs to another model or run."""

    exit_code = EXIT_BAD_INPUT


class BadRequestError(TrainError):
    """Options that contradict one another or the data, such as more ranks than training images."""

    exit_code = EXIT_BAD_INPUT
