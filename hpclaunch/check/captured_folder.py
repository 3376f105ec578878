"""Judge outputs that were captured on another machine: ``hpclaunch check --from DIR``."""

from __future__ import annotations

from pathlib import Path

from hpclaunch.check import check_build
from hpclaunch.check.check_report import Check
from hpclaunch.check.judge_build import BuildText, judge_text
from hpclaunch.check.judge_launch import judge_mpi_list
from hpclaunch.check.remedies import Remedies
from hpclaunch.errors import BadInputError

CHECK_BUILD = "check-build.txt"
MPI_LIST = "mpi-list.txt"
_MAX_BYTES = 1 << 20


def judge_folder(folder: Path, remedies: Remedies) -> tuple[Check, ...]:
    """Judge ``check-build.txt`` and ``mpi-list.txt`` of a folder, whichever exist.

    Raises BadInputError if neither exists or one cannot be read.
    """
    build, plugins = _read(folder / CHECK_BUILD), _read(folder / MPI_LIST)
    if build is None and plugins is None:
        raise BadInputError(
            f"{folder}: has neither {CHECK_BUILD} nor {MPI_LIST}",
            f"horovodrun --check-build > {CHECK_BUILD}, srun --mpi=list > {MPI_LIST} 2>&1",
        )
    checks: list[Check] = []
    if build is not None:
        checks += judge_text(BuildText(boxes=check_build.parse(build), origin=CHECK_BUILD), remedies)
    if plugins is not None:
        checks.append(judge_mpi_list(plugins, MPI_LIST, remedies.profile))
    return tuple(checks)


def _read(path: Path) -> str | None:
    """Return a file's text, with any bytes in it; None: it does not exist."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise BadInputError(f"{path}: more than {_MAX_BYTES} bytes", "this is not the output of that command")
    return data.decode("utf-8", errors="replace")
