"""Judge outputs that were captured on another machine: ``hpclaunch check --from DIR``."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpclaunch.check.check_report import Check, Report, Requirement, make_report, verdict
from hpclaunch.check.judge_build import BOX_NAMES, Boxes, Remedies, judge_text, parse_boxes
from hpclaunch.check.judge_launch import judge_mpi_list
from hpclaunch.check.requirements import default_requirements, site_requirements
from hpclaunch.errors import BadInputError

CHECK_BUILD = "check-build.txt"
MPI_LIST = "mpi-list.txt"
_MAX_BYTES = 1 << 20


def judge_folder(
    folder: Path, remedies: Remedies, required: Sequence[Requirement] = ()
) -> tuple[Report, tuple[Requirement, ...]]:
    """Judge ``check-build.txt`` and ``mpi-list.txt`` of a folder, whichever exist.

    Returns the report and its requirements: ``required``, else those of the site that text can show.
    Raises BadInputError if neither file exists or one cannot be read.
    """
    build, plugins = _read(folder / CHECK_BUILD), _read(folder / MPI_LIST)
    if build is None and plugins is None:
        raise BadInputError.case("check: no captures", folder=folder, build=CHECK_BUILD, mpi=MPI_LIST)
    checks: list[Check] = []
    needs = tuple(required)
    if build is not None:
        boxes = parse_boxes(build)
        checks += judge_text(boxes, CHECK_BUILD, remedies)
        if not needs:
            needs, hidden = _of_the_site(boxes, remedies)
            checks += hidden
    if plugins is not None:
        checks.append(judge_mpi_list(plugins, MPI_LIST, remedies.profile))
    found = make_report(checks, needs)
    wrong_plugin = any(check.name == "mpi-plugin" and check.status == "missing" for check in checks)
    if wrong_plugin and not required:
        found = msgspec.structs.replace(found, ok=False)
    return found, needs


def _of_the_site(boxes: Boxes, remedies: Remedies) -> tuple[tuple[Requirement, ...], tuple[Check, ...]]:
    """Return the site's requirements that have a box, and those that text cannot show as unknown checks.

    A section without any box means that output was lost; then nothing in it is taken for not shown.
    """
    profile = remedies.profile
    needs = site_requirements(profile) if profile else default_requirements(frameworks=False)
    shown = {*boxes.controllers, *boxes.operations}
    lost = () if boxes.operations else BOX_NAMES
    hidden = [need for need in needs if not {*shown, *lost}.intersection(need.names)]
    listed = {*boxes.frameworks, *shown, *BOX_NAMES}
    not_shown = tuple(
        verdict("box: not shown", name, origin=CHECK_BUILD)
        for need in hidden
        for name in need.names
        if name not in listed
    )
    return tuple(need for need in needs if need not in hidden), not_shown


def _read(path: Path) -> str | None:
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
