"""The file of a probe: commands with their answers, from which facts are derived whenever it is read."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import datetime as dt
from pathlib import Path
from typing import Literal

import msgspec

from hpclaunch.atomic_file import write_file
from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one command printed."""

    command: str
    """As a shell would take it."""
    exit_code: int | None
    """None: it was not found, or gave no answer in time."""
    stdout: str = ""
    stderr: str = ""

    @property
    def result(self) -> CommandResult | None:
        """The answer as parsers take it; None: there is none."""
        if self.exit_code is None:
            return None
        return CommandResult(exit_code=self.exit_code, stdout=self.stdout, stderr=self.stderr)


class ProbeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One probe of one machine."""

    format: Literal[1] = 1
    hpclaunch: str
    """The version that made it."""
    day: dt.date
    site: str
    """The profile that was compared, such as ``lumi-g`` or ``generic-slurm``."""
    scheduler: str
    """Its kind."""
    origin: str = "measured"
    """``measured``, or whose public outputs these are."""
    login: dict[str, Answer] = {}
    """Name of an item -> its answer on the login node."""
    node: dict[str, Answer] = {}
    """The same in a job on one node; empty: no job was run."""


def write_probe(path: Path, probe: ProbeFile) -> None:
    """Write the file, readable by its owner alone."""
    text = msgspec.json.format(msgspec.json.encode(probe), indent=1)
    write_file(path, text + b"\n", 0o600)


def read_probe(path: Path) -> ProbeFile:
    """Return a probe. Raises BadInputError with the file and the key that is wrong."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ProbeFile)
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise BadInputError(
            f"{path}: not a file of hpclaunch sites probe: {error}", "make it with hpclaunch sites probe"
        ) from None
